"""Repeated measurements of one point: their statistics, whether they are reproducible, and whether they look normal."""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.statistics.intervals import Kind, on_scale


@dataclass(frozen=True)
class Repeats:
    """A whole sample and its statistics, in the unit of the values; `variation` is without unit.

    `values` are sorted, `missing` counts those that were NaN. `variation` is the coefficient of variation,
    the standard deviation over the mean. The maximum of a sample grows with its size, so that it stands
    beside the median and is never compared on its own. Unknown is NaN: everything of no value, and the
    variation of one value or about a mean of 0.
    """

    values: tuple[float, ...]
    missing: int
    median: float
    variation: float
    minimum: float
    maximum: float

    @property
    def n(self) -> int:
        """How many values are known."""
        return len(self.values)


def repeats(values) -> Repeats:
    """The statistics of `values`, shape (repeats,); NaN is a missing value."""
    values = np.asarray(values, float)
    known = np.sort(values[np.isfinite(values)])
    missing = len(values) - len(known)
    if not len(known):
        return Repeats((), missing, math.nan, math.nan, math.nan, math.nan)
    mean = float(known.mean())
    spread = float(known.std(ddof=1)) if len(known) > 1 else math.nan
    return Repeats(
        values=tuple(known.tolist()),
        missing=missing,
        median=float(np.median(known)),
        variation=spread / abs(mean) if mean else math.nan,
        minimum=float(known[0]),
        maximum=float(known[-1]),
    )


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


LEVEL = 0.05  # of Shapiro and Wilk's test
FEWEST_FOR_NORMALITY = 3  # values, which the test needs
SAME = 1e-9  # values that differ by no larger part have no distribution


@dataclass(frozen=True)
class Normality:
    """The test of all points of a quantity: how many were `tested`, from `least_blocks` to `most_blocks` values each,
    how many have p below LEVEL (`below`; LEVEL of them would, were all normal), and the least p after Holm's
    correction (`p_holm`, NaN without a test). `departs` is whether that is below LEVEL.
    """

    tested: int
    least_blocks: int
    most_blocks: int
    below: int
    p_holm: float

    @property
    def departs(self) -> bool:
        return self.p_holm < LEVEL


def normality(values: xr.DataArray, kind: Kind) -> Normality:
    """Test the values over (block, ...) at every point, on the scale on which those of the kind are averaged.

    Of few blocks the test sees strong departures only (S. S. Shapiro and M. B. Wilk, Biometrika 52, 1965, 591-611).
    """
    table = on_scale(values, kind).transpose("block", ...).values.reshape(values.sizes["block"], -1)
    columns = [column[np.isfinite(column)] for column in table.T]
    tested = [
        it
        for it in columns
        if len(it) >= FEWEST_FOR_NORMALITY and np.ptp(it) > SAME * np.abs(it).max()
    ]
    if not tested:
        return Normality(0, 0, 0, 0, np.nan)
    p = np.array([stats.shapiro(column).pvalue for column in tested])
    counts = [len(column) for column in tested]
    least = float(multipletests(p, method="holm")[1].min())
    return Normality(len(tested), min(counts), max(counts), int((p < LEVEL).sum()), least)
