"""Messages by size between two hosts: their times and bandwidths, and the line that the times
follow.
"""

from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

from analysis.dataset import measured, points
from analysis.imports.dataset_sections import MESSAGES, NOTEBOOKS
from analysis.laws.piecewise import FLOOR, Value, split
from analysis.statements import drawing, exhibit, style
from analysis.statistics.intervals import average, over_blocks
from analysis.statistics.reversals import reversals
from analysis.wording import byte_size

SHORT = 64  # bytes: messages up to this size tell the latency
LONG = 2**20  # bytes: shorter messages do not tell the bandwidth of a fast link
# The kinds of intervals.
OF_LINE, OF_RUNS = "95 % t interval of the line by size", "95 % t interval over the runs"
DIP = 0.10  # a smaller fall of the bandwidth with the size is not named
MISS = 0.25  # a line by size that misses a mean time by more is not quoted
ELSEWHERE = (
    "Grey lines are ping-pongs by MPI that others measured on their clusters (measured elsewhere): "
    "nothing is pooled with them or tested against them."
)
FILES = ["measured/ping_pong.csv", "measured/curves.csv"]  # those that they are drawn from
WIDE = 3  # doublings of the size that a name in a figure covers
AXES = {"time": "time, one way [µs]", "bandwidth": "bandwidth [MB/s]"}

Ends = tuple[float, float, float]


@dataclass(frozen=True)
class MessageTimes:
    """The time of messages by size on one network: alpha + beta s in pieces, since MPIs change
    their protocol with the size.

    `latency` [s] and `bandwidth` [B/s] are (value, low, high) with 95 % t intervals, and `kind` is
    that of the latency's. The latency is the mean time of the shortest messages where the line has
    several pieces or misses a size's mean; without a bandwidth (None) the line is not quoted, or
    its messages are too short for that of a fast link. `runs` is the number of tables.
    """

    latency: Ends
    kind: str
    bandwidth: Ends | None
    runs: int


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
        mean, low, high = (means[name].values.tolist() for name in ("mean", "low", "high"))
        for fall in reversals(mean, low, high, DIP):
            start, end = means["size"].values[[fall.start, fall.end]]
            rows.append((series, start, end, fall.fall, int(means.blocks.max())))
    return pd.DataFrame(rows, columns=["series", "start", "end", "fall", "runs"])


def elsewhere(axes: Axes, what: str) -> None:
    """Draw a ping-pong of each family of networks that was measured elsewhere, up to 4 MiB: the
    `time` [µs] or `bandwidth` [MB/s] of messages, a thin line named at its end."""
    table = measured.ping_pong().dropna(subset="short")
    table = table[table.message_bytes.between(1, 2**22)]
    values = table.time_us if what == "time" else table.message_bytes / table.time_us
    curves, below = table.assign(shown=values).groupby("short"), dict[int, float]()
    for name, last in curves.shown.last().sort_values().items():
        size, shown = curves.get_group(name).message_bytes, curves.get_group(name).shown
        axes.plot(size, shown, color=style.FAINT, linewidth=0.9, zorder=1)
        end = round(np.log2(size.max()))
        # No name covers the one below it
        near = [shown for other, shown in below.items() if abs(other - end) <= WIDE]
        below[end] = max(last, 2 * max(near, default=0))
        axes.annotate(
            name,
            (size.max(), below[end]),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set(xlabel="message [B]", ylabel=AXES[what], yscale="log")
    axes.set_xscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_major_formatter(lambda size, _: byte_size(size) if size >= 1 else "")


def figure(runs: xr.Dataset, label: str, here: pd.DataFrame, marks: str) -> exhibit.Exhibit:
    """A figure of these runs beside networks that were measured elsewhere, with the label
    time_elsewhere or bandwidth_elsewhere. `here` has a row each run: message_bytes, series and
    shown, the time [µs] or bandwidth [MB/s]."""
    what = label.removesuffix("_elsewhere")
    with style.styled():
        drawn, axes = drawing.new_figure(3.2)
        elsewhere(axes, what)
        for (series, rows), marker in zip(here.groupby("series", sort=False), cycle("os^D")):
            size, shown = rows.message_bytes, rows.shown
            axes.plot(size, shown, marker, c=style.INK, mfc="none", label=series)
        axes.legend()
    return exhibit.figure(
        label,
        drawn,
        f"The {what} between two hosts here, beside networks elsewhere",
        f"The {what} over the size of a message, a line for each network, and marks of these runs",
        of=runs,
        intervals="every run is drawn",
        marks=f"{marks} {ELSEWHERE}",
        beside=FILES,
    )


def _line(time: xr.DataArray) -> MessageTimes:
    """The line of one series' times over (run, size)."""
    size, table = time["size"].values.astype(float), time.values
    table = np.where(table > 0, table, np.nan)
    per_table = np.nanmean(table[:, size <= max(SHORT, size[0])], axis=1)
    short, *ends = map(float, average(per_table[np.isfinite(per_table)], "cost"))
    # Runs on networks that are not known may be of several, and have no interval.
    is_known = bool(time.network.item())
    low, high = ends if is_known else (np.nan, np.nan)
    as_measured = MessageTimes((short, low, high), OF_RUNS, None, len(table))
    if len(size) < 2:
        return as_measured
    times = {at: column[column > 0].tolist() for at, column in zip(size.tolist(), table.T)}
    pieces = split(times)
    misses = [abs(piece.at(at) / np.mean(times[at]) - 1) for piece in pieces for at in piece.sizes]
    per_byte = _ends(pieces[-1].per_byte, is_known)
    # Where the protocol changes, the first piece may be of sizes whose bytes tell little of the
    # latency.
    fitted = as_measured
    if len(pieces) == 1:
        fitted = replace(fitted, latency=_ends(pieces[0].offset, is_known), kind=OF_LINE)
    if min(fitted.latency[0], per_byte[0]) <= 0 or max(misses) > MISS:
        return as_measured
    if pieces[-1].sizes[-1] < LONG:
        return fitted
    value, low, high = per_byte
    return replace(fitted, bandwidth=(1 / value, 1 / high, 1 / low))


def _ends(value: Value, is_known: bool) -> Ends:
    """A fitted value with its interval, NaN where the points leave none, or one that ends at no
    value above 0.
    """
    is_known = is_known and FLOOR * value.value < value.low < value.high
    return (value.value, value.low, value.high) if is_known else (value.value, np.nan, np.nan)
