"""From the token campaign's trials to its points: throughput of all pairs, and what exceeds the wires."""

import json
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.derive import over_factors
from analysis.inference.averages import mean_over
from analysis.tcp import EXCESS
from analysis.token_wires import pairs_of, token_limit

RUNNER = "token_exchange"


@dataclass(frozen=True)
class Place:
    """A path's place in the design: its `topology`, and the `rate` [bit/s] of its wires."""

    path: str
    topology: str
    rate: float


@dataclass(frozen=True)
class Excess:
    """A trial whose pairs wrote more than the wires carry: `share` is their sum over what is possible."""

    path: str
    pairs: int
    token_bytes: int
    block: int
    share: float


def places(dataset: xr.Dataset) -> tuple[Place, ...]:
    """The places of the paths that were planned, in the design's order."""
    design, described = (json.loads(dataset.attrs[name]) for name in ("design", "interconnects"))
    topology_of = {path: name for name, paths in design["topologies"].items() for path in paths}
    return tuple(
        Place(path, topology_of[path], described[path]["rate_bit_s"]) for path in design["factors"]["path"]
    )


def points(dataset: xr.Dataset, astray: xr.DataArray) -> tuple[xr.Dataset, tuple[Excess, ...]]:
    """The points over (block, path, pairs, token_bytes), and the trials left out because of the wires.

    So are those that are `astray`, over (trial), whose tokens took another way than described.
    `runs` [B/s], over (run, ...) too, is the tokens written by all producers x size over the common window;
    `throughput` [B/s] the harmonic mean of a trial's runs. A run in which a pair has no reading is NaN, and so are all
    runs of a trial of which one exceeds the wires. `round_trip` [s] is over (quantile, ...), the mean over a
    trial's pairs and runs; `busy` the share of its processors' time that the machine was, from the trial's start to
    its end; `limit` [B/s], over (path, pairs, token_bytes), is what the wires carry. Raises FalloffError when
    there is no token trial.
    """
    readings = ("token_throughput", "token_round_trip")
    dataset = dataset.reset_coords()  # else each of the steps below carries all of a trial's settings along
    dataset = dataset.assign({name: dataset[name].where(~astray) for name in readings})
    each = dataset.token_throughput
    whole = each.notnull().sum("pair") == dataset.pairs
    runs = _laid_out(dataset, each.sum("pair").where(whole), "run")
    limit = _limits(dataset, runs)
    # An exchange of each pair may have begun before the window and be counted in it.
    begun = runs.pairs * runs.token_bytes / json.loads(dataset.attrs["settings"])["window_s"]
    share = runs / (limit + begun)
    exceeds = (share > EXCESS).any("run")
    runs = runs.where(~exceeds)
    round_trip = _laid_out(dataset, dataset.token_round_trip.mean(["pair", "run"]), "quantile")
    working = dataset.host_cpu_time / dataset.wall_time / _processors(dataset)
    busy = over_factors(dataset, runner=RUNNER, busy=working).busy
    found = xr.Dataset({"runs": runs, "throughput": mean_over(runs, "run", "rate"), "limit": limit, "busy": busy})
    return found.assign(round_trip=round_trip.where(~exceeds)), _excesses(share.max("run").where(exceeds))


def _processors(dataset: xr.Dataset) -> float:
    """How many processors the machine has; NaN where it is not known."""
    sessions = json.loads(dataset.attrs["provenance"]).get("sessions", [])
    return sessions[-1]["host"]["cpus"] if sessions else np.nan


def _laid_out(dataset: xr.Dataset, values: xr.DataArray, dim: str) -> xr.DataArray:
    """Values over (trial, dim) as an array over (dim, block, *factors), pairs and sizes ascending."""
    labels = values[dim].values
    columns = {f"at {label}": values.sel({dim: label}, drop=True) for label in labels}
    stacked = over_factors(dataset, runner=RUNNER, **columns).to_array(dim)
    return stacked.assign_coords({dim: labels}).sortby(["pairs", "token_bytes"])


def _limits(dataset: xr.Dataset, runs: xr.DataArray) -> xr.DataArray:
    """What the wires let the producers write [B/s], over (path, pairs, token_bytes)."""
    described, settings = (json.loads(dataset.attrs[name]) for name in ("interconnects", "settings"))
    sizes = runs.token_bytes.values
    values = [
        [token_limit(described[path], pairs_of(settings, int(count)), sizes) for count in runs.pairs.values]
        for path in runs.path.values
    ]
    levels = {name: runs[name].values for name in ("path", "pairs", "token_bytes")}
    return xr.DataArray(np.array(values), levels, tuple(levels))


def _excesses(share: xr.DataArray) -> tuple[Excess, ...]:
    """The places of all shares that are there (not NaN)."""
    names = [str(name) for name in share.dims]
    spots = np.argwhere(share.notnull().values)
    levels = [{name: share[name].values[at].item() for name, at in zip(names, spot)} for spot in spots]
    return tuple(Excess(**level, share=float(share.sel(level))) for level in levels)
