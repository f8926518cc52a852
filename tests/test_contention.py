"""Contention: planted backplanes are solved, and nothing is extrapolated."""

from functools import cache

import numpy as np
import pytest
from shown import heights
from synthetic_smith import SMITH, planted, smith_campaign

from analysis.experiments import contention
from analysis.experiments.contention import TARGETS

RATES = ["3e9", "2e9", "1.5e9", "1.2e9", "1e9", "0.8e9", "0.65e9"]
PORTS = 36 * SMITH["network"]["gige"]["bandwidth"]["value"]


def campaign(rates, **chance):
    """The study of these backplanes."""
    levels = {"vary": ["none", "bandwidth=90e6", *(f"backplane={rate}" for rate in rates)]}
    return contention.analyse(smith_campaign("hpl_contention", levels, **chance))


@cache
def study():
    """The study of the planted backplanes."""
    return campaign(RATES)


@pytest.mark.parametrize("target", TARGETS)
def test_the_planted_backplane_is_solved(target):
    """The share at which the planted efficiency is the target comes back, within the stated error."""
    reached = planted("gige", 36, f"backplane={study().of_ports[target] * PORTS}")
    assert reached == pytest.approx(target, abs=study().error) and 0 < study().error < 0.02
    assert study().ideal == pytest.approx(planted("gige", 36))


def test_a_target_outside_of_the_levels_is_not_solved():
    """Nothing is extrapolated, and nothing is said."""
    few = campaign(["4e9", "3e9"])
    assert few.of_ports == {} and contention.finding(few) == ""


def test_failed_levels_are_left_out_of_the_interpolation():
    """A level that failed is bridged by its neighbours."""
    made = campaign(RATES, failed={(1, "gige", 36, "backplane=1.2e9")})
    assert made.of_ports[0.50] == pytest.approx(study().of_ports[0.50], rel=1e-3)


def test_the_figure_has_every_level():
    """A mark for each simulated backplane."""
    shown = heights(contention.figures(study())["contention"])
    assert all(np.isclose(shown, 100 * value).any() for value in study().efficiency.values)
    assert study().efficiency.size == len(RATES)
