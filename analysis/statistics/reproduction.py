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
CONFIDENCE = 1 - 2 * LEVEL
_EXCLUDE = [{FLAT, FALLS_OFF}, {FLAT, RISES}, {FALLS_OFF, RISES}, {SIZE_OPEN, RISES}]
_FALLS = {FLAT, FALLS_OFF, RISES, SIZE_OPEN}
# Answers of other statements that decide nothing.
_OPEN = {"", UNDECIDED, REFUSED, "open"}


@dataclass(frozen=True)
class Reproduction:
    """Whether `what` was `reproduced`: the `kind` and the `reason`, one sentence.

    `today` and `reference` are ratios (geometric means; of a fall 1 - fall), `interval` is that of their ratio, of
    this `confidence`; what cannot be known is None. `blocks` counts today's, `answers` are the reference's and today's,
    empty where nothing is judged. `p` is one-sided: of a difference that is no larger than the margin, or, where the
    answers exclude each other, of none at all.
    """

    what: str
    kind: str
    today: float | None
    reference: float | None
    interval: Interval | None
    confidence: float
    blocks: int
    margin: float
    reason: str
    answers: tuple[str, str] = ("", "")
    p: float | None = None


@dataclass(frozen=True)
class Estimate:
    """A published estimate on the log scale with its standard error `se`, 0 where nothing scatters and None where it is
    not known, from `n` repeats."""

    log: float
    se: float | None
    n: int


def reproduction(
    what: str,
    reference,
    today,
    margin: float,
    answers: tuple[str, str] = ("", ""),
    exact: bool = False,
) -> Reproduction:
    """Compare today's blocks with the reference's, log values of shape (blocks,); NaN is left out.

    `answers` are those that were given on each, `exact` says that neither scatters, as in a simulation.
    """
    reference, today = (np.asarray(values, float) for values in (reference, today))
    reference, today = reference[np.isfinite(reference)], today[np.isfinite(today)]
    interval = _interval(reference, today, exact)
    kind, reason = _kind(interval, answers, margin)
    return Reproduction(
        what=what,
        kind=kind,
        today=math.exp(today.mean()) if len(today) else None,
        reference=math.exp(reference.mean()) if len(reference) else None,
        interval=None if interval is None else (math.exp(interval[0]), math.exp(interval[1])),
        confidence=CONFIDENCE,
        blocks=len(today),
        margin=margin,
        reason=reason,
        answers=answers,
    )


def prediction_interval(log_values, k: int) -> Interval:
    """The 95 % interval for the mean of `k` new blocks from n reference blocks, shape (n,), n > 1.

    mean +- t(n - 1) s sqrt(1/n + 1/k), with the 97.5 % quantile of Student's t.
    """
    values = np.asarray(log_values, float)
    n = len(values)
    half = stats.t.ppf(0.975, n - 1) * values.std(ddof=1) * math.sqrt(1 / n + 1 / k)
    return float(values.mean() - half), float(values.mean() + half)


def of_estimates(
    what: str,
    reference: Estimate,
    today: Estimate,
    margin: float,
    answers: tuple[str, str] = ("", ""),
) -> Reproduction:
    """The same comparison where only estimates are known: Welch's interval from the two standard errors.

    Where today's is not known, as of a single repeat, its repeats are taken to scatter as the reference's do.
    """
    difference, error, freedom = today.log - reference.log, None, 1.0
    if reference.se == 0 and not today.se:
        error = 0.0
    elif reference.se is not None and today.se is None and reference.n > 1:
        error = reference.se * math.sqrt(1 + reference.n / today.n)
        freedom = reference.n - 1
    elif None not in (reference.se, today.se):
        squares = np.array([reference.se, today.se]) ** 2
        error = math.sqrt(squares.sum())
        # Welch and Satterthwaite's; one that does not scatter adds nothing.
        each = squares**2 / np.maximum([reference.n - 1, today.n - 1], 1)
        freedom = squares.sum() ** 2 / each.sum()
    interval = None
    if error is not None:
        half = float(stats.t.ppf(1 - LEVEL, freedom)) * error
        interval = (difference - half, difference + half)
    kind, reason = _kind(interval, answers, margin)
    p = None
    if interval is not None:
        limit = 0.0 if are_excluding(answers) else log_margin(margin)
        beyond = abs(difference) - limit
        p = float(stats.t.sf(beyond / error, freedom)) if error else float(beyond <= 0)
    return Reproduction(
        what=what,
        kind=kind,
        today=math.exp(today.log),
        reference=math.exp(reference.log),
        interval=None if interval is None else (math.exp(interval[0]), math.exp(interval[1])),
        confidence=CONFIDENCE,
        blocks=today.n,
        margin=margin,
        reason=reason,
        answers=answers,
        p=p,
    )


def corrected(found: Sequence[Reproduction]) -> list[Reproduction]:
    """The same, where all are told together: one that is not reproduced by itself, but not at the level by Holm's
    correction over all that have a p, is too short to tell."""
    judged = [number for number, one in enumerate(found) if one.p is not None]
    adjusted = (
        dict(zip(judged, multipletests([found[number].p for number in judged], method="holm")[1]))
        if judged
        else {}
    )
    told = []
    for number, one in enumerate(found):
        if one.kind == NOT_REPRODUCED and adjusted.get(number, 0.0) >= LEVEL:
            reason = (
                f"It differs by itself, but not beyond chance among {len(judged)} findings (Holm)."
            )
            one = replace(one, kind=TOO_SHORT, reason=reason)
        told.append(one)
    return told


def are_excluding(answers: tuple[str, str]) -> bool:
    """Whether two answers cannot both be true: both are decided, and differ.

    Of falls, one of open size agrees with both that it may be.
    """
    if set(answers) & _FALLS:
        return set(answers) in _EXCLUDE
    return not set(answers) & _OPEN and answers[0] != answers[1]


def _interval(reference: np.ndarray, today: np.ndarray, exact: bool) -> Interval | None:
    n, k = len(reference), len(today)
    if not n or not k or (n < 2 and not exact):
        return None
    difference = float(today.mean() - reference.mean())
    if exact or not (np.ptp(today) or np.ptp(reference)):
        return difference, difference
    # The pooled variance of a single block and a sample is the sample's.
    test = stats.ttest_ind(today, reference, equal_var=k == 1)
    low, high = test.confidence_interval(CONFIDENCE)
    return float(low), float(high)


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
