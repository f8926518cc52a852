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
    bytes_received: Sequence[float],
    senders: Collection[int],
    receivers: Collection[int],
    threshold: float = THRESHOLD,
) -> list[Bystander]:
    """The nodes that are neither sender nor receiver and received more than a share of the traffic.

    `bytes_received` [B] is one number for each node, node 1 first; NaN is a node that was not read, and is
    not judged. The traffic is what the receivers received together; without any the list is empty.
    """
    received = {node: size for node, size in enumerate(bytes_received, 1) if size == size}
    traffic = sum(received.get(node, 0) for node in receivers)
    others = received.keys() - {*senders, *receivers} if traffic else ()
    shares = {node: received[node] / traffic for node in sorted(others)}
    return [
        Bystander(node, received[node], share)
        for node, share in shares.items()
        if share > threshold
    ]
