"""iperf 2 (2.0 and 2.1): the rate of TCP streams; only read, never run from here.

A client of TCP counts what it wrote, also what is still in its buffers at the end: that is its
sent_rate. A server counts what arrived, the goodput.

The text of iperf3 has the same rows: an interval, the amount transferred, and its rate. Bytes are
in powers of 2^10 and bits in powers of 10^3 (units.c of both). Three digits are printed, so a rate
is known to half a per cent at best.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from runners.outputs import absent
from runners.parsing import GOODPUT, TEST, attempt, half_digit, only_read, parts, refused, usable
from runners.records.record import (
    Contradictory,
    Cut,
    Failed,
    Mark,
    Quantity,
    Readings,
    Result,
    Unreadable,
    Unsupported,
)

NOTE = "rates of a text output have three digits"

_POWERS = " KMGT"  # by their places; without a letter it is the first
_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
ROW = re.compile(
    r"^\[ *(?P<id>\d{1,6}|SUM)(?:-\d+)?\](?:\[(?P<role>[TR]X)-[CS]\])? +"
    rf"(?P<start>{_NUMBER})- *(?P<end>{_NUMBER}) +sec +"
    rf"(?P<amount>{_NUMBER}) (?P<amount_power>[KMGT]?)Bytes +"
    rf"(?P<rate>{_NUMBER}) (?P<rate_power>[KMGT]?)(?P<unit>bits|Bytes)/sec(?P<rest>[^\n]*)\n",
    re.M,
)
_OFF = 0.01  # a rate may use the other end's time, which differs by some milliseconds

_BEGIN = re.compile(r"^(?:Client connecting to|Server listening on (?:TCP|UDP) port)\b.*$", re.M)
_COMPLAINT = re.compile(r"^[a-z][\w ]{0,40} failed: .*$", re.M)
CONNECTED = re.compile(r"^\[ *(\d{1,6})\](?:\[\w\w-\w\])? local ", re.M)
_CSV = re.compile(r"^\d{14}[\d.]*,(?:[^,\n]{1,80},){6}", re.M)
_CUT = "the last row of each stream is missing: stopped or cut off"


@dataclass(frozen=True)
class Row:
    """One row: the stream's number or SUM, its role with `--bidir`, the interval [s], its end as
    printed, the rate [bit/s], and the rest of the line."""

    id: str
    role: str
    start: float
    end: float
    end_text: str
    rate: float
    rest: str

    @property
    def is_interval(self) -> bool:
        """Whether iperf 2.1 prints an end at a whole second with four decimals, which only an
        interval of -i has."""
        return self.end_text.endswith(".0000")


def rows(text: str) -> list[Row]:
    """All rows of a text; raises Unreadable if a rate contradicts its own bytes and seconds."""
    return [_row(match) for match in ROW.finditer(text)]


def _row(match: re.Match[str]) -> Row:
    base = 8 * 1024 ** _POWERS.index(match["amount_power"])
    thousand, bits = (1000, 1) if match["unit"] == "bits" else (1024, 8)
    scale = bits * thousand ** _POWERS.index(match["rate_power"])
    start, end, amount, rate = (float(match[name]) for name in ("start", "end", "amount", "rate"))
    slack = half_digit(match["start"]) + half_digit(match["end"])
    amount_slack, rate_slack = half_digit(match["amount"]), half_digit(match["rate"])
    shortest, longest = end - start - slack, end - start + slack
    fastest = base * (amount + amount_slack) / shortest if shortest > 0 else float("inf")
    slowest = base * (amount - amount_slack) / longest if longest > 0 else float("inf")
    is_below = (rate + rate_slack) * scale < slowest * (1 - _OFF)
    if is_below or (rate - rate_slack) * scale > fastest * (1 + _OFF):
        raise Contradictory(
            f"a row contradicts itself: bytes, time and rate in {match[0].strip()!r}"
        )
    role, rest = match["role"] or "", match["rest"]
    return Row(match["id"], role, start, end, match["end"], rate * scale, rest)


def total(listed: Sequence[Row], streams: int) -> Row:
    """The row of all streams together; raises Unreadable unless there is exactly one."""
    sums = [row for row in listed if row.id == "SUM"]
    if len(sums) == 1:
        return sums[0]
    if len(sums) > 1 or len({row.id for row in listed}) < len(listed):
        raise Contradictory("several summaries in one output: runs are mixed")
    if streams > 1:
        raise Cut(f"the sum of {streams} streams is missing: stopped or cut off")
    if not listed:
        raise Cut("the summary is missing: the run was stopped or its output cut off")
    return listed[0]


def rate(row: Row, name: str) -> Readings:
    """The rate [bit/s] of a row under this name."""
    if row.rate <= 0:
        raise Failed("no data arrived" if name == "goodput" else "no data was sent")
    return {name: row.rate}


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
        listed = rows(part)
        connected = set(CONNECTED.findall(part))
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
            ends = [total(ends, max(streams, len(connected)))]
        if not ends:
            raise Cut(_CUT)
    except Unreadable as reason:
        return [refused(reason, {})]
    name = "goodput" if is_server else "sent_rate"
    rows_of = Counter(row.id for row in listed)
    # A server does not say which of its connections a sum is of: what is beside one may be a part
    # of it.
    alone = "one of several streams" if "SUM" in rows_of else "one stream"
    tests = {"SUM": "sum of streams"} if is_server else {"SUM": f"{streams} streams"}
    return [
        attempt(
            lambda: rate(row, name),
            {"stream": row.id, "duration_s": row.end, "test": tests.get(row.id, alone)},
            _note(row, is_alone=rows_of[row.id] == 1),
        )
        for row in ends
    ]


def _note(row: Row, is_alone: bool) -> str:
    """What a reader of a connection's rate has to know. Its row may be the only one of it that is
    left: 2.0 prints an interval's end with one decimal, and so it may print a whole run's."""
    if not is_alone or not re.fullmatch(r"\d+\.0", row.end_text):
        return NOTE
    return f"{NOTE}; with -i it may be the first {row.end:g} s of a longer run that was cut off"


def _ends(listed: list[Row]) -> tuple[int, list[Row]]:
    """How many streams there are, and the rows that are of a whole connection; raises Unreadable
    when one is cut off.

    With -i a connection's first interval begins at 0 too, and another one follows where it ends.
    """
    by_stream: dict[str, list[Row]] = {}
    for row in listed:
        by_stream.setdefault(row.id, []).append(row)
    whole = []
    for name, stream in by_stream.items():
        if name != "SUM" and (stream[-1].start > 0 or stream[-1].is_interval):
            raise Cut(_CUT)
        following = [row.start for row in stream[1:]] + [0.0]
        whole += [
            row
            for row, start in zip(stream, following)
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
            r"^\[ ID\] Interval(?: {5,8}| {12})\S|^Client connecting to .*, (?:TCP|UDP) port"
            r"|^Server listening on (?:TCP|UDP) port",
            "an output of iperf 2",
        ),
        Mark(r"^\d{14},[\d.]+,\d+,[\d.]+,\d+,-?\d+,", "a CSV output of iperf 2"),
    ),
    aliases=("iperf",),
)
