"""A twin of a cluster: a description for SimGrid whose numbers are fitted to the cluster's own
micro-benchmarks.

HPL on several nodes is never read by the fit: it is what the twin is to predict.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import tomlkit
import xarray as xr

from analysis.dataset.derive import slowed
from analysis.dataset.points import in_words, of_trials
from analysis.laws.piecewise import MOST_PIECES, Piece, Value, split
from analysis.statistics.intervals import t_interval
from analysis.subjects import hpl_points
from analysis.subjects.what_if import FREE, IDEAL
from analysis.wording import byte_size, listed, number, percent
from runners.records.record import FalloffError

BYTES = 8  # of a matrix element
# Decided before any fit.
LEAST_SIZES = 4  # of messages
MISFIT = 0.25  # of a mean time from the fitted one
LATENCY_SHARE = 0.05  # of the longest message's time
HALF_WIDTH = 0.10  # of the bandwidth's 95 % interval
# by so much several pairs at once must slow down long messages, before load counts for short ones
LOADED = 0.05


@dataclass(frozen=True)
class FittedLink:
    """A network as its messages show it: `latency` [s], `bandwidth` [B/s] of long messages, the
    pieces of the fitted curve.

    `misfit` is the largest part by which a mean time differs from the fitted one; `sizes` [B] are
    those measured. `load` are the latency's factors by the number of nodes that exchange messages
    at once, empty where long messages show none.
    """

    latency: Value
    bandwidth: Value
    pieces: tuple[Piece, ...]
    misfit: float
    sizes: tuple[int, ...]
    load: Mapping[int, float]


@dataclass(frozen=True)
class Twin:
    """The compute rate of a node [flop/s] with what it is from, the fitted links, and why others
    are not.
    """

    evidence: str
    campaigns: tuple[str, ...]
    rate: Value
    rate_source: str
    links: Mapping[str, FittedLink]
    refused: Mapping[str, str]


def fit(datasets: Sequence[xr.Dataset]) -> Twin:
    """Fit a twin to the micro-benchmarks among the datasets.

    Raises FalloffError where they are of several kinds of evidence or several clusters, lack a
    compute rate, or no network can be fitted.
    """
    evidence = sorted({kind for dataset in datasets for kind in dataset.evidence.values.tolist()})
    if len(evidence) > 1:
        raise FalloffError(
            f"the campaigns mix evidence ({', '.join(evidence)}): name campaigns of one kind"
        )
    # A testbed that extends another is the same cluster; of imported outputs the user says so by
    # naming them.
    recorded = [dataset.falloff.testbed for dataset in datasets if not dataset.falloff.is_imported]
    clusters = dict.fromkeys(testbed.extends or testbed.name for testbed in recorded)
    if len(clusters) > 1:
        several = ", ".join(clusters)
        raise FalloffError(
            f"the campaigns are from several clusters ({several}): name those of one"
        )
    rate, source = _compute_rate(datasets)
    links, refused, times = {}, {}, _times(datasets)
    for network, alone in times[times.pairs == 1].groupby("network", sort=False):
        if not network:
            raise FalloffError(
                "of some messages the network is not known: "
                "import them with --set interconnect=NAME"
            )
        try:
            if alone.settings.nunique() > 1:
                several = "; ".join(alone.settings.unique())
                raise FalloffError(
                    f"its messages differ in more than the size ({several}): name one folder"
                )
            by_size = alone.groupby("bytes").time.apply(list).to_dict()
            links[network] = _link(by_size, _under_load(times[times.network == network]))
        except FalloffError as reason:
            refused[network] = str(reason)
    if not links:
        nothing = "no campaign has messages by size (`falloff run twin_tokens` measures them)"
        reasons = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
        raise FalloffError(f"no network can be fitted. {reasons or nothing}")
    names = tuple(dict.fromkeys(dataset.attrs["campaign"] for dataset in datasets))
    return Twin(evidence[0], names, rate, source, links, refused)


def _points(dataset: xr.Dataset, reading: str) -> xr.Dataset:
    """The valid trials of the design that have this reading, over (trial)."""
    values = dataset[reading].notnull()
    there = values.any([dim for dim in values.dims if dim != "trial"]).values
    return dataset.reset_coords().isel(trial=there).falloff.points


def _compute_rate(datasets: Sequence[xr.Dataset]) -> tuple[Value, str]:
    """A node's DGEMM, the median of all nodes, mean over blocks; else HPL on one node."""
    for reading, what in (("dgemm_rate", "DGEMM, median node"), ("hpl_rate", "HPL on one node")):
        for dataset in datasets:
            trials = _points(dataset, reading)
            if reading == "hpl_rate" and trials.sizes["trial"] and dataset.falloff.is_imported:
                # The best settings, mean over all runs of all networks.
                points = hpl_points.results(dataset).points
                if points.nodes.attrs["long_name"] == "nodes" and 1 in points.nodes:
                    rates = 1e9 * points.rate.sel(nodes=1).values
                    source = f"{what}, import {dataset.attrs['campaign']}"
                    return _mean(rates[np.isfinite(rates)]), source
                continue
            if reading == "hpl_rate":
                trials = trials.isel(trial=np.flatnonzero(trials.nodes.values == 1))
            if trials.sizes["trial"]:
                # On the testbed's own scale of time, as the rates of its links are described.
                rates = 1e9 * trials[reading] * (slowed(trials) if reading == "hpl_rate" else 1)
                rates = rates.median("node") if "node" in rates.dims else rates
                blocks = rates.assign_coords(block=trials.block).groupby("block").mean()
                return _mean(blocks.values), f"{what}, campaign {dataset.attrs['campaign']}"
    raise FalloffError("no campaign has a node's compute rate: add `suspects`, or HPL on one node")


