"""The view as one Bokeh figure: every trial, blocks, medians, means with intervals, the model and printed numbers.

It is drawn anew on every change. Its colours are those of a light page; a dark one inverts them by a filter.
"""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from bokeh.embed import file_html
from bokeh.models import (
    BoxSelectTool, CDSView, ColumnDataSource, CustomJS, CustomJSFilter, CustomJSTickFormatter, FixedTicker, Glyph,
    GlyphRenderer, HoverTool, Legend, LegendItem, MultiLine, Patches, Range1d, ResetTool, Scatter, Segment, TapTool,
)  # fmt: skip
from bokeh.plotting import figure
from bokeh.resources import INLINE

from analysis import style
from analysis.explorer.data import SETTINGS, SIZE, Trials, factor_name, known
from analysis.explorer.shown import Curve, Shown, selected
from analysis.explorer.view import View
from analysis.inference.averages import NAMES as AVERAGES
from analysis.wording import byte_size, counted
from runners.journal import write_whole

# What Bokeh calls matplotlib's markers.
MARKERS = {
    "o": "circle", "s": "square", "^": "triangle", "v": "inverted_triangle", "D": "diamond",
    "P": "plus", "X": "square_pin", "*": "star", "p": "hex",
}  # fmt: skip
DASHES = {"-": "solid", "--": "dashed", ":": "dotted", "-.": "dashdot"}
# Looks for levels without one of their own, told apart from each other; markers of further datasets.
SPARE = (
    "gige", "10gige", "100gige", "gige_bonded", "ddr_infiniband", "25gige", "unshaped", "scenario 3", "noise 2",
)  # fmt: skip
BESIDE = ("star", "hex", "plus")
DOUBLING = 4.0  # levels this many times apart are laid out by doublings
ASIDE, ALL_ASIDE = (
    0.14,
    0.55,
)  # of the axis's mean step: between neighbouring series, and all of them
SPREAD = 0.55  # of the distance between series: over which the blocks of one are spread
CLOSE = 0.045  # of the axis: tick labels that are closer would collide
COUNTS, LEFT_OUT = 0.55, 0.13  # opacity of a trial in the statistics, and of one that is not
FINE = 90  # places at which a fitted curve is drawn
FROM_ZERO = (
    0.45  # a vertical axis begins at 0 where the least value is below this part of the largest
)
MOST_LABELS = 60  # characters of tick labels beside each other, beyond which they are slanted
INK, QUIET = "#222222", "#5f6368"
LEGEND = {
    "location": "left",
    "orientation": "horizontal",
    "label_text_color": INK,
    "label_text_font_size": "13px",
    "background_fill_color": None,
    "border_line_color": None,
    "margin": 0,
    "stylesheets": [
        """
        .bk-grid { display: flex; flex-wrap: wrap; gap: 2px 14px !important; max-width: min(100vw - 470px, 1290px) }
        @media (max-width: 900px) { .bk-grid { max-width: calc(100vw - 100px) } }
        """
    ],
}
AXES = {
    "axis_line_color": "#d0d1cc",
    "major_tick_line_color": "#d0d1cc",
    "minor_tick_line_color": None,
    "axis_label_text_color": INK,
    "axis_label_text_font_style": "normal",
    "axis_label_text_font_size": "14px",
    "major_label_text_color": QUIET,
    "major_label_text_font_size": "13px",
}
FRAME = {
    "sizing_mode": "stretch_both",
    "min_height": 340,
    "tools": "pan,box_zoom,wheel_zoom",
    "active_drag": None,  # a finger scrolls the page
    "active_scroll": None,
    "toolbar_location": "above",
    "name": "view",
    "min_border_right": 18,
    "background_fill_color": None,  # the page's own colour shows
    "border_fill_color": None,
    "outline_line_color": None,
    "stylesheets": [".bk-Canvas { filter: var(--plot-filter) }"],  # of a dark page
}
TOLD = [name for name in SETTINGS if name not in ("file", "version", "variant")]
CARD = """<div style="background: var(--card); color: var(--ink); margin: -6px -8px; padding: 8px 11px;
 max-width: 340px; font-size: 13px">{}</div>"""
