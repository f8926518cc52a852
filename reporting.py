"""Runs the notebooks by papermill and makes the report of what they show."""

import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import TextIO

import experiment
from analysis import experiments, paths, report

# A tour and a page: no sections of the report.
NO_SECTIONS = ("00_start_here", "80_explore")
SIDE_BY_SIDE = 2
# A kernel that Ctrl+C cuts off would log a traceback of its sockets; what fails in a cell comes by another way.
QUIET = ["--IPKernelApp.log_level=50"]


def make(preset: str, out: Path, data: Path | None = None) -> Path:
    """Run every notebook with the preset, and write the report of them; with `data` of the campaigns in that folder alone.

    Those that measure run alone, one after the other; the others side by side; the summary last, since it gathers what
    all found. A notebook that fails is run on the stored reference, or else left out, with the reason.
    """
    notebooks = [
        file for file in sorted(paths.NOTEBOOKS.glob("*.ipynb")) if file.stem not in NO_SECTIONS
    ]
    sections = [file for file in notebooks if file.stem != report.SUMMARY]
    measuring = (
        [] if data or preset == "stored" else [file for file in sections if _measures(file, preset)]
    )
    others = [file for file in sections if file not in measuring]
    run = _Run(preset, str(data.resolve()) if data else "", len(measuring), len(notebooks))
    for file in measuring:
        run.execute(file, sys.stdout)  # each trial's line as it ends
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(run.execute, others))
    run.execute(paths.NOTEBOOKS / f"{report.SUMMARY}.ipynb")
    for line in run.left_out:
        print(f"left out: {line}", file=sys.stderr)
    return report.build(run.executed, out, run.left_out)


def executed(file: Path) -> Path:
    """Where a notebook lies when it was executed: in a folder of its own, with the datasets that it read."""
    return paths.EXECUTED / file.stem / file.name


def campaigns_of(file: Path, preset: str) -> list[str]:
    """The campaigns that a notebook's experiments run: with the preset `full` all, else those that a run of today is compared with."""
    names = re.findall(r"experiment\.study\(parameters, (\w+)\)", file.read_text(encoding="utf-8"))
    modules = [import_module(f"analysis.experiments.{name}") for name in names]
    run = experiments.campaigns if preset == "full" else experiments.compared
    return list(dict.fromkeys(name for module in modules for name in run(module)))


def _measures(file: Path, preset: str) -> bool:
    """Whether a notebook runs anything with this preset."""
    names = campaigns_of(file, preset)
    described = (
        experiment.read_toml(paths.CAMPAIGNS / f"{name}.toml", "campaign") for name in names
    )
    return any(preset in campaign["presets"] for campaign in described)


class _Run:
    """The notebooks of one report as they are executed: what came of them, and how long it will take.

    The first so many `measure`, before all others of `count`.
    """

    def __init__(self, preset: str, data: str, measure: int, count: int) -> None:
        self.preset, self.data, self.measure, self.count = preset, data, measure, count
        self.executed: list[Path] = []
        self.left_out: list[str] = []
        self.ends = [time.monotonic()]

    def execute(self, file: Path, listener: TextIO | None = None) -> None:
        for preset in dict.fromkeys((self.preset, "stored")):
            error = _papermill(file, preset, self.data, listener)
            if not error:
                self.executed.append(executed(file))
                break
            self.left_out += [f"{file.stem}: {line}" for line in error.splitlines()]
            if self.data:
                break
        self.ends.append(time.monotonic())
        done = len(self.ends) - 1
        print(f"[{done}/{self.count}] {file.stem}: done{self._left(done)}", flush=True)

    def _left(self, done: int) -> str:
        """The time left, as if each notebook took as long as those of its kind; nothing before one of these has ended."""
        begun, end = (0, self.measure) if done < self.measure else (self.measure, self.count)
        if done in (begun, end):
            return ""
        each = (self.ends[done] - self.ends[begun]) / (done - begun)
        kind = "measuring " if end < self.count else ""
        return f", about {each * (end - done) / 60:.1f} min of {kind}notebooks left"


def _papermill(file: Path, preset: str, data: str, listener: TextIO | None) -> str:
    """Execute a notebook, whose printed lines go to the listener, too; what went wrong, in words, or nothing."""
    import papermill
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    made = executed(file)
    made.parent.mkdir(parents=True, exist_ok=True)
    for old in made.parent.glob("*.nc"):
        old.unlink()
    parameters = {"preset": preset, "out": str(made.parent), **({"data": data} if data else {})}
    with tempfile.TemporaryDirectory() as sockets:
        # Through files and not through ports: nobody else can listen, and no other program can have taken one.
        kernel = Config(KernelManager={"transport": "ipc", "ip": f"{sockets}/kernel"})
        try:
            papermill.execute_notebook(
                file,
                made,
                parameters=parameters,
                progress_bar=False,
                cwd=paths.ROOT,
                config=kernel,
                extra_arguments=QUIET,
                stdout_file=listener,
            )
        except PapermillExecutionError as error:
            made.unlink(missing_ok=True)
            return error.evalue
    return ""
