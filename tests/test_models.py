"""Every model in the folder describes itself and is recovered from data that it made."""

import inspect

import numpy as np
import pytest

from analysis.fit import fit
from analysis.models import find, names
from runners.record import FalloffError

X = np.array([1.0, 2, 3, 4, 6, 8, 12, 16])


@pytest.fixture(params=names())
def model(request):
    """Each model of the folder in turn."""
    return find(request.param)


def truth_of(model, seed):
    """Parameters inside the model's bounds, of the order of one and smaller."""
    random = np.random.default_rng(seed)
    return {
        name: random.uniform(0.02, 0.2) if np.isfinite(low) else random.uniform(0.5, 2)
        for name, (low, _) in model.bounds.items()
    }


def test_a_model_describes_itself(model):
    """Bounds and guess name the parameters of the signature; equation and source are there."""
    assert model.parameters == tuple(inspect.signature(model.function).parameters)[1:]
    assert set(model.bounds) == set(model.guess(X, X)) == set(model.parameters)
    assert model.name == model.function.__name__
    assert model.equation and model.source


@pytest.mark.parametrize("seed", range(3))
def test_exact_data_give_the_parameters_back(model, seed):
    """Without noise the estimates are the truth."""
    truth = truth_of(model, seed)
    found = fit(model, X, model.function(X, **truth))
    assert found.estimates == pytest.approx(truth, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_noisy_data_give_the_parameters_back(model, seed):
    """With 1 % noise the estimates lie within five standard errors of the truth."""
    truth = truth_of(model, seed)
    x = np.repeat(X, 3)
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


def test_an_unknown_model_is_refused_with_the_known_ones():
    """The message lists what there is."""
    with pytest.raises(FalloffError, match="constant.*power_law.*universal_scalability"):
        find("parabola")
