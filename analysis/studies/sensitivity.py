"""What the model's rates do to the simulated efficiency: each moved alone to the ends of its range."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.derive import at_only_level, points
from analysis.studies.efficiency import efficiency, shape

NOTHING = "none"  # the level of the factor `vary` at which every rate has its own value
SIDES = ("low", "high")
MEANINGS = {
    "rpeak": "theoretical peak",
    "bandwidth": "bandwidth",
    "latency": "latency",
    "dgemm_flop_s": "DGEMM, large matrices",
    "dgemm_k_half": "DGEMM, short inner side",
    "dgemm_mn_half": "DGEMM, short outer side",
    "dtrsm_share": "triangular solve",
    "node_byte_s": "memory, all cores",
    "core_byte_s": "memory, one core",
    "strided_s": "scattered access",
}  # what the names of the testbed's description stand for


@dataclass(frozen=True)
class Sensitivity:
    """The campaign's dataset and all that follows from it.

    `base` is the efficiency [1] over (interconnect, nodes) with every number of the model at its value, and
    `changes` what is added to it, over (parameter, side, interconnect, nodes), when one is at the low or the
    high end of its range; `shape` and `shape_changes` are the same of the numbers of `efficiency.shape`.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    base: xr.DataArray
    changes: xr.DataArray
    shape: xr.Dataset
    shape_changes: xr.Dataset


def analyse(dataset: xr.Dataset) -> Sensitivity:
    """Derive the changes; raises FalloffError when there is no HPL trial or there are several blocks."""
    derived = points(dataset)
    found = efficiency(at_only_level(derived, "block"))
    shapes = shape(found)
    return Sensitivity(
        dataset=dataset,
        points=derived,
        base=found.sel(vary=NOTHING, drop=True),
        changes=changes(found),
        shape=shapes.sel(vary=NOTHING, drop=True),
        shape_changes=shapes.map(changes),
    )


def changes(values: xr.DataArray) -> xr.DataArray:
    """Differences to the value at vary = "none", with dims parameter and side in place of vary.

    Levels are named `<parameter>=low` and `<parameter>=high`; what is missing is NaN.
    """
    levels = [level for level in values.vary.values.tolist() if level != NOTHING]
    parameters = list(dict.fromkeys(level.partition("=")[0] for level in levels))
    names = np.array([[f"{parameter}={side}" for side in SIDES] for parameter in parameters])
    chosen = values.reindex(vary=names.ravel()).sel(vary=xr.DataArray(names, dims=("parameter", "side")))
    found = chosen.drop_vars("vary") - values.sel(vary=NOTHING, drop=True)
    return found.assign_coords(parameter=parameters, side=list(SIDES)).transpose("parameter", "side", ...)


def extent(changes: xr.DataArray) -> xr.Dataset:
    """The largest change down, `low`, and up, `high`, that any one parameter makes alone."""
    sides = ("parameter", "side")
    return xr.Dataset({"low": changes.min(sides).clip(max=0), "high": changes.max(sides).clip(min=0)})


def bracket(changes: xr.DataArray) -> xr.Dataset:
    """`low` and `high`: the sums of every parameter's worst change down and up.

    To first order in the changes, no choice of all parameters within their ranges goes beyond it.
    """
    return xr.Dataset(
        {
            "low": changes.min("side").clip(max=0).sum("parameter"),
            "high": changes.max("side").clip(min=0).sum("parameter"),
        }
    )


def meaning(parameter: str) -> str:
    """What a name of the testbed's description stands for; itself where it has no words yet."""
    return MEANINGS.get(parameter, parameter)


def ranked(changes: xr.DataArray) -> list[str]:
    """The parameters, that which moves most first; `changes` is over (parameter, side)."""
    swing = changes.max("side").clip(min=0) - changes.min("side").clip(max=0)
    return swing.sortby(-swing).parameter.values.tolist()


def is_assumed(described: Mapping, interconnect: str, parameter: str) -> bool:
    """Whether a parameter of the testbed's description is assumed there, as its source says."""
    entries = {**described["rates"], **described["network"][interconnect]}
    return entries[parameter]["source"].startswith("assumed")
