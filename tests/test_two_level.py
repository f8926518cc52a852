"""Two levels of switches: what follows from their rates, and what is refused."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from runners.record import FalloffError
from runners.two_level import TwoLevel, from_table, to_table

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


def test_a_small_network_by_hand():
    """Four switches on two cards; a switch asks 30 of 20, a card 40 of 32; half of what the cards carry is 32."""
    assert (SMALL.edges, SMALL.cards) == (4, 2)
    assert SMALL.edge_oversubscription == 30 / 20 and SMALL.core_oversubscription == 40 / 32
    assert SMALL.bisection == (32 + 32) / 2


def test_forwarding_in_all_bounds_the_core():
    """A core that forwards 50 in all is asked for 80, and one half then sends 25 to the other."""
    slow = replace(SMALL, core_bandwidth=50.0)
    assert slow.core_oversubscription == 80 / 50 and slow.bisection == 25


def test_a_switch_that_is_not_full_asks_for_less():
    """A tenth node is alone on its switch: its link is narrower than the uplinks, so that its card never blocks."""
    ten = replace(SMALL, nodes=10)
    assert (ten.edges, ten.cards) == (4, 2)
    assert ten.bisection == (32 + 20 + 10) / 2
    assert replace(SMALL, nodes=2).edge_oversubscription == 1 == replace(SMALL, nodes=2).core_oversubscription


def test_edge_switches_are_spread_over_the_cards_that_are_there():
    """Five cards for 48 each: sixty switches are twelve on each; two hundred and eighty need a sixth card."""
    table = {**to_table(SMALL), "edges_per_card": 48, "cards": 5}
    few, many = (from_table({**table, "nodes": 3 * edges}) for edges in (60, 280))
    assert (few.edges_per_card, few.cards) == (12, 5)
    assert (many.edges_per_card, many.cards) == (47, 6)


@given(trees)
def test_a_table_is_a_network_and_back(network):
    """A network that fills its cards survives its table, and that survives JSON, which knows no infinity."""
    filled = replace(network, edges_per_card=math.ceil(network.edges / network.cards))
    assert from_table(json.loads(json.dumps(to_table(filled), allow_nan=False))) == filled


@given(trees)
def test_no_network_carries_more_than_its_nodes_send(network):
    """Bisection is at most half of the nodes' links and of all uplinks; no oversubscription is below 1."""
    uplinks = network.edges * network.uplinks * network.uplink_bandwidth
    assert network.bisection <= min(network.nodes * network.node_bandwidth, uplinks) / 2 * (1 + 1e-12)
    assert network.edge_oversubscription >= 1 and network.core_oversubscription >= 1


@given(trees)
def test_without_oversubscription_half_of_the_nodes_send_at_full_rate(network):
    """Where uplinks carry what the nodes send and the core never blocks, all of it arrives."""
    wide = network.nodes_per_edge * network.node_bandwidth
    free = replace(network, uplink_bandwidth=wide, card_bandwidth=math.inf, core_bandwidth=math.inf)
    assert free.edge_oversubscription == free.core_oversubscription == 1
    assert free.bisection == pytest.approx(network.nodes * network.node_bandwidth / 2)


@given(trees, st.sampled_from(["uplink_bandwidth", "card_bandwidth", "core_bandwidth"]), st.floats(1, 10))
def test_a_wider_part_never_narrows_the_network(network, part, factor):
    """More of one rate: at least the same bisection bandwidth."""
    wider = replace(network, **{part: factor * getattr(network, part)})
    assert wider.bisection >= network.bisection * (1 - 1e-12)


@given(trees)
def test_a_full_network_has_its_nodes_rate_over_its_narrowest_part(network):
    """With all switches and cards full, what bisection lacks is the oversubscription of the edge times the core's."""
    full = replace(network, nodes=network.nodes_per_edge * network.edges_per_card * network.cards)
    assume(math.isinf(full.card_bandwidth) or math.isinf(full.core_bandwidth))
    all_nodes = full.nodes * full.node_bandwidth / 2
    assert full.bisection == pytest.approx(all_nodes / full.edge_oversubscription / full.core_oversubscription)


def test_every_fault_of_a_table_is_named():
    """What is unknown, missing or no number is said at once."""
    table = {**to_table(SMALL), "nodes": 0, "uplinks": True, "latency": -1.0, "core_bandwidth": math.nan, "spine": 2}
    del table["uplink_bandwidth"]
    with pytest.raises(FalloffError) as refusal:
        from_table(table)
    for said in (
        "spine is unknown",
        "uplink_bandwidth is missing",
        "nodes = 0 must be a whole number from 1",
        "uplinks = True must be a whole number from 1",
        "latency = -1.0 must be a time",
        "core_bandwidth = nan must be a rate",
    ):
        assert said in str(refusal.value)
