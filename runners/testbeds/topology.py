"""A path as a graph of nodes, hubs, switches and routers: from its table of data/paths.toml to links and routes.

Every node has one address, whichever links it has, and reaches the others by a route to each. So a node may
have several links, and a route may lead over any of them, or over all of them in turn where they are bonded.
"""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from runners.record import FalloffError

_PATH_KEYS = {"name", "short", "source", "rate_bit_s", "mtu", "offloads", "bonded"}
_PATH_KEYS |= {"hubs", "switches", "routers", "links"}
_LINK_KEYS = {"from", "to", "rate_bit_s", "rate_back_bit_s", "delay_s", "mtu"}


@dataclass(frozen=True)
class Link:
    """A full-duplex link between two places; `rates` [bit/s on the wire, None: not shaped] are of what each sends.

    One to a hub is its station there, whose rate is the hub's.

    `delay_s` [s] is one way. `mtu` [B] bounds that of both ends, None: it does not.
    """

    places: Tuple[str, str]
    rates: Tuple[Optional[float], Optional[float]]
    delay_s: float = 0.0
    mtu: Optional[int] = None


@dataclass(frozen=True)
class End:
    """One end of a link: which link, and which of its two places."""

    link: int
    side: int


@dataclass(frozen=True)
class Route:
    """How a place reaches a node: out of which end, and the router that it hands packets to (None: nobody)."""

    node: int
    out: End
    via: Optional[str]


@dataclass(frozen=True)
class Graph:
    """Switches and routers by name with their MTU [B], links, and hubs; a node is a place named n1, n2 ...

    A hub has a name and a rate [bit/s on the wire], which all that are linked to it share, both ways; it is no place.
    `bonded` is whether each node sends over its links in turn.
    """

    switches: Mapping[str, int]
    routers: Mapping[str, int]
    links: Tuple[Link, ...]
    hubs: Mapping[str, float] = field(default_factory=dict)
    bonded: bool = False

    @property
    def places(self) -> List[str]:
        """All places: nodes in order, then switches, then routers."""
        return [*map(name, self.nodes), *self.switches, *self.routers]

    @property
    def nodes(self) -> range:
        """The numbers of the nodes, from 1."""
        return range(1, 1 + len({place for link in self.links for place in link.places if self.is_node(place)}))

    @property
    def bonded_places(self) -> List[str]:
        """The places that send over their links in turn: all nodes, or none."""
        return list(map(name, self.nodes)) if self.bonded else []

    def is_node(self, place: str) -> bool:
        """Whether a place is a node, and no switch, router or hub."""
        return not any(place in devices for devices in (self.switches, self.routers, self.hubs))

    def ends(self, place: str) -> List[End]:
        """The ends of links at a place."""
        return [
            End(number, side)
            for number, link in enumerate(self.links)
            for side, here in enumerate(link.places)
            if here == place
        ]

    def place(self, end: End) -> str:
        """Where an end is."""
        return self.links[end.link].places[end.side]

    def stations(self, hub: str) -> List[End]:
        """The ends on a hub's wire, each at the place that is linked to the hub."""
        return [End(end.link, 1 - end.side) for end in self.ends(hub)]

    def all_ends(self) -> List[End]:
        """The ends at all places, in the order of the places."""
        return [end for place in self.places for end in self.ends(place)]

    def label(self, end: End) -> str:
        """The name of an end for people: its place, with the other place unless it is a node's only one."""
        place, other = self.place(end), self.links[end.link].places[1 - end.side]
        return place if self.is_node(place) and len(self.ends(place)) == 1 else f"{place} to {other}"

    def routes(self, start: str) -> List[Route]:
        """The shortest way from a node or router to every other node; nodes and the start itself pass nothing on."""
        found: Dict[str, Route] = {}
        # Places to go on from: the end that led out of the start, and the router met first.
        frontier: List[Tuple[str, Optional[End], Optional[str]]] = [(start, None, None)]
        seen = {start}
        for here, first, via in frontier:  # it grows meanwhile: breadth first
            for end in self.ends(here):
                there = self.links[end.link].places[1 - end.side]
                if there in seen:
                    continue
                seen.add(there)
                out = first or end
                if self.is_node(there):
                    found[there] = Route(int(there[1:]), out, via)
                else:
                    frontier.append((there, out, via or (there if there in self.routers else None)))
        return [found[name(node)] for node in self.nodes if name(node) in found]


def name(node: int) -> str:
    """The name of a node as a place."""
    return f"n{node}"


def graph(path: Mapping[str, Any]) -> Graph:
    """The graph of a path's table; raises FalloffError naming what is wrong with it."""
    title, hubs = path.get("name", "?"), path.get("hubs", {})
    _refuse(title, set(path) - _PATH_KEYS, "unknown key")
    links = [link for row in path.get("links", []) for link in _links(title, row, path.get("rate_bit_s"))]
    links += [Link((_place(station), hub), (None, None)) for hub, stations in hubs.items() for station in stations]
    rates = dict.fromkeys(hubs, path.get("rate_bit_s", 0.0))
    made = Graph(path.get("switches", {}), path.get("routers", {}), tuple(links), rates, path.get("bonded", False))
    _check(title, made)
    return made


def _check(title: str, made: Graph) -> None:
    hubs, used = set(made.hubs), {place for link in made.links for place in link.places}
    strange = used - {*made.places, *hubs}
    _refuse(title, {*made.switches, *made.routers} - used, "no link to")
    _refuse(title, strange, "links lead to what is neither declared nor a node counted from 1 on:")
    _refuse(title, hubs & {link.places[0] for link in made.links}, "a hub or a link starts at the hub")
    _refuse(title, hubs & {link.places[1] for link in made.links if any(link.rates)}, "a link leads to the hub")
    _refuse(title, {hub for hub, rate in made.hubs.items() if not rate}, "there is no rate_bit_s for the hub")
    if len(made.nodes) < 2:
        raise FalloffError(f"path {title}: it joins fewer than two nodes")
    if made.bonded:
        alone = {place for place in map(name, made.nodes) if len(made.ends(place)) < 2}
        _refuse(title, alone, "there is a single link to bond at")
        _refuse(title, set(made.routers), "bonded nodes cannot use the router")


def _links(title: str, row: Mapping[str, Any], rate: Optional[float]) -> List[Link]:
    _refuse(title, set(row) - _LINK_KEYS, "unknown key of a link")
    _refuse(title, {"from", "to"} - set(row), "a link lacks")
    starts = row["from"] if isinstance(row["from"], list) else [row["from"]]
    forth = row.get("rate_bit_s", rate)
    rates = forth, row.get("rate_back_bit_s", forth)
    return [
        Link((_place(start), _place(row["to"])), rates, row.get("delay_s", 0.0), row.get("mtu")) for start in starts
    ]


def _place(end: Any) -> str:
    return name(end) if isinstance(end, int) else end


def _refuse(title: str, wrong: set, complaint: str) -> None:
    if wrong:
        raise FalloffError(f"path {title}: {complaint} {', '.join(sorted(wrong))}")
