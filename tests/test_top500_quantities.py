"""Numbers and units as people write them: read to the last digit, or not at all."""

import numpy as np
import pytest

from analysis.top500 import quantities


@pytest.mark.parametrize(
    ("written", "values"),
    [
        (["1,105,000", "59,700.5", "12"], [1105000, 59700.5, 12]),
        (["1 105 000", "59\u00a0700", "1'234"], [1105000, 59700, 1234]),
        (["59,7", "1.105.000,25", "12"], [59.7, 1105000.25, 12]),
        (["1.105.000", "12.5"], [1105000, 12.5]),
        (["1.105e+06", "1e3"], [1105000, 1000]),
        (["N/A", "", "-", "1_000", "inf", "12 GF", "1,10,000"], [np.nan] * 7),
    ],
)
def test_numbers_as_people_write_them(written, values):
    """Thousands apart by commas, blanks, apostrophes or points; decimal commas; and what is no number is none."""
    found, reasons = quantities.numbers(written)
    assert np.allclose(found, values, equal_nan=True)
    assert [bool(reason) for reason in reasons] == np.isnan(values).tolist()


@pytest.mark.parametrize(
    ("best", "month", "factor"),
    [
        (59.7, "1993-06", 1e9), (2.6, "1993-06", 1e9), (35860, "2002-06", 1e9), (478200, "2007-11", 1e9),
        (1105000, "2008-11", 1e9), (12593.5, "2008-11", 1e9), (1105, "2008-11", 1e12), (17590000, "2012-11", 1e9),
        (148600, "2019-06", 1e12), (1742, "2024-11", 1e15),
    ],
)  # fmt: skip
def test_units_of_known_rates(best, month, factor):
    """The first systems of real lists, and ones far below them, as they are where only part of a list is there."""
    assert quantities.plausible_unit(best, month) == factor


def test_no_rate_fits_two_units():
    """What is plausible at a time spans less than the step between two units."""
    steps = np.diff(np.log10(sorted(quantities.UNITS.values())))
    assert np.log10(quantities.BELOW * quantities.ABOVE) < steps.min()
