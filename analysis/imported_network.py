"""Analyse what others measured between two hosts: messages by size (OSU, IMB), and streams and
round trips (iperf, netperf, ping, sockperf)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from analysis import attributes
from analysis.fitting.pieces import FLOOR, Piece, Value, split
from analysis.imported_hpl import networks
from analysis.statistics.intervals import average
from analysis.wire import wire_limit
from runners.record import FalloffError

# Single values between two hosts, the best known first: what each is called, and the kind of its mean.
RATES = {
    "goodput": "TCP payload",
    "goodput_reverse": "TCP payload, reverse",
    "transaction_rate": "transactions",
    "ping_pong_bandwidth_mean": "ping-pong bandwidth",
}
TIMES = {
    "round_trip_time": "round trip",
    "half_round_trip": "half a round trip",
    "ping_pong_latency_mean": "ping-pong latency",
}
_NOT_TCP = ("infiniband", "roce", "rdma", "iwarp")  # how such networks' names end
SHORT = 64  # bytes: messages up to this size tell the latency
BIG = (
    2**20
)  # bytes: the longest message has to be at least so long to tell the bandwidth of a fast link
_NONE = (np.nan,) * 3
MISS = 0.25  # a line by size that misses a mean time by more is not quoted


@dataclass(frozen=True)
class Line:
    """The time of messages by size on one network: alpha + beta s in `pieces`, since MPIs change their protocol with the size.

    `latency` [s] and `bandwidth` [B/s] are (value, low, high) with 95 % t intervals. `misses` [1] is
    the largest relative distance of the line from a size's mean, at `worst` [B]. `short` [s] is the
    mean time of the shortest messages as measured, `runs` the number of tables.
    """

    pieces: tuple[Piece, ...]
    latency: tuple[float, float, float]
    bandwidth: tuple[float, float, float]
    misses: float
    worst: float
    short: tuple[float, float, float]
    runs: int

    @property
    def follows(self) -> bool:
        """Whether the line may be quoted."""
        return self.misses <= MISS


def messages(dataset: xr.Dataset) -> xr.Dataset:
    """Times [s] and bandwidths [B/s] of messages over (run, interconnect, pair, size); NaN where
    there is none.

    A run is one table of a file; a pair is two hosts as the paths name them. Raises FalloffError if
    there is no table.
    """
    rows = []
    of = dataset[["message_size", "message_time", "message_bandwidth"]]
    for trial in range(dataset.sizes["trial"]):
        one = dataset.isel(trial=trial)
        for place in np.flatnonzero(of.message_size.values[trial] >= 0):
            values = [of[name].values[trial][place] for name in of]
            rows.append((one.trial_id.item(), one.interconnect.item(), one.path.item(), *values))
    table = pd.DataFrame(
        rows, columns=["trial", "interconnect", "pair", "size", "time", "bandwidth"]
    )
    table = table.dropna(subset=["time", "bandwidth"], how="all")
    if table.empty:
        raise FalloffError(f"{dataset.attrs['campaign']} has no message by size")
    table["run"] = 0
    for _, own in table.groupby(["interconnect", "pair"]):
        table.loc[own.index, "run"] = 1 + pd.factorize(own.trial)[0]
    found = (
        table.drop(columns="trial").set_index(["run", "interconnect", "pair", "size"]).to_xarray()
    )
    found["size"].attrs = {"units": "B", "long_name": "message"}
    found.time.attrs = {"units": "s", "long_name": "time of a message, one way"}
    found.bandwidth.attrs = {"units": "B/s", "long_name": "bandwidth"}
    about = {**dataset.attrs, "repeats": "unordered"}
    return found.assign_coords(evidence=str(dataset.evidence.values[0])).assign_attrs(about)


def lines(messages: xr.Dataset) -> dict[str, Line]:
    """The line by size of each network with times, from messages as `messages` returns them."""
    found = {}
    for network in networks(messages, messages.interconnect.values.tolist()):
        of = (
            messages.time.sel(interconnect=network)
            .stack(table=["run", "pair"])
            .dropna("size", how="all")
        )
        of = of.dropna("table", how="all")
        if of.size and of.notnull().any():
            found[network] = _line(of.transpose("table", "size"))
    return found


def _line(time: xr.DataArray) -> Line:
    """The line of one network's times over (table, size)."""
    size, table = time["size"].values.astype(float), time.values
    table = np.where(table > 0, table, np.nan)
    shortest = table[:, size <= SHORT] if (size <= SHORT).any() else table[:, :1]
    per_table = np.nanmean(shortest, axis=1)
    short = tuple(float(end) for end in average(per_table[np.isfinite(per_table)], "cost"))
    if len(size) < 2:
        return Line((), short, _NONE, np.inf, np.nan, short, len(table))
    times = {at: each[each > 0].tolist() for at, each in zip(size.tolist(), table.T)}
    pieces = tuple(split(times))
    off = np.array(
        [piece.at(at) / np.mean(times[at]) - 1 for piece in pieces for at in piece.sizes]
    )
    worst = int(np.argmax(np.abs(off)))
    latency, per_byte = _ends(pieces[0].offset), _ends(pieces[-1].per_byte)
    misses = float(abs(off[worst])) if min(latency[0], per_byte[0]) > 0 else np.inf
    value, low, high = 1 / np.array(per_byte)
    return Line(pieces, latency, (value, high, low), misses, float(size[worst]), short, len(table))