def _mean(values: np.ndarray) -> Value:
    mean, low, high = map(float, t_interval(values))
    return Value(mean, low, high) if math.isfinite(low) else Value(mean, mean, mean)


def _times(datasets: Sequence[xr.Dataset]) -> pd.DataFrame:
    """Times of messages one way [s], a row a block: by `campaign`, `network`, `settings` in words,
    `bytes` and `pairs` at once.

    Of tokens it is half of the median round trip, mean over pairs and runs; each file of OSU and
    IMB is a block.
    """
    rows: list[tuple] = []
    for campaign, dataset in enumerate(datasets):
        tokens, files = (_points(dataset, name) for name in ("token_round_trip", "message_time"))
        time = tokens.token_round_trip.sel(quantile=0.5).mean(["pair", "run"]) / 2
        columns = (tokens.interconnect, tokens.token_bytes, tokens.pairs, time)
        for network, *row in zip(*(column.values.tolist() for column in columns)):
            rows.append((campaign, network, "", *row))
        by_size = files.message_size.values, files.message_time.values
        for levels, sizes, times in zip(of_trials(files), *by_size):
            network = levels.pop("interconnect", "")
            settings = ", ".join(in_words(levels, sorted(levels)))
            rows += [(campaign, network, settings, size, 1, t) for size, t in zip(sizes, times)]
    names = ["campaign", "network", "settings", "bytes", "pairs", "time"]
    table = pd.DataFrame(rows, columns=names)
    return table[table.time > 0].astype({"bytes": int, "pairs": int, "time": float})


def _under_load(times: pd.DataFrame) -> dict[int, float]:
    """The latency's factors by nodes at once, against one pair; empty unless long messages are
    slowed down, too.

    Where a link spaces its messages out, they meet less often in what they share than a benchmark's
    short ones do.
    """
    for _, of_campaign in times.groupby("campaign"):
        means = of_campaign.pivot_table("time", "bytes", "pairs")
        if len(means.columns) > 1 and 1 in means and means.notna().all(axis=None):
            factors = means.div(means[1], axis=0)
            if factors.iloc[-1].max() > 1 + LOADED:
                return {2 * pairs: factor for pairs, factor in factors.iloc[0].items()}
    return {}


