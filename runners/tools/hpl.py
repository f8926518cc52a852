"""High Performance Linpack (xhpl of HPL 2.x): the rate at which n nodes solve a dense linear
system.

HPL 2.0 to 2.3 and the vendors' builds (Intel, AMD, NVIDIA) print the same table: a row that begins
with the encoded variant (WR for row-major, WC for column-major process grids), then a line with the
scaled residual. Around it there are progress lines, colours, labels of the rank that printed a
line, and what other programs printed.
"""

import math
import re
import time
from calendar import timegm
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Optional

from runners import hpl_dat, payload
from runners.outputs import absent, is_output_of
from runners.parsing import (
    PROCESSES,
    SIMULATED,
    attempt,
    rate_agrees,
    refused,
    simulator,
    without_labels,
)
from runners.records.description_rules import COUNT, NAME, POSITIVE, YES_OR_NO
from runners.records.record import (
    KINDS,
    Command,
    Contradictory,
    Cut,
    Description,
    Failed,
    FalloffError,
    Foreign,
    InvalidRun,
    Mark,
    Quantity,
    Readings,
    Result,
    Settings,
    Tool,
    Transcript,
    Unreadable,
    Unsupported,
)

# By BLAS, and whether the payload is counted.
_BINARIES = {
    ("openblas", False): "xhpl",
    ("openblas", True): "xhpl_payload",
    ("reference", False): "xhpl_reference",
}

# What pdsh puts before a line, also where other lines are without it.
_LABEL = re.compile(r"^\s*(?:[\w.-]+: )?\s*")

# NVIDIA's own title comes before HPL's, or stands alone.
_VENDOR_TITLE = re.compile(r"HPL-(NVIDIA \d\S*)\s+--")
_TITLE = re.compile(r"HPLinpack (\d\S*)\s+--")
# A word may stand before the variant (HPL_AI) or follow it (AMD's number of its row swap); NVIDIA
# adds columns after the rate. Lengths are limited, so that no damaged row makes a number beyond
# what float can hold.
_ROW = re.compile(
    r"(?P<variant>(?:\S+ +)?W[RC][A-Z]?\d\S*(?: [A-Z]\S*| \d{1,3})?)"
    r"\s+(?P<N>\d{1,9})\s+(?P<NB>\d{1,9})\s+(?P<P>\d{1,9})\s+(?P<Q>\d{1,9})"
    r"\s+(?P<time>\d{1,12}\.\d{1,9})\s+(?P<rate>\d\.\d{1,9}e[+-]\d\d|-?(?:inf|nan))(?:\s[\s()\d.e+-]*)?$",
    re.ASCII,
)
_RESIDUAL = re.compile(
    r"\|\|Ax-b\|\|_oo/\([^=]*\)=\s*(?P<residual>\d+(?:\.\d+)?(?:[eE][+-]\d+)?|-?(?:inf|nan|INF|NAN))"
    r"\s+\.+\s+(?P<check>PASSED|FAILED)$",
    re.ASCII,
)
# NVIDIA's first releases print a rate that is up to 0.14 % off what N and time give, beyond all
# rounding.
_VENDOR_OFF = 2e-3
# s of this machine for each rank and column, times log2 of the grid's rows, and for each rank and
# panel
_COLUMN_S, _PANEL_S = 1.4e-6, 2e-4
# HPL prints the moments before and after each test, in whole seconds.
_MOMENT = re.compile(
    r"HPL(?:MXP)?_pdgesv\(\) (start|end) time +\w{3} (\w{3} +\d{1,2} \d\d:\d\d:\d\d \d{4})$"
)
_MOMENT_SLACK_S = 3.0
_HEADINGS = re.compile(r"T/V +(?:SWP +)?N +NB ")
_MIXED = "HPLMXP_"  # how AMD's HPL-MxP names its functions, whose rows are as HPL's
_MIXED_RESULT = "HPL MxP Result"  # heads NVIDIA's
_UNCHECKED = "tests completed without checking"
_TIMES = "Timing Phase "  # heads AMD's table of phases, which a rule ends before the residual
_FINISHED = re.compile(r"Finished\s+(\d{1,9}) tests")
_SKIPPED = re.compile(r"(\d{1,9}) tests skipped")
_COMPLAINT = re.compile(r">>> (.*) <<<")
_RULE = "=" * 80
# What HPL prints around its rows, at least one of them in any piece of a whole output.
_AROUND = re.compile(
    r"={8}|-{8}|T/V |\|\|Ax-b\|\||HPL_pdgesv|Max aggregated|HPLinpack |End of Tests"
)
_ONLY_ROWS = (
    "the line with its residual check is not in this file, only rows: give the whole output"
)
_NEIGHBOURS = "lines are missing, so that its residual may be another row's"