TRIAL = CARD.format(
    '<b>@series</b> · @level<br><span style="font-size:1.15em">@value</span><br>block @block, run @order in it<br>'
    "@settings<br><i>@note</i><br><small>@trial · click for its transcript</small>"
)
MEAN = CARD.format(
    '<b>@series</b> · @level<br><span style="font-size:1.15em">@kind mean @value</span><br>@interval'
)
PRINTED = CARD.format(
    '<b>@series</b> · published<br><span style="font-size:1.15em">@value</span><br><small>@text</small>'
)
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


def looks(trials: Trials, factor: str, quantity: str) -> dict[Hashable, Look]:
    """The look of each level of a factor: as in the report's figures, else one that no other level has."""
    levels = trials.factors_of(quantity)[factor]
    own = {level: style.LOOKS[level] for level in levels if level in style.LOOKS}
    taken = {look.color for look in own.values()}
    spare = [style.LOOKS[name] for name in SPARE]
    spare = [look for look in spare if look.color not in taken] or spare
    others = [level for level in levels if level not in own]
    chosen = own | {level: spare[at % len(spare)] for at, level in enumerate(others)}
    return {level: look_of(chosen[level], trials.placed(factor, level)) for level in levels}


def look_of(look: style.Look, series: str) -> Look:
    """A look of the report's figures, as Bokeh has it."""
    dash = (
        DASHES[look.line]
        if isinstance(look.line, str)
        else [2 * int(part) for part in look.line[1]]
    )
    return Look(series, look.color, MARKERS.get(look.marker, "circle"), dash)


LooksOf = Mapping[str, Mapping[Hashable, Look]]  # by source and level


class Axis:
    """Where the levels of the horizontal axis are: doublings are steps, and what has no number stands in a row."""

    def __init__(self, view: View, opened: Mapping[str, Trials]) -> None:
        first = next(iter(opened.values()))
        every = (trials.factors_of(view.y).get(view.x, ()) for trials in opened.values())
        levels = list(dict.fromkeys(level for each in every for level in each))
        numbers = all(isinstance(level, (int, float)) for level in levels)
        self.numeric = numbers and view.x not in first.switches
        levels = sorted(levels) if self.numeric else levels
        self.by_doublings = self.numeric and levels[0] > 0 and levels[-1] >= DOUBLING * levels[0]
        at = (
            self.place(np.array(levels, float))
            if self.numeric
            else np.arange(len(levels), dtype=float)
        )
        self.places = dict(zip(levels, at.tolist()))
        self.span = float(np.ptp(at))
        self.step = self.span / max(len(levels) - 1, 1) or 1.0
        self.series = len(view.shown)
        self.title = first.axis(view.x)
        self.labels: dict[float, str] = {}
        for level, place in self.places.items():
            if not (self.numeric and self.labels) or place - max(self.labels) >= CLOSE * self.span:
                self.labels[place] = _tick(view.x, level, first)

    def place(self, values: np.ndarray) -> np.ndarray:
        """Where numbers stand."""
        return np.log2(values) if self.by_doublings else values

    @property
    def apart(self) -> float:
        """The distance between neighbouring series at one level."""
        return self.step * min(ASIDE, ALL_ASIDE / max(self.series, 1))

    def aside(self, position: int) -> float:
        """How far the series at a position is moved sideways, so that series at one level do not hide each other."""
        return self.apart * (position - (self.series - 1) / 2)

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


def _tick(factor: str, level: Hashable, trials: Trials) -> str:
    in_bytes = factor in ("window_bytes", "token_bytes", SIZE)
    if in_bytes and level >= 1024 and math.log2(level).is_integer():
        return byte_size(level).replace("\u00a0", " ")
    return trials.placed(factor, level) if factor in trials.switches else trials.called(level)


