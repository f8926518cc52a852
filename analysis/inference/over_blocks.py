"""Means of each kind and 95 % t intervals over the blocks, at every combination of the other dimensions."""

import numpy as np
import xarray as xr

from analysis.inference.averages import Kind, average


def summary(values: xr.DataArray) -> xr.Dataset:
    """Of costs: `mean` (arithmetic), `low`, `high` in the unit of `values` and the number of `blocks`, over all its
    dims but block.

    NaN is left out; without a value the mean is NaN, and from one value the interval.
    """
    return over_blocks(values, "cost")


def rates(values: xr.DataArray) -> xr.Dataset:
    """As `summary`, of rates: `mean` is the harmonic one, the interval that of the work's costs, inverted."""
    return over_blocks(values, "rate")


def ratios(log_ratio: xr.DataArray) -> xr.Dataset:
    """As `summary`, of ratios that are combined as logarithms: `ratio` is their geometric mean."""
    return over_blocks(np.exp(log_ratio), "ratio").rename(mean="ratio")


def over_blocks(values: xr.DataArray, kind: Kind) -> xr.Dataset:
    """As `summary`, of the kind's own mean, for those who learn the kind from the data."""
    mean, low, high, blocks = xr.apply_ufunc(
        _of_one,
        values,
        kwargs={"kind": kind},
        input_core_dims=[["block"]],
        output_core_dims=[[], [], [], []],
        vectorize=True,
        output_dtypes=[float, float, float, int],
    )
    return xr.Dataset({"mean": mean, "low": low, "high": high, "blocks": blocks})


def _of_one(values, kind):
    values = values[np.isfinite(values)]
    if not len(values):
        return np.nan, np.nan, np.nan, 0
    return *average(values, kind), len(values)
