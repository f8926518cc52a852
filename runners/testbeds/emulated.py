"""The emulated testbed: nodes on this machine in network namespaces, joined by a graph, with real
TCP and real MPI.

A trial's `interconnect` makes the graph a star: every node on one switch, or with `rails` on
several. Its `path` is a graph of data/paths.toml. On a paced testbed a node computes at the stated
rate, however fast this machine is (`[node] flop_s`), or any MPI program computes so many times as
long as this machine's processor takes (`stretched` by `dilation`); otherwise a node's programs stay
on one processor. If `[cpu] baseline_s` is set, the machine's CPU time is attributed to nodes:
kernel threads receive for each node, and nothing else takes precedence.
"""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from runners import executables, pace, scale
from runners.records.description_rules import (
    COUNT,
    NAME,
    NOT_NEGATIVE,
    POSITIVE,
    WHOLE,
    YES_OR_NO,
    Rule,
    one_of,
)
from runners.records.record import Command, Description, FalloffError, Settings, Transcript, Trial
from runners.testbeds import busy, graph, host, lease, link_probe, network, nodes, programs
from runners.testbeds.network import Network

STANDS_FOR: dict[str, str] = {}  # every tool runs itself
IS_HERE = True
NEEDS_ROOT = True  # or a user namespace

# How TCP finds out what was lost: sysctls by name. `rack` is Linux's default, with RACK's clock and
# tail loss probes (RFC 8985); `acks` is TCP before 2013, which needs further acknowledgements or a
# timeout.
LOSS_RECOVERY = {
    "rack": {"early_retrans": 3, "recovery": 1},
    "acks": {"early_retrans": 0, "recovery": 0},
}

# How Open MPI sends a message above its eager limit over TCP: its parameters by name. `put` is
# stock: an announcement, the receiver's request, then the whole message in one piece. A request
# waits behind a piece that goes the same way, so two ranks that exchange messages out of phase
# send them one after the other. `send` announces with the first bytes, and the rest follows in
# fragments.
RENDEZVOUS: Mapping[str, Description] = {
    "put": {},
    "send": {"btl_tcp_flags": 1},
    "fragments": {
        "btl_tcp_flags": 1,
        "btl_tcp_max_send_size": 4096,
        "pml_ob1_send_pipeline_depth": 1,
    },
}

# The settings of a point that this testbed reads.
POINT: Mapping[str, Rule] = {
    **dict.fromkeys(("interconnect", "path", "aggregation", "congestion_control"), NAME),
    **dict.fromkeys(("mtu", "ranks_per_node"), COUNT),
    **dict.fromkeys(("noise", "noise_hz"), NOT_NEGATIVE),
    "window_bytes": WHOLE,
    "dilation": POSITIVE,
    "buffer_bytes": WHOLE,
    "buffer_alpha": NOT_NEGATIVE,
    "flow_control": one_of(("none", "pause")),
    "mark_bytes": WHOLE,
    "rto_min_s": POSITIVE,
    "loss_recovery": one_of(LOSS_RECOVERY),
    "rendezvous": one_of(RENDEZVOUS),
    "alone": YES_OR_NO,
}

# For root of the machine, and for root of a user namespace: every machine has that folder, and a
# session has its own.
_ROOTS = {True: Path("/run/falloff"), False: Path("/dev/shm/falloff")}
_OFFLOADS = ("tso", "gso", "gro")
# The most that a program's socket may be given; the same on the whole machine.
_LARGEST_WINDOWS = tuple(Path("/proc/sys/net/core") / limit for limit in ("rmem_max", "wmem_max"))

_ANY_BYTES = 1 << 40  # B: a switch whose buffer takes in everything

_TOOLS = ("ip", "tc", "ethtool", "nsenter", "unshare", "taskset", "chrt", "hostname")
# These are not on a Debian user's PATH. In a user namespace their programs do not need root.
_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
_CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


