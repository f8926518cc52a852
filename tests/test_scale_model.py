"""What the scale model keeps of the paper's cases, at every scale of time, and beside a simulation
at the same rates.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from executed import executed, stated, words
from shown import failed
from synthetic_scale_model import dilated_campaign, run, scaling_campaign, simulated_scaling

from analysis import paths
from analysis.descriptions import testbeds
from analysis.subjects import scale_model
from runners.records.record import FalloffError

STEPS = ("scale_model", "buffers", "fine_blocks", "size", "block_size", "node")
OFF = {("gige", 8): 0.992, ("10gige", 24): 0.991, ("unshaped", 16): 0.95, ("gige", 4): 1.06}


@cache
def simulated_once():
    return simulated_scaling()


def agreement(emulated, simulated=None):
    """The notebook that sets an emulated campaign beside its simulation."""
    return executed(
        "45",
        hpl_scaling=emulated,
        hpl_agreement=simulated_once() if simulated is None else simulated,
    )


def scale(**data):
    """The scale model's notebook on planted campaigns, but for those that are given."""
    planted = {
        "scale_model_dilation": dilated_campaign(blocks=1),
        "hpl_scaling": scaling_campaign(blocks=1),
        "scale_model_chain": chain(),
    }
    return executed("46", **planted | data)


@cache
def shown():
    return scale(scale_model_dilation=dilated_campaign(blocks=4, noise=0.001), hpl_scaling=probed())


def chain(missing=()):
    """Steps of which each takes a point off GigE's fall."""

    def of_step(point):
        if (point["step"], point["nodes"]) in missing:
            return np.nan
        lost = 0.12 - 0.01 * STEPS.index(point["step"])
        fall = lost * np.log(point["nodes"] / 2) / np.log(18)
        return 0.9 * (1 - fall * (point["interconnect"] == "gige"))

    return run("scale_model_chain", of_step, blocks=1)


def probed(message=30e-6, carried=1.01):
    """A campaign before whose runs tokens were exchanged: the time of a short message [s], and what
    long ones got [1].
    """
    ran = scaling_campaign(blocks=2)
    paper_links = ran.interconnect.isin(["gige", "10gige"]) & (ran.nodes > 1)
    return ran.assign(
        short_message_time=(paper_links * message).where(paper_links),
        link_share=(paper_links * carried).where(paper_links),
    )


def test_both_shares_of_every_case_are_those_of_the_rates_and_tokens():
    """By hand for the smallest and the largest case; bytes cost what they cost in the paper within
    3 %, messages no more.
    """
    found = scale_model.shares(probed())
    assert len(found) == 12 and found.index.unique(1).tolist() == [2, 4, 8, 16, 24, 36]
    model = testbeds.read("fortinet_model").plain()["node"]["flop_s"] * 1000
    for network, nodes, order, paper_n, paper_s, paper_byte_s, rate in (
        ("gige", 2, 936, 60000, 40e-6, 110e6, 1e9),
        ("10gige", 36, 4080, 260000, 6e-6, 1210e6, 11e9),
    ):
        at = found.loc[network, nodes]
        byte_s, flop_s = 1.01 * rate / 8 * 1448 / 1538 / at.dilation, model / at.dilation
        of_bytes = (flop_s / (byte_s * order)) / (39.67e9 / (paper_byte_s * paper_n))
        of_messages = (30e-6 * flop_s / order**2) / (paper_s * 39.67e9 / paper_n**2)
        assert at.bytes == pytest.approx(of_bytes, rel=0.002)
        assert at.messages == pytest.approx(of_messages, rel=0.002)
    assert found.bytes.between(0.97, 1.03).all() and (found.messages <= 1).all()
    assert (scale_model.shares(probed(message=75e-6)).messages > 1).any()


def test_what_tokens_did_not_measure_is_not_said():
    """No shares without tokens, nor without nodes of a known rate."""
    without = scaling_campaign(blocks=1)
    assert scale_model.shares(without).empty and scale_model.shares(simulated_once()).empty
    assert "is not known" in words(scale())
    off = scale_model.shares(probed(carried=0.8)).bytes - 1
    assert off.abs().max() > 0.2


def test_the_descriptions_agree_with_each_other():
    """Emulated and simulated scale model have one F, and each link's payload is that of its rate in
    frames of 1538 bytes.
    """
    emulated, simulation = (
        testbeds.read(name).plain() for name in ("fortinet_model", "fortinet_model_simulated")
    )
    assert simulation["rates"]["dgemm_flop_s"]["value"] == emulated["node"]["flop_s"]
    for name in ("gige", "10gige"):
        payload = emulated["networks"][name]["rate_bit_s"] / 8 * 1448 / 1538
        bandwidth = simulation["network"][name]["bandwidth"]["value"]
        assert bandwidth == pytest.approx(payload, rel=0.001)


