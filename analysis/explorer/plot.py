"""The view as one Bokeh figure: every trial, blocks, medians, means with intervals, the model and printed numbers.

It is drawn anew on every change. Its colours are those of a light page; a dark one inverts them by a filter.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from bokeh.embed import file_html
from bokeh.models import (
    CDSView, ColumnDataSource, CustomJS, CustomJSFilter, CustomJSTickFormatter, FixedTicker, Glyph,
    GlyphRenderer, HoverTool, Legend, LegendItem, MultiLine, Patches, Range1d, Scatter, Segment, TapTool,
)  # fmt: skip
from bokeh.plotting import figure
from bokeh.resources import INLINE

from analysis import style
from analysis.explorer.data import axis_label
from analysis.explorer.shown import PUBLISHED, Shown
from analysis.statistics.intervals import NAMES as AVERAGES
from runners.journal import write_whole

# What Bokeh calls matplotlib's markers, and its lines.
MARKERS = {
    "o": "circle", "s": "square", "^": "triangle", "v": "inverted_triangle", "D": "diamond",
    "P": "plus", "X": "square_pin", "*": "star", "p": "hex",
}  # fmt: skip
DASHES = {"-": "solid", "--": "dashed", ":": "dotted", "-.": "dashdot"}
# Looks for levels without one of their own, told apart from each other; markers of further datasets.
SPARE = (
    "gige", "10gige", "100gige", "gige_bonded", "ddr_infiniband", "25gige", "unshaped", "scenario 3", "noise 2",
)  # fmt: skip
BESIDE = {"star": "★", "hex": "⬢", "plus": "✚"}
DOUBLING = 4.0  # levels this many times apart are laid out by doublings
ASIDE, ALL_ASIDE = (
    0.14,
    0.55,
)  # of the axis's mean step: between neighbouring series, and all of them
SPREAD = 0.55  # of the distance between series: over which the blocks of one are spread
CLOSE = 0.045  # of the axis: tick labels that are closer would collide
MOST_LABELS = 60  # characters of tick labels beside each other, beyond which they are slanted
COUNTS, LEFT_OUT = 0.55, 0.13  # opacity of a trial in the statistics, and of one that is not
FINE = 90  # places at which a fitted curve is drawn
FROM_ZERO = (
    0.45  # a vertical axis begins at 0 where the least value is below this part of the largest
)
INK, QUIET, LINE = "#222222", "#5f6368", "#d0d1cc"
FRAME = {
    "tools": "pan,box_zoom,wheel_zoom,reset",
    "active_drag": None,  # a finger scrolls the page
    "active_scroll": None,
    "toolbar_location": "above",
    "min_border_right": 18,
    "background_fill_color": None,  # the page's own colour shows
    "border_fill_color": None,
    "outline_line_color": None,
    "stylesheets": [".bk-Canvas { filter: var(--plot-filter) }"],  # of a dark page
}
AXES = {
    "axis_line_color": LINE,
    "major_tick_line_color": LINE,
    "minor_tick_line_color": None,
    "axis_label_text_color": INK,
    "axis_label_text_font_style": "normal",
    "axis_label_text_font_size": "14px",
    "major_label_text_color": QUIET,
    "major_label_text_font_size": "13px",
}
LEGEND = {
    "label_text_color": INK,
    "label_text_font_size": "13px",
    "background_fill_color": None,
    "border_line_color": None,
    "margin": 0,
}
WRAPPED = """
.bk-grid { display: flex; flex-wrap: wrap; gap: 2px 14px !important; max-width: min(100vw - 470px, 1290px) }
@media (max-width: 900px) { .bk-grid { max-width: calc(100vw - 100px) } }
"""
CARD = """<div style="background: var(--card); color: var(--ink); margin: -6px -8px; padding: 8px 11px;
 max-width: 340px; font-size: 13px"><b>@series</b> · {}</div>"""
VALUE = '<br><span style="font-size:1.15em">{}@y{{%.4g}} {}</span><br>'
NUMBERS = """
const size = Math.abs(tick)
if (size >= 1e6 || (size > 0 && size < 1e-3)) return tick.toExponential().replace("e+", "e")
return String(Number(tick.toPrecision(6))).replace("-", "\\u2212")
"""
# A click on the legend hides a series or shows it again: every layer has a column that says of which series a row is.
HIDE = """
const hidden = filter.tags, name = cb_obj.item.label.value
filter.tags = hidden.includes(name) ? hidden.filter((one) => one !== name) : [...hidden, name]
filter.change.emit()
"""
VISIBLE = "return [...source.data.series.keys()].filter((row) => !this.tags.includes(source.data.series[row]))"


