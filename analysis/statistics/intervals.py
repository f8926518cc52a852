"""Means and Student's t intervals over a few independent blocks, by the kind of quantity.

Costs (s, s/B, instructions) have the arithmetic mean. Rates (flop/s, bit/s) have the harmonic mean,
which is the work over the mean of its cost. Ratios have the geometric mean (T. Hoefler and R.
Belli, SC'15, rules 3 and 4). A rate over a bound that does not vary is a rate in another unit.
Intervals are made on the scale on which values of the kind add.
"""

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy.special import stdtrit  # Student's t; scipy.stats takes half a second to import

Kind = Literal["cost", "rate", "ratio"]
AVERAGES: dict[Kind, str] = {"cost": "arithmetic", "rate": "harmonic", "ratio": "geometric"}

# To the scale on which values of the kind add, and back.
_SCALES: dict[Kind, tuple[Callable, Callable]] = {
    "cost": (np.positive, np.positive),
    "rate": (np.reciprocal, np.reciprocal),
    "ratio": (np.log, np.exp),
}


def t_interval(
    values: ArrayLike, confidence: float = 0.95
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(mean, low, high): the mean over the first axis and its t interval, NaN from one value."""
    values = np.asarray(values, float)
    n = len(values)
    mean = values.mean(axis=0)
    if n < 2:
        return mean, np.full_like(mean, math.nan), np.full_like(mean, math.nan)
    half = stdtrit(n - 1, (1 + confidence) / 2) * values.std(axis=0, ddof=1) / math.sqrt(n)
    return mean, mean - half, mean + half


def finite(values: ArrayLike) -> np.ndarray:
    """The finite values, shape (values,)."""
    values = np.asarray(values, float)
    return values[np.isfinite(values)]


def welch(squares: np.ndarray, counts: np.ndarray) -> tuple[Any, Any]:
    """(standard error, degrees of freedom) of a sum of independent means over the first axis, from
    the squares of their standard errors and the counts of their values; shapes broadcast.

    B. L. Welch, Biometrika 34, 1947, 28-35, with F. E. Satterthwaite's degrees of freedom. If
    nothing scatters, these are those of the mean of the fewest values.
    """
    freedom = np.maximum(counts - 1, 1)
    total, terms = squares.sum(axis=0), (squares**2 / freedom).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(total), np.where(terms > 0, total**2 / terms, freedom.min(axis=0))[()]


def average(
    values: ArrayLike, kind: Kind, confidence: float = 0.95
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(mean, low, high) over the first axis: the kind's mean and its t interval.

    The interval is NaN from one value, and if it has no end because a rate's costs cannot be told
    from 0.
    """
    forth, back = _SCALES[kind]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, low, high = t_interval(forth(np.asarray(values, float)), confidence)
        if kind == "rate":
            bounded = low > 0
            low, high = np.where(bounded, high, np.nan), np.where(bounded, low, np.nan)
        return back(mean), back(low), back(high)


def over_blocks(values: xr.DataArray, kind: Kind, confidence: float = 0.95) -> xr.Dataset:
    """`mean`, `low`, `high` in the unit of `values` and the number of `blocks`, over all its dims
    but block.

    NaN is left out; without a value the mean is NaN, and from one value the interval.
    """
    mean, low, high, blocks = xr.apply_ufunc(
        _average_of_known,
        values,
        kwargs={"kind": kind, "confidence": confidence},
        input_core_dims=[["block"]],
        output_core_dims=[[], [], [], []],
        vectorize=True,
        output_dtypes=[float, float, float, int],
    )
    return xr.Dataset({"mean": mean, "low": low, "high": high, "blocks": blocks})


def _average_of_known(values: ArrayLike, kind: Kind, confidence: float) -> tuple:
    values = finite(values)
    if not len(values):
        return np.nan, np.nan, np.nan, 0
    return *average(values, kind, confidence), len(values)


def rates(values: xr.DataArray) -> xr.Dataset:
    """Like `over_blocks`, for rates."""
    return over_blocks(values, "rate")


def ratios(log_ratio: xr.DataArray, confidence: float = 0.95) -> xr.Dataset:
    """Like `over_blocks`, for ratios given as logarithms: `ratio` is their geometric mean."""
    means = over_blocks(back_from_scale(log_ratio, "ratio"), "ratio", confidence)
    return means.rename(mean="ratio")


def mean_over(
    values: xr.DataArray, dim: Any, kind: Kind, skipna: bool | None = None
) -> xr.DataArray:
    """The kind's mean over a dim, several or all (...), in the unit of `values`; NaN is left out
    unless `skipna` is False.
    """
    return back_from_scale(on_scale(values, kind).mean(dim, skipna=skipna), kind)


def on_scale(values: xr.DataArray, kind: Kind) -> xr.DataArray:
    """The values on the scale on which values of the kind add."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return _SCALES[kind][0](values.astype(float))


def back_from_scale(values: xr.DataArray, kind: Kind) -> xr.DataArray:
    """The inverse of `on_scale`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return _SCALES[kind][1](values)


def ratio_of_means(numerator: ArrayLike, denominator: ArrayLike) -> tuple[float, float, float]:
    """(ratio, low, high) of mean(numerator) / mean(denominator), both of shape (blocks,) and
    paired.

    The 95 % interval holds every ratio r for which Student's t test does not tell the mean of
    numerator
    - r denominator from 0 (E. C. Fieller, J. R. Statist. Soc. B 16, 1954, 175-185). Blocks with a
    NaN are left out. Unknown values are NaN: the ratio without a block, and the interval from one
    block or if the denominator's mean cannot be told from 0.
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
    quantile = stdtrit(blocks - 1, 0.975)
    (var_above, covariance), (_, var_below) = quantile**2 * np.cov(pairs) / blocks
    square = below**2 - var_below
    if square <= 0:
        return ratio, math.nan, math.nan
    middle = above * below - covariance
    half = math.sqrt(max(middle**2 - square * (above**2 - var_above), 0.0))
    return ratio, float((middle - half) / square), float((middle + half) / square)
