"""From token trials to points: the throughput of all pairs, without trials that no network of the path could give.

Left out are trials whose pairs wrote more than the wires carry, and trials whose tokens took another way than the path
describes, as the byte counters of its hubs, switches and routers say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from analysis import attributes
from analysis.capacity import between, carriers
from analysis.derive import over_factors
from analysis.statistics.intervals import mean_over
from analysis.tcp import EXCESS
from analysis.token_wires import Pair, pairs_of, token_limit

RUNNER = "token_exchange"
# Beside the way pass the words that start and end runs: some 20 KB, a seventh of all where there is least traffic.
ASTRAY = 0.25


@dataclass(frozen=True)
class Place:
    """A path's place in the design: its `topology`, and the `rate` [bit/s] of its wires."""

    path: str
    topology: str
    rate: float


@dataclass(frozen=True)
class Excess:
    """A trial whose pairs wrote more than the wires carry: `share` [1] is their sum over what is possible."""

    path: str
    pairs: int
    token_bytes: int
    block: int
    share: float


@dataclass(frozen=True)
class Passage:
    """What the byte counters on the way say of all trials with a reading.

    `least` [1] is over (trial): what a place on the described way passed, at worst, over the tokens that had to pass
    it. It is above 1, as frames have headers. `beside` [1] is over (trial): what a place off the way passed, at worst,
    over the least that one on it did; 0 where all are on it. Both are NaN where there is no reading.
    """

    least: xr.DataArray
    beside: xr.DataArray

    @property
    def trials(self) -> int:
        """How many trials have a reading."""
        return int(self.least.notnull().sum())

    @property
    def astray(self) -> xr.DataArray:
        """Over (trial): whether tokens took another way than the described one."""
        return (self.least < 1) | (self.beside > ASTRAY)


@dataclass(frozen=True)
class _Setup:
    """What a campaign says of its paths and pairs."""

    design: Mapping[str, Any]
    paths: Mapping[str, Any]
    settings: Mapping[str, Any]


def places(dataset: xr.Dataset) -> tuple[Place, ...]:
    """The places of the paths that were planned, in the design's order."""
    setup = _setup(dataset)
    topology_of = {
        path: name for name, paths in setup.design["topologies"].items() for path in paths
    }
    planned = setup.design["factors"]["path"]
    return tuple(
        Place(path, topology_of[path], setup.paths[path]["rate_bit_s"]) for path in planned
    )


def passage(dataset: xr.Dataset) -> Passage:
    """Compare the bytes that every place passed with the ways between the producers and their consumers."""
    setup = _setup(dataset)
    written = (dataset.token_throughput * setup.settings["window_s"]).sum("run").values
    shares: dict[tuple[str, int], np.ndarray] = {}
    least, beside = np.full((2, dataset.sizes["trial"]), np.nan)
    for trial, (name, pairs) in enumerate(zip(dataset.path.values, dataset.pairs.values)):
        if name not in setup.paths or np.isnan(pairs) or not written[trial].any():
            continue
        count = int(pairs)
        if (name, count) not in shares:
            shares[name, count] = _shares(setup.paths[name], pairs_of(setup.settings, count))
        tokens = shares[name, count] @ (2 * written[trial, :count])  # there and back
        passed, on_way = dataset.bytes_through.values[trial, : len(tokens)], tokens > 0
        least[trial] = (passed[on_way] / tokens[on_way]).min()
        beside[trial] = passed[~on_way].max(initial=0.0) / passed[on_way].min()
    return Passage(xr.DataArray(least, dims="trial"), xr.DataArray(beside, dims="trial"))


