"""Paced nodes: what each rank reports at its end, and whether its node kept the pace of the node
that it emulates.

pace.so computes for real and then sleeps until a node of the described rate would have finished.
pace_program.so does so for any program, by the processor time that a rank takes. A rank that was
late by more than the allowed amount was delayed by this machine: its trial shows the machine and is
no measurement of the node.
"""

import math
import re
from collections.abc import Mapping, Sequence

from runners.records.record import Command, Execution, Settings

KEPT = "kept"
# Share of the charged time, or of the whole time of a program in slow motion, which mostly waits: a
# later rank measures the machine, not the node.
_MOST_LATE = 0.005

_LINE = re.compile(r"pace: rank (\d+)((?: [A-Za-z_]\w* [-+.\deE]+)*)")


# MPI programs that ran on paced nodes, each with its execution.
Jobs = Sequence[tuple[Command, Execution]]


def environment(flop_s: float, point: Settings, seed: int = 0) -> dict[str, str]:
    """The variables for pace.so: the rank's rate [flop/s], and the daemon that a point asks for, at
    times drawn from this seed.

    `noise` is the share of the node's computing that the daemon takes, in `noise_hz` pauses per
    second.
    """
    variables = {"PACE_FLOP_S": repr(float(flop_s))}
    if point.get("noise"):
        pauses = {
            "PACE_PAUSE_S": point["noise"] / point["noise_hz"],
            "PACE_PAUSE_HZ": point["noise_hz"],
        }
        variables.update(
            {name: repr(float(value)) for name, value in pauses.items()}, PACE_SEED=str(seed)
        )
    return variables


def stretching(dilation: float) -> dict[str, str]:
    """The variables for pace_program.so: how many times as long as on this machine's processor a
    rank computes."""
    return {"PACE_STRETCH": repr(float(dilation))}


def library(pacing: Mapping[str, str]) -> str:
    """The library that paces by these variables."""
    return "pace_program.so" if "PACE_STRETCH" in pacing else "pace.so"


def reports(stderr: str) -> dict[int, dict[str, float]]:
    """By rank, the numbers in its line by name; if a rank has several lines, the last counts."""
    numbers = {}
    for line in _LINE.finditer(stderr):
        words = line[2].split()
        numbers[int(line[1])] = dict(zip(words[::2], map(_number, words[1::2])))
    return numbers


def counters(jobs: Jobs, nodes: int) -> dict[str, list[float]]:
    """For each number in the ranks' lines its sum on each of `nodes` nodes, as `pace_NAME`; NaN on
    nodes without a rank."""
    sums: dict[str, list[float]] = {}
    for command, execution in jobs:
        for rank, values in reports(execution.stderr).items():
            node = rank // command.ranks_per_node
            for name, value in values.items():
                over_nodes = sums.setdefault(f"pace_{name}", [math.nan] * nodes)
                if node < nodes:
                    before = over_nodes[node]
                    over_nodes[node] = value if math.isnan(before) else before + value
    return sums


def verdict(jobs: Jobs, nodes: int) -> str:
    """KEPT, or a sentence that names the node that did not keep its pace, or the rank that did not
    report it."""
    for command, execution in jobs:
        reported = reports(execution.stderr)
        for rank in range(command.ranks):
            if "late" not in reported.get(rank, {}):
                return f"unknown: rank {rank} did not report"
    sums, worst, where = counters(jobs, nodes), 0.0, 0
    whole, of_what = "pace_charged", "what was charged"
    if "pace_elapsed" in sums:
        whole, of_what = "pace_elapsed", "its time"
    columns = sums.get("pace_late", []), sums.get(whole, [])
    for node, (late, time) in enumerate(zip(*columns), start=1):
        share = late / time if time else math.inf
        if late > 0 and share > worst:
            worst, where = share, node
    if worst <= _MOST_LATE:
        return KEPT
    return f"host-bound: late by {100 * worst:.1f} % of {of_what} on node {where}"


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan
