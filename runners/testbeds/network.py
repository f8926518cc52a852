"""Build a graph: a namespace for each place, veth pairs, delay lines, shared wires, bonds and
bridges.

It is built once, configured for every trial, and read back. The settings asked for have the same
names as those read back.
"""

import os
import secrets
import shutil
import string
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional

from runners.records.record import Description, FalloffError, Settings
from runners.testbeds import buffered, busy, graph, host, netns, programs, settings
from runners.testbeds.graph import ONE_LINK, End, Graph, Route, Way, address, address_of, name

TUN = "/dev/net/tun"
MPTCP = Path("/proc/sys/net/mptcp/enabled")
_INTERFACES = Path("/proc/thread-self/net/dev")

# Programs that carry frames run in their own namespace, so that they can be found when their owner
# is dead.
_CARRIERS = "carriers"

# The default for the largest packet that TCP hands down, and to which received segments are merged.
_LARGEST_PACKET = 65536
# Segments are never merged, but the interface still has a NAPI, which veth has only with GRO. A
# thread can do its work.
_NEVER_MERGED = 1
# TCP hands down super-packets whatever a device's offloads, unless the device accepts no more than
# this.
_SEGMENTS = {True: 65535, False: 1}

# Its own messages would be counted with the frames of a trial.
_WITHOUT_IPV6 = Path("/proc/sys/net/ipv6/conf/all/disable_ipv6")
_ALL_SUBNETS = "10.81.0.0/16"

# Ends of links are numbered from 0 on, nodes' bonds from this number.
_BONDS = 0xFF00

# Before all ordinary programs. Otherwise whatever wakes up behind another waits for the scheduler's
# tick, 4 ms.
PRIORITY = "10"
REAL_TIME = ("chrt", "-f", PRIORITY)

Bytes = dict[End, tuple[float, float]]


