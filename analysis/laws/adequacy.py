"""Decide whether a fitted curve may be drawn through its data: a curve that misses them would
mislead."""

import numpy as np
from scipy import stats

LEVEL = 0.01  # of the lack-of-fit test
CLOSE = 0.02  # of a level's mean: this is close enough, however little the runs scatter


def follows(values: np.ndarray, fitted: np.ndarray, parameters: int) -> bool:
    """Whether a curve follows its data: it is close to the mean of every level, or no lack of fit
    can be shown.

    `values` are over (block, level), NaN where there is no run, and `fitted` over (level,), in the
    same unit. The test is the F test of lack of fit against the scatter of repeated runs, with the
    given number of fitted `parameters`. Without repeats only closeness counts. Source: Draper and
    Smith, Applied Regression Analysis (1998), section 2.1.
    """
    farthest, p = misfit(values, fitted, parameters)
    return farthest <= CLOSE or p > LEVEL


def misfit(values: np.ndarray, fitted: np.ndarray, parameters: int) -> tuple[float, float]:
    """The curve's largest relative distance from a level's mean [1], and the p-value of the test
    for lack of fit, as in `follows`.

    The distance is infinite for a curve that is not finite. The p-value is NaN if there is nothing
    to test with.
    """
    values, fitted = np.asarray(values, float), np.asarray(fitted, float)
    there = np.isfinite(values).any(axis=0)
    values, fitted = values[:, there], fitted[there]
    if not np.isfinite(fitted).all() or not there.any():
        return np.inf, np.nan
    means, counts = np.nanmean(values, axis=0), np.isfinite(values).sum(axis=0)
    off, size = np.abs(fitted - means), np.abs(means)
    farthest = float(np.divide(off, size, out=np.where(off > 0, np.inf, 0.0), where=size > 0).max())
    free, of_scatter = len(means) - parameters, int(counts.sum()) - len(means)
    scatter = np.nansum((values - means) ** 2) / of_scatter if of_scatter > 0 else 0.0
    if free < 1 or not scatter > 0:
        return farthest, np.nan
    lack = float(counts @ (fitted - means) ** 2) / free
    return farthest, float(stats.f.sf(lack / scatter, free, of_scatter))
