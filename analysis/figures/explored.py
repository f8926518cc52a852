"""The explorer's view as a figure: every trial, medians, means with intervals, models, and the sentence above it."""

from io import BytesIO
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.explorer.axes import axis
from analysis.explorer.estimates import Curve, selected
from analysis.explorer.layers import FINE
from analysis.explorer.marks import looks
from analysis.explorer.shown import Shown

WIDE = 84  # characters of a line above the axes


def draw(shown: Shown) -> Figure:
    """One figure of the view; datasets of further evidence have open marks."""
    view = shown.view
    places = axis([shown.opened[name] for name in view.sources], view.abscissa)
    first = shown.opened[view.sources[0]]
    look = looks(first.factors[view.series])
    with style.styled():
        figure, axes = drawing.new_figure(4.2)
        for name in view.sources:
            for position, level in enumerate(view.shown):
                aside = places.aside(position, len(view.shown))
                _trials(axes, shown, name, level, look[level], places, aside)
        for at, curve in enumerate(shown.curves):
            aside = places.aside(view.shown.index(curve.level), len(view.shown))
            _points(axes, curve, look[curve.level], places, aside)
            if shown.fitted and shown.fitted[at].fit is not None and places.place is not None:
                _model(axes, shown, at, look[curve.level], places)
        _printed(axes, shown, look, places)
        axes.set_xticks(list(places.labels), list(places.labels.values()))
        axes.set(xlim=places.ends, xlabel=places.title, ylabel=first.quantities[view.ordinate].axis)
        axes.legend(fontsize=7.5)
        axes.set_title(
            "\n".join(fill(it.sentence, WIDE) for it in shown.judgements.values()), fontsize=7.5, loc="left"
        )
        return figure


def svg(shown: Shown) -> bytes:
    """The figure as SVG."""
    written = BytesIO()
    style.save(draw(shown), written)
    return written.getvalue()


def _trials(axes: Axes, shown: Shown, name: str, level, look: style.Look, places, aside: float) -> None:
    trials, view = shown.opened[name], shown.view
    rows = selected(view, trials)
    rows = rows[rows[view.series] == level]
    spread = pd.Series(places.spread(rows.block.to_numpy(), len(view.shown)), rows.index)
    fill_ = look.color if name == view.sources[0] else "none"
    for counts, alpha in ((False, 0.12), (True, 0.45)):
        these = rows[rows.counts == counts]
        x = these[view.abscissa].map(places.places) + aside + spread[these.index]
        axes.plot(
            x,
            these[view.ordinate],
            look.marker,
            color=look.color,
            mfc=fill_,
            alpha=alpha,
            markersize=3.5,
            linestyle="none",
        )
    label = trials.placed(view.series, level) + (f", {trials.evidence}" if len(view.sources) > 1 else "")
    axes.plot([], [], look.marker, color=look.color, mfc=fill_, linestyle=look.line, label=label)


def _points(axes: Axes, curve: Curve, look: style.Look, places, aside: float) -> None:
    x = np.array([places.places[level] + aside for level in curve.summary.index])
    told = curve.summary
    axes.plot(x, told["median"], "_", color=look.color, markersize=9, linestyle="none")
    spread = np.array([told["mean"] - told.low, told.high - told["mean"]], float)
    axes.errorbar(
        x, told["mean"], spread, fmt=look.marker, color=look.color, mfc="white", capsize=3, markersize=4.5, zorder=3
    )


def _printed(axes: Axes, shown: Shown, look: dict, places) -> None:
    view, cross = shown.view, {"marker": "x", "mew": 1.8, "markersize": 7, "linestyle": "none", "zorder": 4}
    beside = shown.printed()
    for level, rows in beside.groupby(view.series) if not beside.empty else ():
        at = rows[view.abscissa]
        x = at.map(places.places) if places.place is None else places.place(at.to_numpy(float))
        aside = places.aside(view.shown.index(level), len(view.shown))
        axes.plot(x + aside, rows.value, color=look[level].color, **cross)
    if not beside.empty:
        axes.plot([], [], color=style.INK, label="published", **cross)


def _model(axes: Axes, shown: Shown, at: int, look: style.Look, places) -> None:
    levels = shown.curves[at].table.columns.to_numpy(float)
    x = (
        np.geomspace(levels.min(), levels.max(), FINE)
        if levels.min() > 0
        else np.linspace(levels.min(), levels.max(), FINE)
    )
    mean, low, high = shown.fitted[at].band(x)
    axes.plot(places.place(x), mean, linestyle=look.line, color=look.color, marker="")
    axes.fill_between(places.place(x), low, high, color=look.color, alpha=0.15, linewidth=0)
