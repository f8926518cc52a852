"""The report's appendix on evidence: every figure is in it, linked both ways, with its datasets' digests."""

import re
from functools import cache

import pytest
from synthetic import campaign
from synthetic_studies import size_campaign

from analysis import report
from analysis.evidence import content
from analysis.facts import chain
from analysis.publish import to_html
from analysis.studies import together

DATASETS = {"hpl_scaling": campaign(blocks=3, noise=0.01), "hpl_size": size_campaign(blocks=2)}
TODAY = {"hpl_scaling": campaign(blocks=2, noise=0.01, seed=3)}


@cache
def studies():
    """The studies of both campaigns and today's run."""
    return together.analyse(DATASETS, TODAY)


@pytest.fixture(scope="module")
def markdown():
    text = report.text(report.facts(studies()), [], "supplement")
    return text, report.chains(text, chain.described(studies()))


def test_every_figure_of_the_report_is_listed_once(markdown):
    """In the order of the text, with its own name; none that is not drawn."""
    text, chains = markdown
    listed = re.findall(r"\| \[\[\]\(#fig:([\w-]+)\)\]\{#chain:\1\} \| `(\w+)`", chains)
    assert [anchor for anchor, _ in listed] == re.findall(r"\.svg\)\{#fig:([\w-]+)", text)
    assert {name for _, name in listed} == report.draw(studies()).keys()


def test_datasets_carry_their_digests(markdown):
    """Those that figures rest on, today's run as its own, each with the command that makes it."""
    rows = [line for line in markdown[1].splitlines() if "`falloff run" in line]
    shown = {"hpl_scaling": DATASETS["hpl_scaling"], "today": TODAY["hpl_scaling"], "hpl_size": DATASETS["hpl_size"]}
    assert len(rows) == len(shown)
    for row, (name, dataset) in zip(rows, shown.items()):
        assert f"`{content.digest(dataset)[:10]}`" in row and ("--preset quick" in row) == (name == "today")
        assert f"| {dataset.sizes['trial']} |" in row


def test_html_links_each_caption_with_its_row(markdown, tmp_path):
    """And no link leads nowhere. Without the appendix there is no such link."""
    text, chains = markdown
    for name, figure in report.draw(studies()).items():
        (tmp_path / "figures").mkdir(exist_ok=True)
        figure.savefig(tmp_path / "figures" / f"{name}.svg")
    page = to_html(text + chains, tmp_path)
    figures = re.findall(r'<figure id="fig:([\w-]+)".*?</figure>', page, re.DOTALL)
    captions = re.findall(r'<a href="#chain:([\w-]+)">Evidence</a>\s*</figcaption>', page)
    assert figures and captions == figures
    anchors = set(re.findall(r'id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= anchors
    assert "Evidence</a>" not in to_html(text, tmp_path)