@dataclass(frozen=True)
class Look:
    """A series' name, its colour, Bokeh's marker and the dash pattern of its line."""

    series: str
    color: str
    marker: str
    dash: str | list[int]


def look_of(look: style.Look, series: str, marker: str = "") -> Look:
    """A look of the report's figures, as Bokeh has it; with a marker of its own where one is given."""
    dash = [2 * int(part) for part in look.line[1]] if not isinstance(look.line, str) else ""
    marker = marker or MARKERS.get(look.marker, "circle")
    return Look(series, look.color, marker, dash or DASHES[look.line])


def looks(shown: Shown) -> dict[tuple[str, Hashable], Look]:
    """The look of each curve by source and level: as in the report's figures, else one that no other level has."""
    view, trials = shown.view, shown.first
    levels = trials.factors_of(view.y)[view.series]
    own = {level: style.LOOKS[level] for level in levels if level in style.LOOKS}
    taken, spare = {look.color for look in own.values()}, [style.LOOKS[name] for name in SPARE]
    spare = [look for look in spare if look.color not in taken] or spare
    others = [level for level in levels if level not in own]
    own |= {level: spare[at % len(spare)] for at, level in enumerate(others)}
    markers = ["", *BESIDE]
    found = {}
    for at, (source, opened) in enumerate(shown.opened.items()):
        kind = f", {opened.evidence}" if len(shown.opened) > 1 else ""
        for level in view.shown:
            name = trials.called(view.series, level) + kind
            found[source, level] = look_of(own[level], name, markers[at % len(markers)])
    return found


class Axis:
    """Where the levels of the horizontal axis are: doublings are steps, and what has no number stands in a row."""

    def __init__(self, shown: Shown) -> None:
        view, first = shown.view, shown.first
        every = [trials.factors_of(view.y)[view.x] for trials in shown.opened.values()]
        levels = list(dict.fromkeys(sum(every, [])))
        self.numeric = view.x not in first.switches and not isinstance(levels[0], str)
        levels = sorted(levels) if self.numeric else levels
        self.by_doublings = self.numeric and 0 < DOUBLING * levels[0] <= levels[-1]
        at = self.place(np.array(levels if self.numeric else range(len(levels)), float))
        self.places = dict(zip(levels, at.tolist()))
        self.span = float(np.ptp(at))
        self.step = self.span / max(len(levels) - 1, 1) or 1.0
        self.series = view.shown
        self.labels: dict[float, str] = {}
        for level, place in self.places.items():
            if not (self.numeric and self.labels) or place - max(self.labels) >= CLOSE * self.span:
                self.labels[place] = first.ticked(view.x, level).replace("\u00a0", " ")

    def place(self, values: np.ndarray) -> np.ndarray:
        """Where numbers stand."""
        return np.log2(values) if self.by_doublings else values

    @property
    def apart(self) -> float:
        """The distance between neighbouring series at one level."""
        return self.step * min(ASIDE, ALL_ASIDE / len(self.series))

    def at(self, levels: pd.Series, series: pd.Series) -> pd.Series:
        """Where points stand: series at one level are moved sideways, so that they do not hide each other."""
        middle = (len(self.series) - 1) / 2
        aside = {level: self.apart * (at - middle) for at, level in enumerate(self.series)}
        places = self.place(levels.astype(float)) if self.numeric else levels.map(self.places)
        return places + series.map(aside)

    def spread(self, blocks: pd.Series) -> np.ndarray:
        """How far each trial is moved from its series' place by its block, the first to the last; shape (trials,)."""
        ranks = np.unique(blocks, return_inverse=True)[1]
        most = ranks.max(initial=0)
        return SPREAD * self.apart * (ranks / most - 0.5) if most else np.zeros(len(ranks))

    @property
    def ends(self) -> tuple[float, float]:
        """The range that shows all levels with room at either side."""
        room = 0.03 * self.span + 0.3 * self.step
        return min(self.places.values()) - room, max(self.places.values()) + room


