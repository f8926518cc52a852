"""Which mean a quantity has, by its kind: what is paid adds up, a rate is work over it, a ratio has no unit at all.

Costs (s, s/B, instructions) have the arithmetic mean, rates (flop/s, bit/s) the harmonic one, which is the work over
the mean of what it cost, and ratios the geometric one (T. Hoefler and R. Belli, SC'15, rules 3 and 4). A rate over a
bound that does not vary is a rate in another unit.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
import xarray as xr

from analysis.inference.intervals import t_interval

Kind = Literal["cost", "rate", "ratio"]
NAMES: dict[Kind, str] = {"cost": "arithmetic", "rate": "harmonic", "ratio": "geometric"}

# To the scale on which values of the kind add, and back from it.
_SCALES: dict[Kind, tuple[Callable, Callable]] = {
    "cost": (np.positive, np.positive),
    "rate": (np.reciprocal, np.reciprocal),
    "ratio": (np.log, np.exp),
}


def average(values, kind: Kind, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(mean, low, high) over the first axis: the kind's mean, and the t interval on the scale on which values add.

    The interval is NaN from one value, and where it has no end: a rate's costs cannot be told from 0.
    """
    forth, back = _SCALES[kind]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, _, low, high = t_interval(forth(np.asarray(values, float)), confidence)
        if kind == "rate":
            bounded = low > 0
            low, high = np.where(bounded, high, np.nan), np.where(bounded, low, np.nan)
        return back(mean), back(low), back(high)


def mean_over(values: xr.DataArray, dim, kind: Kind, skipna: bool | None = None) -> xr.DataArray:
    """The kind's mean over a dim, several or all (...), in the unit of `values`; NaN is left out unless `skipna` is
    False."""
    return back_from_scale(on_scale(values, kind).mean(dim, skipna=skipna), kind)


def on_scale(values: xr.DataArray, kind: Kind) -> xr.DataArray:
    """The values on the scale on which those of the kind add."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return _SCALES[kind][0](values.astype(float))


def back_from_scale(values: xr.DataArray, kind: Kind) -> xr.DataArray:
    """The inverse of `on_scale`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return _SCALES[kind][1](values)
