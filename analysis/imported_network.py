"""Analyse what others measured between two hosts: messages by size (OSU, IMB), and streams and
round trips (iperf, netperf, ping, sockperf)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from analysis import attributes
from analysis.attributes import names_by_rate
from analysis.fitting.pieces import FLOOR, Piece, Value, split
from analysis.points import in_words, of_trials, varying
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


def series_of(dataset: xr.Dataset) -> pd.DataFrame:
    """The series of each trial, which is its point: columns `series`, its name, `network`, `others`, the settings in
    words that differ besides the network, and `mtu` [B] as far as it was set."""
    settings = of_trials(dataset)
    chosen = [name for name in varying(settings) if name != "interconnect"]
    names = names_by_rate(dataset, dataset.interconnect.values.tolist())
    rows = []
    for levels in settings:
        network, others = levels.get("interconnect", ""), ", ".join(in_words(levels, chosen))
        name = f"{names[network]} ({others})" if others else names[network]
        rows.append((name, network, others, levels.get("mtu", np.nan)))
    return pd.DataFrame(rows, columns=["series", "network", "others", "mtu"])


def messages(dataset: xr.Dataset) -> xr.Dataset:
    """Times [s] and bandwidths [B/s] of messages over (run, series, size); NaN where there is none.

    A run is one table of a file; a series is a point but for the size. Raises FalloffError if there is no table.
    """
    known = (dataset.message_time.notnull() | dataset.message_bandwidth.notnull()).any("message")
    if not known.any():
        raise FalloffError(f"{dataset.attrs['campaign']} has no message by size")
    tables = dataset.isel(trial=np.flatnonzero(known))
    of = series_of(tables)
    columns = {"message_size": "size", "message_time": "time", "message_bandwidth": "bandwidth"}
    table = tables.reset_coords()[[*columns]].to_dataframe().rename(columns=columns)
    table = table.join(of.assign(run=of.groupby("series").cumcount() + 1), on="trial")
    table = table.dropna(subset=["time", "bandwidth"], how="all")
    found = table.set_index(["run", "series", "size"])[["time", "bandwidth"]].to_xarray()
    about = of.drop_duplicates("series").set_index("series").loc[found.series.values]
    found = found.assign_coords({name: ("series", about[name].to_numpy()) for name in about})
    found["size"].attrs = {"units": "B", "long_name": "message"}
    found.time.attrs = {"units": "s", "long_name": "time of a message, one way"}
    found.bandwidth.attrs = {"units": "B/s", "long_name": "bandwidth"}
    found = found.assign_coords(evidence=str(dataset.evidence.values[0]))
    found = found.assign_attrs({**dataset.attrs, "repeats": "unordered"})
    place = {name: rank for rank, name in enumerate(names_by_rate(dataset, about.network))}
    return found.isel(series=np.argsort([place[name] for name in about.network], kind="stable"))


def lines(messages: xr.Dataset) -> dict[str, Line]:
    """The line by size of each series with times, from messages as `messages` returns them."""
    found = {}
    for series in messages.series.values.tolist():
        of = messages.time.sel(series=series).dropna("size", how="all").dropna("run", how="all")
        if of.size:
            found[series] = _line(of.transpose("run", "size"))
    return found


def _mean(values: np.ndarray, kind: str, network: str) -> tuple[float, float, float]:
    """The mean with its 95 % t interval; runs on networks that are not known may be of several and have none."""
    mean, low, high = map(float, average(values, kind))
    return (mean, low, high) if network else (mean, np.nan, np.nan)


def _line(time: xr.DataArray) -> Line:
    """The line of one series' times over (run, size)."""
    network = time.network.item()
    size, table = time["size"].values.astype(float), time.values
    table = np.where(table > 0, table, np.nan)
    shortest = table[:, size <= SHORT] if (size <= SHORT).any() else table[:, :1]
    per_table = np.nanmean(shortest, axis=1)
    short = _mean(per_table[np.isfinite(per_table)], "cost", network)
    if len(size) < 2:
        return Line((), short, _NONE, np.inf, np.nan, short, len(table))
    times = {at: each[each > 0].tolist() for at, each in zip(size.tolist(), table.T)}
    pieces = tuple(split(times))
    off = np.array(
        [piece.at(at) / np.mean(times[at]) - 1 for piece in pieces for at in piece.sizes]
    )
    worst = int(np.argmax(np.abs(off)))
    # Where the protocol changes, the first piece may be of sizes whose bytes tell little of the latency.
    latency = _ends(pieces[0].offset) if len(pieces) == 1 else short
    per_byte = _ends(pieces[-1].per_byte)
    misses = float(abs(off[worst])) if min(latency[0], per_byte[0]) > 0 else np.inf
    value, low, high = 1 / np.array(per_byte)
    bandwidth = (value, high, low)
    if not network:  # runs on networks that are not known may be of several
        latency, bandwidth = (latency[0], np.nan, np.nan), (value, np.nan, np.nan)
    return Line(pieces, latency, bandwidth, misses, float(size[worst]), short, len(table))


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
    """The highest mean bandwidth [B/s] of each series and its size [B], with the 95 % t interval
    over the runs: columns `series`, `size`, `mean`, `low`, `high`, `runs`."""
    rows = []
    for series in messages.series.values.tolist():
        of = messages.bandwidth.sel(series=series)
        cost = (1 / of.where(of > 0)).mean("run")
        if cost.notnull().any():
            size = cost["size"].values[np.nanargmin(cost.values)]
            values = of.sel(size=size).values
            values = values[np.isfinite(values)]
            ends = _mean(values, "rate", of.network.item())
            rows.append((series, float(size), *ends, len(values)))
    return pd.DataFrame(rows, columns=["series", "size", "mean", "low", "high", "runs"])


