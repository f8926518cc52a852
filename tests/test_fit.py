"""Fits: estimates, intervals, refusals, and fits over blocks."""

import json
import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from analysis.fitting.block_fit import fit_blocks
from analysis.fitting.fit import fit
from analysis.models import find, names
from runners.record import FalloffError

NODES = np.array([1.0, 2, 4, 8])
CONSTANT, POWER_LAW, USL = (find(name) for name in ("constant", "power_law", "universal_scalability"))


def noisy(y, part, seed=0):
    """y with normal noise of the given part of its values."""
    return y * (1 + np.random.default_rng(seed).normal(0, part, np.shape(y)))


def test_the_constant_is_the_mean_with_its_t_interval():
    """Estimate, standard error and interval are the textbook's."""
    y = noisy(np.full(9, 5.0), 0.1)
    found = fit(CONSTANT, np.arange(9), y)
    assert found.estimates["c"] == pytest.approx(y.mean())
    assert found.standard_errors["c"] == pytest.approx(stats.sem(y))
    assert found.intervals["c"] == pytest.approx(stats.t.interval(0.95, 8, y.mean(), stats.sem(y)))
    assert found.interval_kind == "t interval"


def test_aicc_is_that_of_a_linear_regression():
    """For a curve that is linear in its parameter, statsmodels' likelihood gives the same AICc."""
    y, n, k = noisy(np.full(9, 5.0), 0.1), 9, 2
    likelihood = sm.OLS(y, np.ones(n)).fit().llf
    expected = -2 * likelihood + 2 * k + 2 * k * (k + 1) / (n - k - 1) - n * (1 + np.log(2 * np.pi))
    assert fit(CONSTANT, np.arange(n), y).aicc == pytest.approx(expected)


def test_profile_intervals_approach_t_intervals_when_noise_is_small():
    """A curve is straight over a small neighbourhood, where both kinds of interval are the same."""
    x = np.repeat(NODES, 4)
    found = fit(POWER_LAW, x, noisy(POWER_LAW.function(x, 4.0, 0.9), 0.001))
    assert found.interval_kind == "profile likelihood"
    for name, (low, high) in found.intervals.items():
        expected = 2 * stats.t.ppf(0.975, len(x) - 2) * found.standard_errors[name]
        assert high - low == pytest.approx(expected, rel=0.02)


def test_predict_is_the_model_at_the_estimates():
    """Data minus prediction are the residuals."""
    y = noisy(USL.function(NODES, 4.0, 0.05, 0.001), 0.02)
    found = fit(USL, NODES, y)
    assert y - found.predict(NODES) == pytest.approx(np.array(found.residuals))


def test_an_interval_ends_at_a_bound():
    """Scaling better than linear puts contention and coherency on their bound, which ends their intervals."""
    x = np.repeat(NODES, 6)
    found = fit(USL, x, noisy(4 * x * (1 + 0.002 * x), 0.02))
    assert found.interval_kind == "profile likelihood"
    assert found.intervals["sigma"][0] == 0 and found.intervals["kappa"][0] == 0


def test_negative_coherency_puts_kappa_on_its_bound_and_says_so():
    """Growth of the rate per node asks for kappa below 0; the fit is then Amdahl's law, or linear."""
    x = np.repeat(NODES, 6)
    found = fit(USL, x, noisy(USL.function(x, 4.0, 0.1, -0.002), 0.001))
    amdahl = fit(find("amdahl"), x, np.add(found.residuals, found.predict(x)))
    assert found.at_bounds == ("kappa",) and found.as_json()["at_bounds"] == ["kappa"]
    assert found.estimates["kappa"] == 0.0 and amdahl.at_bounds == ()
    assert {**amdahl.estimates, "kappa": 0.0} == pytest.approx(found.estimates, rel=1e-6)


