"""Comparing models: order, refusals, the held-out configuration and intervals from whole blocks."""

import warnings

import numpy as np
import pytest
from curves import GRIDS, NODES, TRUTHS
from scipy import stats

from analysis.fitting.compare import compare
from analysis.fitting.compare import block_intervals
from analysis.models import find

CURVES = [find(name) for name in ("constant", "amdahl", "power_law", "universal_scalability", "segmented")]
USL, POWER_LAW, CONSTANT = find("universal_scalability"), find("power_law"), find("constant")


def table(model, blocks, x=NODES, effect=0.03, noise=0.01, seed=0, truth=None):
    """Blocks of a model's own curve, each with an effect common to its points, on the log scale."""
    random = np.random.default_rng(seed)
    errors = random.normal(0, effect, (blocks, 1)) + random.normal(0, noise, (blocks, x.shape[-1]))
    return model.function(x, *(truth or TRUTHS[model.name])) * np.exp(errors)


def by_name(comparisons):
    """The comparisons, by the name of their model."""
    return {comparison.model.name: comparison for comparison in comparisons}


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
    assert [comparison.model.name for comparison in found][-1] == "segmented"
    assert found[-1].refused and found[-1].pooled is None and not found[-1].intervals
    assert found[0].model is CONSTANT and found[0].aicc is not None
    law = by_name(found)["universal_scalability"]
    assert law.aicc is None and "3 distinct x" in law.pooled.aicc_refused
    assert law.held_out is None and "at least 3 distinct x" in law.held_out_refused


def test_the_held_out_error_is_that_of_each_block():
    """For the constant: the smaller configurations' mean against the largest, geometric over the blocks, and its
    t interval."""
    values = table(USL, 6)
    (found,) = compare([CONSTANT], NODES, values)
    factors = np.log(values[:, :-1].mean(axis=1) / values[:, -1])
    assert found.held_out.error == pytest.approx(np.expm1(factors.mean()))
    expected = np.expm1(stats.t.interval(0.95, 5, factors.mean(), stats.sem(factors)))
    assert found.held_out.interval == pytest.approx(expected)
    assert found.held_out.blocks == 6


def test_an_incomplete_block_counts_for_the_pooled_fit_only():
    """Its known points are used, its curve is not."""
    values = table(POWER_LAW, 6)
    values[2, 1] = np.nan
    (found,) = compare([POWER_LAW], NODES, values)
    assert found.pooled.n == 29 and found.held_out.blocks == 5 and "5 blocks" in found.interval_kind
    values[:, 1] = np.nan
    (found,) = compare([POWER_LAW], NODES, values)
    assert found.pooled.n == 24 and not found.intervals
    assert "no block is complete" in found.interval_kind and "no block is complete" in found.held_out_refused


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


def test_the_bootstrap_t_covers_the_truth():
    """In about 95 % of campaigns with block effects, the intervals hold the law that made them."""
    campaigns, truth = 200, TRUTHS["power_law"]
    hits = []
    for seed in range(campaigns):
        values = table(POWER_LAW, 8, seed=seed)
        intervals, kind = block_intervals(POWER_LAW, NODES, values, resamples=399)
        hits.append([low <= value <= high for value, (low, high) in zip(truth, intervals.values())])
    assert kind == "bootstrap-t, 399 resamples of 8 blocks"
    assert np.all(np.abs(np.mean(hits, axis=0) - 0.95) <= 3 * np.sqrt(0.95 * 0.05 / campaigns))


def test_blocks_are_drawn_whole():
    """An effect common to a block's points widens the prefactor's interval and leaves the exponent's."""
    alone, _ = block_intervals(POWER_LAW, NODES, table(POWER_LAW, 8, effect=0.0))
    common, _ = block_intervals(POWER_LAW, NODES, table(POWER_LAW, 8, effect=0.1))
    widths = [{name: high - low for name, (low, high) in found.items()} for found in (alone, common)]
    assert widths[1]["a"] > 2 * widths[0]["a"]
    assert widths[1]["b"] < 2 * widths[0]["b"]


def test_the_same_seed_gives_the_same_intervals():
    """A report is the same when it is built again; another seed differs a little."""
    values = table(USL, 8)
    first, again, other = (block_intervals(USL, NODES, values, seed=seed)[0] for seed in (1, 1, 2))
    assert first == again != other
    for name, (low, high) in first.items():
        assert other[name] == pytest.approx((low, high), abs=0.2 * (high - low))


def test_few_blocks_have_t_intervals():
    """Of the constant, the textbook's interval over the blocks' means; of one block there is none."""
    values = table(CONSTANT, 3)
    intervals, kind = block_intervals(CONSTANT, NODES, values)
    means = values.mean(axis=1)
    assert kind == "t interval over 3 blocks"
    assert intervals["c"] == pytest.approx(stats.t.interval(0.95, 2, means.mean(), stats.sem(means)))
    alone, kind = block_intervals(CONSTANT, NODES, values[:1])
    assert np.isnan(alone["c"]).all() and "single block" in kind


def test_intervals_end_at_a_bound():
    """Without coherency its interval begins at 0; far beyond the bound, the parameter is held on it."""
    linear, _ = block_intervals(USL, NODES, table(USL, 8, truth=(4.0, 0.05, 0.0)))
    assert linear["kappa"][0] == 0 < linear["kappa"][1]
    rising, _ = block_intervals(USL, NODES, 4 * NODES**1.2 * np.exp(np.linspace(-0.05, 0.05, 8))[:, None])
    assert rising["sigma"] == rising["kappa"] == (0.0, 0.0)
    slope = 4 * (NODES**1.2 @ NODES) / (NODES @ NODES)
    assert rising["gamma"][0] < slope < rising["gamma"][1]
