"""Intel MPI Benchmarks (IMB-MPI1: PingPong, Sendrecv, Exchange and the collective operations): only read, never run from here.

The unit of its Mbytes/sec changed between versions: 2^20 bytes up to 4.x, 10^6 bytes from 2018 on. Size and
time of every row tell which it is, so that no version has to be known.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Optional

from runners.outputs import absent
from runners.parsing import (
    COLLECTIVES,
    PROCESSES,
    TEST,
    attempt,
    in_unit,
    lost_sizes,
    message_sizes,
    not_understood,
    only_read,
    rate_agrees,
    refused,
    strange_lines,
    usable,
    without_interrupted,
    without_rows,
)
from runners.record import Contradictory, Cut, Mark, Reading, Result, Unreadable, Unsupported

_TITLE = re.compile(
    r"^[ \t]*# *Intel ?\(R\) MPI Benchmarks? (?:Suite )?V?(.{1,60}?), \S+ part", re.M
)
_SECTION = re.compile(r"^[ \t]*# Benchmarking (?:\(?Multi-\)?)?(\S+)(?=.*\n)", re.M)
_ENDED = re.compile(r"^[ \t]*# All processes entering MPI_Finalize", re.M)
_LARGEST = re.compile(r"^[ \t]*# Maximum message length in bytes:[ \t]*(\d{1,12})", re.M)
_COLUMNS = re.compile(
    r"^[ \t]*#bytes[ \t]+#repetitions[ \t]+t\[usec\][ \t]+Mbytes/sec[ \t]*$", re.M
)
# Lengths are limited, so that no damaged row makes a number beyond what float can hold.
_NUMBER = r"(\d{1,15}\.\d{1,9})"
_OTHER_COLUMNS = re.compile(r"^[ \t]*(?:Group[ \t]+)?#bytes\b.*\n", re.M)
_ROW = re.compile(
    rf"^[ \t]*(\d{{1,12}})[ \t]+\d{{1,12}}[ \t]+{_NUMBER}[ \t]+{_NUMBER}[ \t]*\n", re.M
)

_MEGA = (10**6, 2**20)
_GROUPS = re.compile(r"^[ \t]*# \( *(\d{1,6} groups of \d{1,6}) processes", re.M)  # at once: -multi
_PROCESSES = re.compile(r"^[ \t]*# #processes = (\d{1,6})", re.M)
# The messages of each process that a rate counts, for the tests that print one.
_COUNTED = {"sendrecv": 2, "exchange": 4}
_OPERATIONS = (
    "allreduce reduce reduce_scatter reduce_scatter_block allgather allgatherv gather gatherv scatter scatterv "
    "alltoall alltoallv bcast"
).split()
_OPERATION_COLUMNS = re.compile(
    r"^[ \t]*#bytes[ \t]+#repetitions[ \t]+t_min\[usec\][ \t]+t_max\[usec\][ \t]+t_avg\[usec\](?:[ \t]+Mbytes/sec)?[ \t]*$",
    re.M,
)
_OPERATION_ROW = re.compile(
    rf"^[ \t]*(\d{{1,12}})[ \t]+\d{{1,12}}[ \t]+{_NUMBER}[ \t]+{_NUMBER}[ \t]+{_NUMBER}(?:[ \t]+{_NUMBER})?[ \t]*\n",
    re.M,
)


def results(text: str) -> list[Result]:
    """One result for each table in the file, with its test, IMB's version and the largest size in bytes.

    Of PingPong the readings are lists over the sizes: message_size [B], message_time [s], half a round trip, and
    message_bandwidth [B/s], which is left out where the rows do not tell its unit; what was too small to be
    printed is None. Of Sendrecv, Exchange and the collective operations they are collective_time [s], the average over the
    processes, and message_bandwidth as far as it is printed. Other benchmarks are passed over. Raises Unreadable when no
    table can be used.
    """
    titles, sections = list(_TITLE.finditer(text)), list(_SECTION.finditer(text))
    if not titles and not sections:
        raise absent("imb", text, "an output of the Intel MPI Benchmarks")
    marks = sorted([*titles, *sections], key=lambda match: match.start())
    found, sizes, version, head = [], [], "unknown", ""
    for mark, end in zip(marks, [*(mark.start() for mark in marks[1:]), len(text)]):
        body = text[mark.end() : end]
        if mark.re is _TITLE:
            version, head = mark[1], body
        elif mark[1].lower() == "pingpong":
            found.append(_result(version, head, body, has_ended=mark is not marks[-1]))
            sizes.append([int(row[1]) for row in _ROW.finditer(body)])
        elif mark[1].lower() in (*_COUNTED, *_OPERATIONS):
            found.append(_operation(mark[1].lower(), version, head, body, mark is not marks[-1]))
            sizes.append([int(row[1]) for row in _OPERATION_ROW.finditer(body)])
        if _ENDED.search(body):  # what follows is of another run
            version, head = "unknown", ""
    if not found:
        if not sections:
            raise Cut("IMB did not reach its first benchmark: stopped or cut off")
        raise Unsupported(
            "an output of IMB without a PingPong, Sendrecv, Exchange or collective operation"
        )
    found = without_interrupted(found, sizes)
    return usable(found, "an output of IMB without a usable table: ")


def _result(version: str, head: str, body: str, has_ended: bool) -> Result:
    """The PingPong of a section; it `has_ended` where another section or run follows."""
    settings = {"test": f"pingpong{_groups(body)}", "version": version}
    columns, announced = _COLUMNS.search(body), _LARGEST.search(head)
    rows = _ROW.findall(body, columns.end()) if columns else []
    if not columns and _OTHER_COLUMNS.search(body):
        return refused(
            Unsupported("IMB's columns are other ones than those that are read"), settings
        )
    if not columns or not rows:
        return refused(without_rows(body, f"IMB {version}"), settings)
    sizes = [int(size) for size, *_ in rows]
    if announced and sizes[-1] != int(announced[1]):
        return refused(_stopped(sizes[-1], int(announced[1]), body, has_ended), settings)
    note = not_understood(strange_lines(body[columns.end() :], _ROW))
    note = "; ".join(filter(None, [note, lost_sizes(sizes)]))
    return attempt(lambda: _readings(rows), {**settings, "largest_bytes": sizes[-1]}, note)


def _operation(test: str, version: str, head: str, body: str, has_ended: bool) -> Result:
    """The table of Sendrecv, Exchange or a collective operation; it `has_ended` where another section or run follows."""
    processes = _PROCESSES.search(body)
    settings = {"test": f"{test}{_groups(body)}", "version": version}
    if processes:
        settings["processes"] = int(processes[1])
    columns, announced = _OPERATION_COLUMNS.search(body), _LARGEST.search(head)
    if not columns and _OTHER_COLUMNS.search(body):
        return refused(
            Unsupported("IMB's columns are other ones than those that are read"), settings
        )
    rows = _OPERATION_ROW.findall(body, columns.end()) if columns else []
    if not columns or not rows:
        return refused(without_rows(body, f"IMB {version}"), settings)
    sizes = [int(size) for size, *_ in rows]
    if announced and sizes[-1] < int(announced[1]) and not (has_ended or _ENDED.search(body)):
        return refused(_stopped(sizes[-1], int(announced[1]), body, has_ended), settings)
    note = not_understood(strange_lines(body[columns.end() :], _OPERATION_ROW))
    note = "; ".join(filter(None, [note, lost_sizes(sizes)]))
    read = attempt(lambda: _of_operation(rows, _COUNTED.get(test)), settings, note)
    return replace(read, settings={**settings, "largest_bytes": sizes[-1]})


def _groups(body: str) -> str:
    """The groups of processes that a table's test ran in at once, in words; empty for a single one."""
    groups = _GROUPS.search(body)
    return f" in {groups[1]}" if groups else ""


