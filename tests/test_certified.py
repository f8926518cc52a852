"""The fit gives certified and published values, from the starts that come with them."""

import re

import numpy as np
import pytest
from scipy import stats

from analysis.fitting.fit import fit
from analysis.models import find
from tests import nist

SIX_DIGITS, FIVE_DIGITS = 5e-7, 5e-6


@pytest.fixture(params=nist.FUNCTIONS)
def data_set(request):
    """Each of NIST's data sets in turn."""
    return nist.read(request.param)


def test_a_data_set_is_as_certified(data_set):
    """At the certified estimates the data have the certified residual standard deviation."""
    residuals = data_set.y - data_set.model.function(data_set.x, **data_set.estimates)
    freedom = len(residuals) - len(data_set.estimates)
    assert np.sqrt(np.sum(residuals**2) / freedom) == pytest.approx(data_set.sigma, rel=1e-9)


@pytest.mark.parametrize("start", [0, 1], ids=["start 1", "start 2"])
def test_nist_certified_values(data_set, start):
    """Six digits of the estimates, five of their deviations, nine of the residuals', from each start."""
    found = fit(data_set.model, data_set.x, data_set.y, data_set.starts[start], profile=False)
    assert found.estimates == pytest.approx(data_set.estimates, rel=SIX_DIGITS)
    assert found.standard_errors == pytest.approx(data_set.deviations, rel=FIVE_DIGITS)
    assert found.sigma == pytest.approx(data_set.sigma, rel=1e-9)


def published(name):
    """A fixture's x and y, and from its comments each printed number: name -> list of (value, last digit)."""
    lines = (nist.FOLDER / f"{name}.csv").read_text().splitlines()
    printed = {
        match[1]: [(float(text), 10.0 ** -len(text.partition(".")[2])) for text in match[2].split(" +- ")]
        for match in (re.fullmatch(r"# ([a-z ]+) = ([\d. +-]+)", line) for line in lines)
        if match
    }
    return *np.loadtxt([line for line in lines if line[0].isdigit()], delimiter=",").T, printed


@pytest.mark.parametrize("name", ["specsdm91", "raytracer"])
def test_universal_scalability_as_the_r_package_usl_prints_it(name):
    """Coefficients, standard errors and residual error, up to two units of the last printed digit."""
    n, rate, printed = published(name)
    found = fit(find("universal_scalability"), n, rate)
    assert set(printed) == {*found.estimates, "residual standard error"}
    for parameter, value in found.estimates.items():
        for mine, (theirs, digit) in zip((value, found.standard_errors[parameter]), printed[parameter]):
            assert mine == pytest.approx(theirs, abs=2 * digit)
    theirs, digit = printed["residual standard error"][0]
    assert found.sigma == pytest.approx(theirs, abs=digit)
    assert found.at_bounds == (("kappa",) if printed["kappa"][0][0] == 0 else ())


def test_the_constant_is_the_closed_form():
    """Mean, its standard error and t interval to the last digits."""
    y = np.random.default_rng(1).normal(5, 0.3, 12)
    found = fit(find("constant"), np.arange(12), y)
    assert found.estimates["c"] == pytest.approx(np.mean(y), rel=1e-13)
    assert found.standard_errors["c"] == pytest.approx(stats.sem(y), rel=1e-9)
    interval = stats.t.interval(0.95, 11, np.mean(y), stats.sem(y))
    assert found.intervals["c"] == pytest.approx(interval, rel=1e-9)


def test_a_power_law_through_two_x_is_the_closed_form():
    """With two distinct x it goes through both means; errors follow from theirs by the delta method."""
    low, high = np.random.default_rng(2).normal([[4.0], [7.0]], 0.1, (2, 6))
    found = fit(find("power_law"), np.repeat([1.0, 2.0], 6), np.concatenate([low, high]))
    sigma = np.sqrt((np.sum((low - low.mean()) ** 2) + np.sum((high - high.mean()) ** 2)) / 10)
    relative = sigma / np.sqrt(6) / np.array([low.mean(), high.mean()])
    assert found.estimates["a"] == pytest.approx(low.mean(), rel=1e-12)
    assert found.estimates["b"] == pytest.approx(np.log2(high.mean() / low.mean()), rel=1e-12)
    assert found.standard_errors["a"] == pytest.approx(sigma / np.sqrt(6), rel=1e-9)
    assert found.standard_errors["b"] == pytest.approx(np.hypot(*relative) / np.log(2), rel=1e-9)
