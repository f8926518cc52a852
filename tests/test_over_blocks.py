"""Means, ratios and ratios of means over the blocks, with intervals that hold what they say."""

import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.statistics.intervals import ratio_of_means, ratios, summary

NAN = math.nan


def table(values):
    return xr.DataArray(values, {"block": range(1, len(values) + 1), "n": [1, 2]}, ("block", "n"))


def test_summary_is_the_t_interval_of_the_known_blocks():
    """Each column has its own blocks: scipy's interval, a lone value without one, and nothing."""
    found = summary(table([[1.0, 5.0], [2.0, NAN], [4.0, NAN]]))
    low, high = stats.t.interval(0.95, 2, np.mean([1, 2, 4]), stats.sem([1, 2, 4]))
    np.testing.assert_allclose([found["mean"][0], found.low[0], found.high[0]], [7 / 3, low, high])
    assert found["mean"][1] == 5 and np.isnan(found.low[1]) and np.isnan(found.high[1])
    assert found.blocks.values.tolist() == [3, 1]
    empty = summary(table([[NAN, 1.0]])).sel(n=1)
    assert np.isnan(empty["mean"]) and empty.blocks == 0


def test_ratios_are_geometric():
    """Twice and half make one."""
    found = ratios(np.log(table([[2.0, 3.0], [0.5, 3.0]])))
    np.testing.assert_allclose(found.ratio, [1, 3])
    np.testing.assert_allclose(found.low * found.high, [1, 9])


blocks = st.lists(st.tuples(st.floats(-10, 10), st.floats(1, 2)), min_size=3, max_size=12)


@given(blocks)
def test_fiellers_ends_are_where_the_t_test_turns(pairs):
    """At either end of the interval, the mean of numerator - r denominator is just told from 0."""
    above, below = np.array(pairs).T
    ratio, low, high = ratio_of_means(above, below)
    assert ratio == pytest.approx(above.mean() / below.mean())
    if math.isfinite(low) and high - low > 1e-6:
        assert low <= ratio <= high
        for end in (low, high):
            assert stats.ttest_1samp(above - end * below, 0).pvalue == pytest.approx(0.05, abs=1e-4)


@given(blocks, st.floats(0.1, 10))
def test_the_ratio_has_the_unit_of_its_means(pairs, factor):
    """A numerator in another unit gives the same ratio and interval in that unit."""
    above, below = np.array(pairs).T
    np.testing.assert_allclose(
        ratio_of_means(factor * above, below), factor * np.array(ratio_of_means(above, below)), atol=1e-6
    )


def test_what_is_not_known_of_a_ratio_is_nan():
    """No block, one block, a missing value, and a denominator that may be 0."""
    assert all(map(math.isnan, ratio_of_means([], [])))
    assert ratio_of_means([1.0, NAN], [2.0, 3.0]) == pytest.approx((0.5, NAN, NAN), nan_ok=True)
    ratio, low, high = ratio_of_means([1.0, 1.1, 0.9], [1.0, -1.0, 0.5])
    assert ratio == pytest.approx(6) and math.isnan(low) and math.isnan(high)