def draw(shown: Shown) -> figure:
    """The figure of a view; the selection of its model `points` says which trials were clicked."""
    view, axis = shown.view, Axis(shown.view, shown.opened)
    style_of = _looks_of(shown)
    trials = pd.concat([_trials(shown, name, axis, style_of[name]) for name in view.sources])
    means = pd.concat([_means(shown, each, axis, style_of[each.source]) for each in shown.curves])
    published = _published(shown, axis, style_of[view.sources[0]])
    lines, bands = _models(shown, axis, style_of)
    values = np.concatenate([trials.y, means.low, means.high, published.y])
    drawn = figure(
        x_range=Range1d(*axis.ends),
        y_range=Range1d(*_y_ends(values.astype(float), "log" in view.layers)),
        y_axis_type="log" if "log" in view.layers else "linear",
        x_axis_label=axis.title,
        y_axis_label=shown.first.quantities[view.y].axis,
        **FRAME,
    )
    dress(drawn, axis.labels)
    visible = CustomJSFilter(code=VISIBLE)

    def layer(glyph: Glyph, table: pd.DataFrame | dict, name: str = "", **more) -> GlyphRenderer:
        columns = table.to_dict("series") if isinstance(table, pd.DataFrame) else table
        source = ColumnDataSource(dict(columns))
        source.name = name
        return drawn.add_glyph(source, glyph, view=CDSView(filter=visible), **more)

    if "model" in view.layers:
        layer(Patches(fill_color="color", fill_alpha=0.16, line_color=None), bands)
        layer(MultiLine(line_color="color", line_dash="dash", line_width=2), lines, "model")
    if "blocks" in view.layers:
        blocks = _block_lines(shown, axis, style_of)
        layer(MultiLine(line_color="color", line_alpha=0.35), blocks, "blocks")
    dot = {"marker": "marker", "fill_color": "color"}
    glyph = Scatter(size=7, line_color=None, fill_alpha="alpha", **dot)
    chosen = Scatter(size=12, line_color=INK, **dot)
    points = layer(glyph, trials, "points", selection_glyph=chosen, nonselection_glyph=None)
    points.visible = "points" in view.layers  # the table of trials has them, too
    drawn.add_tools(_hover(points, TRIAL, "left"), TapTool(renderers=[points]))
    drawn.add_tools(BoxSelectTool(renderers=[points], persistent=False))
    outline = {"line_color": "color", "fill_color": "white"}
    if "medians" in view.layers:
        layer(Scatter(y="median", marker="dash", size=20, line_width=2.5, **outline), means)
    if "means" in view.layers:
        layer(Segment(x0="x", y0="low", x1="x", y1="high", line_color="color", line_width=2), means)
        glyph = Scatter(marker="marker", size=9, line_width=1.8, **outline)
        drawn.add_tools(_hover(layer(glyph, means, "means"), MEAN, "right"))
    if len(published):
        cross = Scatter(marker="x", size=12, line_width=2.5, **outline)
        drawn.add_tools(_hover(layer(cross, published, "published"), PRINTED, "horizontal"))
    drawn.add_tools(ResetTool())
    _add_legend(drawn, layer, shown, style_of, visible)
    return drawn


def dress(drawn: figure, ticks: Mapping[float, str]) -> figure:
    """The same figure with the page's look, and with these ticks below it."""
    drawn.toolbar.logo = None
    drawn.xgrid.visible = False
    drawn.ygrid.update(grid_line_color=INK, grid_line_alpha=0.1)
    drawn.yaxis.formatter = CustomJSTickFormatter(code=NUMBERS)
    crowded = sum(map(len, ticks.values())) > MOST_LABELS
    drawn.xaxis.update(
        ticker=FixedTicker(ticks=list(ticks)),
        major_label_overrides=dict(ticks),
        major_label_orientation=0.6 if crowded else "horizontal",
    )
    for axis in drawn.axis:
        axis.update(**AXES)
    return drawn


def _hover(renderer: GlyphRenderer, text: str, side: str) -> HoverTool:
    return HoverTool(
        renderers=[renderer], tooltips=text, attachment=side, limit=1, point_policy="snap_to_data"
    )


