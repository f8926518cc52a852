"""SimGrid's SMPI: the numbers of a simulation, the modelled platform, and the command line for an
MPI program on it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Optional

from runners.records.record import Description, FalloffError
from runners.two_level import TwoLevel, from_table

_FRAME = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
{}
</platform>
"""
_CLUSTER = (
    '<cluster id="{id}"{router} prefix="node" suffix="" radical="{first}-{last}" speed="1Gf"'
    ' bw="{bandwidth:.12g}Bps" lat="{half_latency:.12g}s" sharing_policy="SPLITDUPLEX"{inside}/>'
)
# Messages between ranks of a node do not use its link.
_INSIDE = ' loopback_bw="{:.12g}Bps" loopback_lat="0s"'
FASTEST = 1e12  # bytes/s where copying inside a node is free
# A zone with only a router, through which all routes of its level lead.
_ROUTER = '<zone id="{zone}" routing="None"><router id="{router}"/></zone>'
_LINK = '<link id="{name}" bandwidth="{bandwidth:.12g}Bps" latency="0s" sharing_policy="{policy}"/>'
_ROUTE = '<zoneRoute src="{}" gw_src="{}" dst="{}" gw_dst="{}" symmetrical="NO">{}</zoneRoute>'

_OPTIONS = {
    # Only the shim's charges and messages advance the time, never the time that this machine needs.
    "smpi/host-speed": "1Gf",
    "smpi/simulate-computation": "no",
    # Reading the clock or testing for a message costs nothing; otherwise each would be an event.
    "smpi/wtime": "0",
    "smpi/iprobe": "0",
    # Rate and latency are the platform's, not those of the cluster on which SimGrid was calibrated.
    "smpi/bw-factor": "0:1.0",
    "smpi/lat-factor": "0:1.0",
    "network/weight-S": "0",
    "network/crosstraffic": "0",
    "smpi/display-timing": "no",
}

# Default size up to which a message leaves before its receiver is ready, as with TCP's buffers [B].
EAGER_BYTES = 65536
_EAGER = ("smpi/async-small-thresh", "smpi/send-is-detached-thresh")

# Fields of a network's table that are not numbers: a tree of switches, factors by message size
# ([from bytes, of latency, of bandwidth]), and factors of the latency by the number of nodes that
# exchange messages at once ([nodes, factor]).
_NO_NUMBER = ("tree", "by_size", "load")


def as_open_mpi(ranks: int) -> list[str]:
    """Options for collectives by the algorithms that Open MPI would choose, as SimGrid has them."""
    # Its split binary tree for large broadcasts divides by zero on two ranks (SimGrid 3.32), where
    # all trees are one message.
    bcast = ["--cfg=smpi/bcast:binomial_tree"] if ranks == 2 else []
    return ["--cfg=smpi/coll-selector:ompi", *bcast]


def model(
    description: Description, interconnect: str, vary: str = "none"
) -> tuple[dict[str, float], dict[str, Any]]:
    """The node's rates and the network as a testbed describes them, with the changes in `vary`.

    `vary` is `none` or `NAME=VALUE`, or several separated by commas. NAME is a rate, or
    `bandwidth`, `latency` or `eager_bytes` of the network. VALUE is `low` or `high` for the end of
    its described range, or a number in its unit. Raises FalloffError if one is neither, or is named
    twice.
    """
    rates, network = dict(description["rates"]), dict(description["network"][interconnect])
    network.setdefault("eager_bytes", {"value": EAGER_BYTES})
    names = [name for name in (*rates, *network) if name not in _NO_NUMBER]
    changes = [change.partition("=")[::2] for change in vary.split(",")] if vary != "none" else []
    if len(dict(changes)) < len(changes):
        raise FalloffError(f"vary {vary!r} names something twice")
    for name, value in changes:
        if name not in names:
            raise FalloffError(f"vary {vary!r}: {name!r} is none of {', '.join(names)}")
        table = rates if name in rates else network
        try:
            table[name] = {
                "value": table[name][value] if value in ("low", "high") else float(value)
            }
        except (KeyError, ValueError):
            raise FalloffError(
                f"vary {vary!r} has neither a number nor an end of a described range"
            ) from None
    for table in (rates, network):
        for name in set(table).difference(_NO_NUMBER):
            table[name] = table[name]["value"]
    return rates, network


def of_rank(rates: Mapping[str, float], ranks: int) -> dict[str, float]:
    """The rates of each of so many ranks that share a node."""
    shared = {name: rates[name] / ranks for name in ("dgemm_flop_s", "node_byte_s")}
    return {**rates, **shared}


def platform(nodes: int, network: Description, inside: Optional[float] = None) -> str:
    """The platform file of `nodes` nodes on one switch, each with its own full-duplex link, or on a
    tree.

    `network` has `bandwidth` [B/s of payload] and `latency` [s from one node to another], half of
    which is on each end's link. Or it has a `tree`, the table of `two_level.from_table`. The tree's
    rates hold between the switches, and its node count is that of a whole cluster, not of this job.
    With `load` the latency depends on the number of nodes that communicate at once. `inside` is
    the rate [B/s] at which several ranks of a node exchange messages, if there are such. Raises
    FalloffError as `two_level.from_table` does.
    """
    loop = "" if inside is None else _INSIDE.format(min(inside, FASTEST))
    bandwidth = network["bandwidth"]
    latency = network["latency"] * _load(nodes, network.get("load", []))
    if "tree" in network:
        job = {"nodes": nodes, "node_bandwidth": bandwidth, "latency": latency}
        return _FRAME.format("\n".join(_tree(from_table({**network["tree"], **job}), loop)))
    return _FRAME.format(_switch("cluster", 1, nodes, bandwidth, latency, inside=loop))


