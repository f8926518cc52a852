"""What the scale model keeps of the paper's cases, at every scale of time, and beside a simulation at the same rates."""

import re
import tomllib
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from synthetic_scale_model import dilated_campaign, scaling_campaign, simulated_scaling

from analysis import paths
from analysis.experiments import hpl_agreement, hpl_invariance, scale_model
from analysis.experiments.scale_model import bandwidth_share, judged_ratios, latency_share
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


def words(module, study):
    text = module.finding(study).replace("\u00a0", " ")
    assert not re.search(r"\b(nan|None)\b", text)
    return text


@given(st.integers(2, 64), st.floats(1, 100))
def test_faster_nodes_on_equally_faster_links_keep_the_balance(n, factor):
    """Only the ratio of node to link speed counts, and of node speed to latency."""
    here = bandwidth_share(n, 4e9, 1e8, 8192, 1, n)
    assert bandwidth_share(n, factor * 4e9, factor * 1e8, 8192, 1, n) == pytest.approx(here)
    there = latency_share(n, factor * 4e9, 5e-5 / factor, 8192)
    assert there == pytest.approx(latency_share(n, 4e9, 5e-5, 8192))


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


def test_the_interval_is_that_of_two_one_sided_tests():
    """Of many campaigns of the same share, the 90 % interval holds 1 in nine of ten."""
    values = np.random.default_rng(3).normal(0, 0.01, (4, 1, 3000))
    labels = {"interconnect": ["gige"], "nodes": np.arange(3000)}
    log_ratio = xr.DataArray(values, labels, ("block", "interconnect", "nodes"))
    found = judged_ratios(log_ratio, {"gige": 0.02}, "emulated", 0.05, {})
    assert 0.88 < ((found.low <= 1) & (1 <= found.high)).mean() < 0.92


def test_an_efficiency_that_does_not_change_is_the_same():
    """At half the rate of all nodes and links the rate is half and the share the same, within 2 % with 0.3 % of scatter."""
    study = hpl_invariance.analyse(dilated_campaign(blocks=4, noise=0.003))
    rate = study.points.rate.sel(interconnect="gige", nodes=8).mean("block")
    assert float(rate.sel(dilation=5) / rate.sel(dilation=20)) == pytest.approx(4, rel=0.01)
    assert "does not depend on how much" in words(hpl_invariance, study)
    found = list(hpl_invariance.findings(study))
    assert len(found) == 8 and {each.answer for each in found} == {"the same"}
    assert all(each.interval_kind.startswith("90 %") for each in found)


def test_what_depends_on_the_dilation_is_named():
    """A machine that costs 4 % at dilation 5, and 1 % less than at 10 at dilation 20."""
    study = hpl_invariance.analyse(
        dilated_campaign(blocks=4, noise=0.001, bias={5: 0.96, 20: 1.01})
    )
    at_5, at_20 = (study.compared.xs(dilation, level="dilation") for dilation in (5, 20))
    assert (at_5.answer == "lower").all() and (at_20.answer == "the same").all()
    np.testing.assert_allclose(at_5.ratio, 0.96, atol=0.003)
    text = words(hpl_invariance, study)
    assert "4 of 8 comparisons differ by more than 2 %" in text
    assert re.search(r"HPL reaches 9[56]\.\d % .* slowed down 5 instead of 10 times", text)
    higher = hpl_invariance.analyse(dilated_campaign(blocks=4, noise=0.001, bias={20: 1.05}))
    assert (higher.compared.xs(20, level="dilation").answer == "higher").all()


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
        "Slower than the goal: control on 16 nodes. Faster than the goal: GigE on 6 nodes." in text
    )
    assert re.search(r"difference is [56]\.\d %: HPL on GigE with 6 nodes is faster", text)
    panels = hpl_agreement.figures(planted())["agreement"].figure.axes
    for axes, name in zip(panels, ("gige", "10gige", "unshaped"), strict=True):
        heights = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
        assert np.isin(100 * found.ratio.loc[name], heights).all()


def test_only_points_of_both_campaigns_are_compared():
    """The quick campaign has two node counts; what did not run is unknown."""
    failed = {(block, "gige", 8) for block in (1, 2, 3)}
    study = hpl_agreement.analyse(scaling_campaign(preset="quick", failed=failed), simulated())
    assert study.points.nodes.values.tolist() == [2, 8]
    assert np.isnan(study.ratios.ratio["gige", 8])
    assert "of 5 points" in words(hpl_agreement, study)


def test_other_rates_and_several_simulated_blocks_are_refused():
    """A simulation of nodes of another speed agrees with nothing; one that repeats itself has one block."""
    settings = simulated().attrs["testbed_settings"].replace("85000000.0", "90000000.0")
    faster = simulated().assign_attrs(testbed_settings=settings)
    with pytest.raises(FalloffError, match="0.085 Gflop/s.*0.09: give the simulated testbed"):
        hpl_agreement.analyse(scaling_campaign(blocks=1), faster)
    with pytest.raises(FalloffError, match="single level of block"):
        hpl_agreement.analyse(scaling_campaign(blocks=1), scaling_campaign(blocks=2))