# Printed below a result when HPL was built with HPL_DETAILED_TIMING.
_TIMER = re.compile(
    r"^(?:\+ )?Max aggregated wall time ([a-z ]+?) *(?:\. )*: +(\d{1,12}\.\d\d)$", re.M
)
_PHASES = {
    "rfact": "hpl_rfact_time",
    "mxswp": "hpl_mxswp_time",
    "update": "hpl_update_time",
    "laswp": "hpl_laswp_time",
    "up tr sv": "hpl_ptrsv_time",
}


@dataclass(frozen=True)
class Row:
    """One line of HPL's result table with its residual check.

    `sizes` are N, NB, P and Q. `time_text` (s) and `rate_text` (Gflop/s) are as printed, since
    their last digit is their precision. `check` is PASSED, FAILED or unchecked; `residual` is None
    when unchecked. `doubt` is why the residual is missing or may be another row's; `clock` says
    that HPL's dates contradict the time.
    """

    variant: str
    sizes: Mapping[str, int]
    time_text: str
    rate_text: str
    residual: Optional[float] = None
    check: str = "unchecked"
    doubt: Optional[Unreadable] = None
    clock: str = ""


@dataclass(frozen=True)
class Run:
    """One run of xhpl in an output: the version in its title, empty when that is missing; its
    complete rows; and why these are not all results that were asked for, None when they are."""

    version: str
    rows: tuple[Row, ...]
    fault: Optional[Unreadable]


def commands(point: Settings) -> list[Command]:
    """One xhpl over all nodes of the point, `ranks_per_node` (else one) processes on each.

    `blas` and `payload` choose among the binaries that are built here; raises FalloffError when
    there is none for them.
    """
    blas, counted = point.get("blas", "openblas"), point.get("payload", False)
    if (blas, counted) not in _BINARIES:
        pairs = ", ".join(f"{name!r} with payload {value}" for name, value in _BINARIES)
        raise FalloffError(f"no xhpl of blas {blas!r} with payload {counted}, only {pairs}")
    argv, ranks = (_BINARIES[blas, counted],), point.get("ranks_per_node", 1)
    files, limit = {"HPL.dat": hpl_dat.render(point)}, point["timeout_s"]
    return [Command(argv, point["nodes"] * ranks, ranks, files=files, timeout_s=limit)]


def parse(transcript: Transcript) -> Readings:
    """The `readings` of the trial's one result; where they are printed also its phases and payload
    and, in a simulation, what the simulator took.
    """
    text, point = transcript.executions[-1].stdout, transcript.trial.point
    printed = rows(text)
    if len(printed) != 1:
        raise Contradictory(f"{len(printed)} results where one was expected")
    row = printed[0]
    for name, size in row.sizes.items():
        if size != point.get(name, size):
            raise InvalidRun(f"HPL ran with {name} {size}, {point[name]} was asked for")
    sent = payload.readings(text)
    if point.get("payload") and not sent:
        raise Cut("the payload table is missing")
    table = SIMULATED.search(text)
    # A simulation computes nothing that could be checked.
    measured = readings(row, checked=transcript.evidence != "simulated")
    return {**measured, **phases(text), **sent, **(simulator(table[0]) if table else {})}


def phases(stdout: str) -> Readings:
    """Times [s] of HPL's phases, each the most that any process spent in it; none where they are
    missing.

    hpl_rfact_time is the panels' factorisation with hpl_mxswp_time, the search and exchange of
    pivots; hpl_update_time the trailing matrix's update with hpl_laswp_time, its row swaps; and
    hpl_ptrsv_time the triangular solution. With look-ahead they overlap other processes' phases and
    need not add up.
    """
    times = dict(_TIMER.findall(stdout))
    return {ours: float(times[name]) for name, ours in _PHASES.items() if name in times}


