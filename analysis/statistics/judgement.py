"""The one judgement of an interval against a margin. The unit of every statement is the block.

Rates are compared as log-ratios within a block, r = log(rate_network / rate_reference). A block's D is r at the node
count `to` minus r at the node count `from`; the relative fall is 1 - exp(D). A margin m is |D| <= -log(1 - m) on the
log scale: a fall of m, or a rise to 1 / (1 - m).

The interval is Student's t over the blocks. Its two ends are one-sided tests at the same level, so that a two-sided
90 % interval belongs to a level of 5 %. Answers, the first that applies:

    flat               the interval lies inside the margin (two one-sided tests, Schuirmann 1987), wherever 0 is
    falls off          the whole interval is a fall beyond the margin
    rises              the whole interval is a rise beyond the margin
    falls, size open   the whole interval is a fall, part of it inside the margin
    undecided          anything else
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.statistics.intervals import t_interval
from runners.record import FalloffError

LEVEL = 0.05  # one-sided, of a single look: a 90 % interval belongs to it
FALLS_OFF, SIZE_OPEN, FLAT, RISES, UNDECIDED = (
    "falls off",
    "falls, size open",
    "flat",
    "rises",
    "undecided",
)
REFUSED = "refused"  # no judgement: the negative control failed
DECIDED = (FALLS_OFF, FLAT, RISES)

Interval = tuple[float, float]
Pair = Interval
UNKNOWN = (math.nan, math.nan)
SUPPORTED, CONTRADICTED = "supported", "contradicted"


@dataclass(frozen=True)
class Judgement:
    """The `answer` on a fall, and what it rests on.

    `fall`, its `interval` (low, high; two-sided, of this `confidence`) and `margin` are relative; `sd` is the blocks'
    standard deviation of D on the log scale. What cannot be known is None: all of these without a block, interval and
    sd from one block. `reason` is one sentence, `evidence` the kind of data. `p` is that of the answer, or of the
    nearest decision (None without an interval); `p_holm` is p corrected for the statements judged together, if any.
    """

    answer: str
    fall: float | None
    interval: Interval | None
    confidence: float | None
    blocks: int
    margin: float
    sd: float | None
    reason: str
    evidence: str
    p: float | None = None
    p_holm: float | None = None

    @property
    def decided(self) -> bool:
        """Whether more blocks are not needed: it falls off, is flat, or rises."""
        return self.answer in DECIDED


@dataclass(frozen=True)
class Control:
    """Whether a ratio is 1, such as that of two networks on one node, where no network is used.

    `holds`: the interval lies inside the margin. `violated`: it does not, and excludes 1. Otherwise `undecided`.
    `ratio` is the geometric mean over the blocks; it and the interval are None without enough blocks.
    """

    kind: str
    ratio: float | None
    interval: Interval | None
    confidence: float | None
    blocks: int
    margin: float


def log_margin(margin: float) -> float:
    """The relative margin on the log scale."""
    return -math.log1p(-margin)


def half_width(sd, blocks, one_sided: float) -> np.ndarray:
    """Half the t interval of the mean of D, whose ends are one-sided tests at this level; arguments broadcast."""
    return stats.t.isf(one_sided, np.asarray(blocks) - 1) * sd / np.sqrt(blocks)


def answers(mean, half, margin: float) -> np.ndarray:
    """The answer for intervals mean +- half of D, on the log scale; arguments broadcast. `margin` is relative."""
    low, high, limit = mean - half, mean + half, log_margin(margin)
    inside = (-limit <= low) & (high <= limit)
    return np.select(
        [inside, high < -limit, low > limit, high < 0],
        [FLAT, FALLS_OFF, RISES, SIZE_OPEN],
        default=UNDECIDED,
    )


def judge(differences, margin: float, evidence: str, one_sided: float = LEVEL) -> Judgement:
    """The judgement on the blocks' D (log scale), shape (blocks,); NaN blocks are left out.

    A simulation repeats itself exactly: its one block is compared with the margin as it is, without interval or p.
    """
    values = _finite(differences)
    n = len(values)
    if n and evidence == "simulated":
        return _of_model(float(values[0]), n, margin)
    if n < 2:
        fall = None if n == 0 else -math.expm1(values[0])
        reason = (
            "A single block has no interval."
            if n
            else "No block has all of its runs at both node counts."
        )
        return Judgement(UNDECIDED, fall, None, None, n, margin, None, reason, evidence)
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    half = float(half_width(sd, n, one_sided))
    answer, confidence = answers(mean, half, margin).item(), 1 - 2 * one_sided
    return Judgement(
        answer=answer,
        fall=-math.expm1(mean),
        interval=(-math.expm1(mean + half), -math.expm1(mean - half)),
        confidence=confidence,
        blocks=n,
        margin=margin,
        sd=sd,
        reason=f"The {100 * confidence:g} % interval of the fall {_WHY[answer].format(100 * margin)}.",
        evidence=evidence,
        p=_p(answer, mean, sd, n, margin),
    )


def judge_control(log_ratios, margin: float, one_sided: float = LEVEL) -> Control:
    """Whether a ratio is 1, from log-ratios of shape (blocks,); NaN blocks are left out."""
    values = _finite(log_ratios)
    found = judge(values, margin, "", one_sided)
    if found.interval is None:
        ratio = None if found.fall is None else 1 - found.fall
        return Control("undecided", ratio, None, None, found.blocks, margin)
    low, high = 1 - found.interval[1], 1 - found.interval[0]
    kind = "holds" if found.answer == FLAT else "undecided" if low <= 1 <= high else "violated"
    return Control(kind, 1 - found.fall, (low, high), found.confidence, found.blocks, margin)


def within_campaign(
    judgements: Sequence[Judgement], one_sided: float = LEVEL
) -> tuple[Judgement, ...]:
    """The secondary statements of one campaign in the same order, corrected for each other; sets `p_holm`.

    Holm's procedure runs over those with a p. An answer that does not hold at this level becomes `undecided`. One p a
    statement is enough: no fall is both inside the margin and beyond it, so that at most one claim of each is wrong.
    """
    tested = [number for number, one in enumerate(judgements) if one.p is not None]
    if not tested:
        return tuple(judgements)
    corrected = list(judgements)
    for number, p_holm in zip(
        tested, multipletests([judgements[i].p for i in tested], method="holm")[1]
    ):
        one = replace(judgements[number], p_holm=float(p_holm))
        if one.answer != UNDECIDED and p_holm > one_sided:
            reason = f"Alone it {_VERB[one.answer]}, not among the {len(tested)} statements of its campaign (Holm)."
            one = replace(one, answer=UNDECIDED, reason=reason)
        corrected[number] = one
    return tuple(corrected)


_WHY = {
    FLAT: "lies inside the margin of {:g} %",
    FALLS_OFF: "lies wholly beyond the margin of {:g} %",
    RISES: "is a rise beyond the margin of {:g} %",
    SIZE_OPEN: "excludes 0 but reaches into the margin of {:g} %",
    UNDECIDED: "neither excludes 0 as a fall nor lies inside the margin of {:g} %",
}
_VERB = {FLAT: "is flat", FALLS_OFF: "falls off", RISES: "rises", SIZE_OPEN: "falls"}


def _of_model(difference: float, n: int, margin: float) -> Judgement:
    answer = answers(difference, 0.0, margin).item()
    reason = f"In the model, which has no scatter, the fall {_IN_MODEL[answer]} the margin of {100 * margin:g} %."
    return Judgement(
        answer, -math.expm1(difference), None, None, n, margin, None, reason, "simulated"
    )


_IN_MODEL = {FLAT: "lies inside", FALLS_OFF: "lies beyond", RISES: "is a rise beyond"}


def _p(answer: str, mean: float, sd: float, n: int, margin: float) -> float:
    """The p of the one-sided test of the answer; of an undecided one that of the nearest decision."""
    error, limit = max(sd / math.sqrt(n), np.finfo(float).tiny), log_margin(margin)
    distances = {FLAT: limit - abs(mean), FALLS_OFF: -limit - mean, RISES: mean - limit}
    distance = -mean if answer == SIZE_OPEN else distances.get(answer, max(distances.values()))
    return float(stats.t.sf(distance / error, n - 1))


def _finite(values) -> np.ndarray:
    values = np.asarray(values, float)
    return values[np.isfinite(values)]


@dataclass(frozen=True)
class InRange:
    """A verdict with the mean, its 90 % and 95 % t intervals and the number of values; unknown is NaN."""

    kind: str
    estimate: float
    interval_90: Pair
    interval_95: Pair
    n: int
    reason: str = ""


def judge_range(values, at_least: float, at_most: float, ratios: bool = False) -> InRange:
    """Judge whether the mean of `values`, shape (blocks,), lies in [at_least, at_most]; NaN is left out.

    By `kind_of`; with fewer than two values it is undecided. `ratios` are judged as logarithms, so that the
    estimate is their geometric mean. Raises FalloffError when one of them is not above 0.
    """
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    if ratios and (values <= 0).any():
        raise FalloffError(f"a ratio of {values.min():g} has no logarithm: give ratios above 0")
    if not len(values):
        return InRange(UNDECIDED, np.nan, UNKNOWN, UNKNOWN, 0, "no block has a value")
    scaled, back = (np.log(values), np.exp) if ratios else (values, float)
    estimate = float(back(scaled.mean()))
    if len(values) < 2:
        return InRange(UNDECIDED, estimate, UNKNOWN, UNKNOWN, 1, "a single block has no interval")
    inner, outer = (
        tuple(float(back(end)) for end in t_interval(scaled, c)[2:]) for c in (0.90, 0.95)
    )
    return InRange(kind_of(inner, outer, at_least, at_most), estimate, inner, outer, len(values))


def kind_of(interval_90: Pair, interval_95: Pair, at_least: float, at_most: float) -> str:
    """SUPPORTED: the 90 % interval lies inside [at_least, at_most] (two one-sided tests at 5 %, D. J. Schuirmann,
    J. Pharmacokinet. Biopharm. 15, 1987, 657-680); CONTRADICTED: the 95 % interval lies wholly outside; else
    UNDECIDED, as with an interval that is not known."""
    if at_least <= interval_90[0] and interval_90[1] <= at_most:
        return SUPPORTED
    return CONTRADICTED if interval_95[1] < at_least or interval_95[0] > at_most else UNDECIDED
