"""A graph made real: a namespace for each place, veth pairs, delay lines, shared wires, bonds and bridges.

It is built once, configured for every trial, and read back: what is asked for has the names under which it is found.
"""

import os
import secrets
import shutil
import string
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from runners.record import FalloffError
from runners.testbeds import bonds, graph, host, netns, programs, readback
from runners.testbeds.graph import ONE_LINK, End, Graph, Route, Way, address, name
from runners.testbeds.shaper import Shaper

MPTCP = Path("/proc/sys/net/mptcp/enabled")

# Programs that carry frames run in a namespace of their own, so that they are found when their owner is dead.
CARRIERS = "carriers"

# The largest that TCP hands down, and that segments are merged to on receipt, where nothing else is asked for.
_LARGEST_PACKET = 65536
# Segments are never merged, while the interface still has a NAPI, which veth has only with GRO and whose work can be a
# thread's.
_NEVER_MERGED = 1
# TCP hands down super-packets whatever a device's offloads are, unless the device takes no more than this.
_SEGMENTS = {True: 65535, False: 1}

# Its own talk would be counted with the frames of a trial.
_WITHOUT_IPV6 = Path("/proc/sys/net/ipv6/conf/all/disable_ipv6")
_ALL_SUBNETS = "10.81.0.0/16"

# Ends of links are numbered from 0 on; nodes' bonds, and those of the ports opposite, from these numbers.
_BONDS, _PORT_BONDS = 0xFF00, 0xFE00

Start = Callable[[str, List[str]], programs.Started]
Bytes = Dict[End, Tuple[float, float]]