def unavailable(description: Description) -> list[str]:
    """Each reason why this testbed cannot run here, one line with the remedy.

    Other users than root need to be root of a user namespace, if the kernel allows one. The folders
    of system tools are added to PATH, for this process and everything that it starts.
    """
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path += [folder for folder in _SYSTEM_FOLDERS if folder not in path]
    os.environ["PATH"] = os.pathsep.join(path)
    lacking = [tool for tool in _TOOLS if not shutil.which(tool)]
    if lacking:
        remedy = "apt-get install iproute2 ethtool util-linux hostname"
        return [f"{', '.join(lacking)} are missing: {remedy}"]
    if os.geteuid() != 0:
        argv = ["unshare", "--user", "--map-root-user", "true"]
        attempt = subprocess.run(argv, capture_output=True, text=True)
        if attempt.returncode:
            refusal = f"this kernel refuses it ({attempt.stderr.strip()})"
            return [f"without root a user namespace is needed, and {refusal}: run it with sudo"]
    control = description["tcp"]["congestion_control"]
    if control not in _CONGESTION_CONTROLS.read_text().split():
        return [f"the kernel has no TCP congestion control {control}: modprobe tcp_{control}"]
    return []


@contextmanager
def open_testbed(description: Description, networks: Description) -> Iterator["Emulated"]:
    """The testbed, which makes a network when a trial asks for it. On leaving, everything is taken
    down, whatever happens.

    SIGTERM and SIGHUP become SystemExit. Remains after kill -9 are removed automatically
    (runners/testbeds/lease.py). `description` is a file of data/testbeds; `networks` has tables of
    data/interconnects.toml and data/paths.toml. Raises FalloffError, with the remedies, if it
    cannot run here, or if a path is not a graph. The caller must be root, of the machine or of a
    user namespace; `session.run` sees to that.
    """
    reasons = unavailable(description)
    if os.geteuid() != 0:
        reasons.append("network namespaces need root: run it with sudo, or as a campaign")
    if not reasons and (lacking := without_taps(networks)):
        reasons = [lacking]
    if reasons:
        raise FalloffError("the emulated testbed cannot run here: " + "; ".join(reasons))
    is_machine = host.is_root_of_machine()
    probe = [*network.REAL_TIME, "true"]
    real_time = _is_paced(description) and not subprocess.run(probe, capture_output=True).returncode
    with lease.signals_exit(), lease.held(network.demolish, _ROOTS[is_machine]) as state:
        threaded = "baseline_s" in description.get("cpu", {}) and is_machine
        yield Emulated(state, description, networks, threaded, real_time)


def without_taps(networks: Description) -> str:
    """Why paths among these networks cannot be made here, with the remedy; raises FalloffError if a
    path is not a graph."""
    paths = [graph.graph(table) for table in filter(_is_path, networks.values())]
    return network.without_taps() if any(path.has_taps for path in paths) else ""


def _is_paced(description: Description) -> bool:
    node = description.get("node", {})
    return "flop_s" in node or node.get("stretched", False)


def _is_path(table: Description) -> bool:
    return "links" in table or "hubs" in table


