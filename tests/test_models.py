"""Every model in the folder describes itself and is recovered from data that it made."""

import inspect

import numpy as np
import pytest
from curves import TRUTHS

from analysis.fitting.fit import fit
from analysis.models import find, names
from runners.record import FalloffError

X = np.array([1.0, 2, 3, 4, 6, 8, 12, 16])
SIZES, GRIDS = (1000, 2000, 4000, 8000), ((1, 1), (1, 4), (2, 2), (4, 4))
HPL_X = np.array(
    [(order, block, *grid) for order in SIZES for block in (64, 128) for grid in GRIDS], float
).T


@pytest.fixture(params=names())
def model(request):
    """Each model of the folder in turn."""
    return find(request.param)


def x_of(model):
    """Points at which the model can be told from data: node counts, or HPL's own four quantities."""
    return HPL_X if model.name == "hpl" else X


def truth_of(model, seed):
    """Parameters inside the model's bounds, at which each of them matters: up to 20 % beside the usual ones."""
    factors = np.random.default_rng(seed).uniform(0.8, 1.2, len(model.parameters))
    return dict(zip(model.parameters, factors * TRUTHS[model.name]))


def test_a_model_describes_itself(model):
    """Bounds and guess name the parameters of the signature; equation and source are there."""
    x = x_of(model)
    guess = model.guess(x, np.ones((1, x.shape[-1])))
    assert model.parameters == tuple(inspect.signature(model.function).parameters)[1:]
    assert set(model.bounds) == set(guess) == set(model.parameters)
    assert model.name == model.function.__name__
    assert model.equation and model.source


def test_many_curves_are_computed_and_guessed_at_once(model):
    """Row by row the function and the guess are what they are for one curve alone."""
    x = x_of(model)
    truths = [truth_of(model, seed) for seed in range(4)]
    stacked = {name: np.array([[truth[name]] for truth in truths]) for name in model.parameters}
    curves = model.function(x, **stacked)
    guesses = model.guess(x, curves)
    assert curves.shape == (4, x.shape[-1])
    for row, truth in enumerate(truths):
        assert curves[row] == pytest.approx(model.function(x, **truth))
        alone = {name: value for name, (value,) in model.guess(x, curves[row : row + 1]).items()}
        assert {name: values[row] for name, values in guesses.items()} == pytest.approx(alone)


def test_a_guess_is_inside_the_bounds_and_close(model):
    """On exact data it is within a tenth of the truth, on data of no such curve still inside the bounds."""
    x, truth = x_of(model), truth_of(model, 0)
    for name, (value,) in model.guess(x, model.function(x, **truth)[None]).items():
        assert value == pytest.approx(truth[name], rel=0.1)
    y = np.random.default_rng(4).normal(1, 1, (20, x.shape[-1]))
    for name, values in model.guess(x, y).items():
        low, high = model.bounds[name]
        assert np.all((low <= values) & (values <= high))


@pytest.mark.parametrize("seed", range(3))
def test_data_give_the_parameters_back(model, seed):
    """Without noise the estimates are the truth; with 1 % of it they lie within five standard errors."""
    truth, x = truth_of(model, seed), np.repeat(x_of(model), 3, axis=-1)
    y = model.function(x, **truth)
    exact = fit(model, x, y)
    assert exact.estimates == pytest.approx(truth, rel=1e-5)
    noise = np.random.default_rng(seed).normal(0, 0.01 * y.max(), y.shape)
    found = fit(model, x, y + noise)
    for name, value in truth.items():
        assert abs(found.estimates[name] - value) < 5 * found.standard_errors[name]
        low, high = found.intervals[name]
        assert low <= found.estimates[name] <= high


def test_universal_scalability_has_its_known_peak():
    """It peaks at n = sqrt((1 - sigma) / kappa), and is Amdahl's law without coherency."""
    law, amdahl = find("universal_scalability").function, find("amdahl").function
    n = np.linspace(1, 60, 5901)
    assert n[np.argmax(law(n, 1.0, 0.1, 0.001))] == pytest.approx(np.sqrt(0.9 / 0.001), abs=0.02)
    assert law(X, 4.0, 0.1, 0.0) == pytest.approx(amdahl(X, 4.0, 0.1))


def test_hpl_has_netlibs_parallel_efficiency():
    """E = 1 / (1 + 3 beta (3P+Q) / (4 gamma N) + 3 alpha P Q ((NB+1) log2 P + P) / (2 N^2 NB gamma)); on one process
    without a network it needs gamma for each operation, and counts 9 / (4 N) more than the model."""
    order, block, rows, columns = HPL_X
    alpha, beta, gamma = 3e4, 10.0, 0.25
    law = find("hpl").function
    efficiency = law(HPL_X, alpha, beta, gamma) / law(HPL_X, 0.0, 0.0, gamma)
    messages = 3 * alpha * rows * columns * ((block + 1) * np.log2(rows) + rows)
    elements = 3 * beta * (3 * rows + columns) / (4 * gamma * order)
    expected = 1 / (1 + elements + messages / (2 * order**2 * block * gamma))
    assert efficiency == pytest.approx(expected)
    alone = law(np.array([[1000.0], [64.0], [1.0], [1.0]]), 0.0, 0.0, gamma)
    assert alone == pytest.approx([4 * (1 + 9 / 4000)])


def test_an_unknown_model_is_refused_with_the_known_ones():
    with pytest.raises(FalloffError, match="constant.*power_law.*universal_scalability"):
        find("parabola")
