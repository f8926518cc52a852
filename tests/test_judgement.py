"""The one judgement: what each answer means, and the sequence and looks of a campaign.
`test_calibration` has how often it is wrong."""

import json
import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import DescrStatsW
from synthetic import campaign, sequential_campaign

from analysis.dataset.contrasts import (
    contrasts,
    differences,
    is_over,
    log_ratios,
    primary_differences,
)
from analysis.dataset.derive import points
from analysis.statements.statement import bullets, planned_falls, value
from analysis.statistics import design
from analysis.statistics.intervals import over_blocks
from analysis.statistics.judgement import (
    answers,
    holm_levels,
    in_sequence,
    judge,
    judge_control,
    judge_unordered,
    within_campaign,
)

MARGIN = 0.05
LIMIT = -math.log(1 - MARGIN)
PATTERN = np.array([-1.5, -0.5, 0.0, 0.5, 1.5])


def test_each_answer():
    """By where the interval lies: inside the margin, beyond it, or across its end."""
    for fall, half, answer in (
        (0.10, 0.02, "falls off"),
        (0.06, 0.02, "falls, size open"),
        (0.02, 0.01, "flat"),  # excludes 0, and lies inside the margin
        (-0.02, 0.01, "flat"),
        (0.02, 0.04, "undecided"),
        (-0.04, 0.03, "undecided"),  # a rise of open size
        (-0.10, 0.02, "rises"),
    ):
        assert answers(math.log1p(-fall), half, MARGIN) == answer


@given(st.lists(st.floats(-0.3, 0.3), min_size=2, max_size=12))
def test_flat_and_falls_off_are_one_sided_tests(values):
    """As statsmodels' equivalence test and its t test at 5 %, whose p they carry."""
    assume(np.std(values) > 1e-6)
    described, one = DescrStatsW(values), judge(values, MARGIN, "synthetic")
    flat, _, _ = described.ttost_mean(-LIMIT, LIMIT)
    _, beyond, _ = described.ttest_mean(-LIMIT, alternative="smaller")
    assume(min(abs(flat - 0.05), abs(beyond - 0.05)) > 1e-9)
    assert (one.answer == "flat") == (flat < 0.05)
    assert (one.answer == "falls off") == (flat >= 0.05 and beyond < 0.05)
    if one.answer in ("flat", "falls off"):
        assert one.p == pytest.approx(flat if one.answer == "flat" else beyond, rel=1e-6)


def test_what_has_no_interval():
    """A single block's fall is shown, and nothing is concluded; missing blocks are left out. One
    block of a simulation decides, which repeats itself; so do blocks without scatter."""
    one, none = judge([np.nan, -0.2], MARGIN, "emulated"), judge([np.nan], MARGIN, "simulated")
    assert one.answer == none.answer == "undecided" and one.interval is None
    assert (one.n, none.n, none.fall) == (1, 0, None)
    assert one.fall == pytest.approx(1 - math.exp(-0.2))
    exact = judge([-0.2] * 4, MARGIN, "synthetic")
    assert exact.answer == "falls off" and 0 <= exact.p <= 1
    for fall, answer in ((0.02, "flat"), (-0.02, "flat"), (0.11, "falls off"), (-0.11, "rises")):
        one = judge([math.log1p(-fall)], MARGIN, "simulated")
        assert (one.answer, one.p, one.interval) == (answer, None, None)
        assert one.fall == pytest.approx(fall)


def test_the_negative_control():
    """A small real difference holds, a large one violates, a noisy one says nothing."""
    for ratio, sd, kind in (
        (1.01, 0.002, "holds"),
        (0.9, 0.01, "violated"),
        (1.1, 0.01, "violated"),
        (1.0, 0.2, "undecided"),
    ):
        control = judge_control(math.log(ratio) + sd * PATTERN, MARGIN)
        assert control.kind == kind and control.ratio == pytest.approx(ratio)
        assert control.interval[0] < ratio < control.interval[1]


