"""A daemon that takes a share of every node in bursts while a benchmark runs: how it is started and read."""

import re
from typing import List, Sequence

from runners.record import Command, Execution, InvalidRun, Reading, Settings

_LINE = re.compile(r"^noise: \d+ bursts, (\d+\.\d{6}) s of CPU in (\d+\.\d{6}) s, seed \d+\n$")


def commands(point: Settings) -> List[Command]:
    """One daemon on every node of the point, inside its quota; none where `noise` is absent or 0.

    `noise` is a share of the node, whose own share of a core is `cpu_share`; a burst lasts `burst_s`
    when the node has nothing else to do.
    """
    if not point.get("noise"):
        return []
    core = point["cpu_share"]
    argv = ("noise", f"{point['noise'] * core:g}", f"{point['burst_s'] * core:g}")
    return [Command(argv, node=node, background=True) for node in range(1, point["nodes"] + 1)]


def readings(point: Settings, executions: Sequence[Execution]) -> List[Reading]:
    """noise_cpu_time and noise_wall_time in s, a list with one number for each node; none where no
    daemon was asked for.

    `executions` are a trial's, in the order of their start. Raises InvalidRun when a daemon's line
    is missing: nobody knows then what it took.
    """
    if not point.get("noise"):
        return []
    lines = [_LINE.match(execution.stdout) for execution in executions if execution.tool == "noise"]
    found = [(float(line[1]), float(line[2])) for line in lines if line]
    if len(found) != point["nodes"]:
        raise InvalidRun(f"{point['nodes']} noise daemons were asked for, {len(found)} say what they took")
    cpu, wall = map(list, zip(*found))
    return [Reading("noise_cpu_time", cpu, "s"), Reading("noise_wall_time", wall, "s")]
