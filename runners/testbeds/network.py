"""The network of one path while it is up: its wires, its nodes' cgroups, and the threads and lines that serve it."""

import errno
import os
import secrets
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping

from runners.testbeds import cgroup, host, launch, links, netns, programs, readback, topology, wiring
from runners.testbeds.quota import Quotas, group, unlimited
from runners.testbeds.topology import End, Graph, name

_PATIENCE_S = 2.0


@dataclass(frozen=True)
class Network:
    """Everything made for a path: `wires`, and `quotas`, which limit nothing but count each node's CPU time."""

    wires: wiring.Wires
    quotas: Quotas
    path: Mapping[str, Any]
    has_threads: bool

    @property
    def graph(self) -> Graph:
        """What is joined."""
        return self.wires.graph

    def cpu_times(self) -> List[float]:
        """CPU time [s] so far of each node: of its programs, and of the threads that receive for it."""
        return self.quotas.cpu_times()

    @property
    def entrances(self) -> List[Path]:
        """What a process joins that outlives a trial and is no node's."""
        return cgroup.entrances(self.quotas.hierarchy, network_group(self.wires.state))

    def own_cpu_time(self) -> float:
        """CPU time [s] so far of all that lies between nodes, programs that are hubs and bonds too, and of perf where it
        counts."""
        return cgroup.cpu_time(self.quotas.hierarchy, network_group(self.wires.state))

    def links(self, tcp: Mapping[str, Any], mtu: int) -> Dict[End, links.Link]:
        """What is asked of each end, `mtu` being that of the nodes: the largest frames are theirs."""
        offloads = dict.fromkeys(links.OFFLOADS, self.path.get("offloads", False))
        asked = {}
        for end in self.graph.all_ends():
            link = self.graph.links[end.link]
            asked[end] = links.Link(link.rates[end.side], min(mtu, link.mtu or mtu), tcp, offloads)
        return asked

    def mtus(self, mtu: int) -> Dict[End, int]:
        """The MTU of each end's interface, `mtu` being that of the nodes."""
        found = {}
        for end in self.graph.all_ends():
            place, link = self.graph.place(end), self.graph.links[end.link]
            # A port takes in no frame beyond its own MTU, and nobody is told.
            own = {**self.graph.switches, **self.graph.routers}.get(place, mtu)
            found[end] = min(own, link.mtu or own)
        return found

    def asked(self, tcp: Mapping[str, Any], mtu: int) -> Dict[str, Any]:
        """Configure it so, and say what is asked for, as `effective` finds it."""
        ends, mtus = self.links(tcp, mtu), self.mtus(mtu)
        wiring.configure(self.wires, ends, mtus)
        return self._summary({end: {**link.settings(), "mtu": mtus[end]} for end, link in ends.items()})

    def effective(self) -> Dict[str, Any]:
        """The settings read back: a value where all ends agree, else which have which."""
        found = readback.interfaces(self.wires.ends())
        nodes = {name(node): readback.tcp(self.wires.space(name(node))) for node in self.graph.nodes}
        return self._summary(
            {
                end: {**found[place, self.wires.device(end)], **nodes.get(place, {})}
                for end in self.graph.all_ends()
                for place in [self.graph.place(end)]
            }
        )

    def _summary(self, settings: Mapping[End, Mapping[str, Any]]) -> Dict[str, Any]:
        """A node's settings are all there are, of a port's only those of the link; MTUs of both are kept apart."""
        ends: Dict[str, Dict[str, Any]] = {}
        for end, values in settings.items():
            if self.graph.is_node(self.graph.place(end)):
                ends[self.graph.label(end)] = dict(values)
            else:
                of_link = {key: values[key] for key in ("tbf_rate_bit_s", *links.OFFLOADS)}
                ends[self.graph.label(end)] = {**of_link, "port_mtu": values["mtu"]}
        keys = {key: None for values in ends.values() for key in values}
        return {key: readback.agreed(ends, key) for key in keys}

    def drops(self) -> List[int]:
        """End the delay lines; how many frames each dropped, both ways together."""
        return [sum(map(int, programs.end(line).stdout.split()[4:])) for line in self.wires.lines]


def network_group(state: Path) -> str:
    """The cgroup of what serves the path and is no node's; it outlives a trial."""
    return f"{group(state)}-network"


def build(folder: Path, path: Mapping[str, Any], tool: Callable[[str], str]) -> Network:
    """Make the network of a path in a new folder below `folder`, whose name tags everything.

    `tool` gives the path of a program by its name where one is needed. Raises FalloffError as it, `topology.graph`
    and `wiring.build` do.
    """
    graph = topology.graph(path)
    state = folder / secrets.token_hex(4)
    state.mkdir()
    quotas = unlimited(state, graph.nodes)
    cgroup.create_leaf(quotas.hierarchy, network_group(state))
    entrances = cgroup.entrances(quotas.hierarchy, network_group(state))
    outputs = state / "carriers"
    outputs.mkdir()

    def start(program: str, arguments: List[str]) -> programs.Started:
        return programs.start(program, [tool(program), *arguments], outputs, {}, entrances)

    with host.precedence():
        wires = wiring.build(state, graph, start)
    quotas.build()
    launch.prepare(state, graph.nodes)
    threads = wires.own_threads()
    for place, own in threads:
        node = int(place[1:]) if graph.is_node(place) else None
        for thread in own:
            _place(thread, quotas.entrances_of(node) if node else entrances)
            if node:
                os.sched_setaffinity(thread, {quotas.processor(node)})
    return Network(wires, quotas, path, all(own for _, own in threads))


def _place(thread: int, entrances: List[Path]) -> None:
    for entrance in entrances:
        _write(entrance, str(thread))
    os.setpriority(os.PRIO_PROCESS, thread, host.HIGHEST_PRIORITY)


def _write(entrance: Path, thread: str) -> None:
    """The kernel refuses to move a thread of its own that has not run yet, which takes it a moment."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            entrance.write_text(thread)
            return
        except OSError as error:
            if error.errno != errno.EINVAL or time.monotonic() > deadline:
                raise
            time.sleep(0.002)


def demolish(state: Path) -> None:
    """Remove all that was made for a path, of a dead owner too."""
    hierarchy = cgroup.find()
    for own in (group(state), network_group(state)):
        cgroup.kill(hierarchy, own)
    netns.release(state)
    for own in (group(state), network_group(state)):
        cgroup.remove(hierarchy, own)
    shutil.rmtree(state)
