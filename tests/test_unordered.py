"""Verdicts on repeats without order: seldom wrong on planted truths, and as Welch's test where
others can tell.
"""

import numpy as np
import pytest
from scipy import stats

from analysis.statistics.judgement import (
    FALLS_OFF,
    FLAT,
    IF_ALIKE,
    UNDECIDED,
    judge_unordered,
    sum_of_means,
)


def test_two_groups_are_welchs_test():
    rng = np.random.default_rng(0)
    one, other = rng.normal(0, 1, 4), rng.normal(1, 3, 6)
    mean, error, free = sum_of_means([(1, one), (-1, other)])
    found = stats.ttest_ind(one, other, equal_var=False)
    assert mean / error == pytest.approx(found.statistic) and free == pytest.approx(found.df)


def test_a_single_run_decides_nothing():
    found = judge_unordered([(1, [-0.3]), (-1, [0.0, 0.01])], 0.05, "measured")
    assert found.answer == UNDECIDED and found.interval is None
    assert found.fall == pytest.approx(1 - np.exp(-0.305))


@pytest.mark.parametrize(("fall", "wrong"), [(0.05, FALLS_OFF), (0.05, FLAT)])
def test_at_the_margin_wrong_answers_stay_rare(fall, wrong):
    """A fall of just the margin is neither; three runs a point, one of them scattering thrice as
    much.
    """
    rng, margin = np.random.default_rng(1), 0.05
    answers = []
    for _ in range(1500):
        before, after = rng.normal(0, 0.005, 3), rng.normal(np.log1p(-fall), 0.015, 3)
        answers.append(judge_unordered([(1, after), (-1, before)], margin, "measured").answer)
    assert np.mean(np.array(answers) == wrong) < 0.075


@pytest.mark.parametrize(("runs", "covered"), [(3, 0.70), (5, 0.53), (10, 0.40)])
def test_sessions_that_differ_are_the_condition(runs, covered):
    """Where each point has a session of its own, and sessions differ as much as runs, an interval
    covers as seldom as the module says; so every judgement names the condition."""
    rng, hits = np.random.default_rng(2), []
    for _ in range(1500):
        before, after = rng.normal(0, 0.01, (2, runs)) + rng.normal(0, 0.01, (2, 1))
        found = judge_unordered([(1, after), (-1, before)], 0.05, "measured")
        assert found.condition == IF_ALIKE
        hits.append(found.interval[0] <= 0 <= found.interval[1])
    assert np.mean(hits) == pytest.approx(covered, abs=0.05)