def values(dataset: xr.Dataset) -> pd.DataFrame:
    """Every single value between two hosts: a row each with `quantity`, `what`, `unit`, the columns of `series_of`,
    `file` and `value`; raises FalloffError if there is none."""
    known = [name for name in RATES | TIMES if np.isfinite(dataset[name].values).any()]
    if not known:
        raise FalloffError(f"{dataset.attrs['campaign']} has no rate or time between two hosts")
    has = np.isfinite(dataset[known].to_array()).any("variable")
    dataset = dataset.isel(trial=np.flatnonzero(has))
    of = series_of(dataset).assign(file=dataset.file.values)
    parts = [
        of.assign(
            quantity=name, what=what, unit=dataset[name].attrs["units"], value=dataset[name].values
        )
        for name, what in (RATES | TIMES).items()
    ]
    return pd.concat(parts, ignore_index=True).dropna(subset="value").reset_index(drop=True)


def means(values: pd.DataFrame) -> pd.DataFrame:
    """The mean of each quantity of each series with its 95 % t interval over the files: harmonic of rates, arithmetic of
    times; slower networks first."""
    rows = []
    for (name, series), own in values.groupby(["quantity", "series"], sort=False):
        first = own.iloc[0]
        ends = _mean(own.value.values, "cost" if name in TIMES else "rate", first.network)
        rows.append((name, first.what, first.unit, series, first.network, *ends, len(own)))
    columns = ["quantity", "what", "unit", "series", "network", "mean", "low", "high", "runs"]
    return pd.DataFrame(rows, columns=columns)


def limits(dataset: xr.Dataset, values: pd.DataFrame | None = None) -> dict[str, float]:
    """The most TCP payload [bit/s] that each series' wire carries in full frames, as far as its
    rate is known and it is an Ethernet that carries TCP; of messages, or of these `values`."""
    if values is None:
        values = dataset[["network", "mtu"]].to_dataframe().reset_index()
    described, found = attributes.interconnects(dataset), {}
    for row in values.drop_duplicates("series").itertuples():
        about = described.get(row.network, {})
        if "rate_bit_s" in about and not row.network.endswith(_NOT_TCP):
            mtu = row.mtu if np.isfinite(row.mtu) else about.get("mtu", 1500)
            found[row.series] = wire_limit(about["rate_bit_s"], mtu)
    return found