def test_statements_of_a_campaign_are_corrected_for_each_other():
    """What was decided alone only is taken back with the reason, wherever it stands; no p costs
    nothing.
    """
    clear = judge(-0.2 + 0.01 * PATTERN, MARGIN, "emulated")
    narrow = judge(0.037 * PATTERN, MARGIN, "emulated")  # flat, with a p between 0.05 / 2 and 0.05
    undecided = judge(-0.05 + 0.05 * PATTERN, MARGIN, "emulated")
    single = judge([-0.1], MARGIN, "emulated")
    assert clear.p < 0.001 and narrow.answer == "flat" and 0.05 / 2 < narrow.p < 0.05
    corrected = within_campaign([clear, narrow, undecided, single])
    assert [one.answer for one in corrected[:2]] == ["falls off", "undecided"]
    assert corrected[3] == single and corrected[1].fall == narrow.fall
    assert corrected[0].confidence == pytest.approx(1 - 0.1 / 3)  # the first of three steps
    assert corrected[1].confidence == corrected[2].confidence == pytest.approx(1 - 0.1 / 2)
    assert "3 statements" in corrected[1].reason
    assert within_campaign([single, undecided, narrow, clear]) == corrected[::-1]
    assert within_campaign([narrow]) == (narrow,) and within_campaign([single]) == (single,)


def follows(one):
    """Whether an answer is that of the interval beside it."""
    ends = np.log1p(-np.array(one.interval))
    return one.answer == answers(ends.mean(), abs(ends[0] - ends[1]) / 2, one.margin)


def test_an_answer_follows_from_its_interval():
    """In synthetic campaigns of 1 to 12 statements, in blocks or without order, and in a planned
    order: none is open whose interval decides, and none is decided whose interval does not. Holm's
    decisions are those of statsmodels."""
    random, seen = np.random.default_rng(8), []
    for _ in range(150):
        number, sd = int(random.integers(1, 13)), random.choice([0.005, 0.02, 0.05])
        falls = random.choice([0.0, 0.03, 0.06, 0.1, -0.08], number)
        rows = np.log1p(-falls)[:, None] + sd * random.normal(size=(number, 5))
        alone = [judge(row, MARGIN, "emulated") for row in rows]
        runs = [judge_unordered([(1, row[:3]), (-1, -row[3:])], MARGIN, "measured") for row in rows]
        for family in (alone, runs):
            corrected = within_campaign(family)
            seen += corrected
            assert [one.fall for one in corrected] == [one.fall for one in family]
        decided, *_ = multipletests([one.p for one in alone], method="holm")
        levels = holm_levels(np.array([one.p for one in alone]))
        assert decided.tolist() == [one.p <= level for one, level in zip(alone, levels)]
        ordered = in_sequence(rows[:2], None, planned(("falls off", "flat")[:number], ()), "x")
        seen += [one for one in ordered.judgements if one.interval]
    assert all(map(follows, seen)) and {one.answer for one in seen} > {"flat", "falls off", "rises"}
    assert any("Alone" in one.reason for one in seen)


LOOKS = (4, 6, 9)
NINE = np.array([-1.0, 0.4, -0.2, 1.1, 0.3, -0.7, 0.9, -1.2, 0.4])


def planned(expected=("falls off", "flat"), looks=LOOKS):
    """A design with as many statements as answers are expected."""
    tables = [{"networks": "ab", "from": 1, "to": 2, "expected": one} for one in expected]
    return design.design_from(
        {"primary": tables, "margin": 0.05, "looks": looks, "one_sided": 0.02}
    )


def outcome(falls, sd=0.01, blocks=9, expected=("falls off", "flat"), looks=LOOKS):
    """The outcome of statements whose D scatter about these falls."""
    rows = np.array([np.log1p(-fall) + sd * NINE[:blocks] for fall in falls])
    return in_sequence(rows, None, planned(expected, looks), "emulated")


def answers_of(found):
    return [one.answer for one in found.judgements]


def test_the_next_counts_only_after_the_expected():
    """Both decided; the first not as expected; and then the second is undecided, and has no
    interval that would decide.
    """
    assert answers_of(outcome((0.13, 0.0))) == ["falls off", "flat"]
    second = outcome((0.0, 0.0)).judgements[1]
    assert answers_of(outcome((0.0, 0.0))) == ["flat", "undecided"]
    assert (second.fall == pytest.approx(0, abs=0.05)) and second.interval is None
    assert answers_of(outcome((0.0, 0.0), expected=("", ""))) == ["flat", "flat"]


