"""The view as one Bokeh figure: every trial, and means with their intervals.

It is redrawn on every change. Its colours suit a light page; a dark page inverts them with a
filter.
"""

from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from bokeh.embed import file_html
from bokeh.models import (
    ColumnDataSource,
    FixedTicker,
    HoverTool,
    Legend,
    NoOverlap,
    PlainText,
    Range1d,
    Scatter,
    TapTool,
)  # fmt: skip
from bokeh.plotting import figure
from bokeh.resources import INLINE

from analysis.explorer.data import axis_label, with_unit
from analysis.explorer.view import PageContent
from analysis.quoting import as_written
from analysis.statements import style
from analysis.statistics.intervals import AVERAGES
from runners.records.journal import write_whole

# Bokeh's names of matplotlib's markers.
MARKERS = {
    "o": "circle", "s": "square", "^": "triangle", "v": "inverted_triangle", "D": "diamond",
    "P": "plus", "X": "square_pin", "*": "star", "p": "hex",
}  # fmt: skip
DOUBLING = 4.0  # levels this many times apart get an axis of doublings
# Fractions of the axis's mean step: between neighbouring series, and for all of them together.
ASIDE, ALL_ASIDE = 0.14, 0.55
SPREAD = 0.55  # of the distance between series: the spread of one series' blocks
LONGEST_LINE = 48  # characters of the vertical axis's label beside the lowest plot
MOST_LABELS = 60  # characters of tick labels side by side; longer rows are slanted
COUNTS, LEFT_OUT = 0.55, 0.13  # opacity of a trial in the statistics, and of one left out
ROOM = 0.05  # of the vertical axis: space beyond the data
FROM_ZERO = 0.45  # the axis begins at 0 if the smallest value is below this share of the largest
INK, QUIET, LINE = "#222222", "#5f6368", "#d0d1cc"
FRAME = {
    "tools": "pan,box_zoom,wheel_zoom,save,reset",
    "active_drag": None,  # a finger drag scrolls the page
    "active_scroll": None,
    "toolbar_location": "above",
    "background_fill_color": None,  # the page's own colour shows
    "border_fill_color": None,
    "outline_line_color": None,
    "stylesheets": [".bk-Canvas { filter: var(--plot-filter) }"],  # of a dark page
}
AXES = {
    "axis_line_color": LINE,
    "major_tick_line_color": LINE,
    "minor_tick_line_color": None,
    "axis_label_text_font_style": "normal",
    "axis_label_text_font_size": "14px",
    "major_label_text_font_size": "13px",
}
WRAPPED = """
.bk-grid {
  display: flex; flex-wrap: wrap; gap: 2px 14px !important;
  max-width: min(100vw - 470px, 1290px)
}
@media (max-width: 900px) { .bk-grid { max-width: calc(100vw - 100px) } }
"""
LEGEND = {
    "location": "left",
    "orientation": "horizontal",
    "click_policy": "hide",
    "background_fill_color": None,
    "border_line_color": None,
    "margin": 0,
    "stylesheets": [WRAPPED],
}
CARD = """<div style="background: var(--card); color: var(--ink); margin: -6px -8px;
padding: 8px 11px; max-width: 340px; font-size: 13px"><b>$name</b> · @level<br>
<span style="font-size:1.15em">{}</span><br>{}</div>"""
CLICK = (
    "block @block, run @order in it<br><i>@note</i><br>"
    "<small>@trial_id · click for its transcript</small>"
)


def looks(shown: PageContent) -> dict[Any, style.Look]:
    """The look of each series: that of the report's figures, else one in a colour that no other
    level has."""
    levels = shown.trials.factors_of(shown.view.y)[shown.view.series]
    of_report = {level: style.LOOKS[level] for level in levels if level in style.LOOKS}
    taken = {look.color for look in of_report.values()}
    by_color = {look.color: look for look in style.LOOKS.values() if look.color not in taken}
    spare = cycle(by_color.values())
    return {level: of_report.get(level) or next(spare) for level in levels}


