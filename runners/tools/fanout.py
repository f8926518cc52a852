"""fanout: one node sends to several at once, or several to one: what each flow gets and how fairly.

A node and its `receivers` others; all flows are clients of iperf3 on that one node, which
runners/probes/fanout.py starts together. Goodput is counted by the receivers over the window that
is common to all flows, so that the aggregate was there at one time; what the buffers held at its
ends is off by at most their size.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from runners.parsing import ENDS, require_numbered, whole
from runners.records.description_rules import COUNT, one_of
from runners.records.record import (
    Command,
    Contradictory,
    Cut,
    Failed,
    InvalidRun,
    Mark,
    Quantity,
    Readings,
    Result,
    Settings,
    Tool,
    Transcript,
    Unreadable,
    mismatch,
)
from runners.tools import iperf3

# As fine as the common window's ends are placed inside an interval of the receiver's report.
INTERVAL_S = 0.25

# Less than this share of the time in common and the flows did not compete.
_LEAST_IN_COMMON = 0.5

_DEFAULTS = {"direction": "forward", "streams": 1, "omit_s": 0}

_HEAD = re.compile(r"^fanout: (?P<receivers>\d{1,6}) flows, ", re.M)
_ROW = re.compile(r"^ *(\d{1,6})  (\S+)  (\d{1,12}\.\d{6})  (.*)$", re.M)


@dataclass(frozen=True)
class Flow:
    """One flow: where to or from, when it started [s], and what its receiver had counted by then.

    `times` [s] and `counts` [B] are cumulative, without the warm-up, from (0, 0) on; time 0 is
    `start`.
    """

    address: str
    start: float
    times: tuple[float, ...]
    counts: tuple[float, ...]

    def received(self, begin: float, end: float) -> float:
        """Bytes received between two moments [s], linear inside an interval."""
        return self._count(end - self.start) - self._count(begin - self.start)

    def _count(self, time: float) -> float:
        steps = zip(self.times, self.times[1:], self.counts, self.counts[1:])
        for begin, end, before, after in steps:
            if time <= end:
                return before + (after - before) * max(time - begin, 0.0) / (end - begin)
        return self.counts[-1]


def nodes(point: Settings) -> list[int]:
    """The nodes at the far ends of the flows: the first `receivers` that are not the sender."""
    others = [node for node in range(1, point["receivers"] + 2) if node != point["sender"]]
    return others[: point["receivers"]]


def commands(point: Settings) -> list[Command]:
    """A server on each far node, then all clients on the sender, which `direction` "reverse" makes
    receive.
    """
    limit, interval = iperf3.limit_s(point), ("--interval", str(INTERVAL_S))
    addresses = ",".join(f"{{node{node}}}" for node in nodes(point))
    client = ["fanout", addresses, "--json", "--port", str(iperf3.PORT), *interval]
    client += ["--get-server-output", "--time", str(point["duration_s"]), *iperf3.options(point)]
    client += ["--reverse"] if point.get("direction") == "reverse" else []
    servers = [iperf3.server(node, limit, *interval) for node in nodes(point)]
    return [*servers, Command(tuple(client), node=point["sender"], timeout_s=limit)]


def parse(transcript: Transcript) -> Readings:
    """The `readings` of the flows, flow_goodput placed on the far nodes (None elsewhere)."""
    point = transcript.trial.point
    (text,) = (ran.stdout for ran in transcript.executions if ran.tool == "fanout")
    asked = {key: point[key] for key in ("duration_s", *_DEFAULTS) if key in point}
    of_report = flows(text, {**_DEFAULTS, **asked})
    far = nodes(point)
    if len(of_report) != len(far):
        raise InvalidRun(f"receivers is {len(of_report)}, {len(far)} was asked for")
    measured = readings(of_report)
    rates = dict(zip(far, measured["flow_goodput"]))
    over_nodes = [rates.get(node) for node in range(1, max(*far, point["sender"]) + 1)]
    return {**measured, "flow_goodput": over_nodes}


def results(text: str) -> list[Result]:
    """The one result in an output, with its number of `receivers`; raises as `flows` and
    `readings`.
    """
    started = flows(text, {})
    return [Result(readings(started), {"receivers": len(started)})]


def readings(all_flows: Sequence[Flow]) -> Readings:
    """flow_goodput (a list in the flows' order) and aggregate_goodput in bit/s, fairness,
    start_skew in s.

    fairness is Jain's index, (sum x)^2 / (n sum x^2) of the flows' goodputs: 1 when all are equal,
    1/n when one has everything (Jain, Chiu and Hawe 1984, DEC-TR-301). start_skew is between the
    first client's start and the last's. Raises InvalidRun when the flows had less than half of the
    time in common.
    """
    starts = [flow.start for flow in all_flows]
    begin, end = max(starts), min(flow.start + flow.times[-1] for flow in all_flows)
    longest = max(flow.times[-1] for flow in all_flows)
    if end - begin < _LEAST_IN_COMMON * longest:
        raise InvalidRun(f"flows had only {max(end - begin, 0):.2f} of {longest:.2f} s in common")
    rates = [8 * flow.received(begin, end) / (end - begin) for flow in all_flows]
    if not sum(rates):
        raise Failed("the receivers counted no data")
    # Products, since a power beyond all floats raises where a product is infinite and then refused.
    fairness = sum(rates) * sum(rates) / (len(rates) * sum(rate * rate for rate in rates))
    return {
        "flow_goodput": rates,
        "aggregate_goodput": sum(rates),
        "fairness": fairness,
        "start_skew": begin - min(starts),
    }


def flows(text: str, asked: Settings) -> list[Flow]:
    """The flows of an output; `asked` are settings that the reports have to name too."""
    head, rows = whole("fanout", text, _HEAD), _ROW.findall(text)
    require_numbered("fanout", rows, head["receivers"], "flows")
    return [_flow(address, float(start), report, asked) for _, address, start, report in rows]


def _flow(address: str, started: float, report: str, asked: Settings) -> Flow:
    try:
        client = iperf3.only_report(report)
        made = iperf3.settings(client)
        different = mismatch(asked, made)
        if different:
            raise InvalidRun("; ".join(different))
        receiver = client if made["direction"] == "reverse" else client["server_output_json"]
        times, counts = [0.0], [0.0]
        # Starts are not used: the one that iperf3 gives to the first interval after the warm-up
        # lies before it, though its bytes do not.
        for interval in receiver["intervals"]:
            sums = interval["sum"]
            if not sums["omitted"]:
                times.append(float(sums["end"]))
                counts.append(counts[-1] + float(sums["bytes"]))
        start = started + float(made["omit_s"])
    except (KeyError, OverflowError, TypeError, ValueError):
        raise Cut(f"for {address}: iperf3's report lacks its receiver's intervals") from None
    except Unreadable as error:
        raise type(error)(f"for {address}: {error}") from None
    if len(times) == 1:
        raise Cut(f"for {address}: iperf3's report has no interval")
    if not (_rises(times, least=1e-9) and _rises(counts, least=0.0)):
        raise Contradictory(f"for {address}: iperf3's intervals do not follow each other")
    return Flow(address, start, tuple(times), tuple(counts))


def _rises(values: Sequence[float], least: float) -> bool:
    """Whether each value is finite and at least so much above the one before."""
    steps = (after - before for before, after in zip(values, values[1:]))
    return math.isfinite(values[-1]) and all(step >= least for step in steps)


TOOL = Tool(
    "fanout",
    commands,
    results,
    {
        "sender": COUNT,
        "receivers": COUNT,
        **iperf3.OF_TCP,
        "direction": one_of(["forward", "reverse"]),
    },
    readings={
        "flow_goodput": Quantity(
            "TCP payload received by the flow to or from the node", "bit/s", dims=("trial", "node")
        ),
        "aggregate_goodput": Quantity("TCP payload received by all flows together", "bit/s"),
        "fairness": Quantity("Jain's fairness index of the flows", "1"),
        "start_skew": Quantity("time between the first flow's start and the last's", "s"),
    },
    factors={
        "sender": ENDS["sender"],
        "receivers": Quantity("nodes at the far ends of the flows", "1"),
    },
    marks=(Mark(r"^fanout: \d+ flows, ", "a table of iperf3 flows"),),
    packages=("iperf3",),
    parse_trial=parse,
)
