"""The ratio of two means that are known from the same blocks, with Fieller's interval."""

import math

import numpy as np
from scipy import stats


def ratio_of_means(numerator, denominator, confidence=0.95) -> tuple[float, float, float]:
    """(ratio, low, high) of mean(numerator) / mean(denominator), both of shape (blocks,) and paired.

    The interval holds every ratio r for which Student's t test does not tell the mean of
    numerator - r denominator from 0 (E. C. Fieller, J. R. Statist. Soc. B 16, 1954, 175-185).
    Blocks with a NaN are left out. NaN where it is not known: without a block the ratio, and the
    interval with one block or where the denominator's mean cannot be told from 0.
    """
    pairs = np.array([numerator, denominator], float)
    pairs = pairs[:, np.isfinite(pairs).all(axis=0)]
    blocks = pairs.shape[1]
    if not blocks:
        return math.nan, math.nan, math.nan
    above, below = pairs.mean(axis=1)
    ratio = float(above / below) if below else math.nan
    if blocks < 2:
        return ratio, math.nan, math.nan
    quantile = stats.t.ppf((1 + confidence) / 2, blocks - 1)
    (var_above, covariance), (_, var_below) = quantile**2 * np.cov(pairs) / blocks
    square = below**2 - var_below
    if square <= 0:
        return ratio, math.nan, math.nan
    middle = above * below - covariance
    half = math.sqrt(max(middle**2 - square * (above**2 - var_above), 0.0))
    return ratio, float((middle - half) / square), float((middle + half) / square)
