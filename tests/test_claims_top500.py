"""The claims on TOP500's lists are the printed aggregates, and their verdicts follow the lists that are there."""

from types import SimpleNamespace

import pytest
from top500_lists import ROWS, text

from analysis import published
from analysis.claims import judge, ledger
from analysis.claims.quantities import find
from analysis.experiments import top500
from analysis.top500.lists import none, read_folder

CLAIMS = {it.id: it for it in ledger.load().claims if it.quantity.startswith("top500.")}


def judged(dataset):
    """Each claim's verdict and the reading that it rests on."""
    studies = SimpleNamespace(top500=top500.analyse(dataset))
    found = {name: find(it.source, it.quantity)(studies) for name, it in CLAIMS.items()}
    results = {name: judge.judge(CLAIMS[name], own[0]) if own else judge.bare(CLAIMS[name]) for name, own in found.items()}
    return {name: (it.verdict, it.reading) for name, it in results.items()}


def lists(folder, **changed):
    """The two lists of which the sources speak; `changed` has Rmax [Gflop/s] by the rank of November 2008."""
    for month in ("2007-11", "2008-11"):
        rows = [
            (*row[:5], changed.get(f"rank_{row[0]}", row[5]), *row[6:]) if month == "2008-11" else row
            for row in ROWS[month]
        ]
        (folder / f"TOP500_{month}.csv").write_text(text(month, systems=rows), encoding="utf-8")
    return read_folder(folder)


def test_every_printed_aggregate_is_a_claim():
    """With the same number in base units, judged to the same digit."""
    printed = {it["id"]: top500.UNITS[it["unit"]] * it["value"] for it in published.top500()["aggregate"]}
    claimed = {it.quantity.removeprefix("top500."): it.printed for it in CLAIMS.values() if it.quantity != "top500.gige_lead"}
    assert claimed == pytest.approx(printed)


def test_lists_agree_or_do_not(tmp_path):
    """All are consistent with lists that have what is printed; another rate changes those that it touches, no other."""
    agreeing = judged(lists(tmp_path))
    assert {verdict for verdict, _ in agreeing.values()} == {judge.CONSISTENT}
    assert agreeing["blog_top500_gige_average"] == (judge.CONSISTENT, "mean of the ratios")
    changed = judged(lists(tmp_path, rank_92=30000))
    other = {name for name in CLAIMS if changed[name][0] != agreeing[name][0]}
    assert other == {"blog_top500_gige_average", "blog_top500_gige_highest"}
    assert {changed[name][0] for name in other} == {judge.INCONSISTENT}


def test_without_lists_there_are_bare_numbers():
    """Nothing to check them by, and the order of families is not printed at all."""
    verdicts = judged(none([]))
    assert verdicts.pop("smith_top500_gige_lead")[0] == judge.NOT_TESTABLE
    assert {verdict for verdict, _ in verdicts.values()} == {judge.PRINTED}
