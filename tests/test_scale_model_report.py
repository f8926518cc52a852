"""The scale model's experiments in report, supplement and summary: there with their data, and by the twelve rules."""

import json
import re
from functools import cache

import pytest
from synthetic_scale_model import dilated_campaign, run, scaling_campaign, share_of, simulated_scaling

from analysis import report, summary
from analysis.studies import together


@cache
def studies():
    """All four, with a scaling campaign whose control is 5 % slower than simulated on 16 nodes."""
    return together.analyse(
        {
            "hpl_scaling": scaling_campaign(blocks=4, noise=0.002, off={("unshaped", 16): 0.95}),
            "hpl_agreement": simulated_scaling(),
            "hpl_invariance": dilated_campaign(blocks=4, noise=0.002),
            "hpl_table1": run("hpl_table1", share_of, blocks=3, noise=0.002),
            "hpl_paper": run("hpl_paper", share_of, blocks=1),
        }
    )


@cache
def facts():
    return report.facts(studies())


def test_findings_and_sections_are_in_both_documents():
    """Each experiment's finding is among the verdicts; figures are in both documents, tables in the supplement."""
    verdicts = report.verdicts(facts())
    for name in ("table1", "agreement", "invariance"):
        assert facts()[name]["finding"].replace("\n", " ") in verdicts
    brief, whole = (report.text(facts(), [], document) for document in ("report", "supplement"))
    for label in ("fig:table1", "fig:agreement", "fig:invariance", "tbl:scale-model"):
        assert brief.count(f"{{#{label}") == whole.count(f"{{#{label}") == 1, label
    for label in ("tbl:table1-shares", "tbl:agreement", "tbl:agreement-times"):
        found = [len(re.findall(rf"\{{#{label}[ }}]", said)) for said in (brief, whole)]
        assert found == [0, 1], label


def test_both_documents_meet_the_twelve_rules(capsys):
    """No exhibit of these is broken; a fault would be a note."""
    drawn = report.draw(studies())
    brief, whole = (report.text(facts(), [], document) for document in ("report", "supplement"))
    report.judged(studies(), drawn, brief, own=True, beside=whole)
    report.judged(studies(), drawn, whole, own=True)
    assert capsys.readouterr().err == ""


def test_the_summary_has_each_answer():
    """Every point of the agreement, every dilation, and the fall of the paper's cases, as data."""
    found = json.loads(summary.text(studies()))["findings"]
    by_campaign = {}
    for it in found:
        by_campaign.setdefault(it["experiment"], []).append(it)
    assert len(by_campaign["hpl_agreement"]) == 21 and len(by_campaign["hpl_invariance"]) == 8
    slower = [it["statement"] for it in by_campaign["hpl_agreement"] if it["answer"] == "slower"]
    assert slower == ["emulated over simulated rate of HPL on control, 16 nodes, within 3 %"]
    assert all(it["answer"] == "the same" and it["interval_kind"].startswith("90 %") for it in by_campaign["hpl_invariance"])
    (fall,) = by_campaign["hpl_table1"]
    assert fall["primary"] and fall["n"] == 3 and "its fall ends at" in fall["statement"]


@pytest.mark.parametrize(("name", "there"), [("hpl_invariance", "invariance"), ("hpl_table1", "table1")])
def test_each_stands_alone(name, there):
    """With one campaign there are its section and the scale model's, and nothing of the others."""
    alone = together.analyse({name: studies().datasets[name]})
    known = report.facts(alone)
    assert known[there] and known["scale_model"] and not known["agreement"]
    said = report.text(known, [])
    assert f"{{#fig:{there} " in said and "fig:agreement" not in said and "None" not in said


def test_simulated_campaigns_alone_do_not_explain_the_scale_model():
    """Nothing ran on it."""
    assert together.analyse({"hpl_paper": studies().datasets["hpl_paper"]}).scale_model is None
