"""Two levels of switches: what follows from their rates, and what is refused."""

import math
from dataclasses import replace

import pytest

from runners.record import FalloffError
from runners.two_level import TwoLevel, from_table

# Twelve nodes of rate 10, three on each of four switches; 1.5:1 at the edge, 1.25:1 at a card.
SMALL = TwoLevel(
    nodes=12,
    node_bandwidth=10.0,
    nodes_per_edge=3,
    uplinks=2,
    uplink_bandwidth=10.0,
    edges_per_card=2,
    card_bandwidth=32.0,
    core_bandwidth=math.inf,
    latency=1e-5,
)


def test_small_networks_by_hand():
    """Four switches on two cards; a switch asks 30 of 20, a card 40 of 32; half of what the cards carry is 32."""
    assert (SMALL.edges, SMALL.cards) == (4, 2)
    assert SMALL.edge_oversubscription == 30 / 20 and SMALL.core_oversubscription == 40 / 32
    assert SMALL.bisection == (32 + 32) / 2
    slow = replace(
        SMALL, core_bandwidth=50.0
    )  # asked for 80, and one half then sends 25 to the other
    assert slow.core_oversubscription == 80 / 50 and slow.bisection == 25
    ten = replace(SMALL, nodes=10)  # the tenth is alone on its switch, whose card never blocks
    assert (ten.edges, ten.cards) == (4, 2) and ten.bisection == (32 + 20 + 10) / 2
    two = replace(SMALL, nodes=2)
    assert two.edge_oversubscription == 1 == two.core_oversubscription


def test_edge_switches_are_spread_over_the_cards_that_are_there():
    """Five cards for 48 each: sixty switches are twelve on each; two hundred and eighty need a sixth card."""
    table = {**vars(SMALL), "edges_per_card": 48, "cards": 5}
    few, many = (from_table({**table, "nodes": 3 * edges}) for edges in (60, 280))
    assert (few.edges_per_card, few.cards) == (12, 5)
    assert (many.edges_per_card, many.cards) == (47, 6)


def test_a_wrong_table_is_refused():
    """A field that is missing or unknown is named; what bounds the core may be left out, for it then never blocks."""
    table = vars(SMALL)
    with pytest.raises(FalloffError, match="spine"):
        from_table({**table, "spine": 2})
    with pytest.raises(FalloffError, match="uplinks"):
        from_table({name: value for name, value in table.items() if name != "uplinks"})
    unbounded = {name: value for name, value in table.items() if name != "card_bandwidth"}
    assert from_table(unbounded).card_bandwidth == math.inf


@pytest.mark.parametrize(
    ("changes", "edge", "core"),
    [
        ({}, 1.5, 1.25),
        ({"uplinks": 1}, 3, 1),
        ({"uplink_bandwidth": 40.0, "card_bandwidth": math.inf}, 1, 1),
        ({"card_bandwidth": math.inf, "core_bandwidth": 20.0}, 1.5, 4),
    ],
)
def test_a_full_network_has_its_nodes_rate_over_its_narrowest_part(changes, edge, core):
    """With all switches and cards full, what bisection lacks is the oversubscription of the edge times the core's."""
    network = replace(SMALL, **changes)
    assert (network.edge_oversubscription, network.core_oversubscription) == (edge, core)
    half = network.nodes * network.node_bandwidth / 2
    assert network.bisection == pytest.approx(half / edge / core)
