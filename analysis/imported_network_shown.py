"""Show what others measured between two hosts: statements, tables and figures of messages by size, and of streams and
round trips."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis import own_statements as state
from analysis.exhibit import Basis, Table
from analysis.imported_hpl import networks
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
    names, wires = _names(messages), limits(messages)
    best = best_bandwidths(messages).set_index("network")
    for network, line in lines(messages).items():
        yield _latency(messages, names[network], line)
        longest = float(
            messages.time.sel(interconnect=network).dropna("size", how="all")["size"].max()
        )
        if line.follows and longest >= BIG:
            yield _bandwidth(
                messages, names[network], line.bandwidth, line.runs, wires.get(network), ""
            )
    for network in names:
        if network in best.index and not lines_follow(messages, network):
            row = best.loc[network]
            value = (row["mean"], row.low, row.high)
            at = f" at {byte_size(row['size'])}"
            yield _bandwidth(messages, names[network], value, int(row.runs), wires.get(network), at)
        yield from _reversals(messages, network, names[network])
    yield from _ratios(messages, names)


def _reversals(messages: xr.Dataset, network: str, name: str) -> Iterator[Statement]:
    """The sizes from and to which the bandwidth falls, though longer messages should not be slower."""
    of = message_rates(messages).sel(interconnect=network).stack(table=["run", "pair"])
    of = of.where(of > 0).dropna("size", how="all").reset_index("table", drop=True)
    found = over_blocks(of.rename(table="block"), "rate")
    ends = [found[name].values.tolist() for name in ("mean", "low", "high")]
    for one in reversals(*ends, DIP):
        start, end = (byte_size(of["size"].values[at]) for at in (one.start, one.end))
        before, after = (in_words([ends[0][at]], "B/s")[0] for at in (one.start, one.end))
        sentence = f"**Messages on {name} lose {percent(one.fall, 0)} of their bandwidth from {start} to {end}**: {before} and {after}."
        subject = f"The bandwidth of messages on {name} falls from {start} to {end}"
        tables = int(of.notnull().any("size").sum())
        yield state.estimate(messages, sentence, subject, "fall", (one.fall, None, None), tables)


def lines_follow(messages: xr.Dataset, network: str) -> bool:
    """Whether a line by size tells a network's bandwidth."""
    found = lines(messages)
    if network not in found or not found[network].follows:
        return False
    size = messages.time.sel(interconnect=network).dropna("size", how="all")["size"]
    return float(size.max()) >= BIG


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


def _ratios(messages: xr.Dataset, names: dict[str, str]) -> Iterator[Statement]:
    """How much faster the network with the highest link rate is than each other one, for the longest
    messages that both sent."""
    cost = messages.time.mean(["run", "pair"])
    cost = cost.where(
        np.isfinite(cost), (1 / messages.bandwidth).mean(["run", "pair"]) * messages["size"]
    )
    fastest = list(names)[-1]
    for network in list(names)[:-1]:
        both = cost.sel(interconnect=[network, fastest]).dropna("size")
        if not both.sizes["size"]:
            continue
        last = both.isel(size=-1)
        ratio = float(last.sel(interconnect=network) / last.sel(interconnect=fastest))
        size = byte_size(float(last["size"]))
        sentence = f"{names[fastest]} sends messages of {size} {number(ratio)} times as fast as {names[network]}."
        title = f"Messages of {size}: {names[fastest]} over {names[network]}"
        runs = int(messages.sizes["run"])
        yield state.estimate(messages, sentence, title, "ratio", (ratio, np.nan, np.nan), runs)


