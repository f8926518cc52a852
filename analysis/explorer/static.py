"""The explorer as one file: every experiment's first view, with the server's figures, embedded by
Bokeh."""

import gzip
import json
from base64 import b64encode
from contextlib import suppress
from pathlib import Path

import numpy as np
from bokeh.embed import json_item
from bokeh.resources import Resources
from scipy import stats

from analysis.explorer import data, pieces
from analysis.explorer.plot import LEFT_OUT, draw
from analysis.explorer.view import first_of
from runners.records.journal import write_whole
from runners.records.record import FalloffError


def write(folder: Path | None, file: Path) -> None:
    """Write the page in one step; raises FalloffError if there is no experiment, or the file cannot
    be written."""
    experiments = data.experiments(folder)
    if not experiments:
        remedy = "`falloff run` or `falloff import` makes a dataset"
        raise FalloffError(f"{folder or 'data'} holds nothing to explore: {remedy}")
    # Transcripts are very similar, so a page can hold all of them in compressed form.
    packed = [
        gzip.compress(json.dumps(_page(source)).encode(), mtime=0)
        for source in experiments.values()
    ]
    text = pieces.TEMPLATES.get_template("static.html").render(
        titles={name: source.title for name, source in experiments.items()},
        css=pieces.asset("page.css") + pieces.asset("parts.css"),
        script=pieces.asset("page.js"),
        bokeh="\n".join(Resources(mode="inline", components=["bokeh"]).js_raw),
        pages=[b64encode(page).decode() for page in packed],
    )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text)
    except OSError as error:
        reason = f"cannot write {file}: {error.strerror}"
        raise FalloffError(f"{reason}; choose another FILE for --static") from None


def _page(source: data.Source) -> dict:
    """An experiment's part of the page; the reason if the experiment cannot be read."""
    transcripts = {}
    try:
        shown = first_of(source)
        with suppress(FalloffError):  # they are not beside the dataset
            for name in shown.points.trial_id:
                transcripts[name] = pieces.transcript(data.transcript(source, name))
        return {
            "question": pieces.question(source.title, shown),
            "verdict": pieces.verdict(shown),
            "numbers": pieces.numbers(shown),
            "plot": json_item(draw(shown)),
            "kind": shown.quantity.kind,
            "faint": LEFT_OUT,
            # Of Student's t, for intervals over 2 values and more.
            "quantiles": stats.t.ppf(0.975, np.arange(1, max([2, *shown.summary.n]))).tolist(),
            "transcripts": transcripts,
        }
    except FalloffError as error:
        return {"question": pieces.PARTS.trouble(source.title, str(error))}