@dataclass
class Network:
    """A graph while it is up: below `state`, whose name tags all interfaces, is a folder for each place.

    `lines` are its delay lines, `others` the other programs that carry frames; `threads` the kernel's that receive, by
    place, none where nobody asked for them or the kernel has none; `shapers` what was last asked of each end.
    """

    state: Path
    table: Mapping[str, Any]
    graph: Graph
    lines: Tuple[programs.Started, ...] = ()
    others: Tuple[programs.Started, ...] = ()
    threaded: bool = False
    threads: Mapping[str, Sequence[int]] = field(default_factory=dict)
    shapers: Dict[End, Shaper] = field(default_factory=dict)

    @property
    def carriers(self) -> Tuple[programs.Started, ...]:
        """The programs that carry frames."""
        return (*self.lines, *self.others)

    def space(self, place: str) -> Path:
        """The folder of a place, with its namespaces."""
        return self.state / place

    def device(self, end: End) -> str:
        """The interface of an end; no other on the machine has its name, by which the kernel's threads are known."""
        return self._named(2 * end.link + end.side)

    def bond(self, node: int) -> str:
        """The interface that joins a node's links."""
        return self._named(_BONDS + node)

    def port_bond(self, node: int) -> str:
        """The interface that joins the ports opposite a node's links."""
        return self._named(_PORT_BONDS + node)

    def _named(self, number: int) -> str:
        # In 10 letters: the kernel cuts the names of its threads off behind that.
        return f"{self.state.name}{number:04x}"

    def devices(self, place: str) -> List[str]:
        """The interfaces of a place that end a link, in the order of the links."""
        return [self.device(end) for end in self.graph.ends(place)]

    def outlet(self, end: End) -> str:
        """The interface that a route out of an end leads by: the end's own, or the bond that it is part of."""
        place = self.graph.place(end)
        return self.bond(int(place[1:])) if self._is_bonded(place) else self.device(end)

    def _is_bonded(self, place: str) -> bool:
        return bool(self.graph.bonded) and self.graph.is_node(place)

    @property
    def has_threads(self) -> bool:
        """Whether what comes in by any interface is received by a thread of its place's."""
        return bool(self.threads) and all(self.threads.values())

    def configure(
        self,
        tcp: Mapping[str, Any],
        offloads: Mapping[str, bool],
        mtu: int,
        way: Way = ONE_LINK,
        seed: int = 0,
        burst_s: Optional[float] = None,
    ) -> Dict[str, Any]:
        """Give every end its rate, MTU and offloads, every node TCP settings, addresses and routes; say what was asked.

        `mtu` [B] is that of the nodes' interfaces; `tcp` has congestion_control, no_metrics_save,
        slow_start_after_idle, rmem, wmem and perhaps quickack; `offloads` has tso, gso and gro. `seed` decides which
        addresses or ports are hashed to which link, where the kernel lets it be chosen (0: the kernel's own). What is
        returned has the names under which `effective` finds it. Raises FalloffError when MPTCP is asked for and not
        there, or a tool refuses.
        """
        if way.is_mptcp and not MPTCP.exists():
            raise FalloffError("the kernel has no MPTCP (CONFIG_MPTCP): leave out aggregation mptcp")
        large = offloads["tso"] or offloads["gso"]
        self.shapers = {
            end: Shaper(self._rate(end), min(mtu, self.graph.links[end.link].mtu or mtu), large, burst_s)
            for end in self.graph.all_ends()
        }
        mtus = {end: self._mtu(end, mtu) for end in self.shapers}
        hashing = {"fib_multipath_hash_policy": way.hash_policy, "fib_multipath_hash_seed": seed}
        sysctls = {**readback.tcp_sysctls(tcp), **{key: str(hashing[key]) for key in hashing if readback.is_known(key)}}
        invocations, routes = [], {}
        for place in self.graph.places:
            if self.graph.is_node(place):
                readback.write(self.space(place), sysctls)
                routes[place] = self._routes(place, way)
            invocations += self._invocations(place, mtus, offloads, tcp, way)
        netns.run(invocations)
        alike = {**offloads, **({"largest_packet_bytes": self._largest_packet} if self._limits_packets else {})}
        asked = {end: {**self.shapers[end].settings(), "mtu": mtus[end], **alike} for end in self.shapers}
        nodes = {
            place: {**readback.asked_of_tcp(tcp), **_asked_of(hashing), "routes": readback.routes_text(found)}
            for place, found in routes.items()
        }
        return self._summary(asked, nodes)

    def effective(self) -> Dict[str, Any]:
        """The settings read back: a value where all ends agree, else which have which."""
        places = self.graph.places
        found = readback.interfaces([(self.space(place), self.devices(place)) for place in places])
        ends = {}
        for end, shaper in self.shapers.items():
            values = dict(found[self.graph.place(end), self.device(end)])
            if not self._limits_packets:
                del values["largest_packet_bytes"]
            shaped = shaper.effective(values.pop("rate_bit_s"), values.pop("burst_bytes"))
            ends[end] = {**shaped, **values}
        nodes = [place for place in places if self.graph.is_node(place)]
        tcp = readback.tcp([self.space(node) for node in nodes])
        numbers = {node: {self.outlet(end): i for i, end in enumerate(self.graph.ends(node), 1)} for node in nodes}
        for node in nodes:
            known = numbers[node]
            hops = {to: [known.get(device, device) for device in by] for to, by in tcp[node].pop("routes").items()}
            tcp[node]["routes"] = readback.routes_text(hops)
        return self._summary(ends, tcp)

    def _summary(
        self, ends: Mapping[End, Mapping[str, Any]], nodes: Mapping[str, Mapping[str, Any]]
    ) -> Dict[str, Any]:
        """Of a port only what is the link's own counts with a node's settings; MTUs of both are kept apart."""
        holders: Dict[str, Dict[str, Any]] = {}
        for end, values in ends.items():
            place = self.graph.place(end)
            if self.graph.is_node(place):
                holders[self.graph.label(end)] = {**values, **nodes[place]}
            else:
                of_link = {key: value for key, value in values.items() if key != "mtu"}
                holders[self.graph.label(end)] = {**of_link, "port_mtu": values["mtu"]}
        keys = {key: None for values in holders.values() for key in values}
        return {key: readback.agreed(holders, key) for key in keys}

    @property
    def _limits_packets(self) -> bool:
        return "largest_packet_bytes" in self.table

    @property
    def _largest_packet(self) -> int:
        """The most [B] of TCP's data that passes a device as one packet, to be cut into frames where it leaves."""
        return self.table.get("largest_packet_bytes", _LARGEST_PACKET)

    def _rate(self, end: End) -> Optional[float]:
        return self.graph.links[end.link].rates[end.side]

    def _mtu(self, end: End, mtu: int) -> int:
        """The MTU of an end's interface, `mtu` being that of the nodes: a port takes in no frame beyond its own, and
        nobody is told."""
        own = {**self.graph.switches, **self.graph.routers}.get(self.graph.place(end), mtu)
        return min(own, self.graph.links[end.link].mtu or own)

    def _invocations(
        self, place: str, mtus: Mapping[End, int], offloads: Mapping[str, bool], tcp: Mapping[str, Any], way: Way
    ) -> List[netns.Invocation]:
        space, ends = self.space(place), self.graph.ends(place)
        interfaces = [(self.device(end), self.shapers[end].qdisc, mtus[end]) for end in ends]
        if self._is_bonded(place):
            interfaces.append((self.outlet(ends[0]), "noqueue", mtus[ends[0]]))
        large = offloads["tso"] or offloads["gso"]
        wanted = {**offloads, "gro": offloads["gro"] or self.threaded}
        features = [word for key in ("tso", "gso", "gro") for word in (key, "on" if wanted[key] else "off")]
        lines, shapers, invocations = [], [], []
        for interface, qdisc, mtu in interfaces:
            merged = self._largest_packet if offloads["gro"] else _NEVER_MERGED
            sizes = f"gso_max_size {self._largest_packet} gso_max_segs {_SEGMENTS[large]} gro_max_size {merged}"
            lines.append(f"link set {interface} mtu {mtu} {sizes}")
            shapers.append(f"qdisc replace dev {interface} root {qdisc}")
            invocations.append(netns.Invocation(space, ["ethtool", "-K", interface, *features]))
        if place not in self.graph.switches:
            lines += self._reach(place, tcp, way)
        return [*invocations, netns.batch("ip", space, lines), netns.batch("tc", space, shapers)]

    def _reach(self, place: str, tcp: Mapping[str, Any], way: Way) -> List[str]:
        """The lines that give a node or router its addresses, and a route to every node."""
        ends, own_way = self.graph.ends(place), way if self.graph.is_node(place) else ONE_LINK
        outlets = list(dict.fromkeys(map(self.outlet, ends)))
        lines = [f"address flush dev {outlet}" for outlet in outlets] + [f"route flush root {_ALL_SUBNETS}"]
        # By whichever link packets leave they have the address of the subnet: otherwise newer kernels (6.18) prefer,
        # to what the hash says, the interface that has the packet's source address.
        for number, rails in enumerate(own_way.routes, start=1):
            own = self._address(place, number)
            by = [self.outlet(ends[rail - 1]) for rail in rails] or outlets[:1]
            lines += [f"address add {own}/24 dev {outlet} noprefixroute" for outlet in dict.fromkeys(by)]
        # Congestion control by route: outside the first namespace the kernel lets tcp_congestion_control be set only to
        # what the whole machine's tcp_allowed_congestion_control names.
        metrics = f"congctl {tcp['congestion_control']}" + (" quickack 1" if tcp.get("quickack") else "")
        for number, rails in enumerate(own_way.routes, start=1):
            own = self._address(place, number)
            for node, hops in self._hops(place, rails).items():
                lines.append(f"route add {address(node, number)} src {own} {metrics} {self._nexthops(hops)}")
        if own_way.is_mptcp:
            # A node tells every peer its further addresses; whoever connected then adds a subflow to each.
            further = range(2, len(own_way.routes) + 1)
            limits = f"subflow {len(further)} add_addr_accepted {len(further)}"
            lines += ["mptcp endpoint flush", f"mptcp limits set {limits}"]
            for number in further:
                outlet = self.outlet(ends[own_way.routes[number - 1][0] - 1])
                lines.append(f"mptcp endpoint add {self._address(place, number)} dev {outlet} signal")
        return lines

    def _address(self, place: str, number: int) -> str:
        if self.graph.is_node(place):
            return address(int(place[1:]), number)
        return graph.address_of(self.graph, place)

    def _hops(self, place: str, rails: Sequence[int]) -> Dict[int, List[Route]]:
        """By node, the ways out of a place that lead there: the shortest, or that of each of these links."""
        if not rails:
            return {route.node: [route] for route in self.graph.routes(place)}
        ends, found = self.graph.ends(place), {}
        for rail in rails:
            for route in self.graph.routes(place, ends[rail - 1]):
                found.setdefault(route.node, []).append(route)
        return found

    def _nexthops(self, hops: Sequence[Route]) -> str:
        words = []
        for hop in hops:
            via = f"via {graph.address_of(self.graph, hop.via)} " if hop.via else ""
            words.append(f"{via}dev {self.outlet(hop.out)}" + (" onlink" if via else ""))
        return words[0] if len(words) == 1 else "scope link " + " ".join(f"nexthop {word}" for word in words)

    def _routes(self, place: str, way: Way) -> Dict[str, List[int]]:
        """By address, the links (from 1) over which a node is to reach it."""
        numbers: Dict[str, int] = {}
        for number, end in enumerate(self.graph.ends(place), 1):
            numbers[self.outlet(end)] = number
        return {
            address(node, number): [numbers[self.outlet(hop.out)] for hop in hops]
            for number, rails in enumerate(way.routes, start=1)
            for node, hops in self._hops(place, rails).items()
        }

    def byte_counts(self) -> Bytes:
        """Bytes received and sent so far by each end's interface, Ethernet headers included."""
        counts = {}
        for place in self.graph.places:
            with netns.entered(self.space(place)):
                table = Path("/proc/thread-self/net/dev").read_text()
            rows = {row.partition(":")[0].strip(): row.partition(":")[2].split() for row in table.splitlines()[2:]}
            for end in self.graph.ends(place):
                row = rows[self.device(end)]
                counts[end] = float(row[0]), float(row[8])
        return counts

    def bytes_between(self, before: Bytes, after: Bytes) -> Dict[str, List[float]]:
        """What crossed the interfaces in between [B]: bytes_sent and bytes_received by each node, bytes_sent_rail_1 and
        so on where all nodes have several links, and bytes_through each hub, then switch, then router."""
        received, sent = ({end: after[end][i] - before[end][i] for end in after} for i in (0, 1))
        ends = [self.graph.ends(name(node)) for node in self.graph.nodes]
        passed = [self.graph.stations(hub) for hub in self.graph.hubs]
        passed += [self.graph.ends(place) for place in (*self.graph.switches, *self.graph.routers)]
        counters = {
            "bytes_sent": [sum(sent[end] for end in own) for own in ends],
            "bytes_received": [sum(received[end] for end in own) for own in ends],
            "bytes_through": [sum(sent[end] for end in own) for own in passed],
        }
        if self.graph.rails > 1:
            for rail in range(self.graph.rails):
                counters[f"bytes_sent_rail_{rail + 1}"] = [sent[own[rail]] for own in ends]
        return counters

    def receiving_time(self, node: int) -> float:
        """CPU time [s] so far of the kernel's threads that receive for a node."""
        return sum(map(host.thread_time, self.threads.get(name(node), ())))

    def carrying_time(self) -> float:
        """CPU time [s] so far of all that lies between the nodes: programs, and threads of switches and routers."""
        between = [thread for place in self.threads if not self.graph.is_node(place) for thread in self.threads[place]]
        carriers = [carrier.process.pid for carrier in self.carriers if carrier.poll() is None]
        return sum(map(host.thread_time, (*between, *carriers)))

    def drops(self) -> List[int]:
        """End the delay lines; how many frames each dropped, both ways together."""
        return [sum(map(int, programs.end(line).stdout.split()[4:])) for line in self.lines]

    def demolish(self) -> None:
        """Remove all of it, processes in its namespaces included."""
        for carrier in self.carriers:
            programs.end(carrier)
        demolish(self.state)