@dataclass
class Emulated:
    """The open testbed; its networks are below `state`.

    `threaded`: kernel threads receive for the nodes. `real_time`: ranks on paced nodes run before
    all other programs, if this machine allows it.
    """

    state: Path
    description: Description
    networks: Description
    threaded: bool = False
    real_time: bool = False
    _up: threading.local = field(default_factory=threading.local)

    evidence = "emulated"

    @property
    def net(self) -> Optional[Network]:
        """The network that is up for this thread, None if there is none."""
        return getattr(self._up, "net", None)

    def load(self, trial: Trial) -> float:
        """The share of this machine that a trial takes [1]: all of it, because trials must not
        disturb each other. It is less if the scale model's rule slows time so much that the machine
        can serve other trials beside it."""
        return scale.load(self.description, trial.point)

    @property
    def _node(self) -> Description:
        """What the description says of a node; empty if nothing."""
        return self.description.get("node", {})

    @property
    def _is_stretched(self) -> bool:
        """Whether ranks compute `dilation` times as long as this machine's processor takes."""
        return self._node.get("stretched", False)

    @property
    def _rails(self) -> int:
        return self.description.get("rails", 1)

    def use(
        self,
        name: str,
        way: graph.Way = graph.ONE_LINK,
        slowness: float = 1,
        buffer: Optional[Description] = None,
    ) -> Network:
        """The network of that name, for a way of using its links. The current network is kept if it
        has the same places and links; otherwise a new one replaces it.

        Links are `slowness` times slower than described. With `buffer`, the fields of graph.Buffer,
        the switch has that memory. Raises FalloffError if there is no such
        network, or it cannot be built.
        """
        if name not in self.networks:
            raise FalloffError(f"network {name!r} is unknown; there are {', '.join(self.networks)}")
        table = self.networks[name]
        if slowness != 1 and "rate_bit_s" in table:
            table = {**table, "rate_bit_s": table["rate_bit_s"] / slowness}
        if "latency_s" in table:
            whole = table["latency_s"] * self._node["dilation"] * slowness
            delay_s = max(0.0, whole - self._node["machine_message_s"])
            if buffer:  # its program holds frames back, and delay lines are not needed
                buffer = {**buffer, "delay_s": round(buffer["delay_s"] + delay_s, 9)}
            else:
                table = {**table, "delay_s": delay_s}
        if not _is_path(table):
            slow = self.description.get("slow", {}).get("links", {})
            nodes_there = self.description["nodes"]
            table = graph.star(table, nodes_there, self._rails, way.is_bonded, slow, buffer)
        wanted, net = graph.graph(table), self.net
        if net and net.graph.shape == wanted.shape:
            net.table, net.graph = table, wanted
            return net
        self._up.net = None
        if net:
            net.demolish()
        self._up.net = network.build(self.state, table, self._tool, self.threaded, self.real_time)
        return self._up.net

    def run(self, trial: Trial, commands: Sequence[Command]) -> Transcript:
        """Set up the trial's network, run the commands in order, read settings back and count.
        Several threads may call it.

        Commands stop at the first that fails. Servers, and everything else that still runs, end
        with the trial. Counters are those of `Network.bytes_between`; cpu_time [s] of each node's
        programs (NaN if MPI ranks ran) and of the threads that receive for it; the numbers of
        `_shares` on a testbed that accounts for CPU time; and pace_... on paced nodes. The
        testbed's own failures become the transcript's `fault`.
        """
        state, point = programs.TrialState(), trial.point
        with state.faults():
            way, slowness = graph.way(point, self._rails), self._slowness(point)
            name = point.get("path") or point["interconnect"]
            buffer = self._buffer(name, point, slowness)
            net = self.use(name, way, slowness, buffer)
            state.requested = self._configure(net, point, way, trial.block, slowness)
            pacing = self._pacing(point, trial.block, slowness)
            mpi = {**self.description.get("mpi", {}), **RENDEZVOUS[point.get("rendezvous", "put")]}
            around = nodes.Surroundings(self.description, way, pacing, self.real_time, mpi)
            ranks = max((command.ranks for command in commands), default=0)
            probed: Settings = {}
            if ranks > 1 and ("scale" in self.description or self._is_stretched):
                if buffer and buffer.get("free_bytes"):
                    lacking = self._wanted_message_s(point) - link_probe.short(net, around, ranks)
                    buffer["delay_s"] = max(0.0, round(lacking, 9))
                    net = self.use(name, way, slowness, buffer)
                    state.requested = self._configure(net, point, way, trial.block, slowness)
                probed = link_probe.probe(net, around, ranks)
                state.requested["link"] = link_probe.KEPT
                state.effective["link"] = link_probe.verdict(probed, net.graph.has_taps)
            baseline_s = self.description.get("cpu", {}).get("baseline_s")
            idle = host.load(baseline_s) if baseline_s else 0.0
            net.switch_report()  # what it counted before does not count
            receiving, before, bytes_before = net.receiving_times(), _clocks(net), net.byte_counts()
            waiting, worked_s = net.waiting_times(), busy.worked_s()
            with host.precedence() if baseline_s else nullcontext():
                own_s = nodes.execute(commands, net, around, state.ran)
            worked_s = busy.worked_s() - worked_s
            rank_times, after = nodes.rank_times(net), _clocks(net)
            grown = {key: after[key] - before[key] for key in after}
            received = [end - begin for begin, end in zip(receiving, net.receiving_times())]
            own_s += sum(program.cpu_time for program in state.ran) + sum(s for _, s in rank_times)
            others_s = worked_s - own_s - grown["network_cpu_time"] - sum(received)
            waits = [s for s, _ in rank_times]
            waits += [
                end - waiting[thread]
                for thread, end in net.waiting_times().items()
                if thread in waiting
            ]
            state.counters = net.bytes_between(bytes_before, net.byte_counts())
            worked = nodes.cpu_times(state.ran, net.graph.nodes)
            state.counters["cpu_time"] = list(map(sum, zip(received, worked)))
            if baseline_s:
                shares = _shares(grown, sum(state.counters["cpu_time"]), idle)
                state.counters.update(shares)
            state.counters.update(probed)
            state.effective.update(net.effective())
            if report := net.switch_report():
                state.counters.update(report.counters())
                state.effective.update(report.settings(point.get("mtu", net.table["mtu"])))
            if "window_bytes" in state.requested:
                # The kernel silently limits a socket to the machine's limit.
                asked = state.requested["window_bytes"]
                state.effective["window_bytes"] = min(asked, _largest_window() or asked)
            jobs = [(command, execution) for command, execution, *_ in state.ran if command.ranks]
            if jobs:
                state.requested["nodes"] = max(command.nodes for command, _ in jobs)
                state.effective["nodes"] = nodes.occupied(net)
            if jobs and _is_paced(self.description):
                there = len(net.graph.nodes)
                state.requested["pace"] = pace.KEPT
                state.effective["pace"] = pace.verdict(jobs, there)
                state.effective["realtime"] = self.real_time
                state.counters.update(pace.counters(jobs, there))
            if self.load(trial) >= 1 and not self._is_stretched:
                waits = _waits(state, waits, grown["elapsed"])
                if disturbed := busy.verdict(waits, others_s / grown["elapsed"]):
                    state.effective["busy"] = disturbed
        return state.transcript(self, trial)

    def provenance(self) -> dict:
        """Whether it ran as root of the machine or of a namespace, and the largest window [B] that
        a program can get."""
        root = "of the machine" if host.is_root_of_machine() else "of a user namespace"
        provenance = {"root": root, "largest_window_bytes": _largest_window()}
        paced = {"realtime": self.real_time} if _is_paced(self.description) else {}
        return {**provenance, **paced}

    def _slowness(self, point: Settings) -> float:
        """How many times slower than described a point's nodes and links are: its `dilation` over
        the described one."""
        if "dilation" not in point:
            return 1
        if "dilation" not in self._node:
            title = f"testbed {self.description['name']}"
            raise FalloffError(f"{title} says no dilation of its nodes, which the campaign varies")
        return point["dilation"] / self._node["dilation"]

    def _configure(
        self, net: Network, point: Settings, way: graph.Way, seed: int, slowness: float
    ) -> dict:
        """Configure the network for a point; returns the settings asked for.

        The seed belongs to the block, so that everything compared within a block has the same hash.
        """
        tcp, rate = dict(self.description["tcp"]), net.table.get("rate_bit_s")
        tcp["congestion_control"] = point.get("congestion_control", tcp["congestion_control"])
        tcp["ecn"] = point.get("mark_bytes", 0) > 0
        if "rto_min_s" in point:
            # It is on the cluster's scale of time, so it is as much longer here as everything else.
            dilation = point.get("dilation", self._node.get("dilation", 1))
            tcp["rto_min_ms"] = max(1, round(1e3 * point["rto_min_s"] * dilation))
        if "loss_recovery" in point:
            tcp.update(LOSS_RECOVERY[point["loss_recovery"]])
        if "buffers" in self.description:
            tcp.update(scale.buffers(self.description["buffers"], rate))
        offloads = dict.fromkeys(_OFFLOADS, bool(net.table.get("offloads")))
        if "path" not in point and not net.graph.buffers:  # its program carries frames
            offloads.update(self.description.get("offloads", {}))
        mtu, burst_s = point.get("mtu", net.table["mtu"]), self._burst_s(rate, slowness)
        asked = net.configure(tcp, offloads, mtu, way, seed, burst_s)
        if point.get("window_bytes"):
            asked["window_bytes"] = point["window_bytes"]
        return asked

    def _wanted_message_s(self, point: Settings) -> float:
        """What a message takes on a point's network if its share of the run is the cluster's [s]; 0
        without the rule of a scale model."""
        if "scale" not in self.description:
            return 0.0
        dilation = point.get("dilation", self._node["dilation"])
        return scale.message_s(self.description, point["interconnect"], dilation)

    def _buffer(self, name: str, point: Settings, slowness: float) -> Optional[dict]:
        """The memory of the switch that a point asks for by `buffer_bytes`, as fields of
        graph.Buffer; None if it asks for none, or 0 for a bridge without a queue of its own, and
        the testbed has no `free_bytes` for links of a rate.

        The delay is on the described scale of time. Senders are paused above half of the buffer:
        the rest is for what they have on the wire.
        """
        described = self.description.get("switch", {})
        free = described.get("free_bytes", 0) if "rate_bit_s" in self.networks.get(name, {}) else 0
        size, pauses = point.get("buffer_bytes", 0), point.get("flow_control") == "pause"
        if free and not size:
            return {"bytes": _ANY_BYTES, "free_bytes": free, "delay_s": 0.0}
        if not size:
            asked = {**point, "flow_control": pauses}
            for key in ("buffer_alpha", "flow_control", "mark_bytes"):
                if asked.get(key):
                    raise FalloffError(f"{key} needs a switch with a buffer: say `buffer_bytes`")
            return None
        if "path" in point or self._rails > 1:
            raise FalloffError(
                "buffer_bytes is for one switch between all nodes, not for paths and several links"
            )
        return {
            "bytes": size,
            "alpha": float(point.get("buffer_alpha", 0)),
            "pause_bytes": size // 2 if pauses else 0,
            "mark_bytes": point.get("mark_bytes", 0),
            "delay_s": round(self.description.get("switch", {}).get("delay_s", 0) * slowness, 9),
        }

    def _burst_s(self, rate_bit_s: Optional[float], slowness: float) -> Optional[float]:
        """How long a link may send after a pause before its rate holds [s]; None if the testbed
        does not say.

        `burst_s` is on the described scale of time: it means the same number of bytes at each
        dilation. `burst_bytes` is the same number of bytes at each rate, but at least what the wire
        carries in `late_s`, because this machine's timers need that.
        """
        shaper = self.description.get("shaper", {})
        if "burst_s" in shaper:
            return shaper["burst_s"] * slowness
        if not shaper or not rate_bit_s:  # without a rate there is no shaper
            return 0.0 if shaper else None
        return max(8 * shaper["burst_bytes"] / rate_bit_s, shaper["late_s"])

    def _pacing(self, point: Settings, seed: int, slowness: float) -> Mapping[str, str]:
        """The variables that pace the ranks of a point; empty if nodes compute as fast as they
        can."""
        if self._is_stretched:
            return pace.stretching(self._node["dilation"] * slowness)
        if "flop_s" in self._node:
            flop_s = self._node["flop_s"] / slowness / point.get("ranks_per_node", 1)
            return pace.environment(flop_s, point, seed)
        if point.get("noise"):
            title = f"testbed {self.description['name']}"
            raise FalloffError(
                f"{title} does not pace its nodes, so that none has noise: use scale_model"
            )
        return {}

    def _tool(self, tool: str) -> str:
        # Absolute, because it runs in another folder.
        return str(Path(executables.find(tool, self.description.get("tools", {}))).absolute())


