"""One reader's page. Selections, clicks and omissions become a view, and the page's address
contains that view."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import panel as pn
from bokeh.models import ColumnDataSource, CustomJS
from bokeh.models.widgets import Div, TextInput

from analysis.explorer import data, pieces
from analysis.explorer.plot import draw
from analysis.explorer.view import PageContent, View, address, at_address, opening, settled
from runners.records.record import FalloffError

MOST_AT_ONCE = 5  # transcripts shown for trials that overlap in the plot
TRIAL = "trial"  # in the address
PLACES = {"x": "series", "series": "x"}
WIDE = {"sizing_mode": "stretch_width", "margin": 0}


def text(html: str = "") -> Div:
    """A piece of text on the page. It uses Bokeh's own model, because Panel's would load
    MathJax."""
    return Div(text=html, stylesheets=[pieces.asset("parts.css")], disable_math=True, **WIDE)


class Page:
    """Widgets, plot and tables of one reader. `shown` is the current PageContent, None if there is
    nothing to show. `chosen` are the trials whose transcripts are read.

    `views` holds the last view of each experiment.
    """

    def __init__(self, folder: Path | None, asked: Iterable[tuple[str, str]] = ()) -> None:
        self.experiments = data.experiments(folder)
        self.shown: Any = None
        self.chosen: tuple[str, ...] = ()
        self.views: dict[str, View] = {}
        self._filling = False
        self._make_widgets()
        self._act(self._take, list(asked))
        self.address.on_change("value", lambda _name, _old, query: self._go(query))

    def _make_widgets(self) -> None:
        look = {"stylesheets": [pieces.asset("parts.css")], "margin": (4, 0)}
        wide = {**look, "sizing_mode": "stretch_width"}
        titles = {source.title: name for name, source in self.experiments.items()}
        self._select = partial(pn.widgets.Select, **wide)
        chips = partial(pn.widgets.CheckButtonGroup, options={}, **look)
        self.experiment = self._select(options=titles)
        self.search = pn.widgets.AutocompleteInput(
            options=list(titles),
            search_strategy="includes",
            case_sensitive=False,
            min_characters=1,
            placeholder="Search experiments",
            **wide,
        )
        # A widget for each part of a view.
        self.parts = {
            "log": pn.widgets.Toggle(label="log scale", **look),
            "laws": pn.widgets.Toggle(label="law's curve", **look),
            "y": self._select(label="Vertical"),
            "x": self._select(label="Horizontal"),
            "series": self._select(label="Compare"),
            "shown": chips(),
            "without_levels": chips(css_classes=["compact"]),
            "without_blocks": chips(css_classes=["compact"]),
        }
        self.fixed = pn.Column(**WIDE)
        self.fixed_names: list[str] = []
        self.back = pn.widgets.Button(label="Put all back", css_classes=["action"], **look)
        button = partial(pn.widgets.FileDownload, css_classes=["action"], **look)
        table = button(
            label="Data (CSV)", callback=lambda: StringIO(self.shown.points.to_csv(index=False))
        )
        code = button(label="Code (Python)", callback=lambda: StringIO(self.shown.code))
        self.downloads = {"csv": table, "py": code}
        self.plot = pn.pane.Bokeh(sizing_mode="stretch_both", margin=0)
        self.notice, self.question, self.verdict, self.transcript, self.numbers = (
            text() for _ in range(5)
        )
        self.transcript.name = "read trial"  # by which the browser finds it
        self.levels_title, self.blocks_title = text(), text()
        self.address = TextInput(name="query", visible=False)
        self._watch(self.experiment, self._choose)
        self._watch(self.search, lambda title: self._choose(titles.get(title, "")))
        for part, widget in self.parts.items():
            self._watch(widget, partial(self._change, part))
        self.back.on_click(
            lambda _event: self._act(self._with, without_blocks=(), without_levels=())
        )

    def _watch(self, widget: Any, react: Callable) -> None:
        widget.param.watch(lambda event: self._act(react, event.new), "value")

    def _act(self, react: Callable, *arguments: Any, **changes: Any) -> None:
        """Carry out a reader's request. If a dataset cannot be read, show the reason on the
        page."""
        if self._filling:  # the page itself is changing a widget
            return
        self._filling = True
        try:
            with pn.io.hold():
                react(*arguments, **changes)
        except FalloffError as error:
            self._trouble(self._source().title, str(error))
        finally:
            self._filling = False
        self._write()

    def _source(self) -> data.Source:
        return self.experiments[self.experiment.value]

    def _go(self, query: str) -> None:
        """Show the address after the browser's back or forward button."""
        if query != self._written:
            self._act(self._take, parse_qsl(query.removeprefix("?")))

    def _take(self, asked: list[tuple[str, str]]) -> None:
        """Show the view of an address."""
        if not self.experiments:
            self._trouble(*pieces.EMPTY)
            return
        values = dict(asked)
        first = next(iter(self.experiments))
        name = values.get("experiment", first)
        missing = f'There is no experiment "{name}" here. This is another one: choose above.'
        self.notice.text = "" if name in self.experiments else pieces.PARTS.notice(missing)
        self.experiment.value = name if name in self.experiments else first
        self._open(asked)

    def _write(self) -> None:
        """Put the current view into the address, so that the browser's back button undoes the
        step."""
        parts = [("experiment", self.experiment.value)] if self.experiments else []
        parts += address(self.shown.view, self.start) if self.shown else []
        parts += [(TRIAL, trial) for trial in self.chosen]
        self._written = f"?{urlencode(parts, safe='[]:,/')}"
        self.address.value = self._written

    def _choose(self, name: str) -> None:
        """Switch to another experiment, in its last view."""
        if name not in self.experiments:
            return
        self.experiment.value, self.search.value = name, ""
        self.notice.text = ""
        self._open([], self.views.get(name))

    def _open(self, asked: list[tuple[str, str]], before: View | None = None) -> None:
        self._read(tuple(trial for part, trial in asked if part == TRIAL))
        trials = data.opened(self._source())
        self.start = opening(self._source().name, trials)
        self._show(before or at_address(asked, self.start, trials))

    def _change(self, part: str, value: Any) -> None:
        """Change a part of the view; if two parts would become the same, swap them."""
        changes = {part: tuple(value) if isinstance(value, list) else value}
        view, other = vars(self.shown.view), PLACES.get(part)
        if other and view[other] == value:
            changes[other] = view[part]
        if "x" in changes:
            changes["without_levels"] = ()
        if part == "y" and value in self.shown.trials.by_size:
            changes["x"] = data.SIZE
        self._with(**changes)

    def _with(self, **changes: Any) -> None:
        self._show(replace(self.shown.view, **changes))

    def _show(self, view: View) -> None:
        source = self._source()
        trials = data.opened(source)
        self.shown = shown = PageContent(settled(view, trials), trials)
        view = shown.view
        self.views[self.experiment.value] = view
        self._offer()
        self.question.text = pieces.question(source.title, shown)
        self.verdict.text = pieces.verdict(shown)
        self.numbers.text = pieces.numbers(shown)
        drawn = draw(shown, self.plot.object)
        sources = drawn.select({"type": ColumnDataSource, "name": "points"})
        if drawn is not self.plot.object:
            for points in sources:
                points.selected.on_change("indices", partial(self._clicked, points))
            self.plot.object = drawn
        for points in sources:
            names = list(points.data.get("trial_id", ()))
            points.selected.indices = [
                names.index(trial) for trial in self.chosen if trial in names
            ]
        self.address.tags = ["drawn"]
        for ending, button in self.downloads.items():
            button.filename = f"falloff-{Path(self.experiment.value).stem}-{view.y}.{ending}"

    def _offer(self) -> None:
        """Update the widgets to the view's options and selections."""
        view, trials = self.shown.view, self.shown.trials
        factors = trials.factors_of(view.y)
        several = [name for name, levels in factors.items() if len(levels) > 1]
        axes = {data.factor_name(name): name for name in (*several, view.x, view.series)}
        blocks = sorted(self.shown.points.block.unique().tolist())
        options = {
            "y": {quantity.label: name for name, quantity in trials.quantities.items()},
            "x": axes,
            "series": axes,
            "shown": {trials.called(view.series, level): level for level in factors[view.series]},
            "without_levels": {trials.ticked(view.x, level): level for level in factors[view.x]},
            "without_blocks": {str(block): block for block in blocks},
        }
        for part, choices in options.items():
            _offer(self.parts[part], choices, getattr(view, part))
        self.parts["log"].value, self.parts["laws"].value = view.log, view.laws
        self.parts["laws"].visible = self.shown.has_laws
        fixed = dict(view.fixed)
        if self.fixed_names != [*fixed]:
            self.fixed_names = [*fixed]
            self.fixed[:] = [self._select(label=data.factor_name(name)) for name in fixed]
            for widget in self.fixed:
                self._watch(widget, self._fix)
        for widget, (name, level) in zip(self.fixed, view.fixed):
            _offer(widget, {trials.called(name, other): other for other in factors[name]}, level)
        self.levels_title.text = pieces.PARTS.under(
            f"{data.factor_name(view.x)}: click to leave out"
        )
        counted = self.shown.points[self.shown.points.counts].block.nunique()
        self.blocks_title.text = pieces.PARTS.under(
            f"{trials.count(2)[2:]}: {counted} of {len(blocks)} count"
        )
        self.back.visible = bool(view.without_blocks or view.without_levels)

    def _fix(self, _level: Any) -> None:
        levels = (widget.value for widget in self.fixed)
        self._with(fixed=tuple(zip(self.fixed_names, levels)))

    def _clicked(
        self, points: ColumnDataSource, _name: str, _old: list[int], rows: list[int]
    ) -> None:
        if rows:
            self._act(self._read, tuple(points.data["trial_id"][row] for row in rows))

    def _read(self, names: tuple[str, ...]) -> None:
        """Show the transcripts of these trials."""
        self.chosen = names[:MOST_AT_ONCE]
        if not names:
            self.transcript.text = pieces.PARTS.hint()
            return
        try:
            transcripts = (data.transcript(self._source(), name) for name in self.chosen)
            first, *others = map(pieces.transcript, transcripts)
            self.transcript.text = pieces.PARTS.transcripts(first, others)
        except FalloffError as error:
            self.transcript.text = pieces.PARTS.notice(str(error))

    def _trouble(self, title: str, reason: str) -> None:
        self.shown = self.plot.object = None
        self.chosen = ()
        self.address.tags = []  # then the page shows nothing else
        self.question.text = self.numbers.text = self.transcript.text = ""
        self.verdict.text = pieces.PARTS.trouble(title, reason)

    def roots(self) -> dict[str, object]:
        """The page's parts by their placeholders in page.html."""
        row = partial(pn.Row, stylesheets=[pieces.asset("parts.css")], **WIDE)
        of = self.parts
        controls = pn.Column(
            text("<h2>Show</h2>"),
            of["y"],
            row(of["x"], of["series"], css_classes=["pair"]),
            of["shown"],
            self.fixed,
            row(of["log"], of["laws"], css_classes=["pair"]),
            text("<h2>Leave out</h2>"),
            self.levels_title,
            of["without_levels"],
            self.blocks_title,
            of["without_blocks"],
            self.back,
            **WIDE,
        )
        return {
            "experiment": self.experiment,
            "search": self.search,
            "notice": self.notice,
            "question": self.question,
            "verdict": self.verdict,
            "plot": self.plot,
            "controls": controls,
            "export": row(*self.downloads.values(), css_classes=["wrap"]),
            "transcript": self.transcript,
            "numbers": self.numbers,
            "address": self.address,
        }


def document(folder: Path | None) -> pn.Template:
    """The whole page for one reader, opened at the view in its address."""
    asked = pn.state.session_args or {}
    page = Page(folder, [(name, value.decode()) for name in asked for value in asked[name]])
    template = pn.Template(pieces.asset("page.html"))
    template.add_variable("css", pieces.asset("page.css"))
    template.add_variable("script", pieces.asset("page.js"))
    for name, root in page.roots().items():
        template.add_panel(name, root)
    if pn.state.curdoc:
        pn.state.curdoc.js_on_event("document_ready", CustomJS(code="falloff.ready()"))
        pn.state.curdoc.js_on_event("connection_lost", CustomJS(code="falloff.lost(true)"))
    return template


def _offer(widget: Any, options: dict[str, Any], value: Any) -> None:
    """Set a widget's options and its selection together, if either differs."""
    value = list(value) if isinstance(value, tuple) else value
    if widget.options != options or widget.value != value:
        widget.param.update(options=options, value=value)
