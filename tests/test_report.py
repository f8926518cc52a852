"""Executed notebooks become one document, in two forms and with a supplement; the same notebooks give the same bytes."""

import json
import re

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook
from synthetic import campaign
from test_document import ran
from test_exhibit import BASIS, exhibit

from analysis import report, store
from analysis.exhibit import Answer, Table
from analysis.findings import Finding

FINDING = Finding(
    "hpl_scaling", "GigE falls against 10GE", "falls off", "fall", "1", 0.1, (0.09, 0.11), "96 % t interval", 4,
    "block", "emulated", "hpl_scaling", "d1", primary=True,
)  # fmt: skip


def notebook(folder, name, cells):
    file = folder / name / f"{name}.ipynb"
    file.parent.mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), file)
    return file


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory):
    """A section with all that one can have, the summary and the methods, in the wrong order."""
    folder = tmp_path_factory.mktemp("notebooks")
    scaling = [
        new_markdown_cell("# Scaling\n\nA *fall* is $1 - e^D$ [@schuirmann]; see [](#fig:rate)."),
        ran(exhibit(rests_on=("hpl_scaling", "published/smith.toml"))),
        ran(Answer("**It falls off.**", [FINDING])),
        ran(Table("runs", ("Run",), "r", [("1",)], "All runs.", BASIS), tags=["detail"]),
    ]
    made = [
        notebook(folder, "95_methods", [new_markdown_cell("# How it was measured")]),
        notebook(folder, "40_scaling", scaling),
        notebook(folder, "90_summary", [new_markdown_cell(f"# {report.TITLE}\n\n**The answer.**")]),
    ]
    store.save(campaign(blocks=2), folder / "40_scaling" / "hpl_scaling-emulated.nc")
    return made


@pytest.fixture(scope="module")
def built(notebooks, tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    return report.build(notebooks, out, ["link_hpl: no netns; as root: make report"])


@pytest.fixture(scope="module")
def html(built):
    return built.read_text()


@pytest.fixture(scope="module")
def supplement(built):
    return built.with_name("supplement.html").read_text()


def test_all_four_documents_are_written(built):
    assert built.read_text().startswith("<!DOCTYPE html>")
    for name in ("falloff.pdf", "supplement.pdf"):
        assert built.with_name(name).read_bytes().startswith(b"%PDF")


def test_the_answer_comes_first_and_the_methods_last(html):
    """The document's title is the summary's heading; it is not there twice."""
    heads = re.findall(r"<h1[^>]*>(?:<span[^>]*>[\d.]*</span> ?)?(.*?)</h1>", html, re.S)
    said = [re.sub("<[^>]+>", "", head).replace("\u2019", "'") for head in heads[:3]]
    assert said == [report.TITLE, "Scaling", "How it was measured"]
    assert html.index("The answer.") < html.index("no netns; as root") < html.index("It falls off.")


def test_details_are_in_the_supplement_alone(html, supplement):
    assert "All runs" not in html and "All runs" in supplement


def test_the_page_asks_nothing_of_the_outside(html):
    """Figures, style and script are in the file; links leave it only where a reader clicks."""
    assert not re.search(r'(?:src|data)="(?!data:)[^"]+"', html)
    assert not re.search(r'<link[^>]+href="(?!data:)', html) and "@import" not in html


def test_code_and_evidence_fold_under_the_figure(html, built):
    """In HTML; the PDF has neither."""
    under = html[html.index("<figure") :]
    assert '<details class="code">' in under and '<details class="evidence">' in under
    assert "falloff evidence trace rate" in under and 'href="#data:hpl_scaling"' in under
    assert 'href="explorer.html#hpl_scaling"' in under


def test_every_dataset_has_its_digest_and_command(html):
    body = html[html.index("Appendix: provenance") :]
    assert 'id="data:hpl_scaling"' in body and 'id="data:published-smith-toml"' in body
    assert "falloff evidence verify" in body and "falloff run CAMPAIGN --testbed TESTBED" in body


def test_the_page_knows_the_dark_the_phone_and_large_figures(html):
    assert "prefers-color-scheme: dark" in html and "max-width: 600px" in html and "<dialog" in html
    assert re.search(r"<nav[^>]*TOC", html) and "<math" in html and 'alt="HPL over nodes"' in html


def test_findings_are_data_too(built):
    (finding,) = json.loads((built.parent / "summary.json").read_text())["findings"]
    assert (
        finding["answer"] == "falls off"
        and finding["interval"] == [0.09, 0.11]
        and finding["primary"]
    )


def test_the_same_notebooks_give_the_same_bytes(notebooks, built, tmp_path):
    again = report.build(notebooks, tmp_path, ["link_hpl: no netns; as root: make report"])
    for name in ("falloff.html", "falloff.pdf", "supplement.html", "supplement.pdf"):
        assert again.with_name(name).read_bytes() == built.with_name(name).read_bytes(), name
