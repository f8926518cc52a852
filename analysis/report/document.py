"""Turn an executed notebook into a section of the report: its text, figures and tables, as
Markdown."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.statements.statement import KEY, Statement
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

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict, dict]:
        return {"image/svg+xml": self.svg}, {KEY: dict(self.about)}


@dataclass(frozen=True)
class Section:
    """A notebook's content: `markdown`, its `figures` by label, its `statements`, and what a run of
    `today` says of them. `answer` is the Markdown of what was said first with a primary statement.
    """

    markdown: str
    figures: Mapping[str, Picture]
    statements: tuple[Statement, ...]
    today: tuple[dict, ...] = ()
    answer: str = ""

    @property
    def primary(self) -> list[Statement]:
        """The statements that campaigns were planned for."""
        return [statement for statement in self.statements if statement.primary]


def read(file: Path, whole: bool = False) -> Section:
    """The section of an executed notebook, with its details if `whole`.

    Raises FalloffError if the notebook was not executed to its end.
    """
    import nbformat  # takes a second, which only a report needs

    cells = nbformat.read(file, as_version=4).cells
    for cell in cells:
        if cell.cell_type == "code" and not cell.execution_count:
            line = cell.source.splitlines()[0]
            raise FalloffError(f"{file} was not executed to its end: {line!r} did not run")
    shown = [cell for cell in cells if whole or DETAIL not in cell.metadata.get("tags", [])]
    outputs = [output for cell in shown for output in cell.get("outputs", ())]
    ours = [(about, output.data) for output in outputs if (about := _about(output))]
    answers = [
        about["markdown"]
        for about, _ in ours
        if any(statement["primary"] for statement in about.get("statements", ()))
    ]
    return Section(
        markdown="\n\n".join(part for cell in shown for part in _parts(cell, whole)),
        figures={
            about["label"]: Picture(data["image/svg+xml"], about)
            for about, data in ours
            if "label" in about
        },
        statements=tuple(
            Statement.from_data(made) for about, _ in ours for made in about.get("statements", ())
        ),
        today=tuple(comparison for about, _ in ours for comparison in about.get("today", ())),
        answer=answers[0] if answers else "",
    )


def _about(output: Any) -> Any:
    """What an output of a cell says of itself, empty if it is none of ours."""
    return output.get("metadata", {}).get(KEY, {})


def _parts(cell: Any, whole: bool) -> Iterable[str]:
    """A cell's Markdown: its text, or its outputs. The code is added below a figure, or if
    `whole`."""
    if cell.cell_type == "markdown":
        yield cell.source
        return
    data = [output.get("data", {}) for output in cell.outputs]
    for output, shown in zip(cell.outputs, data):
        about = _about(output)
        if text := about.get("markdown", "") if about else shown.get("text/markdown", ""):
            yield text
    if whole or any("image/svg+xml" in shown for shown in data):
        longest = max(map(len, re.findall("`+", cell.source)), default=0)
        fence = "`" * max(3, longest + 1)
        yield f"::: code\n{fence}python\n{cell.source}\n{fence}\n:::"
