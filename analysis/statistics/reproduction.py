"""Does a run reproduce a reference? Judged on falls and ratios, which stay the same on a faster
machine.

The compared value is a log-ratio, or a difference of two: its mean over today's blocks less that
over the reference's. Its interval is Welch's, because today's machine may scatter differently. A
single block today is assumed to scatter like the reference's. `reproduced`: the interval lies
inside the margin, and the two answers do not exclude each other. `not reproduced`: it lies wholly
beyond the margin, or the answers exclude each other and it excludes 0. Otherwise today's run is
`too short to tell`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from analysis.statistics.intervals import welch
from analysis.statistics.judgement import (
    ABOVE,
    BELOW,
    FALLS_OFF,
    FLAT,
    INSIDE,
    LEVEL,
    REFUSED,
    RISES,
    SIZE_OPEN,
    UNDECIDED,
    Interval,
    holm_levels,
    log_margin,
    place,
)

REPRODUCED, NOT_REPRODUCED, TOO_SHORT = "reproduced", "not reproduced", "too short to tell"
CONFIDENCE = 1 - 2 * LEVEL  # of the interval of a ratio
_EXCLUDE = [{FLAT, FALLS_OFF}, {FLAT, RISES}, {FALLS_OFF, RISES}, {SIZE_OPEN, RISES}]
_FALLS = {FLAT, FALLS_OFF, RISES, SIZE_OPEN}
# Answers of other statements that leave them open.
_OPEN = {"", UNDECIDED, REFUSED}


@dataclass(frozen=True)
class Reproduction:
    """Whether something was `reproduced`: the `kind` and the `reason`, one sentence.

    `today` and `reference` are ratios (geometric means; for a fall, 1 - fall). `interval` is that
    of their ratio, at this `confidence`. Unknown values are None. `blocks` counts today's.
    `answers` are the reference's and today's, empty if nothing is judged. `p` is one-sided: of a
    difference no larger than the margin or, if the answers exclude each other, of no difference at
    all; None if nothing scatters. `error` is the standard error of the log-ratio and `freedom` its
    degrees of freedom, NaN if unknown.
    """

    kind: str
    reason: str
    today: float | None
    reference: float | None
    interval: Interval | None
    blocks: int
    answers: tuple[str, str] = ("", "")
    p: float | None = None
    confidence: float = CONFIDENCE
    error: float = math.nan
    freedom: float = math.nan

    @property
    def ratio(self) -> float:
        """Today's over the reference's; NaN if unknown."""
        return self.today / self.reference if self.today and self.reference else math.nan


@dataclass(frozen=True)
class Estimate:
    """An estimate on the log scale (NaN: none) with its standard error `se`, from `n` repeats. `se`
    is 0 if nothing scatters and None if unknown."""

    log: float
    se: float | None
    n: int


def reproduction(
    reference: Estimate, today: Estimate, margin: float, answers: tuple[str, str] = ("", "")
) -> Reproduction:
    """Compare today's estimate with the reference's; `answers` are the answers on each.

    If today's standard error is unknown, as from a single block, its blocks are assumed to scatter
    like the reference's.
    """
    difference = today.log - reference.log
    error, freedom = _error(reference, today)
    interval = p = None
    if error is not None:
        half = float(stats.t.ppf(1 - LEVEL, freedom)) * error
        interval = difference - half, difference + half
    if error:
        limit = 0.0 if are_excluding(answers) else log_margin(margin)
        p = float(stats.t.sf((abs(difference) - limit) / error, freedom))
    kind, reason = _kind(interval, answers, margin)
    ratio, other = (
        None if math.isnan(estimate.log) else math.exp(estimate.log)
        for estimate in (today, reference)
    )
    ends = interval and (math.exp(interval[0]), math.exp(interval[1]))
    return Reproduction(
        kind,
        reason,
        ratio,
        other,
        ends,
        today.n,
        answers,
        p,
        error=error or math.nan,
        freedom=freedom,
    )


def _error(reference: Estimate, today: Estimate) -> tuple[float | None, float]:
    """The standard error of the difference, None if unknown, and its degrees of freedom."""
    if reference.se is None or math.isnan(today.log):
        return None, 1.0
    if reference.se == 0 and not today.se:
        return 0.0, 1.0
    if today.se is None:
        return reference.se * math.sqrt(1 + reference.n / max(today.n, 1)), max(reference.n - 1, 1)
    # A side without scatter adds nothing.
    return welch(np.array([reference.se, today.se]) ** 2, np.array([reference.n, today.n]))


def corrected(results: Sequence[Reproduction | None]) -> list[Reproduction | None]:
    """The same, if all are reported together. One that is not reproduced by itself, but not at the
    level of Holm's correction over all with a p, is too short to tell; both have the interval of
    that level. None stays None."""
    results = list(results)
    judged = [(n, result) for n, result in enumerate(results) if result and result.p is not None]
    reason = f"It differs by itself, but not beyond chance among {len(judged)} findings (Holm)."
    levels = holm_levels(np.array([result.p for _, result in judged]))
    for (number, result), level in zip(judged, levels.tolist()):
        if result.kind != NOT_REPRODUCED:
            continue
        wider = math.exp(float(stats.t.isf(level, result.freedom)) * result.error)
        ends = result.ratio / wider, result.ratio * wider
        result = replace(result, interval=ends, confidence=1 - 2 * level)
        if result.p > level:
            result = replace(result, kind=TOO_SHORT, reason=reason)
        results[number] = result
    return results


def are_excluding(answers: tuple[str, str]) -> bool:
    """Whether two answers cannot both be true: both are decided, and differ.

    For falls, one of open size agrees with both answers that it may turn into.
    """
    if set(answers) & _FALLS:
        return set(answers) in _EXCLUDE
    return not set(answers) & _OPEN and answers[0] != answers[1]


def _kind(interval: Interval | None, answers: tuple[str, str], margin: float) -> tuple[str, str]:
    if interval is None:
        return TOO_SHORT, "Too few blocks have a value."
    if REFUSED in answers:
        return TOO_SHORT, "A negative control failed, so that nothing can be compared."
    where, limit = f"the margin of {100 * margin:g} %", log_margin(margin)
    placed = place(*interval, -limit, limit)
    excluding = are_excluding(answers)
    if placed in (BELOW, ABOVE):
        return NOT_REPRODUCED, f"The difference lies wholly beyond {where}."
    if excluding and not interval[0] <= 0 <= interval[1]:
        return NOT_REPRODUCED, f"The reference's answer is {answers[0]!r}, today's {answers[1]!r}."
    if placed == INSIDE and not excluding:
        return REPRODUCED, f"The interval of the difference lies inside {where}."
    return TOO_SHORT, f"The interval of the difference reaches across {where}."
