"""The HPL paper's claims: simulated on every variant of the model, emulated in blocks, printed by each other."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from claimed import as_evidence, judged, scaled, studies_of
from synthetic import campaign
from synthetic_smith import smith_campaign

from analysis import published
from analysis.experiments import hpl_scaling

PAPER, SENSITIVITY, BEYOND = (
    smith_campaign(f"hpl_{name}") for name in ("paper", "sensitivity", "beyond")
)
BLOCKS = campaign(blocks=6, noise=0.005)


@cache
def in_blocks():
    """The study of the emulated blocks."""
    return hpl_scaling.analyse(BLOCKS)


def studies(cases=PAPER, sensitivity=SENSITIVITY, blocks=BLOCKS, larger=BEYOND):
    datasets = {"hpl_paper": cases, "hpl_sensitivity": sensitivity, "hpl_beyond": larger}
    made = {"hpl_scaling": in_blocks()} if blocks is BLOCKS else {}
    return studies_of({**datasets, "hpl_scaling": blocks}, **made)


@pytest.fixture(scope="module")
def planted():
    return studies()


@pytest.fixture(scope="module")
def altered():
    """In all variants 10GE loses a fifth on 36 nodes and Gigabit Ethernet gains a quarter; 256 nodes lose a tenth."""

    def change(data):
        data = scaled(data, "hpl_rate", 0.8, interconnect="10gige", nodes=36)
        return scaled(data, "hpl_rate", 1.25, interconnect="gige", nodes=36)

    larger = scaled(BEYOND, "hpl_rate", 0.9, interconnect="10gige", nodes=256)
    return studies(
        change(PAPER), change(SENSITIVITY), campaign(blocks=6, noise=0.005, falls={}), larger
    )


@pytest.mark.parametrize(
    ("claim", "before", "after"),
    [
        ("smith_fast_straight", "supported", "contradicted"),
        ("smith_fast_constant", "supported", "contradicted"),
        ("smith_slow_drops", "supported", "contradicted"),
        ("smith_drop_is_congestion", "contradicted", "supported"),
        ("smith_fast_superior", "supported", "contradicted"),
        ("smith_gap_grows", "supported", "contradicted"),
        ("smith_larger_cluster", "supported", "undecided"),
        ("smith_infiniband_on_par", "supported", "undecided"),
    ],
)
def test_simulated_verdicts_follow_the_simulation(planted, altered, claim, before, after):
    """Verdicts change with the rates; where only one case of several changes, nothing is decided."""
    assert judged(claim, planted, "simulated").verdict == before
    assert judged(claim, altered, "simulated").verdict == after


def test_every_variant_of_the_model_is_judged(planted):
    """Its numbers as they are and each of nine at both ends; one variant outside leaves the claim undecided."""
    found = judged("smith_slow_drops", planted, "simulated")
    assert found.n == 1 + 2 * 9 and found.interval_95[0] < found.estimate < found.interval_95[1]
    outside = scaled(
        SENSITIVITY, "hpl_rate", 2.0, interconnect="gige", nodes=36, vary="latency=high"
    )
    found = judged("smith_slow_drops", studies(sensitivity=outside), "simulated")
    assert found.verdict == "undecided" and "18 of 19" in found.reason
    assert judged("smith_slow_drops", studies(sensitivity=None), "simulated").n == 1


def test_a_decline_that_goes_on_is_told_from_one_that_ends(altered):
    """Five per cent less on 36 nodes than on eight support the claim, a quarter more contradicts it."""
    falling = [
        scaled(data, "hpl_rate", 0.95, interconnect="gige", nodes=36)
        for data in (PAPER, SENSITIVITY)
    ]
    assert judged("smith_slow_goes_on", studies(*falling), "simulated").verdict == "supported"
    assert judged("smith_slow_goes_on", altered, "simulated").verdict == "contradicted"


def test_the_level_that_the_model_is_calibrated_to_is_no_evidence(planted):
    """It would be circular."""
    found = judged("smith_fast_level", planted, "simulated")
    assert found.verdict == "not testable" and "calibrated" in found.reason


def test_emulated_verdicts_follow_the_blocks(planted, altered):
    """A planted fall on Gigabit Ethernet supports the claims; on alike networks they are contradicted."""
    assert judged("smith_gap_grows", planted).verdict == "supported"
    assert judged("smith_gap_grows", altered).verdict == "contradicted"
    assert judged("smith_gap_grows", planted).estimate == pytest.approx(1 / (1 - 0.13), rel=0.02)
    assert judged("smith_slow_declines_early", planted).verdict == "supported"
    risen = scaled(BLOCKS, "hpl_rate", 1.6, interconnect="gige", nodes=8)
    assert judged("smith_slow_declines_early", studies(blocks=risen)).verdict == "contradicted"


def test_eight_nodes_cannot_tell_what_comes_after(planted):
    """The campaign ends where the claim begins."""
    found = judged("smith_slow_goes_on", planted)
    assert found.verdict == "not testable" and "8 nodes" in found.reason


def test_nodes_that_cannot_fill_a_link_say_nothing_of_it(planted):
    """Where the survey finds 10GE's links host-bound, nothing is said of 10GE; where they carry what the wire does, it is."""
    assert (
        judged("smith_fast_straight", planted).verdict == "contradicted"
    )  # all fall alike, as planted
    fast = (BLOCKS.role == "survey") & (BLOCKS.interconnect == "10gige")
    slow = BLOCKS.assign(goodput=BLOCKS.goodput.where(~fast, 2.1e9))
    assert "limit what they send" in judged("smith_fast_straight", studies(blocks=slow)).reason


