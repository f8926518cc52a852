"""Run notebooks with papermill and make a report from their output: Falloff's own, or that of a
user's folder.
"""

import asyncio
import logging
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import papermill
import xarray as xr
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient.exceptions import DeadKernelError
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import Engine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from analysis import experiment, paths
from analysis.dataset import store
from analysis.descriptions import report_facts
from analysis.evidence import verify
from analysis.imports import dataset_sections
from analysis.report import report
from analysis.statements import notebooks
from analysis.subjects import program, twin_prediction
from runners.records.record import FalloffError, unknown

# A notebook may leave `data` out of its parameters, which papermill would call unknown.
logging.getLogger("papermill").setLevel(logging.ERROR)
OWN_REPORT = paths.BUILD / "own_report"
# A kernel interrupted by Ctrl+C would log a traceback of its sockets. Errors in cells arrive by
# another way.
QUIET = ["--IPKernelApp.log_level=50"]


def make(preset: str, out: Path) -> tuple[Path, list[str]]:
    """Run every notebook with the preset, and write the report.

    They run one after the other, because other work would disturb a measurement, and the summary
    runs last, because it gathers all findings. A notebook that fails is run on the stored
    reference, or else left out, with the reason. Returns the report's page, and a line for each run
    of today without a result.
    """
    order = sorted(notebooks.sections(), key=lambda file: file.stem == notebooks.SUMMARY)
    books, left_out = [], []
    for old in paths.EXECUTED.glob("*/*.ipynb"):  # the summary gathers what it finds there
        old.unlink()
    with Kernel() as kernel:
        for done, file in enumerate(order, 1):
            for tried in dict.fromkeys([preset, "stored"]):
                if not (error := kernel.execute(file, preset=tried)):
                    books.append(executed(file))
                    break
                left_out += [f"{file.stem}: {line}" for line in error.splitlines()]
            print(f"[{done}/{len(order)}] {file.stem}: done", flush=True)
    for line in left_out:
        print(f"left out: {line}", file=sys.stderr)
    parts = report.parts(books)
    page, _ = report.build(parts, report.project_facts(parts), out, left_out)
    return page, kernel.failed


class PlannedSection(NamedTuple):
    """A notebook to run on the dataset in a folder; it reads its data from there or from all
    folders.
    """

    notebook: str
    folder: Path
    dataset: xr.Dataset
    is_alone: bool


def make_own(data: Path, out: Path) -> tuple[Path, list[str], list[str]]:
    """Report the imports and campaigns in the folder `data` into the folder `out`, as `report.toml`
    beside them says.

    Returns the report's page, a line for each file of the user's that was kept, and one for each
    campaign or section that is not shown, with the reason. A campaign whose own notebook needs more
    than is there is shown by its readings. Raises FalloffError, and leaves the last report as it
    is, if no section can be made.
    """
    facts = report_facts.read(data)
    datasets, lines = _readable(data)
    wanted = planned_sections(datasets, facts.sections)
    lines += _not_shown(datasets, {section.folder for section in wanted})
    if not wanted:
        raise FalloffError(f"nothing in {data} has a section of a report: {'; '.join(lines)}")
    parts, shown = list[report.Part](), list[Path]()
    done = 0
    with Kernel() as kernel:
        while wanted:
            notebook, folder, dataset, is_alone = wanted.pop(0)
            file = paths.NOTEBOOKS / f"{notebook}.ipynb"
            made = paths.BUILD / "own_notebooks" / f"{notebook}-{folder.name}" / file.name
            source, campaign = folder if is_alone else data, dataset.attrs["campaign"]
            if error := kernel.execute(file, made, data=str(source.resolve()), campaign=campaign):
                lines.append(f"{folder.name}: {notebook} is left out: {error.splitlines()[0]}")
                others = [*shown, *(further.folder for further in wanted)]
                if not is_alone and folder not in others:
                    wanted[:0] = _by_readings(folder, dataset)
            else:
                parts.append(report.Part(made, (dataset,)))
                shown.append(folder)
            done += 1
            print(f"[{done}/{done + len(wanted)}] {folder.name}: {notebook}", flush=True)
    if not parts:
        raise FalloffError(f"no section could be made of {data}: {'; '.join(lines)}")
    page, sources = report.build(parts, facts, out)
    return page, sources, lines


def _readable(data: Path) -> tuple[dict[Path, xr.Dataset], list[str]]:
    """The readable campaigns in a folder, of each campaign's runs the last one last, and a line for
    each other one.
    """
    datasets, lines = {}, []
    for folder in sorted(verify.folders([data]), key=verify.last_run):
        try:
            datasets[folder] = store.read(folder)
        except FalloffError as reason:
            lines.append(f"{folder.name}: {reason}")
    return datasets, lines


def _not_shown(datasets: Mapping[Path, xr.Dataset], shown: set[Path]) -> Iterator[str]:
    """A line for each campaign without a section. A twin's simulations share one section."""
    latest = {datasets[folder].attrs["campaign"]: folder.name for folder in shown}
    for folder, dataset in datasets.items():
        campaign = dataset.attrs["campaign"]
        is_of_twin = campaign == twin_prediction.HELD_OUT and twin_prediction.WHAT_IF in latest
        if campaign in latest and folder not in shown:
            yield f"{folder.name}: {latest[campaign]} is a later run of {campaign}, and is shown"
        elif folder not in shown and not is_of_twin:
            yield f"{folder.name}: no section shows its readings"