def results(text: str) -> list[Result]:
    """Every complete result in an output that may hold several runs, stopped ones and other lines.

    The settings are the number of the run in the file, HPL's version, the variant, N, NB, P and Q.
    A row that must not be used is refused with the reason; so is, without N, what is missing from a
    run.
    """
    if is_output_of("hpcc", text):
        raise Foreign("an output of HPCC, not of xhpl: it is read as hpcc")
    printed = runs(text)
    if not printed and _MIXED_RESULT in text:
        raise Unsupported("a result of HPL-MxP in NVIDIA's form, which has no time")
    if not printed:
        raise absent("hpl", text, "an output of HPL 2.x")
    if not any(run.rows for run in printed):
        last, several = printed[-1], f"{len(printed)} runs, of which the last is one of"
        what = several if len(printed) > 1 else "an output of"
        why = last.fault or Cut("no row is here")
        raise KINDS[why.kind](f"{what} HPL {last.version or '2.x'} without a result: {why}")
    listed = []
    for number, run in enumerate(printed, start=1):
        origin = {"run": number, "version": run.version or "unknown"}
        for row in run.rows:
            settings = {**origin, "variant": row.variant, **row.sizes}
            listed.append(_result(run, row, settings))
        if run.fault:
            listed.append(refused(run.fault, origin))
    return listed


def _result(run: Run, row: Row, settings: Settings) -> Result:
    """A row as a result; of NVIDIA, or of nobody knows whom, its rate may be a little off, which is
    noted.
    """
    off = _VENDOR_OFF if not run.version or run.version.startswith("NVIDIA") else 0.0
    work, seconds, note = operations(row.sizes["N"]) / 1e9, float(row.time_text), ""
    if off and work and seconds and not rate_agrees(work, row.time_text, row.rate_text):
        part = 100 * (float(row.rate_text) * seconds / work - 1)
        note = f"the printed rate is {part:+.2f} % off what N and time give, as NVIDIA's can be"
    if row.clock:
        note = "; ".join(filter(None, [note, f"{row.clock}: was the clock set meanwhile?"]))
    return attempt(lambda: readings(row, off=off), settings, note)


def readings(row: Row, checked: bool = True, off: float = 0.0) -> Readings:
    """hpl_rate in Gflop/s, hpl_time in s and, where it had to be `checked`, the scaled residual.

    The rate may be `off` by this part of what N and time give, beyond the rounding of what is
    printed.
    """
    if min(row.sizes.values()) < 1:
        sizes = ", ".join(f"{name} = {size}" for name, size in row.sizes.items())
        raise Contradictory(f"{sizes}: each of them is at least 1")
    if checked and row.doubt:
        raise row.doubt
    if checked and row.residual is None:
        raise InvalidRun("the residual was not checked: set a threshold above 0 (16 is HPL's own)")
    if (
        row.residual is not None
        and checked
        and not (row.check == "PASSED" and math.isfinite(row.residual))
    ):
        raise InvalidRun(f"the residual check {row.check}: scaled residual {row.residual:g}")
    seconds, rate, order = row.time_text, row.rate_text, row.sizes["N"]
    if not rate_agrees(operations(order) / 1e9, seconds, rate, off):
        raise Contradictory(f"N = {order} in {seconds} s does not give the {rate} Gflop/s printed")
    if float(seconds) == 0:
        raise Failed(f"the time is printed as {seconds} s: N = {order} is too small to be timed")
    rates = {"hpl_rate": float(rate), "hpl_time": float(seconds)}
    return {**rates, "hpl_residual": row.residual} if checked else rates


def operations(order: int) -> float:
    """Floating-point operations that HPL counts for order N: 2/3 N^3 + 3/2 N^2 (HPL_pdtest.c)."""
    return 2 / 3 * order**3 + 3 / 2 * order**2


def rows(text: str) -> list[Row]:
    """All results in the complete output of one run of xhpl."""
    printed = runs(text)
    if len(printed) != 1:
        if not printed:
            raise absent("hpl", text, "an output of HPL 2.x")
        raise Contradictory(f"{len(printed)} runs of HPL in one output")
    (run,) = printed
    if run.fault or not run.version:
        raise run.fault or Cut("HPL's title is missing: the beginning of the output is cut off")
    return list(run.rows)


def runs(text: str) -> list[Run]:
    """Every run of xhpl in a file of unknown origin; nothing else in it matters, and nothing is
    raised.

    A row is complete when its residual check, or the rule that ends an unchecked row, follows it.
    """
    return [run for run in map(_read, _split(text)) if run]


def _split(text: str) -> Iterator[list[str]]:
    """The lines of each run, and of what lies between runs, without colours, labels and outer
    blanks.
    """
    run: list[str] = []
    raw = without_labels(text).replace("\r", "\n").split("\n")
    lines = [_LABEL.sub("", line).rstrip() for line in raw]
    if _ROW.match(lines[-1]):  # no newline ends it: it may be cut inside its last number
        lines.pop()
    for line in lines:
        # NVIDIA's title is part of the run whose HPL title follows within a few lines.
        is_first = _TITLE.match(line) and not any(map(_VENDOR_TITLE.match, run[-4:]))
        if is_first or _VENDOR_TITLE.match(line):
            yield run
            run = []
        run.append(line)
        if _ended(run):
            yield run
            run = []
    yield run


