"""The statistics of repeats: the whole sample, its scatter, and the maximum only beside them."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.statistics.repeats import repeats


def test_a_sample_is_described_as_a_whole():
    """Textbook values; the order of measurement does not matter."""
    found = repeats([3.0, 1.0, 2.0, 6.0])
    assert found.values == (1, 2, 3, 6) and found.n == 4 and found.missing == 0
    assert (found.median, found.minimum, found.maximum) == (2.5, 1, 6)
    assert found.variation == pytest.approx(np.std([1, 2, 3, 6], ddof=1) / 3)


def test_missing_values_are_counted_and_not_used():
    """A failed trial is neither 0 nor forgotten."""
    found = repeats([2.0, np.nan, 4.0])
    assert (found.n, found.missing, found.median, found.minimum) == (2, 1, 3, 2)


@pytest.mark.parametrize(
    ("values", "unknown"), [([], "median"), ([5.0], "variation"), ([-1, 1], "variation")]
)
def test_what_a_sample_cannot_say_is_nan(values, unknown):
    """No value, a single one, and a mean of 0; without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(getattr(repeats(values), unknown))


@given(st.lists(st.floats(1, 1e10), min_size=2, max_size=20), st.floats(1e-3, 1e3))
def test_variation_has_no_unit(values, factor):
    """bit/s or Gbit/s: the same variation."""
    here, there = repeats(values), repeats(factor * np.array(values))
    assert there.variation == pytest.approx(here.variation, rel=1e-6, abs=1e-9)
    assert there.maximum == pytest.approx(factor * here.maximum)


def test_the_maximum_grows_with_the_number_of_repeats():
    """Why it is no statistic to compare: of the same distribution, more repeats have a larger one."""
    draws = np.random.default_rng(0).normal(1, 0.1, (200, 30))
    few, many = (np.mean([repeats(row[:n]).maximum for row in draws]) for n in (3, 30))
    assert many > few + 0.1
