"""High Performance Linpack (xhpl of HPL 2.x): the rate at which n nodes solve a dense linear system."""

import math
from typing import List

from runners import hpl_dat, hpl_phases, payload, simulated_output
from runners.hpl_output import Row, require_consistent, rows, runs
from runners.record import (
    Command,
    FalloffError,
    InvalidRun,
    Reading,
    Result,
    Runner,
    Settings,
    Transcript,
    Unreadable,
)

# By BLAS, and whether the payload is counted.
_BINARIES = {
    ("openblas", False): "xhpl",
    ("openblas", True): "xhpl_payload",
    ("reference", False): "xhpl_reference",
}


def commands(point: Settings) -> List[Command]:
    """One xhpl over all nodes of the point, `ranks_per_node` (else one) processes on each.

    `blas` and `payload` choose among the binaries that are built here; raises FalloffError when there is none
    for them.
    """
    wanted = point.get("blas", "openblas"), point.get("payload", False)
    if wanted not in _BINARIES:
        there = ", ".join(f"{blas!r} with payload {counted}" for blas, counted in _BINARIES)
        raise FalloffError(f"there is no xhpl of blas {wanted[0]!r} with payload {wanted[1]}, only {there}")
    argv, deck = (_BINARIES[wanted],), hpl_dat.render(point)
    each = point.get("ranks_per_node", 1)
    files, limit = {"HPL.dat": deck}, point["timeout_s"]
    solver = Command(argv, ranks=point["nodes"] * each, ranks_per_node=each, files=files, timeout_s=limit)
    return [solver]


def parse(transcript: Transcript) -> List[Reading]:
    """The `readings` of the trial's one result, with the times of its phases and its payload where that was counted and, in a simulation,
    what the simulator took.

    Raises InvalidRun when the run solved another problem than the point asks for; otherwise as
    `rows`, `readings` and `payload.tables` do.
    """
    text = transcript.executions[-1].stdout
    found = rows(text)
    if len(found) != 1:
        raise Unreadable(f"{len(found)} results where one was expected")
    row = found[0]
    for name in ("N", "NB", "P", "Q"):
        wanted = transcript.trial.point.get(name, getattr(row, name))
        if getattr(row, name) != wanted:
            raise InvalidRun(f"HPL ran with {name} {getattr(row, name)}, {wanted} was asked for")
    checked = transcript.evidence != "simulated"  # a simulation computes nothing that could be checked
    return [
        *readings(row, checked),
        *hpl_phases.readings(text),
        *_payload(text, transcript.trial.point.get("payload", False)),
        *simulated_output.readings(text),
    ]


def results(text: str) -> List[Result]:
    """Every complete result in an output that may hold several runs, stopped ones and other programs' lines.

    The settings are the number of the run in the file, HPL's version, the variant, N, NB, P and Q. A row that
    must not be used is refused with the reason; so is, without N, what is missing from a run.
    Raises Unreadable, with what was found instead, when there is no complete row.
    """
    if "HPC Challenge Benchmark" in text:
        raise Unreadable("an output of HPCC, not of xhpl: it is read as hpcc")
    found = runs(text)
    if not found:
        raise Unreadable("not an output of HPL 2.x")
    if not any(run.rows for run in found):
        last = found[-1]
        what = "an output of" if len(found) == 1 else f"{len(found)} runs, of which the last is one of"
        raise Unreadable(f"{what} HPL {last.version or '2.x'} without a result: {last.fault}")
    listed = []
    for number, run in enumerate(found, start=1):
        origin = {"run": number, "version": run.version or "unknown"}
        listed += [_result(row, origin) for row in run.rows]
        if run.fault:
            listed.append(Result((), origin, run.fault))
    return listed


def _payload(text: str, wanted: bool) -> List[Reading]:
    """The readings of the output's one payload table, which may be missing unless it is `wanted`."""
    found = payload.tables(text)
    if len(found) > 1 or (wanted and not found):
        raise Unreadable(f"{len(found)} payload tables where one was expected")
    return payload.readings(found[0]) if found else []


def _result(row: Row, origin: Settings) -> Result:
    settings = {**origin, "variant": row.variant, "N": row.N, "NB": row.NB, "P": row.P, "Q": row.Q}
    try:
        return Result(tuple(readings(row)), settings)
    except Unreadable as refusal:
        return Result((), settings, str(refusal))


def readings(row: Row, checked: bool = True) -> List[Reading]:
    """hpl_rate in Gflop/s, hpl_time in s and, where it had to be `checked`, the scaled residual of one result.

    Raises InvalidRun when that check failed or was not made, Unreadable when the time is too short to
    have been printed or the rate contradicts size and time.
    """
    if checked:
        _require_passed(row)
    if float(row.time_text) == 0:
        raise Unreadable(f"the time is printed as {row.time_text} s: N = {row.N} is too small to be timed")
    require_consistent(row)
    found = [Reading("hpl_rate", float(row.rate_text), "Gflop/s"), Reading("hpl_time", float(row.time_text), "s")]
    return [*found, Reading("hpl_residual", row.residual, "1")] if checked else found


def _require_passed(row: Row) -> None:
    if row.residual is None:
        raise InvalidRun("the residual was not checked: set a threshold above 0 (16 is HPL's own)")
    if row.check != "PASSED" or not math.isfinite(row.residual):
        raise InvalidRun(f"the residual check {row.check}: scaled residual {row.residual:g}")


RUNNER = Runner("hpl", commands, parse, results)
