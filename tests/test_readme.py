"""README says what the reference says: its figure and its verdicts are rebuilt and compared."""

from pathlib import Path

import pytest

from analysis import report

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def known(stored):
    """What a report of the shipped campaigns may quote."""
    return report.facts(stored.studies)


def test_figure_is_the_references(stored):
    """The figure in README is, byte for byte, the one that the shipped data give."""
    drawn = stored.folder / "figures" / "share.svg"
    assert drawn.read_bytes() == (ROOT / "docs" / "hpl_share.svg").read_bytes()


def test_findings_are_the_references(known):
    """README quotes the report's abstract, with its numbers."""
    abstract = report.abstract(known).replace("\u00a0", " ").replace("\\", "")
    assert f"> {abstract}\n" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_error_rates_are_the_calibrations(known):
    """README quotes the worst rates of wrong claims with a fixed number of blocks."""
    fixed = known["calibration"]["rules"]["fixed"]
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"{100 * fixed['flat']['rate']:.1f} % were called flat" in text
    assert f"{100 * fixed['falls_off']['rate']:.1f} % falling off" in text


def test_trust_is_the_comparisons(known):
    """README quotes the largest difference between the simulation and HPL itself, and of how many cases."""
    trust = known["trust"]
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"within {100 * trust['largest']:.2f} % of HPL itself in {trust['cases']} cases" in text
