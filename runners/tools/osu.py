"""OSU Micro-Benchmarks (two-sided and blocking collective tests of OMB 2.x to 7.x): only read,
never run from here.

A latency is half a round trip in microseconds, that of a collective operation its average time over
the processes. A megabyte is 10^6 bytes in every version's source; copies that were changed to 2^20
say so above their table.
"""

import re
from dataclasses import replace

from runners.outputs import absent
from runners.parsing import (
    COLLECTIVES,
    DATATYPE,
    TEST,
    attempt,
    by_size,
    only_read,
    parts,
    refused,
    table_note,
    usable,
    without_interrupted,
    without_rows,
)
from runners.records.record import Contradictory, Cut, Failed, Mark, Readings, Result, Unsupported

_TITLE = re.compile(
    r"^[ \t]*# OSU (\S+) (.{1,80}?) Test\b(?: \(?v(?:ersion )?([\w.+-]+))?.*$", re.M | re.I
)
_TWO_SIDED = re.compile(r"MPI(-\w+)?")  # with -CUDA and the like for buffers on devices
_COLUMNS = re.compile(
    r"^[ \t]*# Size[ \t]+(?:Avg )?(Latency ?\(us\)|Bandwidth ?\(MB/s\)|MB/s[ \t]+Messages/s)(.*)$",
    re.M,
)
_PAIRS = re.compile(r"^[ \t]*# \[ pairs: (\d{1,6}) \]", re.M)
# By a test's title: what its column is, and the reading that it gives.
_LATENCY, _BANDWIDTH, _COLLECTIVE = "message_time", "message_bandwidth", "collective_time"
_TESTS = {
    **dict.fromkeys(("latency", "multi latency", "multi-process latency"), _LATENCY),
    **dict.fromkeys(("bandwidth", "bi-directional bandwidth", "multiple bandwidth"), _BANDWIDTH),
}
# One word or two, then what personalised exchanges are called.
_OPERATION = re.compile(
    r"(?:all-to-allv? personalized exchange|all[a-z]{5,10}|broadcast|gatherv?"
    r"|reduce(?:_scatter)?|scan|scatterv?) latency"
)
# Lengths are limited, so that no damaged row makes a number beyond what float can hold.
# Bytes are what older versions send and do not name.
_DATATYPE = re.compile(r"^[ \t]*# Datatype: (?!MPI_CHAR\b)(\w+)", re.M)
_BUFFERS = re.compile(r"^[ \t]*# Send Buffer on (\w+).* Receive Buffer on (\w+)", re.M)
_OTHER_COLUMNS = re.compile(r"^[ \t]*# Size\b.*\n", re.M)
_ROW = re.compile(r"^[ \t]*(\d{1,12})[ \t]+(\d{1,15}\.\d{1,9})(?:[ \t]+(\S[^\n]*))?\n", re.M)
_NO_TITLE = Cut("a table's title is missing, and with it the test and the version")
_BINARY = re.compile(r"1 ?MB ?==? ?2\^20")


def results(text: str) -> list[Result]:
    """One result for each table in the file, with its test, version and largest size in bytes.

    The readings are lists over the sizes: message_size [B], and message_time [s] or
    message_bandwidth [B/s] of tests between processes, collective_time [s] of collective
    operations; what was too small to be printed is None. A table may end early and nothing says so:
    its `largest_bytes` tells. Raises Unreadable when no table can be used.
    """
    tables = parts(text, _TITLE, _OTHER_COLUMNS)
    table_results = [
        _result(begin, table) if begin.re is _TITLE else refused(_NO_TITLE, {})
        for begin, table in tables
    ]
    if not _TITLE.search(text):
        raise absent("osu", text, "an output of the OSU Micro-Benchmarks")
    sizes = [[int(row[1]) for row in _ROW.finditer(table)] for _, table in tables]
    table_results = without_interrupted(table_results, sizes)
    return usable(table_results, "an output of OSU without a usable table: ")


def _result(title: re.Match[str], body: str) -> Result:
    test = title[2] if _TWO_SIDED.fullmatch(title[1]) else f"{title[1]} {title[2]}"
    test = test.lower().replace(" / message rate", "")
    settings = {"test": test, "version": title[3] or "unknown"}
    if datatype := _DATATYPE.search(body):
        settings["datatype"] = datatype[1].lower().replace("_", "-")
    if buffers := _BUFFERS.search(body):
        settings["test"] = f"{test} {buffers[1]} to {buffers[2]}".lower()
    if test == "multiple bandwidth" and (pairs := _PAIRS.search(body)):
        settings["pairs"] = int(pairs[1])
    result = attempt(lambda: _readings(test, settings["version"], body), settings)
    if not result.readings:
        return result
    sizes = result.readings["message_size"]
    settings["largest_bytes"] = sizes[-1]
    rows = _COLUMNS.split(body, 1)[-1]
    return replace(result, note=table_note(rows, _ROW, sizes))


def _readings(test: str, version: str, body: str) -> Readings:
    reading = _TESTS.get(test, _COLLECTIVE if _OPERATION.fullmatch(test) else "")
    if not reading:
        raise Unsupported(
            f"OSU's test {test!r} is not read, "
            "only latencies and bandwidths between processes, and blocking collective operations"
        )
    columns = _COLUMNS.search(body)
    if not columns and _OTHER_COLUMNS.search(body):
        raise Unsupported("its columns are not read, only Latency (us) and Bandwidth (MB/s)")
    if not columns:
        raise Cut("the line that names the columns and their unit is missing")
    if columns[1].lower().startswith("latency") == (reading == _BANDWIDTH):
        raise Contradictory(f"a test of {test} with a column of {columns[1]}")
    rows = list(_ROW.finditer(body, columns.end()))
    if not rows:
        raise without_rows(body[columns.end() :], f"OSU {version}")
    if any("Fail" in (row[3] or "") for row in rows):
        raise Failed("OSU's own validation of the data failed")
    mega = 2**20 if _BINARY.search(body, 0, columns.start()) else 10**6
    column = [row[2] for row in rows], str(mega) if reading == _BANDWIDTH else "1e-6"
    return by_size([int(row[1]) for row in rows], **{reading: column})


TOOL = only_read(
    "osu",
    results,
    readings=COLLECTIVES,
    factors={**TEST, **DATATYPE},
    marks=(Mark(r"# OSU \S+ .{1,80} Test", "an output of the OSU Micro-Benchmarks"),),
    aliases=("omb",),
)
