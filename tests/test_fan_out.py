"""The fan-out: the planted knee and limit are found, words follow the data, and what cannot be known is said."""

from functools import cache

import numpy as np
import pytest
from shown import words
from synthetic_paths import fan_out_campaign, without

from analysis.experiments import fan_out
from analysis.experiments.fan_out import CHANGES, bottleneck


@cache
def planted_study():
    """The study of six blocks as they are planted."""
    return fan_out.analyse(fan_out_campaign(blocks=6))


def test_the_bridge_and_the_knee_are_found_in_both_directions():
    """3 Gbit/s between ports of 1, full at the third receiver; what it does not say is said too."""
    for fan in planted_study().fans:
        assert fan.verdict.limit == "shared bridge" and fan.model.follows
        assert fan.knee[0] == pytest.approx(3, rel=0.02)
        assert fan.knee[1] < fan.knee[0] < fan.knee[2]
        assert fan.growth[0] == pytest.approx(0, abs=0.02)
    text = words(fan_out, planted_study())
    assert text.startswith(
        "**The method finds the limit that was set, a shared bridge that 3 flows fill**"
    )
    assert "**The shared bridge limits 5 flows from one sender**" in text
    assert "stops growing at 3.0" in text and "does not say what limited the source" in text


def test_the_sum_stops_growing_only_where_it_is_shown():
    """One block shows nothing; what gains 40 % a doubling bends."""
    single = fan_out.analyse(fan_out_campaign(blocks=1))
    assert "stops growing" not in words(fan_out, single) and np.isnan(single.fans[0].knee[1])
    assert {fan.verdict.limit for fan in single.fans} == {"undecided"}
    assert "The method finds" not in words(fan_out, single)
    dataset = fan_out_campaign(blocks=4)
    more = np.maximum(dataset.receivers / 3, 1) ** 0.5
    growing = fan_out.analyse(dataset.assign(aggregate_goodput=dataset.aggregate_goodput * more))
    assert growing.fans[0].growth[0] == pytest.approx(2**0.5 - 1, abs=0.03)
    assert "bends at" in words(fan_out, growing) and "stops growing" not in words(fan_out, growing)


def test_a_model_that_misses_its_data_names_no_knee():
    """A sum that loses a quarter at the end is no segmented line: its knee is in the data and not in the words."""
    dataset = fan_out_campaign(blocks=4, noise=0.001)
    lost = np.where(dataset.receivers == 7, 0.75, 1.0)
    study = fan_out.analyse(dataset.assign(aggregate_goodput=dataset.aggregate_goodput * lost))
    assert not any(fan.model.follows for fan in study.fans) and "sum of all flows" not in words(
        fan_out, study
    )
    reasons = {one.reason for one in fan_out.findings(study) if one.estimate}
    assert reasons <= {"the model misses its data"}


def test_what_no_single_change_relieves_is_undecided():
    """A processor that is slower than the bridge, whose relief is not among the changes."""
    study = fan_out.analyse(fan_out_campaign(capacities={"cpu": 2e9}))
    assert {fan.verdict.limit for fan in study.fans} == {"undecided"}
    assert study.fans[0].knee[0] == pytest.approx(2 / 0.9415, rel=0.02)
    assert "is undecided" in words(fan_out, study)


def test_failed_trials_are_left_out_of_the_ratios():
    """A block without its baseline does not count, the others do."""
    dataset = without(fan_out_campaign(blocks=6), block=2, path="fanout_3g", receivers=5, streams=1)
    study = fan_out.analyse(dataset)
    assert all(np.isfinite(one.low) for one in study.fans[0].verdict.responses.values())
    assert study.fans[0].model.blocks == 5
    assert "2 of 432 trials gave no reading" in words(fan_out, study)


@pytest.mark.parametrize(
    ("ratios", "limit", "said"),
    [
        ({"receiver": 1, "port": 2, "bridge": 1}, "link", "grows by 100"),
        ({"receiver": 1.3, "port": 2, "bridge": 1}, "link", "grows by 100"),
        ({"receiver": 1.3, "port": 1, "bridge": 1}, "receiver", "grows by 30"),
        ({"stream": 1.5, "port": 1}, "single stream", "more streams"),
        (dict.fromkeys(CHANGES, 1), "undecided", "two limits are equal"),
        ({"port": 2, "bridge": 1.5, "stream": 1}, "undecided", "there is not one limit"),
        ({}, "undecided", "nothing that was tried"),
    ],
)
def test_the_rule(ratios, limit, said):
    """Each case of the rule, with its reason."""
    changed = {change: np.full(10, ratio * 1e9) for change, ratio in ratios.items()}
    found = bottleneck(np.full(10, 1e9), changed)
    assert (found.limit, said in found.reason) == (limit, True), found.reason


def test_failed_repeats_are_left_out_in_pairs():
    """NaN in either of a pair removes the pair; one that is left decides nothing, and none has no ratio."""
    found = bottleneck([1e9, np.nan, 1e9, 1e9], {"port": [2e9, 9e9, np.nan, 2e9]})
    assert found.limit == "link" and found.responses["port"].ratio == pytest.approx(2)
    single = bottleneck([1e9], {"port": [2e9]})
    assert single.limit == "undecided" and single.responses["port"].ratio == pytest.approx(2)
    assert bottleneck([np.nan], {"port": [1e9]}).responses["port"].says == "unclear"
