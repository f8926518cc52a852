"""suspects: DGEMM and STREAM of every node, and latency and bandwidth of every pair of nodes, in
one MPI program.

Pairs meet in a round-robin tournament: in each round a node is in one pair at most. With `rounds`
only so many are held, and as many again around the nodes that are slow in these.
"""

import re
from typing import Optional

from runners.parsing import require_numbered, whole
from runners.records.description_rules import COUNT, POSITIVE, WHOLE
from runners.records.record import (
    Command,
    Contradictory,
    FalloffError,
    Quantity,
    Result,
    Settings,
    Tool,
)
from runners.tools import dgemm

LEAST_NODES = 4  # with fewer nodes a slow link cannot be told from a slow node

# Time to start the ranks and to choose DGEMM's order.
_START_S = 60.0
# A window ends with the message in transit; on the slowest links that takes a while.
_SLOWEST = 5.0

_RATE = r"\d\.\d{6}e[+-]\d{2,3}"
_NUMBER = r"\d{1,9}(?:\.\d{0,9})?(?:e[-+]\d\d)?"
_HEAD = re.compile(
    rf"^suspects: (?P<nodes>\d{{1,6}}) nodes, order (?P<order>\d{{1,6}}), "
    rf"arrays of (?P<array_mib>{_NUMBER}) MiB, turns of (?P<stream_at_once>\d{{1,6}}), "
    rf"messages of (?P<message_bytes>\d{{1,10}}) bytes, windows (?P<node_s>{_NUMBER}) s, "
    rf"(?P<latency_s>{_NUMBER}) s, (?P<bandwidth_s>{_NUMBER}) s"
    rf"(?:, (?P<rounds>\d{{1,6}}) rounds and (?P<around>\d{{1,6}}) around \d{{1,6}} nodes)?$",
    re.M,
)
_NODE = re.compile(rf"^ *(\d{{1,6}}) +({_RATE}) +({_RATE})  (\S{{1,64}})$", re.M)
_PAIR = re.compile(
    rf"^ *(\d{{1,6}}) +(\d{{1,6}}) +(\d{{1,6}}) +({_RATE}) +(\d{{1,9}}) +({_RATE}) +({_RATE})$",
    re.M,
)
_Matrix = list[list[Optional[float]]]


def commands(point: Settings) -> list[Command]:
    """One program on all nodes of the point; raises FalloffError for fewer than LEAST_NODES."""
    nodes, turn = point["nodes"], point["stream_at_once"]
    if nodes < LEAST_NODES:
        raise FalloffError(
            f"{nodes} nodes cannot be compared: {LEAST_NODES} are needed, "
            "as with fewer a slow link cannot be told from a slow node"
        )
    keys = ("node_s", "array_mib", "stream_at_once", "latency_s", "bandwidth_s", "message_bytes")
    turns = -(-nodes // turn) if turn else 1
    wanted, every = point.get("rounds", 0), nodes - 1 + nodes % 2
    rounds = min(2 * wanted, every) if 0 < wanted < every else every
    windows = (1 + turns) * point["node_s"]
    windows += rounds * (point["latency_s"] + 2 * point["bandwidth_s"])
    argv = ("suspects", *(str(point[key]) for key in keys), *([str(wanted)] if wanted else []))
    return [Command(argv, ranks=nodes, timeout_s=_START_S + _SLOWEST * windows)]


def results(text: str) -> list[Result]:
    """The one result of an output, with its settings.

    dgemm_rate [Gflop/s] and stream_rate [B/s] are lists over nodes; `hosts` are their names,
    separated by commas. pair_latency [s] and pair_bandwidth [B/s] are lists over nodes of lists
    over their partners: the row sends, the column receives. A latency is for both ways. Entries
    where a node would meet itself, or did not meet another, are None. Raises Unreadable if the
    output is incomplete or contradicts itself.
    """
    settings = whole("suspects", text, _HEAD)
    count, order, around = settings["nodes"], settings.pop("order"), settings.pop("around", 0)
    nodes = _NODE.findall(text)
    require_numbered("suspects", nodes, count, "nodes")
    latency, bandwidth = _matrices(text, count, settings.get("rounds", 0), around)
    readings = {
        "dgemm_rate": [float(rate) / 1e9 for _, rate, *_ in nodes],
        "stream_rate": [float(rate) for *_, rate, _ in nodes],
        "pair_latency": latency,
        "pair_bandwidth": bandwidth,
        "dgemm_order": order,
        "hosts": ",".join(host for *_, host in nodes),
    }
    return [Result(readings, settings)]


def _matrices(text: str, count: int, announced: int, around: int) -> tuple[_Matrix, _Matrix]:
    """Latency [s] and bandwidth [B/s] over (sender, receiver); each pair has met once, in a round
    of its own, or each node in each round but those around some."""
    rows = _PAIR.findall(text)
    met = {(int(low), int(high)) for _, low, high, *_ in rows}
    wanted = {(low, high) for low in range(1, count + 1) for high in range(low + 1, count + 1)}
    is_whole = rows and len(met) == len(rows) and met <= wanted
    if announced:
        rounds = [int(row[0]) for row in rows]
        first = sum(number <= announced for number in rounds)
        # An odd node out rests in a round.
        is_whole = is_whole and 2 * first == announced * (count - count % 2)
        if not is_whole or max(rounds) > announced + around:
            raise Contradictory(
                f"suspects announces {announced} rounds of {count} nodes "
                f"and reports {first} pairs in them"
            )
    elif not is_whole or met != wanted:
        raise Contradictory(
            f"suspects reports {len(met & wanted)} of the {len(wanted)} pairs of {count} nodes "
            f"in {len(rows)} rows"
        )
    latency: _Matrix = [[None] * count for _ in range(count)]
    bandwidth: _Matrix = [[None] * count for _ in range(count)]
    for _, low, high, seconds, _, forward, reverse in rows:
        a, b = int(low) - 1, int(high) - 1
        latency[a][b] = latency[b][a] = float(seconds)
        bandwidth[a][b], bandwidth[b][a] = float(forward), float(reverse)
    return latency, bandwidth


TOOL = Tool(
    "suspects",
    commands,
    results,
    settings={
        "nodes": COUNT,
        "array_mib": POSITIVE,
        "bandwidth_s": POSITIVE,
        "latency_s": POSITIVE,
        "message_bytes": COUNT,
        "node_s": POSITIVE,
        "rounds": WHOLE,
        "stream_at_once": WHOLE,
    },
    readings={
        **dgemm.READINGS,
        "stream_rate": Quantity("STREAM triad of each node", "B/s", dims=("trial", "node")),
        "pair_latency": Quantity(
            "half the round trip between two nodes", "s", dims=("trial", "node", "partner")
        ),
        "pair_bandwidth": Quantity(
            "bytes that the node sent to its partner over their time",
            "B/s",
            dims=("trial", "node", "partner"),
        ),
        "dgemm_order": Quantity("order of the matrices of each node's DGEMM", "1"),
        "hosts": Quantity("names of the nodes in their order, with commas"),
    },
    packages=("openmpi-bin", "libopenmpi-dev"),
)