def _ended(run: list[str]) -> bool:
    """Whether the last line is the rule below HPL's last words; a line or two of others may come
    between.
    """
    return bool(run) and run[-1].startswith(_RULE) and "End of Tests." in run[-6:-1]


def _read(lines: list[str]) -> Optional[Run]:
    """The run that these lines print, or None when they are not a run's."""
    title = _first(_TITLE, lines)
    if title.startswith("1."):
        return Run(
            title, (), Unsupported("its three residual checks are not read, only those of 2.x")
        )
    complete: list[Row] = []
    pending: Optional[Row] = None
    is_checked = not any(_UNCHECKED in line for line in lines)
    moments: list[str] = []
    is_new = False  # whether another table has begun since the row
    in_times = False
    orphans = 0  # residuals without a row
    for line in lines:
        moment, residual = _MOMENT.match(line), _RESIDUAL.match(line)
        moments += [moment[2]] if moment else []
        is_new = is_new or bool(_HEADINGS.match(line))
        # The pattern of a row looks at a line many times.
        row = _ROW.match(line) if "WR" in line or "WC" in line else None
        if residual and pending:
            complete.append(
                replace(
                    pending,
                    residual=float(residual["residual"]),
                    check=residual["check"],
                    doubt=Cut(f"{_NEIGHBOURS}: another table begins between them")
                    if is_new
                    else None,
                    clock=_off(pending, moments),
                )
            )
            pending = None
        elif residual:
            orphans += 1
        elif pending and (row or line.startswith(_RULE) and not in_times):
            complete.append(pending)
            pending = None
        in_times = line.startswith(_TIMES) or in_times and not line.startswith(_RULE)
        if row:
            sizes = {name: int(row[name]) for name in ("N", "NB", "P", "Q")}
            pending = Row(" ".join(row["variant"].split()), sizes, row["time"], row["rate"])
            moments, is_new = [], False
    if any(line.startswith(_MIXED) for line in lines):
        complete = [replace(row, variant=f"HPL_MxP {row.variant}") for row in complete]
    version, ended = _first(_VENDOR_TITLE, lines) or title, _ended(lines)
    if not (version or ended or any(map(_AROUND.match, lines))):
        alone = [replace(row, doubt=Cut(_ONLY_ROWS)) for row in (*complete, pending) if row]
        return Run("", tuple(alone), None) if alone else None
    if not (version or complete or pending or ended):
        return None
    fault = _miscount(lines, len(complete)) if ended else _stop(complete, pending)
    finished = _first(_FINISHED, lines)
    # Whoever lost the count may have lost a row as well.
    lost = fault if ended and (not finished or len(complete) < int(finished)) else None
    lost = Cut(f"{orphans} residuals stand alone") if orphans else lost
    # Only HPL's own count says that no row is missing, so that the clock was wrong and not the
    # residual.
    is_counted = ended and finished == str(len(complete)) and not orphans
    complaint = _first(_COMPLAINT, lines)
    if fault and complaint:
        fault = KINDS[fault.kind](f"{fault}: {complaint}")
    return Run(
        version, tuple(_doubted(row, lost, is_counted, is_checked) for row in complete), fault
    )


def _doubted(row: Row, lost: Optional[Unreadable], is_counted: bool, is_checked: bool) -> Row:
    """A row with the doubt about its residual that its dates, and what is `lost`, leave."""
    doubt = row.doubt
    if is_checked and row.residual is None:
        doubt = Cut("the line with its residual check is missing")
    elif not doubt and row.clock and not is_counted:
        doubt = Contradictory(f"{_NEIGHBOURS}: {row.clock}")
    elif not doubt and lost:
        doubt = KINDS[lost.kind](f"{_NEIGHBOURS}: {lost}")
    return replace(row, doubt=doubt)


def _off(row: Row, moments: list[str]) -> str:
    """How the dates of a row's test contradict its time, or empty."""
    try:
        began, ended = (timegm(time.strptime(moment, "%b %d %H:%M:%S %Y")) for moment in moments)
    except (ValueError, OverflowError):
        return ""  # not both are there, or no dates
    ran, took = ended - began, float(row.time_text)
    # The clock may have gone from summer to winter or back.
    if min(abs(ran - took + shift) for shift in (0, 3600, -3600)) <= _MOMENT_SLACK_S:
        return ""
    return f"it ran for {ran:.0f} s by its dates, the row says {row.time_text} s"


