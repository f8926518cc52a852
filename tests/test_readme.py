"""README says what the reference says: its figure and its verdicts are rebuilt and compared."""

from pathlib import Path

import experiment
from analysis import report, style
from analysis.facts import scaling as facts
from analysis.studies import scaling

ROOT = Path(__file__).resolve().parent.parent


def test_figure_is_the_references(tmp_path):
    """The figure in README is, byte for byte, the one that the shipped data give."""
    files = style.save_all(report.draw(scaling.analyse(experiment.stored("hpl_scaling"))), tmp_path)
    assert files["share"].read_bytes() == (ROOT / "docs" / "hpl_share.svg").read_bytes()


def test_verdicts_are_the_references():
    """README quotes the verdicts, with their numbers, as the report words them."""
    known = facts.collect(scaling.analyse(experiment.stored("hpl_scaling")))
    verdicts = report.verdicts(known).replace("\u00a0", " ").replace("\\", "").strip()
    assert verdicts in (ROOT / "README.md").read_text(encoding="utf-8")
