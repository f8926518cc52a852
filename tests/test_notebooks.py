"""The notebooks through papermill, as a user runs them."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import xarray as xr

import experiment
from runners.testbeds import simulated

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
lacking = simulated.unavailable(experiment.read_testbed("smith"))

# Jupyter chooses ports before its kernel binds them: another program may have taken one by then.
NOT_STARTED = "Kernel died before replying to kernel_info"


def run(notebook: Path, out: Path, **parameters: str) -> None:
    """`papermill NOTEBOOK out -p name value ...` from the repository's root; again if no kernel started.

    In this process: what papermill imports takes longer than many a notebook.
    """
    import papermill  # here: other processes of the suite, which collect this file too, do without

    arguments = {"parameters": {"out": str(out), **parameters}, "progress_bar": False, "cwd": ROOT}
    try:
        papermill.execute_notebook(notebook, out / "done.ipynb", **arguments)
    except RuntimeError as error:
        if NOT_STARTED not in str(error):
            raise
        papermill.execute_notebook(notebook, out / "done.ipynb", **arguments)


def cells_of(out: Path) -> list:
    """The cells of code of the notebook that ran."""
    import nbformat

    return [cell for cell in nbformat.read(out / "done.ipynb", as_version=4).cells if cell.cell_type == "code"]


def run_wrongly(out: Path) -> subprocess.CompletedProcess:
    """The first notebook by papermill's own command, with two wrong parameters."""
    command = [Path(sys.executable).with_name("papermill"), NOTEBOOKS[0], out / "done.ipynb"]
    for name, value in {"out": out, "blokcs": "3", "blocks": "many"}.items():
        command += ["-p", name, value]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    return run_wrongly(out) if NOT_STARTED in done.stderr else done


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Every notebook on stored data, one `simulated` and one `refused`, beside other tests: folder and outcome."""
    out = {key: tmp_path_factory.mktemp("run") for key in (*NOTEBOOKS, "simulated", "refused")}
    scaling = ROOT / "notebooks" / "40_hpl_scaling.ipynb"
    with ThreadPoolExecutor(1) as pool:
        ended = {notebook: pool.submit(run, notebook, out[notebook]) for notebook in NOTEBOOKS}
        ended["refused"] = pool.submit(run_wrongly, out["refused"])
        if not lacking:
            ended["simulated"] = pool.submit(run, scaling, out["simulated"], testbed="smith", preset="quick")
    return {key: (out[key], done) for key, done in ended.items()}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_notebook_runs_on_stored_data(notebook, runs):
    """From a clean checkout, without root or tools: every cell runs, figures and dataset are written."""
    out, done = runs[notebook]
    done.result()
    shown = [output for cell in cells_of(out) for output in cell.outputs]
    assert any("image/svg+xml" in output.get("data", {}) for output in shown)
    assert list(out.glob("*.nc")) and list((out / "figures").glob("*.svg"))


@pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))
def test_scaling_notebook_runs_with_the_simulated_testbed(runs):
    """The same notebook and campaign, simulated: the verdicts say that they are the model's."""
    out, done = runs["simulated"]
    done.result()
    said = [str(output.get("data", {})) for cell in cells_of(out) for output in cell.outputs]
    assert any("simulated evidence: a model" in text for text in said)
    assert xr.open_dataset(out / "hpl_scaling-smith.nc").evidence.values[0] == "simulated"


def test_wrong_parameters_are_refused(runs):
    """All faults in one line, before anything is run or written; no traceback of ours."""
    out, ended = runs["refused"]
    done = ended.result()
    assert done.returncode != 0 and not list(out.glob("*.nc")) and "analysis/" not in done.stderr
    assert "falloff: parameters: 'blokcs' is unknown; blocks = 'many' is not int" in done.stderr
