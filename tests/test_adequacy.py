"""When a fitted curve may be drawn: planted lines and planted misses."""

import numpy as np
import pytest

from analysis.fitting.adequacy import LEVEL, follows

X = np.arange(1.0, 8.0)


def runs(curve, noise, blocks=6, seed=1):
    return curve * (1 + noise * np.random.default_rng(seed).standard_normal((blocks, len(X))))


def straight(values):
    """The least-squares line of all runs."""
    return np.polyval(np.polyfit(np.tile(X, len(values)), values.ravel(), 1), X)


def test_a_true_line_is_drawn():
    """It is refused no more often than the test's level says, and hardly ever where it is close."""
    refused = [
        not follows(values := runs(10 + X, 0.1, seed=seed), straight(values), 2)
        for seed in range(200)
    ]
    assert np.mean(refused) <= 3 * LEVEL


def test_a_line_through_a_bend_is_not_drawn():
    values = runs(100 - 60 * np.exp(-X), 0.01)
    assert not follows(values, straight(values), 2)


def test_close_is_near_enough_without_scatter():
    """A simulation repeats itself: only the distance counts."""
    exact = (10 + X)[None]
    assert follows(exact, 1.01 * (10 + X), 2) and not follows(exact, 1.05 * (10 + X), 2)


@pytest.mark.parametrize("fitted", [np.full(7, np.nan), np.append(X[:-1], np.inf)])
def test_what_was_not_fitted_is_not_drawn(fitted):
    assert not follows(runs(10 + X, 0.1), fitted, 2)


def test_missing_runs_do_not_count():
    values = runs(10 + X, 0.001)
    values[2:, 3] = np.nan
    values[:, 6] = np.nan
    assert follows(values, 10 + X, 2)
