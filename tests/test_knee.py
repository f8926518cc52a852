"""The bandwidth-delay model: its guess, its knee, and windows that cannot carry one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.fitting import breakpoint as knee
from analysis.statistics.intervals import average
from analysis.fitting.block_fit import fit_blocks
from analysis.fitting.fit import fit
from analysis.models import bandwidth_delay, find
from analysis.wire import wire_limit
from runners.record import FalloffError

MODEL = find("bandwidth_delay")
WINDOWS = 2.0 ** np.arange(14, 25)  # 16 KiB to 16 MiB
LIMIT, RTT = wire_limit(1e9, 1500), 0.01
PRODUCT = bandwidth_delay.knee(LIMIT, RTT)


def goodputs(blocks, noise=0.02, seed=0, limit=LIMIT, rtt=RTT):
    """Blocks of goodput [bit/s] over WINDOWS, with noise on the log scale."""
    errors = np.random.default_rng(seed).normal(0, noise, (blocks, len(WINDOWS)))
    return MODEL.function(WINDOWS, limit, rtt) * np.exp(errors)


def test_the_product_of_a_gigabit_path_of_10_ms():
    """941.5 Mbit/s times 10 ms are 1.18 MB, and that window gives the limit."""
    assert PRODUCT == pytest.approx(1.177e6, rel=1e-3)
    assert MODEL.function(np.array([PRODUCT / 2, PRODUCT, 2 * PRODUCT]), LIMIT, RTT) == pytest.approx(
        [LIMIT / 2, LIMIT, LIMIT]
    )


def test_the_knee_lies_beside_the_product_in_about_95_percent():
    """The interval over blocks holds the theoretical product, also where the product is no window's."""
    hits = []
    for seed in range(60):
        rtt = RTT * 2 ** np.random.default_rng(seed).uniform(-3, 2)
        found = fit_blocks(MODEL, WINDOWS, goodputs(6, seed=seed, rtt=rtt))
        estimate, low, high = average(bandwidth_delay.knee(*found.by_block.T), "ratio")
        assert estimate == pytest.approx(bandwidth_delay.knee(LIMIT, rtt), rel=0.05)
        hits.append(low <= bandwidth_delay.knee(LIMIT, rtt) <= high)
    assert np.mean(hits) >= 0.87  # 0.95 less three standard deviations of the binomial


def test_limit_and_rtt_are_found_in_their_units():
    """bit/s of a billion beside seconds of a hundredth; without noise they are exact."""
    found = fit(MODEL, WINDOWS, goodputs(1, noise=0.0)[0])
    assert found.estimates == pytest.approx({"limit": LIMIT, "rtt": RTT}, rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.floats(14.5, 23.5), st.sampled_from([0.0, 0.05, 0.5, 3.0]), st.integers(0, 10**6))
def test_the_guess_is_the_global_optimum(log_knee, noise, seed):
    """No knee of a grid of 4001 has a smaller sum of squares, and the guess's curve has the one it claims."""
    y = goodputs(1, noise, seed, rtt=8 * 2**log_knee / LIMIT)
    best = {name: value[0] for name, value in bandwidth_delay.guess(WINDOWS, y).items()}
    sse = np.sum((y - MODEL.function(WINDOWS, **best)) ** 2)
    grid = np.geomspace(WINDOWS[0], WINDOWS[-1], 4001)[None]
    assert sse <= bandwidth_delay.slopes_at(WINDOWS, y, grid)[1].min() + 1e-9 * np.sum(y**2)


@pytest.mark.parametrize(
    ("rtt", "place"), [(1e-5, "at .* bytes or below"), (10.0, "at .* bytes or above"), (0.13, "or above")]
)
def test_windows_on_one_side_of_the_knee_are_refused(rtt, place):
    """A path that every window fills, one that none fills, and one that only the largest fills."""
    with pytest.raises(FalloffError, match=f"{place}.*2 windows on either side"):
        fit(MODEL, WINDOWS, goodputs(1, rtt=rtt)[0])


def test_noise_that_hides_the_knee_is_refused():
    """Goodputs that a factor of five scatters leave it on either side of most windows."""
    with pytest.raises(FalloffError, match="cannot carry a knee"):
        fit(MODEL, WINDOWS, goodputs(1, noise=1.6)[0])


def test_the_bracket_widens_with_noise():
    """Little noise pins the knee to a few percent."""
    widths = []
    for noise in (0.002, 0.02, 0.2):
        low, high = knee.knee_bracket(WINDOWS, goodputs(1, noise)[0])
        assert low < PRODUCT * 1.1 and high > PRODUCT / 1.1
        widths.append(high / low)
    assert widths == sorted(widths) and widths[0] < 1.05


def test_a_window_of_0_is_refused():
    """It asks for the kernel's own choice and is no window."""
    with pytest.raises(FalloffError, match="windows above 0"):
        fit(MODEL, [0, 1, 2, 4, 8], [1, 1, 2, 4, 4])


def test_a_single_block_has_a_knee_without_an_interval():
    """One campaign cannot tell how much campaigns differ."""
    estimate, low, high = knee.over_blocks([[LIMIT, RTT]])
    assert estimate == pytest.approx(PRODUCT) and np.isnan([low, high]).all()
