"""Turn an executed notebook into a section of the report: its text, figures and tables, as
Markdown."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from analysis.statements import KEY
from runners.record import FalloffError

# Cells with this tag appear only in the supplement.
DETAIL = "detail"


@dataclass(frozen=True)
class Section:
    """A notebook's content: `markdown`, its `figures` as SVG by label, what each `rests_on`, its
    `statements` as data, and what a run of `today` says of them.

    `answer` is the Markdown of what was said first with a primary statement; `captions` are the figures in Markdown, by label.
    """

    markdown: str
    figures: Mapping[str, str]
    rests_on: Mapping[str, tuple[str, ...]]
    statements: tuple[dict, ...]
    today: tuple[dict, ...] = ()
    answer: str = ""
    captions: Mapping[str, str] = field(default_factory=dict)

    def picture(self, label: str) -> "Picture":
        """A figure by its label, to be shown again."""
        about = {
            "markdown": self.captions[label],
            "label": label,
            "rests_on": list(self.rests_on[label]),
        }
        return Picture(self.figures[label], about)


@dataclass(frozen=True)
class Picture:
    """A figure of an executed notebook, to be shown again: its SVG, and what its output says of itself."""

    svg: str
    about: Mapping

    def _repr_mimebundle_(self, **_) -> tuple[dict, dict]:
        return {"image/svg+xml": self.svg}, {KEY: dict(self.about)}


def read(file: Path, whole: bool = False) -> Section:
    """The section of an executed notebook, with its details if `whole`.

    Raises FalloffError if the notebook was not executed to its end.
    """
    import nbformat  # takes a second, which only a report needs

    cells = nbformat.read(file, as_version=4).cells
    if unfinished := [
        cell for cell in cells if cell.cell_type == "code" and not cell.execution_count
    ]:
        raise FalloffError(
            f"{file} was not executed to its end: {unfinished[0].source.splitlines()[0]!r} did not run"
        )
    cells = [cell for cell in cells if whole or DETAIL not in cell.metadata.get("tags", [])]
    about = [
        output.metadata[KEY] | {"svg": output.data.get("image/svg+xml")}
        for cell in cells
        for output in cell.get("outputs", ())
        if _is_ours(output)
    ]
    figures = {output["label"]: output for output in about if "label" in output}
    answers = [
        output["markdown"]
        for output in about
        if any(statement["primary"] for statement in output.get("statements", ()))
    ]
    return Section(
        markdown="\n\n".join(part for cell in cells for part in _parts(cell, whole)),
        figures={label: figure["svg"] for label, figure in figures.items()},
        rests_on={label: tuple(figure["rests_on"]) for label, figure in figures.items()},
        captions={label: figure["markdown"] for label, figure in figures.items()},
        statements=_all(about, "statements"),
        today=_all(about, "today"),
        answer=answers[0] if answers else "",
    )


def _all(about: Iterable[Mapping], key: str) -> tuple[dict, ...]:
    """What all outputs hold under a key, one after another."""
    return tuple(chain.from_iterable(output.get(key, ()) for output in about))


def _parts(cell, whole: bool) -> Iterable[str]:
    """A cell's Markdown: its text, or its outputs. The code is added below a figure, or if
    `whole`."""
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield from (text for output in cell.outputs if (text := _text(output)))
    if whole or any("image/svg+xml" in output.get("data", {}) for output in cell.outputs):
        longest = max(map(len, re.findall("`+", cell.source)), default=0)
        fence = "`" * max(3, longest + 1)
        yield f"::: code\n{fence}python\n{cell.source}\n{fence}\n:::"


def _text(output) -> str:
    if _is_ours(output):
        return output.metadata[KEY].get("markdown", "")
    return output.get("data", {}).get("text/markdown", "")


def _is_ours(output) -> bool:
    return KEY in output.get("metadata", {})
