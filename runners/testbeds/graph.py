"""A network as a graph of nodes, hubs, switches and routers: its links, routes and addresses, and
what joins two links.

A graph comes from a table of data/paths.toml, or from `star` for an interconnect. Nothing here
touches the machine.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

from runners.records.record import Description, FalloffError, Settings

# Nodes have their own namespaces, so every testbed can use the same addresses.
_SUBNET = "10.81.{}.0/24"
_FIRST_ROUTER = 254  # routers' addresses count down from here

# What the table of a star has of its interconnect's.
_KEPT_KEYS = ("name", "mtu", "rate_bit_s", "largest_packet_bytes")


@dataclass(frozen=True)
class Link:
    """A full-duplex link between two places; `rates` [bit/s on the wire, None: not shaped] are what
    each place sends at.

    A link to a hub is a station there and has the hub's rate. `delay_s` [s] is one way.
    `carried_bit_s` is a rate that its delay line keeps instead, without any burst. `mtu` [B] limits
    both ends; None: no limit.
    """

    places: tuple[str, str]
    rates: tuple[Optional[float], Optional[float]]
    delay_s: float = 0.0
    mtu: Optional[int] = None
    carried_bit_s: Optional[float] = None


@dataclass(frozen=True)
class Buffer:
    """The packet memory of a switch, as runners/src/buffered_switch.c has it.

    `bytes` [B] are for each port, or for all together if `alpha` [1], the factor of dynamic
    thresholds, is above 0. Senders to a queue above `pause_bytes` are paused, and ECN-capable
    frames that find `mark_bytes` or more in it are marked (0: never). `delay_s` [s] is what a frame
    takes from the end of one link to the end of the next besides its time on the wire and in the
    queue. `free_bytes` [B] of each frame take no time on the wire; above 0 the switch cuts through.
    """

    bytes: int
    alpha: float = 0.0
    pause_bytes: int = 0
    mark_bytes: int = 0
    delay_s: float = 0.0
    free_bytes: int = 0


class End(NamedTuple):
    """One end of a link: the link, and which of its two places."""

    link: int
    side: int


class Route(NamedTuple):
    """How a place reaches a node: the end that packets leave by, and the router that they are
    handed to (None: none)."""

    node: int
    out: End
    via: Optional[str]


@dataclass(frozen=True)
class Way:
    """How a node uses its links (rails count from 1): `routes` has, for each subnet, the rails that
    lead there.

    No rail at all means the first that leads to the peer. If several lead there, `hash_policy` says
    how the kernel chooses. With 0 it uses the two addresses, so everything to one peer takes one
    rail (without a bonding driver this is the closest to a layer 2 hash). With 1 it also uses the
    ports (layer 3+4). `is_mptcp`: programs get MPTCP for TCP. `is_striped`: Open MPI uses all
    subnets. `is_bonded`: one interface sends over both links in turn.
    """

    routes: tuple[tuple[int, ...], ...] = ((),)
    hash_policy: int = 0
    is_mptcp: bool = False
    is_striped: bool = False
    is_bonded: bool = False

    @property
    def networks(self) -> list[str]:
        """The subnets that Open MPI may use."""
        used = self.routes if self.is_striped else self.routes[:1]
        return [subnet(number) for number, _ in enumerate(used, start=1)]


ONE_LINK = Way()
EACH_LINK = ((1,), (2,))

_WAYS = {
    "one_link": ONE_LINK,
    "ecmp_layer2": Way(((1, 2),), hash_policy=0),
    "ecmp_layer34": Way(((1, 2),), hash_policy=1),
    "bond_balance_rr": Way(is_bonded=True),
    "mptcp": Way(EACH_LINK, is_mptcp=True),
    "mpi_striping": Way(EACH_LINK, is_striped=True),
}


def way(point: Settings, rails: int) -> Way:
    """The way that a point asks for by its `aggregation`; one link if it asks for none.

    Raises FalloffError if there is no such way, or it needs more links per node than there are.
    """
    aggregation = point.get("aggregation", "one_link")
    if aggregation not in _WAYS:
        raise FalloffError(f"aggregation {aggregation!r} is unknown; there are {', '.join(_WAYS)}")
    if aggregation != "one_link" and rails < 2:
        raise FalloffError(
            f"aggregation {aggregation} needs two links a node: "
            "use the testbed rails, or set `rails = 2`"
        )
    return _WAYS[aggregation]


@dataclass(frozen=True)
class Graph:
    """Switches and routers by name with their MTU [B], links, and hubs; a node is a place named n1,
    n2 ...

    A hub has a name and a rate [bit/s on the wire], which all links to it share, both ways; it is
    not a place, and neither is a switch with a buffer, which a program is. `bonded` is whether each
    node sends over its links in turn.
    """

    switches: Mapping[str, int]
    routers: Mapping[str, int]
    links: tuple[Link, ...]
    hubs: Mapping[str, float] = field(default_factory=dict)
    bonded: bool = False
    buffers: Mapping[str, Buffer] = field(default_factory=dict)

    @property
    def places(self) -> list[str]:
        """All places: nodes in order, then switches, then routers."""
        return [*map(name, self.nodes), *self.switches, *self.routers]

    @property
    def nodes(self) -> range:
        """The numbers of the nodes, from 1."""
        return range(1, 1 + sum(map(self.is_node, self._ends_by_place())))

    @property
    def shape(self) -> Any:
        """The part that must be built, not only configured: two graphs of one shape differ only in
        rates and MTUs. The program that is a switch with a buffer is told both when it starts."""
        links = [(link.places, link.delay_s, link.carried_bit_s) for link in self.links]
        buffered = [
            (buffer, [self.links[end.link].rates for end in self.ends(switch)])
            for switch, buffer in self.buffers.items()
        ]
        devices = list(self.switches), list(self.routers), dict(self.hubs)
        return links, devices, self.bonded, buffered

    @property
    def has_taps(self) -> bool:
        """Whether programs carry its frames between TAP interfaces."""
        return bool(self.buffers) or self._has_own_taps

    @property
    def _has_own_taps(self) -> bool:
        return self.bonded or bool(self.hubs) or any(link.delay_s for link in self.links)

    @property
    def is_star(self) -> bool:
        """Whether each node has one link, through which it reaches all others with only switches in
        between."""
        places = list(map(name, self.nodes))
        return not (self.routers or self._has_own_taps) and all(
            len(self.ends(place)) == 1 and len(self.routes(place)) == len(places) - 1
            for place in places
        )

    @property
    def rails(self) -> int:
        """The number of links of each node; 1 if the numbers differ."""
        counts = {len(self.ends(name(node))) for node in self.nodes}
        return counts.pop() if len(counts) == 1 else 1

    def is_node(self, place: str) -> bool:
        """Whether a place is a node, not a switch, router or hub."""
        return place not in (*self.switches, *self.routers, *self.hubs, *self.buffers)

    def ends(self, place: str) -> list[End]:
        """The ends of links at a place or hub, in the order of the links."""
        return self._ends_by_place().get(place, [])

    def place(self, end: End) -> str:
        """The place of an end."""
        return self.links[end.link].places[end.side]

    def peer(self, end: End) -> str:
        """The place or hub at the other end of a link."""
        return self.links[end.link].places[1 - end.side]

    def stations(self, hub: str) -> list[End]:
        """The other ends of the links to a hub or a switch with a buffer."""
        return [End(end.link, 1 - end.side) for end in self.ends(hub)]

    def label(self, end: End) -> str:
        """The name of an end for display: its place, with the other place unless this is a node's
        only link."""
        place = self.place(end)
        if self.is_node(place) and len(self.ends(place)) == 1:
            return place
        return f"{place} to {self.peer(end)}"

    def routes(self, start: str, out: Optional[End] = None) -> list[Route]:
        """The shortest way from a node or router to every other node; nodes and the start itself do
        not forward.

        With `out` it begins at that end of the start.
        """
        reached = []
        # Places to continue from, with the end that led out of the start and the first router on
        # the way.
        frontier: list[tuple[str, Optional[End], Optional[str]]] = [(start, None, None)]
        seen, ends_by_place = {start}, self._ends_by_place()
        for place, first, via in frontier:  # grows during the loop: breadth first
            for end in [out] if out and place == start else ends_by_place[place]:
                peer = self.peer(end)
                if peer in seen:
                    continue
                seen.add(peer)
                if self.is_node(peer):
                    reached.append(Route(int(peer[1:]), first or end, via))
                else:
                    router = peer if peer in self.routers else None
                    frontier.append((peer, first or end, via or router))
        return sorted(reached)

    def _ends_by_place(self) -> dict[str, list[End]]:
        by_place: dict[str, list[End]] = {}
        for number, link in enumerate(self.links):
            for side, place in enumerate(link.places):
                by_place.setdefault(place, []).append(End(number, side))
        return by_place


def name(node: int) -> str:
    """The name of a node as a place; it is also its hostname."""
    return f"n{node}"


def subnet(number: int) -> str:
    """The subnet with that number (from 1): nodes have an address in the first, and in others as
    their way requires."""
    return _SUBNET.format(number - 1)


def address(node: int, number: int = 1) -> str:
    """The address of a node in a subnet."""
    return subnet(number).replace("0/24", str(node))


def address_of(graph: Graph, place: str, number: int = 1) -> str:
    """The address of a node in a subnet, or the only one of a router."""
    if graph.is_node(place):
        return address(int(place[1:]), number)
    return address(_FIRST_ROUTER - list(graph.routers).index(place))


def star(
    interconnect: Description,
    nodes: int,
    rails: int = 1,
    bonded: bool = False,
    slow: Mapping[str, float] = {},
    buffer: Optional[Description] = None,
) -> dict:
    """The table of a network with one switch, or with `rails` switches, each linked to every node;
    with `buffer`, the fields of Buffer, that is the memory of each of them.

    `interconnect` has `mtu` [B] and may have `rate_bit_s`, `largest_packet_bytes` [B] and `delay_s`
    [s], which a node's frames take to another one beside what this machine takes; its rate is then
    that of delay lines, which let nothing pass for free. `slow`
    maps a node's number to the share of that rate that its links have. Raises FalloffError if there
    is no rate.
    """
    rate, delay_s = interconnect.get("rate_bit_s"), interconnect.get("delay_s", 0.0)
    if slow and rate is None:
        title = interconnect.get("name", "?")
        raise FalloffError(f"links of {title} have no rate to be slower than: correct [slow]")
    switches = ["switch"] if rails == 1 else [f"switch-{rail}" for rail in range(1, rails + 1)]
    links = []
    for node in range(1, nodes + 1):
        own_rate = rate and rate * slow.get(str(node), 1)
        timing = {"rate_bit_s": own_rate}
        if delay_s:  # on each of two links
            timing = {"delay_s": delay_s / 2, "rate_bit_s": None, "carried_bit_s": own_rate}
        links.append({"from": node, **timing})
    table = {key: interconnect[key] for key in _KEPT_KEYS if key in interconnect}
    if buffer:
        table.pop("largest_packet_bytes", None)  # its program carries frames, not several in one
        table["buffers"] = dict.fromkeys(switches, buffer)
    else:
        table["switches"] = dict.fromkeys(switches, interconnect["mtu"])
    links = [{**link, "to": switch} for switch in switches for link in links]
    return {**table, "links": links, "bonded": bonded}


def graph(table: Description) -> Graph:
    """The graph of a table; raises FalloffError naming what is wrong with it."""
    title, rate = table.get("name", "?"), table.get("rate_bit_s")
    links = []
    for row in table.get("links", []):
        _refuse(title, {"from", "to"} - row.keys(), "a link lacks")
        starts = row["from"] if isinstance(row["from"], list) else [row["from"]]
        forth = row.get("rate_bit_s", rate)
        rates = forth, row.get("rate_back_bit_s", forth)
        shared = row.get("delay_s", 0.0), row.get("mtu"), row.get("carried_bit_s")
        links += [Link((_place(start), _place(row["to"])), rates, *shared) for start in starts]
    hubs = table.get("hubs", {})
    _refuse(title, hubs.keys() & _joined(links), "a link to the hub")
    for hub, stations in hubs.items():
        links += [Link((_place(station), hub), (None, None)) for station in stations]
    made = Graph(
        table.get("switches", {}),
        table.get("routers", {}),
        tuple(links),
        dict.fromkeys(hubs, rate or 0.0),
        table.get("bonded", False),
        {switch: Buffer(**fields) for switch, fields in table.get("buffers", {}).items()},
    )
    used, buffers = _joined(links), set(made.buffers)
    unshaped = {link.places[1] for link in links if None in link.rates}
    undeclared = "links lead to what is neither declared nor a node counted from 1 on:"
    _refuse(title, {*made.switches, *made.routers} - used, "no link to")
    _refuse(title, used - buffers - {*made.places, *hubs}, undeclared)
    _refuse(title, set() if rate else set(hubs), "no rate_bit_s for the hub")
    _refuse(title, buffers & unshaped, "no rate_bit_s for the links to")
    if len(made.nodes) < 2:
        raise FalloffError(f"path {title}: it joins fewer than two nodes")
    if made.bonded:
        alone = {place for place in map(name, made.nodes) if len(made.ends(place)) < 2}
        _refuse(title, alone, "there is a single link to bond at")
        _refuse(title, set(made.routers), "bonded nodes cannot use the router")
    return made


def _joined(links: Iterable[Link]) -> set[str]:
    return {place for link in links for place in link.places}


def _place(end: Any) -> str:
    return name(end) if isinstance(end, int) else end


def _refuse(title: str, wrong: set, complaint: str) -> None:
    if wrong:
        raise FalloffError(f"path {title}: {complaint} {', '.join(sorted(wrong))}")