def _asked_of(hashing: Mapping[str, int]) -> Dict[str, int]:
    return {key: value for key, value in hashing.items() if readback.is_known(key)}


def demolish(state: Path) -> None:
    """Remove all that was made below a folder, of a dead owner too: processes, namespaces and files."""
    netns.release(state)
    shutil.rmtree(state)


def build(folder: Path, table: Mapping[str, Any], tool: Callable[[str], str], threaded: bool = False) -> Network:
    """Make the network of a table in a new folder below `folder`.

    `tool` gives the path of a program by its name where one is needed. With `threaded` what comes in is received by
    threads of the kernel's own, whose CPU time is then a place's. Raises FalloffError as it and `graph.graph` do, when
    a program that carries frames ends at once, or a bond is wanted that cannot be had.
    """
    made = graph.graph(table)
    # A letter first: Open MPI takes the name of an interface that begins with a digit for an address.
    state = folder / (secrets.choice(string.ascii_lowercase) + secrets.token_hex(3)[1:])
    state.mkdir()
    try:
        return _build(Network(state, table, made, threaded=threaded), tool)
    except BaseException:
        demolish(state)
        raise


def _build(net: Network, tool: Callable[[str], str]) -> Network:
    netns.create(*map(net.space, net.graph.places), net.space(CARRIERS))

    def start(program: str, arguments: List[str]) -> programs.Started:
        carriers = net.space(CARRIERS)
        return programs.start(program, [tool(program), *arguments], carriers, {}, carriers)

    with host.precedence():
        _wire(net, start)
        for place in net.graph.places:
            _prepare(net, place)
        _plug(net)
        if net.graph.bonded:
            net.others += bonds.join(net, start)
    if net.threaded:
        net.threads = _threads(net)
    return net


