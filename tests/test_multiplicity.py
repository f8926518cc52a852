"""Holm's correction of verdicts: within a kind of evidence, never across, and it only takes claims back."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from analysis.inference.multiplicity import holm, holm_p
from analysis.inference.verdict import judge_fall

PATTERN = np.array([-1.5, -0.5, 0.0, 0.5, 1.5])
CLEAR = judge_fall(-0.2 + 0.01 * PATTERN, 0.05, "emulated")
NARROW = judge_fall(0.037 * PATTERN, 0.05, "emulated")  # flat, with a p between 0.05 / 2 and 0.05
OPEN = judge_fall(-0.05 + 0.05 * PATTERN, 0.05, "emulated")
SINGLE = judge_fall([-0.1], 0.05, "emulated")


def test_the_examples_are_what_they_are_named():
    """One is beyond doubt, one decided alone only, one open, one without a p."""
    assert (CLEAR.kind, NARROW.kind, OPEN.kind) == ("falls off", "flat", "undecided")
    assert CLEAR.p < 0.001 and 0.05 / 2 < NARROW.p < 0.05 < OPEN.p and SINGLE.p is None


def test_what_was_decided_alone_is_taken_back_with_the_reason():
    """Among three statements the narrow one is undecided, and the sentence holds its p and their number."""
    corrected = holm([CLEAR, NARROW, OPEN])
    assert [verdict.kind for verdict in corrected] == ["falls off", "undecided", "undecided"]
    said = corrected[1].explanation
    assert f"p = {NARROW.p:.3f}" in said and "3 statements on emulated evidence (Holm)" in said
    assert corrected[1].fall == NARROW.fall and corrected[1].interval_90 == NARROW.interval_90
    assert corrected[2].explanation == OPEN.explanation


def test_a_statement_alone_stays_as_it_is():
    """Nothing to correct for: p_holm is p."""
    assert holm([NARROW]) == (replace(NARROW, p_holm=NARROW.p),)


def test_kinds_of_evidence_never_mix():
    """Statements on other evidence, and those without a p, cost nothing."""
    others = [replace(OPEN, evidence="simulated")] * 3
    corrected = holm([*others, NARROW, SINGLE])
    assert corrected[3].kind == "flat" and corrected[3].p_holm == NARROW.p
    assert corrected[4] == SINGLE and corrected[4].p_holm is None


@settings(max_examples=20)  # statsmodels collects garbage at every call: a tenth of a second
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_the_corrected_p_are_those_of_statsmodels(p):
    """The same numbers as its Holm, also for several families at once."""
    p = np.array(p)
    expected = multipletests(p, method="holm")[1]
    np.testing.assert_allclose(holm_p(p), expected, rtol=1e-12)
    np.testing.assert_allclose(holm_p(np.stack([p, p[::-1]])), [expected, expected[::-1]], rtol=1e-12)


@given(st.permutations([CLEAR, NARROW, OPEN, SINGLE]))
def test_the_order_of_the_statements_does_not_matter(verdicts):
    """Each gets the same correction wherever it stands."""
    expected = dict(zip(("clear", "narrow", "open", "single"), holm([CLEAR, NARROW, OPEN, SINGLE])))
    places = [verdicts.index(verdict) for verdict in (CLEAR, NARROW, OPEN, SINGLE)]
    assert [holm(verdicts)[place] for place in places] == list(expected.values())


@pytest.mark.parametrize("verdict", [CLEAR, NARROW, OPEN])
def test_correction_never_makes_a_claim(verdict):
    """p_holm is never below p, and an undecided verdict stays undecided."""
    corrected = holm([verdict, NARROW, CLEAR])[0]
    assert corrected.p_holm >= verdict.p and corrected.kind in (verdict.kind, "undecided")
