"""A breakpoint is estimated where the data carry it, and bracketed by measured x where they do not."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analysis.fitting.breakpoint import bracket
from analysis.fitting.fit import fit
from analysis.models import find
from analysis.models.segmented import lines
from runners.record import FalloffError

SEGMENTED = find("segmented")
DOUBLINGS = 2.0 ** np.arange(7)


def falling(x, n0, noise=0.0, seed=0):
    """1 up to n0, 0.1 less with every doubling beyond it, with normal noise."""
    return SEGMENTED.function(x, 1.0, n0, 0.1) + np.random.default_rng(seed).normal(0, noise, len(x))


def test_the_bracket_is_the_pair_of_measured_x_around_the_breakpoint():
    """With little noise no other pair is left."""
    x = np.repeat(DOUBLINGS, 3)
    assert bracket(x, falling(x, 11.0, 0.001)) == (8, 16)


def test_three_x_leave_the_bracket_on_the_last_two_at_best():
    """Two points are on the flat part, and where between 4 and 8 the fall begins nobody can tell."""
    x = np.repeat([2.0, 4, 8], 5)
    assert bracket(x, falling(x, 4.0, 0.001)) == (4, 8)
    assert bracket([2, 4, 8], [1, 1, 0.9]) == (2, 8)


def test_noise_widens_the_bracket():
    """It spans no fewer doublings when the same noise grows, and in the end all."""
    x = np.repeat(DOUBLINGS, 3)
    low, high = np.array([bracket(x, falling(x, 11.0, noise)) for noise in (0.001, 0.05, 0.2, 1.0)]).T
    assert np.all(np.diff(high / low) >= 0) and high[-1] / low[-1] == 64


def test_y_that_does_not_fall_leaves_every_x():
    """Equal or rising y have no breakpoint to bracket."""
    assert bracket(DOUBLINGS, np.ones(7)) == bracket(DOUBLINGS, DOUBLINGS) == (1, 64)


def test_the_bracket_holds_the_breakpoint_in_at_least_95_percent():
    """It is an interval of the profile made wider, so that it covers no less."""
    random = np.random.default_rng(3)
    x, covered = np.repeat(DOUBLINGS, 3), 0
    for seed in range(200):
        n0 = 2 ** random.uniform(0.2, 5.8)
        low, high = bracket(x, falling(x, n0, 0.04, seed))
        covered += low <= n0 <= high
    assert covered >= 184  # 190 less two standard deviations of the binomial


@settings(max_examples=10, deadline=None)
@given(st.floats(1.2, 4.8), st.sampled_from([0.001, 0.02, 0.05]), st.integers(0, 1000))
@example(3.90625, 0.02, 1)  # the optima of two intervals are nearly the same
def test_the_fit_is_the_global_optimum(log_n0, noise, seed):
    """No breakpoint of a grid of 6001 has a smaller sum of squares."""
    x = np.repeat(DOUBLINGS, 2)
    y = falling(x, 2**log_n0, noise, seed)
    smallest = lines(x, y[None], 2.0 ** np.linspace(0, 5, 6001))[2].min()
    try:
        found = fit(SEGMENTED, x, y)
    except FalloffError:
        return
    assert np.sum(np.square(found.residuals)) <= smallest * (1 + 1e-9)


def test_three_node_counts_give_a_bracket_and_no_estimate():
    """The refusal names the x and says where the breakpoint lies."""
    with pytest.raises(FalloffError, match=r"3 distinct x \(2, 4, 8\) cannot .*; it lies between 2 and 8"):
        fit(SEGMENTED, [2, 4, 8], [1.0, 1.0, 0.8])


@pytest.mark.parametrize(("n0", "place"), [(24.0, "between 16 and 32"), (1.0, "at 1 or below")])
def test_a_breakpoint_next_to_an_end_is_refused(n0, place):
    """With a single x on one side of an allowed breakpoint, that side could be anything."""
    x = np.repeat(DOUBLINGS[:6], 3)
    with pytest.raises(FalloffError, match=f"{place}. An estimate needs 2 distinct x on either side"):
        fit(SEGMENTED, x, falling(x, n0, 1e-4))


def test_two_x_on_either_side_are_enough():
    """Five x carry a breakpoint in their middle."""
    assert fit(SEGMENTED, DOUBLINGS[:5], falling(DOUBLINGS[:5], 3.0)).estimates["n0"] == pytest.approx(3)


def test_y_that_does_not_fall_has_no_breakpoint():
    """Neither a constant nor a rising curve gives an estimate."""
    for y in np.ones(7), DOUBLINGS:
        with pytest.raises(FalloffError, match="if there is one"):
            fit(SEGMENTED, DOUBLINGS, y)


def test_x_that_is_not_above_0_is_refused():
    """The model is a line in the logarithm of x."""
    with pytest.raises(FalloffError, match="not above 0"):
        fit(SEGMENTED, [0, 1, 2, 4, 8], [1, 1, 1, 0.9, 0.8])
