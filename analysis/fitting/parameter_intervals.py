"""95 % intervals of the parameters of one fit."""

import math
import warnings

import lmfit
import numpy as np
from scipy import stats


def profile(minimizer, result, bounds) -> dict[str, tuple[float, float]] | None:
    """Profile-likelihood intervals by parameter, or None where there is no finite one.

    `minimizer` and `result` are lmfit's; a bound ends an interval.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = lmfit.conf_interval(minimizer, result, sigmas=[0.95])
    except (lmfit.MinimizerException, ValueError):
        return None
    intervals = {name: _inside(bounds[name], ladder[0][1], ladder[-1][1]) for name, ladder in found.items()}
    finite = all(math.isfinite(end) for interval in intervals.values() for end in interval)
    return intervals if finite else None


def student(estimates, errors, freedom, bounds) -> dict[str, tuple[float, float]]:
    """Student's t intervals by parameter, from the standard errors; a bound ends an interval."""
    half = {name: float(stats.t.ppf(0.975, freedom)) * error for name, error in errors.items()}
    return {
        name: _inside(bounds[name], value - half[name], value + half[name])
        for name, value in estimates.items()
    }


def _inside(bounds, low, high):
    return max(float(low), bounds[0]), min(float(high), bounds[1])
