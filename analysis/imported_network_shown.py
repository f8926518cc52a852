"""Show what others measured between two hosts: statements, tables and figures of messages by size, and of streams and
round trips."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis import own_statements as state
from analysis.attributes import names_by_rate
from analysis.exhibit import Basis, Table
from analysis.imported_network import (
    BIG,
    MISS,
    TIMES,
    Line,
    best_bandwidths,
    limits,
    lines,
    means,
    message_rates,
    time_at,
)
from analysis.quoting import anchor
from analysis.statements import Statement, evidence_of
from analysis.statistics.intervals import over_blocks
from analysis.statistics.reversals import reversals
from analysis.wording import UNKNOWN, byte_size, estimate, number, percent

DIP = 0.10  # a smaller fall of the bandwidth with the size is not named
# The display unit of a value: from which on, its factor, and its name.
_UNITS = {
    "bit/s": ((1e9, 1e-9, "Gbit/s"), (0, 1e-6, "Mbit/s")),
    "B/s": ((1e10, 1e-9, "GB/s"), (0, 1e-6, "MB/s")),
    "s": ((1e-2, 1e3, "ms"), (0, 1e6, "µs")),
    "1/s": ((0, 1, "1/s"),),
}


def display_unit(value: float, unit: str) -> tuple[float, float, str]:
    """The readable unit of a value: from which value on, its factor, and its name, empty of a pure number."""
    units = _UNITS.get(unit, ((0, 1, unit.removeprefix("1")),))
    return next((each for each in units if value >= each[0]), units[-1])


def in_words(value: Sequence[float], unit: str) -> tuple[str, str]:
    """A value in a readable unit, and its interval in the same; empty if that is unknown."""
    _, factor, shown = display_unit(value[0], unit)
    ends = [factor * end for end in value[1:]]
    known = len(ends) == 2 and np.isfinite(ends).all()
    interval = f"95 % t interval {number(ends[0])} to {number(ends[1])}" if known else ""
    return f"{number(factor * value[0])} {shown}".strip(), interval


def of_messages(messages: xr.Dataset) -> Iterator[Statement]:
    """Latency, bandwidth and their share of the wire of each network, then the networks' ratios."""
    wires, told = limits(messages), set()
    for series, line in lines(messages).items():
        yield _latency(messages, series, line)
        longest = float(messages.time.sel(series=series).dropna("size", how="all")["size"].max())
        if line.follows and longest >= BIG and line.bandwidth[0] > 0:
            told.add(series)
            yield _bandwidth(messages, series, line.bandwidth, line.runs, wires.get(series), "")
    for row in best_bandwidths(messages).itertuples():
        if row.series not in told:
            value, at = (row.mean, row.low, row.high), f" at {byte_size(row.size)}"
            yield _bandwidth(messages, row.series, value, row.runs, wires.get(row.series), at)
        yield from _reversals(messages, row.series)
    yield from _ratios(messages)


def _reversals(messages: xr.Dataset, series: str) -> Iterator[Statement]:
    """The sizes from and to which the bandwidth falls, though longer messages should not be slower."""
    of = message_rates(messages).sel(series=series)
    of = of.where(of > 0).dropna("size", how="all")
    found = over_blocks(of.rename(run="block"), "rate")
    ends = [found[name].values.tolist() for name in ("mean", "low", "high")]
    for fall in reversals(*ends, DIP):
        start, end = (byte_size(of["size"].values[at]) for at in (fall.start, fall.end))
        before, after = (in_words([ends[0][at]], "B/s")[0] for at in (fall.start, fall.end))
        sentence = f"**Messages on {series} lose {percent(fall.fall, 0)} of their bandwidth from {start} to {end}**: {before} and {after}."
        subject = f"The bandwidth of messages on {series} falls from {start} to {end}"
        tables = int(of.notnull().any("size").sum())
        yield state.estimate(messages, sentence, subject, "fall", (fall.fall, None, None), tables)


