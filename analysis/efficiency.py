"""Efficiency over nodes where Rpeak is known, and the shape of that curve in a few numbers."""

import numpy as np
import xarray as xr

from analysis.attributes import testbed

# Nodes from which on it is asked whether a curve is level: the emulated campaign ends there.
PLATEAU = 8


def rpeak(dataset: xr.Dataset) -> float:
    """A node's theoretical peak [flop/s] as its testbed's description gives it, NaN where that does not know it."""
    value = testbed(dataset).get("rpeak", {}).get("value")
    return value if isinstance(value, (int, float)) else np.nan


def efficiency(derived: xr.Dataset) -> xr.DataArray:
    """HPL's rate over the nodes' theoretical peak, Rmax / Rpeak, over the dims of the rate.

    `derived` is from `derive.points`; all is NaN where its testbed's Rpeak is not known.
    """
    return 1e9 * derived.rate / (derived.nodes * rpeak(derived))


def shape(efficiency: xr.DataArray) -> xr.Dataset:
    """`fall` of the efficiency [1] from the least to the most nodes and `spread`, the largest difference of any two cases
    from PLATEAU nodes on, over the dims but nodes; NaN where a case is missing."""
    fall = efficiency.isel(nodes=0, drop=True) - efficiency.isel(nodes=-1, drop=True)
    late, spread = efficiency.sel(nodes=efficiency.nodes >= PLATEAU), np.nan * fall
    if late.sizes["nodes"] > 1:
        spread = late.max("nodes", skipna=False) - late.min("nodes", skipna=False)
    return xr.Dataset({"fall": fall, "spread": spread})
