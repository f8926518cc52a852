"""iperf 2 (2.0 and 2.1): the rate of TCP and UDP streams; only read, never run from here.

A client counts what it wrote, also what is still in its buffers at the end; a server counts what arrived. The output
says which of the two it is of.
"""

import re
from typing import List, Tuple

from runners import iperf_text
from runners.iperf_text import Row
from runners.record import Reading, Result, Runner, Unreadable, attempt, only_read, parser, usable

_BEGIN = re.compile(r"^(?:Client connecting to|Server listening on (?:TCP|UDP) port)\b.*$", re.M)
_COMPLAINT = re.compile(r"^[a-z][\w ]{0,40} failed: .*$", re.M)
_REPORT = re.compile(r"^\[ *\d+\] Server Report:\n", re.M)
# Time stamp, two addresses with their ports, the stream (-1: all of them), the interval, bytes, bit/s.
_CSV = re.compile(
    r"^\d{14}(?:\.\d+)?,[^,\n]+,\d+,[^,\n]+,\d+,(-?\d{1,9}),(\d{1,9}\.\d{1,9})-(\d{1,9}\.\d{1,9}),"
    r"(\d{1,15}),(\d{1,15})\n",
    re.M,
)
_SENDERS = "counted by the sender, what was in its buffers at the end included"
_CUT = "the last row of each stream is missing: stopped or cut off"


def results(text: str) -> List[Result]:
    """One result for each run of a client and each connection of a server; `counted_by` names the end.

    goodput [bit/s] of TCP; packets, lost_packets and jitter [s] of UDP, as the server reports them. Raises Unreadable
    when nothing can be used.
    """
    text = text.replace("\r\n", "\n")
    begins = list(_BEGIN.finditer(text))
    if not begins:
        return usable([_of_csv(text)])
    if len({begin[0][:6] for begin in begins}) > 1:
        raise Unreadable("both directions in one output (-d or -r): they cannot be told apart")
    ends = [begin.start() for begin in begins[1:]] + [len(text)]
    parts = [(begin[0], text[begin.start() : end]) for begin, end in zip(begins, ends)]
    return usable([result for part in parts for result in _of_run(*part)])


def _of_run(title: str, part: str) -> List[Result]:
    """The results of a client's run, or of all connections of a server."""
    if title.startswith("Server"):
        settings, note = {"counted_by": "receiver"}, iperf_text.NOTE
        try:
            ends = _ends(iperf_text.rows(part))[1]
        except Unreadable as reason:
            return [Result((), settings, str(reason))]
        chosen = [row for row in ends if row.id == "SUM"] or ends
        found = [attempt(lambda: iperf_text.readings(row), settings, note) for row in chosen]
        return found or [Result((), settings, _CUT)]
    if "UDP" in title:
        return [attempt(lambda: _reported(part), {"counted_by": "receiver"}, iperf_text.NOTE)]
    note = f"{iperf_text.NOTE}; {_SENDERS}"
    return [attempt(lambda: _client(part), {"counted_by": "sender"}, note)]


def _client(part: str) -> List[Reading]:
    streams, ends = _ends(iperf_text.rows(part))
    complaint = _COMPLAINT.search(part)
    if complaint and not ends:
        raise Unreadable(f"iperf says: {complaint[0]}")
    return iperf_text.readings(iperf_text.total(ends, streams))


def _reported(part: str) -> List[Reading]:
    """What the server tells a client of UDP of what arrived."""
    report = _REPORT.search(part)
    if not report:
        raise Unreadable("the server's report is missing: a UDP client does not know what arrived")
    streams, ends = _ends(iperf_text.rows(part[report.end() :]))
    return iperf_text.readings(iperf_text.total(ends, streams))


def _ends(listed: List[Row]) -> Tuple[int, List[Row]]:
    """How many streams there are, and the rows from their beginning to their end; raises Unreadable when one is missing.

    With -i a stream's first interval begins at 0 too. Later ones then tell that it is not the whole.
    """
    names = list(dict.fromkeys(row.id for row in listed))
    whole = [row for row in listed if row.start == 0 and not row.is_interval]
    for name in names:
        last = max(row.end for row in listed if row.id == name)
        if name != "SUM" and not any(row.id == name and row.end == last for row in whole):
            raise Unreadable(_CUT)
    later = [
        row for row in whole if all(row.end >= other.end for other in whole if other.id == row.id)
    ]
    return len([name for name in names if name != "SUM"]), later


def _of_csv(text: str) -> Result:
    """The result of an output of -y C."""
    rows = _CSV.findall(text)
    if not rows:
        complaint = _COMPLAINT.search(text)
        raise Unreadable(f"iperf says: {complaint[0]}" if complaint else "not an output of iperf 2")
    return attempt(lambda: _csv_readings(rows), {"counted_by": "unknown"})


def _csv_readings(rows: List[Tuple[str, ...]]) -> List[Reading]:
    whole = [row for row in rows if float(row[1]) == 0]
    chosen = [row for row in whole if row[0] == "-1"] or whole
    if len(chosen) != 1 or len(whole) < len(rows) and rows[-1] != chosen[0]:
        raise Unreadable("the CSV is not of one run: runs are mixed, or its last row is missing")
    _, _, end, size, rate = chosen[0]
    slack = 0.1  # the end has one decimal
    if not 8 * int(size) / (float(end) + slack) <= int(rate) * 1.001:
        raise Unreadable("iperf's CSV contradicts itself: bytes, time and rate")
    if float(end) > slack and int(rate) > 1.001 * 8 * int(size) / (float(end) - slack):
        raise Unreadable("iperf's CSV contradicts itself: bytes, time and rate")
    if int(rate) == 0:
        raise Unreadable("iperf counted no data")
    return [Reading("goodput", float(rate), "bit/s")]


parse = parser("iperf2", results)
RUNNER = Runner("iperf2", only_read("iperf2"), parse, results)
