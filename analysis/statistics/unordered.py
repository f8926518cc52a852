"""Judge falls from repeats without order: runs of which nobody knows which were made together.

Runs that are no blocks cannot be paired. A difference of means then has the interval of Welch's t
test, with the degrees of freedom of Welch and Satterthwaite (B. L. Welch, Biometrika 34, 1947,
28-35). It takes the runs for independent: runs that one session made one after the other may be more
alike than the interval says.
"""

import math
from collections.abc import Sequence

import numpy as np

from analysis.statistics.design import LEVEL
from analysis.statistics.judgement import UNDECIDED, Judgement, of_mean

SINGLE = "A point is a single run, so there is no interval."


def welch(groups: Sequence[tuple[int, Sequence[float]]]) -> tuple[float, float, float]:
    """(mean, standard error, degrees of freedom) of the sum of signed means; `groups` are a sign and
    values each. The error is NaN where a group has fewer than two values."""
    values = [(sign, np.asarray(each, float)) for sign, each in groups]
    values = [(sign, each[np.isfinite(each)]) for sign, each in values]
    if any(not len(each) for _, each in values):
        return math.nan, math.nan, math.nan
    mean = float(sum(sign * each.mean() for sign, each in values))
    if any(len(each) < 2 for _, each in values):
        return mean, math.nan, math.nan
    parts = np.array([each.var(ddof=1) / len(each) for _, each in values])
    free = np.array([len(each) - 1 for _, each in values])
    if not parts.sum() > 0:
        return mean, 0.0, float(free.min())
    return mean, float(np.sqrt(parts.sum())), float(parts.sum() ** 2 / (parts**2 / free).sum())


def judge_unordered(
    groups: Sequence[tuple[int, Sequence[float]]],
    margin: float,
    evidence: str,
    one_sided: float = LEVEL,
) -> Judgement:
    """The judgement on D, the sum of signed means of log rates, as `judgement.judge` gives it for
    blocks. `Judgement.blocks` is the fewest runs of a point."""
    mean, error, free = welch(groups)
    runs = min(int(np.isfinite(np.asarray(each, float)).sum()) for _, each in groups)
    if not math.isfinite(error):
        fall = None if math.isnan(mean) else -math.expm1(mean)
        return Judgement(UNDECIDED, fall, None, None, runs, margin, SINGLE, evidence)
    return of_mean(mean, error, free, runs, margin, evidence, one_sided)