def planned_sections(
    datasets: Mapping[Path, xr.Dataset], asked: Sequence[str] = ()
) -> list[PlannedSection]:
    """The sections of a report, in its order: the last run of each campaign and all imports, or the
    campaigns or folders `asked` for, in that order. `datasets` are by folder."""
    last = {
        folder if dataset.falloff.is_imported else dataset.attrs["campaign"]: folder
        for folder, dataset in datasets.items()
    }
    chosen = [
        section for folder in last.values() for section in _sections(folder, datasets[folder], last)
    ]
    chosen.sort(key=lambda section: (notebooks.role(section.notebook).weight, section.notebook))
    if not asked:
        return chosen
    names = [{section.dataset.attrs["campaign"], section.folder.name} for section in chosen]
    every = set().union(*names)
    if strangers := [name for name in asked if name not in every]:
        raise unknown(f"campaign in {report_facts.NAME}", strangers[0], every)
    return [section for name in asked for section, of in zip(chosen, names) if name in of]


def _sections(folder: Path, dataset: xr.Dataset, last: Mapping) -> list[PlannedSection]:
    """The sections of a dataset: the notebooks about its campaign, else those that show its
    readings. A twin's predictions share one."""
    campaign, evidence = dataset.attrs["campaign"], dataset.falloff.evidence
    if campaign == twin_prediction.HELD_OUT and len(last) > 1:
        return []
    if campaign == twin_prediction.WHAT_IF:
        return [PlannedSection(dataset_sections.TWIN, folder, dataset, False)]
    about = program.CAMPAIGN if program.is_one(dataset) else campaign
    files = [] if dataset.falloff.is_imported else notebooks.of_experiments()
    about_campaign = [
        PlannedSection(file.stem, folder, dataset, False)
        for file in files
        if notebooks.campaign_of(file) == about
        and notebooks.role(file.stem).evidence in ("", evidence)
    ]
    return about_campaign or _by_readings(folder, dataset)


def _by_readings(folder: Path, dataset: xr.Dataset) -> list[PlannedSection]:
    """The sections of the notebooks that show a dataset's readings."""
    names = dataset_sections.of(dataset)
    return [PlannedSection(name, folder, dataset, True) for name in names]


def executed(file: Path) -> Path:
    """The path of an executed notebook: in its own folder, with the datasets that it read."""
    return paths.EXECUTED / file.stem / file.name


class Kernel:
    """One kernel for all notebooks, because a kernel for each would spend most of its time on
    imports. Each notebook begins with an empty namespace."""

    def __enter__(self) -> "Kernel":
        self.failed: list[str] = []  # runs of today without a result
        self._begin()
        return self

    def __exit__(self, *_raised: object) -> None:
        run_sync(self._end)()
        self._sockets.cleanup()

    async def _end(self) -> None:
        interrupted = asyncio.all_tasks() - {asyncio.current_task()}
        for task in interrupted:
            task.cancel()
        await asyncio.gather(*interrupted, return_exceptions=True)
        if self.manager.has_kernel:
            await self.manager.shutdown_kernel()

    def _begin(self) -> None:
        self._sockets = tempfile.TemporaryDirectory()
        # Through files, not ports: nobody else can listen, and no other program can have taken one.
        where = {"transport": "ipc", "ip": f"{self._sockets.name}/kernel"}
        self.manager = AsyncKernelManager(kernel_name="python3", **where)

    def execute(self, file: Path, made: Path | None = None, **parameters: str) -> str:
        """Execute a notebook as `made` (by default `executed(file)`), showing its printed lines as
        they come; return what went wrong, in words, or nothing."""
        made = made or executed(file)
        made.parent.mkdir(parents=True, exist_ok=True)
        for old in made.parent.glob("*.nc"):
            old.unlink()
        try:
            papermill.execute_notebook(
                file,
                made,
                parameters={"out": str(made.parent), **parameters},
                progress_bar=False,
                request_save_on_cell_execute=False,
                cwd=paths.ROOT,
                engine_name=_Engine.__name__,
                km=self.manager,
                stdout_file=sys.stdout,
            )
        except PapermillExecutionError as error:
            made.unlink(missing_ok=True)
            if error.ename == experiment.RunFailed.__name__:
                self.failed.append(error.evalue)
            elif error.ename != FalloffError.__name__:
                return f"{error.ename}: {error.evalue}"
            return error.evalue
        except DeadKernelError:
            made.unlink(missing_ok=True)
            self.__exit__()
            self._begin()
            return "its process was killed, as happens where memory is short"
        for file in sorted(made.parent.glob(f"*{experiment.TODAY}.nc")):
            try:
                experiment.require_reading(store.load(file))
            except experiment.RunFailed as reason:
                self.failed.append(str(reason))
        return ""


class _Engine(Engine):
    """Papermill's interface for running cells in an existing kernel, which stays alive."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, km: Any, stdout_file: Any, **_: Any
    ) -> None:
        client = _Client(nb_man, km, stdout_file=stdout_file, extra_arguments=QUIET)
        try:
            client.execute()
        finally:
            if client.kc:
                client.kc.stop_channels()


class _Client(PapermillNotebookClient):
    def papermill_execute_cells(self) -> None:
        # Modules stay after a reset. IPython would search them for garbage each time.
        begin = "get_ipython().reset(); import gc; gc.freeze(); del gc"
        self.wait_for_reply(self.kc.execute(begin, silent=True))
        super().papermill_execute_cells()


papermill_engines.register(_Engine.__name__, _Engine)
