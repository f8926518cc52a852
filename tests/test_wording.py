"""Numbers in prose: right digits, real minus signs, and a dash for what is not known."""

import math
import re

import numpy as np
import pytest

from analysis import wording
from analysis.quoting import quoted

NAN = math.nan


@pytest.mark.parametrize(
    ("write", "arguments", "written"),
    [
        (wording.number, (0.9996,), "1.00"),
        (wording.number, (15.0,), "15.0"),
        (wording.number, (-123456.0,), "\u2212123000"),
        (wording.number, (0.00012345, 2), "0.00012"),
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
    ],
)
def test_what_is_written(write, arguments, written):
    assert write(*arguments).replace("\u00a0", " ") == written


@pytest.mark.parametrize("unknown", [None, NAN, math.inf, np.float64(NAN)])
@pytest.mark.parametrize(
    "name",
    ["number", "exact", "percent", "fixed", "byte_size", "micro", "between", "percent_range"],
)
def test_the_unknown_is_a_dash(name, unknown):
    """Nothing turns what is not known into a number; nor is half an interval one."""
    more = (1,) if name in ("fixed", "between") else ()
    is_interval = name in ("between", "percent_range")
    for value in [(unknown, 1.0), (1.0, unknown), (unknown, unknown)] if is_interval else [unknown]:
        assert getattr(wording, name)(value, *more) == "—"


def test_a_decimal_comma_is_for_numbers_alone():
    """Not for versions, code, formulas, links, attributes, and what was quoted from a user."""
    numbers = "It loses 11.9 % (96 %: \u22121.0 to 1.6 %), 0.99, 1.94. | 0.5 |"
    assert wording.with_decimal_comma(numbers) == re.sub(r"(\d)\.(\d)", r"\1,\2", numbers)
    for kept in (
        *("HPL 2.3.1", "CF-1.11", "`x = 0.5`", "```\nx = 0.5\n```", "$0.5 x$", "v1.2"),
        *("[law](a/0.5.svg)", "{width=0.5}", "https://doi.org/10.1/0.5", "in 2026. 3 blocks"),
        quoted("Open MPI 4.1"),
    ):
        assert wording.with_decimal_comma(kept) == kept