def test_blocks_count_from_look_to_look():
    """Before the first look nothing is said; five blocks are judged on the first four; an invalid
    one counts for none.
    """
    early = outcome((0.13, 0.0), blocks=3)
    assert answers_of(early) == ["undecided", "undecided"] and not early.is_over
    assert "after 4 valid blocks; there are 3" in early.judgements[0].reason
    four, five = (outcome((0.07, 0.0), sd=0.02, blocks=blocks) for blocks in (4, 5))
    assert five.judgements == four.judgements and five.judged.sum() == 4
    rows = np.array([np.log(0.87) + 0.01 * NINE, 0.01 * NINE])[:, :5]
    rows[1, 2] = np.nan
    found = in_sequence(rows, None, planned(), "emulated")
    assert found.judged.tolist() == [True, True, False, True, True]


def test_the_end_is_when_all_are_decided_or_the_last_look_is_over():
    """Undecided at one look goes on; at the last look it is over all the same."""
    assert not outcome((0.13, 0.045), blocks=6).is_over
    assert outcome((0.13, 0.045), blocks=9).is_over
    assert outcome((0.0, -0.2), blocks=4).is_over  # decided, though not as expected
    assert not outcome((0.13, 0.0), looks=()).is_over  # without looks data end nothing


def test_a_planted_campaign_is_decided_in_order():
    """13 % on GigE up to 8 nodes and nothing beyond, from the dataset on."""
    found = contrasts(points(sequential_campaign(noise=0.004)))
    places = [("gige", "10gige", 2, 8), ("10gige", "unshaped", 2, 8), ("gige", "10gige", 8, 16)]
    assert [astuple(one.statement)[:4] for one in found[:3]] == places
    assert [one.verdict.answer for one in found[:3]] == ["falls off", "flat", "flat"]
    assert all(one.primary for one in found[:3]) and not found[3].primary
    assert found[0].verdict.n == 9 and found[0].verdict.confidence == 0.96
    assert found[0].verdict.fall == pytest.approx(0.13, abs=0.01)
    assert all(one.control.kind == "holds" for one in found)
    assert is_over(points(sequential_campaign(blocks=4, noise=0.004)))
    assert not is_over(points(sequential_campaign(blocks=3, noise=0.004)))


def test_sessions_are_told_where_they_are_known():
    """Those of the blocks that were judged; of others that are counted alone, only where any choice
    has as many.
    """
    dataset = sequential_campaign(noise=0.004, failed={(2, "gige", 8)})
    of = {
        block: [1 + (block > 4), 3] if block == 6 else [1 + (block > 4)] for block in range(1, 10)
    }
    two = {block: numbers[:1] for block, numbers in of.items()}
    for sessions, judged, some, every in ((two, 2, None, 2), (dict.fromkeys(of, [1]), 1, 1, 1)):
        found = points(dataset.assign_attrs(sessions=json.dumps(sessions)))
        made = planned_falls(found)
        assert {one.sessions for one in made} == {judged} and "session" in made[0].sentence
        for n, told in ((4, some), (9, every)):
            one = value(found, "It loses", "fall", (0.1, 0.0, 0.2), n)
            assert one.sessions == told and ("session" in str(one)) == bool(told)
        assert value(found, "It loses", "fall", (0.1, None, None), 9).sessions is None
    assert [line.count("session") for line in bullets([one, one]).splitlines()] == [1, 0]
    assert {one.sessions for one in planned_falls(points(dataset))} == {None}


