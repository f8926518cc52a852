"""Every model in the folder describes itself and is recovered from data that it made."""

import inspect

import numpy as np
import pytest

from analysis.fitting.fit import fit
from analysis.models import find, names
from runners.record import FalloffError

X = np.array([1.0, 2, 3, 4, 6, 8, 12, 16])
HPL_X = np.array(
    [
        (order, block, rows, columns)
        for order in (1000, 2000, 4000, 8000)
        for block in (64, 128)
        for rows, columns in ((1, 1), (1, 4), (2, 2), (4, 4))
    ],
    float,
).T


@pytest.fixture(params=names())
def model(request):
    """Each model of the folder in turn."""
    return find(request.param)


def x_of(model):
    """Points at which the model can be told from data: node counts, or HPL's own four quantities."""
    return HPL_X if model.name == "hpl" else X


def truth_of(model, seed):
    """Parameters inside the model's bounds, of a size at which each of them matters."""
    random = np.random.default_rng(seed)
    if model.name == "hpl":  # ns, for rates in Gflop/s
        ranges = {"alpha": (2e4, 5e4), "beta": (5, 15), "gamma": (0.2, 0.3)}
    elif model.name == "segmented":
        ranges = {"c": (0.5, 2), "n0": (2.5, 7), "s": (0.1, 0.3)}
    elif model.name == "bandwidth_delay":  # knees between 2.5 and 7
        ranges = {"limit": (0.8, 1.2), "rtt": (25, 45)}
    else:
        ranges = {
            name: (0.5, 2) if name == "gamma" or np.isinf(low) else (0.02, 0.2)
            for name, (low, _) in model.bounds.items()
        }
    return {name: random.uniform(*ends) for name, ends in ranges.items()}


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
        alone = model.guess(x, curves[row : row + 1])
        assert {name: values[row] for name, values in guesses.items()} == pytest.approx(
            {name: value for name, (value,) in alone.items()}
        )


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
def test_exact_data_give_the_parameters_back(model, seed):
    """Without noise the estimates are the truth."""
    truth = truth_of(model, seed)
    x = x_of(model)
    found = fit(model, x, model.function(x, **truth))
    assert found.estimates == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_noisy_data_give_the_parameters_back(model, seed):
    """With 1 % noise the estimates lie within five standard errors of the truth."""
    truth = truth_of(model, seed)
    x = np.repeat(x_of(model), 3, axis=-1)
    y = model.function(x, **truth)
    found = fit(model, x, y + np.random.default_rng(seed).normal(0, 0.01 * y.max(), y.shape))
    for name, value in truth.items():
        assert abs(found.estimates[name] - value) < 5 * found.standard_errors[name]
        low, high = found.intervals[name]
        assert low < found.estimates[name] < high or found.estimates[name] in model.bounds[name]


def test_universal_scalability_has_its_known_peak():
    """Gunther's law begins at gamma and peaks at n = sqrt((1 - sigma) / kappa)."""
    law = find("universal_scalability").function
    n = np.linspace(1, 60, 5901)
    assert law(1.0, 4.0, 0.1, 0.001) == 4.0
    assert n[np.argmax(law(n, 1.0, 0.1, 0.001))] == pytest.approx(np.sqrt(0.9 / 0.001), abs=0.01)


def test_amdahl_is_universal_scalability_without_coherency():
    """The two laws differ in kappa alone."""
    amdahl, scalability = find("amdahl").function, find("universal_scalability").function
    assert amdahl(X, 4.0, 0.1) == pytest.approx(scalability(X, 4.0, 0.1, 0.0))


def test_hpl_on_one_process_computes_at_its_rate():
    """Without a network HPL needs gamma for each operation, and counts 9 / (4 N) more than the model."""
    order = 1000.0
    rate = find("hpl").function(np.array([[order], [64.0], [1.0], [1.0]]), 0.0, 0.0, 0.25)
    assert rate == pytest.approx([4 * (1 + 9 / (4 * order))])


def test_hpl_has_netlibs_parallel_efficiency():
    """E = 1 / (1 + 3 beta (3P+Q) / (4 gamma N) + 3 alpha P Q ((NB+1) log2 P + P) / (2 N^2 NB gamma))."""
    order, block, rows, columns = HPL_X
    alpha, beta, gamma = 3e4, 10.0, 0.25
    law = find("hpl").function
    efficiency = law(HPL_X, alpha, beta, gamma) / law(HPL_X, 0.0, 0.0, gamma)
    messages = 3 * alpha * rows * columns * ((block + 1) * np.log2(rows) + rows)
    expected = 1 / (
        1 + 3 * beta * (3 * rows + columns) / (4 * gamma * order) + messages / (2 * order**2 * block * gamma)
    )
    assert efficiency == pytest.approx(expected)


def test_hpl_needs_its_four_quantities():
    """Node counts alone do not say how HPL was run."""
    with pytest.raises(FalloffError, match="four rows: N, NB, P and Q"):
        fit(find("hpl"), X, X)


def test_an_unknown_model_is_refused_with_the_known_ones():
    """The message lists what there is."""
    with pytest.raises(FalloffError, match="constant.*power_law.*universal_scalability"):
        find("parabola")
