"""The range that a program's messages can cost on a network, from its recording and the network's rate and latency
alone: between all at once and one after the other."""

import math
from dataclasses import dataclass

from runners.calls import SENDS, Call, Recording


@dataclass(frozen=True)
class Range:
    """The least and the most that messages cost the rank to which they cost most [s]."""

    least: float
    most: float


def cost(recording: Recording, bandwidth: float, latency: float) -> Range:
    """What the messages cost on a network that carries `bandwidth` [B/s] each way of each node, with a
    `latency` [s] from node to node.

    The least: a rank's link carries its bytes without a pause, both ways at once. The most: each
    message and each round of a collective waits for the one before. Contention and waiting for
    others come on top of either. Costs of a collective are those of the usual algorithms: a tree
    for one vector, one message for each part else (Thakur, Rabenseifner, Gropp 2005).
    """
    each = [_of_rank(calls, len(recording), bandwidth, latency) for calls in recording]
    return Range(max(one.least for one in each), max(one.most for one in each))


def _of_rank(calls: tuple[Call, ...], ranks: int, bandwidth: float, latency: float) -> Range:
    members = {call.label: len(call.parts) for call in calls if call.name == "comm"}
    sent = received = most = 0.0
    for call in calls:
        if call.collective:
            of_call, rounds = _collective(call, members.get(call.label, ranks))
            sent, received = sent + of_call, received + of_call
            most += rounds * latency + of_call / bandwidth
        elif call.name in SENDS:
            sent += call.size
            most += latency + call.size / bandwidth
        elif call.name in ("recv", "irecv"):
            received += call.size
    return Range(max(sent, received) / bandwidth, most)


def _collective(call: Call, ranks: int) -> tuple[float, int]:
    """The bytes that a rank's link carries each way, and the messages one after the other."""
    name, rounds = call.collective, math.ceil(math.log2(ranks))
    if name in ("barrier", "bcast", "reduce", "scan", "exscan"):
        return call.size, rounds
    if name == "allreduce":
        return 2 * call.size, 2 * rounds
    if call.parts:
        return sum(call.parts) / (2 if name.startswith("alltoall") else 1), ranks - 1
    return call.size * (ranks - 1 if name not in ("gatherv", "scatterv") else 1), ranks - 1