def test_a_parameter_close_to_its_bound_is_not_on_it():
    """A coherency that noise does not hide is reported, however small."""
    x = np.repeat(NODES, 6)
    found = fit(USL, x, noisy(USL.function(x, 4.0, 0.05, 1e-4), 1e-5))
    assert found.at_bounds == () and found.estimates["kappa"] == pytest.approx(1e-4, rel=0.1)


def test_perfect_data_are_exact_and_on_their_bounds():
    """Linear scaling has neither contention nor coherency, no noise, no interval and no likelihood."""
    found = fit(USL, np.repeat(NODES, 2), np.repeat(4 * NODES, 2))
    assert found.estimates == {"gamma": pytest.approx(4.0), "sigma": 0.0, "kappa": 0.0}
    assert found.at_bounds == ("sigma", "kappa") and found.interval_kind == "none: the model is exact"
    assert found.aicc is None and found.aicc_refused


def test_the_rate_of_one_node_need_not_be_measured():
    """gamma follows from 2, 4, 8 and 16 nodes."""
    x = np.array([2.0, 4, 8, 16])
    found = fit(USL, x, USL.function(x, 4.0, 0.05, 0.002))
    assert found.estimates == pytest.approx({"gamma": 4.0, "sigma": 0.05, "kappa": 0.002})


def test_parameters_that_run_away_together_are_refused():
    """A rate that falls from the first point on asks for an infinite gamma."""
    with pytest.raises(FalloffError, match="do not tell the parameters .* apart"):
        fit(USL, [2, 4, 8], [10, 4, 2])


def test_fewer_distinct_x_than_parameters_are_refused():
    """Repetition does not replace a third node count."""
    with pytest.raises(FalloffError, match="at least 3 distinct x.*have 2"):
        fit(USL, np.tile([2, 4], 10), np.tile([7, 13], 10))


def test_a_start_replaces_the_guess():
    """From a start far away, for some of the parameters, the optimum is the same."""
    x = np.repeat(NODES, 3)
    y = noisy(USL.function(x, 4.0, 0.05, 0.002), 0.01)
    far = fit(USL, x, y, start={"sigma": 0.9, "kappa": 0.5})
    assert far.estimates == pytest.approx(fit(USL, x, y).estimates, rel=1e-6)


def test_x_of_several_quantities_counts_distinct_columns():
    """Two runs are repetitions of each other when all of N, NB, P and Q are the same."""
    x = np.array([[1000, 2000, 8000, 8000, 8000], [64] * 5, [1, 1, 1, 2, 2], [4, 4, 4, 2, 2]], float)
    hpl = find("hpl")
    found = fit(hpl, x, noisy(hpl.function(x, 3e4, 10.0, 0.25), 1e-4))
    assert (found.n, found.distinct_x, found.aicc) == (5, 4, None)
    assert found.predict(x) + found.residuals == pytest.approx(hpl.function(x, 3e4, 10.0, 0.25), rel=1e-3)


