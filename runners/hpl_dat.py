"""HPL.dat, HPL's input deck: 31 lines whose order, not whose words, carries the meaning.

A deck is a flat dict. A field that HPL lets vary (N, NB, the grids, the algorithm) holds one
value, or a list of several that HPL runs in every combination. What HPL itself would replace
without a word (an unknown broadcast, say) is refused here.
"""

import math
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping

from runners.record import FalloffError

# HPL_MAX_PARAM of HPL's own reader.
MOST_VALUES = 20

# Longer than any number that means something here, shorter than Python's limit.
_NUMBER = re.compile(r"[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,3})?", re.ASCII)

_HEADER = (
    "HPLinpack benchmark input file",
    "written by falloff",
    "HPL.out      output file name (if any)",
    "6            device out (6=stdout,7=stderr,file)",
)


@dataclass(frozen=True)
class _Line:
    """One line of the deck: a `count` of values to come, a `list` of so many, or one `value`."""

    kind: str
    field: str
    label: str
    least: float = 0
    most: float = math.inf


def _count(field: str, label: str) -> _Line:
    return _Line("count", field, label, least=1, most=MOST_VALUES)


_LINES = (
    _count("N", "# of problems sizes (N)"),
    _Line("list", "N", "Ns", least=1),
    _count("NB", "# of NBs"),
    _Line("list", "NB", "NBs", least=1),
    _Line("value", "PMAP", "PMAP process mapping (0=Row-,1=Column-major)", most=1),
    _count("P", "# of process grids (P x Q)"),
    _Line("list", "P", "Ps", least=1),
    _Line("list", "Q", "Qs", least=1),
    _Line("value", "THRESHOLD", "threshold", least=-math.inf),
    _count("PFACT", "# of panel fact"),
    _Line("list", "PFACT", "PFACTs (0=left, 1=Crout, 2=Right)", most=2),
    _count("NBMIN", "# of recursive stopping criterium"),
    _Line("list", "NBMIN", "NBMINs (>= 1)", least=1),
    _count("NDIV", "# of panels in recursion"),
    _Line("list", "NDIV", "NDIVs", least=2),
    _count("RFACT", "# of recursive panel fact."),
    _Line("list", "RFACT", "RFACTs (0=left, 1=Crout, 2=Right)", most=2),
    _count("BCAST", "# of broadcast"),
    _Line("list", "BCAST", "BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)", most=5),
    _count("DEPTH", "# of lookahead depth"),
    _Line("list", "DEPTH", "DEPTHs (>=0)"),
    _Line("value", "SWAP", "SWAP (0=bin-exch,1=long,2=mix)", most=2),
    _Line("value", "SWAP_THRESHOLD", "swapping threshold"),
    _Line("value", "L1", "L1 in (0=transposed,1=no-transposed) form", most=1),
    _Line("value", "U", "U  in (0=transposed,1=no-transposed) form", most=1),
    _Line("value", "EQUILIBRATION", "Equilibration (0=no,1=yes)", most=1),
    _Line("value", "ALIGNMENT", "memory alignment in double (> 0)", least=1),
)

FIELDS = tuple(line.field for line in _LINES if line.kind != "count")


def render(settings: Mapping[str, Any]) -> str:
    """The complete HPL.dat for `settings`, which holds every one of `FIELDS` and may hold more.

    Raises FalloffError when a field is missing, out of HPL's range, or P and Q differ in number.
    """
    missing = [field for field in FIELDS if field not in settings]
    if missing:
        raise FalloffError(f"HPL.dat needs {', '.join(missing)}: name them in the campaign's settings")
    values = {field: _listed(settings[field]) for field in FIELDS}
    if len(values["P"]) != len(values["Q"]):
        raise FalloffError(
            f"HPL.dat has {len(values['P'])} P and {len(values['Q'])} Q: give one Q for each P"
        )
    rows = list(_HEADER)
    for line in _LINES:
        numbers = [len(values[line.field])] if line.kind == "count" else values[line.field]
        if line.kind == "value" and len(numbers) != 1:
            raise FalloffError(f"HPL.dat takes one {line.field}, not {len(numbers)}")
        _require_in_range(line, numbers, "HPL.dat")
        # HPL's reader steps over exactly one blank between the values of a line.
        rows.append(f"{' '.join(str(number) for number in numbers):<12} {line.label}")
    return "\n".join(rows) + "\n"


def read(text: str) -> Dict[str, Any]:
    """The fields of an HPL.dat: the inverse of `render`.

    A line's values come first, parted by blanks or tabs; as in HPL, those beyond the count, the comment
    after them and all lines after the 31st (HPCC's, say) have no meaning. The first four lines say where
    output goes and are not read: a run prints to stdout.
    Raises FalloffError with the number of the line that cannot be read.
    """
    rows = text.splitlines()
    deck: Dict[str, Any] = {}
    count = 1
    for number, line in enumerate(_LINES, start=len(_HEADER) + 1):
        where = f"HPL.dat, line {number}"
        wanted = count if line.kind == "list" else 1
        words = rows[number - 1].split()[:wanted] if number <= len(rows) else []
        if not words and number <= len(rows):
            raise FalloffError(f"{where} is blank: HPL counts lines, so it would misread all that follow")
        wrong = [word for word in words if not _NUMBER.fullmatch(word)]
        if wrong:
            raise FalloffError(f"{where}: '{wrong[0][:40]}' where a number for {line.field} belongs")
        values = [float(word) if line.field == "THRESHOLD" else _whole(word) for word in words]
        if len(values) < wanted:
            raise FalloffError(f"{where}: {len(values)} of {wanted} values for {line.field}")
        _require_in_range(line, values, where)
        if line.kind == "count":
            count = values[0]
        else:
            deck[line.field] = values[0] if wanted == 1 else values
    return deck


def _whole(word: str) -> Any:
    """A whole number as int; anything else as float, for `_require_in_range` to refuse."""
    return int(word) if word.lstrip("+-").isdecimal() else float(word)


def _listed(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _require_in_range(line: _Line, values: List[Any], where: str) -> None:
    what = f"number of {line.field}" if line.kind == "count" else line.field
    for value in values:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole and line.field != "THRESHOLD":
            raise FalloffError(f"{where}: {what} is {value!r}, which is not a whole number")
        if not (math.isfinite(value) and line.least <= value <= line.most):
            raise FalloffError(f"{where}: {what} is {value}; HPL takes {line.least:g} to {line.most:g}")
