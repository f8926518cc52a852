"""Does a run give again what a reference gave? Judged on falls and ratios, which are the same on a faster machine.

What is compared is a log-ratio, or a difference of two: its mean over today's blocks less that over the reference's.
The interval of that is Welch's, since today's machine may scatter otherwise; a single block today is taken to scatter
as the reference's do. `reproduced`: the interval lies inside the margin, and the two answers do not exclude each
other. `not reproduced`: it lies wholly beyond the margin, or the answers exclude each other and it excludes 0.
Otherwise today's run is `too short to tell`.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.statistics.judgement import (
    FALLS_OFF,
    FLAT,
    LEVEL,
    REFUSED,
    RISES,
    SIZE_OPEN,
    Interval,
    log_margin,
)

REPRODUCED, NOT_REPRODUCED, TOO_SHORT = "reproduced", "not reproduced", "too short to tell"
_EXCLUDE = [{FLAT, FALLS_OFF}, {FLAT, RISES}, {FALLS_OFF, RISES}, {SIZE_OPEN, RISES}]


@dataclass(frozen=True)
class Reproduction:
    """Whether `what` was `reproduced`: the `kind` and the `reason`, one sentence.

    `today` and `reference` are ratios (geometric means; of a fall 1 - fall), `interval` is that of their ratio, of
    this `confidence`; what cannot be known is None. `blocks` and `reference_blocks` count what each rests on, and the
    `answers` are the reference's and today's, empty where nothing is judged.
    """

    what: str
    kind: str
    today: float | None
    reference: float | None
    interval: Interval | None
    confidence: float
    blocks: int
    reference_blocks: int
    margin: float
    reason: str
    answers: tuple[str, str] = ("", "")


def reproduction(
    what: str,
    reference,
    today,
    margin: float,
    answers: tuple[str, str] = ("", ""),
    exact: bool = False,
    one_sided: float = LEVEL,
) -> Reproduction:
    """Compare today's blocks with the reference's, log values of shape (blocks,); NaN is left out.

    `answers` are those that were given on each, `exact` says that neither scatters, as in a simulation.
    """
    reference, today = (np.asarray(values, float) for values in (reference, today))
    reference, today = reference[np.isfinite(reference)], today[np.isfinite(today)]
    interval = _interval(reference, today, exact, one_sided)
    kind, reason = _kind(interval, answers, log_margin(margin), margin)
    return Reproduction(
        what=what,
        kind=kind,
        today=math.exp(today.mean()) if len(today) else None,
        reference=math.exp(reference.mean()) if len(reference) else None,
        interval=None if interval is None else (math.exp(interval[0]), math.exp(interval[1])),
        confidence=1 - 2 * one_sided,
        blocks=len(today),
        reference_blocks=len(reference),
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


def _interval(
    reference: np.ndarray, today: np.ndarray, exact: bool, one_sided: float
) -> Interval | None:
    n, k = len(reference), len(today)
    if not n or not k or not exact and n < 2:
        return None
    difference = float(today.mean() - reference.mean())
    if exact:
        return difference, difference
    of_reference = reference.var(ddof=1)
    if k == 1:
        variance, freedom = of_reference * (1 + 1 / n), n - 1
    else:
        parts = np.array([of_reference / n, today.var(ddof=1) / k])
        variance = parts.sum()
        # Welch and Satterthwaite; without any scatter its value does not matter.
        freedom = variance**2 / (parts**2 / (n - 1, k - 1)).sum() if variance else n + k - 2
    half = float(stats.t.isf(one_sided, freedom) * math.sqrt(variance))
    return difference - half, difference + half


def _kind(
    interval: Interval | None, answers: tuple[str, str], limit: float, margin: float
) -> tuple[str, str]:
    if interval is None:
        return TOO_SHORT, "Too few blocks have a value."
    if REFUSED in answers:
        return TOO_SHORT, "A negative control failed, so that nothing can be compared."
    low, high = interval
    excluding = set(answers) in _EXCLUDE
    if high < -limit or low > limit:
        return (
            NOT_REPRODUCED,
            f"The difference lies wholly beyond the margin of {100 * margin:g} %.",
        )
    if excluding and not low <= 0 <= high:
        return NOT_REPRODUCED, f"The reference's answer is {answers[0]!r}, today's {answers[1]!r}."
    if -limit <= low and high <= limit and not excluding:
        return (
            REPRODUCED,
            f"The interval of the difference lies inside the margin of {100 * margin:g} %.",
        )
    return (
        TOO_SHORT,
        f"The interval of the difference reaches across the margin of {100 * margin:g} %.",
    )
