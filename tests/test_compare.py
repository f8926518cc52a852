"""Comparing models: order, refusals, the held-out configuration and intervals from whole blocks."""

import warnings

import numpy as np
import pytest
from curves import GRIDS, NODES, TRUTHS
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from analysis.fitting.compare import compare
from analysis.models import find
from analysis.wire import tcp_payload

CURVES = [
    find(name) for name in ("constant", "amdahl", "power_law", "universal_scalability", "segmented")
]
USL, POWER_LAW, CONSTANT = CURVES[3], CURVES[2], CURVES[0]
COST = find("cpu_cost")
PAYLOADS = tcp_payload(np.array([576.0, 1500, 3000, 6000, 9000]))


def table(model, blocks, x=NODES, effect=0.03, noise=0.01, seed=0, truth=None):
    """Blocks of a model's own curve, each with an effect common to its points, on the log scale."""
    random = np.random.default_rng(seed)
    errors = random.normal(0, effect, (blocks, 1)) + random.normal(0, noise, (blocks, x.shape[-1]))
    return model.function(x, *(truth or TRUTHS[model.name])) * np.exp(errors)


def costs(blocks, seed=0):
    """CPU-seconds per byte over PAYLOADS: billionths, where absolute thresholds of a solver would bite."""
    return table(COST, blocks, PAYLOADS, 0, 0.03, seed, truth=(0.3e-9, 2e-6))


def test_the_model_that_made_the_data_is_first():
    """The best AICc comes first, and predicts the largest configuration best."""
    found = compare(CURVES, NODES, table(USL, 8, effect=0.01))
    assert found[0].model is USL
    ranked = [comparison.aicc for comparison in found if comparison.aicc is not None]
    assert len(ranked) >= 4 and ranked == sorted(ranked)
    errors = {c.model.name: abs(c.held_out.error) for c in found if c.held_out}
    assert min(errors, key=errors.get) == "universal_scalability"
    assert errors["constant"] > 0.5


def test_what_the_data_cannot_carry_is_last_with_its_reason():
    """Three node counts: nothing is estimated of a breakpoint, and no AICc where it would mean nothing."""
    found = compare(CURVES, NODES[:3], table(POWER_LAW, 5, NODES[:3]))
    assert found[-1].model.name == "segmented"
    assert found[-1].refused and found[-1].pooled is None and not found[-1].intervals
    assert found[0].model is CONSTANT and found[0].aicc is not None
    (law,) = (comparison for comparison in found if comparison.model is USL)
    assert law.aicc is None and "3 distinct x" in law.pooled.aicc_refused
    assert law.held_out is None and "at least 3 distinct x" in law.held_out_refused


def test_error_and_intervals_are_those_over_the_blocks():
    """Of the constant: the smaller configurations' mean against the largest, geometric over the blocks; t intervals.
    An incomplete block counts for the pooled fit only."""
    values = table(CONSTANT, 7)
    values[6, 1] = np.nan
    (found,) = compare([CONSTANT], NODES, values)
    whole = values[:6]
    factors = np.log(whole[:, :-1].mean(axis=1) / whole[:, -1])
    assert found.pooled.n == 34 and found.held_out.blocks == 6
    assert found.held_out.error == pytest.approx(np.expm1(factors.mean()))
    expected = np.expm1(stats.t.interval(0.95, 5, factors.mean(), stats.sem(factors)))
    assert found.held_out.interval == pytest.approx(expected)
    means = whole.mean(axis=1)
    interval = stats.t.interval(0.95, 5, means.mean(), stats.sem(means))
    assert found.intervals["c"] == pytest.approx(interval)
    assert found.interval_kind == "t interval over 6 blocks"
    values[:, 1] = np.nan
    (none,) = compare([CONSTANT], NODES, values)
    assert none.pooled.n == 28 and not none.intervals
    assert "no block is complete" in none.interval_kind == none.held_out_refused


def test_intervals_cover_the_truth_and_end_at_a_bound():
    """In about 95 % of campaigns with block effects they hold the law; without coherency its interval begins at 0."""
    campaigns, hits = 100, []
    for seed in range(campaigns):
        (found,) = compare([POWER_LAW], NODES, table(POWER_LAW, 8, seed=seed))
        truth = dict(zip("ab", TRUTHS["power_law"]))
        hits.append([low <= truth[name] <= high for name, (low, high) in found.intervals.items()])
    assert np.all(np.abs(np.mean(hits, axis=0) - 0.95) <= 3 * np.sqrt(0.95 * 0.05 / campaigns))
    (linear,) = compare([USL], NODES, table(USL, 8, truth=(4.0, 0.05, 0.0)))
    assert linear.intervals["kappa"][0] == 0 < linear.intervals["kappa"][1]


def test_a_model_of_several_quantities_is_compared_too():
    """HPL's own model takes N, NB, P and Q of each point."""
    hpl = find("hpl")
    (found,) = compare([hpl], GRIDS, table(hpl, 6, GRIDS))
    assert found.aicc is not None and abs(found.held_out.error) < 0.1
    assert all(low < high for low, high in found.intervals.values())


@pytest.mark.parametrize(
    "values", [np.full((3, 5), np.nan), np.zeros((4, 5)), np.tile(2 * NODES, (4, 1)), [NODES]]
)
def test_degenerate_data_give_a_result_or_a_refusal(values):
    """Neither a crash nor a warning: nothing known, nothing measured, no noise, a single block."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for comparison in compare(CURVES, NODES, values):
            assert comparison.refused or comparison.interval_kind


@pytest.mark.parametrize("left_out", range(len(PAYLOADS)))
def test_an_mtu_that_was_left_out_is_predicted(left_out):
    """Whichever it is, the 95 % interval of the error holds 0 in at least 17 of 20 campaigns."""
    order = [*(index for index in range(len(PAYLOADS)) if index != left_out), left_out]
    hits = 0
    for seed in range(20):
        (found,) = compare([COST], PAYLOADS[order], costs(8, seed)[:, order])
        low, high = found.held_out.interval
        hits += low <= 0 <= high
        assert abs(found.held_out.error) < 0.1
    assert hits >= 17


def test_a_cost_of_another_shape_is_not_predicted():
    """With a step above one page the interval of the error at 3000 bytes excludes 0."""
    stepped = np.where(PAYLOADS > 4096, 1.3, 1) * costs(8)
    order = [0, 1, 3, 4, 2]
    (found,) = compare([COST], PAYLOADS[order], stepped[:, order])
    assert found.held_out.interval[0] > 0


@given(st.lists(st.floats(-5, 5), min_size=5, max_size=5))
def test_the_guessed_line_is_the_non_negative_solution(y):
    """It has the sum of squares of scipy's non-negative least squares, whatever the data."""
    y = np.array(y)
    _, norm = optimize.nnls(np.column_stack([np.ones(5), 1000 / PAYLOADS]), y)
    guess = {name: value[0] for name, value in COST.guess(PAYLOADS, y[None]).items()}
    distance = np.linalg.norm(y - COST.function(PAYLOADS, **guess))
    assert distance == pytest.approx(norm, rel=1e-6, abs=1e-8)
