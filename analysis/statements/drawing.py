"""The marks that make up figures: points, intervals, curves, verdicts and axes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
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
TODAY: dict[str, Any] = {
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


def new_figures(
    height: float, columns: int, rows: int = 1, **shared: Any
) -> tuple[Figure, np.ndarray]:
    """A figure of the report's width and this height [inches] with axes in `rows` of `columns`, row
    by row. Pass `sharex`, `sharey` to share an axis."""
    figure = Figure(figsize=(style.WIDTH, height))
    return figure, figure.subplots(rows, columns, squeeze=False, **shared).ravel()


def new_figure(height: float) -> tuple[Figure, Axes]:
    """A figure of the report's width and this height [inches] with its only axes."""
    figure, (axes,) = new_figures(height, 1)
    return figure, axes


def runs(axes: Axes, series: str, x: np.ndarray, values: xr.DataArray, label: str = "") -> None:
    """Draw every run of a series, values over (block, level), at the levels' places x; add its
    legend entry."""
    look, rates = style.look(series), values.transpose("block", ...).values
    x = np.broadcast_to(x, rates.shape).ravel()
    axes.plot(x, rates.ravel(), look.marker, color=look.color, alpha=0.45, markersize=3.5, mew=0)
    axes.plot([], [], look.marker, color=look.color, linestyle=look.line, label=label)


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
    levels, of = values[by].values.tolist(), "ratio" if "ratio" in means else "mean"
    for rank, level in enumerate(levels):
        places, at = offset(values[x].values, rank, len(levels)), {by: level}
        look, name = looks[rank] if looks else level, names[level] if names else level
        runs(axes, look, places * 2**-APART, values.sel(at))
        mark, color = style.look(look).marker, style.look(look).color
        mean, *ends = (means[end].sel(at).values for end in (of, "low", "high"))
        axes.errorbar(
            places * 2**APART,
            mean,
            np.abs(ends - mean),
            fmt=mark,
            color=color,
            mfc="white",
            label=name,
            capsize=3,
            zorder=3,
        )
    doubling_axis(axes, values[x].values, label)


def interval_across(
    axes: Axes, look: style.Look, row: float, mean: Any, low: Any, high: Any, label: str
) -> None:
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


def doubling_axis(axes: Axes, ticks: Any, label: str = "nodes") -> None:
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
            band(
                axes,
                name,
                curve.nodes.values,
                *(curve[end].values for end in ("mean", "low", "high")),
            )
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
            marks: dict[str, Any] = {"color": look.color, "alpha": 0.6, "markersize": 3.5}
            below = row + 0.16 + 0.16 * np.linspace(0, 1, len(blocks))
            axes.plot(blocks, below, look.marker, label="one block", **marks)
            beside = axes.get_yaxis_transform()
            axes.text(1.02, row, fall.words, weight="bold", va="center", transform=beside)
            if fall.interval and fall.estimate is not None:
                across, label = [100 * end for end in fall.interval], f"{fall.level} interval"
                axes.plot(across, [row, row], color=look.color, linewidth=3, label=label)
                marks = {"color": "white", "mec": look.color, "mew": 1.5, "markersize": 7}
                axes.plot(100 * fall.estimate, row, look.marker, zorder=3, **marks)
        rows(axes, [_in_two_lines(fall) for fall in statements])
        axes.set_xlabel("loss of the ratio [%]; below 0 it rises")
        legend_below(figure, axes, 4)
        return figure


def _in_two_lines(fall: Statement) -> str:
    subject, _, span = fall.subject.partition(" from ")
    planned = ", planned" if fall.primary else ""
    return f"{subject.replace(' loses rate against ', ' / ')}{planned}\n{span}, n = {fall.n}"


def rows(axes: Axes, names: Sequence[str]) -> None:
    """A vertical axis of named rows, the first on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.grid(False, axis="y")


def thin_ticks(values: Any, factor: float) -> list[int]:
    """The ascending values that are at least `factor` times the one before, so that tick labels do
    not collide."""
    chosen: list[int] = []
    for value in values:
        if not chosen or value >= factor * chosen[-1]:
            chosen.append(int(value))
    return chosen


def _each_once(axes: Any) -> tuple[list, list[str]]:
    """The handles and labels of a legend that names each kind of mark once."""
    marks: dict[str, object] = {}
    for panel in np.ravel(axes):
        for handle, label in zip(*panel.get_legend_handles_labels()):
            marks.setdefault(label, handle)
    return [*marks.values()], [*marks]


def legend_below(figure: Figure, axes: Any, columns: int) -> None:
    """One legend under the axes, or under several axes, that names each kind of mark once."""
    figure.legend(*_each_once(axes), loc="outside lower center", ncols=columns)
