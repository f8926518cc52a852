"""iperf3: the goodput of TCP streams between two nodes, one way, reversed or both ways at once."""

import json
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Optional

from runners.outputs import absent, is_output_of
from runners.parsing import ENDS, GOODPUT, attempt, usable, without_labels
from runners.records.description_rules import COUNT, NAME, NOT_NEGATIVE, POSITIVE, WHOLE, one_of
from runners.records.record import (
    Command,
    Contradictory,
    Cut,
    Failed,
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
    mismatch,
)
from runners.tools import iperf2

PORT = 5201

# Connecting, and the exchange of results at the end.
_MARGIN_S = 20.0

# The data flow from the client to the server, or the other way. Both ways at once are two programs
# at each end, since iperf3's own --bidir sends and receives in one thread: at an MTU of 1500 one
# way then stalled the other.
_CLIENTS = {"forward": ((),), "reverse": (("--reverse",),), "both": (("--reverse",), ())}
_OPTIONS = {
    "streams": "--parallel",
    "omit_s": "--omit",
    "window_bytes": "--window",
    "congestion_control": "--congestion",
}
_EACH_WAY = ("goodput", "retransmits")
# Who sends one way receives the other.
_OTHER_END = {"cpu_sender": "cpu_receiver", "cpu_receiver": "cpu_sender"}
_BEHIND_S = 1  # by which the client in the background may end later than the other

# Settings of a trial that a report names too.
_COMPARABLE = ("direction", "streams", "duration_s", "omit_s", "window_bytes", "congestion_control")

# A report begins a line; a terminal's colours and other control characters may stand before it. The
# blanks before the first one are taken as a whole (\1): each of n tried as their last took time in
# n^2.
_BEGIN = re.compile(
    r"(?m)(?:\A(?=(\s*))\1|^)(?:\x1b\[[\d;]*m|[\x00-\x08\x0b-\x1f\x7f\ufeff]|\^C)*(?=\{|\[\s*\{)"
)
# What a report has; with -d iperf3 prints other objects between its text.
_REPORT = re.compile(r'(?:\[\s*)?\{\s*"(?:start|intervals|end|error|event)"')
# Of the text that is printed without --json.
_RUN = re.compile(r"^(?:Connecting to host|Accepted connection from) .*$", re.M)
_ERROR = re.compile(r"^iperf3: (?:error - |interrupt - )(.{1,150})", re.M)
_RECEIVER = re.compile(r"[ \t]receiver[ \t]*$")
_SENDER = re.compile(r"^(?:[ \t]+(\d{1,12})|.*)[ \t]+sender[ \t]*$")
# What 3.12 writes once for each stream, into one object.
_OF_EACH_STREAM = ("sock_bufsize", "sndbuf_actual", "rcvbuf_actual", "target_bitrate")
_UDP = "a test of UDP, which is read as udp_sizes, from --json alone"
_LATE_S = 0.5  # by which the sender's last interval may end after the receiver's summary
_ROUNDING = 1e-3  # of a rate against its own bytes and seconds: iperf 3.0 printed six digits

_BOTH_WAYS = "sum_received_bidir_reverse"  # only a report of --bidir has it

Report = dict[str, Any]


def options(point: Settings) -> list[str]:
    """The client's options for those settings that a point has and that are not 0."""
    chosen = [name for name in _OPTIONS if point.get(name)]
    return [word for name in chosen for word in (_OPTIONS[name], str(point[name]))]


def limit_s(point: Settings) -> float:
    """The time [s] that a test of a point may take."""
    return point["duration_s"] + point.get("omit_s", 0) + _MARGIN_S


def server(node: int, limit: float, *words: str, port: int = PORT) -> Command:
    """A server for one test."""
    argv = ("iperf3", "--server", "--one-off", "--json", "--port", str(port), *words)
    return Command(argv, node=node, timeout_s=limit, background=True, listens=port)


