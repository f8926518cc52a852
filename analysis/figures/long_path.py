"""The published figures of the long paths: goodput over the buffer for each delay, and every repeat."""

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.studies.long_path import Curve, LongPath
from analysis.studies.long_repeats import LongRepeats
from analysis.studies.scaling import short_names

MBIT = 1e6
KIB = 1024
APART = 4  # the least factor between two ticks
HEADROOM = 1.25  # of the axes over the largest goodput and the wire limit
SPREAD = 0.6  # of a row, for the repeats in it


def draw(study: LongPath) -> dict[str, Figure]:
    """The figures by name: long_path, and long_path_repeats where there are repeats."""
    drawn = {"long_path": goodput_over_window(study)}
    return drawn | {"long_path_repeats": repeats(study.repeats)} if study.repeats else drawn


def goodput_over_window(study: LongPath) -> Figure:
    """Goodput [Mbit/s] over the buffer, a panel for each path and direction, with the model and its knee."""
    with style.styled():
        names = short_names(study.dataset)
        paths, directions = study.points.path.values.tolist(), study.points.direction.values.tolist()
        figure = Figure(figsize=(style.WIDTH, 1.3 + 1.25 * len(paths)))
        grid = figure.subplots(len(paths), len(directions), squeeze=False, sharex=True, sharey="row")
        for curve in study.curves:
            axes = grid[paths.index(curve.path), directions.index(curve.direction)]
            _panel(axes, curve)
            axes.set_title(f"{names[curve.path]}, {curve.direction}", loc="left")
        for path, axes in zip(paths, grid[:, 0]):
            own = [curve for curve in study.curves if curve.path == path]
            most = max(float(np.fmax(curve.goodput.max(), curve.wire_limit)) for curve in own)
            axes.set_ylim(0, HEADROOM * most / MBIT)  # a band of three blocks may go far beyond
        for axes in grid[-1]:
            _window_axis(axes, study.points.window_bytes.values)
        figure.supylabel("goodput [Mbit/s]", fontsize=style.RULES["axes.labelsize"])
        drawing.legend_below(figure, grid.ravel(), 3)
        return figure


def repeats(study: LongRepeats) -> Figure:
    """Every goodput as a share of the wire limit [%], a row for each series, sorted, with the median."""
    with style.styled():
        names = short_names(study.dataset)
        figure, axes = drawing.new_figure(1.2 + 0.4 * len(study.series))
        for row, series in enumerate(study.series):
            look, found = style.look(series.congestion_control), series.judged
            shares = 100 * np.array(found.sample.values) / series.wire_limit
            in_order = row + SPREAD * (np.linspace(0, 1, len(shares)) - 0.5)  # from the least (above) to the most
            axes.plot(shares, in_order, look.marker, color=look.color, alpha=0.45, mew=0,
                      label=series.congestion_control)  # fmt: skip
            axes.plot(100 * found.sample.median / series.wire_limit, row, "|", color=style.INK, markersize=11,
                      label="median")  # fmt: skip
        labels = [f"{names[it.path]}, {it.direction}, {it.congestion_control}" for it in study.series]
        drawing.rows(axes, labels)
        axes.set(xlabel="goodput / wire limit [%]")
        drawing.legend_below(figure, axes, 4)
        return figure


def _panel(axes: Axes, curve: Curve) -> None:
    """One congestion control on a path in a direction: runs, the model's band, knee, limit and product."""
    window = curve.goodput.window_bytes.values
    goodput = curve.goodput / MBIT
    axes.axhline(curve.wire_limit / MBIT, color=style.FAINT, linewidth=0.9, label="wire limit")
    axes.axvline(curve.product, color=style.INK, linewidth=0.9, linestyle=":", label="limit × round trip")
    drawing.runs(axes, curve.congestion_control, window, goodput, curve.congestion_control)
    if curve.fitted is None:
        return
    dense = np.geomspace(window.min(), window.max(), 120)
    drawing.band(axes, curve.congestion_control, dense, *(y / MBIT for y in curve.fitted.band(dense, "rate")))
    knee, low, high = curve.knee
    look = style.look(curve.congestion_control)
    ends = [[knee - low], [high - knee]]
    axes.errorbar(knee, curve.fitted.parameter("limit", "rate")[0] / MBIT, xerr=ends, fmt=look.marker, color=look.color,
                  mfc="white", capsize=3, zorder=3)  # fmt: skip


def _window_axis(axes: Axes, windows: np.ndarray) -> None:
    """Buffers on which doubling is a step, ticks where they are at least a factor of four apart."""
    axes.set_xscale("log", base=2)
    shown = drawing.apart(windows, APART)
    axes.set_xticks(shown, [f"{window / KIB:g}" for window in shown])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel("socket buffer asked for [KiB]")
