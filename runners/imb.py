"""Intel MPI Benchmarks (PingPong of IMB-MPI1): only read, never run from here.

The unit of its Mbytes/sec changed between versions: 2^20 bytes up to 4.x, 10^6 bytes from 2018 on. Size and
time of every row tell which it is, so that no version has to be known.
"""

import re
from decimal import Decimal
from typing import List, Sequence, Tuple

from runners.parsing import (
    LARGEST_MESSAGE,
    attempt,
    not_understood,
    only_read,
    parser,
    rate_agrees,
    require_ascending,
    scaled,
    strange_lines,
    usable,
    without_labels,
)
from runners.record import Reading, Result, Runner, Unreadable

_TITLE = re.compile(
    r"^[ \t]*# *Intel ?\(R\) MPI Benchmarks? (?:Suite )?V?(.{1,60}?), \S+ part", re.M
)
_SECTION = re.compile(r"^[ \t]*# Benchmarking (\S+)", re.M)
_LARGEST = re.compile(r"^[ \t]*# Maximum message length in bytes:[ \t]*(\d{1,12})", re.M)
_COLUMNS = re.compile(
    r"^[ \t]*#bytes[ \t]+#repetitions[ \t]+t\[usec\][ \t]+Mbytes/sec[ \t]*\r?$", re.M
)
# Lengths are limited, so that no damaged row makes a number beyond what float can hold.
_NUMBER = r"(\d{1,15}\.\d{1,9})"
_ROW = re.compile(
    rf"^[ \t]*(\d{{1,12}})[ \t]+\d{{1,12}}[ \t]+{_NUMBER}[ \t]+{_NUMBER}[ \t]*\r?\n", re.M
)

_MEGA = (10**6, 2**20)

Row = Tuple[int, str, str]  # size in bytes, time in microseconds and Mbytes/sec as printed


def results(text: str) -> List[Result]:
    """One result for each PingPong in the file, with IMB's version and the largest size in bytes.

    The readings are lists over the sizes: message_size [B], message_time [s], half a round trip, and
    message_bandwidth [B/s], which is left out where the rows do not tell its unit; what was too small to be
    printed is None. Other benchmarks are passed over. Raises Unreadable when no PingPong can be used.
    """
    text = without_labels(text)
    titles = list(_TITLE.finditer(text))
    sections = list(_SECTION.finditer(text))
    if not titles and not sections:
        raise Unreadable("not an output of the Intel MPI Benchmarks: it has no title")
    borders = sorted(match.start() for match in [*titles, *sections]) + [len(text)]
    found = []
    for section in sections:
        if section[1].lower() == "pingpong":
            end = next(border for border in borders if border > section.start())
            before = [title for title in titles if title.start() < section.start()]
            head = text[before[-1].start() : section.start()] if before else ""
            found.append(
                _result(before[-1][1] if before else "unknown", head, text[section.end() : end])
            )
    if not found:
        raise Unreadable("an output of IMB without a PingPong")
    return usable(found, "an output of IMB without a usable PingPong: ")


def _result(version: str, head: str, body: str) -> Result:
    settings = {"test": "pingpong", "version": version}
    columns, announced = _COLUMNS.search(body), _LARGEST.search(head)
    rows = (
        [(int(size), time, rate) for size, time, rate in _ROW.findall(body, columns.end())]
        if columns
        else []
    )
    if not rows:
        return Result((), settings, "IMB did not reach its first size, or printed other columns")
    if announced and rows[-1][0] != int(announced[1]):
        return Result(
            (), settings, f"IMB stopped at {rows[-1][0]} bytes, {announced[1]} were to come"
        )
    note = not_understood(strange_lines(body[columns.end() :], _ROW))
    return attempt(lambda: _readings(rows), {**settings, "largest_bytes": rows[-1][0]}, note)


def _readings(rows: Sequence[Row]) -> List[Reading]:
    require_ascending([size for size, _, _ in rows])
    units = [
        mega
        for mega in _MEGA
        if all(rate_agrees(size * 1e6 / mega, time, rate) for size, time, rate in rows)
    ]
    if not units:
        raise Unreadable("IMB's Mbytes/sec fit neither as 10^6 nor as 2^20 bytes")
    found = [
        Reading("message_size", [size for size, _, _ in rows], "B"),
        Reading("message_time", [scaled(time, Decimal("1e-6")) for _, time, _ in rows], "s"),
    ]
    if len(units) > 1:
        return found
    mega = Decimal(units[0])
    return [
        *found,
        Reading("message_bandwidth", [scaled(rate, mega) for _, _, rate in rows], "B/s"),
    ]


parse = parser("imb", results, largest_bytes=LARGEST_MESSAGE)
RUNNER = Runner("imb", only_read("imb"), parse, results)
