"""The emulated testbed: nodes of this machine in network namespaces, joined by a graph, with real TCP and real MPI.

A trial's `interconnect` makes the graph a star: every node on one switch, or with `rails` on several. Its `path` is a
graph of data/paths.toml. On a paced testbed (`[node] flop_s`) a node computes as fast as that says, whatever this
machine is capable of; elsewhere its programs stay on one processor. Where `[cpu] baseline_s` asks for it, the machine's
CPU time is accounted for: what comes in is received by threads of the node's, and nothing else takes precedence.
"""

import math
import os
import shutil
import subprocess
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any, ContextManager, Dict, Iterator, List, Mapping, Optional, Sequence

from runners import pace, tools
from runners.record import Command, FalloffError, Settings, Transcript, Trial
from runners.testbeds import available, graph, host, instructions, lease, network, nodes
from runners.testbeds.network import Network

__all__ = ["STANDS_FOR", "Emulated", "open_testbed", "unavailable"]

STANDS_FOR: Dict[str, str] = {}  # every tool runs itself

# Without root of the machine: every machine has this folder, and a session's is its own (see runners/session.py).
_WITHOUT_ROOT = Path("/dev/shm/falloff")

_OFFLOADS = ("tso", "gso", "gro")

# What a socket may be given of what a program asks for; the same on the whole machine.
_LARGEST_WINDOWS = tuple(Path("/proc/sys/net/core") / limit for limit in ("rmem_max", "wmem_max"))


def unavailable(description: Mapping[str, Any]) -> List[str]:
    """One line, with the remedy, for each reason why this testbed cannot run here."""
    return available.unavailable(description)


@contextmanager
def open_testbed(description: Mapping[str, Any], networks: Mapping[str, Any]) -> Iterator["Emulated"]:
    """The testbed, which makes a network when a trial asks for it; on leaving all is taken down, whatever happens.

    SIGTERM becomes SystemExit. What testbeds left behind whose owner was killed is removed first. `description` is a
    file of data/testbeds; `networks` has tables of data/interconnects.toml and data/paths.toml. Raises FalloffError
    when it cannot run here, with the remedies, or when a path is no graph. The caller is root, of the machine or of a
    user namespace: `session.run` sees to that.
    """
    reasons = unavailable(description)
    if not reasons and os.geteuid() != 0:
        reasons = ["network namespaces need root: run it with sudo, or as a campaign, which makes a user namespace"]
    if reasons:
        raise FalloffError("the emulated testbed cannot run here: " + "; ".join(reasons))
    for table in filter(_is_path, networks.values()):
        graph.graph(table)
    is_machine = host.is_root_of_machine()
    accounts, paced = "baseline_s" in description.get("cpu", {}), "flop_s" in description.get("node", {})
    with lease.sigterm_exits(), lease.held(_demolish, lease.ROOT if is_machine else _WITHOUT_ROOT) as state:
        testbed = Emulated(
            state,
            description,
            networks,
            threaded=accounts and is_machine,
            counts_instructions=accounts and instructions.are_countable(),
            real_time=paced and _has_real_time(),
        )
        try:
            yield testbed
        finally:
            testbed.clear()


def _demolish(state: Path) -> None:
    for made in filter(Path.is_dir, list(state.iterdir())):
        network.demolish(made)
    shutil.rmtree(state)


def _is_path(table: Mapping[str, Any]) -> bool:
    return "links" in table or "hubs" in table


def _has_real_time() -> bool:
    """Whether this machine lets us run ranks before all ordinary programs."""
    return subprocess.run([*nodes.REAL_TIME, "true"], capture_output=True).returncode == 0


