"""Which hubs, switches and routers passed the tokens on: their counters beside the paths' description."""

import json
from collections.abc import Mapping, Sequence
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
    parts: dict[tuple[str, int], np.ndarray] = {}
    for trial, (name, pairs) in enumerate(zip(dataset.path.values, dataset.pairs.values)):
        if name in paths and np.isfinite(pairs) and written[trial].any():
            count = int(pairs)
            if (name, count) not in parts:
                parts[name, count] = _parts(paths[name], pairs_of(settings, count))
            tokens = parts[name, count] @ (2 * written[trial, :count])  # there and back
            passed, on_way = counted[trial, : len(tokens)], tokens > 0
            least[trial] = (passed[on_way] / tokens[on_way]).min()
            beside[trial] = passed[~on_way].max(initial=0.0) / passed[on_way].min()
    return Passage(xr.DataArray(least, dims="trial"), xr.DataArray(beside, dims="trial"))


def _parts(path: Mapping[str, Any], pairs: Sequence[Pair]) -> np.ndarray:
    """Over (carrier, pair): the part of what a pair exchanges that the carrier passes; bonded wires share evenly."""
    ways = [between(path, *pair) for pair in pairs]
    part = 0.5 if path.get("bonded") else 1.0
    return np.array([[part * (place in way) for way in ways] for place in carriers(path)])
