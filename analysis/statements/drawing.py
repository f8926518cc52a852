"""The marks that make up figures: points, intervals, curves, verdicts and axes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.dataset import derive
from analysis.statements import style
from analysis.statements.statement import Statement

if TYPE_CHECKING:  # most figures have no law, and fitting loads much
    from analysis.laws.scaling_laws import Law

MODEL = "model"  # the gid of a fitted curve; no other line joins points
RUNS_AND_MEANS = (
    "Small marks are single runs. Open marks and bars are geometric means with their intervals."
)
# Fractions of a doubling: between two series, and from a level's place to a mean and to its runs.
SIDESTEP, APART = 0.12, 0.025
# Open, so that the mark of the reference below it is seen.
TODAY = {
    "marker": style.TODAY.marker,
    "color": style.TODAY.color,
    "mfc": "none",
    "mew": 1.3,
    "ls": "none",
    "ms": 7,
    "zorder": 4,
    "label": "today",
}


def of_today(run: object | None) -> str:
    """What a caption says of TODAY's marks; empty without a run of today."""
    return "" if run is None else "Diamonds are means of today."


def new_figures(height: float, columns: int, **shared: bool) -> tuple[Figure, np.ndarray]:
    """A figure of the report's width and this height [inches] with `columns` axes side by side.
    Pass `sharex`, `sharey` to share an axis."""
    figure = Figure(figsize=(style.WIDTH, height))
    return figure, figure.subplots(1, columns, squeeze=False, **shared)[0]


def new_grid(height: float, rows: int, columns: int) -> tuple[Figure, np.ndarray]:
    """A figure of the report's width and this height [inches] with axes in rows and columns that
    share y."""
    figure = Figure(figsize=(style.WIDTH, height))
    return figure, figure.subplots(rows, columns, squeeze=False, sharey=True)


def new_figure(height: float) -> tuple[Figure, Axes]:
    """A figure of the report's width and this height [inches] with its only axes."""
    figure = Figure(figsize=(style.WIDTH, height))
    return figure, figure.subplots()


def runs(axes: Axes, series: str, x: np.ndarray, values: xr.DataArray, label: str = "") -> None:
    """Draw every run of a series, values over (block, level), at the levels' places x; add its
    legend entry."""
    look = style.look(series)
    values = values.transpose("block", ...).values
    everywhere = np.broadcast_to(x, values.shape).ravel()
    small = {"color": look.color, "alpha": 0.45, "markersize": 3.5, "mew": 0}
    axes.plot(everywhere, values.ravel(), look.marker, **small)
    axes.plot([], [], look.marker, color=look.color, linestyle=look.line, label=label)


def interval(
    axes: Axes, series: str, x, mean, low, high, label: str = "", fill: str | None = "white"
) -> None:
    """Draw a series' mean at x, one number or several, with its interval. An unknown interval (NaN)
    is left out."""
    look, ends = style.look(series), np.reshape([mean - low, high - mean], (2, -1))
    mark = {"fmt": look.marker, "color": look.color, "mfc": fill or look.color}
    axes.errorbar(x, mean, ends, label=label, capsize=3, zorder=3, **mark)


def runs_and_means(
    axes: Axes,
    series: str,
    x: np.ndarray,
    values: xr.DataArray,
    means: xr.Dataset | pd.DataFrame,
    label: str,
    fill: str | None = "white",
) -> None:
    """Every run as in `runs`, and beside them the large marks of their means over (level), `ratio`
    or `mean` with `low` and `high`, on an axis of doublings."""
    runs(axes, series, x * 2**-APART, values)
    of = "ratio" if "ratio" in means else "mean"
    ends = (means[name].values for name in (of, "low", "high"))
    interval(axes, series, x * 2**APART, *ends, label, fill)


def series(
    axes: Axes,
    values: xr.DataArray,
    means: xr.Dataset,
    by: str,
    names: Mapping | None = None,
    x: str = "nodes",
    label: str = "nodes",
    looks: Sequence[str] = (),
) -> None:
    """Runs and means over x, on an axis of doublings: a series for each level of the dim `by`, side
    by side.

    `values` are over (block, by, x), and `means` over (by, x). Without `names` a level is its own
    name, and without `looks` it has its own look.
    """
    levels = values[by].values.tolist()
    for rank, level in enumerate(levels):
        places, at = offset(values[x].values, rank, len(levels)), {by: level}
        look, name = looks[rank] if looks else level, names[level] if names else level
        runs_and_means(axes, look, places, values.sel(at), means.sel(at), name)
    doubling_axis(axes, values[x].values, label)


def interval_across(axes: Axes, look: style.Look, row: float, mean, low, high, label: str) -> None:
    """Draw a mean in a row with its interval along the horizontal axis. An unknown interval (NaN)
    is left out."""
    ends = np.reshape([mean - low, high - mean], (2, -1))
    axes.errorbar(
        mean, row, xerr=ends, fmt=look.marker, color=look.color, mfc="white", capsize=3, label=label
    )