def _clocks(net: Network) -> Settings:
    return {"network_cpu_time": net.carrying_time(), **host.clock()}


def _waits(state: programs.TrialState, others: Iterable[float], elapsed_s: float) -> list[float]:
    """The share of a trial's time [1] for which each of its programs, but not mpirun, and each of
    `others` was kept waiting for a processor."""
    delays = [program.delayed_s for program in state.ran if not program.command.ranks]
    return [delay / elapsed_s for delay in (*delays, *others)]


def _largest_window() -> Optional[int]:
    """The largest buffer [B] that a program's socket gets; None if the kernel does not say, as in a
    user namespace."""
    limits = [int(limit.read_text()) for limit in _LARGEST_WINDOWS if limit.exists()]
    return min(limits, default=None)


def _shares(grown: Settings, nodes_s: float, idle: float) -> Settings:
    """How the machine's CPU time [s] was shared.

    host_cpu_time is that of all processors, network_cpu_time that of everything between the nodes,
    baseline_cpu_time what the machine uses by itself, at `idle` CPU-seconds a second, and
    unattributed_cpu_time the rest. The rest is below 0 if the machine was too busy for its baseline
    to be meaningful.
    """
    shares = {key: grown[key] for key in ("host_cpu_time", "network_cpu_time")}
    baseline_s = idle * grown["elapsed"]
    rest_s = shares["host_cpu_time"] - nodes_s - shares["network_cpu_time"] - baseline_s
    return {**shares, "baseline_cpu_time": baseline_s, "unattributed_cpu_time": rest_s}
