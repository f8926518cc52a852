"""The testbed of paths: nodes of this machine, joined by what data/paths.toml describes, with real TCP.

A path is a graph of nodes, switches, routers, links and hubs, each a network namespace, a bridge, a forwarding
namespace, a shaped veth pair or a delay line, and a program that is a shared wire. Each node stays on one processor,
and its CPU time is counted and not limited.
"""

import math
import shutil
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from runners import tools
from runners.record import Command, Execution, FalloffError, Settings, Transcript, Trial
from runners.testbeds import available, host, instructions, launch, lease, network, topology
from runners.testbeds.network import Network

__all__ = ["STANDS_FOR", "Paths", "open_testbed", "unavailable"]

STANDS_FOR: Dict[str, str] = {}  # every tool runs itself

ROOT = Path("/run/falloff-paths")

# What a socket may be given of what a program asks for; the same on the whole machine.
_LARGEST_WINDOWS = tuple(Path("/proc/sys/net/core") / limit for limit in ("rmem_max", "wmem_max"))


def unavailable(description: Mapping[str, Any]) -> List[str]:
    """One line, with the remedy, for each reason why this testbed cannot run here."""
    return available.obstacles(description)


@contextmanager
def open_testbed(description: Mapping[str, Any], paths: Mapping[str, Any]) -> Iterator["Paths"]:
    """The testbed, which builds a path when a trial asks for it; on leaving it takes all down, whatever happens.

    What testbeds left behind whose owner was killed is removed first. `description` is a file of data/testbeds,
    `paths` is data/paths.toml, both parsed. Raises FalloffError when it cannot run here, with the remedies, or when
    a path is no graph.
    """
    reasons = unavailable(description)
    if reasons:
        raise FalloffError("the testbed of paths cannot run here: " + "; ".join(reasons))
    for path in paths.values():
        topology.graph(path)
    with lease.sigterm_exits(), lease.held(_demolish, ROOT) as state:
        yield Paths(state, description, paths, instructions.are_countable())


def _demolish(state: Path) -> None:
    for own in filter(Path.is_dir, state.iterdir()):
        network.demolish(own)
    shutil.rmtree(state)


@dataclass
class Paths:
    """The testbed while it is open: networks are below `state`; `up` is the one that is there, if any.

    `counts_instructions` is whether the machine can count them.
    """

    state: Path
    description: Mapping[str, Any]
    paths: Mapping[str, Any]
    counts_instructions: bool = False
    up: Optional[Network] = None

    evidence = "emulated"
    at_once = 1  # its nodes share one machine, and one trial must not disturb another

    @property
    def name(self) -> str:
        """The testbed's name, as its description gives it."""
        return self.description["name"]

    def use(self, path: str) -> Network:
        """The network of a path: the one that is up, else a new one in its place.

        One with a delay line is always new, so that what the line dropped was dropped in one trial.
        Raises FalloffError when there is no such path or it cannot be built.
        """
        if path not in self.paths:
            raise FalloffError(f"path {path!r} is unknown; there are {', '.join(self.paths)}")
        if self.up and (self.up.path is not self.paths[path] or self.up.wires.lines):
            network.demolish(self.up.wires.state)
            self.up = None
        if not self.up:
            self.up = network.build(self.state, self.paths[path], self._tool)
        return self.up

    def run(self, trial: Trial, commands: Sequence[Command]) -> Transcript:
        """Build the trial's path where it is not there yet, run the commands in order, read back and count.

        Commands stop at the first that fails. Servers, and whatever else still runs, end with the trial. Counters are
        lists over nodes, bytes_sent and bytes_received [B, by all of a node's interfaces], cpu_time [s] and, where they
        can be counted, instructions; bytes_through [B] over hubs, switches and routers; and the numbers of `_shares`.
        The testbed's own failures become the transcript's `fault`.
        """
        requested: Dict[str, Any] = {}
        effective: Dict[str, Any] = {}
        counters: Dict[str, Any] = {}
        executions: List[Execution] = []
        fault = ""
        try:
            used = self.use(trial.point["path"])
            requested.update(self._configure(used, trial.point))
            counted = [replace(command, in_quota=True) for command in commands]
            idle = host.load(self.description["cpu"]["baseline_s"])
            earlier = _count(used)
            counts = self.counts_instructions
            counting = instructions.counted(used.wires.state, used.entrances) if counts else nullcontext({})
            with host.precedence(), counting as executed:
                launch.execute(counted, used.wires.state, used.quotas, self._tool, executions)
            counters.update(_shares(earlier, _count(used), idle))
            counters.update(_of_nodes(executed, used))
            effective.update(used.effective())
            effective.update(_windows(requested))
            if used.wires.lines:
                counters["frames_dropped_on_lines"] = float(sum(used.drops()))
        except (FalloffError, OSError, CalledProcessError) as error:
            fault = str(error)
        return Transcript(
            trial, self.name, self.evidence, tuple(executions), requested, effective, counters, fault
        )

    def provenance(self) -> Dict[str, Any]:
        """How receive work is attributed on this machine, and how large a window a program can be given."""
        used = self.up or self.use(next(iter(self.paths)))
        return {
            "instructions": "counted" if self.counts_instructions else "this machine's processors do not count them",
            "receiving": "a thread of the receiving node" if used.has_threads else "whoever is interrupted",
            "largest_window_bytes": _largest_window(),
        }

    def _configure(self, used: Network, point: Settings) -> Dict[str, Any]:
        """Configure the path as a point says; returns what is asked for."""
        control = point.get("congestion_control", self.description["tcp"]["congestion_control"])
        tcp = {**self.description["tcp"], "congestion_control": control}
        asked = used.asked(tcp, point.get("mtu", used.path["mtu"]))
        window = point.get("window_bytes", 0)
        return {**asked, "window_bytes": window} if window else asked

    def _tool(self, tool: str) -> str:
        # Absolute, because it runs in another folder.
        return str(Path(tools.find(tool, self.description.get("tools", {}))).absolute())