def _miscount(lines: list[str], printed: int) -> Optional[Unreadable]:
    """How HPL's closing count contradicts the number of rows, if it does."""
    finished, skipped = _first(_FINISHED, lines), _first(_SKIPPED, lines)
    if not finished or not skipped:
        return Cut("HPL's closing count of tests is missing")
    # A test that is skipped for want of memory has no row, one skipped for a singular matrix has.
    if not int(finished) - int(skipped) <= printed <= int(finished):
        return Contradictory(
            f"HPL counts {finished} tests, {skipped} of them skipped, "
            f"but {printed} results are printed"
        )
    return None if printed else Failed(f"HPL skipped all of {finished} tests")


def _stop(complete: list[Row], pending: Optional[Row]) -> Cut:
    """Where a run without an end stopped."""
    stop = "HPL did not reach 'End of Tests.': the run was stopped or its output cut off"
    if pending:
        return Cut(f"{stop} before the check of N = {pending.sizes['N']}")
    return Cut(stop if complete else f"{stop} before its first result")


def _first(pattern: re.Pattern[str], lines: list[str]) -> str:
    """The group of the first line that matches, or empty."""
    return next((match[1] for match in map(pattern.match, lines) if match), "")


def seconds(point: Settings, testbed: Description) -> Optional[float]:
    """How long a run takes on paced nodes that never wait [s]; a simulation by its events, of which
    each column of the matrix and each panel makes some on every rank (fitted to the references,
    mostly within a factor of 2). None of other nodes."""
    if testbed["kind"] == "simulated" and {"N", "NB", "P", "Q"} <= point.keys():
        per_column = _COLUMN_S * math.log2(point["P"]) + _PANEL_S / point["NB"]
        return point["N"] * point["P"] * point["Q"] * per_column
    node = testbed.get("node", {})
    if "flop_s" not in node or not {"N", "nodes"} <= point.keys():
        return None
    slower = point.get("dilation", node.get("dilation", 1)) / node.get("dilation", 1)
    return 2 / 3 * point["N"] ** 3 * slower / (point["nodes"] * node["flop_s"])


READINGS = {
    "hpl_rate": Quantity("HPL rate", "Gflop/s"),
    "hpl_time": Quantity("HPL time to solution", "s"),
    "hpl_mxswp_time": Quantity("time of HPL's search and exchange of pivots", "s"),
    "hpl_rfact_time": Quantity("time of HPL's panel factorisations", "s"),
    "hpl_update_time": Quantity("time of HPL's updates, with their row swaps", "s"),
    "hpl_laswp_time": Quantity("time of the row swaps in HPL's updates", "s"),
    "hpl_ptrsv_time": Quantity("time of HPL's triangular solution", "s"),
    "hpl_residual": Quantity("HPL scaled residual", "1"),
}


TOOL = Tool(
    "hpl",
    commands,
    results,
    settings={
        "nodes": COUNT,
        "ranks_per_node": COUNT,
        **hpl_dat.SETTINGS,
        "blas": NAME,
        "payload": YES_OR_NO,
        "timeout_s": POSITIVE,
    },
    readings=READINGS,
    factors={
        "N": Quantity("order of the matrix", "1"),
        "NB": Quantity("block size of the matrix", "1"),
        "P": Quantity("rows of the process grid", "1"),
        "Q": Quantity("columns of the process grid", "1"),
        "DEPTH": Quantity("depth of look-ahead", "1"),
        "ranks_per_node": Quantity("MPI processes on each node", "1"),
        "blas": Quantity("BLAS that HPL was built with"),
        "variant": Quantity("variant of HPL's algorithm, as an imported file encodes it"),
        **PROCESSES,
        "rpeak": Quantity("theoretical peak of a node, as given for an imported file", "flop/s"),
    },
    marks=(
        Mark(r"HPLinpack \d", "an output of HPL"),
        Mark(r"HPL MxP Result", "an output of HPL-MxP"),
        Mark(
            r"^(?:\S{1,80}: ?)?[ \t]*(?:\S{1,20}[ \t]+)?W[RC][A-Z]?\d\S*(?: [A-Z]\S*)?"
            r"(?:[ \t]+\d+){4,5}[ \t]+\d+\.\d+[ \t]+"
            r"\d\.\d+e",
            "rows of HPL's table",
            weak=True,
        ),
    ),
    result_line=r"^.*\bW[RC]\d\S* .*\d\.\d+e[+-]\d\d.*$",
    aliases=("xhpl", "linpack"),
    packages=("openmpi-bin", "libopenmpi-dev", "libopenblas-dev"),
    seconds=seconds,
    parse_trial=parse,
)
