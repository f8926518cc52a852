"""The page of one reader: what is picked, clicked and left out becomes a view, which stands in the page's address."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import panel as pn
from bokeh.models import CustomJS, DataTable, TableColumn, TextInput

from analysis.explorer import data, pieces
from analysis.explorer.plot import draw
from analysis.explorer.shown import Shown, printed, show
from analysis.explorer.view import LAYERS, View, address, at_address, left_out, opening, settled
from analysis.explorer.whatif import WhatIf
from analysis.explorer.widgets import WIDE, chips, offer, one_of, select, sheet, text
from runners.record import FalloffError

PRINTED = "published"  # stands for the sources' numbers among the datasets
MOST_AT_ONCE = 5  # transcripts, of trials that lie upon each other
MOST_CHIPS = 60  # blocks beyond which a list to search in takes the place of a button each
EXPLORE, WHAT_IF = "Explore", "What if?"
MEANS, FIT, TRIALS, TRANSCRIPT = "Medians and means", "Fit", "Trials", "Transcript"
LABELS = {
    "y": "Vertical",
    "x": "Horizontal",
    "series": "Compare",
    "network": "this",
    "reference": "against",
}
COLUMNS = {  # of the table of trials: title and width in pixels
    "trial": ("trial", 110),
    "series": ("series", 110),
    "level": ("at", 80),
    "block": ("block", 50),
    "order": ("order", 50),
    "value": ("value", 90),
    "settings": ("settings", 240),
    "note": ("note", 300),
}

Said = Iterable[tuple[str, str]]  # what an address says: names and values


class Page:
    """Widgets, plot and tables of one reader; `view` is what is looked at, None where there is nothing."""

    def __init__(self, folder: Path | None, said: Said = ()) -> None:
        self.experiments = data.experiments(folder)
        self.opened: dict[str, data.Trials] = {}
        self.view: View | None = None
        self.shown: Shown | None = None
        self.whatif: WhatIf | None = None
        self.left_out: dict[str, list[str]] = {}  # by hand, as in an address, of every experiment
        self._filling = True
        self._make_widgets()
        self._take(list(said))
        self._write()
        self._filling = False
        self.address.on_change("value", lambda _name, _old, new: self._go(new))

    def _make_widgets(self) -> None:
        named = {}
        for name, one in self.experiments.items():
            named[f"{one.title} ({name})" if one.title in named else one.title] = name
        self.experiment = select("", named)
        self.search = pn.widgets.AutocompleteInput(
            options=list(named),
            placeholder="Search experiments",
            search_strategy="includes",
            case_sensitive=False,
            min_characters=1,
            stylesheets=[sheet()],
            **WIDE,
        )
        self.pages = one_of(EXPLORE, WHAT_IF)
        self.question, self.verdict = text(), text()
        self.evidence, self.layers = chips("evidence"), chips("layers")
        self.layers.options = {title: name for name, title in LAYERS.items()}
        self.lists = {part: select(label) for part, label in LABELS.items()}
        self.series, self.fixed = chips("series"), pn.Column(**WIDE)
        self.levels, self.blocks = chips("compact"), chips("compact")
        self.levels_title, self.blocks_title = text(), text()
        self.many_blocks = pn.widgets.TextInput(
            label="left out, such as 3, 17", stylesheets=[sheet()], **WIDE
        )
        self.back = pn.widgets.Button(
            label="Put all back", css_classes=["action"], stylesheets=[sheet()]
        )
        self.plot = pn.pane.Bokeh(sizing_mode="stretch_both", margin=0)
        self.tabs, self.table = one_of(MEANS, FIT, TRIALS, TRANSCRIPT), pn.Column(**WIDE)
        self.transcript, self.words = text(pieces.HINT), text()
        self.asking = pn.Column(**WIDE)
        self._written, self.start = "", None
        self.address = TextInput(name="said", visible=False)
        self.export = self._exports()
        watched = {
            self.experiment: self._open,
            self.search: self._found,
            self.pages: lambda _page: self._ask_what_if({}),
            self.evidence: self._of_evidence,
            self.layers: lambda names: self._with(layers=tuple(names)),
            self.series: self._of_series,
            self.levels: lambda kept: self._with(without_levels=_others(self.levels, kept)),
            self.blocks: lambda kept: self._with(without_blocks=_others(self.blocks, kept)),
            self.many_blocks: lambda said: self._with(without_blocks=_numbers(said)),
            self.tabs: lambda _tab: self._show_table(),
            **{widget: self._of_part(part) for part, widget in self.lists.items()},
        }
        for widget, react in watched.items():
            self._watch(widget, react)
        self.back.on_click(lambda _event: self._with(without_blocks=(), without_levels=()))

    def _watch(self, widget: pn.widgets.Widget, react: Callable) -> None:
        def moved(event) -> None:
            if not self._filling:
                react(event.new)

        widget.param.watch(moved, "value")

    def _go(self, query: str) -> None:
        """Show what an address says that the browser went back or forward to."""
        if query != self._written:
            self._written, self._filling = query, True
            with pn.io.hold():
                self._take(parse_qsl(query.removeprefix("?")))
            self._filling = False

    def _take(self, said: list[tuple[str, str]]) -> None:
        asked = dict(said)
        self.left_out = {}
        for name, token in said:
            if name.startswith("without."):
                self.left_out.setdefault(name.removeprefix("without."), []).append(token)
        if not self.experiments:
            self._trouble(*pieces.EMPTY)
            return
        name = asked.get("experiment", "")
        self._show_experiment(
            name if name in self.experiments else next(iter(self.experiments)), said
        )
        self.pages.value = WHAT_IF if asked.get("page") == "what-if" else EXPLORE
        self._show_what_if(asked)

    def _write(self) -> None:
        """Put what is shown into the address."""
        said = [("experiment", self.experiment.value)]
        if self.view is not None:
            said += address(self.view, self.start)
        for name, tokens in self.left_out.items():
            if name != self.experiment.value:
                said += [(f"without.{name}", token) for token in tokens]
        if self.pages.value == WHAT_IF and self.whatif:
            said += [("page", "what-if"), *self.whatif.address()]
        self._written = self.address.value = f"?{urlencode(said, safe=':/')}"

    def _open(self, name: str) -> None:
        """Show another experiment, with what was left out of it before."""
        self._show_experiment(name, [("without", token) for token in self.left_out.get(name, ())])
        self._write()

    def _found(self, title: str) -> None:
        if title in self.experiment.options:
            self.experiment.value = self.experiment.options[title]
            self.search.value = ""

    def _show_experiment(self, name: str, said: list[tuple[str, str]]) -> None:
        sources = self.experiments[name].sources
        asked = [value for key, value in said if key == "data"]
        chosen = [source for source in sources if source.name in asked] or sources[:1]
        self._fill(lambda: self.experiment.param.update(value=name))
        self.transcript.text = pieces.HINT
        try:
            self.opened = {source.name: data.opened(source) for source in chosen}
        except FalloffError as error:
            self._trouble(self.experiments[name].title, str(error))
            return
        self.start = replace(opening(chosen[0].name, self.first), sources=(sources[0].name,))
        view = at_address(said, self.start, self.first)
        self._show(replace(view, sources=tuple(self.opened)))

    @property
    def first(self) -> data.Trials:
        """The trials of the first of the datasets that are open."""
        return next(iter(self.opened.values()))

    def _with(self, **changes) -> None:
        self._show(settled(replace(self.view, **changes), self.first))
        self._write()

    def _of_part(self, part: str) -> Callable[[Hashable], None]:
        """What a list of axes or of compared series does: two that would be the same change places."""
        pairs = {"x": "series", "series": "x", "network": "reference", "reference": "network"}

        def chosen(value: Hashable) -> None:
            changes = {part: value}
            if part in pairs and getattr(self.view, pairs[part]) == value:
                changes[pairs[part]] = getattr(self.view, part)
            if part in ("x", "series"):
                changes["without_levels"] = ()
            if part == "y" and value in self.first.by_size:
                changes["x"] = data.SIZE
            self._with(**changes)

        return chosen

    def _of_series(self, levels: list) -> None:
        self._with(shown=tuple(levels) or self.view.shown)

    def _of_evidence(self, names: list[str]) -> None:
        """Show other datasets of the experiment; printed numbers alone are none, so that what is shown stays."""
        if self.view is None:
            self._open(self.experiment.value)
            return
        wanted = [name for name in names if name != PRINTED] or list(self.view.sources)
        experiment = self.experiments[self.experiment.value]
        try:
            found = {name: data.opened(experiment.source(name)) for name in wanted}
        except FalloffError as error:
            self._trouble(experiment.title, str(error))
            return
        view = settled(replace(self.view, sources=tuple(found)), next(iter(found.values())))
        self.opened = {name: each for name, each in found.items() if _can_show(view, each)}
        self._with(sources=tuple(self.opened), printed=PRINTED in names)

    def _show(self, view: View) -> None:
        self.view, self.shown = view, show(view, self.opened)
        self.left_out[self.experiment.value] = list(left_out(view))
        with pn.io.hold():
            self._fill(self._offer)
            title = self.experiments[self.experiment.value].title
            self.question.text = pieces.question(title, self.shown)
            self.verdict.text = pieces.verdicts(self.shown)
            drawn = draw(self.shown)
            self.points = drawn.select_one({"name": "points"})
            self.points.selected.on_change(
                "indices", lambda _name, _old, rows: self._of_chosen(rows)
            )
            self.plot.object = drawn
            self._show_table()
            self._name_downloads(f"falloff-{self.experiment.value}-{view.y}")

    def _name_downloads(self, name: str) -> None:
        self.address.tags = [name]
        for button, ending in zip(self.downloads, ("csv", "py")):
            button.filename = f"{name}.{ending}"

    def _fill(self, action: Callable[[], None]) -> None:
        """Change widgets without taking that for a reader's choice."""
        before, self._filling = self._filling, True
        try:
            action()
        finally:
            self._filling = before

    def _offer(self) -> None:
        """What can be chosen in this view, and what is."""
        view, trials, factors = self.view, self.first, self.first.factors_of(self.view.y)
        experiment = self.experiments[self.experiment.value]
        kinds = {source.label: source.name for source in experiment.sources}
        chosen = list(view.sources)
        if any(not printed(quantity, trials).empty for quantity in trials.quantities):
            kinds[PRINTED] = PRINTED
            chosen += [PRINTED] if view.printed else []
        offer(self.evidence, kinds, chosen)
        self.evidence.visible = len(kinds) > 1
        layers = {
            title: name for name, title in LAYERS.items() if name != "model" or self.shown.model
        }
        offer(self.layers, layers, [name for name in layers.values() if name in view.layers])
        several = [name for name, levels in factors.items() if len(levels) > 1] or list(factors)
        axes = {data.factor_name(name): name for name in (*several, view.x, view.series)}
        series = {trials.placed(view.series, level): level for level in factors[view.series]}
        pair = {name: level for name, level in series.items() if level in view.shown}
        quantities = {quantity.label: name for name, quantity in trials.quantities.items()}
        options = {"y": quantities, "x": axes, "series": axes, "network": pair, "reference": pair}
        for part, widget in self.lists.items():
            offer(widget, options[part], getattr(view, part))
        offer(self.series, series, list(view.shown))
        self._offer_fixed(factors)
        levels = {trials.called(level): level for level in factors[view.x]}
        self.levels_title.text = _under(f"{data.factor_name(view.x)}: click to leave out")
        offer(
            self.levels,
            levels,
            [level for level in factors[view.x] if level not in view.without_levels],
        )
        self._offer_blocks()
        self.back.visible = bool(view.without_blocks or view.without_levels)

    def _offer_fixed(self, factors: Mapping[str, list[Hashable]]) -> None:
        names = [name for name, _ in self.view.fixed]
        if [widget.name for widget in self.fixed] != names:
            self.fixed[:] = [select(data.factor_name(name)) for name in names]
            for name, widget in zip(names, self.fixed):
                widget.name = name
                self._watch(widget, lambda _level: self._with(fixed=self._chosen_levels()))
        for widget, (name, level) in zip(self.fixed, self.view.fixed):
            offer(widget, {self.first.placed(name, one): one for one in factors[name]}, level)

    def _chosen_levels(self) -> tuple[tuple[str, Hashable], ...]:
        return tuple((widget.name, widget.value) for widget in self.fixed)

    def _offer_blocks(self) -> None:
        frames = [trials.frame for trials in self.opened.values()]
        blocks = sorted({block for frame in frames for block in frame.block.unique().tolist()})
        valid = {block for frame in frames for block in frame.block[frame.valid].tolist()}
        out, few = self.view.without_blocks, len(blocks) <= MOST_CHIPS
        counts = len(valid - set(out))
        of = self.first.unit_of_repetition
        self.blocks_title.text = _under(f"{of}s: {counts} of {len(blocks)} count")
        self.blocks.visible, self.many_blocks.visible = few, not few
        options = {str(block): block for block in blocks}
        if few:
            offer(self.blocks, options, [block for block in blocks if block not in out])
        else:
            self.many_blocks.value = ", ".join(map(str, out))

    def _show_table(self) -> None:
        """The table that is chosen, below the plot."""
        if self.shown is None:
            return
        tab = self.tabs.value
        if tab == TRIALS:
            columns = [
                TableColumn(field=name, title=title, width=width)
                for name, (title, width) in COLUMNS.items()
            ]
            looks = {"height": 330, "index_position": None, "sizing_mode": "stretch_width"}
            self.table[:] = [
                DataTable(source=self.points, columns=columns, stylesheets=[sheet()], **looks)
            ]
            return
        self.words.text = {MEANS: pieces.means, FIT: pieces.fits}.get(tab, lambda _shown: "")(
            self.shown
        )
        part = self.transcript if tab == TRANSCRIPT else self.words
        if list(self.table) != [part]:
            self.table[:] = [part]

    def _of_chosen(self, rows: list[int]) -> None:
        """The transcripts of the trials that were clicked."""
        if not rows:
            return
        names = [(self.points.data["source"][row], self.points.data["trial"][row]) for row in rows]
        if len(names) > MOST_AT_ONCE:
            self.transcript.text = _under(
                f"{len(names)} trials are selected: the table of trials marks them."
            )
        else:
            first, *others = [self._transcript(*name) for name in names]
            folded = (
                f"<details><summary>another trial here</summary>{one}</details>" for one in others
            )
            self.transcript.text = first + "".join(folded)
        if self.tabs.value != TRIALS:
            self.tabs.value = TRANSCRIPT

    def _transcript(self, source: str, trial: str) -> str:
        try:
            experiment = self.experiments[self.experiment.value]
            return pieces.transcript(data.transcript(experiment.source(source), trial))
        except FalloffError as error:
            return f'<p class="fault">{pieces.escape(str(error))}</p>'

    def _show_what_if(self, asked: Mapping[str, str]) -> None:
        if self.pages.value != WHAT_IF:
            return
        try:
            if self.whatif is None:
                self.whatif = WhatIf(asked, self._write)
                self.asking[:] = [self.whatif.panel()]
            else:
                self.whatif.take(asked)
        except FalloffError as error:
            self.asking[:] = [text(pieces.trouble(WHAT_IF, str(error)))]

    def _ask_what_if(self, page: str) -> None:
        if page == WHAT_IF and self.whatif is None:
            self._show_what_if({})
        self._write()

    def _trouble(self, title: str, reason: str) -> None:
        self.view = self.shown = self.plot.object = None
        self.question.text, self.table[:] = "", []
        self.verdict.text = pieces.trouble(title, reason)

    def _exports(self) -> pn.Row:
        """Buttons that take the current view away: its figure, its data, and the code that makes both again."""

        def made(content: Callable[[], str]) -> Callable[[], BytesIO]:
            return lambda: BytesIO(content().encode())

        csv = made(lambda: self.shown.points().to_csv(index=False))
        code = made(lambda: self.shown.code(self.experiments[self.experiment.value].title))
        looks = {"css_classes": ["action"], "stylesheets": [sheet()], "margin": (4, 3)}
        svg = pn.widgets.Button(label="Figure (SVG)", **looks)
        svg.jscallback(clicks="falloff.save(address.tags[0])", args={"address": self.address})
        self.downloads = [
            pn.widgets.FileDownload(callback=csv, filename="view.csv", label="Data (CSV)", **looks),
            pn.widgets.FileDownload(
                callback=code, filename="view.py", label="Code (Python)", **looks
            ),
        ]
        said = text(_under("Take this view away:"))
        said.sizing_mode = None
        return pn.Row(
            said, svg, *self.downloads, css_classes=["wrap"], stylesheets=[sheet()], **WIDE
        )

    def parts(self) -> dict[str, object]:
        """The page's parts by their places in page.html."""
        looks = {"css_classes": ["pair"], "stylesheets": [sheet()], **WIDE}
        axes = pn.Row(self.lists["x"], self.lists["series"], **looks)
        pair = pn.Row(self.lists["network"], self.lists["reference"], **looks)
        show_ = (text("<h2>Show</h2>"), self.lists["y"], axes, self.series, self.fixed)
        leave = (self.levels_title, self.levels, self.blocks_title, self.blocks, self.many_blocks)
        side = (*show_, text("<h2>Judge</h2>"), pair, text("<h2>Leave out</h2>"), *leave, self.back)
        return {
            "experiment": self.experiment,
            "search": self.search,
            "pages": self.pages,
            "question": self.question,
            "verdict": self.verdict,
            "bar": pn.Row(
                self.layers, self.evidence, css_classes=["wrap"], stylesheets=[sheet()], **WIDE
            ),
            "plot": self.plot,
            "controls": pn.Column(*side, **WIDE),
            "export": self.export,
            "tables": pn.Column(self.tabs, self.table, **WIDE),
            "whatif": self.asking,
            "address": self.address,
        }


def document(folder: Path | None) -> pn.Template:
    """The whole page for one reader, as the address says with which it is opened."""
    said = pn.state.session_args or {}
    page = Page(folder, [(name, value.decode()) for name in said for value in said[name]])
    made = pn.Template(sheet("page.html"))
    made.add_variable("css", sheet("page.css"))
    made.add_variable("script", sheet("page.js"))
    for name, part in page.parts().items():
        made.add_panel(name, part)
    if pn.state.curdoc:
        pn.state.curdoc.js_on_event("document_ready", CustomJS(code="falloff.ready()"))
        pn.state.curdoc.js_on_event("connection_lost", CustomJS(code="falloff.lost()"))
    return made


def _others(widget: pn.widgets.Widget, kept: list) -> tuple:
    return tuple(one for one in widget.options.values() if one not in kept)


def _numbers(said: str) -> tuple[int, ...]:
    return tuple(sorted({int(number) for number in re.findall(r"\d+", said)}))


def _under(words: str) -> str:
    return f'<p class="under">{words}</p>'


def _can_show(view: View, trials: data.Trials) -> bool:
    return view.y in trials.quantities and {view.x, view.series} <= set(trials.factors_of(view.y))
