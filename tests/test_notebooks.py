"""The notebooks through papermill, as a user runs them."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
import xarray as xr

import experiment
from runners.testbeds import simulated

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


# Jupyter chooses ports before its kernel binds them: another program may have taken one by then.
NOT_STARTED = "Kernel died before replying to kernel_info"


def papermill(notebook: Path, out: Path, **parameters: str) -> subprocess.CompletedProcess:
    """`papermill NOTEBOOK out -p name value ...` from the repository's root; again if no kernel started."""
    command = [str(Path(sys.executable).with_name("papermill")), str(notebook), str(out / "done.ipynb")]
    for name, value in {"out": str(out), **parameters}.items():
        command += ["-p", name, value]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if NOT_STARTED in done.stderr:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return done


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Every notebook run on stored data, two at a time: its folder and how papermill ended."""
    with ThreadPoolExecutor(2) as pool:
        out = {notebook: tmp_path_factory.mktemp(notebook.stem) for notebook in NOTEBOOKS}
        ended = pool.map(papermill, out.keys(), out.values())
        return {notebook: (out[notebook], done) for notebook, done in zip(NOTEBOOKS, ended)}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_notebook_runs_on_stored_data(notebook, runs):
    """From a clean checkout, without root or tools: every cell runs, figures and dataset are written."""
    out, done = runs[notebook]
    assert done.returncode == 0, done.stderr[-2000:]
    cells = nbformat.read(out / "done.ipynb", as_version=4).cells
    shown = [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/svg+xml" in output.get("data", {}) for output in shown)
    assert list(out.glob("*.nc")) and list((out / "figures").glob("*.svg"))


@pytest.mark.skipif(
    bool(lacking := simulated.unavailable(experiment.read_testbed("smith"))), reason="; ".join(lacking)
)
def test_scaling_notebook_runs_with_the_simulated_testbed(tmp_path):
    """The same notebook and campaign, simulated: the verdicts say that they are the model's."""
    done = papermill(ROOT / "notebooks" / "40_hpl_scaling.ipynb", tmp_path, testbed="smith", preset="quick")
    assert done.returncode == 0, done.stderr[-2000:]
    cells = nbformat.read(tmp_path / "done.ipynb", as_version=4).cells
    said = [str(output.get("data", {})) for cell in cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("simulated evidence: a model" in text for text in said)
    assert xr.open_dataset(tmp_path / "hpl_scaling-smith.nc").evidence.values[0] == "simulated"


def test_wrong_parameters_are_refused(tmp_path):
    """All faults in one line, before anything is run or written; no traceback of ours."""
    done = papermill(NOTEBOOKS[0], tmp_path, blokcs="3", blocks="many")
    assert done.returncode != 0 and not list(tmp_path.glob("*.nc")) and "analysis/" not in done.stderr
    assert "falloff: parameters: 'blokcs' is unknown; blocks = 'many' is not int" in done.stderr
