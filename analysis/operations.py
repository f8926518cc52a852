"""Times and rates that no other section shows: collective operations by size of message, figures of merit, and programs.

Runs that differ in any setting are never in one mean.
"""

from dataclasses import replace
from textwrap import fill

import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, points, style
from analysis.attributes import short_names
from analysis.exhibit import Basis, Table
from analysis.imported_network_shown import display_unit, in_words, label
from analysis.own_data import NOTEBOOKS, OPERATIONS
from analysis.quoting import as_written
from analysis.statements import Statement, estimated, evidence_of, judged_fall, origin
from analysis.statistics.design import LEVEL
from analysis.statistics.intervals import average
from analysis.statistics.unordered import judge_unordered
from analysis.subjects.hpl_points import MARGIN
from analysis.wording import byte_size, counted, estimate
from runners.record import FalloffError

_COUNTS = ("nodes", "processes", "ranks_per_node")
_ONE = {"nodes": "node", "processes": "process"}
_MOST_DRAWN = 10  # lines of a panel
_MOST_PRIMARY = 8  # statements of which the first page may speak


def values(dataset: xr.Dataset) -> pd.DataFrame:
    """Every value, a row each: `what` was read in which `unit`, the `size` [B] of the messages (NaN without any), the `value`,
    the `count` of nodes or processes, as the attribute `count` says, and the `group`: words for all other settings that differ.

    Raises FalloffError if there is none.
    """
    runs = dataset.reset_coords()
    runs = runs.isel(trial=np.flatnonzero(runs.role.values == "point"))
    parts = []
    for name in NOTEBOOKS[OPERATIONS]:
        by_size = ["message_size"] if "message" in runs[name].dims else []
        part = runs[[name, *by_size]].to_dataframe().dropna(subset=name).reset_index()
        about = {"what": runs[name].attrs["long_name"], "unit": runs[name].attrs["units"]}
        parts.append(part.rename(columns={name: "value", "message_size": "size"}).assign(**about))
    table = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    if table.empty:
        raise FalloffError(f"{dataset.attrs['campaign']} has no time or rate of an operation")
    settings = points.of_trials(runs)
    at = [points.point(what, settings[trial]) for what, trial in zip(table.what, table.trial)]
    differing, levels = points.varying(at), [*map(dict, at)]
    count = "nodes" if "nodes" in differing else "processes"
    for name in filter(differing.__contains__, _COUNTS):  # what says no more than the count does
        pairs = {(of.get(count), of.get(name)) for of in levels}
        if len(pairs) == len({of.get(count) for of in levels}):
            differing.remove(name)
    shown = dict.fromkeys(["test", *differing])
    several, names = table.what.nunique() > 1, short_names(dataset)
    groups = [
        ", ".join([what] * several + points.in_words(of, [*shown], names)) or what
        for what, of in zip(table.what, levels)
    ]
    counts = [of.get(count, np.nan) for of in levels]
    table = table.assign(group=groups, count=counts, size=table.get("size", np.nan))
    table.attrs["count"] = count
    return table[["group", "what", "unit", "count", "size", "value"]]


def means(values: pd.DataFrame) -> pd.DataFrame:
    """The mean over the `runs` of each group, count and size, with its 95 % t interval: harmonic of rates, arithmetic of times."""
    keys, rows = ["group", "what", "unit", "count", "size"], []
    for key, own in values.groupby(keys, dropna=False, sort=False):
        kind = "cost" if key[2] == "s" else "rate"
        rows.append((*key, *map(float, average(own.value.values, kind)), len(own)))
    return pd.DataFrame(rows, columns=[*keys, "mean", "low", "high", "runs"])


def statements(dataset: xr.Dataset, values: pd.DataFrame) -> list[Statement]:
    """The time or rate of each group with its smallest and largest messages on the largest count, then what each group loses
    from the smallest count to the largest, corrected for the number of these statements (Bonferroni)."""
    made = [_level(dataset, own, values.attrs["count"]) for _, own in _groups(means(values))]
    ends = [
        own[own["size"].isna() | (own["size"] == size)]
        for _, own in _groups(values[values["count"].notna()])
        for size in dict.fromkeys([own["size"].min(), own["size"].max()])
    ]
    grow = [own for own in ends if own["count"].nunique() > 1]
    made += [_fall(dataset, own, values.attrs["count"], LEVEL / len(grow)) for own in grow]
    return [replace(one, primary=number < _MOST_PRIMARY) for number, one in enumerate(made)]


def _groups(table: pd.DataFrame):
    return table.groupby(["group", "what", "unit"], sort=False)


