"""High Performance Linpack (xhpl of HPL 2.x): the rate at which n nodes solve a dense linear system."""

import math
import re
from dataclasses import dataclass, replace
from typing import List, Optional

from runners import hpl_dat
from runners.record import Command, InvalidRun, Reading, Result, Runner, Settings, Transcript, Unreadable

_BANNER = re.compile(r"^HPLinpack (\S+) ", re.M)
_ROW = re.compile(
    r"^(?P<variant>W[RC]\S+)\s+(?P<N>\d+)\s+(?P<NB>\d+)\s+(?P<P>\d+)\s+(?P<Q>\d+)"
    r"\s+(?P<time>\d+\.\d+)\s+(?P<rate>\d\.\d+e[+-]\d+)\s*$"
)
_RESIDUAL = re.compile(r"^\|\|Ax-b\|\|_oo/\(.*\)=\s*(?P<residual>\S+)\s+\.+\s+(?P<check>PASSED|FAILED)\s*$")
_FINISHED = re.compile(r"^Finished\s+(\d+) tests", re.M)
_SKIPPED = re.compile(r"^\s+(\d+) tests skipped", re.M)
_COMPLAINT = re.compile(r"^>>> (.*) <<<", re.M)
_END = re.compile(r"^End of Tests\.\n={80}$", re.M)


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


def commands(point: Settings) -> List[Command]:
    """One xhpl over all nodes of the point, one process a node."""
    deck = hpl_dat.render(point)
    return [Command(("xhpl",), ranks=point["nodes"], files={"HPL.dat": deck}, timeout_s=point["timeout_s"])]


def rows(text: str) -> List[Row]:
    """All results in the complete output of one run of xhpl.

    Raises Unreadable when the run did not reach its end, lines are missing from the output,
    or a printed rate contradicts its own N and time.
    """
    runs = len(_BANNER.findall(text))
    if runs != 1:
        raise Unreadable("not an output of HPL 2.x" if runs == 0 else f"{runs} runs of HPL in one output")
    if not _END.search(text):
        raise Unreadable("HPL did not reach 'End of Tests.': the run was stopped or its output cut off")
    found: List[Row] = []
    for line in text.splitlines():
        row, residual = _ROW.match(line), _RESIDUAL.match(line)
        if row:
            sizes = {name: int(row[name]) for name in ("N", "NB", "P", "Q")}
            found.append(Row(row["variant"], time_text=row["time"], rate_text=row["rate"], **sizes))
        elif residual and found:
            found[-1] = replace(found[-1], residual=float(residual["residual"]), check=residual["check"])
    finished, skipped = _FINISHED.search(text), _SKIPPED.search(text)
    if not finished or not skipped:
        raise Unreadable("HPL's closing count of tests is missing")
    tests, left_out = int(finished[1]), int(skipped[1])
    # A test that is skipped for want of memory has no row, one skipped for a singular matrix has.
    if not tests - left_out <= len(found) <= tests:
        raise Unreadable(
            f"HPL counts {tests} tests, {left_out} of them skipped, but {len(found)} results are printed"
        )
    for row in found:
        _require_consistent(row)
    return found


def parse(transcript: Transcript) -> List[Reading]:
    """The `readings` of the trial's one result.

    Raises InvalidRun when the run solved another problem than the point asks for; otherwise as
    `rows` and `readings` do.
    """
    text = transcript.executions[-1].stdout
    found = rows(text)
    if len(found) != 1:
        complaint = _COMPLAINT.search(text)
        why = f": {complaint[1]}" if complaint else ""
        raise Unreadable(f"{len(found)} results where one was expected{why}")
    row = found[0]
    for name in ("N", "NB", "P", "Q"):
        wanted = transcript.trial.point.get(name, getattr(row, name))
        if getattr(row, name) != wanted:
            raise InvalidRun(f"HPL ran with {name} {getattr(row, name)}, {wanted} was asked for")
    return readings(row)


def results(text: str) -> List[Result]:
    """Every result in an output, with its variant, N, NB, P and Q; raises Unreadable as `rows` does."""
    found = []
    for row in rows(text):
        settings = {"variant": row.variant, "N": row.N, "NB": row.NB, "P": row.P, "Q": row.Q}
        try:
            found.append(Result(tuple(readings(row)), settings))
        except Unreadable as refusal:
            found.append(Result((), settings, str(refusal)))
    return found


def readings(row: Row) -> List[Reading]:
    """hpl_rate in Gflop/s, hpl_time in s and the scaled residual of one result.

    Raises InvalidRun when the residual check failed or was not made, Unreadable when the
    time is too short to have been printed.
    """
    if row.residual is None:
        raise InvalidRun("the residual was not checked: set a threshold above 0 (16 is HPL's own)")
    if row.check != "PASSED" or not math.isfinite(row.residual):
        raise InvalidRun(f"the residual check {row.check}: scaled residual {row.residual:g}")
    if float(row.time_text) == 0:
        raise Unreadable(f"the time is printed as {row.time_text} s: N = {row.N} is too small to be timed")
    return [
        Reading("hpl_rate", float(row.rate_text), "Gflop/s"),
        Reading("hpl_time", float(row.time_text), "s"),
        Reading("hpl_residual", row.residual, "1"),
    ]


def operations(order: int) -> float:
    """Floating-point operations that HPL counts for order N: 2/3 N^3 + 3/2 N^2 (HPL_pdtest.c)."""
    return 2 / 3 * order**3 + 3 / 2 * order**2


def _require_consistent(row: Row) -> None:
    """Refuse a row whose rate is not operations / time within what rounding both may hide."""
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


def _half_digit(printed: str) -> float:
    """Half a unit of the last printed digit of a number such as 12.34 or 1.234e+01."""
    mantissa, _, exponent = printed.partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


RUNNER = Runner("hpl", ("xhpl",), commands, parse, results)
