"""How much a path of data/paths.toml can carry between its nodes, from the rates and delays of its
parts."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from analysis.dataset.wire import wire_limit
from runners.testbeds.graph import Graph, graph, name


@dataclass(frozen=True)
class Hop:
    """A step to the place `end` over a link or a hub's wire.

    All traffic over `medium` shares one rate: a direction of a link, or a hub's wire both ways.
    `rate` [bit/s on the wire] is infinite where it is not shaped; bonded nodes have the rate of all
    their wires together. `delay` [s] is one way.
    """

    medium: tuple[int, int] | str
    end: str
    rate: float
    delay: float


@dataclass(frozen=True)
class ShortestPath:
    """A shortest way from one node to another."""

    hops: tuple[Hop, ...]

    @property
    def rate(self) -> float:
        """The rate of its slowest hop [bit/s on the wire]."""
        return min(hop.rate for hop in self.hops)

    @property
    def round_trip(self) -> float:
        """Twice the sum of its delays [s], without queues."""
        return 2 * sum(hop.delay for hop in self.hops)


@dataclass(frozen=True)
class Limits:
    """The most TCP payload [bit/s] of several flows: by the links of each flow alone, and by the
    links that all share."""

    own: float
    shared: float


def way(path: Mapping[str, Any], start: int, end: int) -> ShortestPath:
    """The way between two nodes of a path's table; raises ValueError when there is none.

    Bonded nodes have several equal ways: this returns the first, with the rate of all of them
    together.
    """
    return _shortest(path, start, end)[0]


def between(path: Mapping[str, Any], start: int, end: int) -> set[str]:
    """The carriers on any of the shortest ways between two nodes; bonded nodes have several."""
    return {hop.end for way in _shortest(path, start, end) for hop in way.hops[:-1]}


def carriers(path: Mapping[str, Any]) -> list[str]:
    """The hubs, then the switches, then the routers of a path's table: the order of
    `bytes_through`.
    """
    return [place for kind in ("hubs", "switches", "routers") for place in path.get(kind, {})]


def limits(path: Mapping[str, Any], flows: Sequence[tuple[int, int]]) -> Limits:
    """The limits that the links set to `flows`, pairs of start and end node, that run at the same
    time and share evenly.

    A link that only some of the flows use counts in neither limit.
    """
    ways = [{hop.medium: hop.rate for hop in way(path, *ends).hops} for ends in flows]
    users = Counter(medium for passed in ways for medium in passed)
    rates = {medium: rate for passed in ways for medium, rate in passed.items()}
    alone, shared = (
        min((rate for medium, rate in rates.items() if users[medium] == wanted), default=np.inf)
        for wanted in (1, len(flows))
    )
    mtu = path["mtu"]
    return Limits(own=len(flows) * wire_limit(alone, mtu), shared=wire_limit(shared, mtu))


def _shortest(path: Mapping[str, Any], start: int, end: int) -> list[ShortestPath]:
    """All shortest ways that pass through no other node, since nodes do not forward. Raises
    ValueError when there is none."""
    net, hops = _net(json.dumps(path))
    seen = {name(start)}
    begun: list[tuple[Hop, ...]] = [(hop,) for hop in hops[name(start)]]
    while begun:
        if arrived := [ShortestPath(way) for way in begun if way[-1].end == name(end)]:
            return arrived
        begun = [way for way in begun if way[-1].end not in {*seen, *map(name, net.nodes)}]
        seen |= {way[-1].end for way in begun}
        begun = [(*way, hop) for way in begun for hop in hops[way[-1].end]]
    raise ValueError(f"no way leads from {start} to {end}")


@lru_cache(maxsize=64)
def _net(path: str) -> tuple[Graph, Mapping[str, list[Hop]]]:
    """The graph of a path's table in JSON, with the hops that leave each place, in the order of the
    links."""
    net, hops = graph(json.loads(path)), defaultdict(list)
    wires = len(net.ends(name(1))) if net.bonded else 1
    for number, link in enumerate(net.links):
        hub = link.places[1] if link.places[1] in net.hubs else ""
        for side, place in enumerate(link.places):
            rate = net.hubs[hub] if hub else link.rates[side] or np.inf
            end, medium = link.places[1 - side], hub or (number, side)
            hops[place].append(Hop(medium, end, wires * rate, link.delay_s))
    return net, hops
