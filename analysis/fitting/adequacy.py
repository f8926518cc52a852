"""Whether a fitted curve may be drawn through its data: one that misses them says what they do not."""

import numpy as np
from scipy import stats

LEVEL = 0.01  # of the lack-of-fit test
CLOSE = 0.02  # of a level's mean: so near is near enough, however little the runs scatter


def follows(values: np.ndarray, fitted: np.ndarray, parameters: int) -> bool:
    """Whether a curve follows its data: it is close to the mean of every level, or no lack of fit can be shown.

    `values` are over (block, level), NaN where there is no run, and `fitted` over (level,), in the same unit. The test is the
    F test of lack of fit against the scatter of repeated runs, with the given number of fitted `parameters`. Without
    repeats only closeness counts.
    Source: Draper and Smith, Applied Regression Analysis (1998), section 2.1.
    """
    values, fitted = np.asarray(values, float), np.asarray(fitted, float)
    there = np.isfinite(values).any(axis=0)
    values, fitted = values[:, there], fitted[there]
    if not np.isfinite(fitted).all() or not there.any():
        return False
    means, counts = np.nanmean(values, axis=0), np.isfinite(values).sum(axis=0)
    if (np.abs(fitted - means) <= CLOSE * np.abs(means)).all():
        return True
    free, of_scatter = len(means) - parameters, int(counts.sum()) - len(means)
    if free < 1 or of_scatter < 1:
        return False
    scatter = np.nansum((values - means) ** 2) / of_scatter
    lack = float(counts @ (fitted - means) ** 2) / free
    return scatter > 0 and float(stats.f.sf(lack / scatter, free, of_scatter)) > LEVEL
