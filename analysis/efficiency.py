"""Efficiency over nodes where Rpeak is known, and the shape of that curve in a few numbers."""

import numpy as np
import xarray as xr

from analysis.attributes import testbed

# From this node count on a curve is checked for being level: the emulated campaign ends here.
PLATEAU = 8


def rpeak(dataset: xr.Dataset) -> float:
    """A node's theoretical peak [flop/s] from its testbed's description; NaN if that does not state
    it."""
    value = testbed(dataset).get("rpeak", {}).get("value")
    return value if isinstance(value, (int, float)) else np.nan


def efficiency(derived: xr.Dataset) -> xr.DataArray:
    """HPL's rate over the nodes' theoretical peak, Rmax / Rpeak, over the dims of the rate.

    `derived` is from `derive.points`. All values are NaN if the testbed's Rpeak is not known.
    """
    return 1e9 * derived.rate / (derived.nodes * rpeak(derived))


def shape(efficiency: xr.DataArray) -> xr.Dataset:
    """`fall` of the efficiency [1] from the fewest to the most nodes, and `spread`, the largest
    difference between any two cases from PLATEAU nodes on, over the dims without nodes. NaN where a
    case is missing."""
    fall = efficiency.isel(nodes=0, drop=True) - efficiency.isel(nodes=-1, drop=True)
    late, spread = efficiency.sel(nodes=efficiency.nodes >= PLATEAU), np.nan * fall
    if late.sizes["nodes"] > 1:
        spread = late.max("nodes", skipna=False) - late.min("nodes", skipna=False)
    return xr.Dataset({"fall": fall, "spread": spread})