def _latency(messages: xr.Dataset, name: str, line: Line) -> Statement:
    value = line.latency if line.follows else line.short
    shown, interval = in_words(value, "s")
    basis = f" ({interval})" if interval else ""
    if line.follows:
        half = (line.latency[0] * line.bandwidth[0]) if np.isfinite(line.bandwidth[0]) else np.nan
        ends = (
            f", and from {byte_size(half)} on its bytes take longer than that" if half >= 1 else ""
        )
        sentence = f"**A message on {name} takes {shown}**{basis}{ends}. {_pieces(line)} at most {percent(line.misses, 0)} off."
    else:
        where = f" at {byte_size(line.worst)}" if np.isfinite(line.worst) else ""
        off = f" by up to {percent(line.misses, 0)}{where}" if np.isfinite(line.misses) else ""
        sentence = (
            f"**The shortest messages on {name} take {shown}**{basis}. A line by size misses the times{off}, "
            "so that its latency and bandwidth are not quoted."
        )
    value = tuple(1e6 * each for each in value)
    title = f"The latency of a message on {name}"
    return state.estimate(messages, sentence, title, "time", value, line.runs, "µs", primary=True)


def _pieces(line: Line) -> str:
    count = len(line.pieces)
    return "A line by size is" if count == 1 else f"Lines by size, in {count} pieces, are"


def _bandwidth(
    messages: xr.Dataset, name: str, value: tuple, runs: int, wire: float | None, at: str
) -> Statement:
    shown, interval = in_words(value, "B/s")
    basis = f" ({interval})" if interval else ""
    what = f"Messages on {name} reach" if at else f"Long messages on {name} pass at"
    share = ""
    if wire:
        part = 8 * value[0] / wire
        share = f", {percent(part, 0)} of the TCP payload that its wire carries in full frames"
        if part > 1.02:
            share = f", more than TCP gets over such a wire ({number(wire / 8e6)} MB/s): is the network's name right, or was TCP not used?"
    sentence = f"**{what} {shown}**{at}{basis}{share}" + ("" if share.endswith("?") else ".")
    value = tuple(1e-6 * each for each in value)
    title = f"The bandwidth of messages on {name}"
    return state.estimate(messages, sentence, title, "bandwidth", value, runs, "MB/s", primary=True)


def _ratios(messages: xr.Dataset) -> Iterator[Statement]:
    """How much faster the network with the highest link rate is than each other one with the same settings, for the
    longest messages that both sent."""
    cost = messages.time.mean("run")
    cost = cost.where(np.isfinite(cost), (1 / messages.bandwidth).mean("run") * messages["size"])
    networks_, others = messages.network.values.tolist(), messages.others.values
    for place, (series, network) in enumerate(zip(messages.series.values.tolist(), networks_)):
        alike = np.flatnonzero((others == others[place]) & (messages.network == networks_[-1]))
        if not len(alike) or "" in (network, networks_[-1]) or network == networks_[-1]:
            continue
        fastest = str(messages.series.values[alike[0]])
        both = cost.sel(series=[series, fastest]).dropna("size")
        if not both.sizes["size"]:
            continue
        last = both.isel(size=-1)
        ratio = float(last.sel(series=series) / last.sel(series=fastest))
        size = byte_size(float(last["size"]))
        sentence = f"{fastest} sends messages of {size} {number(ratio)} times as fast as {series}."
        title = f"Messages of {size}: {fastest} over {series}"
        runs = int(messages.sizes["run"])
        yield state.estimate(messages, sentence, title, "ratio", (ratio, np.nan, np.nan), runs)


