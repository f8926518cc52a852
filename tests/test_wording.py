"""Numbers in prose: right digits, real minus signs, and a dash for what is not known."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import wording

NAN = math.nan


@given(st.floats(1e-4, 1e9), st.integers(1, 6), st.sampled_from([1, -1]))
def test_number_keeps_its_significant_digits(size, digits, sign):
    """What is written is within half a unit of the last significant digit."""
    written = float(wording.number(sign * size, digits).replace(wording.MINUS, "-"))
    assert math.isclose(written, sign * size, rel_tol=0.5000001 * 10 ** (1 - digits))


@pytest.mark.parametrize(
    ("write", "arguments", "written"),
    [
        (wording.number, (0.9996,), "1.00"),
        (wording.number, (15.0,), "15.0"),
        (wording.number, (1.5e-25,), "1.50e\u221225"),
        (wording.percent, (-0.0004,), "0.0 %"),
        (wording.percent_range, ((-0.012, 0.034),), "\u22121.2 to 3.4 %"),
        (wording.estimate, (1.2345, 1.0, 1.5), "1.23 (1.00 to 1.50)"),
        (wording.estimate, (1.2345, NAN, NAN), "1.23"),
        (wording.estimate, (NAN, NAN, NAN), "—"),
        (wording.counted, (1, "block"), "1 block"),
        (wording.counted, (2, "block"), "2 blocks"),
        (wording.listed, (["a", "b", "c"],), "a, b and c"),
        (wording.listed, (["a"],), "a"),
        (wording.day, ("2026-11-21T12:47:47+00:00",), "21 November 2026"),
        (wording.byte_size, (65536,), "64 KiB"),
        (wording.plain, ("a_b*c\nd",), r"a\_b\*c d"),
    ],
)
def test_what_is_written(write, arguments, written):
    assert write(*arguments).replace("\u00a0", " ") == written


@pytest.mark.parametrize(
    "write",
    [
        wording.number,
        wording.exact,
        wording.percent,
        wording.percent_range,
        wording.byte_size,
        wording.byte_range,
        wording.micro,
    ],
)
def test_the_unknown_is_a_dash(write):
    """Nothing turns what is not known into a number."""
    assert write(None) == "—"
