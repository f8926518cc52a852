"""Verdicts on planted falls, their error rates, and what must never change them."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from statsmodels.stats.weightstats import DescrStatsW
from synthetic import campaign

from analysis.contrasts import contrasts, differences, log_ratios
from analysis.derive import points
from analysis.inference.verdict import (
    decide,
    half_width,
    judge_agreement,
    judge_control,
    judge_fall,
    prediction_interval,
)

MARGIN = 0.05
LIMIT = -math.log(1 - MARGIN)
CAMPAIGNS = 400
# Three standard errors of a rate of 5 % that is estimated from so many campaigns.
MONTE_CARLO = 3 * math.sqrt(0.05 * 0.95 / CAMPAIGNS)
FOUR_BLOCKS = points(campaign(blocks=4))

samples = st.lists(st.floats(-0.3, 0.3), min_size=2, max_size=12)


def verdicts_at(fall, blocks=6, sd=0.02):
    """The verdicts of seeded campaigns whose blocks' D is normal around a planted fall."""
    random = np.random.default_rng(2)
    drawn = random.normal(math.log(1 - fall), sd, (CAMPAIGNS, blocks))
    return [judge_fall(values, MARGIN, "synthetic") for values in drawn]


def primary(**planted):
    """The primary contrast of a synthetic campaign."""
    return contrasts(points(campaign(**planted)))[0]


@pytest.mark.parametrize("seed", range(3))
def test_a_planted_fall_is_found(seed):
    """13 % on GigE: the primary contrast falls off, 10GE stays flat against the control."""
    gige, gige_alone, ten_gige_alone = contrasts(
        points(campaign(falls={"gige": 0.13}, noise=0.015, seed=seed))
    )
    assert [(c.network, c.reference) for c in (gige, gige_alone, ten_gige_alone)] == [
        ("gige", "10gige"),
        ("gige", "unshaped"),
        ("10gige", "unshaped"),
    ]
    assert gige.primary and gige.verdict.kind == gige_alone.verdict.kind == "falls off"
    low, high = gige.verdict.interval_95
    assert low < gige.verdict.fall < high and gige.verdict.fall == pytest.approx(0.13, abs=0.03)
    assert ten_gige_alone.verdict.kind == "flat"
    assert gige.control.kind == "holds" and gige.control.ratio == pytest.approx(1, abs=0.03)
    assert gige.verdict.evidence == "emulated"


def test_without_a_fall_the_verdict_is_flat():
    """Nothing planted: flat, and the smallest margin for that is below the campaign's."""
    verdict = primary(falls={}, noise=0.01).verdict
    assert verdict.kind == "flat" and verdict.flat_margin < MARGIN


def test_flat_at_the_margin_is_rare():
    """A fall, or a rise, of exactly the margin is called flat in at most 5 % of campaigns."""
    for fall in (MARGIN, -MARGIN / (1 - MARGIN)):
        flat = np.mean([verdict.kind == "flat" for verdict in verdicts_at(fall)])
        assert flat <= 0.05 + MONTE_CARLO


def test_falls_off_at_the_margin_is_rare_and_without_a_fall_rarer():
    """Falls off claims a fall beyond the margin; without any fall it hardly ever appears."""
    assert np.mean([verdict.kind == "falls off" for verdict in verdicts_at(MARGIN)]) <= 0.05 + MONTE_CARLO
    assert np.mean([verdict.kind == "falls off" for verdict in verdicts_at(0.0)]) <= 0.01


def test_intervals_cover_the_planted_fall():
    """The 95 % and 90 % intervals of the fall hold it in 95 % and 90 % of campaigns."""
    verdicts = verdicts_at(0.13)
    for name, level in (("interval_95", 0.95), ("interval_90", 0.90)):
        covered = np.mean([getattr(v, name)[0] <= 0.13 <= getattr(v, name)[1] for v in verdicts])
        assert abs(covered - level) <= 3 * math.sqrt(level * (1 - level) / CAMPAIGNS)


def test_power_is_what_a_campaign_was_planned_with():
    """Falls and plateaus of the expected size are decided in most campaigns of six blocks at 2 %."""
    assert np.mean([verdict.kind == "falls off" for verdict in verdicts_at(0.13)]) > 0.95
    assert np.mean([verdict.kind == "flat" for verdict in verdicts_at(0.0)]) > 0.85


@given(samples)
def test_flat_is_two_one_sided_tests(values):
    """The verdict is statsmodels' equivalence test at 5 %."""
    assume(np.std(values) > 1e-6)
    p, _, _ = DescrStatsW(values).ttost_mean(-LIMIT, LIMIT)
    assume(abs(p - 0.05) > 1e-9)
    assert (judge_fall(values, MARGIN, "synthetic").kind == "flat") == (p < 0.05)


