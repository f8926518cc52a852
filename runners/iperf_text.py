"""The text output of iperf3 and iperf 2: rows with an interval, the amount transferred, and its
rate.

Bytes are in powers of 2^10 and bits in powers of 10^3 (units.c of both). Three digits are printed,
so a rate is known to half a per cent at best.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from runners.parsing import half_digit
from runners.records.record import Contradictory, Cut, Failed, Reading

NOTE = "rates of a text output have three digits"

_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_ROW = re.compile(
    rf"^\[ *(?P<id>\d{{1,6}}|SUM)(?:-\d+)?\](?:\[(?P<role>[TR]X)-[CS]\])? +(?P<start>{_NUMBER})- *(?P<end>{_NUMBER}) +sec +"
    rf"(?P<amount>{_NUMBER}) (?P<amount_power>[KMGT]?)Bytes +"
    rf"(?P<rate>{_NUMBER}) (?P<rate_power>[KMGT]?)(?P<unit>bits|Bytes)/sec(?P<rest>[^\n]*)\n",
    re.M,
)
_OFF = 0.01  # a rate may use the other end's time, which differs by some milliseconds


@dataclass(frozen=True)
class Row:
    """One row: the stream's number or SUM, its role with `--bidir`, the interval [s], the rate
    [bit/s], and the rest of the line.

    `is_interval` holds if iperf 2.1 prints an end at a whole second with four decimals, which only
    an interval of -i has. `is_round` holds if 2.0 does so with its one decimal, which a whole run
    may have, too.
    """

    id: str
    role: str
    start: float
    end: float
    rate: float
    rest: str
    is_interval: bool
    is_round: bool


def has_rows(text: str) -> bool:
    """Whether a text has a row of an interval."""
    return bool(_ROW.search(text))


def rows(text: str) -> list[Row]:
    """All rows of a text; raises Unreadable if a rate contradicts its own bytes and seconds."""
    return [_row(match) for match in _ROW.finditer(text)]


def _row(match: re.Match[str]) -> Row:
    base = 8 * 1024 ** _POWERS[match["amount_power"]]
    scale = 8 * 1024 ** _POWERS[match["rate_power"]]
    if match["unit"] == "bits":
        scale = 1000 ** _POWERS[match["rate_power"]]
    amount, rate = (
        [float(match[name]) + side * half_digit(match[name]) for side in (-1, 1)]
        for name in ("amount", "rate")
    )
    start, end = float(match["start"]), float(match["end"])
    slack = half_digit(match["start"]) + half_digit(match["end"])
    shortest, longest = end - start - slack, end - start + slack
    fastest = base * amount[1] / shortest if shortest > 0 else float("inf")
    slowest = base * amount[0] / longest if longest > 0 else float("inf")
    if rate[1] * scale < slowest * (1 - _OFF) or rate[0] * scale > fastest * (1 + _OFF):
        raise Contradictory(
            f"a row contradicts itself: bytes, time and rate in {match[0].strip()!r}"
        )
    return Row(
        id=match["id"],
        role=match["role"] or "",
        start=start,
        end=end,
        rate=float(match["rate"]) * scale,
        rest=match["rest"],
        is_interval=match["end"].endswith(".0000"),
        is_round=bool(re.fullmatch(r"\d+\.0", match["end"])),
    )


def total(listed: Sequence[Row], streams: int) -> Row:
    """The row of all streams together; raises Unreadable unless there is exactly one."""
    sums = [row for row in listed if row.id == "SUM"]
    if len(sums) == 1:
        return sums[0]
    if len(sums) > 1 or len({row.id for row in listed}) < len(listed):
        raise Contradictory("several summaries in one output: runs are mixed")
    if streams > 1:
        raise Cut(f"the sum of {streams} streams is missing: stopped or cut off")
    if not listed:
        raise Cut("the summary is missing: the run was stopped or its output cut off")
    return listed[0]


def reading(row: Row, name: str) -> Reading:
    """The rate [bit/s] of a row under this name."""
    if row.rate <= 0:
        raise Failed("no data arrived" if name == "goodput" else "no data was sent")
    return Reading(name, row.rate, "bit/s")
