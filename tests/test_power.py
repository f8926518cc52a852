"""Power is exact: it agrees with the noncentral t, with simulation and with what planning assumed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.inference import power
from analysis.inference.verdict import MOST_BLOCKS, decide

MARGIN = 0.05
LIMIT = -math.log(1 - MARGIN)
BLOCKS = np.array([2, 3, 4, 8, 12, 22])
SIMULATED = 20000


@pytest.mark.parametrize("sd", [0.04, 0.12, 0.5])
@pytest.mark.parametrize("fall", [0.0, 0.05, 0.13])
def test_falls_off_is_the_noncentral_t(fall, sd):
    """The quadrature gives the power of the one-sided t test in closed form."""
    shift = (math.log(1 - fall) + LIMIT) * np.sqrt(BLOCKS) / sd
    expected = stats.nct.cdf(-stats.t.isf(0.05, BLOCKS - 1), BLOCKS - 1, shift)
    np.testing.assert_allclose(power.falls_off(fall, sd, BLOCKS, MARGIN), expected, atol=1e-9)


@pytest.mark.parametrize("fall", [0.0, 0.03, 0.05])
@pytest.mark.parametrize("sd", [0.02, 0.06])
@pytest.mark.parametrize("blocks", [3, 8])
def test_power_is_what_the_verdicts_do(fall, sd, blocks):
    """In simulated campaigns both claims come as often as computed."""
    drawn = np.random.default_rng(blocks).normal(math.log(1 - fall), sd, (SIMULATED, blocks))
    kind = decide(drawn.mean(axis=1), drawn.std(axis=1, ddof=1), blocks, LIMIT).kind
    for name, claim in (("flat", power.flat), ("falls off", power.falls_off)):
        expected = float(claim(fall, sd, blocks, MARGIN))
        tolerance = 4 * math.sqrt(expected * (1 - expected) / SIMULATED) + 1e-4
        assert np.mean(kind == name) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize(
    ("blocks", "expected"), [(4, [0.96, 0.36, 0.10, 0.02]), (12, [1.0, 0.98, 0.71, 0.11])]
)
def test_orientation_for_planning(blocks, expected):
    """P(flat | no fall) at a run's sigma of 1, 2, 3 and 5 % is what campaigns were planned with.

    D holds four runs, those of the control included, so that its sd is twice a run's. The plan had taken
    the margin as 0.05 on the log scale; the verdict's margin of 5 % is 0.0513 there, a little wider.
    """
    sds = [2 * sigma for sigma in (0.01, 0.02, 0.03, 0.05)]
    planned = [float(power.flat(0.0, sd, blocks, 1 - math.exp(-0.05))) for sd in sds]
    assert planned == pytest.approx(expected, abs=0.015)
    judged = [float(power.flat(0.0, sd, blocks, MARGIN)) for sd in sds]
    assert judged == pytest.approx(expected, abs=0.035)


def test_flat_at_the_margin_is_at_most_the_level():
    """The equivalence test keeps its 5 %, and reaches them when there is little noise."""
    chances = power.flat(MARGIN, 0.04, np.arange(2, 60), MARGIN)
    assert (chances <= 0.05 + 1e-9).all() and chances[-1] == pytest.approx(0.05, abs=1e-6)


@given(st.floats(0, 0.3), st.floats(0.002, 0.5), st.integers(2, 60), st.floats(0.01, 0.2))
def test_both_are_chances_of_which_one_can_come(fall, sd, blocks, margin):
    """Neither is negative and together they are at most 1."""
    flat, falls_off = (float(claim(fall, sd, blocks, margin)) for claim in (power.flat, power.falls_off))
    assert flat >= -1e-12 and falls_off >= -1e-12 and flat + falls_off <= 1 + 1e-9


@given(st.floats(0.005, 0.2), st.floats(1.05, 4))
def test_more_scatter_is_less_power(sd, factor):
    """Of the claim that is true, with as many blocks."""
    for claim, fall in ((power.flat, 0.0), (power.falls_off, 0.13)):
        assert claim(fall, factor * sd, 12, MARGIN) <= claim(fall, sd, 12, MARGIN) + 1e-9


def test_a_single_block_decides_nothing():
    """It has no interval; the answer has the shape of the question."""
    assert power.flat(0.0, 0.01, [1, 2], MARGIN).tolist()[0] == 0.0
    assert power.falls_off(0.13, 0.01, 1, MARGIN) == 0.0


@pytest.mark.parametrize(("claim", "fall"), [(power.flat, 0.0), (power.falls_off, 0.13)])
def test_the_fewest_blocks_for_a_power(claim, fall):
    """They suffice, one fewer does not, and what no campaign reaches is None."""
    blocks = power.blocks_for(0.8, claim, fall, 0.08, MARGIN)
    assert claim(fall, 0.08, blocks, MARGIN) >= 0.8 > claim(fall, 0.08, blocks - 1, MARGIN)
    assert power.blocks_for(0.8, claim, MARGIN, 0.08, MARGIN) is None
    assert blocks < MOST_BLOCKS
