"""SimGrid's SMPI: the numbers of a simulation, the modelled platform, and the command line for an
MPI program on it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Optional

from runners.records.record import Description, FalloffError
from runners.two_level import TwoLevel, from_table

FASTEST = 1e12  # bytes/s where copying inside a node is free

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

# Asking whether something has arrived costs nothing, either. Nothing that is simulated does so but
# rendezvous.h.
FREE_TESTS = ["--cfg=smpi/test:0"]

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
) -> tuple[dict[str, float], dict]:
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
    # Messages between ranks of a node do not use its link.
    loop = f' loopback_bw="{min(inside, FASTEST):.12g}Bps" loopback_lat="0s"' if inside else ""
    bandwidth = network["bandwidth"]
    latency = network["latency"] * _load(nodes, network.get("load", []))
    zones = [_switch("cluster", 1, nodes, bandwidth, latency, loop)]
    if "tree" in network:
        job = {"nodes": nodes, "node_bandwidth": bandwidth, "latency": latency}
        zones = _tree(from_table({**network["tree"], **job}), loop)
    return "\n".join(
        [
            "<?xml version='1.0'?>",
            '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
            '<platform version="4.1">',
            *zones,
            "</platform>\n",
        ]
    )


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
            links.append(_link("forwarding", network.core_bandwidth, "SHARED"))
        lines.append(f'<zone id="card{card}" routing="Floyd">')
        for edge in range(first, min(first + network.edges_per_card, network.edges + 1)):
            below = (edge - 1) * network.nodes_per_edge
            nodes = below + 1, min(below + network.nodes_per_edge, network.nodes)
            lines.append(
                _switch(
                    f"edge{edge}",
                    *nodes,
                    network.node_bandwidth,
                    network.latency,
                    f' router_id="switch{edge}"{inside}',
                )
            )
            links.append(_link(f"uplink{edge}", uplinks))
            switch, ports = (f"edge{edge}", f"switch{edge}"), (f"sockets{card}", f"ports{card}")
            routes += _routes(switch, ports, f"uplink{edge}", forwarding)
        lines += [_router(f"sockets{card}", f"ports{card}"), *links, *routes, "</zone>"]
        slots.append(_link(f"slot{card}", network.card_bandwidth))
        slot_routes += _routes((f"card{card}", f"ports{card}"), ("fabric", "hub"), f"slot{card}")
    if network.cards > 1:
        lines += [_router("fabric", "hub"), *slots, *slot_routes]
    return [*lines, "</zone>"]


def _switch(
    name: str, first: int, last: int, bandwidth: float, latency: float, further: str
) -> str:
    """A switch with these nodes. `further` are attributes: if there are several switches, each has
    a router that joins it to the others."""
    return (
        f'<cluster id="{name}" prefix="node" suffix="" radical="{first}-{last}" speed="1Gf"'
        f' bw="{bandwidth:.12g}Bps" lat="{latency / 2:.12g}s" sharing_policy="SPLITDUPLEX"'
        f"{further}/>"
    )


def _link(name: str, bandwidth: float, policy: str = "SPLITDUPLEX") -> str:
    rate = f'bandwidth="{bandwidth:.12g}Bps" latency="0s"'
    return f'<link id="{name}" {rate} sharing_policy="{policy}"/>'


def _router(zone: str, router: str) -> str:
    """A zone with only a router, through which all routes of its level lead."""
    return f'<zone id="{zone}" routing="None"><router id="{router}"/></zone>'


def _routes(
    lower: tuple[str, str], upper: tuple[str, str], link: str, on_the_way_up: str = ""
) -> list[str]:
    """Routes up and down between two zones, each a name with its router's, over a full-duplex
    link."""
    up, down = (f'<link_ctn id="{link}" direction="{way}"/>' for way in ("UP", "DOWN"))
    return [_route(lower, upper, up + on_the_way_up), _route(upper, lower, down)]


def _route(start: tuple[str, str], end: tuple[str, str], links: str) -> str:
    ends = f'src="{start[0]}" gw_src="{start[1]}" dst="{end[0]}" gw_dst="{end[1]}"'
    return f'<zoneRoute {ends} symmetrical="NO">{links}</zoneRoute>'


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
