"""Repeated measurements of one point: how much they vary, and whether they repeat."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.statistics.intervals import finite

FEWEST = 10  # values needed to show reproducibility


@dataclass(frozen=True)
class Repeats:
    """How much `n` repeats vary, and whether they repeat (`answer`: yes, no or undecided).

    `variation` is the coefficient of variation [1], the standard deviation over the mean, NaN from one value or if the mean is
    0. `interval` is its 95 % interval; an end is infinite if the sample allows any variation, and NaN if the variation is.
    """

    answer: str
    n: int
    variation: float
    interval: tuple[float, float]


def judge_repeats(values, margin: float) -> Repeats:
    """Judge `values`, shape (repeats,), NaN being missing; `margin` is the largest variation
    accepted.

    The answer is no if the whole interval of the variation lies above the margin, and yes if it lies below and there are
    FEWEST values or more. Fewer values can easily miss a rare state.
    """
    measured = finite(values)
    n, variation = len(measured), math.nan
    if n > 1 and measured.mean():
        variation = float(measured.std(ddof=1) / abs(measured.mean()))
    low, high = variation_interval(variation, n)
    answer = "undecided"
    if low > margin:
        answer = "no"
    elif high < margin and n >= FEWEST:
        answer = "yes"
    return Repeats(answer, n, variation, (low, high))


def variation_interval(variation: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of the coefficient of variation of n normal values, for variations up to about 1/3.

    M. G. Vangel, Confidence intervals for a normal coefficient of variation, Am. Stat. 50 (1996), p. 21-26,
    https://doi.org/10.1080/00031305.1996.10473537: the modified McKay interval.
    """
    if n < 2 or not math.isfinite(variation):
        return math.nan, math.nan
    quantiles = stats.chi2.ppf([(1 + confidence) / 2, (1 - confidence) / 2], n - 1)
    scale = ((quantiles + 2) / n - 1) * variation**2 + quantiles / (n - 1)
    with np.errstate(all="ignore"):
        low, high = np.where(scale > 0, variation / np.sqrt(scale), np.inf)
    return float(low), float(high)
