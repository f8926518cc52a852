"""HPL's printed results, whoever built the xhpl and whatever else went to the same file.

HPL 2.0 to 2.3 and the vendors' builds (Intel, AMD, NVIDIA) print the same table: a row that begins with
the encoded variant (WR for row-major, WC for column-major process grids), then a line with the scaled
residual. Around it there are progress lines, colours, labels of the rank that printed a line, and what
other programs said.
"""

import math
import re
from dataclasses import dataclass, replace
from typing import Iterator, List, Optional, Pattern, Tuple

from runners.record import Unreadable

_COLOUR = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# What `mpirun --tag-output`, `srun --label` and pdsh put before a line.
_LABEL = re.compile(r"\s*(?:\[\d+,\d+\]<std\w+>:|[\w.-]+: )?\s*")

# NVIDIA's own title comes before HPL's, or stands alone.
_VENDOR_TITLE = re.compile(r"HPL-(NVIDIA \d\S*)\s+--")
_TITLE = re.compile(r"HPLinpack (\d\S*)\s+--")
# A word may stand before the variant (HPL_AI) or follow it; NVIDIA adds columns after the rate.
# Lengths are limited, so that no damaged row makes a number beyond what float can hold.
_ROW = re.compile(
    r"(?P<variant>(?:\S+ +)?W[RC]\d\S*(?: [A-Z]\S*)?)"
    r"\s+(?P<N>\d{1,9})\s+(?P<NB>\d{1,9})\s+(?P<P>\d{1,9})\s+(?P<Q>\d{1,9})"
    r"\s+(?P<time>\d{1,12}\.\d{1,9})\s+(?P<rate>\d\.\d{1,9}e[+-]\d\d|-?(?:inf|nan))(?:\s[\s()\d.e+-]*)?$",
    re.ASCII,
)
_RESIDUAL = re.compile(
    r"\|\|Ax-b\|\|_oo/\([^=]*\)=\s*(?P<residual>\d+(?:\.\d+)?(?:[eE][+-]\d+)?|-?(?:inf|nan|INF|NAN))"
    r"\s+\.+\s+(?P<check>PASSED|FAILED)$",
    re.ASCII,
)
_FINISHED = re.compile(r"Finished\s+(\d{1,9}) tests")
_SKIPPED = re.compile(r"(\d{1,9}) tests skipped")
_COMPLAINT = re.compile(r">>> (.*) <<<")
_RULE = "=" * 80


@dataclass(frozen=True)
class Row:
    """One line of HPL's result table with its residual check.

    `time_text` (s) and `rate_text` (Gflop/s) are as printed, since their last digit is
    their precision. `check` is PASSED, FAILED or unchecked; `residual` is None when unchecked.
    """

    variant: str
    N: int
    NB: int
    P: int
    Q: int
    time_text: str
    rate_text: str
    residual: Optional[float] = None
    check: str = "unchecked"


@dataclass(frozen=True)
class Run:
    """One run of xhpl in an output: the version in its title, empty when that is missing; its complete
    rows; and why these are not all results that were asked for, empty when they are."""

    version: str
    rows: Tuple[Row, ...]
    fault: str


def rows(text: str) -> List[Row]:
    """All results in the complete output of one run of xhpl.

    Raises Unreadable when there is another number of runs, when the run did not reach its end, or when
    lines are missing from the output.
    """
    found = runs(text)
    if len(found) != 1:
        raise Unreadable(f"{len(found)} runs of HPL in one output" if found else "not an output of HPL 2.x")
    if found[0].fault or not found[0].version:
        raise Unreadable(found[0].fault or "HPL's title is missing: the beginning of the output is cut off")
    return list(found[0].rows)


def runs(text: str) -> List[Run]:
    """Every run of xhpl in a file of unknown origin; nothing else in it matters, and nothing is raised.

    A row is complete when its residual check, or the rule that ends an unchecked row, follows it.
    """
    return [run for run in map(_read, _split(text)) if run]


def operations(order: int) -> float:
    """Floating-point operations that HPL counts for order N: 2/3 N^3 + 3/2 N^2 (HPL_pdtest.c)."""
    return 2 / 3 * order**3 + 3 / 2 * order**2


