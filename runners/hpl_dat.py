"""HPL.dat, HPL's input deck: 31 lines whose order, not whose words, carries the meaning.

A deck is a flat dict with one value for each field, so that HPL solves one system. Values that HPL
itself would silently replace (an unknown broadcast, say) are refused here.
"""

import math
from typing import NamedTuple

from runners.records.record import FalloffError, Settings

_HEADER = (
    "HPLinpack benchmark input file",
    "written by falloff",
    "HPL.out      output file name (if any)",
    "6            device out (6=stdout,7=stderr,file)",
)


class _Line(NamedTuple):
    """A line of the deck: its field's comment and range. A `counted` line is preceded by a line
    with the number of values, which is one."""

    field: str
    label: str
    least: float = 0
    most: float = math.inf
    counted: str = ""


_LINES = (
    _Line("N", "Ns", 1, counted="problems sizes (N)"),
    _Line("NB", "NBs", 1, counted="NBs"),
    _Line("PMAP", "PMAP process mapping (0=Row-,1=Column-major)", most=1),
    _Line("P", "Ps", 1, counted="process grids (P x Q)"),
    _Line("Q", "Qs", 1),
    _Line("THRESHOLD", "threshold", -math.inf),
    _Line("PFACT", "PFACTs (0=left, 1=Crout, 2=Right)", most=2, counted="panel fact"),
    _Line("NBMIN", "NBMINs (>= 1)", 1, counted="recursive stopping criterium"),
    _Line("NDIV", "NDIVs", 2, counted="panels in recursion"),
    _Line("RFACT", "RFACTs (0=left, 1=Crout, 2=Right)", most=2, counted="recursive panel fact."),
    _Line("BCAST", "BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)", most=5, counted="broadcast"),
    _Line("DEPTH", "DEPTHs (>=0)", counted="lookahead depth"),
    _Line("SWAP", "SWAP (0=bin-exch,1=long,2=mix)", most=2),
    _Line("SWAP_THRESHOLD", "swapping threshold"),
    _Line("L1", "L1 in (0=transposed,1=no-transposed) form", most=1),
    _Line("U", "U  in (0=transposed,1=no-transposed) form", most=1),
    _Line("EQUILIBRATION", "Equilibration (0=no,1=yes)", most=1),
    _Line("ALIGNMENT", "memory alignment in double (> 0)", 1),
)


def render(settings: Settings) -> str:
    """The complete HPL.dat for `settings`, which contain all fields of a deck and may contain more.

    Raises FalloffError if a field is missing or out of HPL's range.
    """
    missing = [line.field for line in _LINES if line.field not in settings]
    if missing:
        raise FalloffError(f"HPL.dat needs {', '.join(missing)} in the campaign's settings")
    rows = list(_HEADER)
    for line in _LINES:
        value = settings[line.field]
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole and not (line.field == "THRESHOLD" and isinstance(value, float)):
            raise FalloffError(f"HPL.dat: {line.field} is {value!r}, which is not a whole number")
        if not (math.isfinite(value) and line.least <= value <= line.most):
            raise FalloffError(
                f"HPL.dat: {line.field} is {value}; HPL takes {line.least:g} to {line.most:g}"
            )
        rows += [f"{1:<12} # of {line.counted}"] if line.counted else []
        rows.append(f"{value:<12} {line.label}")
    return "\n".join(rows) + "\n"