@pytest.mark.parametrize(
    ("model", "repeats", "allowed"),
    [(CONSTANT, 1, True), (POWER_LAW, 2, True), (POWER_LAW, 1, False), (USL, 6, False)],
)
def test_aicc_needs_more_distinct_x_than_parameters_and_one(model, repeats, allowed):
    """Four node counts carry a power law's AICc, when repeated, and never that of three parameters."""
    x = np.tile(NODES, repeats)
    found = fit(model, x, noisy(4 * x**0.9, 0.02))
    assert (found.aicc is not None) == allowed == (not found.aicc_refused)


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([], []),
        ([1], [4]),
        ([2, 2, 2], [3, 4, 5]),
        ([1, 2, 4, 8], [4, 8, 16, 32]),
        ([1, 2, 4, 8], [0, 0, 0, 0]),
        ([1, 2, 4, 8], [4, -1, 3, 2]),
        ([1, 2, 4], [4, 7, 13]),
        ([0, 1, 2, 3], [0, 1, 2, 2.9]),
        ([-1, 1, 2, 3], [1, 1, 2, 2.9]),
        ([1, 2, 4, 8], [4, np.nan, 16, 32]),
        ([1, 2, 4, np.inf], [4, 8, 16, 32]),
        ([1, 2, 4, 8], [1e300, -1e300, 1e300, 1]),
    ],
)
def test_degenerate_data_give_a_result_or_a_refusal(name, x, y):
    """Neither a crash nor a warning, and what is not known is null in JSON."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = fit(find(name), x, y)
        except FalloffError as refusal:
            assert str(refusal)
        else:
            json.dumps(found.as_json(), allow_nan=False)


def test_points_that_are_not_finite_are_refused_by_number():
    """They are not dropped silently."""
    with pytest.raises(FalloffError, match="1 of 4 points"):
        fit(CONSTANT, NODES, [1, 2, np.nan, 4])


def test_as_many_parameters_as_points_have_no_interval():
    """The curve goes through the points, and nothing is said about its uncertainty."""
    found = fit(POWER_LAW, [1, 2], [4, 7])
    assert found.estimates["b"] == pytest.approx(np.log2(7 / 4))
    assert np.isnan(found.intervals["b"]).all() and found.as_json()["sigma"] is None


@settings(max_examples=4, deadline=None)
@given(st.floats(1e-6, 1e12))
def test_the_unit_of_y_does_not_matter(factor):
    """Rates in flop/s or Gflop/s give the same scaling exponent and a prefactor in their own unit."""
    y = noisy(4 * NODES**0.9, 0.02)
    here, there = fit(POWER_LAW, NODES, y), fit(POWER_LAW, NODES, factor * y)
    assert there.estimates["b"] == pytest.approx(here.estimates["b"], rel=1e-6)
    assert there.estimates["a"] == pytest.approx(factor * here.estimates["a"], rel=1e-6)
    assert there.intervals["b"] == pytest.approx(here.intervals["b"], rel=1e-3)


def test_blocks_are_the_unit_of_repetition():
    """The constant's interval over blocks is the t interval of the blocks' means."""
    table = noisy(np.full((6, 4), 5.0), 0.1)
    found = fit_blocks(CONSTANT, NODES, table)
    means = table.mean(axis=1)
    assert found.blocks == 6
    assert found.estimates["c"] == pytest.approx(means.mean())
    assert found.intervals["c"] == pytest.approx(stats.t.interval(0.95, 5, means.mean(), stats.sem(means)))


def test_a_band_is_wider_where_blocks_disagree():
    """Blocks that differ in their exponent agree at n = 1 and part with n."""
    table = [4 * NODES**b for b in (0.88, 0.9, 0.92)]
    mean, low, high = fit_blocks(POWER_LAW, NODES, table).band([1, 2, 8], "rate")
    assert np.all(low <= mean) and np.all(mean <= high)
    assert (high - low)[0] < 1e-6 < (high - low)[1] < (high - low)[2]


def test_an_incomplete_block_is_left_out_and_counted():
    """A missing point removes its block and no other."""
    table = noisy(np.tile(4 * NODES, (5, 1)), 0.02)
    table[2, 3] = np.nan
    found = fit_blocks(POWER_LAW, NODES, table)
    whole = fit_blocks(POWER_LAW, NODES, np.delete(table, 2, axis=0))
    assert (found.blocks, found.left_out) == (4, 1)
    assert found.estimates == whole.estimates


def test_no_complete_block_is_refused():
    """There is nothing to fit, and it says so."""
    with pytest.raises(FalloffError, match="none of 2 blocks"):
        fit_blocks(CONSTANT, NODES, np.full((2, 4), np.nan))


def test_a_single_block_has_estimates_but_no_interval():
    """One block cannot tell how much blocks differ."""
    found = fit_blocks(POWER_LAW, NODES, [4 * NODES**0.9])
    assert found.estimates["b"] == pytest.approx(0.9)
    assert np.isnan(found.intervals["b"]).all()
