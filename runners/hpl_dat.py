"""HPL.dat, HPL's input deck: 31 lines whose order, not whose words, carries the meaning.

A deck is a flat dict with one value for each field, so that HPL solves one system. Values that HPL
itself would silently replace (an unknown broadcast, say) are refused here.
"""

from typing import NamedTuple

from runners.records.description_rules import COUNT, REAL, WHOLE, Rule
from runners.records.record import FalloffError, Settings

_HEADER = (
    "HPLinpack benchmark input file",
    "written by falloff",
    "HPL.out      output file name (if any)",
    "6            device out (6=stdout,7=stderr,file)",
)


class _Line(NamedTuple):
    """A line of the deck: its field's rule and comment. A `counted` line is preceded by a line with
    the number of values, which is one."""

    rule: Rule
    label: str
    counted: str = ""


_FLAG, _OF_THREE, _OF_SIX = (
    Rule(f"a whole number from 0 to {most}", (int,), least=0, most=most) for most in (1, 2, 5)
)
_LINES = {
    "N": _Line(COUNT, "Ns", "problems sizes (N)"),
    "NB": _Line(COUNT, "NBs", "NBs"),
    "PMAP": _Line(_FLAG, "PMAP process mapping (0=Row-,1=Column-major)"),
    "P": _Line(COUNT, "Ps", "process grids (P x Q)"),
    "Q": _Line(COUNT, "Qs"),
    "THRESHOLD": _Line(REAL, "threshold"),
    "PFACT": _Line(_OF_THREE, "PFACTs (0=left, 1=Crout, 2=Right)", "panel fact"),
    "NBMIN": _Line(COUNT, "NBMINs (>= 1)", "recursive stopping criterium"),
    "NDIV": _Line(Rule("a whole number from 2", (int,), least=2), "NDIVs", "panels in recursion"),
    "RFACT": _Line(_OF_THREE, "RFACTs (0=left, 1=Crout, 2=Right)", "recursive panel fact."),
    "BCAST": _Line(_OF_SIX, "BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)", "broadcast"),
    "DEPTH": _Line(WHOLE, "DEPTHs (>=0)", "lookahead depth"),
    "SWAP": _Line(_OF_THREE, "SWAP (0=bin-exch,1=long,2=mix)"),
    "SWAP_THRESHOLD": _Line(WHOLE, "swapping threshold"),
    "L1": _Line(_FLAG, "L1 in (0=transposed,1=no-transposed) form"),
    "U": _Line(_FLAG, "U  in (0=transposed,1=no-transposed) form"),
    "EQUILIBRATION": _Line(_FLAG, "Equilibration (0=no,1=yes)"),
    "ALIGNMENT": _Line(COUNT, "memory alignment in double (> 0)"),
}
SETTINGS = {field: line.rule for field, line in _LINES.items()}


def render(settings: Settings) -> str:
    """The complete HPL.dat for `settings`, which contain all fields of a deck and may contain more.

    Raises FalloffError if a field is missing or out of HPL's range.
    """
    missing = [field for field in _LINES if field not in settings]
    if missing:
        raise FalloffError(f"HPL.dat needs {', '.join(missing)} in the campaign's settings")
    rows = list(_HEADER)
    for field, line in _LINES.items():
        value = settings[field]
        if not line.rule.allows(value):
            raise FalloffError(f"HPL.dat: {field} is {value!r}; HPL takes {line.rule.words}")
        rows += [f"{1:<12} # of {line.counted}"] if line.counted else []
        rows.append(f"{value:<12} {line.label}")
    return "\n".join(rows) + "\n"
