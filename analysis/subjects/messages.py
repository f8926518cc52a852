"""Messages by size between two hosts: their times and bandwidths, and the line that the times
follow.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from analysis.dataset import points
from analysis.imports.dataset_sections import MESSAGES, NOTEBOOKS
from analysis.laws.piecewise import FLOOR, Piece, Value, split
from analysis.statistics.intervals import average, over_blocks
from analysis.statistics.reversals import reversals

SHORT = 64  # bytes: messages up to this size tell the latency
LONG = 2**20  # bytes: shorter messages do not tell the bandwidth of a fast link
# The kinds of intervals.
OF_LINE, OF_RUNS = "95 % t interval of the line by size", "95 % t interval over the runs"
DIP = 0.10  # a smaller fall of the bandwidth with the size is not named
MISS = 0.25  # a line by size that misses a mean time by more is not quoted
_NONE = (np.nan,) * 3


@dataclass(frozen=True)
class MessageTimes:
    """The time of messages by size on one network: alpha + beta s in `pieces`, since MPIs change
    their protocol with the size.

    `latency` [s] and `bandwidth` [B/s] are (value, low, high) with 95 % t intervals. `misses` [1]
    is the largest relative distance of the line from a size's mean. `short` [s] is the mean time of
    the shortest messages as measured, `runs` the number of tables.
    """

    pieces: tuple[Piece, ...]
    latency: tuple[float, float, float]
    bandwidth: tuple[float, float, float]
    misses: float
    short: tuple[float, float, float]
    runs: int

    @property
    def follows(self) -> bool:
        """Whether the line may be quoted."""
        return self.misses <= MISS

    @property
    def tells_bandwidth(self) -> bool:
        """Whether the line may be quoted, and its messages are long enough for the bandwidth of a
        fast link.
        """
        return self.follows and self.pieces[-1].sizes[-1] >= LONG and self.bandwidth[0] > 0

    @property
    def kind(self) -> str:
        """The kind of the interval of the latency: that of a line in one piece, else of the
        shortest messages.
        """
        return OF_LINE if self.follows and len(self.pieces) == 1 else OF_RUNS


def tables(dataset: xr.Dataset) -> xr.Dataset:
    """Times [s] and bandwidths [B/s] of messages over (run, series, size); NaN where there is none.

    A run is one table of a file. Series are those of `points.by_series`, with their `network` and
    what its `wire` carries of TCP [bit/s].
    """
    table = points.by_series(dataset, NOTEBOOKS[MESSAGES])
    trials = table.drop_duplicates("trial").set_index("trial")
    table["run"] = table.trial.map(trials.groupby("series").cumcount() + 1)
    wide = table.pivot(index=["run", "series", "size"], columns="quantity", values="value")
    messages = wide.reindex(columns=list(NOTEBOOKS[MESSAGES])).to_xarray()
    messages = messages.rename(message_time="time", message_bandwidth="bandwidth")
    about = table.drop_duplicates("series").set_index("series")
    messages = messages.sel(series=about.index.values)
    of_series = {name: ("series", about[name].values) for name in ("network", "wire")}
    return messages.assign_coords(of_series)


def lines(messages: xr.Dataset) -> dict[str, MessageTimes]:
    """The line by size of each series with times, from messages as `tables` returns them."""
    times = {
        series: messages.time.sel(series=series).dropna("size", how="all").dropna("run", how="all")
        for series in messages.series.values.tolist()
    }
    return {
        series: _line(time.transpose("run", "size")) for series, time in times.items() if time.size
    }


def best_bandwidths(messages: xr.Dataset) -> pd.DataFrame:
    """The highest mean bandwidth [B/s] of each series that has any, with the 95 % t interval over
    its tables: columns `series`, `size` [B], `mean`, `low`, `high`, `runs`. On a network that is
    not known there is no interval."""
    rates = messages.bandwidth.where(messages.bandwidth > 0).rename(run="block")
    means = over_blocks(rates, "rate").rename(blocks="runs")
    for end in ("low", "high"):
        means[end] = means[end].where(means.network != "")
    means = means.isel(series=np.flatnonzero(means["mean"].notnull().any("size")))
    best = means.isel(size=means["mean"].fillna(0).argmax("size"))
    return best.to_dataframe().reset_index()[["series", "size", "mean", "low", "high", "runs"]]


def dips(messages: xr.Dataset) -> pd.DataFrame:
    """Where longer messages are slower: each fall of a series' mean bandwidth by more than a tenth,
    beyond its intervals.

    Columns: `series`, the sizes `start` and `end` [B], the relative `fall`, and the number of
    `runs`.
    """
    rates, rows = messages.bandwidth.where(messages.bandwidth > 0).rename(run="block"), []
    for series in messages.series.values.tolist():
        means = over_blocks(rates.sel(series=series).dropna("size", how="all"), "rate")
        ends = (means[name].values.tolist() for name in ("mean", "low", "high"))
        for fall in reversals(*ends, DIP):
            start, end = means["size"].values[[fall.start, fall.end]]
            rows.append((series, start, end, fall.fall, int(means.blocks.max())))
    return pd.DataFrame(rows, columns=["series", "start", "end", "fall", "runs"])


def _line(time: xr.DataArray) -> MessageTimes:
    """The line of one series' times over (run, size)."""
    size, table = time["size"].values.astype(float), time.values
    table = np.where(table > 0, table, np.nan)
    shortest = table[:, size <= SHORT] if (size <= SHORT).any() else table[:, :1]
    per_table = np.nanmean(shortest, axis=1)
    short = tuple(map(float, average(per_table[np.isfinite(per_table)], "cost")))
    # Runs on networks that are not known may be of several, and have no interval.
    is_known = bool(time.network.item())
    short = short if is_known else (short[0], np.nan, np.nan)
    if len(size) < 2:
        return MessageTimes((), short, _NONE, np.inf, short, len(table))
    times = {at: column[column > 0].tolist() for at, column in zip(size.tolist(), table.T)}
    pieces = tuple(split(times))
    off = np.array(
        [piece.at(at) / np.mean(times[at]) - 1 for piece in pieces for at in piece.sizes]
    )
    # Where the protocol changes, the first piece may be of sizes whose bytes tell little of the
    # latency.
    latency = _ends(pieces[0].offset, is_known) if len(pieces) == 1 else short
    per_byte = _ends(pieces[-1].per_byte, is_known)
    misses = float(np.abs(off).max()) if min(latency[0], per_byte[0]) > 0 else np.inf
    value, low, high = 1 / np.array(per_byte)
    return MessageTimes(pieces, latency, (value, high, low), misses, short, len(table))


def _ends(value: Value, is_known: bool) -> tuple[float, float, float]:
    """A fitted value with its interval, NaN where the points leave none, or one that ends at no
    value above 0.
    """
    is_known = is_known and FLOOR * value.value < value.low < value.high
    return (value.value, value.low, value.high) if is_known else (value.value, np.nan, np.nan)
