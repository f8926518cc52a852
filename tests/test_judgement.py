"""The one judgement: what each answer means, how often it is wrong, and what must never change it."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from statsmodels.stats.weightstats import DescrStatsW

from analysis.statistics.judgement import answers, half_width, judge, judge_control, within_campaign

MARGIN = 0.05
LIMIT = -math.log(1 - MARGIN)
CAMPAIGNS = 400
# Three standard errors of a rate of 5 % that is estimated from so many campaigns.
MONTE_CARLO = 3 * math.sqrt(0.05 * 0.95 / CAMPAIGNS)
PATTERN = np.array([-1.5, -0.5, 0.0, 0.5, 1.5])

samples = st.lists(st.floats(-0.3, 0.3), min_size=2, max_size=12)


def judged_at(fall, blocks=6, sd=0.02):
    """The judgements of seeded campaigns whose blocks' D is normal around a planted fall."""
    drawn = np.random.default_rng(2).normal(math.log(1 - fall), sd, (CAMPAIGNS, blocks))
    return [judge(values, MARGIN, "synthetic") for values in drawn]


@pytest.mark.parametrize(
    ("fall", "half", "answer"),
    [
        (0.10, 0.02, "falls off"),
        (0.06, 0.02, "falls, size open"),
        (0.04, 0.02, "falls, size open"),
        (0.02, 0.01, "flat"),  # excludes 0, and lies inside the margin
        (0.00, 0.04, "flat"),
        (-0.02, 0.01, "flat"),
        (0.02, 0.04, "undecided"),
        (-0.04, 0.03, "undecided"),  # a rise of open size
        (-0.10, 0.02, "rises"),
    ],
)
def test_each_answer(fall, half, answer):
    """By where the interval lies: inside the margin, beyond it, or across its end."""
    assert answers(math.log1p(-fall), half, MARGIN) == answer


def test_wrong_decisions_at_the_margin_are_rare():
    """A true fall, or rise, of exactly the margin is called flat, or beyond it, in at most 5 % of campaigns each."""
    for fall, beyond in ((MARGIN, "falls off"), (-MARGIN / (1 - MARGIN), "rises")):
        said = [one.answer for one in judged_at(fall)]
        assert 0 < said.count("flat") / CAMPAIGNS <= 0.05 + MONTE_CARLO
        assert 0 < said.count(beyond) / CAMPAIGNS <= 0.05 + MONTE_CARLO


def test_without_a_fall_none_is_claimed():
    """`falls, size open` without a fall comes in at most 5 %, `falls off` hardly ever."""
    said = [one.answer for one in judged_at(0.0, sd=0.08)]
    assert 0 < said.count("falls, size open") / CAMPAIGNS <= 0.05 + MONTE_CARLO
    assert said.count("falls off") / CAMPAIGNS <= 0.01


def test_intervals_cover_the_planted_fall():
    """The 90 % interval of the fall holds it in 90 % of campaigns."""
    covered = np.mean([one.interval[0] <= 0.13 <= one.interval[1] for one in judged_at(0.13)])
    assert abs(covered - 0.9) <= 3 * math.sqrt(0.9 * 0.1 / CAMPAIGNS)


@given(samples)
def test_flat_and_falls_off_are_one_sided_tests(values):
    """As statsmodels' equivalence test and its t test at 5 %, whose p they carry."""
    assume(np.std(values) > 1e-6)
    described, one = DescrStatsW(values), judge(values, MARGIN, "synthetic")
    flat, _, _ = described.ttost_mean(-LIMIT, LIMIT)
    _, beyond, _ = described.ttest_mean(-LIMIT, alternative="smaller")
    assume(min(abs(flat - 0.05), abs(beyond - 0.05)) > 1e-9)
    assert (one.answer == "flat") == (flat < 0.05)
    assert (one.answer == "falls off") == (flat >= 0.05 and beyond < 0.05)
    if one.decided and one.answer != "rises":
        assert one.p == pytest.approx(flat if one.answer == "flat" else beyond, rel=1e-6) and one.p < 0.05


def test_many_campaigns_are_judged_as_each_alone():
    """The rule on arrays gives every campaign's own answer and interval."""
    drawn = np.random.default_rng(5).normal(-0.03, 0.02, (300, 6)) + np.repeat([[-0.1], [0.0], [0.02]], 100, axis=0)
    mean, half = drawn.mean(axis=1), half_width(drawn.std(axis=1, ddof=1), 6, 0.02)
    alone = [judge(values, MARGIN, "synthetic", 0.02) for values in drawn]
    assert answers(mean, half, MARGIN).tolist() == [one.answer for one in alone]
    assert len({one.answer for one in alone}) >= 4 and alone[0].confidence == 0.96
    np.testing.assert_allclose(1 - np.exp(mean + half), [one.interval[0] for one in alone])


