"""Does a run give again what a reference gave? Judged on falls and ratios, which are the same on a faster machine.

What is compared is a log-ratio, or a difference of two: its mean over today's blocks less that over the reference's.
The interval of that is Welch's, since today's machine may scatter otherwise; a single block today is taken to scatter
as the reference's do. `reproduced`: the interval lies inside the margin, and the two answers do not exclude each
other. `not reproduced`: it lies wholly beyond the margin, or the answers exclude each other and it excludes 0.
Otherwise today's run is `too short to tell`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests

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
    log_margin,
    place,
)

REPRODUCED, NOT_REPRODUCED, TOO_SHORT = "reproduced", "not reproduced", "too short to tell"
CONFIDENCE = 1 - 2 * LEVEL  # of the interval of a ratio
_EXCLUDE = [{FLAT, FALLS_OFF}, {FLAT, RISES}, {FALLS_OFF, RISES}, {SIZE_OPEN, RISES}]
_FALLS = {FLAT, FALLS_OFF, RISES, SIZE_OPEN}
# Answers of other statements that decide nothing.
_OPEN = {"", UNDECIDED, REFUSED, "open"}


@dataclass(frozen=True)
class Reproduction:
    """Whether something was `reproduced`: the `kind` and the `reason`, one sentence.

    `today` and `reference` are ratios (geometric means; of a fall 1 - fall), `interval` is that of their ratio, of
    CONFIDENCE; what cannot be known is None. `blocks` counts today's, `answers` are the reference's and today's, empty
    where nothing is judged. `p` is one-sided: of a difference that is no larger than the margin, or, where the answers
    exclude each other, of none at all; None where nothing scatters.
    """

    kind: str
    reason: str
    today: float | None
    reference: float | None
    interval: Interval | None
    blocks: int
    answers: tuple[str, str] = ("", "")
    p: float | None = None


@dataclass(frozen=True)
class Estimate:
    """An estimate on the log scale (NaN: there is none) with its standard error `se`, 0 where nothing scatters and None
    where it is not known, from `n` repeats."""

    log: float
    se: float | None
    n: int


def of_blocks(values, exact: bool = False) -> Estimate:
    """The estimate from log values of shape (blocks,), NaN being left out; `exact` ones do not scatter, as in a simulation."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    n = len(values)
    scatter = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else None
    return Estimate(float(values.mean()) if n else math.nan, 0.0 if exact and n else scatter, n)


def reproduction(
    reference: Estimate, today: Estimate, margin: float, answers: tuple[str, str] = ("", "")
) -> Reproduction:
    """Compare today's estimate with the reference's; `answers` are those that were given on each.

    Where today's standard error is not known, as of a single block, its blocks are taken to scatter as the reference's do.
    """
    difference = today.log - reference.log
    error, freedom = _error(reference, today)
    interval = ends = p = None
    if error is not None:
        half = float(stats.t.ppf(1 - LEVEL, freedom)) * error
        interval = difference - half, difference + half
        ends = math.exp(interval[0]), math.exp(interval[1])
    if error:
        limit = 0.0 if are_excluding(answers) else log_margin(margin)
        p = float(stats.t.sf((abs(difference) - limit) / error, freedom))
    kind, reason = _kind(interval, answers, margin)
    ratio, other = (
        None if math.isnan(one.log) else math.exp(one.log) for one in (today, reference)
    )
    return Reproduction(kind, reason, ratio, other, ends, today.n, answers, p)


def _error(reference: Estimate, today: Estimate) -> tuple[float | None, float]:
    """The standard error of the difference, None where it cannot be known, and its degrees of freedom."""
    if reference.se is None or math.isnan(today.log):
        return None, 1.0
    if reference.se == 0 and not today.se:
        return 0.0, 1.0
    if today.se is None:
        return reference.se * math.sqrt(1 + reference.n / max(today.n, 1)), max(reference.n - 1, 1)
    squares = np.array([reference.se, today.se]) ** 2
    # Welch and Satterthwaite's; one that does not scatter adds nothing.
    each = squares**2 / np.maximum([reference.n - 1, today.n - 1], 1)
    return math.sqrt(squares.sum()), float(squares.sum() ** 2 / each.sum())


def corrected(found: Sequence[Reproduction | None]) -> list[Reproduction | None]:
    """The same, where all are told together: one that is not reproduced by itself, but not at the level by Holm's
    correction over all that have a p, is too short to tell. None stays None."""
    told = list(found)
    judged = [(number, one) for number, one in enumerate(found) if one and one.p is not None]
    reason = f"It differs by itself, but not beyond chance among {len(judged)} findings (Holm)."
    all_p = multipletests([one.p for _, one in judged], method="holm")[1] if judged else ()
    for (number, one), p in zip(judged, all_p):
        if one.kind == NOT_REPRODUCED and p >= LEVEL:
            told[number] = replace(one, kind=TOO_SHORT, reason=reason)
    return told


def are_excluding(answers: tuple[str, str]) -> bool:
    """Whether two answers cannot both be true: both are decided, and differ.

    Of falls, one of open size agrees with both that it may be.
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
