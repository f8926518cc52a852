"""A graph made real: a namespace for each place, veth pairs, delay lines and shared wires, bonds, bridges, routes."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Iterable, List, Mapping, Tuple

from runners.testbeds import channel_bond, hub, links, napi, netns, programs, taps
from runners.testbeds.topology import End, Graph, name

# The largest that segments are merged to on receipt. 1: never, while the interface still has a NAPI, which veth has
# only with GRO and whose work can be a thread's.
_MERGED = {True: 65536, False: 1}
# Its own talk would be counted with the frames of a trial.
_WITHOUT_IPV6 = Path("/proc/sys/net/ipv6/conf/all/disable_ipv6")

# Ends of links are numbered from 0 on, nodes' bonds from here down.
_LAST_NUMBER = 255

# TCP hands down super-packets whatever a device's offloads are, unless the device takes no more than this.
_SEGMENTS = {True: 65535, False: 1}


@dataclass(frozen=True)
class Wires:
    """A graph while it is up: below `state` a folder for each place, with its namespaces and a sysfs of its own.

    `lines` are its delay lines, `others` the other programs that carry frames.
    """

    state: Path
    graph: Graph
    lines: Tuple[programs.Started, ...]
    others: Tuple[programs.Started, ...] = ()

    def device(self, end: End) -> str:
        """The interface of an end; no other on the machine has its name, by which the kernel's threads are known."""
        return device(self.state, end)

    def outlet(self, end: End) -> str:
        """The interface that a route out of an end leads by: the end's own, or the bond that it is part of."""
        place = self.graph.place(end)
        return self.bond(place) if place in self.graph.bonded_places else self.device(end)

    def bond(self, node: str) -> str:
        """The interface by which a bonded node sends over its links in turn."""
        return _device(self.state, _LAST_NUMBER - int(node[1:]))

    def space(self, place: str) -> Path:
        """The folder of a place."""
        return self.state / place

    def ends(self) -> List[Tuple[Path, List[str]]]:
        """Every namespace with its interfaces that end a link."""
        return [
            (self.space(place), [self.device(end) for end in self.graph.ends(place)]) for place in self.graph.places
        ]

    def counter(self, node: int, which: str) -> float:
        """A counter of the kernel's (`tx_bytes` ...), summed over a node's interfaces."""
        return self._counted(self.graph.ends(name(node)), which)

    def bytes_through(self) -> List[float]:
        """What was passed on so far [B] by each hub, then each switch, then each router, in the order of the path."""
        wires = map(self.graph.stations, self.graph.hubs)
        ports = map(self.graph.ends, [*self.graph.switches, *self.graph.routers])
        return [self._counted(ends, "tx_bytes") for ends in (*wires, *ports)]

    def _counted(self, ends: Iterable[End], which: str) -> float:
        return float(sum(int((self._sysfs(end) / "statistics" / which).read_text()) for end in ends))

    def own_threads(self) -> List[Tuple[str, List[int]]]:
        """Have a thread receive what comes in by an interface; the place of each, and ids, none where there is none.

        What stays in nobody's name is the shaper's: its timer sends in whatever program it interrupts. Softirq time
        beside a trial's CPU time, one run each on a busy machine, an upper bound: 16 % at 1 Gbit/s and MTU 9000, 26 %
        at 1500, below 2 % where nothing is shaped. Where the sender makes super-packets, veth uses no thread.
        """
        switches = [
            (place, interface, self.space(place) / "sys/class/net" / interface / "threaded")
            for place in self.graph.places
            for interface in self._interfaces(place)
        ]
        for _, _, switch in switches:
            if switch.exists():
                switch.write_text("1")
        running = napi.threads(self.state.name)
        return [(place, running.get(interface, [])) for place, interface, _ in switches]

    def _interfaces(self, place: str) -> List[str]:
        bonds = [self.bond(place)] if place in self.graph.bonded_places else []
        return [*map(self.device, self.graph.ends(place)), *bonds]

    def _sysfs(self, end: End) -> Path:
        return self.space(self.graph.place(end)) / "sys/class/net" / self.device(end)


def device(state: Path, end: End) -> str:
    """The interface of an end."""
    return _device(state, 2 * end.link + end.side)


def _device(state: Path, number: int) -> str:
    """The name of an interface, in 10 letters: the kernel cuts the names of its threads off behind that."""
    return f"{state.name}{number:02x}"


