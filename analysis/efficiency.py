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
    reached = 1e9 * derived.rate / (derived.nodes * rpeak(derived))
    return reached.rename("efficiency").assign_attrs(units="1", long_name="Rmax / Rpeak")


def shape(efficiency: xr.DataArray) -> xr.Dataset:
    """The curve over dim nodes in numbers, over the other dims; all are differences of efficiency [1].

    `fall` is from the least to the most nodes, `early_fall` from the least to PLATEAU, `late_fall` from there to the
    most; `spread` is the largest difference of any two cases from PLATEAU on. NaN where a case is missing.
    """
    least, most = efficiency.isel(nodes=0, drop=True), efficiency.isel(nodes=-1, drop=True)
    middle = efficiency.reindex(nodes=[PLATEAU]).isel(nodes=0, drop=True)
    late = efficiency.sel(nodes=efficiency.nodes >= PLATEAU)
    spread = np.nan * least
    if late.sizes["nodes"] > 1:
        spread = late.max("nodes", skipna=False) - late.min("nodes", skipna=False)
    falls = {"fall": least - most, "early_fall": least - middle, "late_fall": middle - most}
    return xr.Dataset({**falls, "spread": spread})
