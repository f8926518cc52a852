"""The claims on TOP500's lists are the printed aggregates, and their verdicts follow the lists that are there."""

import pytest
from claimed import judged, shipped, studies_of
from top500_lists import ROWS, text

from analysis import published
from analysis.claims.judge import CONSISTENT, INCONSISTENT, NOT_TESTABLE, PRINTED
from analysis.experiments import top500
from analysis.top500_lists import read_folder

CLAIMS = {claim.id: claim for claim in shipped().claims if claim.quantity.startswith("top500.")}


def verdicts(dataset):
    """Each claim's judgement by the lists of a dataset."""
    studies = studies_of({}, top500=top500.analyse(dataset))
    return {name: judged(name, studies, "published") for name in CLAIMS}


def lists(folder, **changed):
    """The two lists of which the sources speak; `changed` has Rmax [Gflop/s] by the rank of November 2008."""
    for month in ("2007-11", "2008-11"):
        rows = [
            (*row[:5], changed.get(f"rank_{row[0]}", row[5]), *row[6:])
            if month == "2008-11"
            else row
            for row in ROWS[month]
        ]
        (folder / f"TOP500_{month}.csv").write_text(text(month, systems=rows), encoding="utf-8")
    return read_folder(folder)


def test_every_printed_aggregate_is_a_claim():
    """With the same number in base units, judged to the same digit."""
    printed = {
        one["id"]: top500.UNITS[one["unit"]] * one["value"]
        for one in published.top500()["aggregate"]
    }
    claimed = {claim.quantity.removeprefix("top500."): claim.printed for claim in CLAIMS.values()}
    del claimed["gige_lead"]  # an order of families, not a number
    assert claimed == pytest.approx(printed)


def test_lists_agree_or_do_not(tmp_path):
    """All are consistent with lists that have what is printed; another rate changes those that it touches, no other."""
    agreeing = verdicts(lists(tmp_path))
    assert {found.verdict for found in agreeing.values()} == {CONSISTENT}
    assert agreeing["blog_top500_gige_average"].reading == "mean of the ratios"
    changed = verdicts(lists(tmp_path, rank_92=30000))
    other = {name for name in CLAIMS if changed[name].verdict != CONSISTENT}
    assert other == {"blog_top500_gige_average", "blog_top500_gige_highest"}
    assert {changed[name].verdict for name in other} == {INCONSISTENT}


def test_without_lists_there_are_bare_numbers(tmp_path):
    """Nothing to check them by, and the order of families is not printed at all."""
    found = verdicts(read_folder(tmp_path))
    assert found.pop("smith_top500_gige_lead").verdict == NOT_TESTABLE
    assert {judgement.verdict for judgement in found.values()} == {PRINTED}
