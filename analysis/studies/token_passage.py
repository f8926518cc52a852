"""Which hubs, switches and routers passed the tokens on: their counters beside the paths' description."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from analysis.capacity import between, carriers
from analysis.token_wires import Pair, pairs_of

# Beside the way pass the words that start and end runs: some 20 KB, a seventh of all where there is least traffic.
ASTRAY = 0.25


@dataclass(frozen=True)
class Passage:
    """What the counters of all trials with a reading say.

    `least` is over (trial) what a place on the described way passed, at worst, over the tokens that had to pass it:
    above 1, as frames have headers. `beside` is over (trial) what a place off the way passed, at worst, over the
    least that one on it did; 0 where all are on it. Both are NaN where there is no reading.
    """

    least: xr.DataArray
    beside: xr.DataArray

    @property
    def astray(self) -> xr.DataArray:
        """Over (trial): whether tokens took another way than the described one."""
        return (self.least < 1) | (self.beside > ASTRAY)


def passage(dataset: xr.Dataset) -> Passage:
    """Compare the bytes that every place passed with the ways between the producers and their consumers."""
    paths, settings = (json.loads(dataset.attrs[name]) for name in ("interconnects", "settings"))
    least, beside = np.full((2, dataset.sizes["trial"]), np.nan)
    written = (dataset.token_throughput * settings["window_s"]).sum("run").values  # B, over (trial, pair)
    counted = dataset.bytes_through.values
    for trial, (name, pairs) in enumerate(zip(dataset.path.values, dataset.pairs.values)):
        if name in paths and np.isfinite(pairs) and written[trial].any():
            asked = pairs_of(settings, int(pairs))
            tokens = _to_pass(paths[name], dict(zip(asked, 2 * written[trial])))  # there and back
            passed, on_way = counted[trial, : len(tokens)], tokens > 0
            least[trial] = (passed[on_way] / tokens[on_way]).min()
            beside[trial] = passed[~on_way].max(initial=0.0) / passed[on_way].min()
    return Passage(xr.DataArray(least, dims="trial"), xr.DataArray(beside, dims="trial"))


def _to_pass(path: Mapping[str, Any], exchanged: Mapping[Pair, float]) -> np.ndarray:
    """What each carrier of a path has to pass [B] when pairs exchange so many bytes; bonded wires share evenly."""
    places = carriers(path)
    total = np.zeros(len(places))
    for pair, size in exchanged.items():
        on_way = between(path, *pair)
        total += [size / (2 if path.get("bonded") else 1) if place in on_way else 0.0 for place in places]
    return total
