"""ping: the round-trip time of small packets between two nodes.

Read are the outputs of iputils (Linux), BusyBox, the BSDs, macOS and GNU inetutils. They differ in
the name of the sequence number, in where it begins, and in their last lines.
"""

import re
from statistics import median

from runners.outputs import absent
from runners.parsing import ENDS, REQUEST, attempt, half_digit, parts, usable, without_labels
from runners.records.description_rules import COUNT
from runners.records.record import (
    Command,
    Contradictory,
    Cut,
    Failed,
    Mark,
    Quantity,
    Readings,
    Result,
    Settings,
    Tool,
)

# Spaced so that one reply is back before the next request leaves.
INTERVAL_S = 0.02

# ping waits up to 10 s for replies after its last request.
_MARGIN_S = 20.0

_SEQUENCES = 2**16  # of 16 bits: a long run begins again at 0
_HEAD = re.compile(r"^PING \S+ ?\(", re.M)
_SIZE = re.compile(r"^PING .*?\b(\d{1,6})(?:\(\d+\))? (?:data )?bytes", re.M)
_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_REPLY = re.compile(
    rf"bytes from .*?(?:icmp_)?(?:seq|req)=(\d{{1,9}}) .*time=({_NUMBER}) ms( \(DUP!\))?$", re.M
)
_SUMMARY = re.compile(
    r"^(\d{1,9}) packets transmitted, (\d{1,9}) (?:packets )?received,.* packet loss\b.*$", re.M
)
_END = re.compile(
    rf"^(?:rtt|round-trip) min/avg/max(?:/\w+)? = ({_NUMBER})/{_NUMBER}/({_NUMBER})"
    rf"(?:/{_NUMBER})? ms(?:, .*)?$",
    re.M,
)


def commands(point: Settings) -> list[Command]:
    """`count` echo requests from the sender to the receiver, addresses not looked up."""
    address, count = f"{{node{point['receiver']}}}", point["count"]
    argv = ("ping", "-n", "-i", str(INTERVAL_S), "-c", str(count), address)
    limit = count * INTERVAL_S + _MARGIN_S
    return [Command(argv, node=point["sender"], timeout_s=limit)]


def results(text: str) -> list[Result]:
    """One result for each run in an output: round_trip_time in s, the median of all replies, and
    ping_loss, the lost share.

    Raises Unreadable when no run can be used.
    """
    text = without_labels(text).replace("\r", "\n")
    runs = [run for _, run in parts(text, _HEAD)] or [text]
    sizes = [dict(zip(("request_bytes",), map(int, _SIZE.findall(run)))) for run in runs]
    return usable([attempt(lambda: _readings(run), size) for run, size in zip(runs, sizes)])


def _readings(run: str) -> Readings:
    summaries = _SUMMARY.findall(run)
    if not summaries:
        if not _HEAD.search(run):
            raise absent("ping", run, "an output of ping")
        raise Cut("ping's summary is missing: the run was stopped or its output cut off")
    if len(summaries) > 1:
        raise Contradictory("several summaries of ping without their first lines: runs are mixed")
    sent, received = map(int, summaries[0])
    replies = _REPLY.findall(run)
    first = [(sequence, time) for sequence, time, repeated in replies if not repeated]
    ends = _END.findall(run)
    if received > sent:
        raise Contradictory(f"ping counts {received} replies to {sent} requests")
    if len(first) != received:
        raise Contradictory(f"ping counts {received} replies, {len(first)} are printed whole")
    if sent == 0:
        raise Failed("ping sent no echo request")
    if received == 0:
        raise Failed(f"none of {sent} echo requests was answered")
    if not ends:
        raise Cut("ping's last line, of the round-trip times, is missing: its output is cut off")
    if len(ends) > 1:
        raise Contradictory("several last lines of ping without their first lines: runs are mixed")
    if sent <= _SEQUENCES and len({int(sequence) for sequence, _ in first}) < len(first):
        raise Contradictory("two replies have one number: several runs are mixed")
    printed = [time for _, time, _ in replies]  # ping's own least and largest are of duplicates too
    for chosen, end in zip((min, max), ends[0]):
        time = chosen(printed, key=float)
        # Some versions round and some cut off.
        if abs(float(time) - float(end)) > 2 * (half_digit(time) + half_digit(end)):
            raise Contradictory(
                f"ping's {chosen.__name__} is {end} ms, that of its lines {time} ms"
            )
    middle = median(float(time) for _, time in first)
    return {"round_trip_time": middle / 1e3, "ping_loss": 1 - received / sent}


TOOL = Tool(
    "ping",
    commands,
    results,
    settings={
        "sender": COUNT,
        "receiver": COUNT,
        "count": COUNT,
    },
    readings={
        "round_trip_time": Quantity("median round-trip time", "s"),
        "ping_loss": Quantity("share of pings without a reply", "1"),
    },
    factors={**ENDS, **REQUEST},
    marks=(Mark(r"^PING \S+ ", "an output of ping"),),
    result_line=r"^(?:rtt|round-trip) min.*$",
    packages=("iputils-ping",),
    seconds=lambda point, testbed: point.get("count", 0) * INTERVAL_S,  # but for the round trips
)
