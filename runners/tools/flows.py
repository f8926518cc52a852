"""flows: what the nodes of parallel programs send to each other, all at once, over a simulated
network.
"""

import random
import re
from typing import Callable

from runners import placement
from runners.parsing import require_numbered, simulator, whole
from runners.records.description_rules import COUNT, NAME, POSITIVE, RUNS, WHOLE
from runners.records.record import (
    Command,
    FalloffError,
    Quantity,
    Result,
    Settings,
    Tool,
)

_NUMBER = r"\d\.\d{15}e[+-]\d\d"
_HEAD = re.compile(
    r"^flows: (?P<nodes>\d{1,6}) nodes, (?P<runs>\d{1,6}) runs, "
    r"(?P<flow_bytes>\d{1,15}) bytes each, by SimGrid [\d.]+$",
    re.M,
)
_ROW = re.compile(rf"^ *(\d{{1,6}}) +(\d{{1,9}}) +({_NUMBER}) +({_NUMBER})$", re.M)

Pairs = list[tuple[int, int]]


def _nearest_neighbour(nodes: int, chance: random.Random) -> Pairs:
    """Each rank to both of its neighbours in a ring, as where a domain is cut into slices."""
    return [(rank, (rank + step) % nodes) for step in (1, -1) for rank in range(nodes)]


def _permutation(nodes: int, chance: random.Random) -> Pairs:
    """Each rank to another one, each from another one: any such permutation with the same
    probability.
    """
    sinks = list(range(nodes))
    while any(rank == sink for rank, sink in enumerate(sinks)):
        chance.shuffle(sinks)
    return list(enumerate(sinks))


def _all_to_all(nodes: int, chance: random.Random) -> Pairs:
    """One phase of an exchange of all with all: each rank to the one that is so many further, any
    but itself.
    """
    shift = chance.randrange(1, nodes)
    return [(rank, (rank + shift) % nodes) for rank in range(nodes)]


def _many_to_one(nodes: int, chance: random.Random) -> Pairs:
    """All other ranks to one, whichever."""
    root = chance.randrange(nodes)
    return [(rank, root) for rank in range(nodes) if rank != root]


PATTERNS: dict[str, Callable[[int, random.Random], Pairs]] = {
    "nearest_neighbour": _nearest_neighbour,
    "permutation": _permutation,
    "all_to_all": _all_to_all,
    "many_to_one": _many_to_one,
}


def pairs(point: Settings) -> list[Pairs]:
    """The nodes (from, to) of each flow, from 1, in each of the `runs` of a point.

    A run draws the pattern anew, and with `placement` shuffled the nodes of the ranks, from
    `random_seed`, `nodes` and its number alone: on another network it is the same. Raises
    FalloffError for an unknown pattern or placement, or fewer than two nodes.
    """
    nodes, pattern = point["nodes"], point["pattern"]
    if pattern not in PATTERNS:
        raise FalloffError(f"pattern {pattern!r} is unknown; there are {', '.join(PATTERNS)}")
    if nodes < 2:
        raise FalloffError(f"flows need two nodes, not {nodes}: correct `nodes`")
    runs = []
    for run in range(1, point["runs"] + 1):
        seed = f"{point['random_seed']}/{nodes}/{run}"
        node = placement.order(nodes, point["placement"], seed)
        ranks = PATTERNS[pattern](nodes, random.Random(f"{seed}/{pattern}"))
        runs.append([(node[source], node[sink]) for source, sink in ranks])
    return runs


def commands(point: Settings) -> list[Command]:
    """One simulation of all runs, one after the other, of flows of `flow_bytes` each; raises as
    `pairs` does.
    """
    lines = "".join(
        " ".join(f"{source}-{sink}" for source, sink in run) + "\n" for run in pairs(point)
    )
    argv = ("flows", str(point["flow_bytes"]))
    return [
        Command(
            argv, ranks=point["nodes"], files={"flows.txt": lines}, timeout_s=point["timeout_s"]
        )
    ]


def results(text: str) -> list[Result]:
    """The one table of an output, with its settings.

    flow_makespan [s] has for each run the time in which all of its flows arrived, flow_mean [s]
    their mean time; simulator_cpu_time [s] and simulator_memory [B] are what the simulation itself
    took.
    """
    settings = whole("flows", text, _HEAD)
    rows = _ROW.findall(text)
    require_numbered("flows", rows, settings["runs"], "runs")
    longest, means = ([float(row[column]) for row in rows] for column in (2, 3))
    readings = {"flow_makespan": longest, "flow_mean": means, **simulator(text)}
    return [Result(readings, settings)]


TOOL = Tool(
    "flows",
    commands,
    results,
    settings={
        "nodes": COUNT,
        "pattern": NAME,
        "flow_bytes": POSITIVE,
        "placement": NAME,
        "random_seed": WHOLE,
        "runs": RUNS,
        "timeout_s": POSITIVE,
    },
    readings={
        "flow_makespan": Quantity("time until all flows had arrived", "s", dims=("trial", "run")),
        "flow_mean": Quantity("mean time of the flows", "s", dims=("trial", "run")),
    },
    factors={
        "pattern": Quantity("which nodes send to which"),
        "flow_bytes": Quantity("bytes of each flow", "B"),
    },
    packages=("python3-simgrid",),
)
