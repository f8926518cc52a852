"""Does a measurement give the same again? By its coefficient of variation."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from analysis.inference.repeats import Repeats, repeats


FEWEST = 10  # values that can show that something is reproducible


@dataclass(frozen=True)
class Reproducibility:
    """The `kind` (`reproducible`, `not reproducible`, `undecided`) at a `margin`, and what it rests on.

    `interval` is the 95 % interval of the coefficient of variation, an end of it infinite where the sample
    allows any variation, NaN from fewer than two values.
    """

    kind: str
    margin: float
    sample: Repeats
    interval: tuple[float, float]


def judge_repeats(values, margin: float) -> Reproducibility:
    """Judge `values`, shape (repeats,), NaN being missing; `margin` is the largest variation accepted.

    `not reproducible` when the whole interval of the variation lies above the margin, `reproducible` when
    it lies below and there are FEWEST values or more: fewer can easily miss a state that is rare.
    """
    sample = repeats(values)
    low, high = variation_interval(sample.variation, sample.n)
    if low > margin:
        kind = "not reproducible"
    elif high < margin and sample.n >= FEWEST:
        kind = "reproducible"
    else:
        kind = "undecided"
    return Reproducibility(kind, margin, sample, (low, high))


def variation_interval(variation: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of the coefficient of variation of n normal values, for variations up to about 1/3.

    M. G. Vangel, Confidence intervals for a normal coefficient of variation, Am. Stat. 50 (1996), p. 21-26,
    https://doi.org/10.1080/00031305.1996.10473537: the modified McKay interval.
    """
    if n < 2 or not math.isfinite(variation):
        return math.nan, math.nan
    freedom = n - 1
    quantiles = stats.chi2.ppf([(1 + confidence) / 2, (1 - confidence) / 2], freedom)
    scale = ((quantiles + 2) / n - 1) * variation**2 + quantiles / freedom
    with np.errstate(all="ignore"):
        low, high = np.where(scale > 0, variation / np.sqrt(scale), np.inf)
    return float(low), float(high)