def points(dataset: xr.Dataset, astray: xr.DataArray) -> tuple[xr.Dataset, tuple[Excess, ...]]:
    """The points over (block, path, pairs, token_bytes), and the trials left out because of the wires.

    So are those that are `astray`, over (trial).
    `runs` [B/s], over (run, ...) too, is the tokens written by all producers x size over the common window;
    `throughput` [B/s] the harmonic mean of a trial's runs. A run in which a pair has no reading is NaN, and so are all
    runs of a trial of which one exceeds the wires. `round_trip` [s] is over (quantile, ...), the mean over a
    trial's pairs and runs; `busy` the share of its processors' time that the machine was, from the trial's start to
    its end; `limit` [B/s], over (path, pairs, token_bytes), is what the wires carry. Raises FalloffError when
    there is no token trial.
    """
    dataset = dataset.reset_coords()  # else each step carries all of a trial's settings along
    readings = ("token_throughput", "token_round_trip")
    dataset = dataset.assign({name: dataset[name].where(~astray) for name in readings})
    setup, each = _setup(dataset), dataset.token_throughput
    whole = each.notnull().sum("pair") == dataset.pairs
    runs = _laid_out(dataset, each.sum("pair").where(whole), "run")
    limit = _limits(setup, runs)
    # An exchange of each pair may have begun before the window and be counted in it.
    begun = runs.pairs * runs.token_bytes / setup.settings["window_s"]
    share = runs / (limit + begun)
    exceeds = (share > EXCESS).any("run")
    runs = runs.where(~exceeds)
    round_trip = _laid_out(dataset, dataset.token_round_trip.mean(["pair", "run"]), "quantile")
    working = dataset.host_cpu_time / dataset.wall_time / attributes.host(dataset).get("cpus", np.nan)
    found = xr.Dataset(
        {
            "runs": runs,
            "throughput": mean_over(runs, "run", "rate"),
            "limit": limit,
            "busy": over_factors(dataset, runner=RUNNER, busy=working).busy,
            "round_trip": round_trip.where(~exceeds),
        }
    )
    return found, _excesses(share.max("run").where(exceeds))


def _setup(dataset: xr.Dataset) -> _Setup:
    described = (attributes.design, attributes.interconnects, attributes.settings)
    return _Setup(*(part(dataset) for part in described))


def _shares(path: Mapping[str, Any], pairs: Sequence[Pair]) -> np.ndarray:
    """Over (place, pair): the share of what a pair exchanges that the place passes; bonded wires share evenly."""
    ways = [between(path, *pair) for pair in pairs]
    share = 0.5 if path.get("bonded") else 1.0
    return np.array([[share * (place in way) for way in ways] for place in carriers(path)])


def _laid_out(dataset: xr.Dataset, values: xr.DataArray, dim: str) -> xr.DataArray:
    """Values over (trial, dim) as an array over (dim, block, *factors), pairs and sizes ascending."""
    labels = values[dim].values
    columns = {f"at {label}": values.sel({dim: label}, drop=True) for label in labels}
    stacked = over_factors(dataset, runner=RUNNER, **columns).to_array(dim)
    return stacked.assign_coords({dim: labels}).sortby(["pairs", "token_bytes"])


def _limits(setup: _Setup, runs: xr.DataArray) -> xr.DataArray:
    """What the wires let the producers write [B/s], over (path, pairs, token_bytes)."""
    sizes = runs.token_bytes.values
    values = [
        [
            token_limit(setup.paths[path], pairs_of(setup.settings, int(count)), sizes)
            for count in runs.pairs.values
        ]
        for path in runs.path.values
    ]
    levels = {name: runs[name].values for name in ("path", "pairs", "token_bytes")}
    return xr.DataArray(np.array(values), levels, tuple(levels))


def _excesses(share: xr.DataArray) -> tuple[Excess, ...]:
    """The places of all shares that are there (not NaN)."""
    names = [str(name) for name in share.dims]
    excesses = []
    for spot in np.argwhere(share.notnull().values):
        level = {name: share[name].values[at].item() for name, at in zip(names, spot)}
        excesses.append(Excess(**level, share=float(share.sel(level))))
    return tuple(excesses)
