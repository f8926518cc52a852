"""SimGrid's platform file of a network of two levels of switches.

Each edge switch is a star of nodes; stars hang on the ports of a line card, line cards on the core's fabric. Ports
and fabric are zones that hold nothing but a router, through which all routes of their level lead.
"""

import math
from dataclasses import replace
from typing import Iterator, Tuple

from runners.two_level import TwoLevel

_HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<zone id="core" routing="Floyd">"""
_EDGE = (
    '<cluster id="edge{edge}" router_id="switch{edge}" prefix="node" suffix="" radical="{first}-{last}" speed="1Gf"'
    ' bw="{bandwidth:.12g}Bps" lat="{half_latency:.12g}s" sharing_policy="SPLITDUPLEX"/>'
)
_ROUTER = '<zone id="{zone}" routing="None"><router id="{router}"/></zone>'
_LINK = '<link id="{name}" bandwidth="{bandwidth:.12g}Bps" latency="0s" sharing_policy="{policy}"/>'
_ROUTE = '<zoneRoute src="{src}" dst="{dst}" gw_src="{out}" gw_dst="{into}" symmetrical="NO">{links}</zoneRoute>'

# Every byte takes it once: on the way up, whichever way it goes from there.
_FORWARDING = '<link_ctn id="forwarding"/>'


def platform(network: TwoLevel) -> str:
    """The platform file; nodes are called node1, node2 ... in the order of their edge switches.

    Half of the latency is on each end's link, none in between. An edge switch's uplinks are one link of their joint
    rate: traffic spreads over them evenly. All traffic between edge switches takes its share of what the core
    forwards, and only that between line cards takes their ways to the fabric.
    """
    # A link that never blocks would still join all of its flows into one system of equations, and slow them down.
    if math.isinf(network.card_bandwidth):
        network = replace(network, edges_per_card=network.edges)
    cards = range(1, network.cards + 1)
    zones = [line for card in cards for line in _card(network, card)]
    fabric = _fabric(network) if network.cards > 1 else ()
    return "\n".join([_HEAD, *zones, *fabric, "</zone>", "</platform>", ""])


def _fabric(network: TwoLevel) -> Iterator[str]:
    """The fabric, and the way of each line card to it and back."""
    cards = range(1, network.cards + 1)
    yield _ROUTER.format(zone="fabric", router="hub")
    for card in cards:
        yield _link(f"slot{card}", network.card_bandwidth)
    for card in cards:
        yield from _routes((f"card{card}", f"ports{card}"), ("fabric", "hub"), f"slot{card}")


def _card(network: TwoLevel, card: int) -> Iterator[str]:
    """The zone of a line card with its edge switches; the first card's also has the core's forwarding."""
    first = (card - 1) * network.edges_per_card + 1
    edges = range(first, min(card * network.edges_per_card, network.edges) + 1)
    limited = math.isfinite(network.core_bandwidth)
    yield f'<zone id="card{card}" routing="Floyd">'
    for edge in edges:
        yield _edge(network, edge)
    yield _ROUTER.format(zone=f"sockets{card}", router=f"ports{card}")
    if limited and card == 1:
        yield _link("forwarding", network.core_bandwidth, "SHARED")
    for edge in edges:
        yield _link(f"uplink{edge}", network.uplinks * network.uplink_bandwidth)
    for edge in edges:
        ends = (f"edge{edge}", f"switch{edge}"), (f"sockets{card}", f"ports{card}")
        yield from _routes(*ends, f"uplink{edge}", _FORWARDING if limited else "")
    yield "</zone>"


def _edge(network: TwoLevel, edge: int) -> str:
    return _EDGE.format(
        edge=edge,
        first=(edge - 1) * network.nodes_per_edge + 1,
        last=min(edge * network.nodes_per_edge, network.nodes),
        bandwidth=network.node_bandwidth,
        half_latency=network.latency / 2,
    )


def _link(name: str, bandwidth: float, policy: str = "SPLITDUPLEX") -> str:
    return _LINK.format(name=name, bandwidth=bandwidth, policy=policy)


def _routes(lower: Tuple[str, str], upper: Tuple[str, str], link: str, on_the_way_up: str = "") -> Iterator[str]:
    """Up and down between two zones, each a name with its router's, over a full-duplex link."""
    up, down = (f'<link_ctn id="{link}" direction="{way}"/>' for way in ("UP", "DOWN"))
    yield _ROUTE.format(src=lower[0], dst=upper[0], out=lower[1], into=upper[1], links=up + on_the_way_up)
    yield _ROUTE.format(src=upper[0], dst=lower[0], out=upper[1], into=lower[1], links=down)
