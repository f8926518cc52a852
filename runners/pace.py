"""Paced nodes: what each rank under pace.so says at its end, and whether its node kept the rate that it stands for.

pace.so computes for real and then sleeps until the time has passed that a node of the described rate would take. A rank
that came too late for that more than it may was held up by this machine: its trial shows the machine, and is no
measurement of the node.
"""

import math
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence

from runners.record import Settings

KEPT = "kept"
# Of the time that was charged: beyond, the machine and not the node was measured.
_MOST_LATE = 0.005

_LINE = re.compile(r"pace: rank (\d+)((?: [A-Za-z_]\w* [-+.\deE]+)*)")


@dataclass(frozen=True)
class Job:
    """An MPI program that ran on paced nodes: its ranks, those on each node, and what it wrote to standard error."""

    ranks: int
    ranks_per_node: int
    stderr: str


def environment(flop_s: float, point: Settings, seed: int = 0) -> Dict[str, str]:
    """What pace.so reads: the rank's rate [flop/s], and the daemon that a point asks for, at times of this seed.

    `noise` is the share of the node's computing that the daemon takes, in `noise_hz` pauses a second of it.
    """
    found = {"PACE_FLOP_S": repr(float(flop_s))}
    if point.get("noise"):
        pauses = {
            "PACE_PAUSE_S": point["noise"] / point["noise_hz"],
            "PACE_PAUSE_HZ": point["noise_hz"],
        }
        found.update(
            {name: repr(float(value)) for name, value in pauses.items()}, PACE_SEED=str(seed)
        )
    return found


def reports(stderr: str) -> Dict[int, Dict[str, float]]:
    """By rank, the numbers of its line by their names; of several lines of a rank, the last."""
    found = {}
    for line in _LINE.finditer(stderr):
        words = line[2].split()
        found[int(line[1])] = dict(zip(words[::2], map(_number, words[1::2])))
    return found


def counters(jobs: Sequence[Job], nodes: int) -> Dict[str, List[float]]:
    """For each number of the ranks' lines its sum on each of so many nodes, as `pace_NAME`; NaN where no rank was."""
    found: Dict[str, List[float]] = {}
    for job in jobs:
        for rank, values in reports(job.stderr).items():
            node = rank // job.ranks_per_node
            for name, value in values.items():
                over_nodes = found.setdefault(f"pace_{name}", [math.nan] * nodes)
                if node < nodes:
                    over_nodes[node] = value + (
                        0 if math.isnan(over_nodes[node]) else over_nodes[node]
                    )
    return found


def kept(jobs: Sequence[Job], nodes: int) -> str:
    """KEPT, or in a sentence which node did not keep its pace, or which rank does not say whether it did."""
    silent = [
        rank
        for job in jobs
        for rank in range(job.ranks)
        if "late" not in reports(job.stderr).get(rank, {})
    ]
    if silent:
        return f"unknown: rank {silent[0]} did not report"
    found = counters(jobs, nodes)
    shares = {
        node: late / charged if charged else math.copysign(math.inf, late)
        for node, (late, charged) in enumerate(
            zip(_of(found, "late", nodes), _of(found, "charged", nodes)), start=1
        )
        if late > 0
    }
    worst = max(shares, key=shares.__getitem__, default=0)
    if not worst or shares[worst] <= _MOST_LATE:
        return KEPT
    return f"host-bound: late by {100 * shares[worst]:.1f} % of what was charged on node {worst}"


def _of(found: Mapping[str, Any], name: str, nodes: int) -> List[float]:
    return found.get(f"pace_{name}", [0.0] * nodes)


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan
