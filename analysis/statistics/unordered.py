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
from analysis.statistics.intervals import finite, welch
from analysis.statistics.judgement import UNDECIDED, Judgement, of_mean

IF_ALIKE = "if the sessions were alike"
SINGLE = "A point is a single run, so there is no interval."


def sum_of_means(groups: Sequence[tuple[int, Sequence[float]]]) -> tuple[float, float, float]:
    """(mean, standard error, degrees of freedom) of the sum of signed means; `groups` are a sign and
    values each. The error is NaN where a group has fewer than two values."""
    signed = [(sign, finite(values)) for sign, values in groups]
    counts = np.array([len(values) for _, values in signed])
    if counts.min() < 1:
        return math.nan, math.nan, math.nan
    mean = float(sum(sign * values.mean() for sign, values in signed))
    if counts.min() < 2:
        return mean, math.nan, math.nan
    return mean, *welch(np.array([values.var(ddof=1) for _, values in signed]) / counts, counts)


def judge_unordered(
    groups: Sequence[tuple[int, Sequence[float]]],
    margin: float,
    evidence: str,
    one_sided: float = LEVEL,
) -> Judgement:
    """The judgement on D, the sum of signed means of log rates, as `judgement.judge` gives it for
    blocks. `Judgement.blocks` is the fewest runs of a point."""
    mean, error, free = sum_of_means(groups)
    runs = min(len(finite(values)) for _, values in groups)
    if not math.isfinite(error):
        fall = None if math.isnan(mean) else -math.expm1(mean)
        return Judgement(UNDECIDED, fall, None, None, runs, margin, SINGLE, evidence)
    judgement = of_mean(mean, error, free, runs, margin, evidence, one_sided)
    return replace(judgement, condition=IF_ALIKE)
