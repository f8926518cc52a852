"""fanout: one node sends to several at once, or several to one: what each flow gets and how fairly.

A node and its `receivers` others; all flows are clients of iperf3 on that one node, which
runners/probes/fanout.py starts together. Goodput is counted by the receivers over the window that is
common to all flows, so that the aggregate was there at one time; what the buffers held at its ends is off
by at most their size.
"""

from typing import List, Optional, Sequence

from runners.fanout_output import Flow, flows
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

# As fine as the common window's ends are placed inside an interval of the receiver's report.
INTERVAL_S = 0.25

# Connecting, and the exchange of results at the end.
_MARGIN_S = 20.0

# Less than this share of the time in common and the flows did not compete.
_LEAST_IN_COMMON = 0.5

_DEFAULTS = {"direction": "forward", "streams": 1, "omit_s": 0}


def nodes(point: Settings) -> List[int]:
    """The nodes at the far ends of the flows: the first `receivers` that are not the sender."""
    return [node for node in range(1, point["receivers"] + 2) if node != point["sender"]][: point["receivers"]]


def commands(point: Settings) -> List[Command]:
    """A server on each far node, then all clients on the sender, which `direction` "reverse" makes receive.

    Raises FalloffError for both directions at once.
    """
    direction = point.get("direction", "forward")
    if direction not in ("forward", "reverse"):
        raise FalloffError(f"fanout runs forward or reverse, not {direction!r}: correct `direction`")
    limit = point["duration_s"] + point.get("omit_s", 0) + _MARGIN_S
    reporting = ("--json", "--port", str(PORT), "--interval", str(INTERVAL_S))
    options = ["--get-server-output", "--time", str(point["duration_s"])]
    for key, option in (("omit_s", "--omit"), ("window_bytes", "--window"), ("congestion_control", "--congestion")):
        if point.get(key):
            options += [option, str(point[key])]
    options += ["--parallel", str(point.get("streams", 1)), *(["--reverse"] if direction == "reverse" else [])]
    servers = [
        Command(
            ("iperf3", "--server", "--one-off", *reporting),
            node=node, timeout_s=limit, background=True, listens=PORT,
        )
        for node in nodes(point)
    ]  # fmt: skip
    addresses = ",".join(f"{{node{node}}}" for node in nodes(point))
    client = ("fanout", addresses, *reporting, *options)
    return [*servers, Command(client, node=point["sender"], timeout_s=limit)]


def parse(transcript: Transcript) -> List[Reading]:
    """The `readings` of the flows, flow_goodput placed on the far nodes (None elsewhere).

    Raises InvalidRun when other flows ran than the point asks for, otherwise as `flows` and `readings`.
    """
    point = transcript.trial.point
    (text,) = (execution.stdout for execution in transcript.executions if execution.tool == "fanout")
    found = flows(text, {**_DEFAULTS, **{key: point[key] for key in ("duration_s", *_DEFAULTS) if key in point}})
    far = nodes(point)
    if len(found) != len(far):
        raise InvalidRun(f"{len(found)} flows ran, {len(far)} were asked for")
    goodput, *others = readings(found)
    on_nodes: List[Optional[float]] = [None] * max(*far, point["sender"])
    for node, rate in zip(far, goodput.value):
        on_nodes[node - 1] = rate
    return [Reading(goodput.name, on_nodes, goodput.unit), *others]


def results(text: str) -> List[Result]:
    """The one result in an output, with its number of `receivers`; raises as `flows` and `readings`."""
    found = flows(text, {})
    return [Result(tuple(readings(found)), {"receivers": len(found)})]


def readings(found: Sequence[Flow]) -> List[Reading]:
    """flow_goodput (a list in the flows' order) and aggregate_goodput in bit/s, fairness, start_skew in s.

    fairness is Jain's index, (sum x)^2 / (n sum x^2) of the flows' goodputs: 1 when all are equal, 1/n when
    one has everything (Jain, Chiu and Hawe 1984, DEC-TR-301). start_skew is between the first client's
    start and the last's. Raises InvalidRun when the flows had less than half of the time in common.
    """
    starts = [flow.start for flow in found]
    begin, end = max(starts), min(flow.start + flow.times[-1] for flow in found)
    longest = max(flow.times[-1] for flow in found)
    if end - begin < _LEAST_IN_COMMON * longest:
        raise InvalidRun(f"the flows had only {max(end - begin, 0):.2f} of {longest:.2f} s in common")
    rates = [8 * flow.received(begin, end) / (end - begin) for flow in found]
    if not sum(rates):
        raise Unreadable("the receivers counted no data")
    fairness = sum(rates) ** 2 / (len(rates) * sum(rate**2 for rate in rates))
    return [
        Reading("flow_goodput", rates, "bit/s"),
        Reading("aggregate_goodput", sum(rates), "bit/s"),
        Reading("fairness", fairness, "1"),
        Reading("start_skew", begin - min(starts), "s"),
    ]


RUNNER = Runner("fanout", commands, parse, results)