@given(samples)
def test_p_is_of_the_nearer_claim(values):
    """It is statsmodels' smaller p of the two claims, and at most 5 % exactly when one is made."""
    assume(np.std(values) > 1e-6)
    described = DescrStatsW(values)
    flat, _, _ = described.ttost_mean(-LIMIT, LIMIT)
    _, falls_off, _ = described.ttest_mean(-LIMIT, alternative="smaller")
    verdict = judge_fall(values, MARGIN, "synthetic")
    assert verdict.p == pytest.approx(min(flat, falls_off), rel=1e-6)
    assert (verdict.p <= 0.05) == (verdict.kind != "undecided") and verdict.p_holm is None


@given(samples)
def test_the_verdict_is_what_its_intervals_say(values):
    """Flat inside the margin, falling off when the lower end of the 90 % interval exceeds it."""
    assume(np.std(values) > 1e-6)
    verdict = judge_fall(values, MARGIN, "synthetic")
    low, high = verdict.interval_90
    assume(min(abs(low - MARGIN), abs(high - MARGIN), abs(low - 1 + 1 / (1 - MARGIN))) > 1e-9)
    flat = 1 - 1 / (1 - MARGIN) <= low and high <= MARGIN
    assert verdict.kind == ("flat" if flat else "falls off" if low > MARGIN else "undecided")


def test_many_campaigns_are_judged_as_each_alone():
    """The rule on arrays gives every campaign's own kind, p and interval."""
    drawn = np.random.default_rng(5).normal(-0.05, 0.05, (200, 6))
    mean, sd = drawn.mean(axis=1), drawn.std(axis=1, ddof=1)
    together, half = decide(mean, sd, 6, LIMIT), half_width(sd, 6, 0.95)
    alone = [judge_fall(values, MARGIN, "synthetic") for values in drawn]
    assert together.kind.tolist() == [verdict.kind for verdict in alone]
    assert set(together.kind) == {"flat", "falls off", "undecided"}
    np.testing.assert_allclose(together.p, [verdict.p for verdict in alone])
    np.testing.assert_allclose(1 - np.exp(mean + half), [verdict.interval_95[0] for verdict in alone])


@pytest.mark.parametrize(
    ("value", "kind"), [(0.0, "flat"), (-0.2, "falls off"), (math.log1p(-MARGIN), "undecided")]
)
def test_blocks_without_scatter_decide_by_their_value(value, kind):
    """Identical blocks have a p too; at the margin itself nothing is claimed."""
    verdict = judge_fall([value] * 4, MARGIN, "synthetic")
    assert verdict.kind == kind and 0 <= verdict.p <= 1


@given(samples)
def test_the_smallest_flat_margin_is_where_flat_begins(values):
    """Just above it the verdict is flat, just below it is not."""
    edge = judge_fall(values, MARGIN, "synthetic").flat_margin
    assume(1e-6 < edge < 1 - 1e-6)
    assert judge_fall(values, edge + 1e-7 * (1 - edge), "synthetic").kind == "flat"
    assert judge_fall(values, edge - 1e-7 * (1 - edge), "synthetic").kind != "flat"


@given(samples, st.floats(1, 20))
def test_more_scatter_never_decides(values, factor):
    """Stretching the blocks about their mean turns no undecided verdict into a decided one."""
    values = np.array(values)
    stretched = values.mean() + factor * (values - values.mean())
    before, after = (judge_fall(v, MARGIN, "synthetic") for v in (values, stretched))
    assert after.kind in ("undecided", before.kind)


@given(samples, st.permutations(range(12)))
def test_the_order_of_the_blocks_does_not_matter(values, order):
    """Blocks are exchangeable."""
    shuffled = [values[i] for i in order if i < len(values)]
    assert judge_fall(shuffled, MARGIN, "x").fall == pytest.approx(
        judge_fall(values, MARGIN, "x").fall, abs=1e-12
    )


@given(st.floats(0.1, 10), st.integers(1, 4))
def test_a_slower_block_has_the_same_fall(factor, block):
    """All rates of a block times a factor leave its D, as a slow hour must."""
    whole = FOUR_BLOCKS
    slow = whole.assign(rate=whole.rate * (1 + (factor - 1) * (whole.block == block)))
    here, there = (differences(log_ratios(p, "gige", "10gige"), 2) for p in (whole, slow))
    np.testing.assert_allclose(there, here, atol=1e-12)


def test_needed_blocks_decide():
    """At the same mean and standard deviation, that number of blocks decides and one fewer does not."""
    verdict = judge_fall([-0.09, 0.03, -0.06, 0.0], MARGIN, "synthetic")
    assert verdict.kind == "undecided"

    def kind_with(blocks):
        pattern = np.random.default_rng(0).normal(size=blocks)
        pattern = (pattern - pattern.mean()) / pattern.std(ddof=1)
        return judge_fall(math.log(1 - verdict.fall) + verdict.sd * pattern, MARGIN, "synthetic").kind

    assert kind_with(verdict.blocks_needed) != "undecided"
    assert kind_with(verdict.blocks_needed - 1) == "undecided"
    assert str(verdict.blocks_needed) in verdict.explanation


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([-LIMIT - 0.01, -LIMIT + 0.01], "200 blocks would not"),
        ([0.2, 0.3, 0.1], "rises"),
        ([-0.2], "single block"),
    ],
)
def test_what_more_blocks_cannot_decide_is_said(values, words):
    """A fall at the margin, a rise, a single block: undecided, no number of blocks, with the reason."""
    verdict = judge_fall(values, MARGIN, "synthetic")
    assert verdict.kind == "undecided" and verdict.blocks_needed is None and words in verdict.explanation


