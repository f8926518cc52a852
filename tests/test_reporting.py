"""`make report`: in which order notebooks are run, and what becomes of those that cannot be."""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
from command_line import ROOT, run
from nbformat.v4 import new_code_cell, new_notebook
from shown import failed
from synthetic_hpl_paper import smith_campaign

from analysis import paths
from analysis.dataset import store
from analysis.explorer import static
from analysis.report import execution, report
from analysis.statements import notebooks
from analysis.statements.notebooks import SUMMARY

SECTIONS = {file.stem for file in notebooks.sections()}


@pytest.fixture
def make(monkeypatch, tmp_path):
    """`make(preset, failing)`: which notebooks were `run` with which preset, and what the report is
    made of.
    """

    def made(preset, failing=()):
        run = []

        def execute(_kernel, file, preset, **_):
            run.append((file.stem, preset))
            return "as root: make report" if run[-1] in failing else ""

        monkeypatch.setattr(paths, "EXECUTED", tmp_path)
        monkeypatch.setattr(execution.Kernel, "execute", execute)
        monkeypatch.setattr(
            report, "build", lambda parts, _, out, left_out: ((parts, left_out), [])
        )
        (parts, left_out), _ = execution.make(preset, tmp_path)
        return SimpleNamespace(run=run, books={part.book.stem for part in parts}, left_out=left_out)

    return made


def test_every_notebook_is_run_in_order_and_the_summary_last(make):
    """The summary gathers what all others found."""
    found = make("quick")
    order = [stem for stem, _ in found.run]
    assert order == [*sorted(SECTIONS - {SUMMARY}), SUMMARY] and found.books == SECTIONS
    assert found.run[-1] == (SUMMARY, "quick") and found.left_out == []


def test_a_notebook_of_an_older_version_is_no_section(make, tmp_path):
    """The summary gathers every executed notebook that it finds."""
    old = tmp_path / "45_gone" / "45_gone.ipynb"
    old.parent.mkdir()
    old.touch()
    make("stored")
    assert not old.exists()


def test_what_cannot_be_run_is_shown_as_it_is_stored(make, tmp_path):
    """With the remedy; what cannot be read either is left out."""
    failing = [("40_hpl_scaling", "quick"), ("51_fan_out", "quick"), ("51_fan_out", "stored")]
    found = make("quick", failing=failing)
    assert found.books == SECTIONS - {"51_fan_out"} and ("40_hpl_scaling", "stored") in found.run
    told = ["40_hpl_scaling: as root: make report", *["51_fan_out: as root: make report"] * 2]
    assert found.left_out == told


def test_a_run_that_gave_nothing_ends_with_code_1(monkeypatch, tmp_path):
    """The report is written all the same, and says which run it was."""
    line = "campaign hpl_scaling: 21 of 21 trials gave no reading: exit code 1."
    for lines, code in (([line], 1), ([], 0)):
        monkeypatch.setattr(execution, "make", lambda *_: (tmp_path / "falloff.html", lines))
        monkeypatch.setattr(static, "write", lambda *_: None)
        done = run("report", "--out", str(tmp_path))
        assert done.returncode == code and done.stderr.count(line) == len(lines)


@pytest.fixture
def book(monkeypatch, tmp_path):
    """`book(source)`: a notebook of one cell with this code."""
    monkeypatch.setattr(paths, "EXECUTED", tmp_path)

    def made(source):
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.ipynb"
        cells = [new_code_cell("preset = out = ''", metadata={"tags": ["parameters"]})]
        kernel = {"name": "python3", "display_name": "Python", "language": "python"}
        cells.append(new_code_cell(source))
        nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), file)
        return file

    return made


def test_notebooks_share_a_kernel_and_nothing_else(book):
    """Each begins with an empty namespace, also after one that failed, or that was killed; both say
    what happened.
    """
    plain = book("assert 'mine' not in dir()\nmine = 1")
    with execution.Kernel() as kernel:
        assert [kernel.execute(plain, preset="stored") for _ in range(2)] == ["", ""]
        assert (
            kernel.execute(book("mine = 1 / 0"), preset="stored")
            == "ZeroDivisionError: division by zero"
        )
        killed = kernel.execute(book("import os; os._exit(9)"), preset="stored")
        assert "killed" in killed and kernel.execute(plain, preset="stored") == ""
    executed = nbformat.read(execution.executed(plain), as_version=4)
    assert [cell.execution_count for cell in executed.cells] == [1, 2, 3]


@pytest.mark.more
def test_a_notebook_of_a_run_that_failed_is_counted(book, tmp_path):
    """Whether the run stands beside a reference, or would have been all that there is."""
    kept = tmp_path / "kept.nc"
    store.save(failed(smith_campaign("hpl_paper_simulated"), "no library"), kept)
    run = (
        "import shutil\nfrom analysis import experiment\nfrom analysis.dataset import "
        f"store\nkept = {str(kept)!r}\n"
    )
    beside = book(f"{run}shutil.copy(kept, f'{{out}}/hpl_paper_simulated-smith-today.nc')")
    alone = book(f"{run}experiment.require_reading(store.load(kept))")
    with execution.Kernel() as kernel:
        assert kernel.execute(beside, preset="quick") == ""
        told = kernel.execute(alone, preset="full")
        assert "trials gave no reading: no library." in told and kernel.failed == [told, told]


@pytest.mark.more
def test_an_interrupted_notebook_says_nothing(book, tmp_path):
    """Ctrl+C while a cell runs: no traceback, neither of the kernel's nor of ours."""
    slow = book(
        "import time\nfor second in range(60):\n    print('waits', flush=True); time.sleep(1)"
    )
    code = (
        "import sys; from pathlib import Path; from analysis.report import execution\n"
        f"from analysis import paths; paths.EXECUTED = Path({str(tmp_path)!r})\n"
        "try:\n"
        "    with execution.Kernel() as kernel:\n"
        f"        kernel.execute(Path({str(slow)!r}), preset='stored')\n"
        "except KeyboardInterrupt: sys.exit(130)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    looks = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    looks["start_new_session"] = True  # as in a terminal, all its processes hear of Ctrl+C
    with subprocess.Popen([sys.executable, "-c", code], env=environment, **looks) as running:
        while "waits" not in running.stdout.readline():
            assert running.poll() is None
        os.killpg(running.pid, signal.SIGINT)
        rest = running.communicate(timeout=60)[0]
    assert running.returncode == 130 and not set(rest.split()) - {"waits"}, rest
