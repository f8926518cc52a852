"""The page of one reader: what is picked, clicked and left out becomes a view, which stands in the page's address."""

import json
import re
from collections.abc import Callable, Hashable, Iterable
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import panel as pn
from bokeh.models import CustomJS, TextInput

from analysis.explorer import data, pieces
from analysis.explorer.plot import draw
from analysis.explorer.shown import PUBLISHED, Shown, show
from analysis.explorer.view import (
    LAYERS, View, address, at_address, opening, printed, settled,
)  # fmt: skip
from analysis.explorer.whatif import WhatIf
from analysis.explorer.widgets import WIDE, chips, offer, one_of, row, select, sheet, text
from runners.record import FalloffError

MOST_AT_ONCE = 5  # transcripts, of trials that lie upon each other
MOST_CHIPS = 60  # blocks beyond which their numbers are typed
EXPLORE, WHAT_IF = "explore", "what-if"
BY_HAND = ("without_blocks", "without_levels")
# The lists of axes and of compared series, and what each changes places with.
LISTS = {
    "y": ("Vertical", ""),
    "x": ("Horizontal", "series"),
    "series": ("Compare", "x"),
    "network": ("this", "reference"),
    "reference": ("against", "network"),
}


class Page:
    """Widgets, plot and tables of one reader; `view` is what is looked at, None where there is nothing.

    `left_out` is what was left out by hand of every experiment, as parts of its view.
    """

    def __init__(self, folder: Path | None, said: Iterable[tuple[str, str]] = ()) -> None:
        self.experiments = data.experiments(folder)
        self.opened: dict[str, data.Trials] = {}
        self.view: View | None = None
        self.shown: Shown | None = None
        self.whatif: WhatIf | None = None
        self.left_out: dict[str, dict[str, tuple]] = {}
        self._filling = False
        self._make_widgets()
        with self._filled():
            self._take(list(said))
        self._write()
        self.address.on_change("value", lambda _name, _old, new: self._go(new))

    def _make_widgets(self) -> None:
        titles = {}
        for name, (source, *_) in self.experiments.items():
            again = f"{source.title} ({name})"
            titles[again if source.title in titles else source.title] = name
        self.experiment = select("", titles)
        looks = {"placeholder": "Search experiments", "stylesheets": [sheet()], **WIDE}
        self.search = pn.widgets.AutocompleteInput(
            options=list(titles), search_strategy="includes", case_sensitive=False, min_characters=1, **looks
        )  # fmt: skip
        self.pages = one_of({"Explore": EXPLORE, "What if?": WHAT_IF})
        self.layers, self.evidence = chips(), chips("evidence")
        self.lists = {part: select(label) for part, (label, _) in LISTS.items()}
        self.series, self.fixed, self.fixed_names = chips("series"), pn.Column(**WIDE), []
        self.levels, self.blocks = chips("compact"), chips("compact")
        self.many_blocks = pn.widgets.TextInput(
            label="left out, such as 3, 17", stylesheets=[sheet()], **WIDE
        )
        self.back = pn.widgets.Button(
            label="Put all back", css_classes=["action"], stylesheets=[sheet()]
        )
        self.plot = pn.pane.Bokeh(sizing_mode="stretch_both", margin=0)
        self.question, self.verdict, self.transcript, self.numbers = (text() for _ in range(4))
        self.levels_title, self.blocks_title = text(), text()
        self.asking = pn.Column(**WIDE)
        self.address = TextInput(name="said", visible=False)
        self._make_exports()
        watched = {
            self.experiment: self._open,
            self.search: self._found,
            self.pages: lambda _page: self._show_what_if({}),
            self.evidence: self._of_evidence,
            self.layers: lambda names: self._with(layers=tuple(names)),
            self.series: lambda levels: self._with(shown=tuple(levels) or self.view.shown),
            self.levels: lambda kept: self._with(without_levels=_others(self.levels, kept)),
            self.blocks: lambda kept: self._with(without_blocks=_others(self.blocks, kept)),
            self.many_blocks: lambda said: self._with(without_blocks=_numbers(said)),
        }
        for widget, react in watched.items():
            self._watch(widget, react)
        for part, widget in self.lists.items():
            self._watch(widget, lambda value, part=part: self._of_list(part, value))
        self.back.on_click(lambda _event: self._with(**dict.fromkeys(BY_HAND, ())))

    def _make_exports(self) -> None:
        """Buttons that take the current view away: its figure, its data, and the code that makes both again."""

        def made(content: Callable[[], str]) -> Callable[[], BytesIO]:
            return lambda: BytesIO(content().encode())

        csv = made(lambda: self.shown.points().to_csv(index=False))
        code = made(lambda: self.shown.code(self._sources()[0].title))
        looks = {"css_classes": ["action"], "stylesheets": [sheet()], "margin": (4, 3)}
        self.figure = pn.widgets.Button(label="Figure (SVG)", **looks)
        self.figure.jscallback(clicks="falloff.save(...said.tags)", args={"said": self.address})
        self.downloads = [
            pn.widgets.FileDownload(
                label=label, callback=content, filename=f"view.{ending}", **looks
            )
            for label, ending, content in (
                ("Data (CSV)", "csv", csv),
                ("Code (Python)", "py", code),
            )
        ]

    def _watch(self, widget: pn.widgets.Widget, react: Callable) -> None:
        def moved(event) -> None:
            if not self._filling:
                with pn.io.hold():
                    react(event.new)

        widget.param.watch(moved, "value")

    @contextmanager
    def _filled(self):
        """For as long as this lasts, changes of widgets are no reader's choice; the browser gets them together."""
        before, self._filling = self._filling, True
        try:
            with pn.io.hold():
                yield
        finally:
            self._filling = before

    def _sources(self) -> tuple[data.Source, ...]:
        return self.experiments[self.experiment.value]

    @property
    def first(self) -> data.Trials:
        """The trials of the first of the datasets that are open."""
        return next(iter(self.opened.values()))

    def _go(self, query: str) -> None:
        """Show the address to which the browser went back or forward."""
        if query != self._written:
            self._written = query
            with self._filled():
                self._take(parse_qsl(query.removeprefix("?")))

    def _take(self, said: list[tuple[str, str]]) -> None:
        if not self.experiments:
            self._trouble(*pieces.EMPTY)
            return
        asked = dict(said)
        with suppress(ValueError, AttributeError):
            kept = json.loads(asked.get("left_out", "{}")).items()
            self.left_out = {name: parts for name, parts in kept if isinstance(parts, dict)}
        name = asked.get("experiment", "")
        self.experiment.value = name if name in self.experiments else next(iter(self.experiments))
        self._show_experiment(said)
        self.pages.value = WHAT_IF if asked.get("page") == WHAT_IF else EXPLORE
        self._show_what_if(asked)

    def _write(self) -> None:
        """Put what is shown into the address, which the browser takes as a step that can be undone."""
        name = self.experiment.value
        said = [("experiment", name)] if name else []
        said += address(self.view, self.start) if self.view else []
        if others := {of: parts for of, parts in self.left_out.items() if of != name}:
            said.append(("left_out", json.dumps(others, separators=(",", ":"))))
        if self.pages.value == WHAT_IF:
            said += [("page", WHAT_IF), *(self.whatif.address() if self.whatif else [])]
        self._written = f"?{urlencode(said, safe='[]:,/')}"
        self.address.value = self._written

    def _open(self, name: str) -> None:
        """Show another experiment, with what was left out of it before."""
        with self._filled():
            self.pages.value = EXPLORE
        kept = self.left_out.get(name, {})
        self._show_experiment([(part, json.dumps(value)) for part, value in kept.items()])
        self._write()

    def _found(self, title: str) -> None:
        if title in self.experiment.options:
            self.experiment.value = self.experiment.options[title]
            self.search.value = ""

    def _show_experiment(self, said: list[tuple[str, str]]) -> None:
        """Show the view of an address; a dataset that cannot be read leaves its reason on the page."""
        sources = self._sources()
        self.transcript.text = pieces.HINT
        try:
            first = data.opened(sources[0])
            self.start = opening(sources[0].name, first)
            view = at_address(said, self.start, first)
            chosen = [source for source in sources if source.name in view.sources] or sources[:1]
            found = {source.name: data.opened(source) for source in chosen}
        except FalloffError as error:
            self._trouble(sources[0].title, str(error))
            return
        view = settled(view, next(iter(found.values())))
        self.opened = {name: each for name, each in found.items() if _can_show(view, each)}
        self._show(replace(view, sources=tuple(self.opened)))

    def _with(self, **changes) -> None:
        self._show(settled(replace(self.view, **changes), self.first))
        self._write()

    def _of_list(self, part: str, value: Hashable) -> None:
        """An axis or a compared series is chosen; two that would be the same change places."""
        other, changes = LISTS[part][1], {part: value}
        if other and getattr(self.view, other) == value:
            changes[other] = getattr(self.view, part)
        if part in ("x", "series"):
            changes["without_levels"] = ()
        if value in self.first.by_size:
            changes["x"] = data.SIZE
        self._with(**changes)

    def _of_evidence(self, names: list[str]) -> None:
        """Show other datasets of the experiment; printed numbers alone are none, so that what is shown stays."""
        chosen = tuple(name for name in names if name != PUBLISHED) or self.view.sources
        view = replace(self.view, sources=chosen, printed=PUBLISHED in names)
        self._show_experiment(address(view, self.start))
        self._write()

    def _show(self, view: View) -> None:
        self.view, self.shown = view, show(view, self.opened)
        by_hand = {part: getattr(view, part) for part in BY_HAND if getattr(view, part)}
        self.left_out = {**self.left_out, self.experiment.value: by_hand}
        self.left_out = {name: parts for name, parts in self.left_out.items() if parts}
        with self._filled():
            self._offer()
            self.question.text = pieces.question(self._sources()[0].title, self.shown)
            self.verdict.text = pieces.verdicts(self.shown)
            self.numbers.text = pieces.numbers(self.shown)
            self.plot.object = drawn = draw(self.shown)
            if points := drawn.select_one({"name": "points"}):
                points.selected.on_change(
                    "indices", lambda _name, _old, rows: self._of_chosen(rows)
                )
                self.points = points.data
            name = f"falloff-{self.experiment.value}-{view.y}"
            self.address.tags = [name, drawn.id]
            for button, ending in zip(self.downloads, ("csv", "py")):
                button.filename = f"{name}.{ending}"

    def _offer(self) -> None:
        """What can be chosen in this view, and what is."""
        view, trials = self.view, self.first
        factors = trials.factors_of(view.y)
        kinds = {source.label: source.name for source in self._sources()}
        if any(not printed(quantity, trials).empty for quantity in trials.quantities):
            kinds[PUBLISHED] = PUBLISHED
        offer(self.evidence, kinds, [*view.sources, *([PUBLISHED] if view.printed else [])])
        self.evidence.visible = len(kinds) > 1
        layers = {title: name for name, title in LAYERS.items()}
        if not any(curve.is_drawn for curve in self.shown.curves):
            layers.pop(LAYERS["model"])
        offer(self.layers, layers, view.layers)
        several = [name for name, levels in factors.items() if len(levels) > 1]
        axes = {data.factor_name(name): name for name in (*several, view.x, view.series)}
        series = {trials.called(view.series, level): level for level in factors[view.series]}
        pair = {name: level for name, level in series.items() if level in view.shown}
        quantities = {quantity.label: name for name, quantity in trials.quantities.items()}
        options = {"y": quantities, "x": axes, "series": axes, "network": pair, "reference": pair}
        for part, widget in self.lists.items():
            offer(widget, options[part], getattr(view, part))
        offer(self.series, series, view.shown)
        self._offer_fixed(factors)
        self.levels_title.text = pieces.under(f"{data.factor_name(view.x)}: click to leave out")
        levels = {trials.ticked(view.x, level): level for level in factors[view.x]}
        offer(self.levels, levels, set(factors[view.x]) - set(view.without_levels))
        frames = [each.frame for each in self.opened.values()]
        blocks = sorted({block for frame in frames for block in frame.block.tolist()})
        valid = {block for frame in frames for block in frame.block[frame.valid].tolist()}
        counting = f"{len(valid - set(view.without_blocks))} of {len(blocks)} count"
        self.blocks_title.text = pieces.under(f"{trials.unit_of_repetition}s: {counting}")
        self.blocks.visible = len(blocks) <= MOST_CHIPS
        self.many_blocks.visible = not self.blocks.visible
        self.many_blocks.value = ", ".join(map(str, view.without_blocks))
        few = {str(block): block for block in blocks} if self.blocks.visible else {}
        offer(self.blocks, few, set(few.values()) - set(view.without_blocks))
        self.back.visible = bool(view.without_blocks or view.without_levels)

    def _offer_fixed(self, factors: dict[str, list[Hashable]]) -> None:
        """A list for the level of each factor that is neither an axis nor tells curves apart."""
        names = [name for name, _ in self.view.fixed]
        if names != self.fixed_names:
            self.fixed_names = names
            self.fixed[:] = [select(data.factor_name(name)) for name in names]
            for widget in self.fixed:
                self._watch(widget, lambda _level: self._of_fixed())
        for widget, (name, level) in zip(self.fixed, self.view.fixed):
            offer(widget, {self.first.called(name, one): one for one in factors[name]}, level)

    def _of_fixed(self) -> None:
        levels = [widget.value for widget in self.fixed]
        self._with(fixed=tuple(zip(self.fixed_names, levels)))

    def _of_chosen(self, rows: list[int]) -> None:
        """The transcripts of the trials that were clicked."""
        named = {source.name: source for source in self._sources()}
        try:
            found = [
                data.transcript(named[self.points["source"][row]], self.points["trial_id"][row])
                for row in rows[:MOST_AT_ONCE]
            ]
        except FalloffError as error:
            self.transcript.text = pieces.under(str(error))
            return
        self.transcript.text = pieces.transcripts(found) if found else pieces.HINT

    def _show_what_if(self, asked: dict[str, str]) -> None:
        """The other page, where it is asked for; made when it is asked for first."""
        if self.pages.value == WHAT_IF:
            try:
                if self.whatif is None:
                    self.whatif = WhatIf(self._write)
                    self.asking[:] = [self.whatif.panel()]
                self.whatif.take(asked)
            except FalloffError as error:
                self.asking[:] = [text(pieces.trouble("What if?", str(error)))]
        if not self._filling:
            self._write()

    def _trouble(self, title: str, reason: str) -> None:
        self.view = self.shown = self.plot.object = None
        self.address.tags = []  # the page then shows nothing else
        self.question.text = self.numbers.text = self.transcript.text = ""
        self.verdict.text = pieces.trouble(title, reason)

    def parts(self) -> dict[str, object]:
        """The page's parts by their places in page.html."""
        said, of = text(pieces.under("Take this view away:")), self.lists
        said.sizing_mode = None
        axes = row(of["x"], of["series"], kind="pair")
        pair = row(of["network"], of["reference"], kind="pair")
        show_ = (text("<h2>Show</h2>"), of["y"], axes, self.series, self.fixed)
        leave = (self.levels_title, self.levels, self.blocks_title, self.blocks, self.many_blocks)
        side = (*show_, text("<h2>Judge</h2>"), pair, text("<h2>Leave out</h2>"), *leave, self.back)
        return {
            "experiment": self.experiment,
            "search": self.search,
            "pages": self.pages,
            "question": self.question,
            "verdict": self.verdict,
            "bar": row(self.layers, self.evidence, kind="wrap"),
            "plot": self.plot,
            "controls": pn.Column(*side, **WIDE),
            "export": row(said, self.figure, *self.downloads, kind="wrap"),
            "transcript": self.transcript,
            "numbers": self.numbers,
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
        pn.state.curdoc.js_on_event("connection_lost", CustomJS(code="falloff.lost(true)"))
    return made


def _others(widget: pn.widgets.Widget, kept: list) -> tuple:
    return tuple(one for one in widget.options.values() if one not in kept)


def _numbers(said: str) -> tuple[int, ...]:
    return tuple(sorted({int(number) for number in re.findall(r"\d+", said)}))


def _can_show(view: View, trials: data.Trials) -> bool:
    return view.y in trials.quantities and {view.x, view.series} <= set(trials.factors_of(view.y))
