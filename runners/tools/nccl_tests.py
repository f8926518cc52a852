"""nccl-tests and rccl-tests (all_reduce_perf and the like): only read, never run from here.

Sizes are in bytes, times in microseconds, a gigabyte is 10^9 bytes. The out-of-place columns are
read. The bus bandwidth is the rate that each link carries: the algorithm's times a factor of the
operation and the number of ranks.
"""

import re
from typing import Any

from runners.outputs import absent
from runners.parsing import (
    COLLECTIVES,
    DATATYPE,
    PROCESSES,
    TEST,
    attempt,
    by_size,
    only_read,
    parts,
    rate_agrees,
    table_note,
    usable,
    without_rows,
)
from runners.records.record import Contradictory, Failed, Mark, Quantity, Readings, Result

_HEAD = re.compile(r"^[ \t]*#[ \t]+size[ \t]+count[ \t]+type\b.*\bbusbw\b.*$", re.M)
_STARTED = re.compile(r"^[ \t]*# Collective test starting: (\w{1,40}?)_perf", re.M)
_VERSION = re.compile(r"^[ \t]*# (?:nccl|rccl)-tests version (\S{1,20})", re.M)
_RANK = re.compile(r"^[ \t]*#[ \t]+Rank[ \t]+(\d{1,6}) ", re.M)
_NUMBER = r"(\d{1,12}(?:\.\d{1,6})?)"
# Size, count, type, perhaps the operation and its root; then time, both rates and what was wrong,
# out of place and in place.
_ROW = re.compile(
    r"^[ \t]*(\d{1,15})[ \t]+\d{1,15}[ \t]+\w+(?:[ \t]+\w+)?(?:[ \t]+-?\d+)?"
    rf"[ \t]+{_NUMBER}[ \t]+{_NUMBER}[ \t]+{_NUMBER}"
    r"[ \t]+(N/A|\d{1,12}(?:\.\d{1,6})?(?:e[+-]\d\d)?)(?:[ \t]+\S+){0,4}[ \t]*\n",
    re.M,
)
_TYPE = re.compile(r"^[ \t]*\d+[ \t]+\d+[ \t]+([a-z]\w*(?:[ \t]+[a-z]\w*)?)", re.M)
_OUT_OF_BOUNDS = re.compile(r"^[ \t]*# Out of bounds values : (\d{1,12}) (\w+)", re.M)


def results(text: str) -> list[Result]:
    """One result for each table in the file, with its largest size in bytes and, as far as printed,
    test, version and ranks.

    The readings are lists over the sizes: message_size [B], collective_time [s] and bus_bandwidth
    [B/s]. Raises Unreadable when no table can be used.
    """
    heads, tables = list(_HEAD.finditer(text)), parts(text, _HEAD)
    # What a run says of itself stands between the table before it and its own.
    begins = [0, *(head.end() for head in heads)]
    table_results = [
        _result(text[begin : head.start()], head, table)
        for begin, (head, table) in zip(begins, tables)
    ]
    if not table_results:
        raise absent("nccl_tests", text, "an output of nccl-tests or rccl-tests")
    return usable(table_results, "an output of nccl-tests without a usable table: ")


def _result(before: str, head: re.Match[str], table: str) -> Result:
    body = table[table.index(head[0]) :]
    settings: dict[str, Any] = {}
    if started := list(_STARTED.finditer(before)):
        settings["test"] = started[-1][1].replace("_", "-")
    if version := _VERSION.search(before):
        settings["version"] = version[1]
    if ranks := _RANK.findall(before):
        settings["processes"] = max(map(int, ranks)) + 1
    if kind := _TYPE.search(body):
        settings["datatype"] = " ".join(kind[1].split())
    sizes = [int(row[1]) for row in _ROW.finditer(body)]
    if sizes:
        settings["largest_bytes"] = sizes[-1]
    tool = f"nccl-tests {settings.get('version', 'of an unknown version')}"
    return attempt(lambda: _readings(body, tool), settings, table_note(body, _ROW, sizes))


def _readings(body: str, version: str) -> Readings:
    rows = list(_ROW.finditer(body))
    if not rows:
        raise without_rows(body, version)
    # Versions up to 2022 print the largest error instead of the number of wrong values.
    has_errors = re.match(r".*\berror\b", body)
    checked = _OUT_OF_BOUNDS.search(body)
    wrong = [row[1] for row in rows if not has_errors and row[5] != "N/A" and float(row[5]) > 0]
    if checked and (int(checked[1]) == 0) != (checked[2] == "OK"):
        raise Contradictory(
            f"nccl-tests found {checked[1]} values out of bounds and says {checked[2]}"
        )
    if checked and wrong and int(checked[1]) == 0:
        raise Contradictory(f"wrong values at {wrong[0]} bytes, and none out of bounds")
    if checked and int(checked[1]):
        raise Failed(f"nccl-tests found {checked[1]} values out of bounds")
    if wrong:
        raise Failed(f"nccl-tests found wrong values at {wrong[0]} bytes")
    for row in rows:
        if not rate_agrees(int(row[1]) * 1e-3, row[2], row[3]):
            raise Contradictory(f"at {row[1]} bytes the rate is not the size over the time")
    nonzero = [row for row in rows if int(row[1])]
    return by_size(
        [int(row[1]) for row in nonzero],
        collective_time=([row[2] for row in nonzero], "1e-6"),
        bus_bandwidth=([row[4] for row in nonzero], "1e9"),
    )


TOOL = only_read(
    "nccl_tests",
    results,
    readings={
        **{name: COLLECTIVES[name] for name in ("message_size", "collective_time")},
        "bus_bandwidth": Quantity(
            "rate of each link in a collective operation", "B/s", ("trial", "message")
        ),
    },
    factors={**TEST, **PROCESSES, **DATATYPE},
    marks=(
        Mark(
            r"^[ \t]*#[ \t]+size[ \t]+count[ \t]+type\b.*\bbusbw\b",
            "an output of nccl-tests or rccl-tests",
        ),
    ),
    aliases=("nccl", "rccl"),
)
