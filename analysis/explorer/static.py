"""The explorer as one file: every experiment's first view, the same figures as the server's, embedded by Bokeh."""

import gzip
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

from bokeh.embed import json_item
from bokeh.resources import Resources
from jinja2 import Template

from analysis.explorer import data, pieces
from analysis.explorer.plot import draw
from analysis.explorer.shown import Shown, first_of
from analysis.explorer.widgets import sheet
from runners.journal import write_whole
from runners.record import FalloffError

MOST = 10_000_000  # bytes that the file may have


def write(folder: Path | None, file: Path) -> None:
    """Write the page in one step; raises FalloffError when there is no experiment, or the page would be too large."""
    pages = [_page(sources[0]) for sources in data.experiments(folder).values()]
    if not pages:
        raise FalloffError(
            f"{folder or 'data'} holds nothing to explore: `falloff run` or `falloff import` makes a dataset"
        )
    text = _text(pages)
    if len(text) > MOST:
        text = _text([{**page, "transcripts": {}} for page in pages])
    if len(text) > MOST:
        raise FalloffError(
            f"the page would have more than {MOST / 1e6:.0f} MB: explore fewer datasets, or without --static"
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text)
    except OSError as error:
        raise FalloffError(
            f"cannot write {file}: {error.strerror}; choose another FILE for --static"
        ) from None


def _text(pages: list[dict[str, Any]]) -> bytes:
    # Transcripts are much alike: packed, a page can hold every one of them whole.
    packed = [
        b64encode(gzip.compress(json.dumps(page).encode(), mtime=0)).decode() for page in pages
    ]
    return (
        Template(sheet("static.html"), autoescape=False)
        .render(
            titles=[pieces.escape(page["title"]) for page in pages],
            css=sheet("page.css"),
            parts=sheet(),
            theme=sheet("page.js"),
            bokeh="\n".join(Resources(mode="inline", components=["bokeh"]).js_raw),
            pages=packed,
        )
        .encode()
    )


def _page(source: data.Source) -> dict[str, Any]:
    """An experiment's part of the page; of one that cannot be read the reason."""
    try:
        shown = first_of(source)
    except FalloffError as error:
        return {"title": source.title, "question": pieces.trouble(source.title, str(error))}
    return {
        "title": source.title,
        "question": pieces.question(source.title, shown),
        "verdict": pieces.verdicts(shown),
        "numbers": pieces.numbers(shown),
        "plot": json_item(draw(shown)),
        "transcripts": _transcripts(shown, source),
    }


def _transcripts(shown: Shown, source: data.Source) -> dict[str, str]:
    """The transcript of every trial shown, as the server shows it; none where they are not beside the dataset."""
    try:
        trials = shown.points().query("trial_id != ''").trial_id
        return {trial: pieces.transcript(data.transcript(source, trial)) for trial in trials}
    except FalloffError:
        return {}