def test_a_users_cluster_of_known_peak_has_an_efficiency(planted):
    """Without a peak there is none; with one the level and the spread are judged as measured."""
    assert "peak" in judged("smith_fast_level", planted).reason
    measured = as_evidence(BLOCKS, "measured")
    study = replace(
        in_blocks(), dataset=measured, points=in_blocks().points.assign_coords(evidence="measured")
    )
    described = json.loads(study.points.attrs["testbed_settings"])
    rate = study.points.rate.sel(interconnect="10gige", nodes=8).mean().item()
    for share, verdict in ((0.8, "supported"), (0.5, "contradicted")):
        described["rpeak"] = {"value": 1e9 * rate / 8 / share, "unit": "flop/s"}
        points = study.points.assign_attrs(testbed_settings=json.dumps(described))
        known = studies_of(
            {"hpl_scaling": study.dataset}, hpl_scaling=replace(study, points=points)
        )
        found = judged("smith_fast_level", known, "measured")
        assert found.verdict == verdict and found.estimate == pytest.approx(share, rel=0.02)
        assert judged("smith_fast_constant", known, "measured").n == 6


def test_latency_and_bandwidth_are_told_apart(planted):
    """A rate that latency changes by half is more than moderately sensitive to it, and more than to bandwidth."""
    assert judged("smith_latency_moderate", planted, "simulated").verdict == "supported"
    assert judged("smith_bandwidth_first", planted, "simulated").verdict == "supported"
    slow = scaled(SENSITIVITY, "hpl_rate", 0.5, vary="latency=high")
    for claim in ("smith_latency_moderate", "smith_bandwidth_first"):
        assert judged(claim, studies(sensitivity=slow), "simulated").verdict == "contradicted"


def test_printed_numbers_are_checked_by_each_other(planted):
    """Only one reading each fits: bandwidths, an order in hundreds, decimal megabytes in jumbo frames."""
    readings = {
        "smith_infiniband_raw": "the ratio of bandwidths",
        "smith_largest_order": "Appendix B's order over 100",
        "smith_fast_bandwidth": "10^6 B in frames of 9000 B",
    }
    for claim, reading in readings.items():
        found = judged(claim, planted, "published")
        assert found.verdict == "consistent" and found.reading == reading
    assert judged("smith_memory", planted, "published").verdict == "consistent"
    assert judged("smith_fast_latency", planted, "published").verdict == "printed"


def test_other_printed_numbers_are_inconsistent(planted, monkeypatch):
    """An order that fills more than the memory, another deck, a bandwidth beyond the wire, another InfiniBand."""
    source, deck, table = published.smith(), published.smith_deck(), published.smith_table1()
    source["micro_benchmarks"]["10gige"]["bandwidth"]["value"] = 1300
    deck["deck"]["N"] = [2000, 250000]
    table.loc[0, "N"] = 290000
    for name, value in (("smith", source), ("smith_deck", deck), ("smith_table1", table)):
        monkeypatch.setattr(published, name, lambda value=value: value)
    for claim in (
        "smith_infiniband_raw",
        "smith_largest_order",
        "smith_fast_bandwidth",
        "smith_memory",
    ):
        assert judged(claim, planted, "published").verdict == "inconsistent"


def test_a_simulation_that_lacks_a_network_says_so():
    """Without InfiniBand nothing is found on it."""
    alone = smith_campaign("hpl_beyond", {"interconnect": ["gige", "10gige"]})
    found = judged("smith_infiniband_on_par", studies(larger=alone), "simulated")
    assert found.verdict == "not testable" and np.isnan(found.estimate)
