"""The page's widgets: what they offer follows from the view and its trials, what they say becomes a new view."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import panel as pn

from analysis.explorer.estimates import model_names
from analysis.explorer.trials import Trials
from analysis.explorer.view import View, compared_in, levelled
from analysis.explorer.widgets import chips, counting, dress, not_counted, offer, select, sheet, swatches, text, words
from analysis.models import find

MOST_CHIPS = 60  # blocks beyond which a list to search in takes the place of a button each


class Controls:
    """The widgets beside the plot. `changed(view)` is called with the view that a reader made with them."""

    def __init__(self, changed: Callable[[View], None]) -> None:
        self._changed, self._filling = changed, False
        self.ordinate, self.abscissa, self.series = select("Vertical"), select("Horizontal"), select("Compare")
        self.shown, self.levels, self.blocks = (
            chips("series", "series"),
            chips("levels", "compact"),
            chips("blocks", "compact"),
        )
        self.network, self.reference, self.model = select("Judge"), select("against"), select("Model")
        self.many_blocks: pn.widgets.MultiChoice | None = None  # it is heavy, and few campaigns have so many blocks
        self.place_of_blocks = pn.Column(self.blocks, sizing_mode="stretch_width", margin=0)
        self.back = pn.widgets.Button(
            label="Put all back", css_classes=["action"], stylesheets=[sheet()], margin=(6, 0), visible=False
        )
        self.fixed = pn.Column(sizing_mode="stretch_width", margin=0)
        self.blocks_title, self.levels_title = text(), text()
        self.view: View | None = None
        self.opened: Mapping[str, Trials] = {}
        for widget, change in {
            self.ordinate: self._of_axes,
            self.abscissa: self._of_axes,
            self.series: self._of_axes,
            self.shown: self._of_shown,
            self.levels: self._of_levels,
            self.blocks: self._of_blocks,
            self.network: self._of_pair,
            self.reference: self._of_pair,
            self.model: self._of_model,
        }.items():
            widget.param.watch(self._when(change), "value")
        self.back.on_click(lambda _: self._changed(replace(self.view, without_blocks=(), without_levels=())))

    def panel(self) -> pn.Column:
        """All of them, as the page's side bar."""
        return pn.Column(
            text("<h2>Show</h2>"),
            self.ordinate,
            pn.Row(self.abscissa, self.series, sizing_mode="stretch_width", margin=0),
            self.shown,
            self.fixed,
            text("<h2>Judge and fit</h2>"),
            pn.Row(self.network, self.reference, sizing_mode="stretch_width", margin=0),
            self.model,
            text("<h2>Leave out</h2>"),
            self.levels_title,
            self.levels,
            self.blocks_title,
            self.place_of_blocks,
            self.back,
            sizing_mode="stretch_width",
            margin=0,
        )

    def fill(self, view: View, opened: Mapping[str, Trials]) -> None:
        """Show a view: what can be chosen, and what is."""
        self._filling = True
        try:
            self._fill(view, opened)
        finally:
            self._filling = False

    def _fill(self, view: View, opened: Mapping[str, Trials]) -> None:
        self.view, self.opened = view, opened
        trials = opened[view.sources[0]]
        several = [name for name, levels in trials.factors.items() if len(levels) > 1] or list(trials.factors)
        offer(self.ordinate, {it.label: name for name, it in trials.quantities.items()}, view.ordinate)
        offer(self.abscissa, {words(name): name for name in dict.fromkeys([*several, view.abscissa])}, view.abscissa)
        offer(self.series, {words(name): name for name in dict.fromkeys([*several, view.series])}, view.series)
        levels = trials.factors.get(view.series, [])
        dress(self.shown, swatches(trials, view.series))
        offer(self.shown, {trials.called(level): level for level in levels}, list(view.shown))
        pairs = {trials.called(level): level for level in view.shown}
        offer(self.network, pairs, view.network)
        offer(self.reference, pairs, view.reference)
        offer(self.model, {"none": "", **{find(name).title: name for name in model_names(view)}}, view.model)
        along = trials.factors.get(view.abscissa, [])
        self.levels_title.text = f'<p class="under">{words(view.abscissa)}: click to leave out</p>'
        offer(
            self.levels,
            {trials.called(it): it for it in along},
            [it for it in along if it not in view.without_levels],
        )
        self._fill_blocks(view)
        self._fill_fixed(view, trials)
        self.back.visible = bool(view.without_blocks or view.without_levels)

    def _fill_blocks(self, view: View) -> None:
        blocks = sorted({block for it in self.opened.values() for block in it.frame.block.unique().tolist()})
        few = len(blocks) <= MOST_CHIPS
        kept = [block for block in blocks if block not in view.without_blocks]
        of = next(iter(self.opened.values())).unit_of_repetition
        whole = counting(self.opened) & set(kept)
        self.blocks_title.text = f'<p class="under">{of}s: {len(whole)} of {len(blocks)} count</p>'
        if not few and self.many_blocks is None:
            self.many_blocks = pn.widgets.MultiChoice(
                label="left out",
                sizing_mode="stretch_width",
                margin=(4, 0),
                stylesheets=[sheet()],
                max_items=200,
                option_limit=100,
            )
            self.many_blocks.param.watch(self._when(self._of_many_blocks), "value")
        wanted = self.blocks if few else self.many_blocks
        if self.place_of_blocks[0] is not wanted:
            self.place_of_blocks[:] = [wanted]
        if few:
            offer(self.blocks, {str(block): block for block in blocks}, kept)
            dress(self.blocks, not_counted(blocks, self.opened))
        else:
            offer(self.many_blocks, {str(block): block for block in blocks}, list(view.without_blocks))

    def _fill_fixed(self, view: View, trials: Trials) -> None:
        fixed = dict(view.fixed)
        if [widget.label for widget in self.fixed] != [words(name) for name in fixed]:
            self.fixed[:] = [select(words(name)) for name in fixed]
            for widget in self.fixed:
                widget.param.watch(self._when(self._of_fixed), "value")
        for widget, (name, level) in zip(self.fixed, fixed.items()):
            offer(widget, {trials.called(it): it for it in trials.factors[name]}, level)

    def _when(self, change: Callable[[], View]) -> Callable:
        def react(_event) -> None:
            if not self._filling and self.view is not None:
                self._changed(change())

        return react

    def _trials(self) -> Trials:
        return self.opened[self.view.sources[0]]

    def _of_axes(self) -> View:
        view = replace(
            self.view, ordinate=self.ordinate.value, abscissa=self.abscissa.value, series=self.series.value
        )
        if view.abscissa == view.series:  # the two change places
            was = self.view
            view = (
                replace(view, series=was.abscissa)
                if view.abscissa != was.abscissa
                else replace(view, abscissa=was.series)
            )
        if (view.abscissa, view.series) != (self.view.abscissa, self.view.series):
            view = compared_in(levelled(view, self._trials()), self._trials())
        return view if view.model in model_names(view) else replace(view, model="")

    def _of_shown(self) -> View:
        levels = self._trials().factors.get(self.view.series, [])
        shown = tuple(it for it in levels if it in self.shown.value) or self.view.shown
        view = replace(self.view, shown=shown)
        return (
            view
            if {view.network, view.reference} <= set(shown)
            else compared_in(replace(view, network=None, reference=None), self._trials())
        )

    def _of_fixed(self) -> View:
        names = [name for name, _ in self.view.fixed]
        return replace(self.view, fixed=tuple(zip(names, (widget.value for widget in self.fixed))))

    def _of_pair(self) -> View:
        pair = (self.network.value, self.reference.value)
        if pair[0] == pair[1]:  # the two change places
            pair = (self.view.reference, self.view.network)
        return replace(self.view, network=pair[0], reference=pair[1])

    def _of_model(self) -> View:
        return replace(self.view, model=self.model.value)

    def _of_levels(self) -> View:
        return replace(
            self.view, without_levels=tuple(it for it in self.levels.options.values() if it not in self.levels.value)
        )

    def _of_blocks(self) -> View:
        return replace(
            self.view, without_blocks=tuple(it for it in self.blocks.options.values() if it not in self.blocks.value)
        )

    def _of_many_blocks(self) -> View:
        return replace(self.view, without_blocks=tuple(sorted(self.many_blocks.value)))
