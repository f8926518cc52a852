"""The report of the shipped references, built once by its command; README says what it says."""

import re
from pathlib import Path

import pytest

from analysis import report

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def known(stored):
    """What a report of the shipped campaigns may quote."""
    return report.facts(stored.studies)


def test_stored_report_is_written_without_running_anything(stored):
    """`falloff report --preset stored` ends with the line that says where the report is."""
    assert stored.done.returncode == 0, stored.done.stderr
    html, pdf = stored.folder / "falloff.html", stored.folder / "falloff.pdf"
    assert stored.done.stdout.splitlines()[-1] == f"Report: {html} and {pdf}"
    assert html.read_text().lstrip().startswith("<!DOCTYPE html>") and pdf.read_bytes().startswith(b"%PDF")
    beside = re.findall(r'href="(\w+\.html)"', html.read_text())
    assert beside == ["explorer.html", "supplement.html"] and all((stored.folder / name).exists() for name in beside)


def test_the_report_has_the_length_of_a_paper(stored):
    """12 to 20 pages, everything else is in the supplement."""
    assert 12 <= len(re.findall(rb"/Type\s*/Page\b", (stored.folder / "falloff.pdf").read_bytes())) <= 20


@pytest.mark.parametrize("document", ["falloff", "supplement"])
def test_no_markup_is_left_over(stored, document):
    """What was meant as a heading, a label, a link or a table has become one."""
    body = (stored.folder / f"{document}.html").read_text(encoding="utf-8").partition("<body>")[2]
    body = re.sub(r"<(style|script|svg|math)\b.*?</\1>|data:[^\"]+", "", body, flags=re.DOTALL)
    assert re.findall(r".{0,40}(?:\{[.#][\w:]|\]\(|\s#+ [A-Z]|\|:?--|:::).{0,40}", re.sub("<[^>]+>", " ", body)) == []
    assert "chain of evidence" in " ".join(re.findall(r"<h1[^>]*>(.*?)</h1>", body, flags=re.DOTALL))


def test_figure_is_the_references(stored):
    """The figure in README is, byte for byte, the one that the shipped data give."""
    drawn = stored.folder / "figures" / "share.svg"
    assert drawn.read_bytes() == (ROOT / "docs" / "hpl_share.svg").read_bytes()


def test_findings_are_the_references(known):
    """README quotes the report's abstract, with its numbers."""
    abstract = report.abstract(known).replace("\u00a0", " ").replace("\\", "")
    assert f"> {abstract}\n" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_error_rates_are_the_calibrations(known):
    """README quotes the worst rates of wrong claims."""
    rates = known["calibration"]
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"{100 * rates['wrong_flat']:.1f} % were wrongly called flat" in text
    assert f"{100 * rates['wrong_falls_off']:.1f} % wrongly called falling off" in text


def test_trust_is_the_comparisons(known):
    """README quotes the largest difference between the simulation and HPL itself, and of how many cases."""
    trust = known["trust"]
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"within {100 * trust['largest']:.2f} % of HPL itself in {trust['cases']} cases" in text
