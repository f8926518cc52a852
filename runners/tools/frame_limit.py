"""frame_limit: the largest frame that a path carries, and why larger ones fail.

Found by runners/probes/frame_limit.py, which says how; here its table is read. An echo request with
a payload of n bytes is an IPv4 packet of n + 8 + 20 bytes in a frame of 14 more, the FCS not
counted: a limit of 8954 is an MTU of 8982 and frames of 8996 bytes.
"""

import re

from runners.parsing import ENDS, whole
from runners.probes.frame_limit import CARRIED, UNCLEAR, Try
from runners.records.description_rules import COUNT, WHOLE, YES_OR_NO, one_of
from runners.records.record import (
    Command,
    Contradictory,
    InvalidRun,
    Mark,
    Quantity,
    Readings,
    Result,
    Settings,
    Tool,
    Transcript,
)
from runners.tools.iperf3 import PORT

REQUESTS = 10  # of a batch: at 20 % loss all of them are lost once in ten million batches

ICMP_HEADER, IP_HEADER, ETHERNET_HEADER = 8, 20, 14

# A payload that is lost in the interface's own queue takes a second for each request, 20 ms
# otherwise.
_LIMIT_S = 300.0

_HEAD = re.compile(
    r"^frame_limit: (?P<source>\S+) to (?P<target>\S+), payloads from \d{1,5} to \d{1,5} B, ", re.M
)
_ROW = re.compile(
    r"^ *(\d{1,5}) +(\d{1,6}) +(\d{1,6})  (carried|local|router|silent|unclear)(?: +(.*))?$", re.M
)


def commands(point: Settings) -> list[Command]:
    """A probe on the sender, then one on the receiver, for payloads from `least_payload` to
    `most_payload` [B].

    With `load`, TCP from the sender to the receiver fills the path meanwhile.
    """
    sender, receiver, listed = point["sender"], point["receiver"], []
    if point.get("load"):  # the client sends until the testbed ends it
        port = ("--port", str(PORT))
        server = ("iperf3", "--server", *port)
        client = ("iperf3", "--client", f"{{node{receiver}}}", *port, "--time", "0")
        listed.append(Command(server, node=receiver, background=True, listens=PORT))
        listed.append(Command(client, node=sender, background=True))
    numbers = [str(point["least_payload"]), str(point["most_payload"]), str(REQUESTS)]
    for source, target in ((sender, receiver), (receiver, sender)):
        argv = ("frame_limit", f"{{node{target}}}", *numbers)
        listed.append(Command(argv, node=source, timeout_s=_LIMIT_S))
    return listed


def parse(transcript: Transcript) -> Readings:
    """The `readings` of the probe; of the second one with `_reverse` behind their names."""
    probes = [
        execution.stdout for execution in transcript.executions if execution.tool == "frame_limit"
    ]
    return {
        name + suffix: value
        for text, suffix in zip(probes, ("", "_reverse"))
        for name, value in readings(text).items()
    }


def results(text: str) -> list[Result]:
    """The one result of an output, with the two addresses; raises as `readings` does."""
    return [Result(readings(text), whole("frame_limit", text, _HEAD, "source", "target"))]


def readings(text: str) -> Readings:
    """frame_payload, frame_mtu and frame_bytes_largest in B, and frame_fault: why one byte more
    fails.

    The fault is the outcome of the next payload, or `none` when the largest one tried was carried.
    Raises InvalidRun when the limit is undecided or no payload was carried, and Unreadable when the
    table is not whole.
    """
    tried = tries(text)
    unclear = [attempt for attempt in tried if attempt.outcome == UNCLEAR]
    if unclear:
        undecided = unclear[0]
        complaint = f" ({undecided.said})" if undecided.said else ""
        raise InvalidRun(
            f"undecided: {undecided.replies} of {undecided.requests} requests "
            f"of {undecided.payload} B were answered{complaint}"
        )
    if tried[0].outcome != CARRIED:
        raise InvalidRun(f"not even {tried[0].payload} B were carried ({tried[0].outcome})")
    payload = max(attempt.payload for attempt in tried if attempt.outcome == CARRIED)
    fault = next((attempt.outcome for attempt in tried if attempt.payload == payload + 1), "none")
    mtu = payload + ICMP_HEADER + IP_HEADER
    return {
        "frame_payload": payload,
        "frame_mtu": mtu,
        "frame_bytes_largest": mtu + ETHERNET_HEADER,
        "frame_fault": fault,
    }


def tries(text: str) -> list[Try]:
    """Every payload that was tried, in order of the payload."""
    whole("frame_limit", text, _HEAD)
    tried = sorted(
        Try(int(payload), int(requests), int(replies), *outcome)
        for payload, requests, replies, *outcome in _ROW.findall(text)
    )
    if not tried or len(tried) + 3 != len(text.strip().splitlines()):
        raise Contradictory("frame_limit's table has a line that is not its own")
    return tried


TOOL = Tool(
    "frame_limit",
    commands,
    results,
    settings={
        "sender": COUNT,
        "receiver": COUNT,
        "direction": one_of(["forward", "reverse", "both"]),
        "least_payload": WHOLE,
        "most_payload": COUNT,
        "load": YES_OR_NO,
    },
    readings={
        "frame_bytes_largest": Quantity("largest frame that was carried, without its FCS", "B"),
        "frame_payload": Quantity("largest payload of an echo request that was carried", "B"),
        "frame_payload_reverse": Quantity("largest payload of an echo request, the other way", "B"),
        "frame_mtu": Quantity("largest packet that was carried", "B"),
        "frame_mtu_reverse": Quantity("largest packet, the other way", "B"),
        "frame_bytes_largest_reverse": Quantity(
            "largest frame without its FCS, the other way", "B"
        ),
        "frame_fault": Quantity(
            "why larger frames were not carried", values=("", "none", "local", "router", "silent")
        ),
        "frame_fault_reverse": Quantity(
            "why larger frames were not carried the other way",
            values=("", "none", "local", "router", "silent"),
        ),
    },
    factors={
        **ENDS,
        "load": Quantity("whether TCP filled the path meanwhile", "1"),
    },
    marks=(Mark(r"^frame_limit: .* requests a batch", "a search for the largest frame"),),
    packages=("iputils-ping",),
    parse_trial=parse,
)