@given(samples, st.floats(1, 20))
def test_more_scatter_never_decides(values, factor):
    """Stretching the blocks about their mean turns no other answer into a decision."""
    values = np.array(values)
    before, after = (judge(v, MARGIN, "x") for v in (values, values.mean() + factor * (values - values.mean())))
    assert not after.decided or after.answer == before.answer


@given(samples, st.permutations(range(12)))
def test_the_order_of_the_blocks_does_not_matter(values, order):
    """Blocks are exchangeable."""
    shuffled = [values[i] for i in order if i < len(values)]
    assert judge(shuffled, MARGIN, "x").fall == pytest.approx(judge(values, MARGIN, "x").fall, abs=1e-12)


@pytest.mark.parametrize(("value", "answer"), [(0.0, "flat"), (-0.2, "falls off"), (0.2, "rises")])
def test_blocks_without_scatter_decide_by_their_value(value, answer):
    """Identical blocks have a p too."""
    one = judge([value] * 4, MARGIN, "synthetic")
    assert one.answer == answer and 0 <= one.p <= 1


def test_too_few_blocks_have_no_interval():
    """A single block's fall is shown, and nothing is concluded; missing blocks are left out."""
    one, none = judge([np.nan, -0.2], MARGIN, "emulated"), judge([np.nan], MARGIN, "emulated")
    assert one.answer == none.answer == "undecided" and one.interval is None and (one.blocks, none.blocks) == (1, 0)
    assert one.fall == pytest.approx(1 - math.exp(-0.2)) and none.fall is None


@pytest.mark.parametrize(("fall", "answer"), [(0.02, "flat"), (-0.02, "flat"), (0.11, "falls off"), (-0.11, "rises")])
def test_a_simulation_is_compared_with_the_margin_as_it_is(fall, answer):
    """One block decides, without interval or p: a simulation repeats itself; a measurement does not."""
    one = judge([math.log1p(-fall)], 0.05, "simulated")
    assert one.answer == answer and one.fall == pytest.approx(fall) and one.p is None and one.interval is None
    assert judge([math.log1p(-fall)], 0.05, "emulated").answer == "undecided"
    assert judge([], 0.05, "simulated").answer == "undecided"


@pytest.mark.parametrize(
    ("ratio", "sd", "kind"),
    [
        (1.0, 0.01, "holds"),
        (1.01, 0.002, "holds"),
        (0.9, 0.01, "violated"),
        (1.1, 0.01, "violated"),
        (1.0, 0.2, "undecided"),
    ],
)
def test_the_negative_control(ratio, sd, kind):
    """A small real difference holds, a large one violates, a noisy one says nothing."""
    control = judge_control(math.log(ratio) + sd * np.array([-1.2, -0.6, 0.0, 0.6, 1.2]), MARGIN)
    assert control.kind == kind and control.ratio == pytest.approx(ratio)
    assert control.interval[0] < ratio < control.interval[1]


CLEAR = judge(-0.2 + 0.01 * PATTERN, MARGIN, "emulated")
NARROW = judge(0.037 * PATTERN, MARGIN, "emulated")  # flat, with a p between 0.05 / 2 and 0.05
OPEN = judge(-0.05 + 0.05 * PATTERN, MARGIN, "emulated")
SINGLE = judge([-0.1], MARGIN, "emulated")


def test_statements_of_a_campaign_are_corrected_for_each_other():
    """What was decided alone only is taken back with the reason; a statement without a p costs nothing."""
    assert (CLEAR.answer, NARROW.answer, OPEN.answer) == ("falls off", "flat", "undecided")
    assert CLEAR.p < 0.001 and 0.05 / 2 < NARROW.p < 0.05
    corrected = within_campaign([CLEAR, NARROW, OPEN, SINGLE])
    assert [one.answer for one in corrected[:2]] == ["falls off", "undecided"] and corrected[3] == SINGLE
    assert "3 statements" in corrected[1].reason and corrected[1].interval == NARROW.interval
    (alone,) = within_campaign([NARROW])
    assert alone.answer == "flat" and alone.p_holm == pytest.approx(alone.p) and within_campaign([SINGLE]) == (SINGLE,)


@pytest.mark.parametrize("order", [(3, 2, 1, 0), (1, 3, 0, 2)])
def test_the_order_of_the_statements_does_not_matter(order):
    """Each gets the same correction wherever it stands, and p_holm is never below p."""
    statements = [CLEAR, NARROW, OPEN, SINGLE]
    corrected = within_campaign(statements)
    assert within_campaign([statements[place] for place in order]) == tuple(corrected[place] for place in order)
    assert all(one.p_holm >= one.p for one in corrected if one.p is not None)