class Axis:
    """The places of levels on the horizontal axis: doublings are equal steps, and levels without a
    number stand in a row."""

    def __init__(self, shown: PageContent) -> None:
        view, trials = shown.view, shown.trials
        levels = trials.factors_of(view.y)[view.x]
        self.numeric = trials.is_number(view.x)
        if self.numeric:
            levels = sorted(levels)
        self.by_doublings = self.numeric and 0 < DOUBLING * levels[0] <= levels[-1]
        at = self.place(np.array(levels if self.numeric else range(len(levels)), float))
        self.places = dict(zip(levels, at.tolist()))
        span = float(np.ptp(at))
        self.apart = (span / max(len(levels) - 1, 1) or 1.0) * min(
            ASIDE, ALL_ASIDE / len(view.shown)
        )
        middle = (len(view.shown) - 1) / 2
        self.aside = {level: self.apart * (at - middle) for at, level in enumerate(view.shown)}
        labels = {at: trials.ticked(view.x, level) for level, at in self.places.items()}
        self.labels = {at: label.replace("\u00a0", " ") for at, label in labels.items()}

    def place(self, values: Any) -> Any:
        """The places of numbers."""
        return np.log2(values) if self.by_doublings else values

    def at(self, levels: pd.Series, series: Any) -> np.ndarray:
        """The places of points. Series at one level are shifted sideways, so that they do not hide
        each other."""
        places = self.place(levels.astype(float)) if self.numeric else levels.map(self.places)
        return places.to_numpy() + self.aside[series]


def draw(shown: PageContent, before: figure | None = None) -> figure:
    """The figure of a view. Each series has a source `points`, whose selection holds the clicked
    trials, and a source `means` if there are several blocks. A click on the legend hides both.

    If the figure `before` has the same axes and series, it is refilled, so that a click is answered
    at once.
    """
    view, several = shown.view, bool(shown.summary.n.max() > 1)
    frame = [view.source, view.x, view.series, view.shown, view.log, several]
    drawn = before if before and before.tags == frame else _framed(shown, several)
    drawn.tags = frame
    _fill(drawn, shown, several)
    return drawn


def _framed(shown: PageContent, several: bool) -> figure:
    """Axes, legend and the marks of each series, still without data."""
    view, trials = shown.view, shown.trials
    drawn = figure(
        y_range=Range1d(),
        y_axis_type="log" if view.log else "linear",
        x_axis_label=axis_label(view.x),
        name="view",
        sizing_mode="stretch_both",
        min_height=340,
        **FRAME,
    )
    axis = Axis(shown)
    dress(drawn, axis.labels)
    if axis.numeric:
        drawn.xaxis.major_label_policy = NoOverlap()
    tips: dict[str, list] = {"points": [], "means": []}
    look_of = looks(shown)
    for level in view.shown:
        look, name = look_of[level], trials.called(view.series, level)
        color, series = look.color, {"name": name, "legend_label": name}
        marker = MARKERS.get(look.marker, "circle")
        points, means = (ColumnDataSource(name=layer) for layer in tips)
        looks_ = {"marker": marker, "fill_color": color, "fill_alpha": "alpha", "line_color": None}
        dots = drawn.scatter("x", "y", source=points, size=7, **looks_, **series)
        dots.nonselection_glyph = None
        dots.selection_glyph = Scatter(marker=marker, size=12, fill_color=color, line_color=INK)
        tips["points"].append(dots)
        curve = ColumnDataSource(name="curves")
        drawn.line("x", "y", source=curve, color=color, width=1.6, alpha=0.6, **series)
        if several:  # a single block is already a point
            drawn.segment("x", "low", "x", "high", source=means, color=color, width=2, **series)
            looks_ = {"marker": marker, "fill_color": "white", "line_color": color}
            dots = drawn.scatter("x", "y", source=means, size=9, line_width=1.8, **looks_, **series)
            tips["means"].append(dots)
    formats = dict.fromkeys(("@y", "@low", "@high"), "printf")
    for marks, side in zip(tips.values(), ("left", "right")):
        drawn.add_tools(HoverTool(renderers=marks, formatters=formats, attachment=side, limit=1))
    drawn.add_tools(TapTool(renderers=tips["points"]))
    return drawn