@dataclass
class Emulated:
    """The testbed while it is open: networks are below `state`; `net` is the one that is up, if any.

    `threaded`: threads of the nodes' receive. `counts_instructions`: the machine can count them. `real_time`: ranks on
    paced nodes run before all other programs.
    """

    state: Path
    description: Mapping[str, Any]
    networks: Mapping[str, Any]
    threaded: bool = False
    counts_instructions: bool = False
    real_time: bool = False
    net: Optional[Network] = None

    evidence = "emulated"
    at_once = 1  # its nodes share one machine, and one trial must not disturb another

    @property
    def name(self) -> str:
        """The testbed's name, as its description gives it."""
        return self.description["name"]

    @property
    def flop_s(self) -> Optional[float]:
        """How fast a node computes [flop/s]; None: as fast as it can."""
        return self.description.get("node", {}).get("flop_s")

    def use(self, name: str, way: graph.Way = graph.ONE_LINK, slowness: float = 1) -> Network:
        """The network of that name, with what a way of using its links needs: the one that is up where it has the same
        places and links, else a new one in its place.

        One with a delay line is always new, so that what the line dropped was dropped in one trial. Links are so many
        times slower (`slowness`) than described. Raises FalloffError when there is no such network, or it cannot be
        built.
        """
        if name not in self.networks:
            raise FalloffError(f"network {name!r} is unknown; there are {', '.join(self.networks)}")
        table = self.networks[name]
        if slowness != 1 and "rate_bit_s" in table:
            table = {**table, "rate_bit_s": table["rate_bit_s"] / slowness}
        if not _is_path(table):
            table = graph.star(table, self.description["nodes"], self.description.get("rails", 1), way.bond)
        wanted = graph.graph(table)
        if self.net and not self.net.lines and self.net.graph.shape == wanted.shape:
            self.net.table, self.net.graph = table, wanted
        else:
            self.clear()
            self.net = network.build(self.state, table, self._tool, self.threaded)
        return self.net

    def clear(self) -> None:
        """Take down the network that is up."""
        if self.net:
            net, self.net = self.net, None
            net.demolish()

    def missing(self, needs: Sequence[str]) -> List[str]:
        """The remedies for those of the needed tools that are not here."""
        remedies = []
        for tool in needs:
            try:
                self._tool(tool)
            except FalloffError as error:
                remedies.append(str(error))
        return remedies

    def run(self, trial: Trial, commands: Sequence[Command]) -> Transcript:
        """Have the trial's network, run the commands in order, read back and count.

        Commands stop at the first that fails. Servers, and whatever else still runs, end with the trial. Counters are
        those of `Network.bytes_between`; cpu_time [s] of each node's programs (NaN where MPI ranks ran) and of the
        threads that receive for it; instructions of each node, where they can be counted; the numbers of `_shares` on
        a testbed that accounts for CPU time; frames_dropped_on_lines; and pace_... on paced nodes.
        The testbed's own failures become the transcript's `fault`.
        """
        requested: Dict[str, Any] = {}
        effective: Dict[str, Any] = {}
        counters: Dict[str, Any] = {}
        ran: List[nodes.Ran] = []
        fault = ""
        try:
            point = trial.point
            way = graph.way(point, self.description.get("rails", 1))
            slowness = self._slowness(point)
            net = self.use(point["path"] if "path" in point else point["interconnect"], way, slowness)
            requested.update(self._configure(net, point, way, trial.block, slowness))
            around = self._surroundings(way, point, trial.block, slowness)
            baseline_s = self.description.get("cpu", {}).get("baseline_s")
            idle = host.load(baseline_s) if baseline_s else 0.0
            before, bytes_before = self._count(net), net.byte_counts()
            with host.precedence() if baseline_s else nullcontext(), self._counting(net) as executed:
                nodes.execute(commands, net, around, self._tool, ran)
            counters.update(net.bytes_between(bytes_before, net.byte_counts()))
            grown = _grown(before, self._count(net))
            used = zip(grown.pop("receiving"), nodes.cpu_times(ran, net.graph.nodes))
            counters["cpu_time"] = [received + worked for received, worked in used]
            if baseline_s:
                counters.update(_shares(grown, sum(counters["cpu_time"]), idle, executed.cpu_time))
            if executed.by_processor:
                counters["instructions"] = _of_nodes(executed.by_processor, net.graph.nodes)
            effective.update(net.effective())
            effective.update(_windows(requested))
            self._judge_ranks(ran, net, requested, effective, counters)
            if net.lines:
                counters["frames_dropped_on_lines"] = float(sum(net.drops()))
        except (FalloffError, OSError, CalledProcessError) as error:
            fault = str(error)
        executions = tuple(one.execution for one in ran)
        return Transcript(trial, self.name, self.evidence, executions, requested, effective, counters, fault)

    def provenance(self) -> Dict[str, Any]:
        """Whose root it was, how receive work is attributed, how large a window a program can be given, and where
        nodes are."""
        net = self.net or self.use(next(iter(self.networks)))
        alone = {"realtime": self.real_time} if self.flop_s else {}
        return {
            "root": "of the machine" if host.is_root_of_machine() else "of a user namespace",
            "instructions": "counted" if self.counts_instructions else "not counted",
            "receiving": "a thread of the receiving node" if net.has_threads else "whoever is interrupted",
            "largest_window_bytes": _largest_window(),
            **alone,
            "nodes": {
                graph.name(node): {
                    "address": graph.address(node),
                    "processor": None if self.flop_s else host.processor(node),
                }
                for node in net.graph.nodes
            },
        }

    def _slowness(self, point: Settings) -> float:
        """How many times slower than described a point has its nodes and links: its `dilation` over the described."""
        described = self.description.get("node", {}).get("dilation")
        if "dilation" not in point:
            return 1
        if described is None:
            raise FalloffError(f"testbed {self.name} says no dilation of its nodes, which the campaign varies")
        return point["dilation"] / described

    def _configure(
        self, net: Network, point: Settings, way: graph.Way, seed: int, slowness: float
    ) -> Dict[str, Any]:
        """Configure the network as a point says; returns what is asked for.

        A seed of the block: the luck of the hash is the same for all that is compared within one.
        """
        control = point.get("congestion_control", self.description["tcp"]["congestion_control"])
        tcp = {**self.description["tcp"], "congestion_control": control}
        offloads = dict.fromkeys(_OFFLOADS, net.table.get("offloads", False))
        if "path" not in point:
            offloads.update(self.description.get("offloads", {}))
        burst_s = self.description.get("shaper", {}).get("burst_s")
        # As many bytes, whatever the time scale.
        burst_s = burst_s * slowness if burst_s is not None else None
        asked = net.configure(tcp, offloads, point.get("mtu", net.table["mtu"]), way, seed, burst_s)
        window = point.get("window_bytes", 0)
        return {**asked, "window_bytes": window} if window else asked

    def _surroundings(self, way: graph.Way, point: Settings, seed: int, slowness: float) -> nodes.Surroundings:
        paced, ranks = self.flop_s is not None, point.get("ranks_per_node", 1)
        if point.get("noise") and not paced:
            raise FalloffError(f"testbed {self.name} does not pace its nodes, so that none has noise: use scale_model")
        return nodes.Surroundings(
            networks=way.networks,
            mpi=self.description.get("mpi", {}),
            preload=(self._tool("mptcp.so"),) if way.is_mptcp else (),
            rank_preload=(self._tool("pace.so"),) if paced else (),
            rank_environment=pace.environment(self.flop_s / slowness / ranks, point, seed) if paced else {},
            real_time=self.real_time,
            pinned=not paced,
            awake=self.description.get("node", {}).get("keep_awake", False),
        )

    def _judge_ranks(
        self,
        ran: Sequence[nodes.Ran],
        net: Network,
        requested: Dict[str, Any],
        effective: Dict[str, Any],
        counters: Dict[str, Any],
    ) -> None:
        """Whether every node that was to have a rank had one, and kept its pace where it has one."""
        mpi = [one for one in ran if one.command.ranks]
        if not mpi:
            return
        requested["nodes"] = max(one.command.nodes for one in mpi)
        effective["nodes"] = nodes.occupied(net)
        if self.flop_s is None:
            return
        jobs = [pace.Job(one.command.ranks, one.command.ranks_per_node, one.execution.stderr) for one in mpi]
        requested["pace"], effective["pace"] = pace.KEPT, pace.kept(jobs, len(net.graph.nodes))
        effective["realtime"] = self.real_time
        counters.update(pace.counters(jobs, len(net.graph.nodes)))

    def _counting(self, net: Network) -> ContextManager[instructions.Count]:
        if not self.counts_instructions:
            return nullcontext(instructions.Count())
        return instructions.counted(net.state, net.space(network.CARRIERS))

    def _count(self, net: Network) -> Dict[str, Any]:
        """What is counted so far; the clock too."""
        receiving = [net.receiving_time(node) for node in net.graph.nodes]
        return {"receiving": receiving, "network_cpu_time": net.carrying_time(), **host.clock()}

    def _tool(self, tool: str) -> str:
        # Absolute, because it runs in another folder.
        return str(Path(tools.find(tool, self.description.get("tools", {}))).absolute())


