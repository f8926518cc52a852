"""Intel MPI Benchmarks (IMB-MPI1: PingPong, Sendrecv, Exchange and the collective operations): only
read, never run from here.

The unit of its Mbytes/sec changed between versions: 2^20 bytes up to 4.x, 10^6 bytes from 2018 on.
Size and time of every row tell which it is, so that no version has to be known.
"""

import re
from collections.abc import Sequence
from typing import Any

from runners.outputs import absent
from runners.parsing import (
    COLLECTIVES,
    PROCESSES,
    TEST,
    attempt,
    by_size,
    only_read,
    rate_agrees,
    refused,
    table_note,
    usable,
    without_interrupted,
    without_rows,
)
from runners.records.record import (
    Contradictory,
    Cut,
    Mark,
    Readings,
    Result,
    Unsupported,
)

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

_GROUPS = re.compile(r"^[ \t]*# \( *(\d{1,6} groups of \d{1,6}) processes", re.M)  # at once: -multi
_PROCESSES = re.compile(r"^[ \t]*# #processes = (\d{1,6})", re.M)
# The messages of each process that a rate counts, for the tests that print one.
_COUNTED = {"pingpong": 1, "sendrecv": 2, "exchange": 4}
_OPERATIONS = (
    "sendrecv exchange allreduce reduce reduce_scatter reduce_scatter_block allgather allgatherv "
    "gather gatherv scatter scatterv alltoall alltoallv bcast"
).split()
_OPERATION_COLUMNS = re.compile(
    r"^[ \t]*#bytes[ \t]+#repetitions[ \t]+t_min\[usec\][ \t]+t_max\[usec\][ \t]+t_avg\[usec\]"
    r"(?:[ \t]+Mbytes/sec)?[ \t]*$",
    re.M,
)
_OPERATION_ROW = re.compile(
    rf"^[ \t]*(\d{{1,12}})[ \t]+\d{{1,12}}[ \t]+{_NUMBER}[ \t]+{_NUMBER}[ \t]+{_NUMBER}"
    rf"(?:[ \t]+{_NUMBER})?[ \t]*\n",
    re.M,
)
# By a test's name: the headings of its table and its rows.
_TABLES = {
    "pingpong": (_COLUMNS, _ROW),
    **dict.fromkeys(_OPERATIONS, (_OPERATION_COLUMNS, _OPERATION_ROW)),
}


def results(text: str) -> list[Result]:
    """One result for each table in the file, with its test, IMB's version and the largest size in
    bytes.

    Of PingPong the readings are lists over the sizes: message_size [B], message_time [s], half a
    round trip, and message_bandwidth [B/s], which is left out where the rows do not tell its unit;
    what was too small to be printed is None. Of Sendrecv, Exchange and the collective operations
    they are collective_time [s], the average over the processes, and message_bandwidth as far as it
    is printed. Other benchmarks are passed over. Raises Unreadable when no table can be used.
    """
    titles, sections = list(_TITLE.finditer(text)), list(_SECTION.finditer(text))
    if not titles and not sections:
        raise absent("imb", text, "an output of the Intel MPI Benchmarks")
    marks = sorted([*titles, *sections], key=lambda match: match.start())
    tables, sizes, version, head = [], [], "unknown", ""
    for mark, end in zip(marks, [*(mark.start() for mark in marks[1:]), len(text)]):
        body = text[mark.end() : end]
        if mark.re is _TITLE:
            version, head = mark[1], body
        elif (test := mark[1].lower()) in _TABLES:
            tables.append(_result(test, version, head, body, has_ended=mark is not marks[-1]))
            sizes.append([int(row[1]) for row in _TABLES[test][1].finditer(body)])
        if _ENDED.search(body):  # what follows is of another run
            version, head = "unknown", ""
    if not tables:
        if not sections:
            raise Cut("IMB did not reach its first benchmark: stopped or cut off")
        raise Unsupported(
            "an output of IMB without a PingPong, Sendrecv, Exchange or collective operation"
        )
    tables = without_interrupted(tables, sizes)
    return usable(tables, "an output of IMB without a usable table: ")


def _result(test: str, version: str, head: str, body: str, has_ended: bool) -> Result:
    """The table of a section; it `has_ended` where another section or run follows."""
    groups, processes = _GROUPS.search(body), _PROCESSES.search(body)
    settings: dict[str, Any] = {"test": test, "version": version}
    if groups:
        settings["test"] = f"{test} in {groups[1]}"
    if processes and test != "pingpong":
        settings["processes"] = int(processes[1])
    headings, row = _TABLES[test]
    columns, announced = headings.search(body), _LARGEST.search(head)
    if not columns and _OTHER_COLUMNS.search(body):
        return refused(
            Unsupported("IMB's columns are other ones than those that are read"), settings
        )
    rows = row.findall(body, columns.end()) if columns else []
    if not columns or not rows:
        return refused(without_rows(body, f"IMB {version}"), settings)
    sizes = [int(size) for size, *_ in rows]
    last = sizes[-1]
    most = int(announced[1]) if announced else last
    has_ended = has_ended or bool(_ENDED.search(body))
    # Operations may go on to larger messages, or end with smaller ones.
    if last != most and (test == "pingpong" or last < most and not has_ended):
        # It is cut off if the sizes, which double, would have come to the one announced.
        times, rest = divmod(most, max(last, 1))
        would_come = last < most and not rest and times & (times - 1) == 0
        kind = Cut if would_come and not has_ended else Contradictory
        return refused(kind(f"IMB stopped at {last} bytes, {most} were to come"), settings)
    note = table_note(body[columns.end() :], row, sizes)
    return attempt(lambda: _readings(test, rows), {**settings, "largest_bytes": last}, note)


def _readings(test: str, rows: Sequence[tuple[str, ...]]) -> Readings:
    """Of rows as printed: of PingPong the size in bytes, the time in microseconds and Mbytes/sec;
    of operations the size, the least, largest and average time, and perhaps Mbytes/sec."""
    printed_sizes, *columns, rates = zip(*rows)
    sizes = list(map(int, printed_sizes))
    slowest = times = columns[0]
    if test != "pingpong":
        least, slowest, times = columns
        for size, low, high, average in zip(sizes, least, slowest, times):
            # Half a unit of the last digit on either side.
            if not float(low) - 0.01 <= float(average) <= float(high) + 0.01:
                raise Contradictory(
                    f"at {size} bytes the average time is not between the least and the largest"
                )
    reading = "message_time" if test == "pingpong" else "collective_time"
    readings = by_size(sizes, **{reading: (times, "1e-6")})
    if test in _COUNTED and all(rates):
        units = [
            mega
            for mega in (10**6, 2**20)
            if all(
                rate_agrees(_COUNTED[test] * size * 1e6 / mega, time, rate)
                for size, time, rate in zip(sizes, slowest, rates)
            )
        ]
        if not units:
            raise Contradictory("IMB's Mbytes/sec fit neither as 10^6 nor as 2^20 bytes")
        if len(units) == 1:
            readings |= by_size(sizes, message_bandwidth=(rates, str(units[0])))
    return readings


TOOL = only_read(
    "imb",
    results,
    readings=COLLECTIVES,
    factors={**TEST, **PROCESSES},
    marks=(Mark(r"Intel ?\(R\) MPI Benchmark", "an output of the Intel MPI Benchmarks"),),
)