def _add_legend(drawn: figure, layer: Callable, shown: Shown, style_of: LooksOf, visible) -> None:
    """A row for each curve, with its mark and line; a click hides the curve, or shows it again."""
    entries = [style_of[curve.source][curve.level] for curve in shown.curves]
    rows = pd.DataFrame([vars(entry) for entry in entries]).assign(x=np.nan, y=np.nan)
    rows["xs"] = rows["ys"] = [[np.nan]] * len(rows)
    symbols = [layer(Scatter(marker="marker", size=9, fill_color="color", line_color=None), rows)]
    if "model" in shown.view.layers and any(_is_drawn(curve) for curve in shown.curves):
        symbols.append(layer(MultiLine(line_color="color", line_dash="dash"), rows))
    items = [
        LegendItem(label=entry.series, renderers=symbols, index=at)
        for at, entry in enumerate(entries)
    ]
    legend = Legend(items=items, **LEGEND)
    legend.js_on_event("legend_item_click", CustomJS(args={"filter": visible}, code=HIDE))
    drawn.add_layout(legend, "above")


def _looks_of(shown: Shown) -> LooksOf:
    """The look of each level by source: further datasets have the colours of the first and markers of their own."""
    view = shown.view
    first = looks(shown.first, view.series, view.y)
    found = {view.sources[0]: first}
    for at, name in enumerate(view.sources[1:]):
        marker = BESIDE[at % len(BESIDE)]
        found[name] = {level: replace(look, marker=marker) for level, look in first.items()}
    if len(found) == 1:
        return found
    return {
        name: {
            level: replace(look, series=f"{look.series}, {shown.opened[name].evidence}")
            for level, look in each.items()
        }
        for name, each in found.items()
    }


def _places(shown: Shown, curve: Curve, axis: Axis) -> np.ndarray:
    aside = axis.aside(shown.view.shown.index(curve.level))
    return np.array([axis.places[level] + aside for level in curve.summary.index], float)


def _trials(shown: Shown, name: str, axis: Axis, look: Mapping[Hashable, Look]) -> pd.DataFrame:
    """One row for each trial of the series shown, valid or not; without a reading its y is NaN."""
    view, trials = shown.view, shown.opened[name]
    rows = selected(view, trials)
    series, levels = rows[view.series], rows[view.x]
    aside = {level: axis.aside(position) for position, level in enumerate(view.shown)}
    alone = (
        max((curve.summary.n.max() for curve in shown.curves if curve.source == name), default=0)
        <= 1
    )
    placed = {level: trials.placed(view.x, level) for level in levels.unique()}
    reasons = "does not count: " + rows.reason.replace("", "no reading")
    return pd.DataFrame(
        {
            "x": levels.map(axis.places) + series.map(aside) + axis.spread(rows.block),
            "y": rows[view.y].astype(float),
            "value": [trials.quantities[view.y].written(value) for value in rows[view.y]],
            **_of_series(series, look, "series", "color", "marker"),
            "alpha": np.where(rows.counts, 1.0 if alone else COUNTS, LEFT_OUT),
            "trial": rows.trial_id,
            "block": rows.block,
            "order": rows.order,
            "level": levels.map(placed),
            "settings": _settings(trials, (view.x, view.series))[rows.index].to_numpy(object),
            "note": reasons.where(~rows.valid, ""),
            "source": name,
        }
    )


def _of_series(
    series: pd.Series, look: Mapping[Hashable, Look], *parts: str
) -> dict[str, pd.Series]:
    return {
        part: series.map({level: getattr(one, part) for level, one in look.items()})
        for part in parts
    }


@lru_cache(maxsize=64)
def _settings(trials: Trials, view_axes: tuple[str, str]) -> pd.Series:
    """What each trial was run with beside its series and level, as text over the rows of its table."""
    frame, texts = trials.frame, pd.Series("", trials.frame.index, dtype=object)
    for name in TOLD:
        if name in view_axes or frame[name].isna().all() or (frame[name] == "").all():
            continue
        called = {
            level: f", {factor_name(name)} {trials.called(level)}" for level in frame[name].unique()
        }
        texts = texts + frame[name].map(called)
    return texts.str.removeprefix(", ")


