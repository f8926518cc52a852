"""Judge falls from repeats without order: runs of which nobody knows which were made together.

Runs that are no blocks cannot be paired. A difference of means then has the interval of Welch's t
test, with the degrees of freedom of Welch and Satterthwaite (B. L. Welch, Biometrika 34, 1947,
28-35). It takes the runs for independent, which they are if the sessions that made them were alike. Where sessions
differ as much as runs, and each point was run in a session of its own, a 90 % interval covers the true fall in 70, 53 and
40 % of cases with 3, 5 and 10 runs. So every judgement says that it holds only if they were alike.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from analysis.statistics.design import LEVEL
from analysis.statistics.judgement import UNDECIDED, Judgement, of_mean

IF_ALIKE = "if the sessions were alike"
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
    found = of_mean(mean, error, free, runs, margin, evidence, one_sided)
    return replace(found, condition=IF_ALIKE)