def of_values(dataset: xr.Dataset, values: pd.DataFrame) -> Iterator[Statement]:
    """The mean of each quantity on each network, with its share of the wire."""
    found, wires = means(values), limits(dataset, values)
    about = dataset.assign_attrs(repeats="unordered")
    names = names_by_rate(dataset, found.network)
    found["place"] = found.network.map({name: rank for rank, name in enumerate(names)})
    for row in found.sort_values("place", kind="stable").itertuples():
        value = (row.mean, row.low, row.high)
        shown, interval = in_words(value, row.unit)
        basis = f" ({interval})" if interval else ""
        name, share = row.series, ""
        if row.unit == "bit/s" and name in wires:
            part = row.mean / wires[name]
            share = f", {percent(part, 0)} of what its wire carries in full frames"
            if part > 1.02:
                share = f", more than such a wire carries ({in_words((wires[name],), 'bit/s')[0]})"
        sentence = {
            "goodput": f"**{name} carries {shown}** of TCP payload{basis}{share}.",
            "goodput_reverse": f"In the other direction {name} carries {shown}{basis}{share}.",
            "transaction_rate": f"**{name} makes {number(row.mean)} round trips a second**{basis}, "
            f"{in_words((1 / row.mean,), 's')[0]} each.",
            "ping_pong_bandwidth_mean": f"**Ping-pong messages on {name} reach {shown}**{basis}.",
        }.get(
            row.quantity,
            f"**On {name} a {row.what} takes {shown}**{basis}.".replace(" a half", " half"),
        )
        title = f"{row.what[0].upper()}{row.what[1:]} on {name}"
        factor, unit = next((f, u) for least, f, u in _UNITS[row.unit] if row.mean >= least)
        value = tuple(factor * each for each in value)
        yield state.estimate(
            about,
            sentence,
            title,
            row.quantity.replace("_", " "),
            value,
            row.runs,
            unit,
            primary=True,
        )


def lines_table(messages: xr.Dataset) -> Table | None:
    """The fitted line of each network; None without times."""
    wires, rows = limits(messages), []
    for series, line in lines(messages).items():
        micro, mega = (
            [f * each for each in value]
            for f, value in ((1e6, line.latency), (1e-6, line.bandwidth))
        )
        wire = wires.get(series)
        rows.append(
            (
                series,
                f"{line.runs}",
                number(1e6 * line.short[0]),
                estimate(*micro),
                estimate(*mega),
                number(wire / 8e6) if wire else UNKNOWN,
                f"{percent(line.misses)} at {byte_size(line.worst)}",
                "follows" if line.follows else "misses",
            )
        )
    if not rows:
        return None
    columns = (
        "Series", "Tables", "Shortest [µs]", "α [µs]", "1/β [MB/s]", "Wire [MB/s]", "Largest miss", "Line",
    )  # fmt: skip
    caption = (
        "The time of a message, fitted as α + β s in up to four pieces of sizes, with 95 % t intervals of the fit. α: of a single "
        "piece, else the time of the shortest messages, which is the mean of those of at most 64 bytes. 1/β: of the longest "
        "messages. Wire: TCP payload in full frames at the rate that the network's name says. A "
        f"line that misses a mean time by more than {percent(MISS, 0)} is not quoted."
    )
    return Table(f"{label(messages)}-lines", columns, "lrrrrrrl", rows, caption)


def values_table(dataset: xr.Dataset, values: pd.DataFrame) -> Table:
    """The mean of each quantity on each network."""
    found, wires, rows = means(values), limits(dataset, values), []
    for row in found.itertuples():
        _, factor, unit = display_unit(row.mean, row.unit)
        wire = wires.get(row.series) if row.unit == "bit/s" else None
        ends = [factor * each for each in (row.mean, row.low, row.high)]
        limit = number(factor * wire) if wire else UNKNOWN
        rows.append((row.series, f"{row.what} [{unit}]", estimate(*ends), f"{row.runs}", limit))
    columns = ("Series", "Quantity", "Mean (95 % t interval)", "Runs", "Wire")
    caption = "What was measured between two hosts: harmonic means of rates, arithmetic ones of times. Wire: TCP payload in full frames at the rate that the network's name says."
    return Table(f"{label(dataset)}-values", columns, "llrrr", rows, caption)