def _wire(net: Network, start: Start) -> None:
    """Veth pairs, delay lines and shared wires: every interface of the graph."""
    cables: Dict[str, List[str]] = {}
    for number, link in enumerate(net.graph.links):
        if link.places[1] in net.graph.hubs:
            continue
        spaces = [net.space(place) for place in link.places]
        devices = [net.device(End(number, side)) for side in (0, 1)]
        if link.delay_s:
            words = [word for space, tap in zip(spaces, devices) for word in (f"{space}/net", tap)]
            line = start("delay_line", [*words, repr(link.delay_s)])
            net.lines += (programs.awaited(line, spaces[1], devices[1]),)
        else:
            pair = f"link add {devices[0]} type veth peer name {devices[1]} netns {spaces[1]}/net"
            cables.setdefault(link.places[0], []).append(pair)
    netns.run([netns.batch("ip", net.space(place), lines) for place, lines in cables.items()])
    for hub, rate in net.graph.hubs.items():
        stations = [(net.space(net.graph.place(end)), net.device(end)) for end in net.graph.stations(hub)]
        words = [word for space, tap in stations for word in (f"{space}/net", tap)]
        net.others += (programs.awaited(start("shared_wire", [repr(rate), *words]), *stations[-1]),)


def _prepare(net: Network, place: str) -> None:
    with netns.entered(net.space(place)):
        if _WITHOUT_IPV6.exists():
            _WITHOUT_IPV6.write_text("1")
        (readback.SYSCTLS / "ip_forward").write_text(str(int(place in net.graph.routers)))


