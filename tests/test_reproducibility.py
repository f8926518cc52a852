"""Repeats: the variation's interval covers, and few values or two modes are not called reproducible."""

import numpy as np
import pytest

from analysis.inference.reproducibility import judge_repeats, variation_interval


def test_two_modes_closer_than_the_margin_are_reproducible():
    """A second mode that differs by less than what counts does not matter; one that is further apart does."""
    random = np.random.default_rng(2)
    slow = np.arange(40) < 12

    def judged(apart):
        return judge_repeats(np.where(slow, 1.0, 1.0 + apart) + random.normal(0, 0.005, 40), margin=0.10)

    assert (judged(0.05).modes.kind, judged(0.05).kind) == ("two modes", "reproducible")
    assert judged(0.15).kind == "not reproducible"


@pytest.mark.parametrize("n", [3, 10, 30])
def test_the_variations_interval_covers(n):
    """95 % of the intervals of normal samples hold the true coefficient of variation."""
    truth = 0.1
    samples = np.random.default_rng(n).normal(1, truth, (2000, n))
    variations = samples.std(axis=1, ddof=1) / samples.mean(axis=1)
    intervals = np.array([variation_interval(variation, n) for variation in variations])
    held = np.mean((intervals[:, 0] <= truth) & (truth <= intervals[:, 1]))
    assert 0.93 < held < 0.97


def test_no_value_has_no_variation():
    """Of one value or none nothing is known, and nothing is judged."""
    for values in ([], [1.0], [np.nan, 1.0]):
        found = judge_repeats(values, margin=0.10)
        assert found.kind == "undecided" and np.isnan(found.interval).all()