def _means(shown: Shown, curve: Curve, axis: Axis, look: Mapping[Hashable, Look]) -> pd.DataFrame:
    """Median, mean and 95 % t interval at every level of several blocks: one block is its own point."""
    trials, told = shown.opened[curve.source], curve.summary[curve.summary.n > 1]
    quantity, one = trials.quantities[shown.view.y], look[curve.level]
    rows = pd.DataFrame(
        {
            "x": _places(shown, curve, axis)[curve.summary.n > 1],
            "y": told["mean"],
            **{part: told[part] for part in ("median", "low", "high", "n")},
            "value": [quantity.written(value) for value in told["mean"]],
            "level": [trials.placed(shown.view.x, level) for level in told.index],
        }
    )
    n = [counted(int(count), trials.unit_of_repetition) for count in told.n]
    rows["interval"] = [
        f"95 % t interval {known(low)} to {known(high)}, n = {count}"
        for low, high, count in zip(told.low, told.high, n)
    ]
    return rows.assign(
        kind=AVERAGES[quantity.kind], series=one.series, color=one.color, marker=one.marker
    )


def _published(shown: Shown, axis: Axis, look: Mapping[Hashable, Look]) -> pd.DataFrame:
    """What the sources printed of the quantity."""
    view, rows = shown.view, shown.printed()
    if rows.empty:
        return pd.DataFrame({"y": []})
    levels = rows[view.x]
    x = axis.place(levels.to_numpy(float)) if axis.numeric else levels.map(axis.places)
    aside = [axis.aside(view.shown.index(level)) for level in rows[view.series]]
    written = [shown.first.quantities[view.y].written(value) for value in rows.value]
    of_series = _of_series(rows[view.series], look, "series", "color")
    return pd.DataFrame(
        {
            "x": x + np.array(aside),
            "y": rows.value,
            "value": written,
            "text": rows.text,
            **of_series,
        }
    )


def _block_lines(shown: Shown, axis: Axis, style_of: LooksOf) -> dict[str, list]:
    """Each block's own line through the points that count."""
    lines: dict[str, list] = {"xs": [], "ys": [], "color": [], "series": []}
    for curve in shown.curves:
        x, look = _places(shown, curve, axis), style_of[curve.source][curve.level]
        for values in curve.table.to_numpy(float):
            _append(lines, xs=x, ys=values, color=look.color, series=look.series)
    return lines


def _is_drawn(curve: Curve) -> bool:
    return curve.fitted is not None and not curve.fitted.refused


def _models(shown: Shown, axis: Axis, style_of: LooksOf) -> tuple[dict[str, list], dict[str, list]]:
    """The fitted curves that follow their points, and their 95 % bands over the blocks; one block has no band."""
    lines: dict[str, list] = {"xs": [], "ys": [], "color": [], "series": [], "dash": []}
    bands: dict[str, list] = {"xs": [], "ys": [], "color": [], "series": []}
    for curve in filter(_is_drawn, shown.curves):
        levels, look = curve.table.columns.to_numpy(float), style_of[curve.source][curve.level]
        spaced = np.geomspace if levels.min() > 0 else np.linspace
        x = spaced(levels.min(), levels.max(), FINE)
        mean, low, high = curve.fitted.band(x)
        place, same = axis.place(x), {"color": look.color, "series": look.series}
        _append(lines, xs=place, ys=mean, dash=look.dash, **same)
        if np.isfinite(low).all():
            ys = np.concatenate([low, high[::-1]])
            _append(bands, xs=np.concatenate([place, place[::-1]]), ys=ys, **same)
    return lines, bands


def _append(columns: dict[str, list], **values) -> None:
    for name, value in values.items():
        columns[name].append(value)


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
