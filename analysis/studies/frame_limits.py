"""The largest frame that each path carries, idle and under load, each way, and why larger ones fail."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from analysis.derive import over_factors
from analysis.wire import ETHERNET_HEADER

WAYS = {"forward": "", "reverse": "_reverse"}  # a way's ending of the readings' names
SIZES = {"payload": "payload", "mtu": "mtu", "frame": "bytes_largest"}  # the map's columns and the readings' names


@dataclass(frozen=True)
class FrameLimits:
    """The campaign's dataset and its map.

    `map` has a row for each path, load and way: `payload`, `mtu` and `frame` [B] (the least that a block found,
    NaN without any), `fault` (what happens to larger ones; several are joined by "or"), `blocks` with a reading,
    `alike` whether they agree, and `expected` [B], the largest frame by the path's description.
    """

    dataset: xr.Dataset
    map: pd.DataFrame


def analyse(dataset: xr.Dataset) -> FrameLimits:
    """Lay the limits out; raises FalloffError when there is no frame_limit trial."""
    names = [f"frame_{name}{ending}" for name in (*SIZES.values(), "fault") for ending in WAYS.values()]
    found = over_factors(dataset, "frame_limit", **{name: dataset[name] for name in names})
    described = json.loads(dataset.attrs["interconnects"])
    hosts = json.loads(dataset.attrs["settings"])["mtu"]
    rows = [
        {
            "path": path,
            "load": bool(load),
            "way": way,
            **_limit(found.sel(path=path, load=load), ending),
            "expected": least_mtu(described[path], hosts) + ETHERNET_HEADER,
        }
        for path in found["path"].values
        for load in found["load"].values
        for way, ending in WAYS.items()
    ]
    return FrameLimits(dataset, pd.DataFrame(rows))


def least_mtu(path: Mapping[str, Any], hosts: int) -> int:
    """The least MTU [B] on a path of data/paths.toml, that of the `hosts` included."""
    devices = {**path.get("switches", {}), **path.get("routers", {})}
    return min([hosts, *devices.values(), *(link["mtu"] for link in path["links"] if "mtu" in link)])


def _limit(blocks: xr.Dataset, ending: str) -> dict:
    """One way's limit, from every block that found one."""
    found = blocks.isel(block=blocks[f"frame_payload{ending}"].notnull().values)
    faults = sorted(set(found[f"frame_fault{ending}"].values.tolist()))
    sizes = {column: found[f"frame_{name}{ending}"].values for column, name in SIZES.items()}
    return {
        **{column: float(values.min()) if values.size else np.nan for column, values in sizes.items()},
        "fault": " or ".join(faults),
        "blocks": found.sizes["block"],
        "alike": len({*sizes["payload"]}) <= 1 and len(faults) <= 1,
    }