def of_values(dataset: xr.Dataset, values: pd.DataFrame) -> Iterator[Statement]:
    """The mean of each quantity on each network, with its share of the wire."""
    found, wires = means(values), limits(dataset)
    about = dataset.assign_attrs(repeats="unordered")
    names = networks(dataset, found.network)
    found["place"] = found.network.map({name: rank for rank, name in enumerate(names)})
    for row in found.sort_values("place", kind="stable").itertuples():
        value = (row.mean, row.low, row.high)
        shown, interval = in_words(value, row.unit)
        basis = f" ({interval})" if interval else ""
        name, share = names[row.network], ""
        if row.unit == "bit/s" and row.network in wires:
            part = row.mean / wires[row.network]
            share = f", {percent(part, 0)} of what its wire carries in full frames"
            if part > 1.02:
                share = f", more than such a wire carries ({in_words((wires[row.network],), 'bit/s')[0]})"
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
    names, wires, rows = _names(messages), limits(messages), []
    for network, line in lines(messages).items():
        micro, mega = (
            [f * each for each in value]
            for f, value in ((1e6, line.latency), (1e-6, line.bandwidth))
        )
        wire = wires.get(network)
        rows.append(
            (
                names[network],
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
        "Network", "Tables", "Shortest [µs]", "α [µs]", "1/β [MB/s]", "Wire [MB/s]", "Largest miss", "Line",
    )  # fmt: skip
    caption = (
        "The time of a message, fitted as α + β s in up to four pieces of sizes, with 95 % t intervals of the fit: α of the shortest, "
        "β of the longest. Shortest: the "
        "mean time of messages of at most 64 bytes. Wire: TCP payload in full frames at the rate that the network's name says. A "
        f"line that misses a mean time by more than {percent(MISS, 0)} is not quoted."
    )
    return Table(f"{label(messages)}-lines", columns, "lrrrrrrl", rows, caption)


def values_table(dataset: xr.Dataset, values: pd.DataFrame) -> Table:
    """The mean of each quantity on each network."""
    found, wires, rows = means(values), limits(dataset), []
    names = networks(dataset, found.network)
    for row in found.itertuples():
        _, factor, unit = display_unit(row.mean, row.unit)
        wire = wires.get(row.network) if row.unit == "bit/s" else None
        ends = [factor * each for each in (row.mean, row.low, row.high)]
        limit = number(factor * wire) if wire else UNKNOWN
        rows.append(
            (names[row.network], f"{row.what} [{unit}]", estimate(*ends), f"{row.runs}", limit)
        )
    columns = ("Network", "Quantity", "Mean (95 % t interval)", "Runs", "Wire")
    caption = "What was measured between two hosts: harmonic means of rates, arithmetic ones of times. Wire: TCP payload in full frames at the rate that the network's name says."
    return Table(f"{label(dataset)}-values", columns, "llrrr", rows, caption)


def draw_messages(messages: xr.Dataset) -> Figure:
    """Bandwidth [MB/s] over the size of a message: every table, the fitted lines, and what each
    wire carries."""
    with style.styled():
        figure, axes = drawing.new_figure(3.4)
        found, wires = lines(messages), limits(messages)
        rate = message_rates(messages)
        for network, short in _names(messages).items():
            look = style.look(network)
            of = 1e-6 * rate.sel(interconnect=network).stack(table=["run", "pair"])
            of = of.where(of["size"] > 0).transpose("size", "table")
            axes.plot(
                of["size"], of, look.marker, color=look.color, alpha=0.5, markersize=3.5, mew=0
            )
            axes.plot([], [], look.marker, color=look.color, linestyle=look.line, label=short)
            if network in found and found[network].follows:
                at = np.geomspace(1, float(of["size"].max()), 80)
                axes.plot(
                    at,
                    1e-6 * at / time_at(found[network], at),
                    color=look.color,
                    linestyle=look.line,
                    lw=1,
                )
            if network in wires:
                axes.axhline(wires[network] / 8e6, color=look.color, linewidth=0.6)
        axes.set(xlabel="message [B]", ylabel="bandwidth [MB/s]", yscale="log")
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda size, _: byte_size(size))
        axes.yaxis.set_major_formatter(lambda rate, _: f"{rate:g}")
        axes.legend(loc="best")
    return figure


def draw_values(dataset: xr.Dataset, values: pd.DataFrame) -> Figure:
    """Every value by network, a panel for each quantity, with the mean and what the wire carries."""
    found, wires = means(values), limits(dataset)
    quantities = list(dict.fromkeys(values.quantity))
    names = networks(dataset, found.network)
    with style.styled():
        figure, panels = drawing.new_figures(1.2 + 0.5 * len(names), len(quantities))
        for axes, quantity in zip(panels, quantities):
            own = values[values.quantity == quantity]
            _, factor, unit = display_unit(own.value.median(), own.unit.iloc[0])
            for row, (network, _) in enumerate(names.items()):
                look, of = style.look(network), own[own.network == network]
                axes.plot(
                    factor * of.value,
                    [row] * len(of),
                    look.marker,
                    color=look.color,
                    alpha=0.5,
                    mew=0,
                )
                for mean in found[
                    (found.quantity == quantity) & (found.network == network)
                ].itertuples():
                    ends = (factor * each for each in (mean.mean, mean.low, mean.high))
                    drawing.interval_across(axes, look, row + 0.18, *ends, "")
                if own.unit.iloc[0] == "bit/s" and network in wires:
                    axes.plot(
                        [factor * wires[network]] * 2,
                        [row - 0.3, row + 0.3],
                        color=style.INK,
                        linewidth=0.8,
                    )
            drawing.rows(axes, list(names.values()) if axes is panels[0] else [""] * len(names))
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


def _names(messages: xr.Dataset) -> dict[str, str]:
    return networks(messages, messages.interconnect.values.tolist())
