"""The notebooks through papermill, as a user runs them, and what the report reads of each."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import xarray as xr

import experiment
import reporting
from analysis import document, paths, style
from runners.testbeds import simulated

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
SECTIONS = [file for file in NOTEBOOKS if file.stem not in reporting.NO_SECTIONS]
OTHERS = [file for file in NOTEBOOKS if file not in SECTIONS]
SCALING = paths.NOTEBOOKS / "40_hpl_scaling.ipynb"
lacking = simulated.unavailable(experiment.read_testbed("smith"))

# Jupyter chooses ports before its kernel binds them: another program may have taken one by then.
NOT_STARTED = "Kernel died before replying to kernel_info"


@pytest.mark.parametrize("notebook", SECTIONS, ids=lambda file: file.stem)
def test_a_notebook_is_a_section(notebook, stored):
    """From a clean checkout, without root or tools: every cell runs, and what it shows can be read in the report."""
    assert f"left out: {notebook.stem}" not in stored.err
    done = stored.notebooks / notebook.stem / notebook.name
    brief, whole = document.read(done), document.read(done, whole=True)
    words = re.sub(r"^::: code$.*?^:::$", "", whole.markdown, flags=re.M | re.S)
    assert whole.markdown.startswith("# ") and not re.search(r"\b(nan|None)\b", words)
    assert set(brief.figures) <= set(whole.figures) == set(whole.rests_on) and len(
        whole.markdown
    ) >= len(brief.markdown)
    captions = dict(
        re.findall(r"^!\[(.*)\]\(figures/\w+\.svg\)\{#fig:([\w-]+) ", whole.markdown, re.M)
    )
    assert {label.replace("_", "-") for label in whole.figures} == set(captions.values())
    for caption in captions:
        assert re.search(r"n = \d+|(simulated|published) evidence", caption), caption
    for svg in whole.figures.values():
        assert float(re.search(r'<svg [^>]*width="([\d.]+)pt"', svg)[1]) <= 72 * style.WIDTH


@pytest.mark.parametrize("notebook", OTHERS, ids=lambda file: file.stem)
def test_a_notebook_that_is_no_section_runs(notebook, runs):
    """Every cell, on what is stored."""
    _, done = runs[notebook]
    done.result()


@pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))
def test_the_scaling_notebook_runs_with_the_simulated_testbed(runs):
    """The same notebook and campaign, simulated: the finding says so, and the dataset that is saved."""
    out, done = runs["simulated"]
    done.result()
    section = document.read(out / "done.ipynb")
    said = section.markdown.partition("What it does not say")[0]
    assert "simulated evidence" in said and "emulated" not in said
    assert {finding["evidence"] for finding in section.findings} == {"simulated"}
    assert xr.open_dataset(out / "hpl_scaling-smith.nc").evidence.values[0] == "simulated"


def test_wrong_parameters_are_refused(runs):
    """All faults in one line, before anything is run or written; no traceback of ours."""
    out, ended = runs["refused"]
    done = ended.result()
    assert done.returncode != 0 and not list(out.glob("*.nc")) and "analysis/" not in done.stderr
    assert "falloff: parameters: 'blokcs' is unknown; blocks = 'many' is not int" in done.stderr


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The notebooks that are no sections, one `simulated` and one `refused`: folder and outcome."""
    out = {key: tmp_path_factory.mktemp("run") for key in (*OTHERS, "simulated", "refused")}
    with ThreadPoolExecutor(2) as pool:
        ended = {notebook: pool.submit(run, notebook, out[notebook]) for notebook in OTHERS}
        ended["refused"] = pool.submit(run_wrongly, out["refused"])
        if not lacking:
            ended["simulated"] = pool.submit(
                run, SCALING, out["simulated"], testbed="smith", preset="quick"
            )
    return {key: (out[key], done) for key, done in ended.items()}


def run(notebook: Path, out: Path, **parameters: str) -> None:
    """`papermill NOTEBOOK out -p name value ...` from the repository's root; again if no kernel started.

    In this process: what papermill imports takes longer than many a notebook.
    """
    import papermill  # here: other processes of the suite, which collect this file too, do without

    arguments = {
        "parameters": {"out": str(out), **parameters},
        "progress_bar": False,
        "cwd": paths.ROOT,
    }
    try:
        papermill.execute_notebook(notebook, out / "done.ipynb", **arguments)
    except RuntimeError as error:
        if NOT_STARTED not in str(error):
            raise
        papermill.execute_notebook(notebook, out / "done.ipynb", **arguments)


def run_wrongly(out: Path) -> subprocess.CompletedProcess:
    """A notebook by papermill's own command, with two wrong parameters."""
    command = [Path(sys.executable).with_name("papermill"), SCALING, out / "done.ipynb"]
    for name, value in {"out": out, "blokcs": "3", "blocks": "many"}.items():
        command += ["-p", name, value]
    done = subprocess.run(command, capture_output=True, text=True, cwd=paths.ROOT)
    return run_wrongly(out) if NOT_STARTED in done.stderr else done
