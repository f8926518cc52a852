"""Verdicts on claims: an equivalence test, its opposite, ranges of simulated runs, readings of printed numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.claims.judge import judge
from analysis.claims.ledger import Claim
from analysis.claims.sample import Estimate, Printed, Sample, Untestable
from analysis.statistics.judgement import judge_range
from runners.record import FalloffError

VALUES = st.lists(st.floats(0.2, 5), min_size=2, max_size=8)
ENDS = st.tuples(st.floats(0.2, 5), st.floats(0.01, 3)).map(lambda pair: (pair[0], sum(pair)))


def claim(at_least=-math.inf, at_most=math.inf, **more):
    """A claim on a ratio with this range."""
    given = {
        "id": "c",
        "source": "nemo",
        "where": "w",
        "statement": "S.",
        "unit": "1",
        "scale": "ratio",
        "why": "y",
    }
    return Claim(**{**given, "at_least": at_least, "at_most": at_most, **more})


def blocks(*values, evidence="emulated"):
    return Sample(evidence, np.array(values, float), "of", "campaign", "digest")


@given(values=VALUES, ends=ENDS, ratios=st.booleans())
def test_verdicts_follow_from_the_intervals(values, ends, ratios):
    """The estimate lies in the 90 % interval, that in the 95 % one; a verdict is never against the estimate."""
    found = judge_range(values, *ends, ratios=ratios)
    near = 1e-9 * max(values)
    assert (
        found.interval_95[0] <= found.interval_90[0] + near
        and found.interval_90[1] <= found.interval_95[1] + near
    )
    assert found.interval_90[0] - near <= found.estimate <= found.interval_90[1] + near
    inside = ends[0] <= found.estimate <= ends[1]
    assert (found.kind != "supported" or inside) and (found.kind != "contradicted" or not inside)
    assert found.n == len(values)


@given(values=VALUES, ends=ENDS)
def test_ratios_are_judged_alike_either_way_round(values, ends):
    """A over B in a range and B over A in its reciprocal are the same claim."""
    found = judge_range(values, *ends, ratios=True)
    turned = judge_range(1 / np.array(values), 1 / ends[1], 1 / ends[0], ratios=True)
    touches = np.isclose(
        [*found.interval_90, *found.interval_95], np.repeat(ends, 2)[:, None]
    ).any()
    assert touches or found.kind == turned.kind
    assert turned.estimate == pytest.approx(1 / found.estimate)


@given(values=VALUES, ends=ENDS, wider=st.floats(0, 2))
def test_a_wider_range_is_no_harder_to_support(values, ends, wider):
    """What supports a claim supports a weaker one; what contradicts the weaker one contradicts the claim."""
    tight, wide = judge_range(values, *ends), judge_range(values, ends[0] - wider, ends[1] + wider)
    assert tight.kind != "supported" or wide.kind == "supported"
    assert wide.kind != "contradicted" or tight.kind == "contradicted"


def test_intervals_are_students():
    """Against scipy's own t interval, of logarithms for ratios; missing blocks are left out."""
    values = np.array([0.9, 1.1, 1.3, np.nan])
    found = judge(claim(0.5, 2.0), blocks(*values))
    logs = np.log(values[:3])
    expected = np.exp(stats.t.interval(0.95, 2, logs.mean(), stats.sem(logs)))
    assert (
        found.interval_95 == pytest.approx(tuple(expected)) and found.n == 3 and found.kind == "t"
    )
    plain = judge(claim(0.5, 2.0, scale="difference"), blocks(*values))
    assert plain.estimate == pytest.approx(1.1) != found.estimate


