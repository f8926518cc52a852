"""`make report`: in which order notebooks are run, and what becomes of those that cannot be."""

import os
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import nbformat
import pytest
from command_line import ROOT

import reporting
from analysis import paths, report
from analysis.summary import SUMMARY

SECTIONS = {file.stem for file in paths.NOTEBOOKS.glob("*.ipynb")} - {*reporting.NO_SECTIONS}


@pytest.fixture
def make(monkeypatch, tmp_path):
    """`make(preset, data, failing)`: which notebooks were `run` with which preset, which of them `alone`, and what the
    report is made of, `books` and `left_out`. Those that may run side by side wait for each other."""

    def made(preset, data=None, failing=()):
        run, alone, meeting = [], [], threading.Barrier(2)

        def execute(file, used, *_):
            run.append((file.stem, used))
            try:
                meeting.wait(timeout=0.05)
            except threading.BrokenBarrierError:
                alone.append(file.stem)
                meeting.reset()
            return "as root: make report" if (file.stem, used) in failing else ""

        monkeypatch.setattr(reporting, "_papermill", execute)
        monkeypatch.setattr(report, "build", lambda *given: given)
        books, _, left_out = reporting.make(preset, tmp_path, data)
        return SimpleNamespace(
            run=run, alone=alone, books={book.stem for book in books}, left_out=left_out
        )

    return made


def test_what_measures_runs_alone_and_the_summary_last(make):
    """Other work on the machine would spoil a measurement; the summary gathers what all others found."""
    found = make("quick")
    assert {"10_switch_mtu", "40_hpl_scaling", "44_hpl_paper"} <= {*found.alone}
    assert not {"42_hpl_noise", "61_payoff", "70_top500"} & {*found.alone[:-2]}
    assert found.run[-1] == (SUMMARY, "quick") and found.books == SECTIONS and found.left_out == []
    assert len(found.run) == len(SECTIONS)


def test_all_campaigns_are_run_in_full(make):
    """Whatever has a campaign measures."""
    assert {"42_hpl_noise", "61_payoff"} <= {*make("full").alone}


@pytest.mark.parametrize("data", [False, True])
def test_what_is_stored_or_ones_own_is_only_read(data, make, tmp_path):
    """Side by side: at most the last of them, and the summary, are alone."""
    found = make("quick", tmp_path) if data else make("stored")
    assert len(found.alone) <= 2 and found.run[-1][0] == SUMMARY


def test_what_cannot_be_run_is_shown_as_it_is_stored(make):
    """With the remedy; what cannot be read either is left out. Of one's own data nothing stored takes the place."""
    failing = [("40_hpl_scaling", "quick"), ("51_fan_out", "quick"), ("51_fan_out", "stored")]
    found = make("quick", failing=failing)
    assert found.books == SECTIONS - {"51_fan_out"} and ("40_hpl_scaling", "stored") in found.run
    assert found.left_out == [
        "40_hpl_scaling: as root: make report",
        *["51_fan_out: as root: make report"] * 2,
    ]


def test_ones_own_data_are_not_filled_up(make, tmp_path):
    """A section without its campaign is left out: nothing that is stored takes its place."""
    found = make("quick", tmp_path, failing=[("40_hpl_scaling", "quick")])
    assert (
        found.books == SECTIONS - {"40_hpl_scaling"}
        and ("40_hpl_scaling", "stored") not in found.run
    )


def test_an_interrupted_notebook_says_nothing(tmp_path):
    """Ctrl+C while a cell runs: no traceback, neither of the kernel's nor of ours."""
    book = tmp_path / "slow.ipynb"
    cells = [nbformat.v4.new_code_cell("preset = out = ''", metadata={"tags": ["parameters"]})]
    slow = (
        "import time\nfor second in range(60):\n    print('waits', flush=True)\n    time.sleep(1)"
    )
    cells.append(nbformat.v4.new_code_cell(slow))
    kernel = {"name": "python3", "display_name": "Python", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), book)
    code = (
        "import sys, reporting; from pathlib import Path\n"
        f"from analysis import paths; paths.EXECUTED = Path({str(tmp_path)!r})\n"
        f"try: reporting._papermill(Path({str(book)!r}), 'stored', '', sys.stdout)\n"
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