def commands(point: Settings) -> list[Command]:
    """A server for one test on the receiver, then the client on the sender; both report in JSON.

    Both ways at once there are two servers, and two clients together. Of `point`, `sender`,
    `receiver` and `duration_s` are needed; `direction` (forward: the client sends), `streams`,
    `omit_s`, `window_bytes` (0: the kernel's choice) and `congestion_control` have defaults.
    """
    limit, sender, receiver = limit_s(point), point["sender"], point["receiver"]
    ways = _CLIENTS[point.get("direction", "forward")]
    servers, clients = [], []
    for port, way in enumerate(ways, start=PORT):
        servers.append(server(receiver, limit, port=port))
        call = ["iperf3", "--client", f"{{node{receiver}}}", "--json", "--port", str(port)]
        call += ["--time", str(point["duration_s"]), *way, *options(point)]
        in_background = port - PORT + 1 < len(ways)
        clients.append(Command(tuple(call), node=sender, timeout_s=limit, background=in_background))
    if len(ways) > 1:
        # What runs in the background ends with the trial: it is given the time to end by itself.
        clients.append(Command(("sleep", str(_BEHIND_S)), node=sender, timeout_s=limit))
    return [*servers, *clients]


def parse(transcript: Transcript) -> Readings:
    """The readings of one trial (see `readings`), from the reports of both its ends.

    Both ways at once, goodput_reverse and retransmits_reverse are those of the test whose server
    sent, and cpu_sender and cpu_receiver the sums of what either end's programs used. Raises
    Unreadable as `readings` does or when a test is missing, InvalidRun when a report is one of
    other settings.
    """
    point = transcript.trial.point
    servers: dict[str, str] = {}
    clients: dict[str, str] = {}
    for execution in transcript.executions:
        if execution.tool == "iperf3":
            words = execution.argv
            port = words[words.index("--port") + 1] if "--port" in words else ""
            ends = servers if "--server" in words else clients
            ends[port] = execution.stdout
    direction = point.get("direction", "forward")
    ways = ("reverse", "forward") if direction == "both" else (direction,)
    if len(clients) < len(ways):
        raise Cut("iperf3 did not run in every direction that was asked for")
    *back, measured = (
        _of_test({**point, "direction": way}, clients[port], servers.get(port, ""))
        for way, port in zip(ways, sorted(clients))
    )
    for reverse in back:
        measured |= {f"{name}_reverse": reverse[name] for name in _EACH_WAY if name in reverse}
        for name, of_reverse in _OTHER_END.items():
            if name in measured and of_reverse in reverse:
                measured[name] += reverse[of_reverse]
    return measured


def _of_test(point: Settings, client: str, server: str) -> dict[str, Any]:
    """The readings of one test, after a check of what it did."""
    report, other = only_report(client), None
    with suppress(Unreadable):  # what is lost with it are readings that the client does not have
        other = reports(server)[0]
    measured = readings(report, other)
    asked = {name: value for name, value in point.items() if name in _COMPARABLE}
    has = {"protocol": "TCP", "window_bytes": 0, **settings(report)}
    faults = mismatch({"protocol": "TCP", **asked}, has)
    if faults:
        raise InvalidRun("; ".join(faults))
    return measured


def results(text: str) -> list[Result]:
    """Every report in an output, in JSON or as text, as a result with the settings it names."""
    text = without_labels(text)
    if not _REPORT.search(text) and iperf2.ROW.search(text):
        if is_output_of("iperf2", text):
            raise Foreign("an output of iperf 2, which prints the same rows")
        begins = [run.start() for run in _RUN.finditer(text)] or [0]
        parts = [text[begin:end] for begin, end in zip(begins, [*begins[1:], len(text)])]
        return usable([_of_text(part) for part in parts])
    return usable([attempt(lambda: readings(report), settings(report)) for report in reports(text)])


def _of_text(part: str) -> Result:
    """The result of one run that was printed without --json."""
    streams = len(set(iperf2.CONNECTED.findall(part)))
    stated: dict[str, Any] = {"protocol": "TCP"}
    if streams:
        stated["streams"] = streams
    if not part.startswith("Accepted"):  # a server prints the same for both
        stated["direction"] = "reverse" if "\nReverse mode, " in part else "forward"
    return attempt(lambda: _text_readings(part, streams), stated, iperf2.NOTE)