def without_taps() -> str:
    """Why no TAP interface can be made here, with the remedy; empty if one can."""
    try:
        os.close(os.open(TUN, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return (
            f"{TUN}, which delay lines, hubs and bonds need, cannot be opened ({error.strerror}): "
            f"`modprobe tun` and `chmod 0666 {TUN}` as root, or start the container with "
            f"`--device {TUN}`"
        )
    return ""


@dataclass
class Network:
    """A graph that is up. `state`, whose name tags all interfaces, has a folder for each place.

    `tool` gives a program's path by name. `carriers` are the programs that carry frames, in
    `real_time` before all others; a switch with a buffer is one. `threads` are the kernel threads
    that receive, by place; there are none if not requested or not supported. `shapers` are the
    settings last asked of each end.
    """

    state: Path
    table: Description
    graph: Graph
    tool: Callable[[str], str]
    threaded: bool = False
    real_time: bool = False
    carriers: list[programs.RunningProgram] = field(default_factory=list)
    threads: dict[str, list[int]] = field(default_factory=dict)
    shapers: dict[End, settings.Shaper] = field(default_factory=dict)

    def space(self, place: str) -> Path:
        """The folder of a place, with its namespaces."""
        return self.state / place

    def device(self, end: End) -> str:
        """The interface of an end. Its name is unique on the machine, because it identifies the
        kernel's threads."""
        return self._named(2 * end.link + end.side)

    def devices(self, place: str) -> list[str]:
        """The interfaces of a place that end a link, in the order of the links."""
        return list(map(self.device, self.graph.ends(place)))

    def outlet(self, end: End) -> str:
        """The interface for a route out of an end: the end's own, or the bond that it belongs
        to."""
        place = self.graph.place(end)
        if self.graph.bonded and self.graph.is_node(place):
            return self._named(_BONDS + int(place[1:]))
        return self.device(end)

    def _outlets(self, place: str) -> list[str]:
        return list(dict.fromkeys(map(self.outlet, self.graph.ends(place))))

    def _named(self, number: int) -> str:
        # 10 letters, because the kernel cuts the names of its threads there.
        return f"{self.state.name}{number:04x}"

    @property
    def _nodes(self) -> list[str]:
        return list(map(name, self.graph.nodes))

    def configure(
        self,
        tcp: Settings,
        offloads: Mapping[str, bool],
        mtu: int,
        way: Way = ONE_LINK,
        seed: int = 0,
        burst_s: Optional[float] = None,
    ) -> dict:
        """Give every end its rate, MTU and offloads, every node TCP settings, addresses and routes;
        return the settings asked for.

        `mtu` [B] is that of the nodes' interfaces; `tcp` has congestion_control, no_metrics_save,
        slow_start_after_idle, rmem and wmem; `offloads` has tso, gso and gro. `seed` decides which
        addresses or ports are hashed to which link, if the kernel lets it be chosen (0: the
        kernel's own). The returned settings have the names under which `effective` finds them.
        Raises FalloffError if MPTCP is asked for but missing, or a tool fails.
        """
        if way.is_mptcp and not MPTCP.exists():
            raise FalloffError("the kernel has no MPTCP (CONFIG_MPTCP): leave out that aggregation")
        large, mtus = offloads["tso"] or offloads["gso"], {}
        between = {**self.graph.switches, **self.graph.routers}
        for place in self.graph.places:
            # A port silently drops any frame above its own MTU.
            limit = between.get(place, mtu)
            for end in self.graph.ends(place):
                link = self.graph.links[end.link]
                rate, largest = link.rates[end.side], min(mtu, link.mtu or mtu)
                mtus[end] = min(limit, link.mtu or limit)
                if self.graph.peer(end) in self.graph.buffers:
                    rate = None  # the switch's program lets frames take their time
                self.shapers[end] = settings.Shaper(rate, largest, large, burst_s)
        sysctls = settings.sysctls(tcp, way.hash_policy, seed)
        for node in self._nodes:
            settings.write(self.space(node), sysctls)
        invocations = []
        for place in self.graph.places:
            reach = []
            if place not in self.graph.switches:
                by = way if self.graph.is_node(place) else ONE_LINK
                reach = self._reach(place, settings.metrics(tcp), by)
            invocations += self._invocations(place, mtus, offloads, reach)
        netns.run(invocations)
        common: Settings = offloads
        if "largest_packet_bytes" in self.table:
            common = {**offloads, "largest_packet_bytes": self._largest_packet}
        ends = {
            end: {**shaper.settings(), "mtu": mtus[end], **common}
            for end, shaper in self.shapers.items()
        }
        of_node = {**settings.of_routes(tcp), **sysctls}
        nodes = {node: {**of_node, "routes": self._routes(node, way)} for node in self._nodes}
        asked = self._summary(ends, nodes)
        for switch, buffer in self.graph.buffers.items():
            rates = list(map(self._port_rate, self.graph.stations(switch)))
            asked |= {**buffered.settings(buffer, rates), "switch": buffered.KEPT}
        return asked

    def switch_report(self) -> Optional[buffered.Report]:
        """What the switch with a buffer has counted since it was asked before; None without one."""
        return buffered.ask(self.carriers[-1], self._report) if self.graph.buffers else None

    @property
    def _report(self) -> Path:
        return self.space(_CARRIERS) / "report"

    def _port_rate(self, end: End) -> float:
        """The rate [bit/s] of the link to a switch with a buffer, both ways. Where bytes of a frame
        are free, full frames still take the time that they take on Ethernet."""
        rate = self.graph.links[end.link].rates[end.side]
        assert rate  # graph.graph refuses others
        free = self.graph.buffers[self.graph.peer(end)].free_bytes
        frame = self.table["mtu"] + settings.HEADER
        return rate * (frame - free) / (frame + settings.UNCOUNTED) if free else rate

    def effective(self) -> dict:
        """The settings read back: a value if all ends agree, else a list of which ends have
        which."""
        interfaces = settings.interfaces(list(map(self.space, self.graph.places)))
        ends = {}
        for end, shaper in self.shapers.items():
            values = interfaces[self.device(end)]
            if "largest_packet_bytes" not in self.table:
                del values["largest_packet_bytes"]
            shaped = shaper.effective(values.pop("rate_bit_s"), values.pop("burst_bytes"))
            ends[end] = {**shaped, **values}
        nodes = settings.tcp(list(map(self.space, self._nodes)))
        for node, values in nodes.items():
            numbers, routes = self._numbers(node), values["routes"]
            for to, devices in routes.items():
                routes[to] = [numbers.get(device, device) for device in devices]
            values["routes"] = settings.routes_text(routes)
        return self._summary(ends, nodes)

    def _summary(self, ends: Mapping[End, Settings], nodes: Mapping[str, Settings]) -> dict:
        """For a port only the link's own settings count with a node's; the MTUs of both are kept
        apart."""
        holders = {}
        for end, values in ends.items():
            place, holder = self.graph.place(end), dict(values)
            if self.graph.is_node(place):
                holder.update(nodes[place])
            else:
                holder["port_mtu"] = holder.pop("mtu")
            holders[self.graph.label(end)] = holder
        return settings.all_agreed(holders)

    @property
    def _largest_packet(self) -> int:
        """The most TCP data [B] that passes a device as one packet, to be cut into frames where it
        leaves."""
        return self.table.get("largest_packet_bytes", _LARGEST_PACKET)

    def _invocations(
        self,
        place: str,
        mtus: Mapping[End, int],
        offloads: Mapping[str, bool],
        reach: Sequence[str],
    ) -> list[netns.Invocation]:
        space, ends = self.space(place), self.graph.ends(place)
        interfaces = [(self.device(end), self.shapers[end].qdisc, mtus[end]) for end in ends]
        if (bond := self.outlet(ends[0])) != self.device(ends[0]):
            interfaces.append((bond, "noqueue", mtus[ends[0]]))
        segments = _SEGMENTS[offloads["tso"] or offloads["gso"]]
        merged = self._largest_packet if offloads["gro"] else _NEVER_MERGED
        sizes = f"gso_max_size {self._largest_packet} gso_max_segs {segments} gro_max_size {merged}"
        wanted = {**offloads, "gro": offloads["gro"] or self.threaded}
        features = [word for key, on in wanted.items() for word in (key, "on" if on else "off")]
        links = [f"link set {interface} mtu {mtu} {sizes}" for interface, _, mtu in interfaces]
        shapers = [
            f"qdisc replace dev {interface} root {qdisc}" for interface, qdisc, _ in interfaces
        ]
        return [
            *(
                netns.Invocation(space, ["ethtool", "-K", name, *features])
                for name, *_ in interfaces
            ),
            netns.batch("ip", space, [*links, *reach]),
            netns.batch("tc", space, shapers),
        ]

    def _reach(self, place: str, metrics: str, way: Way) -> list[str]:
        """The lines that give a node or router its addresses, and a route to every node."""
        outlets, ends = self._outlets(place), self.graph.ends(place)
        lines = [f"address flush dev {outlet}" for outlet in outlets]
        lines.append(f"route flush root {_ALL_SUBNETS}")
        if way.is_mptcp:
            # A node announces its further addresses to every peer; the connecting side then adds a
            # subflow to each.
            further = len(way.routes) - 1
            limits = f"subflow {further} add_addr_accepted {further}"
            lines += ["mptcp endpoint flush", f"mptcp limits set {limits}"]
        for number, rails in enumerate(way.routes, start=1):
            source = address_of(self.graph, place, number)
            # Packets have the subnet's address, whichever link they leave by. Otherwise newer
            # kernels (6.18) would ignore the hash and prefer the interface with the packet's source
            # address.
            by = list(dict.fromkeys(self.outlet(ends[rail - 1]) for rail in rails)) or outlets[:1]
            lines += [f"address add {source}/24 dev {outlet} noprefixroute" for outlet in by]
            # Set congestion control by route: outside the first namespace the kernel accepts for
            # tcp_congestion_control only names in the machine's tcp_allowed_congestion_control.
            for node, hops in self._hops(place, rails).items():
                to = f"{address(node, number)} src {source} {metrics} {self._nexthops(hops)}"
                lines.append(f"route add {to}")
            if way.is_mptcp and number > 1:
                (outlet,) = by
                lines.append(f"mptcp endpoint add {source} dev {outlet} signal")
        if self.graph.is_star:
            # Entries that a node had to ask for would count among the 1024 neighbours that the
            # kernel keeps for the whole machine. 36 nodes have 1260, and would be refused
            # connections.
            for node in self.graph.nodes:
                if name(node) != place:
                    hardware = _hardware_address(*self.graph.ends(name(node)))
                    known = f"{address(node)} lladdr {hardware} dev {outlets[0]} nud permanent"
                    lines.append(f"neigh replace {known}")
        return lines

    def _hops(self, place: str, rails: Sequence[int]) -> Mapping[int, list[Route]]:
        """By node, the ways out of a place that lead there: the shortest, or that over each of
        these links."""
        ends = self.graph.ends(place)
        outs: list[Optional[End]] = [ends[rail - 1] for rail in rails]
        hops = defaultdict(list)
        for out in outs or [None]:
            for route in self.graph.routes(place, out):
                hops[route.node].append(route)
        return hops

    def _nexthops(self, hops: Sequence[Route]) -> str:
        words = []
        for hop in hops:
            device = f"dev {self.outlet(hop.out)}"
            via = f"via {address_of(self.graph, hop.via)} {device} onlink" if hop.via else device
            words.append(via)
        return words[0] if len(words) == 1 else " nexthop ".join(["scope link", *words])

    def _numbers(self, place: str) -> dict[str, int]:
        """By interface, the link (from 1) that a place reaches through it; for bonded links the
        last."""
        return {
            self.outlet(end): number for number, end in enumerate(self.graph.ends(place), start=1)
        }

    def _routes(self, node: str, way: Way) -> str:
        """The links over which a node should reach each subnet, in words."""
        numbers, routes = self._numbers(node), {}
        for number, rails in enumerate(way.routes, start=1):
            for other, hops in self._hops(node, rails).items():
                routes[address(other, number)] = [numbers[self.outlet(hop.out)] for hop in hops]
        return settings.routes_text(routes)

    def byte_counts(self) -> Bytes:
        """Bytes received and sent so far by each end's interface, including Ethernet headers."""
        counts = {}
        for place in self.graph.places:
            with netns.entered(self.space(place)):
                table = _INTERFACES.read_text()
            rows = dict(line.split(":") for line in table.splitlines()[2:])
            words = {interface.strip(): row.split() for interface, row in rows.items()}
            for end in self.graph.ends(place):
                row = words[self.device(end)]
                counts[end] = float(row[0]), float(row[8])
        return counts

    def bytes_between(self, before: Bytes, after: Bytes) -> dict[str, list[float]]:
        """The bytes that crossed the interfaces in between [B]: bytes_sent and bytes_received by
        each node, bytes_sent_rail_1 and so on if all nodes have several links, and bytes_through
        each hub, then switch, then router."""
        received, sent = ({end: after[end][i] - before[end][i] for end in after} for i in (0, 1))
        ends = list(map(self.graph.ends, self._nodes))
        passed = list(map(self.graph.stations, (*self.graph.hubs, *self.graph.buffers)))
        passed += map(self.graph.ends, (*self.graph.switches, *self.graph.routers))
        counters = {
            f"bytes_{name}": [sum(map(count.__getitem__, at)) for at in places]
            for name, count, places in (
                ("sent", sent, ends),
                ("received", received, ends),
                ("through", sent, passed),
            )
        }
        if self.graph.rails > 1:
            for rail in range(self.graph.rails):
                counters[f"bytes_sent_rail_{rail + 1}"] = [sent[node[rail]] for node in ends]
        return counters

    def receiving_times(self) -> list[float]:
        """CPU time [s] so far of the kernel threads that receive for each node."""
        return [sum(map(host.thread_time, self.threads.get(node, ()))) for node in self._nodes]

    def carrying_time(self) -> float:
        """CPU time [s] so far of everything between the nodes: programs, and threads of switches
        and routers."""
        between = [place for place in self.threads if not self.graph.is_node(place)]
        return sum(map(host.thread_time, self._carrying(between)))

    def waiting_times(self) -> dict[int, float]:
        """How long each program that carries frames, and each thread that receives or passes them
        on, was kept waiting for a processor so far [s], by its id."""
        return {thread: busy.waited_s(thread) for thread in self._carrying(list(self.threads))}

    def _carrying(self, places: Sequence[str]) -> list[int]:
        """The ids of the programs that carry frames, and of the kernel's threads of these
        places."""
        alive = [carrier.process.pid for carrier in self.carriers if carrier.poll() is None]
        return alive + [thread for place in places for thread in self.threads[place]]

    def demolish(self) -> None:
        """Remove the whole network, including processes in its namespaces."""
        for carrier in self.carriers:
            programs.end(carrier)
        demolish(self.state)

    def wire(self) -> None:
        """Make all interfaces, by veth pairs, delay lines and shared wires, and bring them up."""
        cables: dict[str, list[str]] = {}
        for number, link in enumerate(self.graph.links):
            near, far = End(number, 0), End(number, 1)
            if link.delay_s:
                words = [*self._taps([near, far]), repr(link.delay_s)]
                words += [repr(float(link.carried_bit_s))] if link.carried_bit_s else []
                self._carry("delay_line", words, self._tap(far))
            elif link.places[1] not in (*self.graph.hubs, *self.graph.buffers):
                here, there = (
                    f"{self.device(end)} address {_hardware_address(end)}" for end in (near, far)
                )
                line = f"link add {here} type veth peer name {there} netns {self._tap(far)[0]}"
                cables.setdefault(link.places[0], []).append(line)
        netns.run([netns.batch("ip", self.space(place), lines) for place, lines in cables.items()])
        for hub, rate in self.graph.hubs.items():
            stations = self.graph.stations(hub)
            words = [repr(rate), *self._taps(stations)]
            self._carry("shared_wire", words, self._tap(stations[-1]))
        for switch, buffer in self.graph.buffers.items():
            stations = self.graph.stations(switch)
            ports = [
                (*self._tap(end), _hardware_address(end), self._port_rate(end)) for end in stations
            ]
            words = buffered.words(self._report, buffer, ports)
            self._carry(buffered.PROGRAM, words, self._tap(stations[-1]))
        self._plug()
        for node in self._nodes if self.graph.bonded else ():
            # A program sends over the links in turn, like the kernel's bonding driver.
            space, devices, (bond,) = self.space(node), self.devices(node), self._outlets(node)
            tap = f"{space}/net", bond
            self._carry("channel_bond", [*tap, *devices], tap)
            # Otherwise the kernel would answer for the bond's address on the interface that
            # received the question.
            lines = [f"link set {device} arp off" for device in devices]
            netns.run([netns.batch("ip", space, [*lines, f"link set {bond} up"])])

    def _tap(self, end: End) -> tuple[str, str]:
        """The arguments for a program that makes the interface of an end: its namespace, its
        name."""
        return f"{self.space(self.graph.place(end))}/net", self.device(end)

    def _taps(self, ends: Sequence[End]) -> list[str]:
        return [word for end in ends for word in self._tap(end)]

    def _carry(self, program: str, words: Sequence[str], last: tuple[str, str]) -> None:
        """Start a program that carries frames, and wait until it has made its last interface."""
        if lacking := without_taps():
            raise FalloffError(lacking)
        space, (there, interface) = self.space(_CARRIERS), last
        argv = [*(REAL_TIME if self.real_time else ()), self.tool(program), *words]
        started = programs.start(program, argv, space, {}, space)

        def has_interface() -> bool:
            with netns.entered(Path(there).parent):
                return f"{interface}:" in _INTERFACES.read_text()

        if not programs.becomes(started, has_interface):
            complaint = started.complaints.strip() or "it made no interface"
            raise FalloffError(f"{program} does not start: {complaint}")
        self.carriers.append(started)

    def _plug(self) -> None:
        """Bring every interface up, those of a switch as ports of its bridge; only routers
        forward."""
        invocations = []
        for place in self.graph.places:
            with netns.entered(self.space(place)):
                if _WITHOUT_IPV6.exists():
                    _WITHOUT_IPV6.write_text("1")
            settings.write(self.space(place), {"ip_forward": place in self.graph.routers})
            lines, master = ["link set lo up"], ""
            if place in self.graph.switches:
                lines += ["link add bridge type bridge", "link set bridge up"]
                master = "master bridge"
            lines += [f"link set {device} {master} up" for device in self.devices(place)]
            invocations.append(netns.batch("ip", self.space(place), lines))
        netns.run(invocations)

    def receive_by_threads(self) -> None:
        """Receive in one kernel thread per interface, with precedence over all other work, so that
        CPU time is charged to the right place.

        The shaper's work is charged to nobody, because its timer sends in whichever program it
        interrupts. As an upper bound, softirq time relative to a trial's CPU time, from one run
        each on a busy machine, was 16 % at 1 Gbit/s and MTU 9000, 26 % at 1500, and below 2 %
        without a shaper. If the sender makes super-packets, veth uses no thread.
        """
        places = {
            place: dict.fromkeys([*self.devices(place), *self._outlets(place)])
            for place in self.graph.places
        }
        for place, devices in places.items():
            space, sysfs = self.space(place), self.space(place) / "sys"
            # sysfs shows the interfaces of the namespace in which it was mounted.
            sysfs.mkdir()
            words = [["ethtool", "-K", device, "gro", "on"] for device in devices]
            words.append(["mount", "-t", "sysfs", "none", str(sysfs)])
            netns.run([netns.Invocation(space, argv) for argv in words])
            for device in devices:
                switch = sysfs / "class/net" / device / "threaded"
                if switch.exists():
                    switch.write_text("1")
            subprocess.run(["umount", str(sysfs)], check=True, capture_output=True)
        running = host.kernel_threads(f"napi/{self.state.name}")
        for place, devices in places.items():
            threads = [id for device in devices for id in running.get(f"napi/{device}", [])]
            for thread in threads:
                os.setpriority(os.PRIO_PROCESS, thread, host.HIGHEST_PRIORITY)
                if self.graph.is_node(place):
                    os.sched_setaffinity(thread, {host.processor(int(place[1:]))})
            self.threads[place] = threads


def _hardware_address(end: End) -> str:
    """The Ethernet address of an end's interface: locally administered, and unique in its
    network."""
    return f"02:00:00:{end.side:02x}:{end.link >> 8:02x}:{end.link & 255:02x}"


def build(
    folder: Path,
    table: Description,
    tool: Callable[[str], str],
    threaded: bool = False,
    real_time: bool = False,
) -> Network:
    """Make the network of a table in a new folder below `folder`.

    `tool` gives the path of a program by name where one is needed. With `threaded`, kernel threads
    receive, and their CPU time counts for the place. With `real_time`, programs that carry frames
    go before all others. Raises FalloffError as `graph.graph` does, or if a tool fails or a program
    that carries frames ends at once.
    """
    wanted = graph.graph(table)
    # It starts with a letter, because Open MPI takes an interface name that begins with a digit for
    # an address.
    state = folder / (secrets.choice(string.ascii_lowercase) + secrets.token_hex(3)[1:])
    state.mkdir()
    net = Network(state, table, wanted, tool, threaded, real_time)
    try:
        netns.create(*map(net.space, wanted.places), net.space(_CARRIERS))
        with host.precedence():
            net.wire()
        if threaded:
            net.receive_by_threads()
    except BaseException:
        demolish(state)
        raise
    return net


def demolish(state: Path) -> None:
    """Remove everything that was made below a folder, even by a dead owner: processes, namespaces
    and files."""
    netns.release(state)
    shutil.rmtree(state)
