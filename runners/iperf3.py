"""iperf3: the goodput of one TCP stream between two nodes, as counted by the receiver."""

import json
import math
from typing import Any, List

from runners.record import Command, Reading, Result, Runner, Settings, Transcript, Unreadable

PORT = 5201

# Connecting, and the exchange of results at the end.
_MARGIN_S = 15.0


def commands(point: Settings) -> List[Command]:
    """A server for one test on the receiver, then the client on the sender."""
    duration, in_quota = point["duration_s"], point["in_quota"]
    server = ("iperf3", "--server", "--one-off", "--json", "--port", str(PORT))
    address = f"{{node{point['receiver']}}}"
    client = ("iperf3", "--client", address, "--json", "--port", str(PORT), "--time", str(duration))
    limit = duration + _MARGIN_S
    return [
        Command(
            server, node=point["receiver"], timeout_s=limit, background=True, listens=PORT, in_quota=in_quota
        ),
        Command(client, node=point["sender"], timeout_s=limit, in_quota=in_quota),
    ]


def parse(transcript: Transcript) -> List[Reading]:
    """The `readings` of the client's report; raises Unreadable as they do."""
    clients = [execution for execution in transcript.executions if "--server" not in execution.argv]
    return readings(clients[-1].stdout)


def results(text: str) -> List[Result]:
    """The one result in a report."""
    return [Result(tuple(readings(text)))]


def readings(text: str) -> List[Reading]:
    """goodput in bit/s at the receiver, and the sender's number of retransmitted segments.

    Raises Unreadable with iperf3's own reason when it gives one, otherwise with what is missing.
    """
    report = _document(text)
    if "error" in report:
        raise Unreadable(f"iperf3 says: {report['error']}")
    goodput = _number(report, "sum_received", "bits_per_second")
    retransmits = _number(report, "sum_sent", "retransmits")
    if goodput <= 0:
        raise Unreadable("iperf3's receiver counted no data")
    return [Reading("goodput", goodput, "bit/s"), Reading("retransmits", retransmits, "1")]


def _document(text: str) -> Any:
    """The one JSON object in `text`; raises Unreadable when there is none, half of one, or more."""
    if not text.strip():
        raise Unreadable("iperf3 printed nothing")
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise Unreadable("more than one iperf3 report in one output") from None
        raise Unreadable(f"iperf3's report is not whole JSON (line {error.lineno}: {error.msg})") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, brackets without end
        raise Unreadable("iperf3's report is not one that iperf3 writes") from None
    if not isinstance(document, dict):
        raise Unreadable("iperf3's report is not a JSON object")
    return document


def _number(report: Any, part: str, name: str) -> float:
    """A number of the report's `end`; raises Unreadable when the test did not get that far."""
    try:
        value = report["end"][part][name]
    except (KeyError, TypeError):
        value = None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise Unreadable(f"iperf3's report has no end.{part}.{name}: the test did not reach its end")
    return value


RUNNER = Runner("iperf3", commands, parse, results)