def _stopped(last: int, announced: int, body: str, has_ended: bool) -> Unreadable:
    """That a table ends with another size than was announced. It is cut off if the sizes, which double, would have come there."""
    times, rest = divmod(announced, max(last, 1))
    would_come = last < announced and not rest and times & (times - 1) == 0
    is_cut = would_come and not (has_ended or _ENDED.search(body))
    reason = f"IMB stopped at {last} bytes, {announced} were to come"
    return (Cut if is_cut else Contradictory)(reason)


def _of_operation(rows: Sequence[tuple[str, ...]], counted: Optional[int]) -> list[Reading]:
    """Of rows with the size, the least, largest and average time in microseconds, and perhaps Mbytes/sec, as printed."""
    for size, least, largest, average, _ in rows:
        # Half a unit of the last digit on either side.
        if not float(least) - 0.01 <= float(average) <= float(largest) + 0.01:
            raise Contradictory(
                f"at {size} bytes the average time is not between the least and the largest"
            )
    sizes, _, slowest, averages, rates = zip(*rows)
    found = [
        message_sizes(list(map(int, sizes))),
        Reading("collective_time", in_unit(averages, Decimal("1e-6")), "s"),
    ]
    if counted and all(rates):
        units = [
            mega
            for mega in _MEGA
            if all(
                rate_agrees(counted * int(size) * 1e6 / mega, time, rate)
                for size, time, rate in zip(sizes, slowest, rates)
            )
        ]
        if not units:
            raise Contradictory("IMB's Mbytes/sec fit neither as 10^6 nor as 2^20 bytes")
        if len(units) == 1:
            found.append(Reading("message_bandwidth", in_unit(rates, Decimal(units[0])), "B/s"))
    return found


def _readings(rows: Sequence[tuple[str, str, str]]) -> list[Reading]:
    """Of rows with the size in bytes, the time in microseconds and Mbytes/sec, as printed."""
    sizes, times, rates = zip(*rows)
    found = [
        message_sizes(list(map(int, sizes))),
        Reading("message_time", in_unit(times, Decimal("1e-6")), "s"),
    ]
    units = [
        mega
        for mega in _MEGA
        if all(rate_agrees(int(size) * 1e6 / mega, time, rate) for size, time, rate in rows)
    ]
    if not units:
        raise Contradictory("IMB's Mbytes/sec fit neither as 10^6 nor as 2^20 bytes")
    if len(units) == 1:
        bandwidth = in_unit(rates, Decimal(units[0]))
        found.append(Reading("message_bandwidth", bandwidth, "B/s"))
    return found


MARKS = (Mark(r"Intel ?\(R\) MPI Benchmark", "an output of the Intel MPI Benchmarks"),)

TOOL = only_read("imb", results, readings=COLLECTIVES, factors={**TEST, **PROCESSES}, marks=MARKS)
