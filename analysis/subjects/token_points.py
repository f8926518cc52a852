"""From token trials to points: the throughput of all pairs, without trials that are impossible on
the path's network.

Two kinds of trial are left out: those whose pairs wrote more than the wires carry, and those whose
tokens took another way than the path describes, according to the byte counters of its hubs,
switches and routers.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import linprog

from analysis.dataset.capacity import between, carriers, way
from analysis.dataset.derive import over_factors
from analysis.dataset.wire import message_wire_bytes
from analysis.statistics.intervals import mean_over
from analysis.subjects.mtu import EXCESS

RUNNER = "token_exchange"
# Control messages that start and end runs also pass beside the way: some 20 KB, a seventh of all
# traffic at the least.
ASTRAY = 0.25
# The machine, not the wires, limits a topology if the wires carry less than the first share of
# their limit while the processors are busy for more than the second share of the time.
LITTLE_CARRIED, NEARLY_BUSY = 0.75, 0.85

Pair = tuple[int, int]  # the nodes of a producer and its consumer


def places(dataset: xr.Dataset) -> dict[tuple[str, float], str]:
    """The planned paths, by topology in the design and rate [bit/s] of their wires."""
    planned, paths = dataset.falloff.design, dataset.falloff.networks
    topology_of = {path: name for name, listed in planned.topologies.items() for path in listed}
    return {(topology_of[path], paths[path].rate_bit_s): path for path in planned.factors["path"]}


def pairs_of(given: Mapping[str, Any], count: int) -> list[Pair]:
    """The first `count` pairs of a token campaign's settings, which list node numbers separated by
    commas."""
    ends = ([int(node) for node in given[role].split(",")] for role in ("producers", "consumers"))
    return list(zip(*ends))[:count]


def sum_limit(path: Mapping[str, Any], pairs: Sequence[Pair]) -> float:
    """The most [bit/s on the wire, one way] that all pairs together send while as much comes back.

    `path` is a table of data/paths.toml. The shares may be uneven: a linear program maximises the
    sum of the pairs' rates, where all traffic over a medium shares that medium's rate. Infinite if
    nothing is shaped.
    """
    # For each pair the media on the way there and on the way back; a hub's wire is on both.
    ways = [
        [{hop.medium: hop.rate for hop in way(path, *ends).hops} for ends in (pair, pair[::-1])]
        for pair in pairs
    ]
    passed = [Counter([*there, *back]) for there, back in ways]
    rates = {medium: rate for there, back in ways for medium, rate in (there | back).items()}
    shaped = [medium for medium, rate in rates.items() if np.isfinite(rate)]
    if not all(any(uses[medium] for medium in shaped) for uses in passed):
        return np.inf
    uses = [[of_pair[medium] for of_pair in passed] for medium in shaped]
    # Rates are in units of the fastest medium, because the solver's tolerances are absolute.
    unit = max(rates[medium] for medium in shaped)
    bounds = [rates[medium] / unit for medium in shaped]
    return float(-linprog(-np.ones(len(pairs)), A_ub=uses, b_ub=bounds).fun * unit)


def token_limit(path: Mapping[str, Any], pairs: Sequence[Pair], token_bytes: Any) -> Any:
    """The most tokens x size [B/s] that all producers write if each token returns; shape of
    `token_bytes`.

    Acknowledgements without data come on top, so this is never reached.
    """
    return sum_limit(path, pairs) / 8 * token_bytes / message_wire_bytes(token_bytes, path["mtu"])


def astray(dataset: xr.Dataset) -> xr.DataArray:
    """Whether the tokens of a trial took another way than described (1) or not (0), over (trial);
    NaN without a reading.

    A place on the way passes more bytes than its tokens, because frames have headers. A place off
    the way passes next to nothing.
    """
    paths, given = dataset.falloff.networks, dataset.falloff.settings
    written = (dataset.token_throughput * given["window_s"]).sum("run").values

    @cache
    def shares(name: str, count: int) -> np.ndarray:
        """Over (place, pair): the share of what a pair exchanges that the place passes; bonded
        wires share evenly.
        """
        ways = [between(paths[name].table, *pair) for pair in pairs_of(given, count)]
        share = 0.5 if paths[name].table.get("bonded") else 1.0
        return share * np.array(
            [[place in way for way in ways] for place in carriers(paths[name].table)]
        )

    strays = np.full(dataset.sizes["trial"], np.nan)
    for trial, (name, pairs) in enumerate(zip(dataset.path.values, dataset.pairs.values)):
        if name not in paths or np.isnan(pairs) or not written[trial].any():
            continue
        tokens = shares(name, int(pairs)) @ (2 * written[trial, : int(pairs)])  # there and back
        passed, on_way = dataset.bytes_through.values[trial, : len(tokens)], tokens > 0
        beside = passed[~on_way].max(initial=0.0) / passed[on_way].min()
        strays[trial] = (passed[on_way] < tokens[on_way]).any() or beside > ASTRAY
    return xr.DataArray(strays, dims="trial")


def points(dataset: xr.Dataset, strays: xr.DataArray) -> xr.Dataset:
    """The points over (block, path, pairs, token_bytes), without the trials that went `astray`.

    `runs` [B/s], over (run, ...) too, is the tokens written by all producers x size over the common
    window. `throughput` [B/s] is the harmonic mean of a trial's runs. A run is NaN if a pair has no
    reading in it. All runs of a trial are NaN if one of them exceeds the wires: `excess` [1] is
    then its ratio to the possible rate, else NaN. `round_trip` [s] is over (quantile, ...), the
    mean over a trial's pairs and runs. `busy` is the busy share of the machine's processor time,
    from the trial's start to its end. `limit` [B/s], over (path, pairs, token_bytes), is what the
    wires carry.

    Raises FalloffError if there is no token trial.
    """
    dataset = dataset.reset_coords()  # else each step carries all of a trial's settings along
    paths, given = dataset.falloff.networks, dataset.falloff.settings
    throughput = dataset.token_throughput.where(strays != 1)
    round_trip = dataset.token_round_trip.where(strays != 1).mean(["pair", "run"])
    whole = throughput.notnull().sum("pair") == dataset.pairs
    runs = _laid_out(dataset, throughput.sum("pair").where(whole), "run")
    levels = {name: runs[name].values for name in ("path", "pairs", "token_bytes")}
    limits = [
        [
            token_limit(paths[path].table, pairs_of(given, int(count)), levels["token_bytes"])
            for count in levels["pairs"]
        ]
        for path in levels["path"]
    ]
    limit = xr.DataArray(np.array(limits), levels, tuple(levels))
    # One exchange of each pair may have begun before the window and still be counted in it.
    begun = runs.pairs * runs.token_bytes / given["window_s"]
    share = (runs / (limit + begun)).max("run")
    is_possible = ~(share > EXCESS)
    runs = runs.where(is_possible)
    working = dataset.host_cpu_time / dataset.wall_time / dataset.falloff.host.get("cpus", np.nan)
    return xr.Dataset(
        {
            "runs": runs,
            "throughput": mean_over(runs, "run", "rate"),
            "limit": limit,
            "busy": over_factors(dataset, runner=RUNNER, busy=working).busy,
            "round_trip": _laid_out(dataset, round_trip, "quantile").where(is_possible),
            "excess": share.where(~is_possible),
        }
    )


def is_host_bound(here: xr.Dataset) -> bool:
    """Whether the machine, not the wires, limits a path; `here` are the points of one path, over
    (block).
    """
    carried = float(mean_over(here.throughput, "block", "rate") / here.limit)
    return carried < LITTLE_CARRIED and float(here.busy.mean()) > NEARLY_BUSY


def _laid_out(dataset: xr.Dataset, values: xr.DataArray, dim: str) -> xr.DataArray:
    """Values over (trial, dim) as an array over (dim, block, *factors), levels in order."""
    labels = values[dim].values
    columns = {f"at {label}": values.sel({dim: label}, drop=True) for label in labels}
    stacked = over_factors(dataset, runner=RUNNER, **columns).to_array(dim)
    return stacked.assign_coords({dim: labels}).sortby(["pairs", "token_bytes"])
