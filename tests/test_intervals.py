"""Means and intervals over blocks: costs add up, rates are work over cost, ratios have no unit;
ratios of means; repeats.
"""

import math
import warnings

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from analysis.statistics.intervals import (
    average,
    mean_over,
    over_blocks,
    rates,
    ratio_of_means,
    ratios,
)
from analysis.subjects.long_path import judge_repeats, variation_interval

NAN = math.nan


def blocks_of(values):
    return xr.DataArray(np.array(values, float), dims="block")


@pytest.mark.parametrize("values", [[1.0, 2.0, 4.0], [0.9, 1.1, 1.0, 1.02], [1e-3, 5.0, 900.0]])
def test_each_kind_has_the_mean_of_its_name(values):
    """As numpy and scipy have them; A over B turned round is B over A. The same blocks as flop/s
    and as s/flop say the same; an interval of costs that holds 0 has no end as a rate."""
    means = [float(average(values, kind)[0]) for kind in ("cost", "ratio", "rate")]
    assert means == pytest.approx([np.mean(values), stats.gmean(values), stats.hmean(values)])
    assert float(mean_over(blocks_of(values), "block", "rate")) == pytest.approx(means[-1])
    there, back = (ratios(sign * np.log(blocks_of(values))) for sign in (1, -1))
    np.testing.assert_allclose([there.low, there.high], [1 / back.high, 1 / back.low], rtol=1e-6)
    rate, cost = rates(blocks_of(values)), over_blocks(1 / blocks_of(values), "cost")
    ends = [1 / cost.high, 1 / cost.low] if cost.low > 0 else [NAN, NAN]
    np.testing.assert_allclose([rate.low, rate.high], ends)


def test_intervals_are_scipys_of_the_known_blocks():
    """Each column has its own blocks; a lone value has no interval, none no mean, and a rate of 0
    is not missing.
    """
    table = xr.DataArray([[1.0, 5.0, NAN], [2.0, NAN, NAN], [4.0, NAN, NAN]], dims=("block", "n"))
    found = over_blocks(table, "cost")
    low, high = stats.t.interval(0.95, 2, np.mean([1, 2, 4]), stats.sem([1, 2, 4]))
    np.testing.assert_allclose([found["mean"][0], found.low[0], found.high[0]], [7 / 3, low, high])
    np.testing.assert_array_equal(found["mean"][1:], [5, NAN])
    assert np.isnan(found.low[1:]).all() and found.blocks.values.tolist() == [3, 1, 0]
    idle = rates(blocks_of([0.0, 2.0, NAN]))
    assert (float(idle["mean"]), int(idle.blocks)) == (0.0, 2) and np.isnan(idle.low)
    assert np.isnan(mean_over(blocks_of([NAN, 2.0]), "block", "rate", skipna=False))


def test_the_interval_of_a_rate_covers_it():
    """Of many campaigns of 4 blocks whose times scatter normally, 95 % of the intervals hold the
    true rate.
    """
    times = np.random.default_rng(5).normal(1.0, 0.1, (4, 4000))
    _, low, high = average(1 / times, "rate")
    assert 0.94 < np.mean((low <= 1) & (1 <= high)) < 0.96


def test_fiellers_ends_are_where_the_t_test_turns():
    """At either end the mean of numerator - r denominator is just told from 0; another unit changes
    nothing.
    """
    for above, below in (
        ([2.0, 3.0, 2.5, 2.2], [1.0, 1.5, 1.2, 1.1]),
        ([-4.0, 7, 1], [1.9, 1, 1.3]),
    ):
        above, below = np.array(above), np.array(below)
        ratio, low, high = ratio_of_means(above, below)
        assert ratio == pytest.approx(above.mean() / below.mean()) and low < ratio < high
        scaled = ratio_of_means(3.7 * above, below)
        assert scaled == pytest.approx((3.7 * ratio, 3.7 * low, 3.7 * high))
        for end in (low, high):
            p = stats.ttest_1samp(above - end * below, 0).pvalue
            assert p == pytest.approx(0.05, abs=1e-4)
    # No block, one block beside a missing value, and a denominator that may be 0.
    assert all(map(math.isnan, ratio_of_means([], [])))
    assert ratio_of_means([1.0, NAN], [2.0, 3.0]) == pytest.approx((0.5, NAN, NAN), nan_ok=True)
    ratio, low, high = ratio_of_means([1.0, 1.1, 0.9], [1.0, -1.0, 0.5])
    assert ratio == pytest.approx(6) and math.isnan(low) and math.isnan(high)


def test_repeats_are_described_as_a_whole():
    """Textbook values; a failed trial is not 0; what cannot be known is NaN, without a warning."""

    def repeats(*values):
        return judge_repeats(values, margin=0.10)

    found = repeats(3.0, 1.0, NAN, 2.0, 6.0)
    assert found.n == 4
    assert found.variation == pytest.approx(np.std([1, 2, 3, 6], ddof=1) / 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan([repeats(*values).variation for values in ((), (5.0,), (-1, 1))]).all()


def test_repeats_are_judged_by_the_variations_interval():
    """Below the margin, above it, across it, too few; of one value nothing is judged."""
    for variation, n, answer in (
        (0.02, 40, "yes"),
        (0.3, 40, "no"),
        (0.1, 40, "undecided"),
        (0.001, 7, "undecided"),
    ):
        values = np.linspace(-1, 1, n)
        assert judge_repeats(1 + variation * values / values.std(ddof=1), 0.10).answer == answer
    alone = judge_repeats([NAN, 1.0], margin=0.10)
    assert alone.answer == "undecided" and np.isnan(alone.interval).all()


@pytest.mark.parametrize("n", [3, 30])
def test_the_variations_interval_covers(n):
    """95 % of the intervals of normal samples hold the true coefficient of variation."""
    truth = 0.1
    samples = np.random.default_rng(n).normal(1, truth, (2000, n))
    variations = samples.std(axis=1, ddof=1) / samples.mean(axis=1)
    intervals = np.array([variation_interval(variation, n) for variation in variations])
    assert 0.93 < np.mean((intervals[:, 0] <= truth) & (truth <= intervals[:, 1])) < 0.97