def _of_nodes(executed: Mapping[int, float], numbers: range) -> List[float]:
    """A node's instructions are its processor's; not known where several nodes share one."""
    processors = [host.processor(node) for node in numbers]
    return [executed.get(its, math.nan) if processors.count(its) == 1 else math.nan for its in processors]


def _largest_window() -> Optional[int]:
    """The most [B] that a program's socket is given; None where the kernel does not say, as in a user namespace."""
    limits = [int(limit.read_text()) for limit in _LARGEST_WINDOWS if limit.exists()]
    return min(limits, default=None)


def _windows(requested: Settings) -> Dict[str, int]:
    """The kernel gives a socket no more than the machine's limit, without a word."""
    asked, largest = requested.get("window_bytes"), _largest_window()
    return {} if asked is None else {"window_bytes": asked if largest is None else min(asked, largest)}


def _grown(before: Mapping[str, Any], after: Mapping[str, Any]) -> Dict[str, Any]:
    grown = {key: after[key] - before[key] for key in after if key != "receiving"}
    grown["receiving"] = [now - then for then, now in zip(before["receiving"], after["receiving"])]
    return grown


def _shares(grown: Mapping[str, float], nodes_s: float, idle: float, perf_s: float) -> Dict[str, float]:
    """Whose the machine's CPU time was, in s.

    host_cpu_time is that of all processors; network_cpu_time of all between the nodes, and of perf where it counts;
    baseline_cpu_time what the machine did by itself, at `idle` CPU-seconds a second, and unattributed_cpu_time the
    rest: below 0 where the machine had too much else to do for its baseline to mean anything.
    """
    shares = {
        "host_cpu_time": grown["host_cpu_time"],
        "network_cpu_time": grown["network_cpu_time"] + perf_s,
        "baseline_cpu_time": idle * grown["elapsed"],
    }
    known = nodes_s + shares["network_cpu_time"] + shares["baseline_cpu_time"]
    return {**shares, "unattributed_cpu_time": shares["host_cpu_time"] - known}
