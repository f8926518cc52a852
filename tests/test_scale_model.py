"""What the scale model keeps of the paper's cases, at every scale of time, and beside a simulation at the same rates."""

import re
from functools import cache

import numpy as np
import pytest
from shown import words
from synthetic_scale_model import dilated_campaign, scaling_campaign, simulated_scaling

import experiment
from analysis.experiments import hpl_agreement, hpl_invariance, scale_model
from runners.record import FalloffError

OFF = {("gige", 8): 0.992, ("10gige", 24): 0.991, ("unshaped", 16): 0.95, ("gige", 4): 1.06}


@cache
def simulated():
    return simulated_scaling()


@cache
def planted():
    """Four blocks with little scatter; some points are off by what is planted."""
    return hpl_agreement.analyse(scaling_campaign(off=OFF, blocks=4, noise=0.001), simulated())


def probed(message=30e-6, carried=1.01):
    """A campaign before whose runs tokens were exchanged: the time of a short message [s], and what long ones got [1]."""
    ran = scaling_campaign(blocks=2)
    paper_links = ran.interconnect.isin(["gige", "10gige"]) & (ran.nodes > 1)
    return ran.assign(
        short_message_time=(paper_links * message).where(paper_links),
        link_share=(paper_links * carried).where(paper_links),
    )


def test_both_shares_of_every_case_are_those_of_the_rates_and_tokens():
    """By hand for the smallest and the largest case; bytes cost what they cost in the paper within 3 %, messages no more."""
    found = scale_model.shares(probed())
    assert len(found) == 12 and found.index.unique(1).tolist() == [2, 4, 8, 16, 24, 36]
    model = experiment.read_testbed("fortinet_model")["node"]["flop_s"] * 1000
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
        assert at.missing * (1 - at.messages) > 0
    assert found.bytes.between(0.97, 1.03).all() and (found.messages <= 1).all()
    assert (scale_model.shares(probed(message=45e-6)).messages > 1).any()


def test_what_tokens_did_not_measure_is_not_said():
    """No shares without tokens, nor without nodes of a known rate; the finding says so."""
    assert scale_model.shares(scaling_campaign(blocks=1)).empty
    assert scale_model.shares(simulated()).empty and scale_model.table(simulated()) is None
    assert "cannot be said" in words(scale_model, scaling_campaign(blocks=1))
    off = re.search(r"within ([\d.]+) %", words(scale_model, probed(carried=0.8)))
    assert float(off[1]) > 20


def test_the_descriptions_agree_with_each_other():
    """Emulated and simulated scale model have one F, and each link's payload is that of its rate in frames of 1538 bytes."""
    emulated, simulation = map(
        experiment.read_testbed, ("fortinet_model", "fortinet_model_simulated")
    )
    assert simulation["rates"]["dgemm_flop_s"]["value"] == emulated["node"]["flop_s"]
    for name in ("gige", "10gige"):
        payload = emulated["networks"][name]["rate_bit_s"] / 8 * 1448 / 1538
        bandwidth = simulation["network"][name]["bandwidth"]["value"]
        assert bandwidth == pytest.approx(payload, rel=0.001)


@pytest.mark.parametrize(
    ("bias", "answers", "sentence"),
    [
        ({}, {"the same"}, "matters by less than 1 % in 9 of 9 comparisons"),
        (
            {100: 0.96},
            {"lower"},
            "in 0 of 9 comparisons**, on 2, 8 and 36 nodes; 9 are shown to differ by more",
        ),
        (
            {100: 1.05},
            {"higher"},
            "in 0 of 9 comparisons**, on 2, 8 and 36 nodes; 9 are shown to differ by more",
        ),
    ],
)
def test_what_depends_on_the_dilation_is_named(bias, answers, sentence):
    """Planted ratios come back, of rates on one scale of time."""
    study = hpl_invariance.analyse(dilated_campaign(blocks=4, noise=0.001, bias=bias))
    assert bias or np.ptp(study.points.rate.mean("block").values, axis=-1).max() < 0.01
    for dilation, at in study.compared.groupby("dilation"):
        np.testing.assert_allclose(at.ratio, bias.get(dilation, 1), atol=0.003)
    found = list(hpl_invariance.findings(study))
    assert len(found) == 9 and {each.answer for each in found} == answers
    assert all(each.interval_kind.startswith("90 %") for each in found)
    text = words(hpl_invariance, study)
    assert sentence in text
    if bias.get(100, 1) < 1:
        assert re.search(r"HPL reaches 9[56]\.\d % .* slowed down 100 instead of 400 times", text)


def test_a_campaign_of_one_dilation_is_refused():
    """There is nothing to compare."""
    with pytest.raises(FalloffError, match="needs the factor dilation with two levels"):
        hpl_invariance.analyse(scaling_campaign(blocks=1))


def test_planted_ratios_to_the_simulation_come_back():
    """Each point's ratio is the planted one, is judged at the goal of its network, and is a mark in its panel."""
    found = planted().ratios
    wanted = [OFF.get(place, 1.0) for place in found.index]
    np.testing.assert_allclose(found.ratio, wanted, atol=0.002)
    answers = found.answer.to_dict()
    assert [answers[place] for place in OFF] == ["within", "within", "slower", "faster"]
    text = words(hpl_agreement, planted())
    assert "19 of 21 points agree" in text and "not everywhere as fast" in text
    assert (
        "Slower than the goal: unlimited links on 16 nodes. Faster than the goal: GigE on 4 nodes."
        in text
    )
    assert re.search(
        r"difference is [56]\.\d %: emulated, HPL on GigE with 4 nodes is faster", text
    )


def test_other_rates_and_several_simulated_blocks_are_refused():
    """A simulation of nodes of another speed agrees with nothing; one that repeats itself has one block."""
    settings = simulated().attrs["testbed_settings"].replace("663200.0", "700000.0")
    faster = simulated().assign_attrs(testbed_settings=settings)
    with pytest.raises(FalloffError, match="0.0006632 Gflop/s.*0.0007: give the simulated testbed"):
        hpl_agreement.analyse(scaling_campaign(blocks=1), faster)
    with pytest.raises(FalloffError, match="single level of block"):
        hpl_agreement.analyse(scaling_campaign(blocks=1), scaling_campaign(blocks=2))
