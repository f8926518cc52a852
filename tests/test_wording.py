"""Numbers in prose: right digits, real minus signs, and a dash for what is not known."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import wording


@given(st.floats(1e-4, 1e9), st.integers(1, 6), st.sampled_from([1, -1]))
def test_number_keeps_its_significant_digits(size, digits, sign):
    """What is written is within half a unit of the last significant digit."""
    written = float(wording.number(sign * size, digits).replace(wording.MINUS, "-"))
    assert math.isclose(written, sign * size, rel_tol=0.5000001 * 10 ** (1 - digits))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (4.3051, "4.31"),
        (0.9996, "1.00"),
        (15.0, "15.0"),
        (0.0, "0.00"),
        (1.5e-25, "1.50e\u221225"),
        (None, "—"),
    ],
)
def test_number_in_examples(value, written):
    """Rounding up a digit keeps the digits that mean something; a tiny number is not a row of zeros."""
    assert wording.number(value) == written


def test_percent_of_a_rounded_zero_has_no_sign():
    """-0.0004 is 0.0 %, and what is below keeps a real minus."""
    assert wording.percent(-0.0004) == "0.0\u00a0%"
    assert wording.percent_range((-0.012, 0.034)) == "\u22121.2\u00a0to\u00a03.4\u00a0%"


@pytest.mark.parametrize("filter_", [wording.percent, wording.percent_range, wording.gigabit, wording.micro])
def test_the_unknown_is_a_dash(filter_):
    """No filter turns what is not known into a number."""
    assert filter_(None) == "—"


def test_counts_and_dates_read_as_words():
    """One block, two blocks, and a date without a clock."""
    assert wording.counted(1, "block") == "1\u00a0block" and wording.counted(2, "block") == "2\u00a0blocks"
    assert wording.day("2026-11-21T12:47:47+00:00") == "21\u00a0November 2026"


def test_flat_keeps_a_number_with_its_source():
    """The number, its range and unit and where it comes from are one text, without a digit lost."""
    rate = {"value": 39670000000.0, "low": 38e9, "high": 4.1e10, "unit": "flop/s", "source": "assumed"}
    share = {"value": 0.1, "unit": "1"}
    assert wording.flat({"rates": {"dgemm": rate, "share": share}}) == {
        "rates.dgemm": "39670000000 (38000000000 to 41000000000) flop/s, assumed",
        "rates.share": "0.1",
    }


def test_flat_names_what_is_nested():
    """Nested settings become dotted names; empty tables vanish, lists stay."""
    assert wording.flat({"tcp": {"rmem": [1, 2]}, "tools": {}, "nodes": 8}) == {
        "tcp.rmem": [1, 2],
        "nodes": 8,
    }


def test_an_estimate_has_its_interval_or_none():
    """What is not finite is a dash, or has no interval; the same writer is used for all three."""
    hard = "\u00a0"
    assert wording.estimate(1.2345, 1.0, 1.5) == f"1.23 (1.00{hard}to{hard}1.50)"
    assert wording.estimate(1.2345, math.nan, math.nan) == "1.23"
    assert wording.estimate(math.nan, math.nan, math.nan) == "—"
    assert wording.estimate(10.26, 9.0, 11.0, lambda value: wording.fixed(value, 1)) == f"10.3 (9.0{hard}to{hard}11.0)"


@pytest.mark.parametrize(("parts", "said"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")])
def test_parts_are_listed_as_in_a_sentence(parts, said):
    assert wording.listed(parts) == said


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(12.5, "12.5 s"), (0.0286, "28.6 ms"), (6.8e-8, "68.0 ns"), (0.0, "0.00 ns"), (None, "—")],
)
def test_durations_have_the_unit_that_fits(seconds, written):
    """A time is a plain number in its unit."""
    assert wording.duration(seconds).replace("\u00a0", " ") == written


def test_an_interval_of_times_has_one_unit():
    """Both ends are in the unit of the larger one, with a real minus."""
    assert wording.duration_range((-2e-9, 3.1e-8)).replace("\u00a0", " ") == "\u22122.00 to 31.0 ns"
    assert wording.duration_range((2e-4, 0.012)).replace("\u00a0", " ") == "0.200 to 12.0 ms"
    assert wording.duration_range(None) == "—"
