"""Draws of numbers that are known as a value and a range."""

import numpy as np
from scipy import stats


def triangular(low: float, value: float, high: float, chance: np.ndarray) -> np.ndarray:
    """The quantiles at `chance` (uniform in [0, 1], any shape) of the triangular distribution, in the number's unit.

    Needs low <= value <= high; of a range without width every quantile is the value.
    """
    if high == low:
        return np.full_like(chance, value, dtype=float)
    width = high - low
    return stats.triang.ppf(chance, (value - low) / width, loc=low, scale=width)
