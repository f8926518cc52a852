"""A graph made real: a namespace for each place, veth pairs and delay lines for links, bridges, routes."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Tuple

from runners.record import FalloffError
from runners.testbeds import links, netns, programs
from runners.testbeds.topology import End, Graph, name

# The largest that segments are merged to on receipt. 1: never, while the interface still has a NAPI, which veth has
# only with GRO and whose work can be a thread's.
_MERGED = {True: 65536, False: 1}
# Its own talk would be counted with the frames of a trial.
_WITHOUT_IPV6 = Path("/proc/sys/net/ipv6/conf/all/disable_ipv6")

# TCP hands down super-packets whatever a device's offloads are, unless the device takes no more than this.
_SEGMENTS = {True: 65535, False: 1}


@dataclass(frozen=True)
class Wires:
    """A graph while it is up: below `state` a folder for each place, with its namespaces and a sysfs of its own."""

    state: Path
    graph: Graph
    lines: Tuple[programs.Started, ...]

    def device(self, end: End) -> str:
        """The interface of an end; no other on the machine has its name, by which the kernel's threads are known."""
        return device(self.state, end)

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
        folders = [self._sysfs(end) / "statistics" for end in self.graph.ends(name(node))]
        return float(sum(int((folder / which).read_text()) for folder in folders))

    def own_threads(self) -> Dict[End, List[int]]:
        """Have a thread of each end receive what comes in there; their ids, none where the kernel has none.

        What stays in nobody's name is the shaper's: its timer sends in whatever program it interrupts. Softirq time
        beside a trial's CPU time, one run each on a busy machine, an upper bound: 16 % at 1 Gbit/s and MTU 9000, 26 %
        at 1500, below 2 % where nothing is shaped. Where the sender makes super-packets, veth uses no thread.
        """
        switches = {end: self._sysfs(end) / "threaded" for end in self.graph.all_ends()}
        for switch in switches.values():
            if switch.exists():
                switch.write_text("1")
        running = _threads(f"napi/{self.state.name}")
        return {end: running.get(self.device(end), []) for end in switches}

    def _sysfs(self, end: End) -> Path:
        return self.space(self.graph.place(end)) / "sys/class/net" / self.device(end)


def device(state: Path, end: End) -> str:
    """The interface of an end, in 10 letters: the kernel cuts the names of its threads off behind that."""
    return f"{state.name}{2 * end.link + end.side:02x}"


def build(
    state: Path, graph: Graph, delay_line: Callable[[int, List[str]], programs.Started]
) -> Wires:
    """Make the namespaces and join them. `delay_line(link, arguments)` starts one for a link that has a delay.

    Raises FalloffError when a delay line ends at once.
    """
    for place in graph.places:
        netns.create(state / place)
    lines = []
    for number, link in enumerate(graph.links):
        ends = End(number, 0), End(number, 1)
        spaces, devices = [state / place for place in link.places], [device(state, end) for end in ends]
        if link.delay_s:
            taps = [word for space, tap in zip(spaces, devices) for word in (f"{space}/net", tap)]
            lines.append(delay_line(number, [*taps, repr(link.delay_s)]))
            _await(lines[-1], spaces[1], devices[1])
        else:
            veth = f"link add {devices[0]} type veth peer name {devices[1]} netns {spaces[1]}/net"
            netns.run([links.batch("ip", spaces[0], [veth])])
    wires = Wires(state, graph, tuple(lines))
    for place in graph.places:
        _furnish(wires, place)
    return wires


def _await(line: programs.Started, space: Path, tap: str) -> None:
    """Until the second TAP of a delay line is there."""
    def there() -> bool:
        with netns.entered(space):
            return f"{tap}:" in Path("/proc/thread-self/net/dev").read_text()

    if not programs.serves(line, there):
        said = line.complaints.read_text(encoding="utf-8", errors="replace").strip() or "it made no interface"
        raise FalloffError(f"the delay line does not start: {said}")


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
        lines, shapers = [], []
        for end in ends:
            link, interface = asked[end], wires.device(end)
            large = link.super_packets
            sizes = f"mtu {mtus[end]} gro_max_size {_MERGED[large]} gso_max_segs {_SEGMENTS[large]}"
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
    out = f"dev {wires.device(route.out)} {'onlink' if via else ''} src {source} congctl {control}"
    return f"route replace {links.address(route.node)} {via} {out}"


def _set_tcp(space: Path, settings: Mapping[str, Any]) -> None:
    with netns.entered(space):
        for key in links.TCP_SWITCHES:
            (links.SYSCTLS / key).write_text(str(int(settings[key])))
        for key in links.TCP_BUFFERS:
            (links.SYSCTLS / key).write_text(settings[key])


def _threads(prefix: str) -> Dict[str, List[int]]:
    """The kernel's threads whose name starts so, by the interface in their name (`napi/INTERFACE-NUMBER`)."""
    found: Dict[str, List[int]] = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            named = Path(f"/proc/{process}/comm").read_text().strip()
        except OSError:  # it has ended
            continue
        if named.startswith(prefix):
            found.setdefault(named.partition("/")[2][:10], []).append(int(process))
    return found
