"""The report's first page: every finding of the executed notebooks, and what today's runs say of them."""

from dataclasses import asdict

import nbformat
import pytest
from nbformat.v4 import new_notebook
from synthetic import sequential_campaign
from test_document import ran

from analysis import summary
from analysis.exhibit import Answer
from analysis.experiments import hpl_scaling
from runners.record import FalloffError


@pytest.fixture(scope="module")
def study():
    """The planned campaign with a short run of today, of the same truth."""
    quick = sequential_campaign(blocks=3, noise=0.003, seed=5, looks=(3,), one_sided=0.04)
    return hpl_scaling.analyse(sequential_campaign(noise=0.003), quick)


@pytest.fixture(scope="module")
def found(study, tmp_path_factory):
    """What is gathered of a notebook with its findings, one without any, and the summary itself."""
    folder = tmp_path_factory.mktemp("executed")
    answer = Answer("**It falls off.**", list(hpl_scaling.findings(study)))
    for name, cells in {
        "40_scaling": [ran(answer)],
        "95_methods": [],
        summary.SUMMARY: [ran(answer)],
    }.items():
        (folder / name).mkdir()
        nbformat.write(new_notebook(cells=cells), folder / name / f"{name}.ipynb")
    return summary.gathered(folder)


def test_findings_are_gathered_once(study, found):
    """As they are in the study; what the summary repeats is not gathered again."""
    told = [asdict(finding) for finding in hpl_scaling.findings(study)]
    assert [finding["estimate"] for finding in found] == [finding["estimate"] for finding in told]
    assert found[0]["interval"] == list(told[0]["interval"]) and found[0]["answer"] == "falls off"


def test_the_table_has_what_was_planned(found):
    """Each primary statement with answer, estimate, interval, n and evidence; the others are in the data alone."""
    rows = summary.table(found).rows
    assert [row[1] for row in rows] == ["**falls off**", "**flat**", "**flat**"]
    assert rows[0][0] == "GigE loses rate against 10GE from 2 to 8 nodes" and rows[0][3:] == (
        "9 blocks",
        "emulated",
    )
    assert "%" in rows[0][2] and "to" in rows[0][2]


def test_today_says_whether_it_reproduces(found):
    """A run of the same truth does; without one, nothing was measured."""
    assert "Today's run reproduces it (3 blocks" in summary.today(found).text
    alone = [{**finding, "today": None} for finding in found]
    assert "Nothing was measured" in summary.today(alone).text


def test_without_notebooks_there_is_no_summary(tmp_path):
    """The remedy is told."""
    with pytest.raises(FalloffError, match="make report"):
        summary.gathered(tmp_path)
