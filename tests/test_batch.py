"""Refits of many rows at once: the same solutions as one at a time, and much sooner."""

import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from curves import NODES, TRUTHS, fifteen_points, plain_loop
from hypothesis import given
from hypothesis import strategies as st

from analysis.fitting import batch
from analysis.fitting.batch import jacobian, refit
from analysis.fitting.block_fit import fit_blocks
from analysis.fitting.fit import fit
from analysis.models import find, names
from runners.record import FalloffError

POWER_LAW, USL = find("power_law"), find("universal_scalability")


@pytest.fixture(params=names())
def model(request):
    """Each model of the folder in turn."""
    return find(request.param)


@pytest.mark.parametrize("noise", [0.0, 0.001, 0.01])
def test_estimates_are_those_of_single_fits(model, noise):
    """To a millionth of the estimate, or of its standard error where the estimate is smaller."""
    x, y = fifteen_points(model, 12, noise)
    refits = refit(model, x, y)
    assert refits.converged.all()
    for row, found, sse in zip(y, refits.estimates, refits.sse):
        single = fit(model, x, row, profile=False)
        expected = np.array(list(single.estimates.values()))
        sizes = np.fmax(np.abs(expected), list(single.standard_errors.values()))
        assert np.all(np.abs(found - expected) <= 1e-6 * sizes), (found-expected)/sizes
        assert sse == pytest.approx(np.sum(np.square(single.residuals)), rel=1e-9, abs=1e-18 * np.sum(row**2))


def test_a_parameter_is_exactly_on_its_bound():
    """Scaling better than linear: no contention, no coherency, and gamma is the slope through the origin."""
    y = 4 * NODES * (1 + 0.002 * NODES) * (1 + np.random.default_rng(0).normal(0, 0.001, (20, 5)))
    refits = refit(USL, NODES, y)
    assert refits.converged.all() and np.all(refits.estimates[:, 1:] == 0)
    assert refits.estimates[:, 0] == pytest.approx(y @ NODES / (NODES @ NODES), rel=1e-9)


def test_rows_on_and_off_a_bound_agree_with_single_fits():
    """Noise as large as the bend puts some rows on a bound and not others; the same ones either way."""
    x, y = fifteen_points(USL, 25, 0.1)
    on_a_bound = refit(USL, x, y).estimates[:, 1:] == 0
    assert 0 < on_a_bound.any(axis=1).sum() < len(y)
    for row, flags in zip(y, on_a_bound):
        assert fit(USL, x, row, profile=False).at_bounds == tuple(np.array(["sigma", "kappa"])[flags])


def test_rows_do_not_depend_on_each_other(model):
    """A row alone, or among others in another order, has the same solution."""
    x, y = fifteen_points(model, 8)
    together = refit(model, x, y[::-1]).estimates[::-1]
    alone = np.vstack([refit(model, x, row[None]).estimates for row in y])
    assert together == pytest.approx(alone, rel=1e-6)


def test_a_row_that_cannot_be_fitted_is_nan_and_alone():
    """A missing point, or one at which the curve cannot be computed, costs its own row only."""
    y = np.array([4 * NODES**0.9, np.full(5, np.nan), 2 * NODES**0.8])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refits = refit(POWER_LAW, NODES, y)
        nowhere = refit(POWER_LAW, np.array([0.0, 1, 2]), [[9.0, 4, 2]], start={"b": -1.0})
    assert refits.converged.tolist() == [True, False, True]
    assert np.isnan(refits.estimates[1]).all() and np.isnan(refits.sse[1])
    assert refits.estimates[[0, 2], 1] == pytest.approx([0.9, 0.8])
    assert not nowhere.converged[0] and np.isnan(nowhere.estimates).all()


def test_blocks_that_do_not_converge_are_refused_by_number(monkeypatch):
    """The fit over blocks does not go on without them."""
    monkeypatch.setattr(batch, "ITERATIONS", 1)
    x, y = fifteen_points(USL, 3)
    with pytest.raises(FalloffError, match="did not converge in 3 of 3 blocks"):
        fit_blocks(USL, x, y)


def test_start_replaces_the_guess():
    """With a guess that is no use, the fX"""
    lost = replace(POWER_LAW, guess=lambda x, y: {"a": np.full(len(y), np.nan), "b": np.full(len(y), np.nan)})
    x, y = fifteen_points(POWER_LAW, 5)
    expected = refit(POWER_LAW, x, y).estimates
    assert not refit(lost, x, y).converged.any()
    for start in ({"a": 3.0, "b": 0.7}, {"a": y[:, 0], "b": np.linspace(0.6, 1.2, 5)}):
        assert refit(lost, x, y, start).estimates == pytest.approx(expected, rel=1e-7)


def test_the_jacobian_is_the_derivative():
    """Of a x^b by a and by b; and of the scalability law, contention and coherency being on their bound."""
    a, b = 4.0, 0.9
    slopes = jacobian(POWER_LAW, NODES, np.array([[a, b]]))[:, 0]
    assert slopes == pytest.approx(np.array([NODES**b, a * NODES**b * np.log(NODES)]), rel=1e-8)
    slopes = jacobian(USL, NODES, np.array([[4.0, 0.0, 0.0]]))[:, 0]
    expected = [NODES, -4 * NODES * (NODES - 1), -4 * NODES**2 * (NODES - 1)]
    assert slopes == pytest.approx(np.array(expected), rel=1e-5, abs=1e-12)


@given(st.floats(1e-6, 1e12), st.floats(0.01, 0.2))
def test_the_unit_of_y_does_not_matter(factor, noise):
    """Estimates in the unit of y follow it, the others stay."""
    x, y = fifteen_points(USL, 3, noise)
    here, there = refit(USL, x, y).estimates, refit(USL, x, factor * y).estimates
    assert there[:, 0] == pytest.approx(factor * here[:, 0], rel=1e-7)
    assert there[:, 1:] == pytest.approx(here[:, 1:], rel=1e-4, abs=1e-9)


def test_many_fits_are_much_faster_than_a_loop():
    """300 fits of every model take less than a tenth of a plain lmfit loop's processor time."""
    together = loop = 0.0
    for model in map(find, TRUTHS):
        x, y = fifteen_points(model, 300)
        begin = time.process_time()
        refit(model, x, y)
        together += time.process_time() - begin
        begin = time.process_time()
        plain_loop(model, x, y[:10])
        loop += 30 * (time.process_time() - begin)
    assert loop > 10 * together
