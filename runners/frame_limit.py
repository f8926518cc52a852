"""frame_limit: the largest frame that a path carries, and why larger ones fail.

Found by runners/probes/frame_limit.py, which says how; here its table is read. An echo request with a
payload of n bytes is an IPv4 packet of n + 8 + 20 bytes in a frame of 14 more, the FCS not counted: a limit of
8954 is an MTU of 8982 and frames of 8996 bytes.
"""

import re
from dataclasses import dataclass
from typing import List

from runners.iperf3 import PORT
from runners.record import (
    Command,
    FalloffError,
    InvalidRun,
    Reading,
    Result,
    Runner,
    Settings,
    Transcript,
    Unreadable,
)

# Payloads [B] of the least packet that every path must carry (RFC 791: 68 bytes) and of the largest one.
LEAST, MOST = 40, 65507
REQUESTS = 10  # of a batch: at 20 % loss all of them are lost once in ten million batches

ICMP_HEADER, IP_HEADER, ETHERNET_HEADER = 8, 20, 14

# A payload that is lost in the interface's own queue takes a second for each request, 20 ms otherwise.
_LIMIT_S = 300.0

_WAYS = {"forward": ("sender", "receiver"), "reverse": ("receiver", "sender")}

_HEAD = re.compile(r"^frame_limit: (\S+) to (\S+), payloads from (\d{1,5}) to (\d{1,5}) B, ", re.M)
_ROW = re.compile(r"^ *(\d{1,5}) +(\d{1,6}) +(\d{1,6})  (carried|local|router|silent|unclear)(?: +(.*))?$", re.M)
_END = "end of frame_limit"


@dataclass(frozen=True)
class Size:
    """A payload [B] that was tried: requests, replies, `outcome` and what ping said.

    The outcome is `carried`, `local` (longer than the interface's MTU), `router` (one needed to fragment it),
    `silent` (lost without a word) or `unclear` (some replies, but not most; or another complaint).
    """

    payload: int
    requests: int
    replies: int
    outcome: str
    said: str


def commands(point: Settings) -> List[Command]:
    """A probe on the sender, the receiver (`direction` "reverse") or one after the other ("both").

    With `load`, TCP from the sender to the receiver fills the path meanwhile. `least_payload`, `most_payload`
    and `requests` narrow the search. Raises FalloffError for an unknown direction.
    """
    direction = point.get("direction", "forward")
    ways = list(_WAYS) if direction == "both" else [direction]
    if not set(ways) <= set(_WAYS):
        raise FalloffError(f"frame_limit runs forward, reverse or both, not {direction!r}: correct `direction`")
    numbers = [point.get("least_payload", LEAST), point.get("most_payload", MOST), point.get("requests", REQUESTS)]
    probes = []
    for source, target in (_WAYS[way] for way in ways):
        argv = ("frame_limit", f"{{node{point[target]}}}", *map(str, numbers))
        probes.append(Command(argv, node=point[source], timeout_s=_LIMIT_S))
    return [*(_load(point) if point.get("load") else []), *probes]


def _load(point: Settings) -> List[Command]:
    """A server and a client that sends until the testbed ends it."""
    server = ("iperf3", "--server", "--port", str(PORT))
    client = ("iperf3", "--client", f"{{node{point['receiver']}}}", "--port", str(PORT), "--time", "0")
    return [
        Command(server, node=point["receiver"], background=True, listens=PORT),
        Command(client, node=point["sender"], background=True),
    ]


def parse(transcript: Transcript) -> List[Reading]:
    """The `readings` of the probe; of the second one with `_reverse` behind their names.

    Raises Unreadable and InvalidRun as they do.
    """
    texts = [execution.stdout for execution in transcript.executions if execution.tool == "frame_limit"]
    forward, *reverse = [readings(text) for text in texts]
    return forward + [
        Reading(f"{reading.name}_reverse", reading.value, reading.unit) for listed in reverse for reading in listed
    ]


def results(text: str) -> List[Result]:
    """A result for every table in the output, with the two addresses; raises as `readings` does."""
    tables = re.split(r"(?m)^(?=frame_limit: )", text)[1:]
    if not tables:
        raise Unreadable("there is no table of frame_limit")
    return [
        Result(tuple(readings(table)), dict(zip(("source", "target"), _HEAD.search(table).groups())))
        for table in tables
    ]


def readings(text: str) -> List[Reading]:
    """frame_payload, frame_mtu and frame_bytes_largest in B, and frame_fault: why one byte more fails.

    The fault is the outcome of the next payload, or `none` when the largest one tried was carried. Raises
    InvalidRun when the limit is undecided or no payload was carried; otherwise as `sizes` does.
    """
    tried = sizes(text)
    unclear = [size for size in tried if size.outcome == "unclear"]
    if unclear:
        size = unclear[0]
        said = f" ({size.said})" if size.said else ""
        raise InvalidRun(
            f"undecided: {size.replies} of {size.requests} requests of {size.payload} B were answered{said}"
        )
    carried = [size.payload for size in tried if size.outcome == "carried"]
    if not carried:
        raise InvalidRun(f"not even {tried[0].payload} B were carried ({tried[0].outcome})")
    payload = max(carried)
    fault = next((size.outcome for size in tried if size.payload == payload + 1), "none")
    mtu = payload + ICMP_HEADER + IP_HEADER
    return [
        Reading("frame_payload", payload, "B"),
        Reading("frame_mtu", mtu, "B"),
        Reading("frame_bytes_largest", mtu + ETHERNET_HEADER, "B"),
        Reading("frame_fault", fault, ""),
    ]


def sizes(text: str) -> List[Size]:
    """Every payload that was tried, in order of the payload.

    Raises Unreadable when the table is cut off or contradicts itself, or the search did not end.
    """
    head = _HEAD.search(text)
    if not head or not text.rstrip().endswith(_END):
        raise Unreadable("frame_limit did not print its first and last line: stopped, or its output cut off")
    rows = [Size(*map(int, row[:3]), *row[3:]) for row in _ROW.findall(text)]
    if not rows or len(rows) + 3 != len(text.strip().splitlines()):
        raise Unreadable("frame_limit's table has a line that is not its own")
    for row in rows:
        if (2 * row.replies > row.requests) != (row.outcome == "carried") or row.replies > row.requests:
            raise Unreadable(f"{row.replies} of {row.requests} replies is not {row.outcome} ({row.payload} B)")
    tried = sorted(rows, key=lambda row: row.payload)
    _check_end(tried, int(head[4]))
    return tried


def _check_end(tried: List[Size], most: int) -> None:
    """Raises Unreadable unless what is carried ends once, at a payload whose next one failed, or at `most`."""
    outcomes = [size.outcome == "carried" for size in tried]
    if not outcomes[0] or any(size.outcome == "unclear" for size in tried):
        return
    last = outcomes.count(True) - 1
    if outcomes != sorted(outcomes, reverse=True):
        raise Unreadable("frame_limit reports that a larger payload was carried where a smaller one was not")
    after = tried[last + 1 :]
    if (after and after[0].payload != tried[last].payload + 1) or (not after and tried[last].payload != most):
        raise Unreadable(f"frame_limit's search did not end: nothing is known beyond {tried[last].payload} B")


RUNNER = Runner("frame_limit", commands, parse, results)
