"""Nodes that took no part in a transfer but received its frames: a switch or a driver that floods."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

# Of the traffic. What a node receives anyway (address resolution, the first frame to an address that the
# switch has not learnt yet) is less; a flooded port has all of it.
THRESHOLD = 0.05


@dataclass(frozen=True)
class Bystander:
    """A node (from 1) that took no part, the bytes it received and their share of the traffic."""

    node: int
    received: float
    share: float


def flooded(
    bytes_received: Sequence[float], senders: Collection[int], receivers: Collection[int], threshold=THRESHOLD
) -> list[Bystander]:
    """The nodes that are neither sender nor receiver and received more than a share of the traffic.

    `bytes_received` [B] is one number for each node, node 1 first; NaN is a node that was not read, and is
    not judged. The traffic is what the receivers received together; without any the list is empty.
    """
    received = dict(enumerate(bytes_received, start=1))
    known = [received[node] for node in receivers if received[node] == received[node]]
    traffic = sum(known)
    if not traffic:
        return []
    taking_part = {*senders, *receivers}
    return [
        Bystander(node, size, size / traffic)
        for node, size in received.items()
        if node not in taking_part and size / traffic > threshold
    ]
