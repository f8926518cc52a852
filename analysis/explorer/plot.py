"""The explorer's plot: points, blocks, medians, means with intervals and model bands as layers of one Bokeh figure.

Bokeh's own models, and not HoloViews' overlays: an answer to a widget only exchanges the layers' data.
"""

from dataclasses import dataclass

import numpy as np
from bokeh.models import (
    BoxSelectTool,
    ColumnDataSource,
    CustomJSTickFormatter,
    FixedTicker,
    HoverTool,
    Range1d,
    ResetTool,
    TapTool,
)
from bokeh.plotting import figure

from analysis.explorer.axes import Axis

LAYERS = ("points", "blocks", "medians", "means", "model")
TITLES = {
    "points": "Points",
    "blocks": "Blocks",
    "medians": "Medians",
    "means": "Means, 95 %",
    "model": "Model, 95 %",
}
AT_FIRST = ("points", "medians", "means", "model")
HEIGHT = 430
CLEAR = {
    "background_fill_color": None,
    "border_fill_color": None,
    "outline_line_color": None,
}  # the page's own colour shows
FROM_ZERO = 0.45  # a vertical axis begins at 0 where the least value is below this part of the largest
EMPTY = {
    "points": (
        "x",
        "y",
        "value",
        "color",
        "dark",
        "marker",
        "alpha",
        "trial",
        "block",
        "order",
        "series",
        "level",
        "settings",
        "note",
        "source",
    ),
    "blocks": ("xs", "ys", "color", "dark", "series"),
    "medians": ("x", "y", "color", "dark", "series"),
    "means": ("x", "y", "low", "high", "color", "dark", "marker", "series"),
    "bands": ("xs", "ys", "color", "dark", "series"),
    "model": ("xs", "ys", "color", "dark", "dash", "series"),
    "published": ("x", "y", "value", "color", "dark", "series", "text"),
}
# A trial as it is hovered over: text in columns, never markup from a dataset.
TOOLTIP = """
<div style="background: var(--card); color: var(--ink); margin: -6px -8px; padding: 8px 11px; max-width: 340px;
 font-size: 13px"><b>@series</b> · @level<br>
<span style="font-size:1.15em">@value</span><br>
block @block, run @order in it<br>@settings<br><i>@note</i><br><small>@trial · click for its transcript</small></div>
"""
# A printed number likewise.
PRINTED = """
<div style="background: var(--card); color: var(--ink); margin: -6px -8px; padding: 8px 11px; max-width: 340px;
 font-size: 13px"><b>@series</b> · published<br>
<span style="font-size:1.15em">@value</span><br><small>@text</small></div>
"""
# The layers are switched in the browser, which needs no answer.
SWITCH = """
for (const [name, them] of Object.entries(renderers))
  for (const it of them) it.visible = cb_obj.active.some((at) => names[at] === name)
"""
NUMBERS = """
const size = Math.abs(tick)
if (size >= 1e6 || (size > 0 && size < 1e-3)) return tick.toExponential().replace("e+", "e")
return String(Number(tick.toPrecision(6))).replace("-", "\\u2212")
"""


@dataclass(frozen=True)
class Plot:
    """A figure and the data of its layers; `renderers` are what a layer's visibility switches."""

    figure: figure
    data: dict[str, ColumnDataSource]
    renderers: dict[str, list]


