"""Statements in their fixed order, after the planned looks, behind the negative control."""

import numpy as np
import pytest
from synthetic import campaign, sequential_campaign

from analysis.contrasts import contrasts, differences, is_over, log_ratios, primary_differences
from analysis.derive import points
from analysis.statistics.judgement import in_sequence, last_look

LOOKS = (4, 6, 9)
PATTERN = np.array([-1.0, 0.4, -0.2, 1.1, 0.3, -0.7, 0.9, -1.2, 0.4])
EXPECTED = ("falls off", "flat")


def outcome(falls, sd=0.01, blocks=9, expected=EXPECTED, controls=None, looks=LOOKS):
    """The outcome of statements whose D scatter about these falls."""
    rows = np.array([np.log1p(-fall) + sd * PATTERN[:blocks] for fall in falls])
    controls = [values[:blocks] for values in controls] if controls else [None] * len(rows)
    return in_sequence(rows, expected, controls, 0.05, "emulated", looks, 0.02)


def test_the_next_counts_only_after_the_expected():
    """Both decided; the first not as expected; and then the second is undecided whatever its interval."""
    assert [one.answer for one in outcome((0.13, 0.0)).judgements] == ["falls off", "flat"]
    stopped = outcome((0.0, 0.0))
    assert [one.answer for one in stopped.judgements] == ["flat", "undecided"]
    assert "does not count" in stopped.judgements[1].reason and stopped.alone[1].answer == "flat"
    assert [one.answer for one in outcome((0.0, 0.0), expected=("", "")).judgements] == ["flat", "flat"]


@pytest.mark.parametrize(("valid", "look"), [(1, 0), (3, 0), (4, 4), (5, 4), (6, 6), (8, 6), (9, 9), (12, 9)])
def test_only_planned_looks_are_looked_at(valid, look):
    """Blocks between two looks wait for the next one."""
    assert last_look(valid, LOOKS) == look and last_look(valid, ()) == valid


def test_before_the_first_look_nothing_is_said():
    """Three clear blocks are no answer where four were planned; the fourth is one."""
    early, first = outcome((0.13, 0.0), blocks=3), outcome((0.13, 0.0), blocks=4)
    assert {one.answer for one in early.judgements} == {"undecided"} and not early.is_over
    assert "after 4 valid blocks; there are 3" in early.judgements[0].reason
    assert [one.answer for one in first.judgements] == ["falls off", "flat"] and first.is_over


def test_blocks_between_looks_change_nothing():
    """Five blocks are judged on the first four."""
    four, five = outcome((0.07, 0.0), sd=0.02, blocks=4), outcome((0.07, 0.0), sd=0.02, blocks=5)
    assert five.alone == four.alone and five.valid == 5 and five.judged.sum() == 4


def test_an_invalid_block_counts_for_no_look():
    """A statement without a value makes its block invalid for all."""
    rows = np.array([np.log(0.87) + 0.01 * PATTERN, 0.01 * PATTERN])
    rows[1, 2] = np.nan
    found = in_sequence(rows[:, :5], EXPECTED, [None, None], 0.05, "emulated", LOOKS, 0.02)
    assert found.valid == 4 and found.judged.tolist() == [True, True, False, True, True] and found.is_over


def test_the_end_is_when_all_are_decided_or_the_last_look_is_over():
    """Undecided at one look goes on; at the last look it is over all the same."""
    assert not outcome((0.13, 0.045), blocks=6).is_over
    assert outcome((0.13, 0.045), blocks=9).is_over
    assert outcome((0.0, -0.2), blocks=4).is_over  # decided, though not as expected
    assert not outcome((0.13, 0.0), looks=()).is_over  # without looks data end nothing


def test_a_failed_control_refuses_every_statement():
    """Where no network is used the rates differ: nothing is judged; a control that holds gates nothing."""
    good, bad = 0.003 * PATTERN, np.log(0.9) + 0.003 * PATTERN
    refused = outcome((0.13, 0.0), controls=[good, bad])
    assert {one.answer for one in refused.judgements} == {"refused"}
    assert all("negative control failed" in one.reason for one in refused.judgements)
    assert [one.answer for one in outcome((0.13, 0.0), controls=[good, good]).judgements] == ["falls off", "flat"]
    assert not outcome((0.13, 0.0), blocks=4, controls=[good, bad]).is_over


def test_a_planted_campaign_is_decided_in_order():
    """13 % on GigE up to 8 nodes and nothing beyond, from the dataset on."""
    found = contrasts(points(sequential_campaign(noise=0.004)))
    first = found[:3]
    assert [(it.network, it.reference, it.start, it.end) for it in first] == [
        ("gige", "10gige", 2, 8), ("10gige", "unshaped", 2, 8), ("gige", "10gige", 8, 16)
    ]  # fmt: skip
    assert [it.verdict.answer for it in first] == ["falls off", "flat", "flat"] and all(it.primary for it in first)
    assert first[0].verdict.blocks == 9 and first[0].verdict.confidence == 0.96
    assert first[0].verdict.fall == pytest.approx(0.13, abs=0.01)
    assert all(it.control.kind == "holds" for it in found) and not found[3].primary
    assert is_over(points(sequential_campaign(blocks=4, noise=0.004)))
    assert not is_over(points(sequential_campaign(blocks=3, noise=0.004)))


def test_a_planted_difference_on_one_node_refuses():
    """The network cannot be what differs there."""
    found = contrasts(points(sequential_campaign(alone=0.1, noise=0.004)))
    assert {it.verdict.answer for it in found} == {"refused"} and found[0].control.kind == "violated"


def test_a_failed_run_costs_its_block():
    """Nine blocks with a failed run are judged as eight: at the look after six."""
    found = contrasts(points(sequential_campaign(noise=0.004, failed={(2, "gige", 8)})))
    assert {it.verdict.blocks for it in found[:3]} == {6} and found[0].ratios.blocks.max() == 6


def test_a_campaign_without_statements_judges_its_pair():
    """The pair of an older design, from its baseline to the most nodes, then each network against the control."""
    found = contrasts(points(campaign(noise=0.01)))
    assert [(it.network, it.reference, it.primary) for it in found] == [
        ("gige", "10gige", True), ("gige", "unshaped", False), ("10gige", "unshaped", False)
    ]  # fmt: skip
    assert [it.verdict.answer for it in found] == ["falls off", "falls off", "flat"]
    assert found[0].verdict.p_holm is None and found[1].verdict.p_holm >= found[1].verdict.p


def test_d_is_of_the_statement_and_cancels_the_block():
    """All rates of a block times a factor leave D, as a slow hour must."""
    whole = points(sequential_campaign(blocks=4))
    slow = whole.assign(rate=whole.rate * (1 + 2 * (whole.block == 2)))
    np.testing.assert_allclose(primary_differences(slow), primary_differences(whole), atol=1e-12)
    ratio = log_ratios(whole, "gige", "10gige")
    np.testing.assert_allclose(primary_differences(whole).isel(statement=2), differences(ratio, 8, 16))
    np.testing.assert_allclose(differences(ratio, 8), differences(ratio, 8, 16))
