"""Means and Student's t intervals over a few independent blocks, by the kind of quantity.

Costs (s, s/B, instructions) have the arithmetic mean. Rates (flop/s, bit/s) have the harmonic mean,
which is the work over the mean of its cost. Ratios have the geometric mean (T. Hoefler and R.
Belli, SC'15, rules 3 and 4). A rate over a bound that does not vary is a rate in another unit.
Intervals are made on the scale on which values of the kind add.

Blocks of one session share its day: what else the machine did, its heat, its boot. From
LEAST_SESSIONS sessions on, the unit is therefore the mean of a session's blocks. With fewer
sessions it is the block, and days are not in the interval.
"""

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy.special import stdtrit  # Student's t; scipy.stats takes half a second to import

Kind = Literal["cost", "rate", "ratio"]
LEAST_SESSIONS = 3  # with these, sessions and no longer blocks are the units of an interval
BLOCK = "block"
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


def are_units(sessions: ArrayLike | None) -> bool:
    """Whether sessions are the units, from the session of each block; None: not recorded."""
    return sessions is not None and len(np.unique(sessions)) >= LEAST_SESSIONS


def of_sessions(values: ArrayLike, sessions: ArrayLike) -> np.ndarray:
    """The mean of each session's blocks, shape (..., sessions), from values (..., blocks) on the
    scale on which they add, and each block's session; NaN is left out."""
    values, sessions = np.asarray(values, float), np.asarray(sessions)
    is_in = (sessions == np.unique(sessions)[:, None]) & np.isfinite(values)[..., None, :]
    sums = np.where(is_in, values[..., None, :], 0.0).sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return sums / is_in.sum(axis=-1)


def unit_in_words(sessions: ArrayLike | None) -> str:
    """What the units are, such as "session of 3 blocks", from the session of each block."""
    if sessions is None or not are_units(sessions):
        return BLOCK
    each = np.unique(sessions, return_counts=True)[1]
    least, most = int(each.min()), int(each.max())
    span = f"{most}" if least == most else f"{least} to {most}"
    return "session of one block" if most == 1 else f"session of {span} blocks"


def units(values: xr.DataArray, kind: Kind) -> xr.DataArray:
    """The values of the units of repetition over the dim block: those of the blocks, or of
    LEAST_SESSIONS sessions and more, if the coordinate `session` has them, the kind's means."""
    sessions = values.coords.get("session")
    if sessions is None or "block" not in values.dims or not are_units(sessions):
        return values
    on = on_scale(values.drop_vars("session"), kind)
    means = xr.apply_ufunc(
        of_sessions,
        on,
        kwargs={"sessions": sessions.values},
        input_core_dims=[["block"]],
        output_core_dims=[["unit"]],
        exclude_dims={"block"},
    )
    back = back_from_scale(means, kind).rename(unit="block").transpose(*values.dims)
    return back.assign_coords(block=np.unique(sessions)).assign_attrs(values.attrs)


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

    The interval is over the `units`. NaN is left out; without a value the mean is NaN, and from one
    value the interval.
    """
    mean, low, high = xr.apply_ufunc(
        _average_of_known,
        units(values, kind),
        kwargs={"kind": kind, "confidence": confidence},
        input_core_dims=[["block"]],
        output_core_dims=[[], [], []],
        vectorize=True,
        output_dtypes=[float, float, float],
    )
    blocks = values.notnull().sum("block")
    return xr.Dataset({"mean": mean, "low": low, "high": high, "blocks": blocks})


def _average_of_known(values: ArrayLike, kind: Kind, confidence: float) -> tuple:
    values = finite(values)
    if not len(values):
        return np.nan, np.nan, np.nan
    return average(values, kind, confidence)


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