def _text_readings(part: str, streams: int) -> Readings:
    """goodput and retransmits from the rows below the last rule; raises Unreadable as `readings`
    does.
    """
    _refuse_what_it_says(part)
    if "Lost/Total Datagrams" in part:
        raise Unsupported(_UDP)
    listed = iperf2.rows(part)
    if any(row.role for row in listed):
        raise Unsupported("the text of --bidir is not read: use --json")
    whole = [row for row in listed if row.start == 0]
    received = iperf2.total([row for row in whole if _RECEIVER.search(row.rest)], streams)
    if any(row.end > received.end + _LATE_S for row in listed):
        raise Contradictory("the summary ends before its intervals: several runs are mixed")
    measured = iperf2.rate(received, "goodput")
    counted = [_SENDER.search(row.rest) for row in whole if row.id == received.id]
    sent = [match for match in counted if match]
    if len(sent) == 1 and sent[0][1]:
        return {**measured, "retransmits": int(sent[0][1])}
    return measured


def only_report(text: str) -> Report:
    """The one report in an output; raises Unreadable when there are more or it tells an error."""
    listed = reports(text)
    if len(listed) > 1:
        raise Contradictory("more than one iperf3 report in one output")
    _refuse_an_error(listed[0])
    return listed[0]


def reports(text: str) -> list[Report]:
    """Every report in `text`, whatever other lines stand around them; at least one."""
    if not text.strip():
        raise Cut("iperf3 printed nothing")
    decoder = json.JSONDecoder(object_pairs_hook=_unique)
    objects: list[Report] = []
    begin = _BEGIN.search(text)
    while begin:
        try:
            report, end = decoder.raw_decode(text, begin.end())
        except json.JSONDecodeError as error:
            _refuse_what_it_says(text)
            where = f"line {error.lineno}: {error.msg}"
            # Of a word, a number or a string that is cut off the beginning is still there.
            is_cut = len(text[error.pos :].strip()) < len("false") or "Untermin" in error.msg
            not_whole = f"iperf3's report is not whole JSON ({where})"
            raise (Cut if is_cut else Contradictory)(not_whole) from None
        except (ValueError, RecursionError):  # a number of thousands of digits, endless brackets
            raise Contradictory("iperf3's report is not one that iperf3 writes") from None
        listed = report if isinstance(report, list) else [report]  # `jq --slurp` makes a list
        if _REPORT.match(text, begin.end()):
            objects += [item for item in listed if isinstance(item, dict)]
        begin = _BEGIN.search(text, end)
    if not objects:
        _refuse_what_it_says(text)
        if iperf2.ROW.search(text):
            raise Unsupported("iperf3's report is not a JSON object: it is written by --json")
        raise absent("iperf3", text, "an output of iperf3")
    return objects


def _refuse_what_it_says(text: str) -> None:
    """Raises Unreadable with iperf3's own complaint, where it printed one beside or instead of a
    report.
    """
    complaint = _ERROR.search(text)
    if complaint:
        raise Failed(f"iperf3 says: {complaint[1]}")


def _refuse_an_error(report: Report) -> None:
    """Raises Unreadable with iperf3's own complaint, where a report has one."""
    if "error" in report:
        raise Failed(f"iperf3 says: {report['error']}")


def _unique(pairs: Sequence[tuple[str, Any]]) -> Report:
    """A JSON object; of --bidir iperf3 3.7 to 3.10 wrote the sums of both ways under one name."""
    table = dict(pairs)
    if len(table) == len(pairs):
        return table
    sums = [name for name, _ in pairs if name.startswith("sum")]
    if len(set(sums)) < len(sums):
        raise Unsupported(
            "iperf3's report of --bidir gives both ways one name: "
            "use iperf3 3.12, or run each way by itself"
        )
    if any(value != table[name] for name, value in pairs if name not in _OF_EACH_STREAM):
        raise Contradictory("iperf3's report has two values for one name: reports are mixed")
    return table


