"""Intervals over a few independent blocks, from Student's t; values are on the scale on which they add."""

import math

import numpy as np
from scipy import stats


def t_interval(values, confidence=0.95) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard error, low and high of the t interval over the first axis; NaN from one value."""
    values = np.asarray(values, float)
    n = len(values)
    mean = values.mean(axis=0)
    if n < 2:
        unknown = np.full_like(mean, math.nan)
        return mean, unknown, unknown, unknown
    error = values.std(axis=0, ddof=1) / math.sqrt(n)
    half = stats.t.ppf((1 + confidence) / 2, n - 1) * error
    return mean, error, mean - half, mean + half