def draw(shown: Shown) -> figure:
    """The figure of a view; the selection of its model `points` says which trials were clicked."""
    view, axis, style_of = shown.view, Axis(shown), looks(shown)
    points = _placed(shown, shown.points(), axis, style_of)
    trials, published = (points[(points.evidence == PUBLISHED) == of] for of in (False, True))
    means = _placed(shown, shown.summary(), axis, style_of)
    most = means.groupby("source").n.max()
    solid = {source: COUNTS if n > 1 else 1.0 for source, n in most.items()}
    trials = trials.assign(
        x=trials.x + axis.spread(trials.block),
        alpha=np.where(trials.counts, trials.source.map(solid), LEFT_OUT),
        note=trials.reason.where(trials.reason == "", "does not count: " + trials.reason),
    )
    means = means.rename(columns={"mean": "y"})[means.n > 1]  # one block is its own point
    ends = np.concatenate([points.y, means.low, means.high]).astype(float)
    drawn = figure(
        x_range=Range1d(*axis.ends),
        y_range=Range1d(*_y_ends(ends, "log" in view.layers)),
        y_axis_type="log" if "log" in view.layers else "linear",
        x_axis_label=axis_label(view.x),
        y_axis_label=shown.quantity.with_unit(shown.quantity.label),
        name="view",
        sizing_mode="stretch_both",
        min_height=340,
        **FRAME,
    )
    dress(drawn, axis.labels)
    visible = CustomJSFilter(code=VISIBLE)

    def layer(glyph: Glyph, table: pd.DataFrame, name: str = "", **more) -> GlyphRenderer:
        source = ColumnDataSource(table.to_dict("series"), name=name)
        return drawn.add_glyph(source, glyph, view=CDSView(filter=visible), **more)

    outline = {"line_color": "color", "fill_color": "white"}
    unit = shown.quantity.unit
    if "model" in view.layers:
        lines, bands = _models(shown, axis, style_of)
        layer(Patches(fill_color="color", fill_alpha=0.16, line_color=None), bands)
        layer(MultiLine(line_color="color", line_dash="dash", line_width=2), lines, "model")
    if "blocks" in view.layers:
        layer(MultiLine(line_color="color", line_alpha=0.35), _blocks(trials), "blocks")
    if "points" in view.layers:
        dot = {"marker": "marker", "fill_color": "color"}
        glyph = Scatter(size=7, line_color=None, fill_alpha="alpha", **dot)
        chosen = Scatter(size=12, line_color=INK, **dot)
        dots = layer(glyph, trials, "points", selection_glyph=chosen, nonselection_glyph=None)
        last = "block @block, run @order in it<br><i>@note</i><br><small>@trial_id · click for its transcript</small>"
        drawn.add_tools(
            _hover(dots, VALUE.format("", unit) + last, "left"), TapTool(renderers=[dots])
        )
    if "medians" in view.layers:
        layer(Scatter(y="median", marker="dash", size=20, line_width=2.5, **outline), means)
    if "means" in view.layers:
        layer(Segment(x0="x", y0="low", x1="x", y1="high", line_color="color", line_width=2), means)
        glyph = Scatter(marker="marker", size=9, line_width=1.8, **outline)
        of = shown.first.unit_of_repetition
        last = f"95 % t interval @low{{%.4g}} to @high{{%.4g}}, n = @n {of}s"
        value = VALUE.format(f"{AVERAGES[shown.quantity.kind]} mean ", unit)
        drawn.add_tools(_hover(layer(glyph, means, "means"), value + last, "right"))
    if len(published):
        cross = Scatter(marker="x", size=12, line_width=2.5, **outline)
        crosses = layer(cross, published, PUBLISHED)
        drawn.add_tools(_hover(crosses, VALUE.format("published: ", unit) + "@source", "right"))
    _add_legend(drawn, layer, shown, style_of, visible)
    return drawn


def dress(drawn: figure, ticks: Mapping[float, str]) -> figure:
    """The same figure with the page's look, and with these ticks below it."""
    drawn.toolbar.logo = None
    drawn.xgrid.visible = False
    drawn.ygrid.grid_line_color, drawn.ygrid.grid_line_alpha = INK, 0.1
    drawn.yaxis.formatter = CustomJSTickFormatter(code=NUMBERS)
    drawn.xaxis.ticker, drawn.xaxis.major_label_overrides = (
        FixedTicker(ticks=list(ticks)),
        dict(ticks),
    )
    drawn.xaxis.major_label_orientation = (
        0.6 if len("".join(ticks.values())) > MOST_LABELS else "horizontal"
    )
    for axis in drawn.axis:
        axis.update(**AXES)
    return drawn


