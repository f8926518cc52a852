"""The report of the shipped references, made once by its command; README says what it says."""

import json
import re

import pytest

from analysis import document, experiments, summary
from analysis.experiments import hpl_messages
from analysis.paths import ROOT
from analysis.statistics import calibration

MOST_PAGES = 12
NUMBER = re.compile(r"(-?\d+\.\d+)")


def test_the_report_is_written_without_running_anything(stored):
    """`falloff report --preset stored` leaves nothing out and ends with the line that says where the report is."""
    assert stored.code == 0 and "left out" not in stored.err
    html, pdf = stored.folder / "falloff.html", stored.folder / "falloff.pdf"
    assert stored.out.splitlines()[-1] == f"Report: {html} and {pdf}"
    assert html.read_text().lstrip().startswith("<!DOCTYPE html>") and pdf.read_bytes().startswith(
        b"%PDF"
    )
    beside = set(re.findall(r'href="(\w+\.html)"', html.read_text()))
    assert beside == {"explorer.html", "supplement.html"} and all(
        (stored.folder / name).exists() for name in beside
    )


def test_the_report_has_the_length_of_a_paper(stored):
    """Everything else is in the supplement."""
    assert (
        len(re.findall(rb"/Type\s*/Page\b", (stored.folder / "falloff.pdf").read_bytes()))
        <= MOST_PAGES
    )


@pytest.mark.parametrize("name", ["falloff", "supplement"])
def test_no_markup_is_left_over(stored, name):
    """What was meant as a heading, a label, a link or a table has become one, and no link leads nowhere."""
    page = (stored.folder / f"{name}.html").read_text(encoding="utf-8").partition("<body>")[2]
    body = re.sub(r"<(style|script|svg|math|code)\b.*?</\1>|data:[^\"]+", "", page, flags=re.DOTALL)
    assert (
        re.findall(
            r".{0,40}(?:\{[.#][\w:]|\]\(|\s#+ [A-Z]|\|:?--|:::|\[@).{0,40}",
            re.sub("<[^>]+>", " ", body),
        )
        == []
    )
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(re.findall(r'id="([^"]+)"', page))
    assert "provenance" in " ".join(re.findall(r"<h1[^>]*>(.*?)</h1>", page, flags=re.DOTALL))


def test_every_experiment_is_in_the_summary(stored):
    """As data, each of its statements once."""
    stated = json.loads((stored.folder / "summary.json").read_text())["findings"]
    known = {module.__name__.rpartition(".")[2] for module in experiments.modules()}
    assert {finding["experiment"] for finding in stated} == known
    assert len({(finding["experiment"], finding["statement"]) for finding in stated}) == len(stated)


def test_readme_shows_the_reports_figure_and_answer(stored):
    """The figure as it is drawn here, and the first words of the summary."""
    drawings = (stored.folder / "figures" / "share.svg", ROOT / "docs" / "hpl_share.svg")
    here, shown = (NUMBER.split(drawing.read_text()) for drawing in drawings)
    assert here[::2] == shown[::2]
    # To a tenth of a point: processors round differently.
    assert [*map(float, here[1::2])] == pytest.approx([*map(float, shown[1::2])], abs=0.1)
    opening = document.read(
        stored.notebooks / summary.SUMMARY / f"{summary.SUMMARY}.ipynb"
    ).markdown
    answer = " ".join(opening.split("\n\n")[1].replace("\u00a0", " ").replace("\\", "").split())
    for page in ("README.md", "paper/paper.md"):
        bullets = re.findall(r"^- (.*)$", (ROOT / page).read_text(encoding="utf-8"), re.M)
        assert len(bullets) == 3 and answer.startswith(" ".join(bullets))


def test_docs_quote_error_rates_and_trust():
    """The worst rates of wrong verdicts, and the largest difference between the simulation and HPL itself."""
    method = " ".join((ROOT / "docs" / "method.md").read_text(encoding="utf-8").split())
    rates = calibration.results()
    assert f"{100 * rates.wrong_flat.max():.1f} % were wrongly called flat" in method
    assert f"{100 * rates.wrong_falls_off.max():.1f} % wrongly called falling off" in method
    cases = hpl_messages.trust()
    largest = 100 * cases.difference.abs().max()
    assert f"within {largest:.2f} % of HPL itself in {len(cases)} cases" in method
