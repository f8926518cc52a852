"""ping: the round-trip time of small packets between two nodes."""

import re
from statistics import median
from typing import List

from runners.record import Command, Reading, Result, Runner, Settings, Unreadable, parser

# Spaced so that one reply is back before the next request leaves.
INTERVAL_S = 0.02

# ping waits up to 10 s for replies after its last request.
_MARGIN_S = 20.0

_REPLY = re.compile(r"bytes from .*icmp_seq=(\d{1,18}) .*time=(\d{1,18}(?:\.\d{1,18})?) ms$", re.M)
_SUMMARY = re.compile(
    r"^(\d{1,18}) packets transmitted, (\d{1,18}) received,.* packet loss, time \d{1,18}ms$", re.M
)
_END = re.compile(r"^rtt min/avg/max/mdev = \S+ ms(, pipe \d{1,18})?$", re.M)


def commands(point: Settings) -> List[Command]:
    """`count` echo requests from the sender to the receiver, addresses not looked up."""
    address, count = f"{{node{point['receiver']}}}", point["count"]
    argv = ("ping", "-n", "-i", str(INTERVAL_S), "-c", str(count), address)
    limit = count * INTERVAL_S + _MARGIN_S
    return [Command(argv, node=point["sender"], timeout_s=limit)]


def results(text: str) -> List[Result]:
    """The one result: round_trip_time in s, the median of all replies, and ping_loss, the lost share."""
    summary = _SUMMARY.search(text)
    if not summary:
        raise Unreadable("ping's summary is missing: the run was stopped or its output cut off")
    sent, received = int(summary[1]), int(summary[2])
    if received == 0:
        raise Unreadable(f"none of {sent} echo requests was answered")
    times = {int(sequence): float(milliseconds) for sequence, milliseconds in _REPLY.findall(text)}
    if len(times) != received or not _END.search(text):
        raise Unreadable(f"ping counts {received} replies, {len(times)} are printed whole")
    readings = (
        Reading("round_trip_time", median(times.values()) / 1e3, "s"),
        Reading("ping_loss", 1 - received / sent, "1"),
    )
    return [Result(readings)]


parse = parser("ping", results)
RUNNER = Runner("ping", commands, parse, results)
