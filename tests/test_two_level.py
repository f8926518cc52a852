"""Two levels of switches: what follows from their rates, and what is refused."""

import math
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

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

rates = st.floats(1e6, 1e10)
trees = st.builds(
    TwoLevel,
    nodes=st.integers(1, 300),
    node_bandwidth=rates,
    nodes_per_edge=st.integers(1, 12),
    uplinks=st.integers(1, 3),
    uplink_bandwidth=rates,
    edges_per_card=st.integers(1, 24),
    card_bandwidth=rates | st.just(math.inf),
    core_bandwidth=rates | st.just(math.inf),
    latency=st.floats(0, 1e-3),
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


@given(trees)
def test_no_network_carries_more_than_its_nodes_send(network):
    """Bisection is at most half of the nodes' links and of all uplinks; no oversubscription is below 1."""
    uplinks = network.edges * network.uplinks * network.uplink_bandwidth
    most = min(network.nodes * network.node_bandwidth, uplinks) / 2
    assert network.bisection <= most * (1 + 1e-12)
    assert network.edge_oversubscription >= 1 and network.core_oversubscription >= 1


@given(trees)
def test_a_full_network_has_its_nodes_rate_over_its_narrowest_part(network):
    """With all switches and cards full, what bisection lacks is the oversubscription of the edge times the core's."""
    nodes = network.nodes_per_edge * network.edges_per_card * network.cards
    full = replace(network, nodes=nodes)
    assume(math.isinf(full.card_bandwidth) or math.isinf(full.core_bandwidth))
    half = full.nodes * full.node_bandwidth / 2
    assert full.bisection == pytest.approx(
        half / full.edge_oversubscription / full.core_oversubscription
    )
