"""Numbers and units as the lists write them."""

import re
from collections.abc import Sequence

import numpy as np

from analysis import published
from runners.record import FalloffError

UNITS = {"m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18}  # flop/s, by the first letter of Gflop/s, TFlop/s, ...
BELOW, ABOVE = 300, 3  # the best Rmax of a list, or of part of it, against the best of its time; in all below 1000

_NONE = ("", "n/a", "na", "-", "none", "nan")
_PLAIN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_GROUPED = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?|\d{1,3}([ '\u2019]\d{3})+(\.\d+)?|\d{1,3}(\.\d{3}){2,}")
_DECIMAL_COMMA = re.compile(r"(\d+|\d{1,3}([. '\u2019]\d{3})+)(,\d+)?")


def numbers(cells: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """The numbers of a column, shape (rows,), and why each that is none is NaN ("" where it is a number).

    A comma is a decimal one when the column has one that cannot separate thousands.
    """
    cells = [re.sub(r"[\s\u00a0\u202f]+", " ", cell).strip() for cell in cells]
    decimal = any("," in cell and _DECIMAL_COMMA.fullmatch(cell) and not _GROUPED.fullmatch(cell) for cell in cells)
    values, reasons = np.full(len(cells), np.nan), [""] * len(cells)
    for place, cell in enumerate(cells):
        try:
            values[place] = _number(cell, decimal)
        except ValueError:
            reasons[place] = "is empty" if cell.lower() in _NONE else f"{cell!r} is no number"
    return values, reasons


def _number(cell: str, decimal: bool) -> float:
    """Raises ValueError when the cell is no number."""
    if decimal and _DECIMAL_COMMA.fullmatch(cell):
        return float(re.sub(r"[. '\u2019]", "", cell).replace(",", "."))
    if not decimal and _GROUPED.fullmatch(cell):
        return float(re.sub(r"[, '\u2019]" if cell.count(".") < 2 else r"\.", "", cell))
    if not decimal and _PLAIN.fullmatch(cell):
        return float(cell)
    raise ValueError


def unit(label: str) -> float | None:
    """flop/s in the unit that a heading has in brackets; None when it has none that is a rate."""
    name = re.sub(r"[^a-z]", "", label.lower())
    return UNITS.get(name[0]) if name[1:5] == "flop" else None


def plausible_unit(best: float, month: str) -> float:
    """flop/s in the unit in which `best`, the largest Rmax of a list whose headings name no unit, fits its time.

    `month` is the list's, YYYY-MM. Raises FalloffError when none fits.
    """
    anchors = published.top500()["best_rmax"]
    years = [_year(it["list"]) for it in anchors]
    expected = 1e9 * 10 ** np.interp(_year(month), years, np.log10([it["value"] for it in anchors]))
    for factor in UNITS.values():
        if expected / BELOW < factor * best < ABOVE * expected:
            return factor
    raise FalloffError(
        f"the heading of RMax names no unit, and {best:g} is in no unit a rate of {month}: "
        "name the unit in the heading, such as RMax [GFlop/s]"
    )


def _year(month: str) -> float:
    year, number = map(int, month.split("-"))
    return year + number / 12