def _link(times: Mapping[int, Sequence[float]], load: Mapping[int, float]) -> FittedLink:
    """Fit pieces to times [s] by size [B]; raises FalloffError with the reason where the fit is no
    description.
    """
    sizes = sorted(times)
    if len(sizes) < LEAST_SIZES:
        raise FalloffError(
            f"messages of {len(sizes)} sizes, {LEAST_SIZES} are needed: measure more sizes"
        )
    pieces = split(times)
    fitted = {size: piece.at(size) for piece in pieces for size in piece.sizes}
    misfit = max(abs(float(np.mean(times[size])) / fitted[size] - 1) for size in sizes)
    latency, per_byte = pieces[0].offset, pieces[-1].per_byte
    if min(latency.value, per_byte.value) <= 0 or misfit > MISFIT:
        raise FalloffError(
            f"a line by size, also one of {MOST_PIECES} pieces, misses a mean time by "
            f"{percent(misfit, 0)} ({percent(MISFIT, 0)} is allowed): "
            "is the network shared, or a size measured wrongly?"
        )
    share = max(latency.value, pieces[-1].offset.value) / fitted[sizes[-1]]
    if share > LATENCY_SHARE:
        raise FalloffError(
            f"its longest message, {byte_size(sizes[-1])}, waits {percent(share, 0)} of its time "
            "for the latency: measure longer ones"
        )
    half = (per_byte.high - per_byte.low) / 2 / per_byte.value
    if half > HALF_WIDTH:
        raise FalloffError(
            f"its bandwidth is known to ±{percent(half, 0)} only "
            f"(±{percent(HALF_WIDTH, 0)} is allowed): run more blocks"
        )
    bandwidth = Value(1 / per_byte.value, 1 / per_byte.high, 1 / per_byte.low)
    return FittedLink(latency, bandwidth, tuple(pieces), misfit, tuple(sizes), load)


ASSUMED = "assumed: one rate, whatever the shape; `falloff doctor --rates` measures it"
HEAD = """\
# A twin of a cluster, fitted by `falloff twin` to campaigns {campaigns} ({evidence} evidence).
# low and high are the ends of a 95 % interval over the blocks. HPL on several nodes was not read.
# by_size: from [B], factors of latency and bandwidth; load: nodes at once, factor of the latency.

"""
DESCRIPTION = """\
name = ""
kind = "simulated"
nodes = 0
runners = ["hpl"]
blocks = 1                      # a simulation repeats itself exactly
interconnects = []

[settings]
THRESHOLD = -1.0                # nothing is computed, so nothing can be checked
timeout_s = 1800

[rates]
dgemm_k_half = { value = 0, low = 0, high = 0, unit = "elements", source = "ASSUMED" }
dgemm_mn_half = { value = 0, low = 0, high = 0, unit = "elements", source = "ASSUMED" }
dtrsm_share = { value = 1, low = 1, high = 1, unit = "1", source = "ASSUMED" }
node_byte_s = { value = inf, low = inf, high = inf, unit = "B/s", source = "ASSUMED" }
core_byte_s = { value = inf, low = inf, high = inf, unit = "B/s", source = "ASSUMED" }
strided_s = { value = 0, low = 0, high = 0, unit = "s", source = "ASSUMED" }
"""


