"""Means and 95 % t intervals over the blocks, at every combination of the other dimensions."""

import numpy as np
import xarray as xr

from analysis.inference.intervals import t_interval


def summary(values: xr.DataArray) -> xr.Dataset:
    """`mean`, `low`, `high` in the unit of `values` and the number of `blocks`, over all its dims but block.

    NaN is left out; without a value the mean is NaN, and from one value the interval.
    """
    mean, low, high, blocks = xr.apply_ufunc(
        _summary_of_one,
        values,
        input_core_dims=[["block"]],
        output_core_dims=[[], [], [], []],
        vectorize=True,
        output_dtypes=[float, float, float, int],
    )
    return xr.Dataset({"mean": mean, "low": low, "high": high, "blocks": blocks})


def ratios(log_ratio: xr.DataArray) -> xr.Dataset:
    """As `summary`, of ratios that are combined as logarithms: `ratio` is their geometric mean."""
    found = summary(log_ratio)
    return np.exp(found[["mean", "low", "high"]]).rename(mean="ratio").assign(blocks=found.blocks)


def _summary_of_one(values):
    values = values[np.isfinite(values)]
    if not len(values):
        return np.nan, np.nan, np.nan, 0
    mean, _, low, high = t_interval(values)
    return mean, low, high, len(values)
