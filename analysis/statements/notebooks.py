"""Run a notebook's cells in this process, without a kernel, to get the statements and figures that
it makes of given data.

JupyterLab, papermill and this module run the very same cells. Here a run takes as long as its
analysis: `falloff run` ends with a notebook's statements, `falloff reproduce` and a run of today
compare them, and tests plant the truth in them.
"""

import ast
import io
import json
import re
import time
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import xarray as xr

from analysis import paths
from analysis.statements.exhibit import Exhibit, Table
from analysis.statements.statement import Statement, Text
from runners.records.journal import Folder
from runners.records.record import FalloffError, unknown

SUMMARY = "90_summary"  # gathers what all others state
# Who reads a notebook: everybody, as a section of the report; whoever opens the supplement, which
# has all further experiments; users in the report of their own files; and ("reader") those who open
# the notebook itself. A FRAME is a section that judges no data.
REPORT, SUPPLEMENT, FRAME, OWN_FILES = "report", "supplement", "frame", "own files"
# What a notebook raises where campaigns are missing, or a short run lacks levels.
INSUFFICIENT = (FalloffError, KeyError, IndexError, ValueError)
PARAMETERS = "parameters"  # the tag of the cell that papermill replaces

# Datasets by campaign that notebooks read instead of runs or references, while `reading` is open.
_given: ContextVar[Mapping[str, xr.Dataset] | None] = ContextVar("given", default=None)


@dataclass(frozen=True)
class NotebookRun:
    """The outputs of a notebook in order, and the campaigns that it read."""

    shown: tuple[Any, ...]
    read: tuple[str, ...]
    names: Mapping[str, Any]

    @property
    def stated(self) -> tuple[Statement, ...]:
        """Every statement, in the order in which they were made; named ones judge claims."""
        return tuple(statement for text in self._of(Text) for statement in text.statements)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What answers the notebook's own questions: the statements without a name."""
        return tuple(statement for statement in self.stated if not statement.name)

    @property
    def figures(self) -> dict[str, Exhibit]:
        """The figures by their labels."""
        return {figure.label: figure for figure in self._of(Exhibit)}

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables in their order."""
        return tuple(self._of(Table))

    def _of(self, kind: type) -> Iterator:
        return (item for item in self.shown if isinstance(item, kind))


def run(
    file: Path,
    data: Mapping[str, xr.Dataset] | None = None,
    /,
    about: Collection[str] = (),
    **parameters: Any,
) -> NotebookRun:
    """Run all cells of a notebook; with `data`, datasets by campaign, it reads these and nothing
    else.

    With `about` it runs no further than its first result if it has read none of these campaigns by
    then. Raises FalloffError if the data do not suffice for it, as a notebook on a cluster's few
    points may find.
    """
    shown: list[Any] = []

    def display(*values: Any) -> None:
        shown.extend(value for value in values if value is not None)

    names: dict[str, Any] = {"__name__": "__main__", "display": display}
    # What a cell prints is for its reader in Jupyter.
    with reading(data) as read, redirect_stdout(io.StringIO()):
        for source, tags in _code(file):
            exec(_compiled(source, file), names)
            if PARAMETERS in tags:
                names.update(parameters)
            if about and shown and not read.keys() & set(about):
                return NotebookRun((), tuple(read), names)
    return NotebookRun(tuple(shown), tuple(read), names)


def _code(file: Path) -> Iterator[tuple[str, list[str]]]:
    """The source and tags of each code cell. The notebooks are our own, and nbformat takes a second
    to be imported.
    """
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"]), cell["metadata"].get("tags", [])


def _compiled(source: str, file: Path) -> Any:
    """The code of a cell, which displays the value of its last line, as Jupyter does."""
    tree = ast.parse(source, str(file))
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr) and not source.rstrip().endswith(";"):
        last.value = ast.Call(ast.Name("display", ast.Load()), [last.value], [])
    return compile(ast.fix_missing_locations(tree), str(file), "exec")


@contextmanager
def reading(data: Mapping[str, xr.Dataset] | None) -> Iterator[dict[str, None]]:
    """While open, notebooks read these datasets (None: runs and references as always). Gives the
    campaigns that were read.
    """
    read: dict[str, None] = {}
    token = _given.set(None if data is None else _Recorded(data, read))
    try:
        yield read
    finally:
        _given.reset(token)


class _Recorded(ChainMap[str, xr.Dataset]):
    """Datasets by campaign, with a note of those that were read."""

    def __init__(self, data: Any, read: dict[str, None]) -> None:
        super().__init__(data)
        self._read = read

    def __getitem__(self, campaign: str) -> xr.Dataset:
        dataset = super().__getitem__(campaign)
        self._read[campaign] = None
        return dataset


@dataclass(frozen=True)
class Role:
    """A notebook's part in the report, as its metadata say under `falloff`: the lighter, the
    earlier. Without any it is an experiment before the claims. `evidence` is the only kind that it
    explains; data of another kind are shown as a user's own."""

    audience: str = REPORT
    weight: int = 196
    evidence: str = ""
    on_first_page: bool = False  # its first planned statement is among the findings there


