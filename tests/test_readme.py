"""README says what the reference says: its figure and its verdicts are rebuilt and compared."""

from pathlib import Path

import pytest

import experiment
from analysis import report, style
from analysis.figures import scaling as figures
from analysis.studies import together

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def studies():
    """The shipped campaigns, analysed."""
    return together.analyse({name: experiment.stored(*source) for name, source in together.DATASETS.items()})


def test_figure_is_the_references(studies, tmp_path):
    """The figure in README is, byte for byte, the one that the shipped data give."""
    files = style.save_all(figures.draw(studies.scaling), tmp_path)
    assert files["share"].read_bytes() == (ROOT / "docs" / "hpl_share.svg").read_bytes()


def test_verdicts_are_the_references(studies):
    """README quotes the verdicts and findings, with their numbers, as the report words them."""
    verdicts = report.verdicts(report.facts(studies)).replace("\u00a0", " ").replace("\\", "").strip()
    assert verdicts in (ROOT / "README.md").read_text(encoding="utf-8")


def test_error_rates_are_the_calibrations(studies):
    """README quotes the worst rates of wrong claims with a fixed number of blocks."""
    fixed = report.facts(studies)["calibration"]["rules"]["fixed"]
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"{100 * fixed['flat']['rate']:.1f} % were called flat" in text
    assert f"{100 * fixed['falls_off']['rate']:.1f} % falling off" in text


def test_trust_is_the_comparisons(studies):
    """README quotes the largest difference between the simulation and HPL itself, and of how many cases."""
    trust = report.facts(studies)["trust"]
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"within {100 * trust['largest']:.2f} % of HPL itself in {trust['cases']} cases" in text
