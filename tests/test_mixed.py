"""The mixed model beside the t analysis: the same fall, an interval that is named z-based, no tracebacks."""

import json
import warnings

import numpy as np
import pytest
import xarray as xr
from synthetic import campaign

from analysis.contrasts import contrasts
from analysis.derive import points
from analysis.inference.mixed import mixed_fall

NETWORKS = ("gige", "10gige")


@pytest.fixture(autouse=True)
def no_warnings():
    """Whatever the solver thinks stays off the screen."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def both(**planted):
    """The mixed model's view and the t analysis of the primary contrast of a synthetic campaign."""
    found = points(campaign(**planted))
    return mixed_fall(found, *NETWORKS), contrasts(found)[0].verdict


@pytest.mark.parametrize("seed", range(4))
def test_balanced_data_give_the_same_fall(seed):
    """With every run valid, the estimate is the blocks' mean, as in the t analysis."""
    mixed, verdict = both(blocks=8, seed=seed)
    assert mixed.fall == pytest.approx(verdict.fall, rel=1e-6)
    assert mixed.interval[0] < mixed.fall < mixed.interval[1]
    assert mixed.blocks == verdict.blocks == 8 and mixed.note == ""


def test_its_interval_is_narrower_and_says_why():
    """All node counts give the variance, and z is less than t: with four blocks it shows."""
    widths = []
    for seed in range(15):
        mixed, verdict = both(blocks=4, seed=seed)
        widths.append([np.ptp(mixed.interval), np.ptp(verdict.interval_95)])
        assert mixed.interval_kind.startswith("z-based")
    mixed, student = np.median(widths, axis=0)
    assert 0.4 * student < mixed < 0.9 * student


def test_a_missing_run_costs_no_block():
    """A block without one of its runs still says something about the others."""
    mixed, verdict = both(blocks=8, failed=[(1, "gige", 8), (2, "gige", 4)])
    assert mixed.blocks == 8 > verdict.blocks
    assert mixed.fall == pytest.approx(verdict.fall, abs=0.01)


def test_blocks_without_an_effect_are_noted():
    """No variance between blocks is on the bound of what the solver can find: a result, with a note."""
    mixed, verdict = both(blocks=12, block_effect=0.0)
    assert "variance between blocks" in mixed.note
    assert mixed.fall == pytest.approx(verdict.fall, rel=1e-6)


@pytest.mark.parametrize(
    ("planted", "reason"),
    [
        ({"blocks": 1}, "needs two blocks"),
        ({"blocks": 3, "failed": [(block, "gige", 8) for block in (1, 2, 3)]}, "needs two blocks"),
        ({"blocks": 4, "noise": 0.0, "block_effect": 0.0}, "do not differ"),
    ],
)
def test_what_cannot_be_known_is_none_with_the_reason(planted, reason):
    """Too few blocks, a point that never succeeded, runs without any scatter."""
    mixed, _ = both(**planted)
    assert mixed.fall is None and mixed.interval is None
    assert reason in mixed.note


def test_any_factor_can_be_contrasted():
    """Along another factor, with the interconnect fixed, and factors of one level passed over."""
    random = np.random.default_rng(0)
    rate = 4 * np.exp(random.normal(0, 0.01, (6, 2, 2, 4, 1)))
    rate[:, 1, 1, 3] *= 0.8
    found = xr.Dataset(
        {"rate": (("block", "interconnect", "noise", "nodes", "N"), rate)},
        {
            "block": range(6),
            "interconnect": ["gige", "unshaped"],
            "noise": [0, 5],
            "nodes": [1, 2, 4, 8],
            "N": [64],
        },
        {"design": json.dumps({"baseline_nodes": 1})},
    )
    mixed = mixed_fall(found, 5, 0, along="noise", interconnect="unshaped")
    assert mixed.interval[0] < 0.2 < mixed.interval[1] and mixed.interval[0] > 0.15
    quiet = mixed_fall(found, 5, 0, along="noise", interconnect="gige")
    assert abs(quiet.fall) < 0.03