@pytest.mark.parametrize(("bias", "answer"), [(1.0, "the same"), (0.96, "no"), (1.05, "no")])
def test_what_depends_on_the_dilation_is_found(bias, answer):
    """Planted ratios come back, of rates on one scale of time."""
    dataset = dilated_campaign(blocks=4, noise=0.001, bias={100: bias})
    run = scale(scale_model_dilation=dataset)
    found = [one for one in run.statements if one.campaign == "scale_model_dilation"]
    np.testing.assert_allclose([one.estimate for one in found], bias, atol=0.003)
    assert len(found) == 9 and {one.words for one in found} == {answer}
    assert all(one.interval_kind.startswith("90 %") for one in found)
    assert sum(one.primary for one in found) == 3 and all(
        "36 nodes" in one.subject for one in found if one.primary
    )


def test_a_campaign_of_one_level_is_refused():
    """There is nothing to compare."""
    for campaign, factor in (("scale_model_dilation", "dilation"), ("scale_model_chain", "step")):
        with pytest.raises(FalloffError, match=f"needs two levels of {factor}"):
            scale(**{campaign: scaling_campaign(blocks=1)})


def test_planted_ratios_to_the_simulation_come_back():
    """Each point's ratio is the planted one, and is judged at the goal; those that are farther off
    are named.
    """
    run = agreement(scaling_campaign(off=OFF, blocks=4, noise=0.001))
    found = run.statements
    names = {"gige": "GigE", "10gige": "10GE", "unshaped": "unlimited links"}
    by_place = {one.subject.partition(": ")[2]: one for one in found}
    for (network, nodes), ratio in OFF.items():
        one = by_place[f"{names[network]}, {nodes} nodes"]
        assert one.estimate == pytest.approx(ratio, abs=0.002)
        assert one.words == ("yes" if abs(ratio - 1) < 0.0149 else "no")
    assert len(found) == 21 and sum(one.answer == "yes" for one in found) == 19
    assert "19 of 21 points agree" in words(run) and ": GigE, 4 nodes: **no**" in words(run)
    assert {one.subject.partition(": ")[2] for one in found if one.primary} == {
        "GigE, 36 nodes",
        "10GE, 36 nodes",
    }


def test_other_rates_and_several_simulated_blocks_are_refused():
    """A simulation of nodes of another speed agrees with nothing; one that repeats itself has one
    block.
    """
    settings = simulated_once().attrs["testbed_settings"].replace("663200.0", "700000.0")
    faster = simulated_once().assign_attrs(testbed_settings=settings)
    with pytest.raises(FalloffError, match="0.0006632 Gflop/s.*0.0007: give the simulated testbed"):
        agreement(scaling_campaign(blocks=1), faster)
    with pytest.raises(FalloffError, match="single level of block"):
        agreement(scaling_campaign(blocks=1), scaling_campaign(blocks=2))


def test_the_simulation_is_set_against_hpl_itself(tmp_path, monkeypatch):
    """The largest difference and how many are the same."""
    times = {"unmocked_s": 1.0, "simulated_s": [1.0, 1.002, 0.996]}
    pd.DataFrame(times).to_csv(tmp_path / "trust.csv")
    monkeypatch.setattr(paths, "REFERENCE", tmp_path)
    said = words(agreement(scaling_campaign(blocks=1)))
    assert "at most 0.40 %** (3 cases" in said and "In 1 of them" in said


def test_every_step_of_the_chain_has_its_part():
    """The ends are the planted falls, and primary; each step takes its part off."""
    found = [one for one in shown().statements if one.campaign == "scale_model_chain"]
    assert [one.primary for one in found] == [True, *[False] * 4, True]
    assert [one.estimate for one in found] == pytest.approx([0.12 - 0.01 * n for n in range(6)])
    said = words(shown())
    assert "smaller buffers: 11.0" in said and "Emulated, it is" in said


def test_a_chain_with_a_case_missing_says_so():
    """Its fall is a dash, in words and as a statement."""
    run = scale(scale_model_chain=chain({("scale_model", 36)}))
    assert "GigE falls from 2 to 36 nodes: by — in the scale model" in words(run)
    assert (
        stated(run, "GigE loses rate against 10GE from 2 to 36 nodes: the scale model").estimate
        is None
    )


def test_the_notebooks_show_every_check():
    """Nothing that was planted is off: all agree, and the chain and the agreement have their
    figures.
    """
    answers = {one.answer for one in shown().statements if one.campaign != "scale_model_chain"}
    assert answers == {"same"} and set(shown().figures) == {"chain"}
    beside = agreement(scaling_campaign(blocks=2))
    assert {one.answer for one in beside.statements} == {"yes"}
    assert set(beside.figures) == {"agreement"}


def test_without_a_reading_nothing_is_said_in_numbers():
    """All emulated trials failed: no ratio is made up."""
    lost = failed(scaling_campaign(blocks=2), "no library")
    run = scale(
        scale_model_dilation=failed(dilated_campaign(blocks=2), "no library"),
        hpl_scaling=lost,
        scale_model_chain=failed(chain(), "no library"),
    )
    for made in (run, agreement(lost)):
        assert {one.estimate for one in made.statements} == {None} and words(made)
