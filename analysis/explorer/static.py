"""The explorer as one file: every experiment's first view, drawn in the browser from data in the page itself."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bokeh.embed import json_item
from bokeh.resources import Resources
from jinja2 import Template

from analysis.explorer import layers, pieces, plot, sources, transcripts
from analysis.explorer.axes import axis
from analysis.explorer.marks import marks, picture
from analysis.explorer.shown import Shown, first_of
from analysis.explorer.sources import Experiment
from analysis.explorer.widgets import sheet
from runners.journal import write_whole
from runners.record import FalloffError, Transcript

MOST = 10_000_000  # bytes that the file may have
RULED = re.compile(r"([=\-#*\s])\1{3,}")  # lines and gaps that only decorate
TAIL = 640  # characters of what a trial printed last
COMMAND = 240  # of what was executed


def write(folder: Path | None, file: Path) -> None:
    """Write the page in one step; raises FalloffError when there is no experiment, or the page would be too large."""
    pages = [page for experiment in sources.experiments(folder) for page in _page(experiment)]
    if not pages:
        raise FalloffError(
            f"{folder or 'data'} holds nothing to explore: `falloff run` or `falloff import` makes a dataset"
        )
    text = _text(pages)
    if len(text.encode()) > MOST:
        text = _text([{**page, "trials": {}} for page in pages])  # points without what they printed
    if len(text.encode()) > MOST:
        raise FalloffError(
            f"the page would have more than {MOST / 1e6:.0f} MB: explore fewer datasets, or without --static"
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text)
    except OSError as error:
        raise FalloffError(f"cannot write {file}: {error.strerror}; choose another FILE for --static") from None


def _text(pages: list[dict[str, Any]]) -> str:
    template = Template((Path(__file__).parent / "static.html").read_text(encoding="utf-8"))
    return template.render(
        pages=pages,
        css=sheet("page.css") + sheet("static.css"),
        parts=sheet(),
        theme=sheet("theme.js"),
        bokeh="\n".join(Resources(mode="inline", components=["bokeh"]).js_raw),
        script=sheet("static.js"),
        data=json.dumps(pages).replace("</", "<\\/"),  # no text of a dataset ends the script
    )


def _page(experiment: Experiment) -> Iterator[dict[str, Any]]:
    """An experiment's part of the page; of one that cannot be read the reason."""
    try:
        shown = first_of(experiment.sources[0])
    except FalloffError as error:
        empty = plot.empty()
        empty.figure.visible = False
        yield {
            "title": experiment.title,
            "question": pieces.trouble(experiment.title, str(error)),
            "verdict": "",
            "table": "",
            "plot": json_item(empty.figure),
            "layers": [],
            "series": [],
            "trials": {},
        }
        return
    yield {
        "title": experiment.title,
        "question": pieces.question(experiment.title, shown.opened.values(), not shown.printed().empty),
        "verdict": pieces.verdicts(shown.view, shown.judgements, shown.opened),
        "table": pieces.summary_table(shown.view, shown.curves, shown.opened),
        "plot": json_item(_drawn(shown)),
        "layers": list(plot.EMPTY),
        "series": _series(shown),
        "trials": dict(_essentials(shown, experiment)),
    }


def _drawn(shown: Shown):
    view, opened = shown.view, shown.opened
    made = plot.empty()
    trials = opened[view.sources[0]]
    along, look = axis([trials], view.abscissa), marks(trials, view.series)
    data = made.data
    data["points"].data = layers.points(view, opened, along, look)
    data["medians"].data = layers.medians(view, shown.curves, along, look)
    data["means"].data = layers.means(view, shown.curves, along, look)
    data["published"].data = layers.published(view, trials, along, look)
    lines, bands = layers.fits(shown.curves, shown.fitted, along, look)
    data["model"].data, data["bands"].data = lines, bands
    return plot.laid_out(made, along, trials.quantities[view.ordinate].axis).figure


def _series(shown: Shown) -> list[dict[str, str]]:
    look = marks(shown.opened[shown.view.sources[0]], shown.view.series)
    these = [look[level] for level in shown.view.shown]
    return [{"name": mark.series, "light": picture(mark, False), "dark": picture(mark, True)} for mark in these]


def _essentials(shown: Shown, experiment: Experiment) -> Iterator[tuple[str, tuple[str, str]]]:
    """Of each trial shown what was executed and what that printed last, by source and trial."""
    for name in shown.view.sources:
        source = experiment.source(name)
        for trial in shown.points().query("source == @name").trial_id:
            try:
                yield f"{name} {trial}", _essential(transcripts.transcript(source, trial))
            except FalloffError:
                return


def _essential(found: Transcript) -> tuple[str, str]:
    telling = max(found.executions, key=lambda it: len(it.stdout), default=None)
    if telling is None:
        return found.unavailable or found.fault, ""
    command = transcripts.command_line(telling)
    said = RULED.sub(r"\1\1\1", telling.stdout.strip() or telling.stderr.strip())
    cut = command if len(command) <= COMMAND else f"… {command[-COMMAND:]}"
    return f"{cut}\nexit code {telling.exit_code}", said if len(said) <= TAIL else f"… {said[-TAIL:]}"