def settings(report: Report) -> dict[str, Any]:
    """The settings that a report names, under the names of a trial's settings, and the version."""
    asked = part(report, "start", "test_start")
    direction = "reverse" if asked.get("reverse") else "forward"
    if _BOTH_WAYS in part(report, "end"):
        direction = "both"
    named = {
        "version": str(part(report, "start").get("version", "unknown")).replace("iperf ", ""),
        "protocol": asked.get("protocol"),
        "direction": direction if asked else None,
        "streams": asked.get("num_streams"),
        "duration_s": asked.get("duration"),
        "omit_s": asked.get("omit"),
        "window_bytes": part(report, "start").get("sock_bufsize") or None,
        "congestion_control": part(report, "end").get("sender_tcp_congestion"),
    }
    return {name: value for name, value in named.items() if value is not None}


def readings(report: Report, server: Optional[Report] = None) -> dict[str, Any]:
    """What a test measured, from its client's report and, where it is there, its server's.

    goodput [bit/s] as the receiver counted it and, where the reports have them, retransmits of the
    sender, mss [B], rtt_mean [s] of the sending kernel, goodput_interval [bit/s] of the receiver
    without omitted intervals, and cpu_sender and cpu_receiver, shares of one core. Of --bidir these
    are of the client's sending; goodput_reverse and retransmits_reverse are of the server's.
    """
    _refuse_an_error(report)
    if "event" in report:
        raise Unsupported("the output is of --json-stream: use --json")
    start, asked = part(report, "start"), part(report, "start", "test_start")
    sums = (part(report, "end", name) for name in ("sum", "sum_received"))
    if asked.get("protocol") == "UDP" or any("jitter_ms" in total for total in sums):
        raise Unsupported(_UDP)
    sender, receiver = (server, report) if asked.get("reverse") else (report, server)
    measured = _goodput(report)
    if _BOTH_WAYS in part(report, "end"):
        back = _goodput(report, "_bidir_reverse")
        measured |= {f"{name}_reverse": value for name, value in back.items()}
    mss = number(start, "tcp_mss" if "tcp_mss" in start else "tcp_mss_default")
    if mss >= 1:
        measured["mss"] = mss
    measured |= {**_round_trip(sender or {}), **_intervals(receiver or {})}
    return {**measured, **(_cpu(report, asked["reverse"]) if "reverse" in asked else {})}


def _goodput(report: Report, way: str = "") -> dict[str, Any]:
    """What the receiver counted, and the sender's retransmits, which only some systems count."""
    total = part(report, "end", f"sum_received{way}")
    rate, counted = number(total, "bits_per_second"), number(total, "bytes")
    if math.isnan(rate) or math.isnan(counted):
        lacking = f"iperf3's report has no end.sum_received{way}.bits_per_second or bytes"
        if {"bits_per_second", "bytes"} <= total.keys():
            raise Contradictory(f"{lacking} that is a number")
        # What does not end is whole too: its `end` is empty.
        raise (Failed if report.get("end") == {} else Cut)(f"{lacking}: the test did not end")
    if rate <= 0:
        if "accepted_connection" in part(report, "start"):
            raise Unsupported("the server's report does not know what the client received")
        raise Failed("iperf3's receiver counted no data")
    # Versions differ in whether `seconds` is of the sender's or the receiver's clock; `end` is the
    # latter.
    times = (number(total, name) for name in ("seconds", "end"))
    if not any(abs(rate * time / 8 - counted) <= _ROUNDING * counted for time in times):
        raise Contradictory(
            f"iperf3's end.sum_received{way} contradicts itself: bytes, time and rate"
        )
    retransmits = number(part(report, "end", f"sum_sent{way}"), "retransmits")
    return {"goodput": rate, **({"retransmits": retransmits} if retransmits >= 0 else {})}


def _round_trip(report: Report) -> Readings:
    """The mean over the streams that this end sent; of the others it does not know the sender's."""
    senders = [part(stream, "sender") for stream in _list(part(report, "end"), "streams")]
    means = [number(sender, "mean_rtt") for sender in senders if sender.get("sender", True)]
    positive = [mean for mean in means if mean > 0]
    return {"rtt_mean": sum(positive) / len(positive) / 1e6} if positive else {}