@pytest.mark.parametrize(
    ("values", "verdict", "reason"),
    [
        ((), "undecided", "no block has a value"),
        ((1.0,), "undecided", "a single block has no interval"),
        ((1.0, 1.001, 0.999), "supported", ""),
        ((1.0, 1.3, 0.7), "undecided", ""),
        ((2.0, 2.001, 1.999), "contradicted", ""),
    ],
)
def test_blocks_decide(values, verdict, reason):
    """None and one cannot; three can when they agree."""
    found = judge(claim(0.9, 1.1), blocks(*values))
    assert (found.verdict, found.reason) == (verdict, reason)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((1.0,), "supported"),
        ((2.0,), "contradicted"),
        ((1.0, 2.0), "undecided"),
        ((1.0, 1.1), "supported"),
        ((), "undecided"),
    ],
)
def test_simulated_runs_are_judged_by_their_range(values, verdict):
    """They have no scatter to generalise from: one run is enough, and one that is otherwise leaves it open."""
    found = judge(claim(0.9, 1.1), blocks(*values, evidence="simulated"))
    assert found.verdict == verdict and found.n == len(values)
    assert not values or found.interval_95 == (min(values), max(values))


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [((0.3, 0.4), "supported"), ((0.5, 0.6), "contradicted"), ((0.3, 0.6), "undecided")],
)
def test_estimates_with_intervals_of_their_own_are_judged_alike(ends, verdict):
    """By the same rule, whatever the kind of the interval; without one they are undecided."""
    estimate = Estimate("measured", 0.4, ends, ends, "exact", 9, "of", "campaign", "digest")
    assert judge(claim(at_most=0.45), estimate).verdict == verdict
    unknown = Estimate(
        "measured", 0.4, (math.nan, math.nan), (math.nan, math.nan), "exact", 1, "of", "c", "d"
    )
    assert judge(claim(at_most=0.45), unknown).verdict == "undecided"


def test_printed_numbers_have_no_statistical_verdict():
    """Alone they are printed; a reading makes them consistent or not, and the one that agrees is named."""
    averages = {"mean of ratios": 0.5052, "ratio of sums": 0.5313}
    efficiency = claim(0.5, 0.51, printed=0.505)
    assert judge(efficiency, Printed({})).verdict == "printed"
    found = judge(efficiency, Printed(averages, rounding=0.001))
    assert (found.verdict, found.reading, found.estimate, found.n) == (
        "consistent",
        "mean of ratios",
        0.5052,
        2,
    )
    other = judge(efficiency, Printed({"ratio of sums": 0.5313}, rounding=0.001))
    assert (other.verdict, other.reading) == ("inconsistent", "ratio of sums")
    assert judge(claim(0.5, 0.51), Printed(averages)).verdict == "consistent"
    assert judge(claim(0.5, 0.54), Printed(averages)).reading == "mean of ratios or ratio of sums"
    assert judge(claim(0.5), Printed({})).verdict == "not testable"


def test_a_number_is_not_borne_out_by_itself():
    """What was computed from the printed numbers is printed; a slip in it is found out."""
    computed = claim(1.035, 1.055, printed=1.045, printed_how="a over b")
    assert judge(computed, Printed({"a over b": 1.0453})).verdict == "printed"
    assert judge(computed, Printed({"a over b": 1.2})).verdict == "inconsistent"


@given(printed=st.integers(1, 9999), off=st.floats(-0.4999, 0.4999))
def test_rounding_to_the_printed_number(printed, off):
    """Whatever rounds to the last printed digit agrees, and no more."""
    number = claim(printed=printed / 100)
    assert (
        judge(number, Printed({"x": (printed + off) / 100}, rounding=0.01)).verdict == "consistent"
    )
    beyond = (printed + off + np.sign(off or 1)) / 100
    assert judge(number, Printed({"x": beyond}, rounding=0.01)).verdict == "inconsistent"


def test_what_cannot_be_judged_says_why():
    """An untestable claim keeps its reason; without a range there is nothing to judge by; no logarithm is made up."""
    assert judge(claim(1), Untestable("emulated", "host-bound")).reason == "host-bound"
    assert judge(claim(printed=1.0), blocks(1.0, 1.0)).verdict == "undecided"
    with pytest.raises(FalloffError, match="no logarithm"):
        judge(claim(1), blocks(0.0, 1.0))
