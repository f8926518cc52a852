"""What a path of data/paths.toml can carry between its nodes, by the rates and delays of its parts."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analysis.wire import wire_limit

Place = int | str  # a node's number, or the name of a hub, switch or router


@dataclass(frozen=True)
class Hop:
    """What passes from `start` to `end`, on a link or between a hub's wire and what is on it.

    All that passes `medium` shares one rate: a direction of a link, or a hub's wire both ways. `rate`
    [bit/s on the wire] is infinite where it is not shaped; bonded nodes have that of all their wires
    together. `delay` [s] is one way.
    """

    medium: tuple[int, Place] | str
    start: Place
    end: Place
    rate: float
    delay: float


@dataclass(frozen=True)
class Way:
    """The shortest way from a node to another, and what it can carry.

    `rate` [bit/s on the wire] is that of its slowest hop; `round_trip` [s] is twice the sum of its delays,
    without queues.
    """

    hops: tuple[Hop, ...]
    rate: float
    round_trip: float


@dataclass(frozen=True)
class Limits:
    """The most TCP payload [bit/s] of several flows, by the links of each alone and by those of all."""

    own: float
    shared: float


def way(path: Mapping[str, Any], start: int, end: int) -> Way:
    """The way between two nodes of a path's table; raises ValueError when there is none.

    Of bonded nodes, whose ways are alike, it is the first, at the rate of all together.
    """
    hops = _shortest(_hops(path), start, end)
    return Way(hops, min(hop.rate for hop in hops), 2 * sum(hop.delay for hop in hops))


def carriers(path: Mapping[str, Any]) -> list[str]:
    """The hubs, then the switches, then the routers of a path's table: the order of `bytes_through`."""
    return [place for kind in ("hubs", "switches", "routers") for place in path.get(kind, {})]


def between(path: Mapping[str, Any], start: int, end: int) -> set[str]:
    """The carriers on any of the shortest ways between two nodes; bonded nodes have several."""
    hops = _hops(path)

    def apart(here: Place, there: Place) -> float:
        try:
            return len(_shortest(hops, here, there))
        except ValueError:
            return np.inf

    whole = apart(start, end)
    return {place for place in carriers(path) if apart(start, place) + apart(place, end) == whole}


def travelled(path: Mapping[str, Any], settings: Mapping[str, Any], direction: str) -> Way:
    """The way that a transfer's data take between the `sender` and the `receiver` of a campaign's settings.

    Forward they go from one to the other, in reverse back. Raises ValueError when there is no way.
    """
    ends = settings["sender"], settings["receiver"]
    return way(path, *(ends if direction == "forward" else ends[::-1]))


def limits(path: Mapping[str, Any], flows: Sequence[tuple[int, int]]) -> Limits:
    """What links allow `flows`, pairs of start and end node, that go on at the same time and share evenly.

    A link that only some of them use counts to neither.
    """
    ways = [{hop.medium: hop.rate for hop in way(path, *ends).hops} for ends in flows]
    users = Counter(medium for passed in ways for medium in passed)
    rates = {medium: rate for passed in ways for medium, rate in passed.items()}
    own, shared = (
        min((rate for medium, rate in rates.items() if users[medium] == wanted), default=np.inf)
        for wanted in (1, len(flows))
    )
    mtu = path["mtu"]
    return Limits(own=len(flows) * wire_limit(own, mtu), shared=wire_limit(shared, mtu))


def _hops(path: Mapping[str, Any]) -> Mapping[Place, list[Hop]]:
    """Both directions of every link and of all that is on a hub, by their start."""
    hops: dict[Place, list[Hop]] = defaultdict(list)
    for hop in _all_hops(path):
        hops[hop.start].append(hop)
    wires = len(hops[1]) if path.get("bonded", False) else 1
    return {
        start: [replace(hop, rate=wires * hop.rate) for hop in leaving]
        for start, leaving in hops.items()
    }


def _all_hops(path: Mapping[str, Any]) -> Iterator[Hop]:
    number = 0
    for row in path.get("links", []):
        forth = row.get("rate_bit_s", path.get("rate_bit_s", np.inf))
        back, delay = row.get("rate_back_bit_s", forth), row.get("delay_s", 0.0)
        for start in row["from"] if isinstance(row["from"], list) else [row["from"]]:
            yield Hop((number, start), start, row["to"], forth, delay)
            yield Hop((number, row["to"]), row["to"], start, back, delay)
            number += 1
    for hub, stations in path.get("hubs", {}).items():
        for station in stations:
            yield Hop(hub, station, hub, path["rate_bit_s"], 0.0)
            yield Hop(hub, hub, station, path["rate_bit_s"], 0.0)


def _shortest(hops: Mapping[Place, Sequence[Hop]], start: Place, end: Place) -> tuple[Hop, ...]:
    """The hops of the shortest way: breadth first, and over no other node, as nodes pass nothing on."""
    frontier: list[tuple[Place, tuple[Hop, ...]]] = [(start, ())]
    seen = {start}
    for here, passed in frontier:  # it grows meanwhile
        if here == end:
            return passed
        for hop in hops.get(here, ()):
            if hop.end not in seen and (hop.end == end or isinstance(hop.end, str)):
                seen.add(hop.end)
                frontier.append((hop.end, (*passed, hop)))
    raise ValueError(f"no way leads from {start} to {end}")
