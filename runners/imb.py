"""Intel MPI Benchmarks (PingPong of IMB-MPI1): only read, never run from here.

The unit of its Mbytes/sec changed between versions: 2^20 bytes up to 4.x, 10^6 bytes from 2018 on. Size and
time of every row tell which it is, so that no version has to be known.
"""

import re
from decimal import Decimal
from typing import List, Sequence, Tuple

from runners.parsing import (
    attempt,
    in_unit,
    message_sizes,
    not_understood,
    only_read,
    rate_agrees,
    strange_lines,
    usable,
    without_labels,
)
from runners.record import Reading, Result, Unreadable

_TITLE = re.compile(
    r"^[ \t]*# *Intel ?\(R\) MPI Benchmarks? (?:Suite )?V?(.{1,60}?), \S+ part", re.M
)
_SECTION = re.compile(r"^[ \t]*# Benchmarking (\S+)", re.M)
_LARGEST = re.compile(r"^[ \t]*# Maximum message length in bytes:[ \t]*(\d{1,12})", re.M)
_COLUMNS = re.compile(
    r"^[ \t]*#bytes[ \t]+#repetitions[ \t]+t\[usec\][ \t]+Mbytes/sec[ \t]*$", re.M
)
# Lengths are limited, so that no damaged row makes a number beyond what float can hold.
_NUMBER = r"(\d{1,15}\.\d{1,9})"
_ROW = re.compile(
    rf"^[ \t]*(\d{{1,12}})[ \t]+\d{{1,12}}[ \t]+{_NUMBER}[ \t]+{_NUMBER}[ \t]*\n", re.M
)

_MEGA = (10**6, 2**20)


def results(text: str) -> List[Result]:
    """One result for each PingPong in the file, with IMB's version and the largest size in bytes.

    The readings are lists over the sizes: message_size [B], message_time [s], half a round trip, and
    message_bandwidth [B/s], which is left out where the rows do not tell its unit; what was too small to be
    printed is None. Other benchmarks are passed over. Raises Unreadable when no PingPong can be used.
    """
    text = without_labels(text)
    titles, sections = list(_TITLE.finditer(text)), list(_SECTION.finditer(text))
    if not titles and not sections:
        raise Unreadable("not an output of the Intel MPI Benchmarks: it has no title")
    borders = sorted(match.start() for match in [*titles, *sections]) + [len(text)]
    found = []
    for section in sections:
        if section[1].lower() == "pingpong":
            end = next(border for border in borders if border > section.start())
            before = [title for title in titles if title.start() < section.start()][-1:]
            version = before[0][1] if before else "unknown"
            head = text[before[0].start() : section.start()] if before else ""
            found.append(_result(version, head, text[section.end() : end]))
    if not found:
        raise Unreadable("an output of IMB without a PingPong")
    return usable(found, "an output of IMB without a usable PingPong: ")


def _result(version: str, head: str, body: str) -> Result:
    settings = {"test": "pingpong", "version": version}
    columns, announced = _COLUMNS.search(body), _LARGEST.search(head)
    rows = _ROW.findall(body, columns.end()) if columns else []
    if not columns or not rows:
        return Result((), settings, "IMB did not reach its first size, or printed other columns")
    last = rows[-1][0]
    if announced and int(last) != int(announced[1]):
        refused = f"IMB stopped at {last} bytes, {announced[1]} were to come"
        return Result((), settings, refused)
    note = not_understood(strange_lines(body[columns.end() :], _ROW))
    return attempt(lambda: _readings(rows), {**settings, "largest_bytes": int(last)}, note)


def _readings(rows: Sequence[Tuple[str, str, str]]) -> List[Reading]:
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
        raise Unreadable("IMB's Mbytes/sec fit neither as 10^6 nor as 2^20 bytes")
    if len(units) == 1:
        bandwidth = in_unit(rates, Decimal(units[0]))
        found.append(Reading("message_bandwidth", bandwidth, "B/s"))
    return found


RUNNER = only_read("imb", results)