def band(
    axes: Axes, series: str, x: np.ndarray, mean: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    """Draw a model's curve of a series with its band, all of shape (x,); an unknown band (NaN) is
    left out."""
    look = style.look(series)
    axes.plot(x, mean, linestyle=look.line, color=look.color, gid=MODEL)
    axes.fill_between(x, low, high, color=look.color, alpha=0.15, linewidth=0)


def doubling_axis(axes: Axes, ticks: Sequence[int], label: str = "nodes") -> None:
    """A horizontal axis of whole numbers with equal steps per doubling and the numbers as ticks."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(int(n)) for n in ticks])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel(label)


def offset(levels: np.ndarray, rank: int, count: int) -> np.ndarray:
    """The places of one of `count` series that stand side by side on an axis of doublings."""
    return levels * 2.0 ** (SIDESTEP * (rank - (count - 1) / 2))


def scaling(
    points: xr.Dataset,
    laws: "Mapping[str, Law]",
    today: xr.Dataset | None = None,
) -> Figure:
    """Efficiency [%] over nodes: every run, geometric means with 95 % t intervals, the law that
    each network follows with its band, and the mean of each point of a run of today. Rates
    [Gflop/s] where no efficiency is known.

    `points` and `today` are from `derive.points` or `hpl_points.points`; `laws` are by network.
    """
    with style.styled():
        figure, axes = new_figure(3.4)
        names, share = points.falloff.names, 100 * points.share
        is_known = bool(share.notnull().any())
        values, networks = share if is_known else points.rate, share.interconnect.values.tolist()
        series(axes, values, derive.means(values), "interconnect", names)
        for name, law in laws.items():
            curve = 100 * law.band()
            ends = (curve[end].values for end in ("mean", "low", "high"))
            band(axes, name, curve.nodes.values, *ends)
        for rank, name in enumerate(networks):
            if today is not None and name in today.interconnect:
                now = np.log(100 * today.share.sel(interconnect=name)).mean("block")
                axes.plot(offset(now.nodes.values, rank, len(networks)), np.exp(now), **TODAY)
        doubling_axis(axes, thin_ticks(points.nodes.values, 1.3), derive.counted_in(points))
        unit = f"% of {points.share.attrs['of']}" if is_known else "Gflop/s"
        axes.set_ylabel(f"HPL rate [{unit}]")
        axes.legend(*_each_once(axes), loc="lower left" if is_known else "best")
        return figure


def falls(statements: Sequence[Statement]) -> Figure:
    """The loss [%] of each statement on a fall in a row: every block, the mean with its interval,
    the margin, the answer.
    """
    with style.styled():
        figure, axes = new_figure(1.0 + 0.5 * len(statements))
        margin = next((fall.margin for fall in statements if fall.margin), 0.0)
        ends = (100 * (1 - 1 / (1 - margin)), 100 * margin)
        axes.axvspan(*ends, color=style.MARGIN, zorder=0, label=f"margin {100 * margin:g} %")
        axes.axvline(0, color=style.INK, linewidth=0.8)
        for row, fall in enumerate(statements):
            look, blocks = style.look(fall.series), 100 * np.array(fall.values)
            below = row + 0.16 + 0.16 * np.linspace(0, 1, len(blocks))
            mark = {"color": look.color, "alpha": 0.6, "markersize": 3.5}
            axes.plot(blocks, below, look.marker, label="one block", **mark)
            _mean_and_answer(axes, row, fall, look)
        rows(axes, [_in_two_lines(fall) for fall in statements])
        axes.set_xlabel("loss of the ratio [%]; below 0 it rises")
        legend_below(figure, axes, 4)
        return figure


def _in_two_lines(fall: Statement) -> str:
    subject, _, span = fall.subject.partition(" from ")
    planned = ", planned" if fall.primary else ""
    return f"{subject.replace(' loses rate against ', ' / ')}{planned}\n{span}, n = {fall.n}"


def _mean_and_answer(axes: Axes, row: int, fall: Statement, look: style.Look) -> None:
    """Draw a statement's mean, interval and answer in a row, above its blocks."""
    beside = axes.get_yaxis_transform()
    axes.text(1.02, row, fall.words, weight="bold", va="center", transform=beside)
    if fall.interval is None:
        return
    bar = {"color": look.color, "linewidth": 3, "label": f"{fall.level} interval"}
    axes.plot(100 * np.array(fall.interval), [row, row], **bar)
    mark = {"color": "white", "mec": look.color, "mew": 1.5, "markersize": 7, "zorder": 3}
    axes.plot(100 * fall.estimate, row, look.marker, **mark)


def margin_around_100(axes: Axes, margin: float, label: str) -> None:
    """Draw a line at 100 % and shade the range of ratios that count as the same."""
    ends = 100 * (1 - margin), 100 / (1 - margin)
    axes.axhspan(*ends, color=style.MARGIN, zorder=0, label=label)
    axes.axhline(100, color=style.INK, linewidth=0.8)


def rows(axes: Axes, names: Sequence[str]) -> None:
    """A vertical axis of named rows, the first on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.grid(False, axis="y")


def thin_ticks(values: Sequence[int], factor: float) -> list[int]:
    """The ascending values that are at least `factor` times the one before, so that tick labels do
    not collide."""
    chosen: list[int] = []
    for value in values:
        if not chosen or value >= factor * chosen[-1]:
            chosen.append(int(value))
    return chosen


def _each_once(axes: Axes | Sequence[Axes]) -> tuple[list, list[str]]:
    """The handles and labels of a legend that names each kind of mark once."""
    marks: dict[str, object] = {}
    for panel in np.ravel(axes):
        for handle, label in zip(*panel.get_legend_handles_labels()):
            marks.setdefault(label, handle)
    return [*marks.values()], [*marks]


def legend_below(figure: Figure, axes: Axes | Sequence[Axes], columns: int) -> None:
    """One legend under the axes, or under several axes, that names each kind of mark once."""
    figure.legend(*_each_once(axes), loc="outside lower center", ncols=columns)
