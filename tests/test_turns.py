"""Breakpoints and knees: estimated where the data carry them, bracketed by measured x where they do not."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analysis.fitting.block_fit import fit_blocks
from analysis.fitting.breakpoint import bracket
from analysis.fitting.fit import fit
from analysis.models import bandwidth_delay, find
from analysis.models.segmented import lines
from analysis.statistics.intervals import average
from analysis.wire import wire_limit
from runners.record import FalloffError

SEGMENTED, PATH = find("segmented"), find("bandwidth_delay")
DOUBLINGS = 2.0 ** np.arange(7)
WINDOWS = 2.0 ** np.arange(14, 25)  # 16 KiB to 16 MiB
LIMIT, RTT = wire_limit(1e9, 1500), 0.01


def falling(x, n0, noise=0.0, seed=0):
    """1 up to n0, 0.1 less with every doubling beyond it, with normal noise."""
    return SEGMENTED.function(x, 1.0, n0, 0.1) + np.random.default_rng(seed).normal(
        0, noise, len(x)
    )


def goodputs(blocks, noise=0.02, seed=0, rtt=RTT):
    """Blocks of goodput [bit/s] over WINDOWS, with noise on the log scale."""
    errors = np.random.default_rng(seed).normal(0, noise, (blocks, len(WINDOWS)))
    return PATH.function(WINDOWS, LIMIT, rtt) * np.exp(errors)


def test_the_bracket_is_the_closest_pair_that_the_data_allow():
    x = np.repeat(DOUBLINGS, 3)
    assert bracket(SEGMENTED, x, falling(x, 11.0, 0.001)) == (8, 16)
    assert bracket(SEGMENTED, [2, 4, 8], [1, 1, 0.9]) == (2, 8)
    assert bracket(SEGMENTED, DOUBLINGS, np.ones(7)) == (1, 64)
    assert bracket(SEGMENTED, DOUBLINGS, DOUBLINGS) == (1, 64)
    assert bracket(PATH, WINDOWS, goodputs(1)[0]) == (2**20, 2**21)


def test_the_bracket_holds_the_breakpoint_in_at_least_95_percent():
    random = np.random.default_rng(3)
    x, covered = np.repeat(DOUBLINGS, 3), 0
    for seed in range(200):
        n0 = 2 ** random.uniform(0.2, 5.8)
        low, high = bracket(SEGMENTED, x, falling(x, n0, 0.04, seed))
        covered += low <= n0 <= high
    assert covered >= 184  # 190 less two standard deviations of the binomial


@settings(max_examples=10, deadline=None)
@given(st.floats(1.2, 4.8), st.sampled_from([0.001, 0.02, 0.05]), st.integers(0, 1000))
@example(3.90625, 0.02, 1)  # the optima of two intervals are nearly the same
def test_the_breakpoint_is_the_global_optimum(log_n0, noise, seed):
    """No breakpoint of a grid of 6001 has a smaller sum of squares."""
    x = np.repeat(DOUBLINGS, 2)
    y = falling(x, 2**log_n0, noise, seed)
    smallest = lines(x, y[None], 2.0 ** np.linspace(0, 5, 6001))[2].min()
    try:
        found = fit(SEGMENTED, x, y)
    except FalloffError:
        return
    assert np.sum(np.square(found.residuals)) <= smallest * (1 + 1e-6)


@settings(max_examples=25, deadline=None)
@given(st.floats(14.5, 23.5), st.sampled_from([0.0, 0.05, 0.5, 3.0]), st.integers(0, 10**6))
def test_the_guessed_knee_is_the_global_optimum(log_knee, noise, seed):
    """No knee of a grid of 4001 has a smaller sum of squares."""
    y = goodputs(1, noise, seed, rtt=8 * 2**log_knee / LIMIT)
    best = {name: value[0] for name, value in bandwidth_delay.guess(WINDOWS, y).items()}
    sse = np.sum((y - PATH.function(WINDOWS, **best)) ** 2)
    grid = np.geomspace(WINDOWS[0], WINDOWS[-1], 4001)[None]
    assert sse <= bandwidth_delay.slopes_at(WINDOWS, y, grid)[1].min() + 1e-9 * np.sum(y**2)


@pytest.mark.parametrize(
    ("model", "x", "y", "message"),
    [
        (SEGMENTED, [2, 4, 8], [1.0, 1.0, 0.8], "between 2 and 8"),
        (
            SEGMENTED,
            DOUBLINGS[:6],
            falling(DOUBLINGS[:6], 24.0),
            "breakpoint; it lies between 16 and 32",
        ),
        (SEGMENTED, DOUBLINGS[:6], falling(DOUBLINGS[:6], 1.0), "at 1 or below"),
        (SEGMENTED, DOUBLINGS, np.ones(7), "between 1 and 64, or there is none"),
        (SEGMENTED, [0, 1, 2, 4, 8], [1, 1, 1, 0.9, 0.8], "x above 0"),
        (PATH, WINDOWS, goodputs(1, rtt=1e-5)[0], "knee; it lies between 16384 and 32768"),
        (PATH, WINDOWS, goodputs(1, rtt=10.0)[0], "at 1.67772e.07 or above"),
        (PATH, WINDOWS, goodputs(1, noise=1.6)[0], "between .* and"),
        (PATH, [0, 1, 2, 4, 8], [1, 1, 2, 4, 4], "x above 0"),
    ],
)
def test_what_cannot_carry_a_turn_is_refused_with_its_bracket(model, x, y, message):
    with pytest.raises(FalloffError, match=message):
        fit(model, x, y)


def test_two_x_on_either_side_are_enough():
    five = DOUBLINGS[:5]
    assert fit(SEGMENTED, five, falling(five, 3.0)).estimates["n0"] == pytest.approx(3)
    found = fit(PATH, WINDOWS, goodputs(1, noise=0.0)[0])
    assert found.estimates == pytest.approx({"limit": LIMIT, "rtt": RTT}, rel=1e-6)


def test_the_knee_lies_beside_the_product_in_about_95_percent():
    """Bandwidth times delay, 1.18 MB for a gigabit path of 10 ms, also where that is no window's."""
    assert bandwidth_delay.knee(LIMIT, RTT) == pytest.approx(1.177e6, rel=1e-3)
    hits = []
    for seed in range(60):
        rtt = RTT * 2 ** np.random.default_rng(seed).uniform(-3, 2)
        by_block = fit_blocks(PATH, WINDOWS, goodputs(6, seed=seed, rtt=rtt)).by_block
        estimate, low, high = average(bandwidth_delay.knee(*by_block.T), "ratio")
        assert estimate == pytest.approx(bandwidth_delay.knee(LIMIT, rtt), rel=0.05)
        hits.append(low <= bandwidth_delay.knee(LIMIT, rtt) <= high)
    assert np.mean(hits) >= 0.87  # 0.95 less three standard deviations of the binomial