def build(state: Path, graph: Graph, start: Callable[[str, List[str]], programs.Started]) -> Wires:
    """Make the namespaces and join them. `start(program, arguments)` starts a program that carries frames.

    Raises FalloffError when one ends at once.
    """
    for place in graph.places:
        netns.create(state / place)
    lines = []
    for number, link in enumerate(graph.links):
        if link.places[1] in graph.hubs:
            continue
        ends = End(number, 0), End(number, 1)
        spaces, devices = [state / place for place in link.places], [device(state, end) for end in ends]
        if link.delay_s:
            words = [word for space, tap in zip(spaces, devices) for word in (f"{space}/net", tap)]
            line = start("delay_line", [*words, repr(link.delay_s)])
            lines.append(taps.awaited(line, spaces[1], devices[1]))
        else:
            veth = f"link add {devices[0]} type veth peer name {devices[1]} netns {spaces[1]}/net"
            netns.run([links.batch("ip", spaces[0], [veth])])
    others = []
    for shared, rate in graph.hubs.items():
        stations = [(state / graph.place(end), device(state, end)) for end in graph.stations(shared)]
        others.append(hub.lay(rate, stations, start))
    wires = Wires(state, graph, tuple(lines), tuple(others))
    for place in graph.places:
        _furnish(wires, place)
    bonds = [
        channel_bond.join(wires.space(place), wires.bond(place), list(map(wires.device, graph.ends(place))), start)
        for place in graph.bonded_places
    ]
    return replace(wires, others=(*others, *filter(None, bonds)))


def _furnish(wires: Wires, place: str) -> None:
    """What a place has for good: sysfs, a bridge or forwarding, its own address, its interfaces up."""
    graph, space = wires.graph, wires.space(place)
    with netns.entered(space):
        if _WITHOUT_IPV6.exists():
            _WITHOUT_IPV6.write_text("1")
    lines = ["link set lo up"]
    if place in graph.switches:
        lines += ["link add bridge type bridge", "link set bridge up"]
    else:
        lines.append(f"address add {address(graph, place)}/32 dev lo")
        with netns.entered(space):
            (links.SYSCTLS / "ip_forward").write_text(str(int(place in graph.routers)))
    for end in graph.ends(place):
        master = "master bridge" if place in graph.switches else ""
        lines.append(f"link set {wires.device(end)} {master} up")
    (space / "sys").mkdir()
    mount = ["mount", "-t", "sysfs", "none", f"{space}/sys"]
    gro = [netns.Invocation(space, ["ethtool", "-K", wires.device(end), "gro", "on"]) for end in graph.ends(place)]
    netns.run([*gro, netns.Invocation(space, mount)])
    netns.run([links.batch("ip", space, lines)])


def configure(wires: Wires, asked: Mapping[End, links.Link], mtus: Mapping[End, int]) -> None:
    """Give every end an MTU and the rate and offloads of its link, and every node the TCP settings."""
    invocations = []
    for place in wires.graph.places:
        space, ends = wires.space(place), wires.graph.ends(place)
        interfaces = [(wires.device(end), asked[end], mtus[end]) for end in ends]
        if place in wires.graph.bonded_places:
            interfaces.append((wires.bond(place), replace(asked[ends[0]], rate_bit_s=None), mtus[ends[0]]))
        lines, shapers = [], []
        for interface, link, mtu in interfaces:
            large = link.super_packets
            sizes = f"mtu {mtu} gro_max_size {_MERGED[large]} gso_max_segs {_SEGMENTS[large]}"
            lines.append(f"link set {interface} {sizes}")
            shapers.append(f"qdisc replace dev {interface} root {link.qdisc}")
            features = [word for key in ("tso", "gso") for word in (key, "on" if link.offloads[key] else "off")]
            invocations.append(netns.Invocation(space, ["ethtool", "-K", interface, *features]))
        if place not in wires.graph.switches:
            control = asked[ends[0]].tcp["congestion_control"]
            lines += [_route(wires, place, route, control) for route in wires.graph.routes(place)]
        if wires.graph.is_node(place):
            _set_tcp(space, asked[ends[0]].settings())
        invocations += [links.batch("ip", space, lines), links.batch("tc", space, shapers)]
    netns.run(invocations)


def address(graph: Graph, place: str) -> str:
    """The one address of a node or a router."""
    if graph.is_node(place):
        return links.address(int(place[1:]))
    return links.SUBNET.replace("0/24", str(254 - list(graph.routers).index(place)))


def _route(wires: Wires, place: str, route: Any, control: str) -> str:
    via = f"via {address(wires.graph, route.via)}" if route.via else ""
    source = address(wires.graph, place)
    out = f"dev {wires.outlet(route.out)} {'onlink' if via else ''} src {source} congctl {control}"
    return f"route replace {links.address(route.node)} {via} {out}"


def _set_tcp(space: Path, settings: Mapping[str, Any]) -> None:
    with netns.entered(space):
        for key in links.TCP_SWITCHES:
            (links.SYSCTLS / key).write_text(str(int(settings[key])))
        for key in links.TCP_BUFFERS:
            (links.SYSCTLS / key).write_text(settings[key])