def role(notebook: str) -> Role:
    """The role of a notebook, by its name."""
    file = paths.NOTEBOOKS / f"{notebook}.ipynb"
    about = json.loads(file.read_text(encoding="utf-8"))["metadata"] if file.exists() else {}
    return Role(**about.get("falloff", {}))


def with_audience(*audiences: str) -> list[Path]:
    """The notebooks for these audiences, in the order of their numbers."""
    files = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
    return [file for file in files if role(file.stem).audience in audiences]


def sections() -> list[Path]:
    """The notebooks that are sections of the report or the supplement, in the order of their
    numbers.
    """
    return with_audience(REPORT, SUPPLEMENT, FRAME)


def of_experiments() -> list[Path]:
    """The notebooks that judge data, in the order of their numbers."""
    return with_audience(REPORT, SUPPLEMENT)


def in_order(files: Iterable[Path]) -> list[Path]:
    """Notebooks in the order of the report."""
    return sorted(files, key=lambda file: (role(file.stem).weight, file.stem))


def given() -> Mapping[str, xr.Dataset] | None:
    """The datasets that notebooks are to read, None where they read runs and references."""
    return _given.get()


def campaign_of(file: Path) -> str:
    """The campaign that a notebook is about: its parameter `campaign`, empty if it has none."""
    return next(iter(_matches(r'^campaign = "(\w+)"', file)), "")


def _matches(pattern: str, file: Path) -> list[str]:
    """The matches of a pattern in a notebook's code, which is quicker than running it."""
    return re.findall(pattern, "\n".join(source for source, _ in _code(file)), re.M)


def stated(
    data: Mapping[str, xr.Dataset], beside: Any = MappingProxyType({})
) -> dict[Path, NotebookRun]:
    """The notebooks that state something on datasets by campaign, each run on them; what else they
    need they read from the datasets `beside` them, such as the references."""
    executed = {}
    for file in of_experiments():
        with suppress(*INSUFFICIENT):
            made = run(file, ChainMap(dict(data), beside), about=data.keys())
            if any(statement.campaign in data for statement in made.statements):
                executed[file] = made
    return executed


def find_figure(label: str, data: Mapping[str, xr.Dataset]) -> tuple[Path, Exhibit]:
    """The notebook that draws the figure with this label or file name, and the figure.

    Raises FalloffError naming all figures if there is none.
    """
    name = label.removesuffix(".svg").removeprefix("fig:").replace("-", "_")
    drawn = {figure: file for file in of_experiments() for figure in _figures(file)}
    if name not in drawn:
        raise unknown("figure", label, drawn)
    figures = run(drawn[name], data).figures
    if name not in figures:  # some are drawn only where another campaign was run, too
        raise unknown("figure", label, figures)
    return drawn[name], figures[name]


def _figures(file: Path) -> list[str]:
    """The labels of the figures that a notebook draws."""
    # exhibit.figure("share", ...), exhibit.Exhibit("lists", ...), comparison.figure(x, "y", ...)
    return _matches(r'\.(?:figure|Exhibit)\(\s*(?:[^",()]+,\s*)?"(\w+)"', file)


def statements(file: Path, data: Mapping[str, xr.Dataset]) -> tuple[tuple[Statement, ...], str]:
    """A notebook's statements on datasets by campaign; the reason if it has none.

    Too few points are no error here: the notebook's refusal becomes the reason.
    """
    try:
        return run(file, data).statements, ""
    except FalloffError as error:
        return (), str(error)
    except INSUFFICIENT as error:
        return (), f"The points that were run do not suffice ({type(error).__name__}: {error})."


def shipped() -> list[dict[str, Any]]:
    """A row for each reference campaign: its name and testbed, what was run, the number of trials
    and the day.
    """
    return [_row(Folder(file.parent)) for file in sorted(paths.REFERENCE.glob("*/trials.json"))]


def contents() -> str:
    """Every notebook on your own data or an experiment with its question, as a Markdown table with
    links.
    """
    rows = []
    for file in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        if not "01" <= file.name < "90":  # the others frame these
            continue
        opening = "".join(json.loads(file.read_text(encoding="utf-8"))["cells"][0]["source"])
        title, _, text = opening.partition("\n")
        words = re.sub(r"\s*\[@[^]]*\]", "", " ".join(text.split()))
        questions = "".join(re.findall(r"[^.?!]+\?", words)).strip()
        rows.append(f"| [{file.stem}]({file.name}) | {title[2:]} | {questions} |")
    return "\n".join(["| Notebook | Title | Question |", "|:--|:--|:--|", *rows])


def _row(folder: Folder) -> dict[str, Any]:
    plan = folder.plan()
    return {
        "campaign": plan.name,
        "testbed": plan.testbed["name"],
        "what was run": plan.title,
        "trials": len(plan.trials()),
        "ended": time.strftime("%Y-%m-%d", time.gmtime(folder.notes()[-1]["at"])),
    }
