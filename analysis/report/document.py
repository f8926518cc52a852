"""Turn an executed notebook into a section of the report: its text, figures and tables, as
Markdown."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from analysis.statements.statement import KEY
from runners.records.record import FalloffError

# Cells with this tag appear only in the supplement.
DETAIL = "detail"


@dataclass(frozen=True)
class Picture:
    """A figure of an executed notebook: its SVG, and what its output says of itself. A notebook can
    show it again.
    """

    svg: str
    about: Mapping

    @property
    def rests_on(self) -> tuple[str, ...]:
        """The campaigns, and the files of data/, that it draws."""
        return tuple(self.about["rests_on"])

    def _repr_mimebundle_(self, **_) -> tuple[dict, dict]:
        return {"image/svg+xml": self.svg}, {KEY: dict(self.about)}


@dataclass(frozen=True)
class Section:
    """A notebook's content: `markdown`, its `figures` by label, its `statements` as data, and what
    a run of `today` says of them. `answer` is the Markdown of what was said first with a primary
    statement."""

    markdown: str
    figures: Mapping[str, Picture]
    statements: tuple[dict, ...]
    today: tuple[dict, ...] = ()
    answer: str = ""


def read(file: Path, whole: bool = False) -> Section:
    """The section of an executed notebook, with its details if `whole`.

    Raises FalloffError if the notebook was not executed to its end.
    """
    import nbformat  # takes a second, which only a report needs

    cells = nbformat.read(file, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    if unfinished := [cell for cell in code if not cell.execution_count]:
        raise FalloffError(
            f"{file} was not executed to its end: {unfinished[0].source.splitlines()[0]!r} did not run"
        )
    shown = [cell for cell in cells if whole or DETAIL not in cell.metadata.get("tags", [])]
    outputs = [output for cell in shown for output in cell.get("outputs", ()) if _is_ours(output)]
    about = [output.metadata[KEY] for output in outputs]
    answers = [
        it["markdown"]
        for it in about
        if any(statement["primary"] for statement in it.get("statements", ()))
    ]
    return Section(
        markdown="\n\n".join(part for cell in shown for part in _parts(cell, whole)),
        figures={
            it["label"]: Picture(output.data["image/svg+xml"], it)
            for it, output in zip(about, outputs)
            if "label" in it
        },
        statements=tuple(statement for it in about for statement in it.get("statements", ())),
        today=tuple(comparison for it in about for comparison in it.get("today", ())),
        answer=next(iter(answers), ""),
    )


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