def description(
    twin: Twin, name: str, shorts: Mapping[str, str], points: xr.Dataset | None = None
) -> str:
    """The twin as a file of data/testbeds, with a network without cost. With `points`, those of HPL
    over (block, interconnect, nodes), it has twice their nodes, and every campaign of HPL runs so
    there as on the most of them."""
    names = {network: {"short": shorts.get(network, network)} for network in twin.links}
    modelled = {network: _network(link) for network, link in twin.links.items()}
    if IDEAL not in names:  # what is lost without a network
        names[IDEAL] = {"short": "ideal network"}
        modelled[IDEAL] = {
            part: _sourced(Value(*[about["value"]] * 3), about["unit"], about["source"])
            for part, about in FREE.plain().items()
        }
    table = tomlkit.parse(DESCRIPTION.replace("ASSUMED", ASSUMED))
    table |= {"name": name, "nodes": 32, "interconnects": [*names]}
    if points is not None:  # as HPL's own output says
        most = points.isel(nodes=-1).max(["block", "interconnect"])
        matrix_bytes = BYTES * float(most.N) ** 2 / int(most.nodes)
        table |= {
            "nodes": 2 * int(most.nodes),
            "ranks_per_node": int(points.ranks_per_node.max()),
            "matrix_bytes": _rounded(matrix_bytes),
        }
        table["settings"]["NB"] = int(points.NB.max())
    table["rates"]["dgemm_flop_s"] = _sourced(twin.rate, "flop/s", f"fitted: {twin.rate_source}")
    table |= {"networks": names, "network": modelled}
    head = HEAD.format(campaigns=listed(twin.campaigns), evidence=twin.evidence)
    return head + tomlkit.dumps(table)


def _network(link: FittedLink) -> dict[str, Any]:
    sizes = f"{byte_size(link.sizes[0])} to {byte_size(link.sizes[-1])}".replace("\u00a0", " ")
    source = f"fitted: {len(link.sizes)} sizes of message, {sizes}, in {len(link.pieces)} pieces"
    table: dict[str, Any] = {
        "bandwidth": _sourced(link.bandwidth, "B/s", source),
        "latency": _sourced(link.latency, "s", source),
    }
    rows = by_size(link)
    if len(rows) > 1:
        table["by_size"] = rows
    if link.load:
        table["load"] = [[nodes, round(factor, 4)] for nodes, factor in link.load.items()]
    return table


def by_size(link: FittedLink) -> list[list[float]]:
    """For each piece the size from which on it holds [B] and the factors of latency and bandwidth,
    as the simulator can have them.

    An offset below 0 is a burst that an idle link lets pass at once and no latency: the short
    messages' stays. No message is faster than the link.
    """
    per_byte, start, rows = 1 / link.bandwidth.value, 0.0, []
    for before, piece in zip((None, *link.pieces), link.pieces):
        if before:
            start = math.sqrt(max(before.sizes[-1], 1) * piece.sizes[0])
        waits, slower = piece.offset.value / link.latency.value, piece.per_byte.value
        latency = round(waits, 4) if waits > 0 else 1.0
        rows.append([round(start), latency, round(min(1.0, per_byte / max(slower, per_byte)), 4)])
    return rows


def _sourced(value: Value, unit: str, source: str) -> dict[str, Any]:
    ends = {name: _rounded(getattr(value, name)) for name in ("value", "low", "high")}
    return tomlkit.inline_table() | ends | {"unit": unit, "source": source}


def _rounded(number_: float) -> Any:
    """A number with as many digits as are written."""
    return tomlkit.value(f"{number_:.6g}")


def text(twin: Twin) -> str:
    """What was fitted, for a terminal."""
    lines = [f"A node computes {twin.rate.times(1e-9)} Gflop/s ({twin.rate_source})."]
    for network, link in twin.links.items():
        bandwidth, latency = link.bandwidth.times(1e-6), link.latency.times(1e6)
        lines.append(
            f"{network}: {bandwidth} MB/s, {latency} µs; {len(link.sizes)} sizes of message in "
            f"{len(link.pieces)} pieces, at most {percent(link.misfit)} off."
        )
        if link.load:
            nodes, factor = max(link.load.items())
            lines.append(
                f"  On {nodes} nodes at once the latency is {number(factor)} times as long."
            )
    return "\n".join(lines)
