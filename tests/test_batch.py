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
from analysis.fitting.batch import refit
from analysis.fitting.block_fit import fit_blocks
from analysis.fitting.fit import fit
from analysis.models import find, names
from runners.record import FalloffError

POWER_LAW, USL = find("power_law"), find("universal_scalability")


@pytest.mark.parametrize("noise", [0.0, 0.001, 0.01])
@pytest.mark.parametrize("name", names())
def test_estimates_are_those_of_single_fits(name, noise):
    """To a hundred-thousandth of the estimate, or of its standard error; a row alone, or among others, is the same."""
    model = find(name)
    x, y = fifteen_points(model, 8, noise)
    refits = refit(model, x, y)
    assert refits.converged.all()
    assert refit(model, x, y[::-1]).estimates[::-1] == pytest.approx(refits.estimates, rel=1e-6)
    for row, estimates, sse in zip(y, refits.estimates, refits.sse):
        single = fit(model, x, row)
        expected = np.array(list(single.estimates.values()))
        sizes = np.fmax(np.abs(expected), list(single.standard_errors.values()))
        assert np.all(np.abs(estimates - expected) <= 1e-5 * sizes)
        least = np.sum(np.square(single.residuals))
        assert sse == pytest.approx(least, rel=1e-8, abs=1e-18 * np.sum(row**2))


def test_rows_on_and_off_a_bound_agree_with_single_fits():
    """Noise as large as the bend puts some rows exactly on a bound and not others; the same ones either way."""
    x, y = fifteen_points(USL, 25, 0.1)
    on_a_bound = refit(USL, x, y).estimates[:, 1:] == 0
    assert 0 < on_a_bound.any(axis=1).sum() < len(y)
    for row, flags in zip(y, on_a_bound):
        at_bounds = fit(USL, x, row).at_bounds
        assert at_bounds == tuple(np.array(["sigma", "kappa"])[flags])


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
    """With a guess that is no use, one start for all rows, or one for each."""
    lost = replace(POWER_LAW, guess=lambda x, y: dict.fromkeys("ab", np.full(len(y), np.nan)))
    x, y = fifteen_points(POWER_LAW, 5)
    expected = refit(POWER_LAW, x, y).estimates
    assert not refit(lost, x, y).converged.any()
    for start in ({"a": 3.0, "b": 0.7}, {"a": y[:, 0], "b": np.linspace(0.6, 1.2, 5)}):
        assert refit(lost, x, y, start).estimates == pytest.approx(expected, rel=1e-6)


@given(st.floats(1e-6, 1e12), st.floats(0.01, 0.2))
def test_the_unit_of_y_does_not_matter(factor, noise):
    """Estimates in the unit of y follow it, the others stay."""
    x, y = fifteen_points(USL, 3, noise)
    here, there = refit(USL, x, y).estimates, refit(USL, x, factor * y).estimates
    assert there[:, 0] == pytest.approx(factor * here[:, 0], rel=1e-6)
    assert there[:, 1:] == pytest.approx(here[:, 1:], rel=1e-4, abs=1e-8)


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