def _load(nodes: int, factors: Sequence[Sequence[float]]) -> float:
    """The latency's factor on `nodes` nodes: linear between the given node counts, beyond them that
    of the nearest."""
    fewer = [row for row in factors if row[0] <= nodes] or list(factors[:1])
    more = [row for row in factors if row[0] >= nodes] or list(factors[-1:])
    if not factors:
        return 1.0
    (low, of_low), (high, of_high) = fewer[-1], more[0]
    return of_low if low == high else of_low + (of_high - of_low) * (nodes - low) / (high - low)


def _tree(network: TwoLevel, inside: str) -> list[str]:
    """Two levels of switches: stars of nodes on the ports of a line card, line cards on the core's
    fabric.

    An edge switch's uplinks are one link of their total rate, because traffic spreads over them
    evenly. All traffic between edge switches shares the core's forwarding rate. Only traffic
    between line cards uses their ways to the fabric.
    """
    # A link that never blocks would still join all of its flows into one system of equations, and
    # slow the simulation.
    if math.isinf(network.card_bandwidth):
        network = replace(network, edges_per_card=network.edges)
    forwards = math.isfinite(network.core_bandwidth)
    # Every byte uses it once: on the way up, wherever it goes from there.
    forwarding = '<link_ctn id="forwarding"/>' if forwards else ""
    uplinks = network.uplinks * network.uplink_bandwidth
    slots, slot_routes = [], []
    lines = ['<zone id="core" routing="Floyd">']
    for card in range(1, network.cards + 1):
        first = (card - 1) * network.edges_per_card + 1
        links, routes = [], []
        if forwards and card == 1:
            links.append(
                _LINK.format(name="forwarding", bandwidth=network.core_bandwidth, policy="SHARED")
            )
        lines.append(f'<zone id="card{card}" routing="Floyd">')
        for edge in range(first, min(first + network.edges_per_card, network.edges + 1)):
            below = (edge - 1) * network.nodes_per_edge
            nodes = below + 1, min(below + network.nodes_per_edge, network.nodes)
            joined = network.node_bandwidth, network.latency, f"switch{edge}"
            lines.append(_switch(f"edge{edge}", *nodes, *joined, inside=inside))
            links.append(_full_duplex(f"uplink{edge}", uplinks))
            switch, ports = (f"edge{edge}", f"switch{edge}"), (f"sockets{card}", f"ports{card}")
            routes += _routes(switch, ports, f"uplink{edge}", forwarding)
        lines += [
            _ROUTER.format(zone=f"sockets{card}", router=f"ports{card}"),
            *links,
            *routes,
            "</zone>",
        ]
        slots.append(_full_duplex(f"slot{card}", network.card_bandwidth))
        slot_routes += _routes((f"card{card}", f"ports{card}"), ("fabric", "hub"), f"slot{card}")
    if network.cards > 1:
        lines += [_ROUTER.format(zone="fabric", router="hub"), *slots, *slot_routes]
    return [*lines, "</zone>"]


def _switch(
    name: str,
    first: int,
    last: int,
    bandwidth: float,
    latency: float,
    router: str = "",
    inside: str = "",
) -> str:
    """A switch with these nodes. If there are several switches, each has a router that joins it to
    the others."""
    return _CLUSTER.format(
        id=name,
        router=f' router_id="{router}"' if router else "",
        first=first,
        last=last,
        bandwidth=bandwidth,
        half_latency=latency / 2,
        inside=inside,
    )


def _full_duplex(name: str, bandwidth: float) -> str:
    return _LINK.format(name=name, bandwidth=bandwidth, policy="SPLITDUPLEX")


def _routes(
    lower: tuple[str, str], upper: tuple[str, str], link: str, on_the_way_up: str = ""
) -> list[str]:
    """Routes up and down between two zones, each a name with its router's, over a full-duplex
    link."""
    up, down = (f'<link_ctn id="{link}" direction="{way}"/>' for way in ("UP", "DOWN"))
    return [_ROUTE.format(*lower, *upper, up + on_the_way_up), _ROUTE.format(*upper, *lower, down)]


def hosts(order: Iterable[int]) -> str:
    """The host file: a line for each rank with its node, counted from 1."""
    return "".join(f"node{node}\n" for node in order)


def smpirun(
    ranks: int,
    program: Sequence[str],
    clock: str = "",
    by_size: Sequence[Sequence[float]] = (),
    eager_bytes: float = EAGER_BYTES,
) -> list[str]:
    """The command line for the ranks of `hosts`, in a folder with `platform.xml` and `hosts`.

    `clock` is the path of noclock.so, without blanks: with it SMPI does not ask the kernel for CPU
    times that it then ignores. `by_size` has the factors of latency and bandwidth from certain
    message sizes on, starting with 0 bytes. Messages longer than `eager_bytes` wait for their
    receivers.
    """
    options = {**_OPTIONS, **dict.fromkeys(_EAGER, f"{eager_bytes:.0f}")}
    for column, name in ((1, "smpi/lat-factor"), (2, "smpi/bw-factor")) if by_size else ():
        options[name] = ";".join(f"{row[0]:.0f}:{row[column]}" for row in by_size)
    wrapper = ["-wrapper", f"env LD_PRELOAD={clock}"] if clock else []
    return [
        *("smpirun", *wrapper, "-np", str(ranks), "-hostfile", "hosts"),
        *("-platform", "platform.xml"),
        *(f"--cfg={name}:{value}" for name, value in options.items()),
        *("--log=root.thres:warning", *program),
    ]