def _ends(value: Value) -> tuple[float, float, float]:
    """A fitted value with its interval, NaN where the points leave none, or one that ends at no value above 0."""
    is_known = FLOOR * value.value < value.low < value.high
    return (value.value, value.low, value.high) if is_known else (value.value, np.nan, np.nan)


def time_at(line: Line, sizes: np.ndarray) -> np.ndarray:
    """The line's time [s] of messages of these sizes [B]."""
    return np.array(
        [
            next((piece for piece in line.pieces if at <= piece.sizes[-1]), line.pieces[-1]).at(at)
            for at in sizes
        ]
    )


def message_rates(messages: xr.Dataset) -> xr.DataArray:
    """The bandwidths [B/s] of messages; where only times are known, the size over the time."""
    return messages.bandwidth.fillna(messages["size"] / messages.time)


def best_bandwidths(messages: xr.Dataset) -> pd.DataFrame:
    """The highest mean bandwidth [B/s] of each network and its size [B], with the 95 % t interval
    over the runs: columns `network`, `size`, `mean`, `low`, `high`, `runs`."""
    rows = []
    for network in networks(messages, messages.interconnect.values.tolist()):
        of = messages.bandwidth.sel(interconnect=network).stack(table=["run", "pair"])
        cost = (1 / of.where(of > 0)).mean("table")
        if cost.notnull().any():
            size = cost["size"].values[np.nanargmin(cost.values)]
            values = of.sel(size=size).values
            values = values[np.isfinite(values)]
            ends = (float(end) for end in average(values, "rate"))
            rows.append((network, float(size), *ends, len(values)))
    return pd.DataFrame(rows, columns=["network", "size", "mean", "low", "high", "runs"])


def values(dataset: xr.Dataset) -> pd.DataFrame:
    """Every single value between two hosts: a row each with `quantity`, `what`, `unit`, `network`,
    `pair`, `file` and `value`; raises FalloffError if there is none."""
    parts = []
    for name, what in (RATES | TIMES).items():
        of = dataset[name]
        there = np.flatnonzero(np.isfinite(of.values))
        one = dataset.isel(trial=there)
        streams = one.streams.values if "streams" in one else np.full(len(there), np.nan)
        parts.append(
            pd.DataFrame(
                {
                    "quantity": name,
                    "what": what,
                    "unit": of.attrs["units"],
                    "network": one.interconnect.values,
                    "pair": one.path.values,
                    "streams": streams,
                    "file": one.file.values,
                    "value": of.values[there],
                }
            )
        )
    table = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    if table.empty:
        raise FalloffError(f"{dataset.attrs['campaign']} has no rate or time between two hosts")
    return table


def means(values: pd.DataFrame) -> pd.DataFrame:
    """The mean of each quantity by network with its 95 % t interval over the files: harmonic of rates, arithmetic of times."""
    rows = []
    for (name, network), own in values.groupby(["quantity", "network"], sort=False):
        ends = (
            float(end) for end in average(own.value.values, "cost" if name in TIMES else "rate")
        )
        rows.append((name, own.what.iloc[0], own.unit.iloc[0], network, *ends, len(own)))
    columns = ["quantity", "what", "unit", "network", "mean", "low", "high", "runs"]
    return pd.DataFrame(rows, columns=columns)


def limits(dataset: xr.Dataset | xr.DataArray) -> dict[str, float]:
    """The most TCP payload [bit/s] that each network's wire carries in full frames, as far as its
    rate is known and it is an Ethernet that carries TCP."""
    found = {}
    for name, each in attributes.interconnects(dataset).items():
        if "rate_bit_s" in each and not name.endswith(_NOT_TCP):
            found[name] = wire_limit(each["rate_bit_s"], _mtu(dataset, name, each))
    return found


def _mtu(dataset: xr.Dataset | xr.DataArray, network: str, described: Mapping) -> float:
    """The MTU [B] that the files were imported with, else that of the network's description."""
    known = np.array([])
    if "mtu" in dataset.coords and "interconnect" in dataset.coords:
        known = dataset.mtu.values[dataset.interconnect.values == network]
    return float(known[0]) if known.size and np.isfinite(known[0]) else described.get("mtu", 1500)
