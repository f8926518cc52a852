"""Repeats: the variation's interval covers, and is what a judgement rests on."""

import numpy as np
import pytest

from analysis.statistics.repeats import judge_repeats, variation_interval


@pytest.mark.parametrize(
    ("variation", "n", "kind"),
    [
        (0.02, 40, "reproducible"),
        (0.3, 40, "not reproducible"),
        (0.1, 40, "undecided"),
        (0.05, 3, "undecided"),
        (0.001, 7, "undecided"),
    ],
)
def test_a_sample_is_judged_by_the_variations_interval(variation, n, kind):
    """Below the margin, above it, or across it."""
    values = np.linspace(-1, 1, n)
    assert judge_repeats(1 + variation * values / values.std(ddof=1), margin=0.10).kind == kind


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