def draw_messages(messages: xr.Dataset) -> Figure:
    """Bandwidth [MB/s] over the size of a message: every table, the fitted lines, and what each
    wire carries."""
    with style.styled():
        figure, axes = drawing.new_figure(3.4)
        found, wires = lines(messages), limits(messages)
        rate = message_rates(messages)
        for series, look in _looks(zip(messages.series.values, messages.network.values)).items():
            of = 1e-6 * rate.sel(series=series)
            of = of.where(of["size"] > 0).transpose("size", "run")
            axes.plot(
                of["size"], of, look.marker, color=look.color, alpha=0.5, markersize=3.5, mew=0
            )
            axes.plot([], [], look.marker, color=look.color, linestyle=look.line, label=series)
            if series in found and found[series].follows:
                at = np.geomspace(1, float(of["size"].max()), 80)
                axes.plot(
                    at,
                    1e-6 * at / time_at(found[series], at),
                    color=look.color,
                    linestyle=look.line,
                    lw=1,
                )
            if series in wires:
                axes.axhline(wires[series] / 8e6, color=look.color, linewidth=0.6)
        axes.set(xlabel="message [B]", ylabel="bandwidth [MB/s]", yscale="log")
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda size, _: byte_size(size))
        axes.yaxis.set_major_formatter(lambda rate, _: f"{rate:g}")
        axes.legend(loc="best")
    return figure


def draw_values(dataset: xr.Dataset, values: pd.DataFrame) -> Figure:
    """Every value by series, a panel for each quantity, with the mean and what the wire carries."""
    found, wires = means(values), limits(dataset, values)
    quantities = list(dict.fromkeys(values.quantity))
    rank = {name: place for place, name in enumerate(names_by_rate(dataset, found.network))}
    ordered = values.assign(rank=values.network.map(rank)).sort_values("rank", kind="stable")
    names = _looks(zip(ordered.series, ordered.network))
    with style.styled():
        figure, panels = drawing.new_figures(1.2 + 0.5 * len(names), len(quantities))
        for axes, quantity in zip(panels, quantities):
            own = values[values.quantity == quantity]
            _, factor, unit = display_unit(own.value.median(), own.unit.iloc[0])
            for row, (series, look) in enumerate(names.items()):
                of = own[own.series == series]
                axes.plot(
                    factor * of.value,
                    [row] * len(of),
                    look.marker,
                    color=look.color,
                    alpha=0.5,
                    mew=0,
                )
                for mean in found[
                    (found.quantity == quantity) & (found.series == series)
                ].itertuples():
                    ends = (factor * each for each in (mean.mean, mean.low, mean.high))
                    drawing.interval_across(axes, look, row + 0.18, *ends, "")
                if own.unit.iloc[0] == "bit/s" and series in wires:
                    axes.plot(
                        [factor * wires[series]] * 2,
                        [row - 0.3, row + 0.3],
                        color=style.INK,
                        linewidth=0.8,
                    )
            drawing.rows(axes, list(names) if axes is panels[0] else [""] * len(names))
            axes.set_xlabel(f"{own.what.iloc[0]} [{unit}]")
            if quantity in TIMES or own.value.min() > 0:
                axes.set_xlim(0, 1.08 * axes.get_xlim()[1])
    return figure


def basis(dataset: xr.Dataset, runs: int) -> Basis:
    """What a figure of these outputs rests on."""
    return Basis(evidence_of(dataset), runs, "95 % t intervals", "run")


def label(dataset: xr.Dataset) -> str:
    """A label for figures and tables: letters, digits and _."""
    return f"{anchor(dataset.attrs['campaign']).replace('-', '_')}_{dataset.attrs['campaign_hash'][:8]}"


def _looks(series: Iterable[tuple[str, str]]) -> dict[str, style.Look]:
    """The look of each series: that of its network for the first, spare ones for others."""
    found: dict[str, style.Look] = {}
    for name, network in series:
        look = style.look(network)
        found.setdefault(name, style.look(name) if look in found.values() else look)
    return found
