"""Run a notebook's cells in this process, without a kernel, to get the statements and figures that it makes of given data.

JupyterLab, papermill and this module run the very same cells. Here a run takes as long as its analysis: `falloff run` ends
with a notebook's statements, `falloff reproduce` and a run of today compare them, and tests plant the truth in them.
"""

import ast
import io
import json
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import xarray as xr

from analysis import paths
from analysis.exhibit import Exhibit, Table
from analysis.statements import Said, Statement
from runners.record import FalloffError, unknown

SUMMARY = "90_summary"  # gathers what all others state
# What shows a user's own files; as long as none are named, an example.
OF_OWN_FILES = (
    "06_your_own_messages",
    "07_your_own_streams",
    "08_faster_networks",
    "09_your_own_operations",
)
# These state nothing of an experiment's data.
LESSON = "02_lesson"
FRAME = ("00_start_here", LESSON, *OF_OWN_FILES, "80_explore", "85_claims", SUMMARY, "95_methods")
MAIN = "40_hpl_scaling"  # the main question
CLAIMS = "85_claims"
# These test the tools, and not a network: they are in the supplement alone, at its end.
TESTS_OF_TOOLS = ("12_ping_pong", "53_suspects", "86_compare", "87_reproduce")
# The report's sections by weight. An experiment that is not named comes before the claims.
BY_WEIGHT = (
    *(SUMMARY, MAIN, *OF_OWN_FILES, "44_hpl_paper"),
    # What explains the answer
    *("41_hpl_size", "42_hpl_noise", "46_scale_model", "45_hpl_agreement"),
    "48_hpl_messages",
    *("57_switch_buffers", "56_incast", "58_congestion", "47_hpl_larger"),
    # The other sources
    *("10_mtu", "11_frame_size", "20_token_exchange", "30_link_bonding", "43_hpl_blas"),
    *("50_long_path", "51_fan_out", "52_parallel_streams"),
    # Other programs, and the design of a network
    *("59_program", "62_program_others", "54_replay", "55_twin"),
    *("60_oversubscription", "70_top500"),
    *(CLAIMS, "95_methods", *TESTS_OF_TOOLS),
)
# These explain one kind of evidence; a campaign of another kind is shown as a user's own data are.
OF_ONE_KIND = {
    **dict.fromkeys(("44_hpl_paper", "54_replay", "55_twin"), "simulated"),
    **dict.fromkeys(
        ("45_hpl_agreement", "46_scale_model", "59_program", "62_program_others", "86_compare"),
        "emulated",
    ),
}
# What a notebook raises where campaigns are missing, or a short run lacks levels.
INSUFFICIENT = (FalloffError, KeyError, IndexError, ValueError)
PARAMETERS = "parameters"  # the tag of the cell that papermill replaces

# Datasets by campaign that notebooks read instead of runs or references, while `reading` is open.
_given: ContextVar[Mapping[str, xr.Dataset] | None] = ContextVar("given", default=None)


@dataclass(frozen=True)
class Executed:
    """What a notebook showed, in order, and the campaigns that it read."""

    shown: tuple[Any, ...]
    read: tuple[str, ...] = ()
    names: Mapping[str, Any] = field(default_factory=dict)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Every statement, in the order in which they were made; those that judge claims are `quantities`."""
        return tuple(one for one in self._stated if not one.name)

    @property
    def quantities(self) -> tuple[Statement, ...]:
        """The named quantities that claims of the sources are judged by."""
        return tuple(one for one in self._stated if one.name)

    @property
    def _stated(self) -> list[Statement]:
        return [one for said in self._of(Said) for one in said.statements]

    @property
    def figures(self) -> dict[str, Exhibit]:
        """The figures by their labels."""
        return {figure.label: figure for figure in self._of(Exhibit)}

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables in their order."""
        return tuple(self._of(Table))

    @property
    def text(self) -> str:
        """All text that was said, as Markdown."""
        return "\n\n".join(said.text for said in self._of(Said) if said.text)

    def _of(self, kind: type) -> Iterator:
        return (one for one in self.shown if isinstance(one, kind))


def run(
    file: Path,
    data: Mapping[str, xr.Dataset] | None = None,
    /,
    about: Collection[str] = (),
    **parameters: Any,
) -> Executed:
    """Run all cells of a notebook; with `data`, datasets by campaign, it reads these and nothing else.

    With `about` it runs no further than its first result if it has read none of these campaigns by then. Raises
    FalloffError if the data do not suffice for it, as a notebook on a cluster's few points may find.
    """
    shown: list[Any] = []
    names: dict[str, Any] = {
        "__name__": "__main__",
        "display": lambda *objects: shown.extend(objects),
    }
    # What a cell prints is for its reader in Jupyter.
    with reading(data) as read, redirect_stdout(io.StringIO()):
        for source, tags in _code(file):
            shown += _run_cell(source, names, file)
            if PARAMETERS in tags:
                names.update(parameters)
            if about and shown and not read.keys() & set(about):
                return Executed((), tuple(read), names)
    return Executed(tuple(shown), tuple(read), names)


