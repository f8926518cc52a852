"""The paper's own cases, simulated: planted efficiencies come back; what is missing is said."""

import json
import re
from functools import cache

import numpy as np
import pytest
from shown import text
from synthetic_smith import planted, smith_campaign

from analysis import efficiency
from analysis.experiments import hpl_paper
from analysis.statistics.reproduction import NOT_REPRODUCED, REPRODUCED
from runners.record import FalloffError

FEW = {"nodes": [2, 4, 6, 8]}  # the quick preset's


@cache
def whole():
    """The study of all three campaigns."""
    campaigns = ("hpl_paper", "hpl_sensitivity", "hpl_contention")
    return hpl_paper.analyse(*map(smith_campaign, campaigns))


@cache
def alone():
    """The study of the cases without the further campaigns."""
    return hpl_paper.analyse(smith_campaign("hpl_paper"))


def said(study):
    return text(
        hpl_paper.finding(study), hpl_paper.cases_table(study), *hpl_paper.figures(study).values()
    )


@pytest.mark.parametrize("interconnect", ["gige", "10gige"])
def test_efficiency_is_the_rate_over_the_described_peak(interconnect):
    """Every planted efficiency comes back, whatever DGEMM reached."""
    reached = whole().efficiency.sel(interconnect=interconnect)
    np.testing.assert_allclose(reached, [planted(interconnect, n) for n in whole().nodes])


def test_shape_tells_the_early_fall_from_the_level_rest():
    """What is planted to stop at 8 nodes is lost before, and nothing after."""
    shape = whole().shape.sel(interconnect="gige")
    early = planted("gige", 2) - planted("gige", 8)
    np.testing.assert_allclose([shape.fall, shape.early_fall], early)
    np.testing.assert_allclose([shape.late_fall, shape.spread, shape.slope], 0, atol=1e-12)


def test_slope_is_per_doubling():
    """What loses 3 points with each doubling has that slope, and twice that spread from 8 to 32 nodes."""
    nodes = np.array([2, 8, 16, 32])
    falling = (
        whole().efficiency.isel(interconnect=0).sel(nodes=nodes) * 0 + 0.8 - 0.03 * np.log2(nodes)
    )
    shape = efficiency.shape(falling)
    assert shape.slope.item() == pytest.approx(-0.03) and shape.spread.item() == pytest.approx(0.06)


def test_the_finding_follows_the_data():
    """A level curve is said to be level, one that goes on falling is not, and few nodes say nothing of it."""
    ends = [f"{100 * planted('gige', n):.1f}" for n in (2, 36)]
    words = said(alone())
    assert f"GigE goes from {ends[0]} to {ends[1]} %" in words and "simulated evidence" in words
    assert "level from 8 nodes on: no two cases differ by more than 0.0 percentage points" in words
    falling = smith_campaign("hpl_paper")
    rates = falling.hpl_rate * (1 - 0.05 * np.log2(falling.nodes / 2).clip(min=0))
    assert "is not level beyond 8 nodes" in said(hpl_paper.analyse(falling.assign(hpl_rate=rates)))
    assert "level" not in said(hpl_paper.analyse(smith_campaign("hpl_paper", FEW)))


def test_the_further_campaigns_have_their_sentences_and_figures():
    """With them the finding has ranges and scenarios, without them it does not."""
    assert "through its range" in said(whole()) and "no value of GigE" in said(whole())
    assert set(hpl_paper.figures(whole())) == {"sensitivity", "contention"}
    assert "through its range" not in said(alone()) and hpl_paper.figures(alone()) == {}


def test_missing_cases_are_said_to_be_missing():
    """A case that failed is no efficiency of 0: what needs it is unknown, the other network stays."""
    study = hpl_paper.analyse(smith_campaign("hpl_paper", failed={(1, "gige", 36)}))
    assert hpl_paper.is_level(study, "gige") is None and hpl_paper.is_level(study, "10gige")
    assert "cannot be said" in said(study) and not re.search(r"\b(nan|None)\b", said(study))
    contrast, gige, fast = hpl_paper.findings(study)
    assert contrast.estimate is gige.estimate is None and fast.answer == "flat"
    every = {(1, network, n) for network in ("gige", "10gige") for n in alone().nodes}
    nothing = hpl_paper.analyse(smith_campaign("hpl_paper", failed=every))
    assert "cannot be said" in said(nothing) and not re.search(r"\b(nan|None)\b", said(nothing))


def test_findings_are_the_planted_falls():
    """The contrast that the campaign was planned for comes first, then each network's own fall."""
    contrast, gige, fast = hpl_paper.findings(alone())
    ratios = [planted("gige", n) / planted("10gige", n) for n in (2, 36)]
    assert contrast.primary and contrast.answer == "falls off" and contrast.today is None
    assert contrast.estimate == pytest.approx(1 - ratios[1] / ratios[0])
    assert gige.estimate == pytest.approx(1 - planted("gige", 36) / planted("gige", 2))
    assert fast.answer == "flat" and contrast.interval is None


def test_todays_cases_are_compared_with_the_stored_ones():
    """Equal rates are counted as such; one that differs is, too, and by how much."""
    stored = smith_campaign("hpl_paper")
    same = hpl_paper.analyse(stored, today=smith_campaign("hpl_paper", FEW))
    assert "8 cases simulated again today gave the stored rate" in said(same)
    assert next(hpl_paper.findings(same)).today["answer"] == REPRODUCED
    other = smith_campaign("hpl_paper", FEW)
    changed = (other.nodes == 4) & (other.interconnect == "gige") & (other.runner == "hpl")
    other.hpl_rate[np.flatnonzero(changed)] *= 1.1
    differing = hpl_paper.analyse(stored, today=other)
    assert "Of 8 cases simulated again today 1 differ" in said(differing) and "10.00 %" in said(
        differing
    )
    today = next(hpl_paper.findings(differing)).today
    assert today["answer"] == NOT_REPRODUCED and today["ratio"] / today[
        "reference_ratio"
    ] == pytest.approx(1.1)


def test_other_rates_are_not_mixed():
    """A sensitivity campaign of another model is refused, with the names of both."""
    other = smith_campaign("hpl_sensitivity")
    described = json.loads(other.attrs["testbed_settings"])
    described["rates"]["strided_s"]["value"] = 1e-9
    other.attrs["testbed_settings"] = json.dumps(described)
    with pytest.raises(FalloffError, match="hpl_paper and hpl_sensitivity .* different rates"):
        hpl_paper.analyse(smith_campaign("hpl_paper"), other)
