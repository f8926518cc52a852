"""frame_limit: the largest frame that a path carries, and why larger ones fail.

Found by runners/probes/frame_limit.py, which says how; here its table is read. An echo request with a
payload of n bytes is an IPv4 packet of n + 8 + 20 bytes in a frame of 14 more, the FCS not counted: a limit of
8954 is an MTU of 8982 and frames of 8996 bytes.
"""

import re
from dataclasses import dataclass, replace
from typing import List

from runners.iperf3 import PORT
from runners.parsing import whole
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
_ROW = re.compile(
    r"^ *(\d{1,5}) +(\d{1,6}) +(\d{1,6})  (carried|local|router|silent|unclear)(?: +(.*))?$", re.M
)
_END = re.compile(r"^ *end of frame_limit\s*\Z", re.M)


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
        raise FalloffError(f"`direction` has to be forward, reverse or both, not {direction!r}")
    defaults = {"least_payload": LEAST, "most_payload": MOST, "requests": REQUESTS}
    numbers = [str(point.get(name, value)) for name, value in defaults.items()]
    found = []
    if point.get("load"):  # the client sends until the testbed ends it
        port, receiver = ("--port", str(PORT)), point["receiver"]
        server = ("iperf3", "--server", *port)
        client = ("iperf3", "--client", f"{{node{receiver}}}", *port, "--time", "0")
        found.append(Command(server, node=receiver, background=True, listens=PORT))
        found.append(Command(client, node=point["sender"], background=True))
    for source, target in (_WAYS[way] for way in ways):
        argv = ("frame_limit", f"{{node{point[target]}}}", *numbers)
        found.append(Command(argv, node=point[source], timeout_s=_LIMIT_S))
    return found


def parse(transcript: Transcript) -> List[Reading]:
    """The `readings` of the probe; of the second one with `_reverse` behind their names."""
    texts = [
        execution.stdout for execution in transcript.executions if execution.tool == "frame_limit"
    ]
    found, *second = [readings(text) for text in texts]
    for reading in second[0] if second else []:
        found.append(replace(reading, name=f"{reading.name}_reverse"))
    return found


def results(text: str) -> List[Result]:
    """A result for every table in the output, with the two addresses; raises as `readings` does."""
    tables = re.split(r"(?m)^(?=frame_limit: )", text)[1:]
    if not tables:
        raise Unreadable("there is no table of frame_limit")
    found = []
    for table in tables:
        listed, head = tuple(readings(table)), _HEAD.search(table)
        found.append(Result(listed, {"source": head[1], "target": head[2]}))
    return found


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
    """Every payload that was tried, in order of the payload."""
    head = whole("frame_limit", text, _HEAD, _END)
    rows = [Size(*map(int, row[:3]), *row[3:]) for row in _ROW.findall(text)]
    if not rows or len(rows) + 3 != len(text.strip().splitlines()):
        raise Unreadable("frame_limit's table has a line that is not its own")
    for row in rows:
        is_carried = 2 * row.replies > row.requests
        if is_carried != (row.outcome == "carried") or row.replies > row.requests:
            counts = f"{row.replies} of {row.requests} replies"
            raise Unreadable(f"{counts} is not {row.outcome} ({row.payload} B)")
    tried = sorted(rows, key=lambda row: row.payload)
    outcomes = [size.outcome for size in tried]
    if outcomes[0] == "carried" and "unclear" not in outcomes:
        _require_end(tried, int(head[4]))
    return tried


def _require_end(tried: List[Size], most: int) -> None:
    """Raises Unreadable unless what is carried ends once, at a payload whose next one failed, or at `most`."""
    carried = [size.outcome == "carried" for size in tried]
    if carried != sorted(carried, reverse=True):
        raise Unreadable("a larger payload was carried where a smaller one was not")
    last = tried[sum(carried) - 1].payload
    following = [size.payload for size in tried if size.payload > last]
    if (following[0] != last + 1) if following else (last != most):
        raise Unreadable(f"frame_limit's search did not end: nothing is known beyond {last} B")


RUNNER = Runner("frame_limit", commands, parse, results)
