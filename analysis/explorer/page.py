"""The page of one reader: picks, clicks and what is left out become a view, and the view becomes what is shown."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import panel as pn

from analysis.explorer import below, export, layers, pieces, printed, sources, transcripts
from analysis.explorer import plot as plots
from analysis.explorer.axes import axis
from analysis.explorer.controls import Controls
from analysis.explorer.estimates import curves, default_model, fit
from analysis.explorer.judgement import judge
from analysis.explorer.marks import marks
from analysis.explorer.shown import Shown, show
from analysis.explorer.trials import Trials
from analysis.explorer.view import View, first
from analysis.explorer.widgets import chips, select, sheet, text
from runners.record import FalloffError

PRINTED = "published"  # stands for the sources' numbers among the datasets
MOST_AT_ONCE = 5  # transcripts, of trials that lie upon each other


class Page:
    """Widgets, plot and tables of one reader; `view` is what is looked at, None where there is nothing."""

    def __init__(self, folder: Path | None, draw: Callable[[Shown], bytes] | None = None) -> None:
        self.draw = draw
        self.experiments = {it.name: it for it in sources.experiments(folder)}
        self.opened: dict[str, Trials] = {}
        self.current: sources.Experiment | None = None
        self.view: View | None = None
        self.axis = self.curves = self.fitted = None
        self.question, self.verdict = text(), text()
        self.controls = Controls(self.show)
        self.experiment = select("")
        self.experiment.param.update(
            options={pieces.titled(it.title): it.name for it in self.experiments.values()},
            value=next(iter(self.experiments), None),
            margin=0,
        )
        self.evidence = chips("evidence", "evidence")
        self.layers = chips("layers", "layers")
        self.layers.param.update(
            options={plots.TITLES[name]: name for name in plots.LAYERS}, value=list(plots.AT_FIRST)
        )
        self.log = pn.widgets.CheckButtonGroup(
            label="axis", options={"log scale": "log"}, stylesheets=[sheet()], margin=(4, 0)
        )
        self.pane = pn.pane.Bokeh(sizing_mode="stretch_width", margin=0)
        self.transcript, self.means, self.fits = text(pieces.HINT), text(), text()
        self.table = pn.pane.Bokeh(sizing_mode="stretch_width", margin=0)
        self.tables = below.tables(
            {"Transcript": self.transcript, "Trials": self.table, "Medians and means": self.means, "Fit": self.fits}
        )
        self.plot = self._new_plot("linear")
        self.experiment.param.watch(lambda event: self.open(event.new), "value")
        self.evidence.param.watch(self._of_evidence, "value")
        self.log.param.watch(self._of_log, "value")
        self.layers.param.watch(lambda _event: self._draw_blocks() if self.view else None, "value")
        self._filling = False
        self.export = self._downloads()
        if self.experiments:
            self.open(next(iter(self.experiments)))
        else:
            self._trouble(*pieces.EMPTY)

    def open(self, name: str) -> None:
        """Show an experiment; a dataset that cannot be read leaves its reason on the page."""
        experiment = self.current = self.experiments[name]
        try:
            self.opened = {it.name: sources.opened(it) for it in experiment.sources[:1]}
            opened = next(iter(self.opened.values()))
        except FalloffError as error:
            self._trouble(experiment.title, str(error))
            return
        self.plot.figure.visible = True
        view = first(tuple(self.opened), opened)
        self._offer_evidence(experiment)
        self.show(replace(view, model=default_model(view)))

    def show(self, view: View) -> None:
        """Show a view: points, means and the verdict at once; tables, fits and the other widgets right after."""
        with pn.io.hold():
            before, self.view = self.view, view
            self.controls.view = view
            if before is None or _frame(before) != _frame(view):
                self.controls.fill(view, self.opened)
            moved = before is None or (before.ordinate, before.fixed, _frame(before)) != (
                view.ordinate,
                view.fixed,
                _frame(view),
            )
            self.axis = axis([self.opened[name] for name in view.sources], view.abscissa)
            look = marks(self._trials(), view.series)
            self._exchange("points", layers.points(view, self.opened, self.axis, look))
            self.curves = curves(view, self.opened)
            self._draw_blocks()
            self._exchange("medians", layers.medians(view, self.curves, self.axis, look))
            self._exchange("means", layers.means(view, self.curves, self.axis, look))
            self._exchange("published", layers.published(view, self._trials(), self.axis, look))
            if moved:
                plots.laid_out(self.plot, self.axis, self._trials().quantities[view.ordinate].axis)
            judged = {
                name: judge(view, [it for it in self.curves if it.source == name], self.opened[name])
                for name in view.sources
            }
            self.verdict.text = pieces.verdicts(view, judged, self.opened)
        self._soon(self._follow)

    def _follow(self) -> None:
        with pn.io.hold():
            view = self.view
            if view is None:
                return
            self.controls.fill(view, self.opened)
            beside = len(self.plot.data["published"].data["x"]) > 0
            self.question.text = pieces.question(self.current.title, self.opened.values(), beside)
            self.means.text = pieces.summary_table(view, self.curves, self.opened)
            for button in self.downloads:
                button.filename = f"{export.name(view)}.{button.filename.rpartition('.')[2]}"
            self.fitted = [fit(view, it, self.opened[it.source]) for it in self.curves] if view.model else []
            look = marks(self._trials(), view.series)
            lines, bands = layers.fits(self.curves, self.fitted, self.axis, look)
            self._exchange("model", lines)
            self._exchange("bands", bands)
            self.fits.text = pieces.fit_table(view, self.curves, self.fitted, self.opened)

    def _draw_blocks(self) -> None:
        """The blocks' lines, which can be thousands: none while their layer is off."""
        seen = "blocks" in self.layers.value
        look = marks(self._trials(), self.view.series)
        self._exchange("blocks", layers.block_lines(self.view, self.curves, self.axis, look) if seen else {})

    def _downloads(self) -> pn.Row:
        """Buttons that take the current view away."""
        offered = {
            "Data (CSV)": ("csv", lambda: export.data(self._shown())),
            "Code (Python)": ("py", lambda: export.code(self.view, self.current.title)),
        }
        if self.draw is not None:
            offered = {"Figure (SVG)": ("svg", lambda: self.draw(self._shown())), **offered}
        self.downloads = [below.download(label, *it) for label, it in offered.items()]
        said = text('<p class="under">Take this view away:</p>')
        return pn.Row(said, *self.downloads, margin=0, css_classes=["bar"])

    def _shown(self) -> Shown:
        return show(self.view, self.opened)

    def _soon(self, action: Callable[[], None]) -> None:
        if pn.state.curdoc is not None and pn.state.curdoc.session_context:
            pn.state.curdoc.add_next_tick_callback(action)
        else:
            action()

    def _trials(self) -> Trials:
        return self.opened[self.view.sources[0]]

    def _exchange(self, name: str, data: dict) -> None:
        """New data of a layer; of trials that stay where they are only what changed is sent."""
        source = self.plot.data[name]
        data = data or {column: [] for column in plots.EMPTY[name]}
        if name == "points":
            source.selected.indices = [it for it in source.selected.indices if it < len(data["trial"])]
            old = source.data
            if len(old["trial"]) == len(data["trial"]) > 0:
                changed = [column for column in data if not plots.same(old[column], data[column])]
                if changed == ["alpha"]:
                    source.patch({"alpha": [(slice(None), data["alpha"])]})
                if set(changed) <= {"alpha"}:
                    return
        source.data = data

    def _new_plot(self, kind: str) -> plots.Plot:
        made = plots.empty(kind)
        for name in plots.LAYERS:
            for renderer in made.renderers[name]:
                renderer.visible = name in self.layers.value
        code = plots.SWITCH
        self.layers.jscallback(args={"renderers": made.renderers, "names": list(plots.LAYERS)}, active=code)
        points = made.data["points"]
        points.selected.on_change("indices", lambda _attribute, _old, chosen: self._of_chosen(chosen))
        self.pane.object = made.figure
        self.table.object = below.trial_table(points)
        return made

    def _of_log(self, event) -> None:
        old, view = self.plot, self.view
        self.plot = self._new_plot("log" if event.new else "linear")
        if view is None:
            return
        for name, source in old.data.items():
            self.plot.data[name].data = dict(source.data)
        plots.laid_out(self.plot, self.axis, self._trials().quantities[view.ordinate].axis)

    def _offer_evidence(self, experiment: sources.Experiment) -> None:
        self._filling = True
        names = {}
        for source in experiment.sources:
            label = source.path.stem.removeprefix(f"{source.campaign}-") or source.path.stem
            names[label if label not in names else source.name] = source.name
        value = [experiment.sources[0].name]
        if printed.offered(self.opened[value[0]]):
            names["published"] = PRINTED
            value.append(PRINTED)
        self.evidence.param.update(options=names, value=value)
        self.evidence.visible = len(names) > 1
        self._filling = False

    def _of_evidence(self, event) -> None:
        if self._filling:
            return
        experiment = self.current
        if self.view is None:  # a dataset could not be read: begin again
            self.open(experiment.name)
            return
        chosen = [it for it in experiment.sources if it.name in event.new]
        if not chosen:  # printed numbers alone are no experiment: what was shown stays
            chosen = [it for it in experiment.sources if it.name in self.opened][:1]
        try:
            self.opened = {it.name: sources.opened(it) for it in chosen}
        except FalloffError as error:
            self._trouble(experiment.title, str(error))
            return
        view = replace(self.view, sources=tuple(self.opened), printed=PRINTED in event.new)
        known = all(
            view.ordinate in it.quantities and view.series in it.factors and view.abscissa in it.factors
            for it in self.opened.values()
        )
        anew = replace(first(tuple(self.opened), next(iter(self.opened.values()))), printed=view.printed)
        self.show(view if known else anew)

    def _of_chosen(self, chosen: list[int]) -> None:
        if not chosen:
            self.transcript.text = pieces.HINT
            return
        data = self.plot.data["points"].data
        if len(chosen) > MOST_AT_ONCE:
            self.transcript.text = pieces.selected(len(chosen))
            return
        first, *others = [self._transcript(str(data["source"][at]), str(data["trial"][at])) for at in chosen]
        folded = (f"<details><summary>another trial at this place</summary>{other}</details>" for other in others)
        self.transcript.text = first + "".join(folded)

    def _transcript(self, name: str, trial: str) -> str:
        try:
            return transcripts.page(transcripts.transcript(self.current.source(name), trial))
        except FalloffError as error:
            return f'<p class="fault">{pieces.escape(str(error))}</p>'

    def _trouble(self, title: str, reason: str) -> None:
        self.view = None
        self.plot.figure.visible = False
        self.question.text, self.means.text, self.fits.text = "", "", ""
        for name, columns in plots.EMPTY.items():
            self.plot.data[name].data = {column: [] for column in columns}
        self.verdict.text = pieces.trouble(title, reason)


def _frame(view: View) -> tuple:
    """What the widgets offer follows from this."""
    return view.sources, view.abscissa, view.series, [name for name, _ in view.fixed]
