"""Every model in the folder describes itself and is recovered from data that it made; curves that
turn, to the optimum.
"""

import inspect

import numpy as np
import pytest
from curves import TRUTHS, noisy, x_of
from scipy import stats

from analysis.dataset.wire import wire_limit
from analysis.laws.block_fit import fit_blocks
from analysis.laws.fit import bracket, fit
from analysis.laws.models import bandwidth_delay, find, names, segmented
from runners.records.record import FalloffError


@pytest.fixture(params=names())
def model(request):
    """Each model of the folder in turn."""
    return find(request.param)


def test_a_model_describes_itself(model):
    """Bounds and guess name the parameters of the signature; equation and source are there; curves
    come many at once.
    """
    x, truth = x_of(model), dict(zip(model.parameters, TRUTHS[model.name]))
    curve = model.function(x, **truth)
    guess = model.guess(x, curve)
    assert model.parameters == tuple(inspect.signature(model.function).parameters)[1:]
    assert set(model.bounds) == set(guess) == set(model.parameters)
    assert model.name == model.function.__name__ and model.equation and model.source
    assert guess == pytest.approx(truth, rel=0.1)  # of exact data
    stacked = {name: np.array([[value], [value]]) for name, value in truth.items()}
    assert model.function(x, **stacked) == pytest.approx(np.array([curve, curve]))
    for y in np.random.default_rng(4).normal(1, 1, (20, x.shape[-1])):  # of no such curve
        for name, value in model.guess(x, y).items():
            assert model.bounds[name][0] <= value <= model.bounds[name][1]


@pytest.mark.parametrize("seed", range(2))
def test_data_give_the_parameters_back(model, seed):
    """Without noise the estimates are the truth; with 1 % of it they lie within five standard
    errors.
    """
    factors = np.random.default_rng(seed).uniform(0.8, 1.2, len(model.parameters))
    truth = dict(zip(model.parameters, factors * TRUTHS[model.name]))
    x = np.repeat(x_of(model), 3, axis=-1)
    y = model.function(x, **truth)
    assert fit(model, x, y).estimates == pytest.approx(truth, rel=1e-5)
    found = fit(model, x, y + np.random.default_rng(seed).normal(0, 0.01 * y.max(), y.shape))
    for name, value in truth.items():
        assert abs(found.estimates[name] - value) < 5 * found.standard_errors[name]
        low, high = found.intervals[name]
        assert low <= found.estimates[name] <= high


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_the_unit_of_y_does_not_matter(factor):
    """Costs of a byte are billionths of a second, where absolute thresholds of a solver would bite;
    rates are billions.
    """
    law, x = find("universal_scalability"), x_of(find("amdahl"))
    y = noisy(law.function(x, *TRUTHS[law.name]), 0.01)
    here, there = fit(law, x, y).estimates, fit(law, x, factor * y).estimates
    assert there == pytest.approx(here | {"gamma": factor * here["gamma"]}, rel=1e-4)


def test_a_model_is_found_by_the_names_that_people_know():
    """Also by short ones; an unknown one is refused with those that there are."""
    assert find("usl") is find("universal_scalability") and find("Amdahl").name == "amdahl"
    with pytest.raises(FalloffError, match="constant.*power_law.*universal_scalability"):
        find("parabola")


SEGMENTED, PATH = segmented.MODEL, bandwidth_delay.MODEL
DOUBLINGS = 2.0 ** np.arange(7)
WINDOWS = 2.0 ** np.arange(14, 25)  # 16 KiB to 16 MiB
LIMIT, RTT = wire_limit(1e9, 1500), 0.01


def falling(x, n0, noise=0.0, seed=0):
    """1 up to n0, 0.1 less with every doubling beyond it, with normal noise."""
    random = np.random.default_rng(seed)
    return SEGMENTED.function(x, 1.0, n0, 0.1) + random.normal(0, noise, len(x))


def goodputs(blocks=1, noise=0.02, seed=0, rtt=RTT):
    """Blocks of goodput [bit/s] over WINDOWS, with noise on the log scale."""
    errors = np.random.default_rng(seed).normal(0, noise, (blocks, len(WINDOWS)))
    return PATH.function(WINDOWS, LIMIT, rtt) * np.exp(errors)


