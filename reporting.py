"""Run the notebooks with papermill and make the report from their output."""

import asyncio
import logging
import sys
import tempfile
from pathlib import Path

import papermill
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient.exceptions import DeadKernelError
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import Engine, papermill_engines
from papermill.exceptions import PapermillExecutionError

import experiment
from analysis import paths, report, store
from analysis.notebooks import COLLECTIVES, LESSON, OF_OWN_FILES
from runners.record import FalloffError

# A notebook may leave `data` out of its parameters, which papermill would call unknown.
logging.getLogger("papermill").setLevel(logging.ERROR)
# A tour, a lesson, a page and what shows a user's own files, which are not sections of the report.
NO_SECTIONS = ("00_start_here", LESSON, "80_explore", *OF_OWN_FILES, COLLECTIVES)
# A kernel interrupted by Ctrl+C would log a traceback of its sockets. Errors in cells arrive by another way.
QUIET = ["--IPKernelApp.log_level=50"]


def make(preset: str, out: Path) -> tuple[Path, list[str]]:
    """Run every notebook with the preset, and write the report.

    They run one after the other, because other work would disturb a measurement, and the summary
    runs last, because it gathers all findings. A notebook that fails is run on the stored
    reference, or else left out, with the reason. Returns the report's page, and a line for each run
    of today without a result.
    """
    sections = [
        file for file in sorted(paths.NOTEBOOKS.glob("*.ipynb")) if file.stem not in NO_SECTIONS
    ]
    order = sorted(sections, key=lambda file: file.stem == report.SUMMARY)
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
    return report.build(books, out, left_out), kernel.failed


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
            if error.ename in (FalloffError.__name__, experiment.RunFailed.__name__):
                return error.evalue
            return f"{error.ename}: {error.evalue}"
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
    def execute_managed_notebook(cls, nb_man, kernel_name, km, stdout_file, **_) -> None:
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
