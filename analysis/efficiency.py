"""HPL's rate over the nodes' theoretical peak, where that is known."""

import json

import numpy as np
import xarray as xr


def rpeak(dataset: xr.Dataset) -> float:
    """A node's theoretical peak [flop/s] as its testbed's description gives it, NaN where that does not know it."""
    testbed = json.loads(dataset.attrs["testbed_settings"])
    value = testbed.get("rpeak", {}).get("value")
    return value if isinstance(value, (int, float)) else np.nan


def efficiency(derived: xr.Dataset) -> xr.DataArray:
    """HPL's rate over the nodes' theoretical peak, Rmax / Rpeak, over the dims of the rate.

    `derived` is from `derive.points`; all is NaN where its testbed's Rpeak is not known.
    """
    reached = 1e9 * derived.rate / (derived.nodes * rpeak(derived))
    return reached.rename("efficiency").assign_attrs(units="1", long_name="Rmax / Rpeak")
