"""The notebooks through papermill, as a user runs them, and what the report reads of each."""

import re

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


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """`run(notebook, **parameters)` executes it on what is stored: its folder, and what went wrong."""
    with reporting.Kernel() as kernel, pytest.MonkeyPatch.context() as patch:

        def executed(notebook, preset="stored", **parameters):
            folder = tmp_path_factory.mktemp("run")
            patch.setattr(paths, "EXECUTED", folder)
            error = kernel.execute(notebook, preset=preset, **parameters)
            return folder / notebook.stem, error

        yield executed


@pytest.mark.parametrize("notebook", OTHERS, ids=lambda file: file.stem)
def test_a_notebook_that_is_no_section_runs(notebook, run):
    """Every cell, on what is stored."""
    assert run(notebook)[1] == ""


@pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))
def test_the_scaling_notebook_runs_with_the_simulated_testbed(run):
    """The same notebook and campaign, simulated: the finding says so, and the dataset that is saved."""
    out, error = run(SCALING, preset="quick", testbed="smith")
    section = document.read(out / SCALING.name)
    said = section.markdown.partition("What it does not say")[0]
    assert not error and "simulated evidence" in said and "emulated" not in said
    assert {finding["evidence"] for finding in section.findings} == {"simulated"}
    assert xr.open_dataset(out / "hpl_scaling-smith.nc").evidence.values[0] == "simulated"


def test_wrong_parameters_are_refused(run):
    """All faults in one line, before anything is run or written."""
    out, error = run(SCALING, blokcs="3", blocks="many")
    assert "parameters: 'blokcs' is unknown; blocks = 'many' is not int" in error
    assert not list(out.iterdir())