def _hover(renderer: GlyphRenderer, text: str, side: str) -> HoverTool:
    formats = dict.fromkeys(("@y", "@low", "@high"), "printf")
    said = CARD.format("@level" + text)
    return HoverTool(
        renderers=[renderer], tooltips=said, formatters=formats, attachment=side, limit=1
    )


def _add_legend(drawn: figure, layer: Callable, shown: Shown, style_of: Mapping, visible) -> None:
    """A mark for each curve, with its line where it has one; a click hides the curve, or shows it again."""
    entries = list(style_of.values())
    rows = pd.DataFrame([vars(entry) for entry in entries]).assign(x=np.nan, y=np.nan)
    rows = rows.assign(xs=[[np.nan]] * len(rows), ys=[[np.nan]] * len(rows))
    marks = [layer(Scatter(marker="marker", size=9, fill_color="color", line_color=None), rows)]
    if "model" in shown.view.layers and any(curve.is_drawn for curve in shown.curves):
        marks.append(layer(MultiLine(line_color="color", line_dash="dash"), rows))
    items = [
        LegendItem(label=entry.series, renderers=marks, index=at)
        for at, entry in enumerate(entries)
    ]
    place = {"location": "left", "orientation": "horizontal", "stylesheets": [WRAPPED]}
    legend = Legend(items=items, **place, **LEGEND)
    legend.js_on_event("legend_item_click", CustomJS(args={"filter": visible}, code=HIDE))
    drawn.add_layout(legend, "above")


def _placed(shown: Shown, table: pd.DataFrame, axis: Axis, style_of: Mapping) -> pd.DataFrame:
    """A table of points with their places and looks."""
    view, first = shown.view, shown.first
    sources = table.source.where(table.source.isin(view.sources), view.sources[0])
    found = [style_of[key] for key in zip(sources, table[view.series])]
    levels = {level: first.called(view.x, level) for level in table[view.x].unique()}
    placed = table.assign(
        x=axis.at(table[view.x], table[view.series]), level=table[view.x].map(levels)
    )
    for part in ("series", "color", "marker"):
        placed[part] = [getattr(look, part) for look in found]
    return placed.rename(columns={view.y: "y"})


def _blocks(trials: pd.DataFrame) -> pd.DataFrame:
    """Each block's own line through the points that count."""
    counted = trials[trials.counts].sort_values("x")
    lines = counted.groupby(["source", "series", "color", "block"], sort=False)[["x", "y"]].agg(
        list
    )
    return lines.reset_index().rename(columns={"x": "xs", "y": "ys"})


def _models(shown: Shown, axis: Axis, style_of: Mapping) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The fitted curves that follow their points, and their 95 % bands over the blocks; one block has no band."""
    lines, bands = [], []
    for curve in (curve for curve in shown.curves if curve.is_drawn):
        levels, look = curve.table.columns.to_numpy(float), style_of[curve.source, curve.level]
        x = np.geomspace(levels.min(), levels.max(), FINE)
        mean, low, high = curve.fitted.band(x)
        place = axis.place(x)
        lines.append({**vars(look), "xs": place, "ys": mean})
        if np.isfinite(low).all():
            around = np.concatenate([place, place[::-1]]), np.concatenate([low, high[::-1]])
            bands.append({**vars(look), "xs": around[0], "ys": around[1]})
    columns = ["series", "color", "dash", "xs", "ys"]
    return pd.DataFrame(lines, columns=columns), pd.DataFrame(bands, columns=columns)


def _y_ends(values: np.ndarray, log: bool) -> tuple[float, float]:
    """The vertical range: from 0 on a linear axis, unless that would flatten all that differs."""
    known = values[np.isfinite(values) & ((values > 0) | (not log))]
    if not known.size:
        return (0.1, 1.0) if log else (0.0, 1.0)
    low, high = float(known.min()), float(known.max())
    if log:
        return low / 1.3, high * 1.3
    if 0 <= low < FROM_ZERO * high:
        return 0.0, high * 1.06
    room = 0.12 * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room


def save(drawn: figure, file: str) -> None:
    """Write a figure as a page that needs nothing else."""
    write_whole(Path(file), file_html(drawn, INLINE, "Falloff"))