def _plug(net: Network) -> None:
    """Bring every interface up, those of a switch as ports of its bridge."""
    invocations = []
    for place in net.graph.places:
        is_switch = place in net.graph.switches
        lines = ["link set lo up"] + (["link add bridge type bridge", "link set bridge up"] if is_switch else [])
        master = "master bridge" if is_switch else ""
        lines += [f"link set {device} {master} up" for device in net.devices(place)]
        invocations.append(netns.batch("ip", net.space(place), lines))
    netns.run(invocations)


def _threads(net: Network) -> Dict[str, List[int]]:
    """Have a thread receive what comes in by each interface; their ids by place, before all other work.

    What stays in nobody's name is the shaper's: its timer sends in whatever program it interrupts. Softirq time
    beside a trial's CPU time, one run each on a busy machine, an upper bound: 16 % at 1 Gbit/s and MTU 9000, 26 %
    at 1500, below 2 % where nothing is shaped. Where the sender makes super-packets, veth uses no thread.
    """
    interfaces = {
        place: net.devices(place) + ([net.outlet(net.graph.ends(place)[0])] if net._is_bonded(place) else [])
        for place in net.graph.places
    }
    gro = [(net.space(place), device) for place, own in interfaces.items() for device in own]
    netns.run([netns.Invocation(space, ["ethtool", "-K", device, "gro", "on"]) for space, device in gro])
    for place, own in interfaces.items():
        # sysfs shows the interfaces of the namespace that mounts it.
        shown = net.space(place) / "sys"
        shown.mkdir()
        netns.run([netns.Invocation(net.space(place), ["mount", "-t", "sysfs", "none", str(shown)])])
        for device in own:
            switch = shown / "class/net" / device / "threaded"
            if switch.exists():
                switch.write_text("1")
        subprocess.run(["umount", str(shown)], check=True, capture_output=True)
    running = host.kernel_threads(f"napi/{net.state.name}")
    found = {}
    for place, own in interfaces.items():
        found[place] = [thread for device in own for thread in running.get(f"napi/{device}", [])]
        for thread in found[place]:
            os.setpriority(os.PRIO_PROCESS, thread, host.HIGHEST_PRIORITY)
            if net.graph.is_node(place):
                os.sched_setaffinity(thread, {host.processor(int(place[1:]))})
    return found
