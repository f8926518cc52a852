"""Planted bottlenecks are named, and equal ones are not."""

import math
from itertools import combinations

import numpy as np
import pytest

from analysis.bottleneck import CHANGES, LIMITS, UNDECIDED, bottleneck

RECEIVERS = 3
REPEATS = 12
RUNS = 20
NOISE = 0.05  # coefficient of variation of a run
SPARE = 1.5  # the others' capacity, of the limit's
RELIEF = {"port": 2.0, "cpu": 1.5, "bridge": 2.0}  # by which factor a change relieves its resource


def goodput(capacities, change=""):
    """The aggregate of a fan-out [bit/s] without noise: the least capacity after a change."""
    relieved = {
        key: capacities[key] * (factor if key == change else 1) for key, factor in RELIEF.items()
    }
    receivers = RECEIVERS + (change == "receiver")
    return min(*relieved.values(), capacities["receiver"] * receivers / RECEIVERS)


def measured(random, value):
    """Repeats of a goodput with noise."""
    return value * np.exp(random.normal(0, NOISE, REPEATS))


def campaign(seed, capacities, changes=CHANGES):
    """The verdict on one synthetic campaign."""
    random = np.random.default_rng(seed)
    baseline = measured(random, goodput(capacities))
    return bottleneck(
        baseline, {change: measured(random, goodput(capacities, change)) for change in changes}
    )


def planted(*limits):
    """Capacities [bit/s] of which these are the limit."""
    return {key: 1e9 if key in limits else SPARE * 1e9 for key in LIMITS}


@pytest.mark.parametrize("limit", LIMITS)
def test_each_planted_bottleneck_is_named(limit):
    """In at least 19 of 20 campaigns of 12 repeats at 5 %."""
    named = [campaign(run, planted(limit)).limit for run in range(RUNS)]
    assert named.count(LIMITS[limit]) >= 19, named


@pytest.mark.parametrize("limits", list(combinations(LIMITS, 2)))
def test_two_equal_bottlenecks_are_undecided(limits):
    """In at least 19 of 20 campaigns, whichever two they are."""
    named = [campaign(run, planted(*limits)).limit for run in range(RUNS)]
    assert named.count(UNDECIDED) >= 19, named


@pytest.mark.parametrize(
    ("ratios", "limit", "said"),
    [
        ({"receiver": 1, "port": 2, "cpu": 1}, "link", "grows by 100"),
        ({"receiver": 1.3, "port": 2, "cpu": 1}, "link", "the receivers' ports"),
        ({"receiver": 1.3, "port": 1, "cpu": 1}, "receiver", "grows by 30"),
        ({"receiver": 1.3, "cpu": 1}, UNDECIDED, "faster ones were not tried"),
        ({"receiver": 1, "port": 1, "cpu": 1}, UNDECIDED, "not tried (a faster bridge)"),
        (dict.fromkeys(CHANGES, 1), UNDECIDED, "two limits are equal"),
        ({"stream": 1.5, "port": 1}, UNDECIDED, "a single one does not fill the path"),
        ({"port": 2, "cpu": 1.5, "stream": 1}, UNDECIDED, "there is not one limit"),
        ({}, UNDECIDED, "not tried"),
    ],
)
def test_the_rule(ratios, limit, said):
    """Each case of the rule, with its reason."""
    changed = {change: np.full(10, ratio * 1e9) for change, ratio in ratios.items()}
    found = bottleneck(np.full(10, 1e9), changed)
    assert (found.limit, said in found.reason) == (limit, True), found.reason


def test_a_single_repeat_decides_nothing():
    """Without an interval a response is unclear, and the ratio is still shown."""
    found = bottleneck([1e9], {"port": [2e9]})
    assert found.limit == UNDECIDED and found.responses["port"].ratio == pytest.approx(2)
    assert math.isnan(found.responses["port"].low)


def test_failed_repeats_are_left_out_in_pairs():
    """NaN in either of a pair removes the pair; nothing left is unclear."""
    found = bottleneck([1e9, math.nan, 1e9, 1e9], {"port": [2e9, 9e9, math.nan, 2e9]})
    assert found.limit == "link" and found.responses["port"].ratio == pytest.approx(2)
    assert bottleneck([math.nan], {"port": [1e9]}).responses["port"].says == "unclear"