@pytest.mark.parametrize(
    ("log_n0", "noise", "seed"), [(3.90625, 0.02, 1), (1.4, 0.001, 2), (2.7, 0.03, 3)]
)
def test_a_turn_is_the_global_optimum(log_n0, noise, seed):
    """No breakpoint and no knee of a fine grid has a smaller sum of squares; of the first, two
    intervals' optima are nearly the same."""
    x = np.repeat(DOUBLINGS, 2)
    y = falling(x, 2**log_n0, noise, seed)
    smallest = segmented.lines(x, y, 2.0 ** np.linspace(0, 5, 6001))[2].min()
    assert np.sum(np.square(fit(SEGMENTED, x, y).residuals)) <= smallest * (1 + 1e-6)
    (y,) = goodputs(1, 10 * noise, seed, rtt=8 * 2 ** (15 + 2 * log_n0) / LIMIT)
    sse = np.sum((y - PATH.function(WINDOWS, **bandwidth_delay.guess(WINDOWS, y))) ** 2)
    grid = np.geomspace(WINDOWS[0], WINDOWS[-1], 4001)
    assert sse <= bandwidth_delay.slopes_at(WINDOWS, y, grid)[1].min() + 1e-9 * np.sum(y**2)


def test_the_bracket_is_the_closest_pair_that_the_data_allow():
    """Measured x on either side; in at least 95 % of noisy campaigns they hold the breakpoint."""
    x, random, covered = np.repeat(DOUBLINGS, 3), np.random.default_rng(3), 0
    assert bracket(SEGMENTED, x, falling(x, 11.0, 0.001)) == (8, 16)
    assert bracket(SEGMENTED, [2, 4, 8], [1, 1, 0.9]) == (2, 8)
    assert bracket(SEGMENTED, DOUBLINGS, np.ones(7)) == (1, 64)
    assert bracket(SEGMENTED, DOUBLINGS, DOUBLINGS) == (1, 64)
    assert bracket(PATH, WINDOWS, goodputs()[0]) == (2**20, 2**21)
    for seed in range(200):
        n0 = 2 ** random.uniform(0.2, 5.8)
        low, high = bracket(SEGMENTED, x, falling(x, n0, 0.04, seed))
        covered += low <= n0 <= high
    assert covered >= 184  # 190 less two standard deviations of the binomial


@pytest.mark.parametrize(
    ("model", "x", "y", "message"),
    [
        (SEGMENTED, [2, 4, 8], [1.0, 1.0, 0.8], "between 2 and 8"),
        (SEGMENTED, DOUBLINGS[:6], falling(DOUBLINGS[:6], 24.0), "between 16 and 32"),
        (SEGMENTED, DOUBLINGS[:6], falling(DOUBLINGS[:6], 1.0), "at 1 or below"),
        (SEGMENTED, DOUBLINGS, np.ones(7), "between 1 and 64, or there is none"),
        (PATH, WINDOWS, goodputs(rtt=1e-5)[0], "knee; it lies between 16384 and 32768"),
        (PATH, WINDOWS, goodputs(noise=1.6)[0], "between .* and"),
        (PATH, [0, 1, 2, 4, 8], [1, 1, 2, 4, 4], "x above 0"),
    ],
)
def test_what_cannot_carry_a_turn_is_refused_with_its_bracket(model, x, y, message):
    with pytest.raises(FalloffError, match=message):
        fit(model, x, y)


def test_a_turn_that_the_data_tell_is_found():
    """Of a breakpoint two x on either side are enough. The knee is bandwidth times delay, 1.18 MB
    for a gigabit path of 10 ms, also where that is no window's."""
    five = DOUBLINGS[:5]
    assert fit(SEGMENTED, five, falling(five, 3.0)).estimates["n0"] == pytest.approx(3)
    assert bandwidth_delay.knee(LIMIT, RTT) == pytest.approx(1.177e6, rel=1e-3)
    for rtt in RTT * 2 ** np.linspace(-3, 2, 7):
        estimates = fit_blocks(PATH, WINDOWS, goodputs(6, rtt=rtt)).by_block.T
        knee = stats.gmean(bandwidth_delay.knee(*estimates))
        assert knee == pytest.approx(bandwidth_delay.knee(LIMIT, rtt), rel=0.05)
