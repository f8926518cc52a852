"""What a campaign of so many blocks costs, and what it will be able to say: plain numbers for planning."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.inference import power

LARGE_FALL = 0.13  # about what a slow network showed; the calibration plants the same
POWERS = (0.80, 0.90)
CLAIMS = {"flat": (power.flat, 0.0), "falls off": (power.falls_off, LARGE_FALL)}


@dataclass(frozen=True)
class Effort:
    """What planning starts from.

    `block_s` is the time of one valid block [s], that of invalid ones included; `survey_s` what precedes
    the blocks [s]; `sd` > 0 the blocks' standard deviation of D (log scale); `margin` is relative.
    """

    block_s: float
    survey_s: float
    sd: float
    margin: float

    def hours(self, blocks: int) -> float:
        """The time of a campaign of so many blocks [h]."""
        return (self.survey_s + blocks * self.block_s) / 3600


@dataclass(frozen=True)
class Outlook:
    """With so many blocks: `hours` [h], P(`flat`) without a fall, P(`falls off`) at LARGE_FALL."""

    blocks: int
    hours: float
    flat: float
    falls_off: float


@dataclass(frozen=True)
class Need:
    """The fewest blocks, and the hours, for a `claim` to be made with this `power`.

    Both are None when it takes more than `verdict.MOST_BLOCKS`.
    """

    claim: str
    power: float
    blocks: int | None
    hours: float | None


def outlook(effort: Effort, blocks: Sequence[int]) -> tuple[Outlook, ...]:
    """One row for each number of blocks."""
    flat, falls_off = (
        claim(fall, effort.sd, list(blocks), effort.margin) for claim, fall in CLAIMS.values()
    )
    return tuple(
        Outlook(n, effort.hours(n), float(p_flat), float(p_falls_off))
        for n, p_flat, p_falls_off in zip(blocks, flat, falls_off)
    )


def needed(effort: Effort) -> tuple[Need, ...]:
    """What each claim needs for a power of 80 and 90 %."""
    needs = []
    for name, (claim, fall) in CLAIMS.items():
        for wanted in POWERS:
            blocks = power.blocks_for(wanted, claim, fall, effort.sd, effort.margin)
            needs.append(Need(name, wanted, blocks, None if blocks is None else effort.hours(blocks)))
    return tuple(needs)


def text(effort: Effort, blocks: Sequence[int]) -> str:
    """Both as a table and sentences for a terminal."""
    large = f"{100 * LARGE_FALL:g} %"
    lines = [
        f"margin {100 * effort.margin:g} %, sd of a block's D {100 * effort.sd:.1f} %, "
        f"{effort.block_s:.0f} s a block",
        f"{'blocks':>6} {'hours':>7} {'P(flat | no fall)':>19} {f'P(falls off | {large})':>22}",
    ]
    for row in outlook(effort, blocks):
        lines.append(f"{row.blocks:>6} {row.hours:>7.1f} {row.flat:>19.2f} {row.falls_off:>22.2f}")
    for need in needed(effort):
        truth = "without a fall" if need.claim == "flat" else f"at a fall of {large}"
        cost = "more blocks than can be planned" if need.blocks is None else _cost(need)
        lines.append(f"`{need.claim}` {truth} with {100 * need.power:.0f} % power: {cost}")
    return "\n".join(lines)


def _cost(need: Need) -> str:
    return f"{need.blocks} blocks, {need.hours:.1f} hours"
