"""The mean of each kind of quantity: costs add up, rates are work over cost, ratios have no unit."""

import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from analysis.statistics.intervals import NAMES, average, mean_over, rates, ratios, summary

KINDS = sorted(NAMES)
positive = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=12)


def over_blocks(values):
    return xr.DataArray(np.array(values, float), dims="block")


@given(positive)
def test_harmonic_geometric_arithmetic_is_the_order(values):
    """They are the means that their names say, and never in another order."""
    cost, ratio, rate = (float(average(values, kind)[0]) for kind in ("cost", "ratio", "rate"))
    assert [cost, ratio, rate] == pytest.approx([np.mean(values), stats.gmean(values), stats.hmean(values)])
    assert rate <= ratio * (1 + 1e-9) and ratio <= cost * (1 + 1e-9)


@given(positive)
def test_rates_are_the_costs_inverted(values):
    """The same blocks as flop/s and as s/flop say the same, mean and interval; an interval of costs that holds 0 has
    no end as one of rates."""
    rate, cost = rates(over_blocks(values)), summary(1 / over_blocks(values))
    assert float(rate["mean"]) == pytest.approx(1 / float(cost["mean"])) and rate.blocks == cost.blocks
    if cost.low > 0:
        np.testing.assert_allclose([rate.low, rate.high], [1 / cost.high, 1 / cost.low])
    else:
        assert np.isnan(rate.low) and np.isnan(rate.high)


@given(positive, st.sampled_from(KINDS))
def test_an_interval_holds_its_mean(values, kind):
    """Wherever there is one."""
    mean, low, high = map(float, average(values, kind))
    assert math.isnan(low) or low <= mean * (1 + 1e-9) and mean <= high * (1 + 1e-9)
    assert math.isnan(low) == math.isnan(high)


@given(positive, st.sampled_from(KINDS), st.floats(1e-3, 1e3))
def test_a_unit_changes_nothing(values, kind, factor):
    """Mean and interval in another unit are those of the values in it."""
    scaled = factor * np.array(average(values, kind))
    np.testing.assert_allclose(average(factor * np.array(values), kind), scaled, rtol=1e-6, atol=1e-9 * factor)


@given(positive)
def test_work_over_the_whole_time_is_the_harmonic_mean(values):
    """Blocks of the same work at these rates: all work over all time, which the arithmetic mean is not."""
    time = sum(1 / rate for rate in values)
    assert float(mean_over(over_blocks(values), "block", "rate")) == pytest.approx(len(values) / time)
    assume(max(values) > 1.1 * min(values))
    assert float(mean_over(over_blocks(values), "block", "cost")) > len(values) / time


@given(positive)
def test_a_ratio_turned_round_is_the_reciprocal(values):
    """A over B and B over A agree, which only the geometric mean does."""
    there, back = (ratios(sign * np.log(over_blocks(values))) for sign in (1, -1))
    assert float(there.ratio) == pytest.approx(1 / float(back.ratio))
    np.testing.assert_allclose([there.low, there.high], [1 / back.high, 1 / back.low], rtol=1e-6)


def test_what_does_nothing_in_a_block_is_no_missing_block():
    """A rate of 0 makes the mean 0, without an interval; a missing one is left out."""
    found = rates(over_blocks([0.0, 2.0, math.nan]))
    assert (float(found["mean"]), int(found.blocks)) == (0.0, 2) and np.isnan(found.low)
    assert float(rates(over_blocks([math.nan, 2.0]))["mean"]) == 2.0
    assert np.isnan(mean_over(over_blocks([math.nan, 2.0]), "block", "rate", skipna=False))


def test_the_interval_of_a_rate_covers_it():
    """Of many campaigns of 4 blocks whose times scatter normally, 95 % of the intervals hold the true rate."""
    times = np.random.default_rng(5).normal(1.0, 0.1, (4, 4000))
    _, low, high = average(1 / times, "rate")
    assert 0.94 < np.mean((low <= 1) & (1 <= high)) < 0.96