def _intervals(report: Report) -> Readings:
    """The full intervals of what this end received; after the last one a server adds a fragment."""
    sums = [part(interval, "sum") for interval in _list(report, "intervals")]
    seconds = [number(total, "seconds") for total in sums]
    rates = [number(total, "bits_per_second") for total in sums]
    if any(map(math.isnan, [*seconds, *rates])):
        return {}
    half = max(seconds, default=0) / 2
    full = [
        rate
        for total, time, rate in zip(sums, seconds, rates)
        if time > half and not (total.get("omitted") or total.get("sender"))
    ]
    return {"goodput_interval": full} if full else {}


def _cpu(report: Report, reverse: bool) -> Readings:
    """iperf3 measures its own process, in % of one core; a server is not told of its client's."""
    used = part(report, "end", "cpu_utilization_percent")
    sender, receiver = number(used, "host_total"), number(used, "remote_total")
    if reverse:
        sender, receiver = receiver, sender
    # 0 is what an end prints that was not told.
    if "accepted_connection" in part(report, "start") or not (sender > 0 and receiver > 0):
        return {}
    return {"cpu_sender": sender / 100, "cpu_receiver": receiver / 100, "cpu_source": "tool"}


def _list(parent: Report, name: str) -> list[Any]:
    value = parent.get(name)
    return value if isinstance(value, list) else []


def part(report: Any, *names: str) -> Report:
    """A part of a report, by the names that lead to it; empty when it is not there."""
    for name in names:
        report = report.get(name) if isinstance(report, dict) else None
    return report if isinstance(report, dict) else {}


def number(table: Report, name: str) -> float:
    """A number of a report; NaN when it is not there, or none, or beyond what iperf3 counts."""
    value: Any = table.get(name)
    limit = {int: 2**63, float: math.inf}.get(type(value))  # a damaged one is beyond any float
    return value if limit and abs(value) < limit else math.nan


OF_TCP = {
    "duration_s": POSITIVE,
    "omit_s": NOT_NEGATIVE,
    "direction": one_of(["forward", "reverse", "both"]),
    "streams": COUNT,
    "congestion_control": NAME,
    "window_bytes": WHOLE,
}


TOOL = Tool(
    "iperf3",
    commands,
    results,
    {"sender": COUNT, "receiver": COUNT, **OF_TCP},
    readings={
        **GOODPUT,
        "goodput_reverse": Quantity("TCP payload received the other way at the same time", "bit/s"),
        "goodput_interval": Quantity(
            "TCP payload received in each interval", "bit/s", dims=("trial", "interval")
        ),
        "retransmits": Quantity("TCP segments sent again", "1"),
        "retransmits_reverse": Quantity("TCP segments sent again the other way", "1"),
        "mss": Quantity("TCP maximum segment size", "B"),
        "rtt_mean": Quantity("mean round-trip time as the sending kernel estimates it", "s"),
        "cpu_sender": Quantity(
            "share of one core at the sending end (both ways: at the sender), as the tool says", "1"
        ),
        "cpu_receiver": Quantity(
            "share of one core at the receiving end (both ways: at the receiver), as the tool says",
            "1",
        ),
        "cpu_source": Quantity("where cpu_sender and cpu_receiver are from"),
    },
    factors={
        **ENDS,
        "direction": Quantity(
            "direction of the data: "
            "from sender to receiver (forward), back (reverse) or both at once"
        ),
        "streams": Quantity("parallel TCP streams", "1"),
        "window_bytes": Quantity("socket buffer asked for (0: the kernel's choice)", "B"),
        "congestion_control": Quantity("TCP congestion control"),
    },
    marks=(
        Mark(r"^(?:\^C)?(?:\[\s*)?\{\s*\"start\"", "an iperf3 JSON output"),
        Mark(r"\A\s*\{\s*\"(?:error|event)\"", "an iperf3 JSON output"),
        Mark(
            r"^iperf3: (?:error|interrupt)|^Connecting to host |^Server listening on \d",
            "a text output of iperf3",
        ),
        Mark(r"^\[ ID\](?:\[Role\])? Interval {11}\S", "a text output of iperf3"),
    ),
    result_line=r'^\s*"end":.*$',
    packages=("iperf3",),
    seconds=lambda point, testbed: point.get("omit_s", 0) + point.get("duration_s", 0),
    parse_trial=parse,
)
