"""What the scale model keeps of the paper's cases, at every scale of time, and beside a simulation at the same rates."""

import re
import tomllib
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from shown import words
from synthetic_scale_model import dilated_campaign, scaling_campaign, simulated_scaling

from analysis import paths
from analysis.experiments import hpl_agreement, hpl_invariance, scale_model
from runners.record import FalloffError

OFF = {("gige", 8): 0.985, ("10gige", 12): 0.972, ("unshaped", 16): 0.95, ("gige", 6): 1.06}


@pytest.fixture(scope="module")
def described():
    """The model of the files in data/."""
    return scale_model.analyse()


@cache
def simulated():
    return simulated_scaling()


@cache
def planted():
    """Four blocks with little scatter; some points are off by what is planted."""
    return hpl_agreement.analyse(scaling_campaign(off=OFF, blocks=4, noise=0.001), simulated())


def test_bytes_are_kept_and_messages_are_not(described):
    """Within 3 % for all 15 cases on GigE; shares by hand for the smallest and the largest case."""
    cases = described.cases
    assert len(cases) == 15 and cases.bytes_ratio.between(0.97, 1.03).all()
    first, last = cases.iloc[0], cases.iloc[-1]
    assert first.paper_bytes == pytest.approx(2 * 39.67e9 / (110e6 * 60000) * 1.5)
    assert first.model_bytes == pytest.approx(2 * 85e6 / (11.77e6 * 1200) * 1.5)
    assert last.paper_messages == pytest.approx(40e-6 * 36 * 39.67e9 / 260000**2)
    by_hand = (35e-6 * 85e6 / 1200**2) / (6e-6 * 39.67e9 / 60000**2)
    assert first.fast_messages_ratio == pytest.approx(by_hand)
    assert "31 times on 10GE" in words(scale_model, described)
    off = cases.assign(bytes_ratio=cases.bytes_ratio.where(cases.nodes != 8, 1.25))
    assert "within 25.0 % in all 15" in words(scale_model, replace(described, cases=off))


def test_the_descriptions_agree_with_each_other(described):
    """Emulated and simulated scale model have one F, and each link's payload is that of its rate in frames of 1538 bytes."""
    emulated = tomllib.loads((paths.TESTBEDS / "scale_model.toml").read_text())
    assert described.model.flop_s == emulated["node"]["flop_s"]
    for name in ("gige", "10gige"):
        payload = emulated["networks"][name]["rate_bit_s"] / 8 * 1448 / 1538
        assert described.model.byte_s[name] == pytest.approx(payload, rel=0.001)


@pytest.mark.parametrize(
    ("bias", "answers", "sentence"),
    [
        ({}, {"the same"}, "matters by less than 2 % in 8 of 8 comparisons"),
        (
            {5: 0.96, 20: 1.01},
            {"lower", "the same"},
            "in 4 of 8 comparisons**, on 2 and 8 nodes; 4 are shown to differ by more",
        ),
        (
            {20: 1.05},
            {"higher", "the same"},
            "in 4 of 8 comparisons**, on 2 and 8 nodes; 4 are shown to differ by more",
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
    assert len(found) == 8 and {each.answer for each in found} == answers
    assert all(each.interval_kind.startswith("90 %") for each in found)
    text = words(hpl_invariance, study)
    assert sentence in text
    if 5 in bias:
        assert re.search(r"HPL reaches 9[56]\.\d % .* slowed down 5 instead of 10 times", text)


def test_a_campaign_of_one_dilation_is_refused():
    """There is nothing to compare."""
    with pytest.raises(FalloffError, match="needs the factor dilation with the testbed's own, 10"):
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
        "Slower than the goal: unlimited links on 16 nodes. Faster than the goal: GigE on 6 nodes."
        in text
    )
    assert re.search(
        r"difference is [56]\.\d %: emulated, HPL on GigE with 6 nodes is faster", text
    )


def test_other_rates_and_several_simulated_blocks_are_refused():
    """A simulation of nodes of another speed agrees with nothing; one that repeats itself has one block."""
    settings = simulated().attrs["testbed_settings"].replace("85000000.0", "90000000.0")
    faster = simulated().assign_attrs(testbed_settings=settings)
    with pytest.raises(FalloffError, match="0.085 Gflop/s.*0.09: give the simulated testbed"):
        hpl_agreement.analyse(scaling_campaign(blocks=1), faster)
    with pytest.raises(FalloffError, match="single level of block"):
        hpl_agreement.analyse(scaling_campaign(blocks=1), scaling_campaign(blocks=2))