def require_consistent(row: Row) -> None:
    """Raise Unreadable when the row's rate is not operations / time within what rounding both may hide."""
    time, time_slack = float(row.time_text), _half_digit(row.time_text)
    rate, rate_slack = float(row.rate_text), _half_digit(row.rate_text)
    work = operations(row.N) / 1e9
    slowest = work / (time + time_slack)
    fastest = work / (time - time_slack) if time > time_slack else math.inf
    # The tiny factor is for the arithmetic here, not for HPL's.
    if not slowest * (1 - 1e-9) <= rate + rate_slack or not rate - rate_slack <= fastest * (1 + 1e-9):
        raise Unreadable(
            f"N = {row.N} in {row.time_text} s is {slowest:.4g} to {fastest:.4g} Gflop/s, "
            f"but {row.rate_text} is printed"
        )


def _split(text: str) -> Iterator[List[str]]:
    """The lines of each run, and of what lies between runs."""
    run: List[str] = []
    for line in _lines(text):
        # NVIDIA's title is part of the run whose HPL title follows within a few lines.
        if _VENDOR_TITLE.match(line) or _TITLE.match(line) and not any(map(_VENDOR_TITLE.match, run[-4:])):
            yield run
            run = []
        run.append(line)
        if line.startswith(_RULE) and _ended(run):  # most lines are no rule
            yield run
            run = []
    yield run


def _lines(text: str) -> List[str]:
    """All lines without colours, labels and outer blanks."""
    raw = _COLOUR.sub("", text).replace("\r", "\n").split("\n")
    lines = [line[_LABEL.match(line).end() :].rstrip() for line in raw]
    # A row that no newline ends may be cut inside its last number.
    return lines[:-1] if _ROW.match(lines[-1]) else lines


def _ended(run: List[str]) -> bool:
    """Whether the last line is the rule below HPL's last words; a line or two of others may come between."""
    return bool(run) and run[-1].startswith(_RULE) and "End of Tests." in run[-6:-1]


def _read(lines: List[str]) -> Optional[Run]:
    """The run that these lines print, or None when they are not a run's."""
    found: List[Row] = []
    pending: Optional[Row] = None
    for line in lines:
        row = _ROW.match(line) if "WR" in line or "WC" in line else None  # it looks at a line many times
        residual = _RESIDUAL.match(line)
        if pending and residual:
            found.append(replace(pending, residual=float(residual["residual"]), check=residual["check"]))
            pending = None
        elif pending and (row or line.startswith(_RULE)):
            found.append(pending)
            pending = None
        if row:
            sizes = {name: int(row[name]) for name in ("N", "NB", "P", "Q")}
            variant = " ".join(row["variant"].split())
            pending = Row(variant, time_text=row["time"], rate_text=row["rate"], **sizes)
    version = _first(_VENDOR_TITLE, lines) or _first(_TITLE, lines)
    ended = _ended(lines)
    if not (version or found or pending or ended):
        return None
    fault = _miscount(lines, len(found)) if ended else _stop(found, pending)
    complaint = _first(_COMPLAINT, lines)
    return Run(version, tuple(found), f"{fault}: {complaint}" if fault and complaint else fault)


def _miscount(lines: List[str], printed: int) -> str:
    """How HPL's closing count contradicts the number of rows, or empty."""
    finished, skipped = _first(_FINISHED, lines), _first(_SKIPPED, lines)
    if not finished or not skipped:
        return "HPL's closing count of tests is missing"
    # A test that is skipped for want of memory has no row, one skipped for a singular matrix has.
    if not int(finished) - int(skipped) <= printed <= int(finished):
        return f"HPL counts {finished} tests, {skipped} of them skipped, but {printed} results are printed"
    return "" if printed else f"HPL skipped all of {finished} tests"


def _stop(found: List[Row], pending: Optional[Row]) -> str:
    """Where a run without an end stopped."""
    stop = "HPL did not reach 'End of Tests.': the run was stopped or its output cut off"
    if pending:
        return f"{stop} before the check of N = {pending.N}"
    return stop if found else f"{stop} before its first result"


def _first(pattern: Pattern[str], lines: List[str]) -> str:
    """The group of the first line that matches, or empty."""
    return next((found[1] for found in map(pattern.match, lines) if found), "")


def _half_digit(printed: str) -> float:
    """Half a unit of the last printed digit of a number such as 12.34 or 1.234e+01."""
    mantissa, _, exponent = printed.partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