def empty(y_axis_type: str = "linear") -> Plot:
    """A plot without data, whose vertical axis is linear or log."""
    shown = figure(
        x_range=Range1d(0, 1),
        y_range=Range1d(0.1, 1),
        y_axis_type=y_axis_type,
        height=HEIGHT,
        sizing_mode="stretch_width",
        tools="pan,box_zoom,wheel_zoom",
        active_drag="pan",
        active_scroll=None,
        toolbar_location="above",
        name="trials-plot",
        min_border_right=18,
        **CLEAR,
    )
    shown.toolbar.logo = None
    shown.xgrid.visible = False
    shown.yaxis.formatter = CustomJSTickFormatter(code=NUMBERS)
    data = {name: ColumnDataSource({column: [] for column in columns}, name=name) for name, columns in EMPTY.items()}
    bands = shown.patches("xs", "ys", source=data["bands"], fill_color="color", fill_alpha=0.16, line_color=None)
    blocks = shown.multi_line("xs", "ys", source=data["blocks"], line_color="color", line_alpha=0.35, line_width=1)
    model = shown.multi_line("xs", "ys", source=data["model"], line_color="color", line_dash="dash", line_width=2)
    points = shown.scatter(
        "x",
        "y",
        source=data["points"],
        marker="marker",
        size=7,
        fill_color="color",
        line_color=None,
        fill_alpha="alpha",
        hover_line_color="color",
        hover_fill_alpha=1,
        nonselection_fill_alpha="alpha",
        selection_line_color="color",
        selection_fill_alpha=1,
        name="trials",
    )
    points.selection_glyph.size = 12
    points.hover_glyph.line_width = 4
    medians = shown.scatter(
        "x", "y", source=data["medians"], marker="dash", size=20, line_color="color", line_width=2.5
    )
    whiskers = shown.segment("x", "low", "x", "high", source=data["means"], line_color="color", line_width=2)
    means = shown.scatter(
        "x",
        "y",
        source=data["means"],
        marker="marker",
        size=9,
        fill_color="white",
        line_color="color",
        line_width=1.8,
        name="hollow",
    )
    published = shown.scatter(
        "x", "y", source=data["published"], marker="x", size=12, line_color="color", line_width=2.5
    )
    shown.add_tools(
        HoverTool(renderers=[published], tooltips=PRINTED, attachment="horizontal", limit=1),
        HoverTool(
            renderers=[points], tooltips=TOOLTIP, point_policy="snap_to_data", attachment="horizontal", limit=1
        ),
        TapTool(renderers=[points]),
        BoxSelectTool(renderers=[points], persistent=False),
        ResetTool(),
    )
    for untouched in (bands, blocks, model, medians, whiskers, means, published):
        untouched.nonselection_glyph = untouched.selection_glyph = None
    renderers = {
        "points": [points],
        "blocks": [blocks],
        "medians": [medians],
        "means": [whiskers, means],
        "model": [model, bands],
    }
    for name in LAYERS:
        for renderer in renderers[name]:
            renderer.visible = name in AT_FIRST
    return Plot(shown, data, renderers)


def lay_out(plot: Plot, axis: Axis, y_title: str, y_values: np.ndarray) -> None:
    """Set the axes to a view: ticks at the levels, and ranges that show all values."""
    shown = plot.figure
    shown.xaxis.ticker = FixedTicker(ticks=list(axis.labels))
    shown.xaxis.major_label_overrides = axis.labels
    shown.xaxis.axis_label, shown.yaxis.axis_label = axis.title, y_title
    crowded = sum(map(len, axis.labels.values())) > 60
    shown.xaxis.major_label_orientation = 0.6 if crowded else "horizontal"
    _range(shown.x_range, *axis.ends)
    _range(shown.y_range, *y_ends(y_values, logarithmic(plot)))


def laid_out(plot: Plot, axis: Axis, y_title: str) -> Plot:
    """The plot with axes that show all of its points, intervals and printed numbers."""
    shown = (("points", "y"), ("means", "low"), ("means", "high"), ("published", "y"))
    seen = [plot.data[name].data[column] for name, column in shown]
    lay_out(plot, axis, y_title, np.concatenate(seen, dtype=float))
    return plot


def logarithmic(plot: Plot) -> bool:
    """Whether the plot's vertical axis is logarithmic."""
    return type(plot.figure.y_scale).__name__ == "LogScale"


def y_ends(values: np.ndarray, log: bool) -> tuple[float, float]:
    """The vertical range: from 0 on a linear axis, unless that would flatten all that differs."""
    known = values[np.isfinite(values) & ((values > 0) | (not log))]
    if not known.size:
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = float(known.min()), float(known.max())
    if log:
        return low / 1.3, high * 1.3
    if low >= 0 and low < FROM_ZERO * high:
        return 0.0, high * 1.06 or 1.0
    room = 0.12 * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room


def _range(range_: Range1d, low: float, high: float) -> None:
    range_.update(start=low, end=high, reset_start=low, reset_end=high)


def same(old, new) -> bool:
    """Whether two columns hold the same; NaN is NaN."""
    old, new = np.asarray(old), np.asarray(new)
    if old.shape != new.shape:
        return False
    return bool(np.array_equal(old, new, equal_nan=True)) if new.dtype.kind == "f" else bool((old == new).all())