def _level(dataset: xr.Dataset, own: pd.DataFrame, count: str) -> Statement:
    most = own[own["count"].isna() | (own["count"] == own["count"].max())].sort_values("size")
    first, last = most.iloc[0], most.iloc[-1]
    ends = last["mean"], last.low, last.high
    value, interval = in_words(ends, last.unit)
    _, factor, unit = display_unit(last["mean"], last.unit)
    at = f" at {byte_size(last['size'])}" if np.isfinite(last["size"]) else ""
    unit_of_count = count if last["count"] > 1 else _ONE[count]
    where = f" on {last['count']:g} {unit_of_count}" if np.isfinite(last["count"]) else ""
    basis = f" ({interval})" if interval else ""
    smallest = ""
    if last["size"] > first["size"]:
        words, _ = in_words((first["mean"],), first.unit)
        smallest = f"{words} at {byte_size(first['size'])}, "
    return estimated(
        origin(dataset),
        f"{own.group.iloc[0]}{at}{where}",
        "time" if last.unit == "s" else "rate",
        tuple(factor * end for end in ends),
        int(last.runs),
        "95 % t interval over the runs",
        unit=unit or "1",
        n_of="run",
        sentence=f"**{own.group.iloc[0]}**{where}: {smallest}{value}{at}{basis}, {counted(int(last.runs), 'run')}.",
    )


def _fall(dataset: xr.Dataset, own: pd.DataFrame, count: str, one_sided: float) -> Statement:
    """The loss of speed from the smallest count to the largest; no order of the runs is known."""
    ends = own["count"].min(), own["count"].max()
    sign = -1 if own.unit.iloc[0] == "s" else 1
    few, many = (sign * np.log(own.value[own["count"] == end].values) for end in ends)
    judged = judge_unordered([(1, many), (-1, few)], MARGIN, evidence_of(dataset), one_sided)
    size = own["size"].iloc[0]
    at = f" at {byte_size(size)}" if np.isfinite(size) else ""
    subject = f"{own.group.iloc[0]}{at} loses speed from {ends[0]:g} to {ends[1]:g} {count}"
    kind = f"{100 * (judged.confidence or 0):.4g} % t interval over the runs"
    return judged_fall(origin(dataset), subject, judged, kind=kind, n_of="run")


def table(dataset: xr.Dataset, values: pd.DataFrame) -> Table:
    """The mean of each group, count and size."""
    found, rows = means(values), []
    has_size, has_count = found["size"].notna().any(), found["count"].notna().any()
    for row in found.itertuples():
        _, factor, unit = display_unit(row.mean, row.unit)
        ends = (factor * each for each in (row.mean, row.low, row.high))
        cells = [row.group, byte_size(row.size)] if has_size else [row.group]
        cells += [f"{row.count:g}"] if has_count else []
        rows.append((*cells, f"{estimate(*ends)} {unit}".strip(), f"{row.runs}"))
    columns = ["Operation or figure"]
    columns += ["Size"] if has_size else []
    columns += [values.attrs["count"].capitalize()] if has_count else []
    return Table(
        f"{label(dataset)}-operations",
        (*columns, "Mean (95 % t interval)", "Runs"),
        "l" + "r" * (len(columns) + 1),
        rows,
        "Means over the runs that differ in no known setting: harmonic of rates, arithmetic of times.",
        long=True,
    )


def draw(values: pd.DataFrame) -> Figure:
    """Every value, a panel for each quantity: over the size of the messages, else over the count, else a row for each group."""
    kinds = [*values.groupby(["what", "unit"], sort=False)]
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, max(3.4, 1.8 * len(kinds))))
        panels = figure.subplots(len(kinds), squeeze=False).flat
        for axes, ((what, unit), own) in zip(panels, kinds):
            shown = own[own.group.isin(own.group.unique()[:_MOST_DRAWN])]
            shown = shown.assign(group=[fill(as_written(group), 30) for group in shown.group])
            _, factor, name = display_unit(own.value.median(), unit)
            shown = shown.assign(value=factor * shown.value)
            x = next((one for one in ("size", "count") if own[one].nunique() > 1), "")
            name = fill(f"{what} [{name or 'unit of the file'}]", 40)
            if x:
                sns.lineplot(shown, x=x, y="value", hue="group", marker="o", errorbar=None, ax=axes)
                _over(axes, x, shown, values.attrs["count"])
                axes.set_ylabel(name)
                axes.legend(title=None, fontsize="small")
            else:
                sns.stripplot(shown, x="value", y="group", jitter=False, ax=axes)
                axes.tick_params(axis="y", labelsize="x-small")
                axes.set(xlabel=name, ylabel="")
    return figure


def _over(axes: Axes, x: str, shown: pd.DataFrame, count: str) -> None:
    """Logarithmic axes with plain numbers; values within a factor of ten stay on a linear one."""
    if x == "size":
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(lambda size, _: byte_size(size))
        axes.set_xlabel("message [B]")
    else:
        drawing.doubling_axis(axes, sorted(shown["count"].dropna().unique()), count)
    if shown.value.max() > 10 * shown.value.min() > 0:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")


def basis(dataset: xr.Dataset, values: pd.DataFrame) -> Basis:
    """What the figure rests on."""
    return Basis(evidence_of(dataset), int(means(values).runs.max()), "every run is drawn", "run")
