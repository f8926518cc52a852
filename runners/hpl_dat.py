"""HPL.dat, HPL's input deck: 31 lines whose order, not whose words, carries the meaning.

A deck is a flat dict. A field that HPL lets vary (N, NB, the grids, the algorithm) holds one
value, or a list of several that HPL runs in every combination. What HPL itself would replace
without a word (an unknown broadcast, say) is refused here.
"""

import math
from dataclasses import dataclass
from typing import Any, List, Mapping

from runners.record import FalloffError

# HPL_MAX_PARAM of HPL's own reader.
MOST_VALUES = 20

_HEADER = (
    "HPLinpack benchmark input file",
    "written by falloff",
    "HPL.out      output file name (if any)",
    "6            device out (6=stdout,7=stderr,file)",
)


@dataclass(frozen=True)
class _Line:
    """A line of the deck: its field's comment and range; with a `counted` one, a line with the number
    of values comes before it. Of the lists only Q has none: there are as many as P."""

    field: str
    label: str
    least: float = 0
    most: float = math.inf
    counted: str = ""

    @property
    def is_list(self) -> bool:
        return bool(self.counted) or self.field == "Q"

    def count(self) -> "_Line":
        """The line with the number of values."""
        return _Line(f"number of {self.field}", f"# of {self.counted}", 1, MOST_VALUES)


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

FIELDS = tuple(line.field for line in _LINES)


def render(settings: Mapping[str, Any]) -> str:
    """The complete HPL.dat for `settings`, which holds every one of `FIELDS` and may hold more.

    Raises FalloffError when a field is missing, out of HPL's range, or P and Q differ in number.
    """
    missing = [field for field in FIELDS if field not in settings]
    if missing:
        raise FalloffError(f"HPL.dat needs {', '.join(missing)} in the campaign's settings")
    rows, grids = list(_HEADER), []
    for line in _LINES:
        value = settings[line.field]
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        if line.field in "PQ":
            grids.append(len(values))
        if not line.is_list and len(values) != 1:
            raise FalloffError(f"HPL.dat takes one {line.field}, not {len(values)}")
        for part, numbers in ((line.count(), [len(values)]), (line, values)):
            if part is line or line.counted:
                _require_in_range(part, numbers)
                # HPL's reader steps over exactly one blank between the values of a line.
                rows.append(f"{' '.join(map(str, numbers)):<12} {part.label}")
    if grids[0] != grids[1]:
        raise FalloffError(f"HPL.dat has {grids[0]} P and {grids[1]} Q: give one Q for each P")
    return "\n".join(rows) + "\n"


def _require_in_range(line: _Line, values: List[Any]) -> None:
    for value in values:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole and line.field != "THRESHOLD":
            raise FalloffError(f"HPL.dat: {line.field} is {value!r}, which is not a whole number")
        if not (math.isfinite(value) and line.least <= value <= line.most):
            takes = f"{line.least:g} to {line.most:g}"
            raise FalloffError(f"HPL.dat: {line.field} is {value}; HPL takes {takes}")
