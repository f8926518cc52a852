"""iperf 2 (2.0 and 2.1): the rate of TCP streams; only read, never run from here.

A client of TCP counts what it wrote, also what is still in its buffers at the end: that is its
sent_rate. A server counts what arrived, the goodput.
"""

import re
from collections import Counter

from runners import iperf_text
from runners.iperf_text import Row
from runners.outputs import absent
from runners.parsing import GOODPUT, TEST, attempt, only_read, parts, refused, usable
from runners.records.record import (
    Contradictory,
    Cut,
    Failed,
    Mark,
    Quantity,
    Result,
    Unreadable,
    Unsupported,
)

_BEGIN = re.compile(r"^(?:Client connecting to|Server listening on (?:TCP|UDP) port)\b.*$", re.M)
_COMPLAINT = re.compile(r"^[a-z][\w ]{0,40} failed: .*$", re.M)
_CONNECTED = re.compile(r"^\[ *(\d{1,6})\] local ", re.M)
_CSV = re.compile(r"^\d{14}[\d.]*,(?:[^,\n]{1,80},){6}", re.M)
_CUT = "the last row of each stream is missing: stopped or cut off"


def results(text: str) -> list[Result]:
    """One result for each run of a client, each connection of a server, and each of its sums.

    `stream` is the connection's number or SUM, `duration_s` its length, `test` of how many streams
    the rate is. With -i an output of 2.0 that is cut off after its first interval reads as one of
    that length, which is noted.

    The reading is goodput or sent_rate [bit/s]. Raises Unreadable when nothing can be used.
    """
    runs = parts(text, _BEGIN)
    if not runs:
        complaint = _COMPLAINT.search(text)
        if _CSV.search(text):
            raise Unsupported("the CSV of iperf 2 is not read: use its text output")
        if complaint:
            raise Failed(f"iperf says: {complaint[0]}")
        raise absent("iperf2", text, "an output of iperf 2")
    if len({begin[0][:6] for begin, _ in runs}) > 1:
        raise Unsupported("both directions in one output (-d or -r): they cannot be told apart")
    return usable([result for begin, part in runs for result in _of_run(begin[0], part)])


def _of_run(title: str, part: str) -> list[Result]:
    """The results of a client's run, or of all connections of a server."""
    is_server = title.startswith("Server")
    try:
        if "UDP" in title:
            raise Unsupported("it is a test of UDP, whose rate says nothing about TCP")
        listed = iperf_text.rows(part)
        connected = set(_CONNECTED.findall(part))
        strange = {row.id for row in listed} - connected - {"SUM"}
        if connected and strange:
            raise Contradictory(
                f"rows of streams that did not connect: {', '.join(sorted(strange))}"
            )
        streams, ends = _ends(listed)
        if not is_server:
            complaint = _COMPLAINT.search(part)
            if complaint and not ends:
                raise Failed(f"iperf says: {complaint[0]}")
            ends = [iperf_text.total(ends, max(streams, len(connected)))]
        if not ends:
            raise Cut(_CUT)
    except Unreadable as reason:
        return [refused(reason, {})]
    rate = "goodput" if is_server else "sent_rate"
    rows_of = Counter(row.id for row in listed)
    # A server does not say which of its connections a sum is of: what is beside one may be a part
    # of it.
    alone = "one of several streams" if "SUM" in rows_of else "one stream"
    tests = {"SUM": "sum of streams"} if is_server else {"SUM": f"{streams} streams"}
    return [
        attempt(
            lambda: [iperf_text.reading(row, rate)],
            {"stream": row.id, "duration_s": row.end, "test": tests.get(row.id, alone)},
            _note(row, is_alone=rows_of[row.id] == 1),
        )
        for row in ends
    ]


def _note(row: Row, is_alone: bool) -> str:
    """What a reader of a connection's rate has to know; its row may be the only one of it that is
    left.
    """
    may_go_on = f"with -i it may be the first {row.end:g} s of a longer run that was cut off"
    return "; ".join(
        [iperf_text.NOTE, may_go_on] if row.is_round and is_alone else [iperf_text.NOTE]
    )


def _ends(listed: list[Row]) -> tuple[int, list[Row]]:
    """How many streams there are, and the rows that are of a whole connection; raises Unreadable
    when one is cut off.

    With -i a connection's first interval begins at 0 too, and another one follows where it ends.
    """
    by_stream: dict[str, list[Row]] = {}
    for row in listed:
        by_stream.setdefault(row.id, []).append(row)
    whole = []
    for rows in by_stream.values():
        is_cut = rows[-1].start > 0 or rows[-1].is_interval
        if is_cut and rows[-1].id != "SUM":
            raise Cut(_CUT)
        following = [row.start for row in rows[1:]] + [0.0]
        whole += [
            row
            for row, start in zip(rows, following)
            if row.start == start == 0 and not row.is_interval
        ]
    return len(by_stream.keys() - {"SUM"}), whole


TOOL = only_read(
    "iperf2",
    results,
    readings={
        **GOODPUT,
        "sent_rate": Quantity(
            "TCP payload given to the sender's kernel, what was in its buffers at the end included",
            "bit/s",
        ),
    },
    factors=TEST,
    marks=(
        Mark(
            r"^\[ ID\] Interval(?: {5,8}| {12})\S|^Client connecting to .*, (?:TCP|UDP) port|^Server listening on (?:TCP|UDP) port",
            "an output of iperf 2",
        ),
        Mark(r"^\d{14},[\d.]+,\d+,[\d.]+,\d+,-?\d+,", "a CSV output of iperf 2"),
    ),
    aliases=("iperf",),
)
