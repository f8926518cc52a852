"""Analyse HPL results that were run elsewhere: what follows from them, what does not, and their
figure."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import attributes, drawing, style
from analysis.statistics.intervals import average
from analysis.wording import HARD_SPACE, counted, number, percent, percent_range
from runners.record import FalloffError

# Runs with the same values of all of these are repeats.
SETTINGS = ["interconnect", "nodes", "processes", "N", "NB", "P", "Q", "variant"]


@dataclass(frozen=True)
class Imported:
    """Imported HPL results over the nodes or, if no number of nodes is known, over the processes.

    `abscissa` is which of the two. `ordinate` is `efficiency` [1], the share of Rpeak, or `rate`
    [Gflop/s] if Rpeak is unknown. `runs` has a row for each usable result: its `file` and SETTINGS,
    `x` on the abscissa and `y` on the ordinate. `best` has a row for each interconnect and x: the
    settings with the highest harmonic mean, with `runs`, `mean`, and the 95 % t interval over the
    runs, `low` and `high`. The interval is NaN for a single run and for an unknown interconnect.
    `names` are the interconnects' short names. `notes` are sentences that say what is missing and
    which conclusions it prevents.
    """

    abscissa: str
    ordinate: str
    runs: pd.DataFrame
    best: pd.DataFrame
    names: dict[str, str]
    notes: tuple[str, ...]


def analyse(dataset: xr.Dataset) -> Imported:
    """Derive efficiencies, or rates, and the best settings; raises FalloffError if no result is
    usable."""
    results = _results(dataset)
    measured = results[results.rate.notna()]
    hpl = measured[measured.variant.str.match("W[RC]|$")]
    if hpl.empty:
        mixed = "all are in mixed precision (HPL-AI), which is no share of Rpeak"
        reasons = "; ".join(filter(None, dict.fromkeys(results.reason))) or "there is none"
        why = reasons if measured.empty else mixed
        raise FalloffError(f"no result of HPL can be used: {why}")
    # Drop results that another file repeats to every digit, as HPL.out does beside the job's own output.
    alike = [*SETTINGS, "rate", "time"]
    repeat = hpl.groupby(["file", *alike], dropna=False).cumcount()
    distinct = hpl[~hpl.assign(repeat=repeat).duplicated([*alike, "repeat"])]
    abscissa = "nodes" if distinct.nodes.notna().any() else "processes"
    ordinate = "efficiency" if distinct.efficiency.notna().any() else "rate"
    placed = distinct.assign(x=distinct[abscissa], y=distinct[ordinate])
    runs = placed.dropna(subset=["x", "y"])[["file", *SETTINGS, "x", "y"]].reset_index(drop=True)
    best = _best(runs)
    described = attributes.interconnects(dataset)
    names = {
        name: described[name]["short"] if name else "interconnect not known"
        for name in dict.fromkeys(best.interconnect)
    }
    steps = (
        ("Results that cannot be used, as the list says", results, measured),
        ("Results in mixed precision (HPL-AI), no share of Rpeak, left out", measured, hpl),
        ("Results that another file has to every digit, counted once", hpl, distinct),
    )
    counts = [
        f"{what}: {len(before) - len(after)} of {len(before)}."
        for what, before, after in steps
        if len(after) < len(before)
    ]
    notes = (*counts, *_unknown(distinct, ordinate), *_limits(runs, best, ordinate))
    return Imported(abscissa, ordinate, runs, best, names, notes)


def _results(dataset: xr.Dataset) -> pd.DataFrame:
    """One row for each result: file, SETTINGS, rate [Gflop/s], time [s], efficiency [1], and the
    reason if it is unusable."""
    names = ["file", *SETTINGS, "ranks_per_node", "rpeak", "reason", "hpl_rate", "hpl_time"]
    table = pd.DataFrame({name: dataset[name].values for name in names})
    table = table.rename(columns={"hpl_rate": "rate", "hpl_time": "time"})
    table["processes"] = table.processes.fillna(table.P * table.Q)
    on_nodes = table.P * table.Q / table.ranks_per_node
    table["nodes"] = table.nodes.fillna(on_nodes.where(on_nodes % 1 == 0))
    table["efficiency"] = 1e9 * table.rate / (table.nodes * table.rpeak)
    return table


def _best(runs: pd.DataFrame) -> pd.DataFrame:
    alike = runs.groupby([*SETTINGS, "x"], dropna=False).y
    table = alike.agg(runs="size").reset_index()
    averages = np.array([average(values, "rate") for _, values in alike])
    table["mean"], table["low"], table["high"] = averages.T
    # They may come from several networks, and so are no repeats.
    table.loc[table.interconnect == "", ["low", "high"]] = np.nan
    highest = table.groupby(["interconnect", "x"])["mean"].idxmax()
    return table.loc[highest].reset_index(drop=True)


def _unknown(results: pd.DataFrame, ordinate: str) -> Iterator[str]:
    """What is unknown about usable results, and how to state it."""
    homeless, without_peak = results.nodes.isna(), results.rpeak.isna()
    uneven = results[homeless & results.ranks_per_node.notna() & results.P.notna()]
    if len(uneven):
        one = uneven.iloc[0]
        grid = f"{one.P:g} x {one.Q:g} processes are no multiple of ranks_per_node = {one.ranks_per_node:g}"
        yield f"The number of nodes is not known for {len(uneven)} of {len(results)}: {grid}; --set nodes=N, or --map."
    elif homeless.all():
        yield "The number of nodes is not known, so rates are over processes: --set ranks_per_node=R, or nodes=N."
    elif homeless.any():
        yield f"Results without a number of nodes, left out: {homeless.sum()} (--set ranks_per_node=R, or nodes=N)."
    if without_peak.all():
        yield "Rpeak is not known, so these are rates and no efficiencies: --set rpeak=F, one node's flop/s."
    elif ordinate == "efficiency" and without_peak.any():
        yield f"Results without an Rpeak, left out: {without_peak.sum()} (--set rpeak=F, one node's flop/s)."
    if (results.interconnect == "").any():
        yield "Without an interconnect there is no interval: --set interconnect=NAME, or a column of --map."


def _limits(runs: pd.DataFrame, best: pd.DataFrame, ordinate: str) -> Iterator[str]:
    """Conclusions that the number and the choice of runs do not allow."""
    single = int((best.runs == 1).sum())
    if single:
        yield f"Points that are a single run, without an interval: {single} of {len(best)}."
    choices = runs.drop_duplicates(SETTINGS).groupby(["interconnect", "x"]).size().max()
    if choices > 1:
        yield f"Each point is the best of up to {choices} settings, which favours what scatters more."
    if ordinate == "efficiency" and runs.y.max() > 1:
        yield "More than 100 % of Rpeak: rpeak has to be one node's, at the clock that it ran at."
    yield "Order and blocks of the runs are not known, so no verdict on a fall is drawn."


def text(study: Imported) -> str:
    """The best settings for each interconnect and node count with their efficiency or rate, and the
    notes."""
    is_share = study.ordinate == "efficiency"
    noun = {"nodes": "node", "processes": "rank"}[study.abscissa]
    what = "efficiency, of Rpeak" if is_share else "rate"
    lines = [f"HPL's {what} (measured evidence, imported), harmonic means of the best settings:"]
    for row in study.best.itertuples():
        value = percent(row.mean) if is_share else f"{number(row.mean, 4)} Gflop/s"
        interval, ends = "no interval", (row.low, row.high)
        if np.isfinite(row.low):
            rates = f"{number(row.low, 4)} to {number(row.high, 4)}"
            interval = f"95 % t interval {percent_range(ends) if is_share else rates}"
        lines.append(
            f"  {study.names[row.interconnect]}, {counted(int(row.x), noun)}: {value} (N = {row.N:g}, "
            f"NB = {row.NB:g}, {row.P:g} x {row.Q:g}; {counted(row.runs, 'run')}: {interval})"
        )
    lines += [f"note: {note}" for note in study.notes]
    return "\n".join(lines).replace(HARD_SPACE, " ")


def draw(study: Imported) -> dict[str, Figure]:
    """A figure of the share of Rpeak [%] or the rate [Gflop/s], by its name. Small marks are runs;
    open marks are the means of the best settings.

    Bars are 95 % t intervals over the runs; a single run has none and says so.
    """
    scale = 100 if study.ordinate == "efficiency" else 1
    with style.styled():
        figure, axes = drawing.new_figure(3.6)
        for position, (name, short) in enumerate(study.names.items()):
            aside = 2 ** (0.035 * (position - (len(study.names) - 1) / 2))
            look = style.look(name)
            runs = study.runs[study.runs.interconnect == name]
            best = study.best[study.best.interconnect == name].sort_values("x")
            small = {"color": look.color, "alpha": 0.45, "markersize": 3.5, "mew": 0}
            axes.plot(aside * runs.x, scale * runs.y, look.marker, **small)
            axes.plot([], [], look.marker, color=look.color, mfc="white", label=short)
            for point in best.itertuples():
                ends = (scale * end for end in (point.mean, point.low, point.high))
                drawing.interval(axes, name, aside * point.x, *ends)
                if point.runs == 1:
                    place = (aside * point.x, scale * point.mean)
                    above = {"textcoords": "offset points", "ha": "center", "fontsize": 7}
                    axes.annotate("1 run", place, (0, 5), **above)
        counts = sorted(study.best.x.unique())
        drawing.doubling_axis(axes, drawing.apart(counts, 1.3), study.abscissa)
        unit = "efficiency [% of Rpeak]" if scale == 100 else "HPL rate [Gflop/s]"
        axes.set(ylabel=f"{unit} (measured, imported)", ylim=(0, None))
        axes.legend(loc="best")
        return {study.ordinate: figure}
