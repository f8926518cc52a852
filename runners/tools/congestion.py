"""congestion: what half of the ranks feel of the network while the other half floods it.

As GPCNeT does (Chunduri et al., SC 2019): victims time small operations, alone and while congestors
exchange long messages. The congestion impact is the ratio of both times.
"""

import re

from runners.parsing import whole
from runners.records.description_rules import COUNT, NAME, POSITIVE, one_of
from runners.records.record import (
    Command,
    Contradictory,
    Mark,
    Quantity,
    Result,
    Settings,
    Tool,
)

_HEAD = re.compile(
    r"^congestion: \d{1,5} victims of (?P<victim>\w+), \d{1,5} congestors by (?P<congestor>\w+), "
    r"messages of (?P<flood_bytes>\d{1,10}) bytes, \d{1,9}\.\d{3} s$",
    re.M,
)
_TIME = r"(\d{1,9}\.\d{9})"
_PHASE = re.compile(rf"^(alone|loaded) (\d{{1,9}}) {_TIME} {_TIME} {_TIME}$", re.M)
_FLOOD = re.compile(r"^flood (\d\.\d{6}e[+-]\d\d) B/s$", re.M)


def commands(point: Settings) -> list[Command]:
    """One MPI program, with `ranks_per_node` ranks on each of `nodes` nodes.

    With one rank a node the victims are on odd nodes and the congestors on even ones; with two,
    each node has one of both, which share its link.
    """
    ranks_per_node = point.get("ranks_per_node", 1)
    words = (point["victim"], point["congestor"], point["flood_bytes"], point["window_s"])
    return [
        Command(
            ("congestion", *map(str, words)),
            ranks=ranks_per_node * point["nodes"],
            ranks_per_node=ranks_per_node,
            timeout_s=point["timeout_s"],
        )
    ]


def results(text: str) -> list[Result]:
    """The one result of an output, with its settings.

    For each phase ("alone", "loaded"): operations, the number of timed ones, and the median, the
    99th percentile and the largest [s] of their times over all victims; flood_rate [B/s] is what
    all congestors together received. Raises Unreadable if the output is incomplete.
    """
    settings = whole("congestion", text, _HEAD, "victim", "congestor")
    rows, flood = _PHASE.findall(text), _FLOOD.search(text)
    if [phase for phase, *_ in rows] != ["alone", "loaded"] or not flood:
        raise Contradictory("congestion reports other phases than alone and loaded")
    values: dict[str, float] = {"flood_rate": float(flood[1])}
    for phase, count, *times in rows:
        median, high, most = map(float, times)
        if not 0 < median <= high <= most:
            raise Contradictory(f"the times {phase} do not ascend")
        values |= {
            f"operations_{phase}": int(count),
            f"median_{phase}": median,
            f"p99_{phase}": high,
            f"longest_{phase}": most,
        }
    return [Result(values, settings)]


TOOL = Tool(
    "congestion",
    commands,
    results,
    settings={
        "nodes": COUNT,
        "sharing": NAME,
        "victim": one_of(("ring", "allreduce")),
        "congestor": one_of(("none", "incast", "alltoall")),
        "flood_bytes": COUNT,
        "window_s": POSITIVE,
        "timeout_s": POSITIVE,
    },
    readings={
        f"{name}_{phase}": Quantity(f"{meaning}, {phase}", unit)
        for phase in ("alone", "loaded")
        for name, meaning, unit in (
            ("operations", "operations of the victims", "1"),
            ("median", "median time of an operation", "s"),
            ("p99", "99th percentile of an operation's time", "s"),
            ("longest", "longest time of an operation", "s"),
        )
    }
    | {
        "flood_rate": Quantity("payload that all congestors together received", "B/s"),
    },
    factors={
        "victim": Quantity("operation that the victims time"),
        "congestor": Quantity("what the congestors do"),
        "flood_bytes": Quantity("bytes of a congestor's message", "B"),
        "sharing": Quantity("whether victims and congestors are on the same nodes"),
    },
    marks=(Mark(r"^congestion: \d+ victims of ", "times of victims of congestion"),),
    packages=("openmpi-bin", "libopenmpi-dev"),
)
