"""Two levels of switches: nodes on edge switches, these on the line cards of a core switch."""

import math
from dataclasses import dataclass, replace

from runners.records.record import Description, FalloffError


@dataclass(frozen=True)
class TwoLevel:
    """A network of two levels; rates are of payload in B/s, each way, unless stated otherwise.

    Each of the `nodes` has a link of `node_bandwidth` to an edge switch. An edge switch has
    `nodes_per_edge` nodes (the last one may have fewer) and `uplinks`, of `uplink_bandwidth` each,
    to a line card of the core. A line card has the uplinks of `edges_per_card` edge switches and
    `card_bandwidth` to the core's fabric. The core forwards `core_bandwidth` in total, each byte
    counted once, whichever way it goes. Both are infinite if they never block. Edge switches never
    block. `latency` [s] is the time of a short message from any node to any other.
    """

    nodes: int
    node_bandwidth: float
    nodes_per_edge: int
    uplinks: int
    uplink_bandwidth: float
    edges_per_card: int
    card_bandwidth: float
    core_bandwidth: float
    latency: float

    @property
    def edges(self) -> int:
        """The number of edge switches."""
        return math.ceil(self.nodes / self.nodes_per_edge)

    @property
    def cards(self) -> int:
        """The number of line cards that are in use."""
        return math.ceil(self.edges / self.edges_per_card)

    @property
    def edge_oversubscription(self) -> float:
        """What a full edge switch's nodes can send, over what its uplinks carry; 1 if they carry
        all of it."""
        asked = min(self.nodes, self.nodes_per_edge) * self.node_bandwidth
        return max(1.0, asked / (self.uplinks * self.uplink_bandwidth))

    @property
    def core_oversubscription(self) -> float:
        """What the edge switches can send, over what the core carries of it at its narrowest: a
        full line card's way to the fabric, or the total forwarding; 1 if it carries all."""
        sent = self._sent()
        return max(
            1.0,
            sum(sent[: self.edges_per_card]) / self.card_bandwidth,
            sum(sent) / self.core_bandwidth,
        )

    @property
    def bisection(self) -> float:
        """What one half of the nodes can send to the other half while the other half sends as much
        back [B/s each way], if all of it passes the fabric."""
        sent, step = self._sent(), self.edges_per_card
        cards = (sent[first : first + step] for first in range(0, self.edges, step))
        return (
            min(sum(min(sum(card), self.card_bandwidth) for card in cards), self.core_bandwidth) / 2
        )

    def _sent(self) -> list[float]:
        """What each edge switch can send to the core [B/s]."""
        last = self.nodes - (self.edges - 1) * self.nodes_per_edge
        below = [self.nodes_per_edge] * (self.edges - 1) + [last]
        return [
            min(nodes * self.node_bandwidth, self.uplinks * self.uplink_bandwidth)
            for nodes in below
        ]


def from_table(table: Description) -> TwoLevel:
    """A network from the table of its fields; `card_bandwidth` and `core_bandwidth` are infinite if
    absent.

    With `cards` in the table, `edges_per_card` is the capacity of a card. There are that many
    cards, or more if needed, and the edge switches are spread evenly over all of them. The same
    table then serves any `nodes`. Raises FalloffError if a field is missing or unknown.
    """
    fields = {"card_bandwidth": math.inf, "core_bandwidth": math.inf, **table}
    cards = fields.pop("cards", 1)
    try:
        full = TwoLevel(**fields)
    except TypeError as error:
        raise FalloffError(f"two-level network: {error}") from None
    return replace(full, edges_per_card=math.ceil(full.edges / max(cards, full.cards)))