def test_from_three_sessions_on_their_means_are_the_units():
    """The answers are those of the sessions' means, and every sentence says so; blocks of two
    sessions stay the units."""
    values, three = np.log([0.86, 0.88, 0.9, 0.87, 0.85]), [1, 1, 2, 3, 3]
    means = [values[:2].mean(), values[2], values[3:].mean()]
    judged, alone = judge(values, MARGIN, "x", sessions=three), judge(means, MARGIN, "x")
    assert judged.interval == alone.interval and judged.n_of == "session of 1 to 2 blocks"
    assert judged.n == 3 and judge(values, MARGIN, "x", sessions=[1, 1, 2, 2, 2]).n_of == "block"
    with_gap = judge([*values, np.nan], MARGIN, "x", sessions=[*three, 4])
    assert with_gap.interval == alone.interval
    dataset = sequential_campaign(noise=0.004)
    sessions = {block: [1 + (block - 1) // 3] for block in range(1, 10)}
    found = points(dataset.assign_attrs(sessions=json.dumps(sessions)))
    made = planned_falls(found)
    assert {(one.n, one.n_of) for one in made} == {(3, "session of 3 blocks")}
    assert "3 sessions of 3 blocks, margin" in made[0].sentence.replace("\N{NO-BREAK SPACE}", " ")
    share = found.share.sel(interconnect="gige", nodes=8)
    means = over_blocks(share.drop_vars("session").coarsen(block=3).mean(), "rate")
    assert float(over_blocks(share, "rate").high) == pytest.approx(float(means.high), rel=1e-3)
    assert int(over_blocks(share, "rate").blocks) == 9


def test_looks_count_sessions_that_are_over():
    """A session counts when it has its blocks, or when a later one has begun; one without a valid
    block does not."""
    stated = {"margin": MARGIN, "looks": [2, 3], "one_sided": 0.02, "blocks_a_session": 2}
    statement = {"networks": ["a", "b"], "from": 1, "to": 2}
    planned = design.design_from({"compared": "any", "primary": [statement], **stated})
    values = np.log(0.87) + np.array([[0.001, -0.001, np.nan, np.nan, 0.002, 0.001, -0.002]])
    ends = [
        (3, [1, 1, 2], 0),
        (4, [1, 1, 2, 2], 0),  # the second has no valid block
        (5, [1, 1, 2, 2, 3], 0),  # the third goes on
        (6, [1, 1, 2, 2, 3, 3], 4),
        (7, [1, 1, 2, 2, 3, 3, 4], 4),
        (6, [1, 1, 2, 2, 3, 4], 3),  # the third was interrupted, the fourth goes on
    ]
    for blocks, sessions, judged in ends:
        outcome = in_sequence(values[:, :blocks], None, planned, "x", sessions)
        assert outcome.judged.sum() == judged and outcome.is_over == bool(judged)
    assert (
        "after 2 valid sessions"
        in in_sequence(values[:, :3], None, planned, "x", [1, 1, 2]).judgements[0].reason
    )


def test_a_planted_difference_on_one_node_refuses_and_a_failed_run_costs_its_block():
    """Nine blocks with a failed run are judged as eight: at the look after six. What is refused
    goes on.
    """
    refused = points(sequential_campaign(alone=0.1, noise=0.004))
    found = contrasts(refused)
    assert {one.verdict.answer for one in found} == {"refused"}
    assert all("negative control failed" in one.verdict.reason for one in found)
    assert found[0].control.kind == "violated"
    assert not is_over(refused.isel(block=slice(4)))
    found = contrasts(points(sequential_campaign(noise=0.004, failed={(2, "gige", 8)})))
    assert {one.verdict.n for one in found[:3]} == {6}


def test_a_campaign_without_statements_judges_its_pair():
    """The pair of an older design, from its baseline to the most nodes, then each network against
    the control.
    """
    found = contrasts(points(campaign(noise=0.01)))
    pairs = [("gige", "10gige", True), ("gige", "unshaped", False), ("10gige", "unshaped", False)]
    assert [(one.statement.of, one.statement.against, one.primary) for one in found] == pairs
    assert [one.verdict.answer for one in found] == ["falls off", "falls off", "flat"]


def test_d_is_of_the_statement_and_cancels_the_block():
    """All rates of a block times a factor leave D, as a slow hour must."""
    whole = points(sequential_campaign(blocks=4))
    slow = whole.assign(rate=whole.rate * (1 + 2 * (whole.block == 2)))
    np.testing.assert_allclose(primary_differences(slow), primary_differences(whole), atol=1e-12)
    ratio = log_ratios(whole, "gige", "10gige")
    third = primary_differences(whole).isel(statement=2)
    np.testing.assert_allclose(third, differences(ratio, 8, 16))
    np.testing.assert_allclose(differences(ratio, 8), differences(ratio, 8, 16))