def _of_nodes(executed: Mapping[int, float], used: Network) -> Dict[str, List[float]]:
    """A node's instructions are its processor's; not known where several nodes share one."""
    processors = [used.quotas.processor(node) for node in used.graph.nodes]
    alone = [executed.get(it, math.nan) if processors.count(it) == 1 else math.nan for it in processors]
    return {"instructions": alone} if executed else {}


def _largest_window() -> int:
    return min(int(limit.read_text()) for limit in _LARGEST_WINDOWS)


def _windows(requested: Settings) -> Dict[str, int]:
    """The kernel gives a socket no more than the machine's limit, without a word."""
    return {key: min(requested[key], _largest_window()) for key in ("window_bytes",) if key in requested}


def _count(used: Network) -> Dict[str, Any]:
    """Everything that is counted so far; the clock too."""
    return {
        "bytes_sent": [used.wires.counter(node, "tx_bytes") for node in used.graph.nodes],
        "bytes_received": [used.wires.counter(node, "rx_bytes") for node in used.graph.nodes],
        "bytes_through": used.wires.bytes_through(),
        "cpu_time": used.cpu_times(),
        "network_cpu_time": used.own_cpu_time(),
        **host.clock(),
    }


def _shares(earlier: Mapping[str, Any], later: Mapping[str, Any], idle: float) -> Dict[str, Any]:
    """What was counted in between, and whose the machine's CPU time was.

    host_cpu_time [s] is that of all processors; network_cpu_time of all between the nodes, and of perf where it counts;
    baseline_cpu_time what the machine did by itself, at `idle` CPU-seconds a second, and unattributed_cpu_time the
    rest: below 0 where the machine had too much else to do for its baseline to mean anything.
    """
    grown = {key: _difference(earlier[key], later[key]) for key in earlier}
    grown["baseline_cpu_time"] = idle * grown.pop("elapsed")
    known = sum(grown["cpu_time"]) + grown["network_cpu_time"] + grown["baseline_cpu_time"]
    return {**grown, "unattributed_cpu_time": grown["host_cpu_time"] - known}


def _difference(before: Any, after: Any) -> Any:
    if isinstance(before, list):
        return [now - then for then, now in zip(before, after)]
    return after - before
