"""What runners/probes/fanout.py prints: its flows, as their receivers counted them over time."""

import math
import re
from dataclasses import dataclass
from typing import List, Sequence, Tuple

from runners import iperf3_output
from runners.record import InvalidRun, Settings, Unreadable, mismatch

_HEAD = re.compile(r"^fanout: (\d{1,6}) flows, ", re.M)
_ROW = re.compile(r"^ *(\d{1,6})  (\S+)  (\d{1,12}\.\d{6})  (.*)$", re.M)
_END = "end of fanout"


@dataclass(frozen=True)
class Flow:
    """One flow: where to or from, when it started [s], and what its receiver had counted by then.

    `times` [s] and `counts` [B] are cumulative, without the warm-up, from (0, 0) on; time 0 is `start`.
    """

    address: str
    start: float
    times: Tuple[float, ...]
    counts: Tuple[float, ...]

    def received(self, begin: float, end: float) -> float:
        """Bytes received between two moments [s], linear inside an interval."""
        return self._count(end - self.start) - self._count(begin - self.start)

    def _count(self, time: float) -> float:
        steps = zip(self.times, self.times[1:], self.counts, self.counts[1:])
        for begin, end, before, after in steps:
            if time <= end:
                return before + (after - before) * max(time - begin, 0.0) / (end - begin)
        return self.counts[-1]


def flows(text: str, asked: Settings) -> List[Flow]:
    """The flows of an output; `asked` are settings that the reports have to name too.

    Raises Unreadable when the output or one of its reports is not whole, InvalidRun when iperf3 did something
    else (it takes the whole seconds of a time only).
    """
    head = _HEAD.search(text)
    if not head or not text.rstrip().endswith(_END):
        raise Unreadable("fanout did not print its first and last line: the run was stopped or its output cut off")
    rows = _ROW.findall(text)
    if [int(flow) for flow, *_ in rows] != list(range(1, int(head[1]) + 1)):
        raise Unreadable(f"fanout started {head[1]} flows but reports {len(rows)}")
    return [_flow(address, float(started), report, asked) for _, address, started, report in rows]


def _flow(address: str, started: float, report: str, asked: Settings) -> Flow:
    try:
        client = iperf3_output.reports(report)[0]
    except Unreadable as error:
        raise Unreadable(f"for {address}: {error}") from None
    if "error" in client:
        raise Unreadable(f"iperf3 says for {address}: {client['error']}")
    made = iperf3_output.settings(client)
    different = mismatch(asked, made)
    if different:
        raise InvalidRun(f"for {address}: {'; '.join(different)}")
    try:
        receiver = client if made["direction"] == "reverse" else client["server_output_json"]
        counted = [
            (float(interval["sum"]["end"]), float(interval["sum"]["bytes"]))
            for interval in receiver["intervals"]
            if not interval["sum"]["omitted"]
        ]
        omitted = float(made["omit_s"])
    except (KeyError, TypeError, ValueError):
        raise Unreadable(f"iperf3's report for {address} lacks its receiver's intervals") from None
    return Flow(address, started + omitted, *_cumulative(counted, address))


def _cumulative(counted: Sequence[Tuple[float, float]], address: str) -> Tuple[Tuple[float, ...], Tuple[float, ...]]:
    """Times and counts from (0, 0) on. Only the intervals' ends are used: the start that iperf3 gives to the
    first one after the warm-up lies before it, though its bytes do not."""
    times, counts = [0.0], [0.0]
    for end, size in counted:
        if not (math.isfinite(end) and math.isfinite(size) and end > times[-1] and size >= 0):
            raise Unreadable(f"iperf3's intervals for {address} do not follow each other")
        times.append(end)
        counts.append(counts[-1] + size)
    if len(times) == 1:
        raise Unreadable(f"iperf3's report for {address} has no interval")
    return tuple(times), tuple(counts)