def _fill(drawn: figure, shown: PageContent, several: bool) -> None:
    """Put a view's data into its figure, with their description."""
    view, trials, quantity, axis = shown.view, shown.trials, shown.quantity, Axis(shown)
    drawn.yaxis.axis_label = fill(with_unit(quantity.label, quantity.unit), LONGEST_LINE)
    interval = f"95 % t interval @low{{%.4g}} to @high{{%.4g}}, n = @n {trials.count(2)[2:]}"
    mean = f"{AVERAGES[quantity.kind]} mean @y{{%.4g}} {quantity.unit}"
    of_points, of_means = (tool for tool in drawn.tools if isinstance(tool, HoverTool))
    of_points.tooltips = CARD.format(f"@y{{%.4g}} {quantity.unit}", CLICK)
    of_means.tooltips = CARD.format(mean, interval)
    points = shown.points
    ranks = points.block.rank(method="dense") - 1
    points = pd.DataFrame({
        "series": points[view.series],
        "x": points[view.x],
        "y": points[view.y],
        "aside": SPREAD * axis.apart * (ranks / max(ranks.max(), 1) - 0.5 * several),
        "alpha": np.where(points.counts, COUNTS if several else 1.0, LEFT_OUT),
        "note": [reason and f"does not count: {as_written(reason)}" for reason in points.reason],
        **points[["trial_id", "block", "order"]],
    })  # fmt: skip
    means = shown.summary[shown.summary.n > 1].rename(columns={"mean": "y"})
    ends = _y_ends(pd.concat([points.y, means.low, means.high]), view.log)
    drawn.y_range.update(**ends, **{f"reset_{end}": at for end, at in ends.items()})
    layers = {"points": points, "means": means, "curves": shown.curves}
    levels = {trials.called(view.series, level): level for level in view.shown}
    for source, name in {(marks.data_source, marks.name) for marks in drawn.renderers}:
        rows, level = layers[source.name], levels[name]
        rows = rows[rows.series == level]
        x = axis.at(rows.x, level) + rows.get("aside", 0.0)
        called = rows.x.map({x: trials.called(view.x, x) for x in rows.x.unique()})
        rows = rows.assign(x=x, level=called).drop(columns=["series", "aside"], errors="ignore")
        source.data = {column: rows[column].to_numpy() for column in rows}


def dress(drawn: figure, ticks: Mapping[float, str]) -> None:
    """Give a figure the page's look, and its ticks."""
    drawn.toolbar.logo = None
    drawn.xgrid.visible = False
    drawn.ygrid.grid_line_color, drawn.ygrid.grid_line_alpha = INK, 0.1
    drawn.add_layout(Legend(**LEGEND), "above")
    drawn.xaxis.ticker = FixedTicker(ticks=list(ticks))
    # Bokeh would take $$ in a bare text for TeX.
    drawn.xaxis.major_label_overrides = {at: PlainText(text) for at, text in ticks.items()}
    if len("".join(ticks.values())) > MOST_LABELS:
        drawn.xaxis.major_label_orientation = 0.6
    for axis in drawn.axis:
        axis.update(**AXES)


def _y_ends(values: pd.Series, log: bool) -> dict[str, float]:
    """The ends of the vertical axis: from 0, unless that would flatten all differences."""
    values = values[np.isfinite(values) & ((values > 0) | (not log))]
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    if log:
        room = (high / low) ** ROOM if high > low else 2.0
        return {"start": low / room, "end": high * room}
    room = ROOM * (high - low) or abs(high) or 1.0
    start = 0.0 if 0 <= low < FROM_ZERO * high else low - room
    return {"start": start, "end": high + room}


def save(drawn: figure, file: str) -> None:
    """Write a figure as a self-contained page."""
    write_whole(Path(file), file_html(drawn, INLINE, "Falloff"))