def test_a_single_block_has_a_fall_and_no_interval():
    """It is shown, and nothing is concluded from it."""
    verdict = primary(blocks=1).verdict
    assert verdict.fall is not None and verdict.interval_95 is None and verdict.sd is None


def test_no_valid_block_is_undecided():
    """All blocks drifting leaves nothing, and says what is missing."""
    contrast = primary(blocks=3, drifting=(1, 2, 3))
    assert contrast.verdict.blocks == 0 and contrast.verdict.fall is None
    assert "No block" in contrast.verdict.explanation
    assert np.isnan(contrast.ratios.ratio).all() and contrast.control.ratio is None


def test_a_failed_run_costs_its_block_and_no_other():
    """A block without GigE at 8 nodes has no D; the ratios at other n keep it."""
    contrast = primary(blocks=5, failed={(2, "gige", 8)})
    assert contrast.verdict.blocks == 4
    assert contrast.ratios.blocks.sel(nodes=[2, 8]).values.tolist() == [5, 4]


@pytest.mark.parametrize(
    ("ratio", "sd", "kind"),
    [
        (1.0, 0.01, "holds"),
        (1.01, 0.002, "holds"),
        (0.9, 0.01, "violated"),
        (1.0, 0.2, "undecided"),
        (1.04, 0.04, "undecided"),
    ],
)
def test_the_negative_control(ratio, sd, kind):
    """A small real difference holds, a large one violates, a noisy one says nothing."""
    pattern = np.array([-1.2, -0.6, 0.0, 0.6, 1.2])
    control = judge_control(math.log(ratio) + sd * pattern, MARGIN)
    assert control.kind == kind and control.ratio == pytest.approx(ratio)


def test_the_fall_starts_at_the_baseline_not_at_one_node():
    """A network that differs on one node alone violates the control and leaves the fall as it was."""
    odd = (FOUR_BLOCKS.interconnect == "gige") & (FOUR_BLOCKS.nodes == 1)
    here = contrasts(FOUR_BLOCKS)[0]
    there = contrasts(FOUR_BLOCKS.assign(rate=FOUR_BLOCKS.rate.where(~odd, 0.8 * FOUR_BLOCKS.rate)))[0]
    assert there.verdict == here.verdict
    assert (here.control.kind, there.control.kind) == ("holds", "violated")


def test_ratios_are_geometric_means():
    """At every n the ratio is the exponential of the mean log-ratio, inside its interval."""
    data = points(campaign(blocks=6))
    table = contrasts(data)[0].ratios
    expected = np.exp(log_ratios(data, "gige", "10gige").mean("block"))
    np.testing.assert_allclose(table.ratio, expected)
    assert ((table.low < table.ratio) & (table.ratio < table.high)).all()


def test_prediction_intervals_hold_the_next_blocks():
    """In 95 % of draws the mean of eight new blocks falls into the interval from four."""
    random = np.random.default_rng(3)
    hits = 0
    for _ in range(CAMPAIGNS):
        low, high = prediction_interval(random.normal(0, 1, 4), 8)
        hits += low <= random.normal(0, 1, 8).mean() <= high
    assert abs(hits / CAMPAIGNS - 0.95) <= MONTE_CARLO


def test_agreement_with_a_reference():
    """The same truth agrees, a far one does not, and without blocks there is no answer."""
    reference = np.log(0.87) + 0.02 * np.array([-1.5, -0.5, 0.5, 1.5, 0.0])
    same = judge_agreement("GigE / 10GE", reference, [np.log(0.88), np.nan])
    assert same.agrees is True and (same.k, same.n) == (1, 5) and same.today == pytest.approx(0.88)
    assert judge_agreement("GigE / 10GE", reference, np.log([0.99, 1.0])).agrees is False
    assert judge_agreement("GigE / 10GE", reference, []).agrees is None


@pytest.mark.parametrize(("fall", "kind"), [(0.02, "flat"), (-0.02, "flat"), (0.11, "falls off"), (-0.11, "undecided")])
def test_a_simulation_is_compared_with_the_margin_as_it_is(fall, kind):
    """One block decides, without interval or p: a simulation repeats itself; one block of a measurement does not."""
    verdict = judge_fall([math.log1p(-fall)], 0.05, "simulated")
    assert verdict.kind == kind and verdict.fall == pytest.approx(fall)
    assert verdict.p is None and verdict.interval_90 is None and "In the model" in verdict.explanation
    assert judge_fall([math.log1p(-fall)], 0.05, "emulated").kind == "undecided"
    assert judge_fall([], 0.05, "simulated").kind == "undecided"