def _code(file: Path) -> Iterator[tuple[str, list[str]]]:
    """The source and tags of each code cell. The notebooks are our own, and nbformat takes a second to be imported."""
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            yield "".join(cell["source"]), cell["metadata"].get("tags", [])


def _run_cell(source: str, names: dict[str, Any], file: Path) -> Iterator[Any]:
    """Run a cell; what its last line shows, as in Jupyter, comes back."""
    tree = ast.parse(source, str(file))
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr) or source.rstrip().endswith(";"):
        exec(compile(tree, str(file), "exec"), names)
        return
    exec(compile(ast.Module(tree.body[:-1], []), str(file), "exec"), names)
    value = eval(compile(ast.Expression(last.value), str(file), "eval"), names)
    if value is not None:
        yield value


@contextmanager
def reading(data: Mapping[str, xr.Dataset] | None) -> Iterator[dict[str, None]]:
    """While open, notebooks read these datasets (None: runs and references as always). Gives the campaigns that were read."""
    read: dict[str, None] = {}
    token = _given.set(None if data is None else _Recorded(data, read))
    try:
        yield read
    finally:
        _given.reset(token)


class _Recorded(Mapping[str, xr.Dataset]):
    """Datasets by campaign, with a note of those that were read."""

    def __init__(self, data: Mapping[str, xr.Dataset], read: dict[str, None]) -> None:
        self._data, self._read = data, read

    def __getitem__(self, campaign: str) -> xr.Dataset:
        dataset = self._data[campaign]
        self._read[campaign] = None
        return dataset

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


def in_order(files: Iterable[Path]) -> list[Path]:
    """Notebooks in the order of the report."""
    return sorted(files, key=lambda file: by_weight(file.stem))


def by_weight(notebook: str) -> tuple[int, bool, str]:
    """What sorts notebooks, by their names, into the order of the report."""
    is_named = notebook in BY_WEIGHT
    return BY_WEIGHT.index(notebook if is_named else CLAIMS), is_named, notebook


def given() -> Mapping[str, xr.Dataset] | None:
    """The datasets that notebooks are to read, None where they read runs and references."""
    return _given.get()


def of_experiments() -> list[Path]:
    """The notebooks that judge data, in the order of their numbers."""
    return [file for file in sorted(paths.NOTEBOOKS.glob("*.ipynb")) if file.stem not in FRAME]


def campaign_of(file: Path) -> str:
    """The campaign that a notebook is about: its parameter `campaign`, empty if it has none."""
    for source, tags in _code(file):
        for line in ast.parse(source).body if PARAMETERS in tags else ():
            if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "campaign":
                return str(ast.literal_eval(line.value))
    return ""


def stated(
    data: Mapping[str, xr.Dataset], beside: Mapping[str, xr.Dataset] = MappingProxyType({})
) -> dict[Path, Executed]:
    """The notebooks that state something on datasets by campaign, each run on them; what else they need they read from the
    datasets `beside` them, such as the references."""
    executed = {}
    for file in of_experiments():
        with suppress(*INSUFFICIENT):
            executed[file] = run(file, ChainMap(dict(data), beside), about=data.keys())
    return {
        file: one
        for file, one in executed.items()
        if any(each.campaign in data for each in one.statements)
    }


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


def _figures(file: Path) -> Iterator[str]:
    """The labels of the figures that a notebook draws, from its source: running all of them would take a while."""
    for source, _ in _code(file):
        for node in ast.walk(ast.parse(source)):
            # exhibit.figure("share", ...), comparison.figure(found, "compare", ...)
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".figure"):
                words = [one.value for one in node.args if isinstance(one, ast.Constant)]
                yield from [word for word in words[:1] if word.isidentifier()]


def statements(file: Path, data: Mapping[str, xr.Dataset]) -> tuple[tuple[Statement, ...], str]:
    """What a notebook states on datasets by campaign; if it states nothing, the reason.

    Too few points are no error here: the notebook's refusal becomes the reason.
    """
    try:
        return run(file, data).statements, ""
    except FalloffError as error:
        return (), str(error)
    except INSUFFICIENT as error:
        return (), f"The points that were run do not suffice ({type(error).__name__}: {error})."
