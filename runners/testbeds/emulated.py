"""The emulated testbed: a cluster of network namespaces on this machine, with real TCP and real MPI.

A node is a network namespace with a hostname, an address and a CPU quota of its own; nodes are joined
by veth pairs to a bridge and shaped by tc at both ends of each link.
"""

import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any, Dict, Iterator, List, Mapping, Sequence

from runners import tools
from runners.record import Command, Execution, FalloffError, Transcript, Trial
from runners.testbeds import cgroup, launch, lease, links, netns, readback
from runners.testbeds.available import unavailable
from runners.testbeds.quota import Quotas, group, quotas

__all__ = ["STANDS_FOR", "Emulated", "open_testbed", "unavailable"]

STANDS_FOR: Dict[str, str] = {}  # every tool runs itself


@contextmanager
def open_testbed(description: Mapping[str, Any], interconnects: Mapping[str, Any]) -> Iterator["Emulated"]:
    """Build the nodes and take them down on leaving, whatever happens; SIGTERM becomes SystemExit.

    What testbeds left behind whose owner was killed is removed first. `description` is a file of
    data/testbeds, `interconnects` is data/interconnects.toml, both parsed.
    Raises FalloffError when it cannot run here, with the remedies.
    """
    reasons = unavailable(description)
    if reasons:
        raise FalloffError("the emulated testbed cannot run here: " + "; ".join(reasons))
    with lease.sigterm_exits(), lease.held(_demolish) as state:
        nodes = range(1, description["nodes"] + 1)
        limits = quotas(state, nodes, description["cpu"])
        links.build(state, len(nodes))
        limits.build()
        launch.prepare(state, nodes)
        testbed = Emulated(state, limits, description, interconnects)
        testbed.configure(next(iter(interconnects)))
        yield testbed


def _demolish(state: Path) -> None:
    hierarchy = cgroup.find()
    cgroup.kill(hierarchy, group(state))
    netns.release(state)
    cgroup.remove(hierarchy, group(state))
    shutil.rmtree(state)


@dataclass(frozen=True)
class Emulated:
    """The testbed while it is up: `state` is its folder, whose name tags everything it made."""

    state: Path
    quotas: Quotas
    description: Mapping[str, Any]
    interconnects: Mapping[str, Any]

    evidence = "emulated"
    at_once = 1  # its nodes share one machine, and one trial must not disturb another

    @property
    def name(self) -> str:
        """The testbed's name, as its description gives it."""
        return self.description["name"]

    @property
    def nodes(self) -> int:
        """How many nodes are up."""
        return self.description["nodes"]

    def configure(self, interconnect: str) -> links.Link:
        """Turn every link into that interconnect, and say what that is."""
        asked = self.interconnects[interconnect]
        tcp, offloads = self.description["tcp"], self.description["offloads"]
        link = links.Link(asked.get("rate_bit_s"), asked["mtu"], tcp, offloads)
        links.configure(self.state, self.nodes, link)
        return link

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
        """Give the links the trial's interconnect, run the commands in order, read back and count.

        Commands stop at the first that fails. Servers, and whatever else still runs, end with the trial.
        Counters are `bytes_sent` and `bytes_received` (B, by the node's interface) and `cpu_time`
        (s, inside the quota). The testbed's own failures become the transcript's `fault`.
        """
        requested: Dict[str, Any] = {}
        effective: Dict[str, Any] = {}
        counters: Dict[str, List[float]] = {}
        executions: List[Execution] = []
        fault = ""
        try:
            link = self.configure(trial.point["interconnect"])
            requested.update(link.settings(), cpu_share=self.quotas.share)
            self.quotas.renew()
            earlier = readback.byte_counts(self.state, self.nodes)
            launch.execute(commands, self.state, self.quotas, self._tool, executions)
            later = readback.byte_counts(self.state, self.nodes)
            counters.update(_counters(earlier, later, self.quotas.cpu_times()))
            effective.update(self._effective())
            ranks = max((command.ranks for command in commands if command.in_quota), default=0)
            if ranks:
                # A node whose quota was used had a rank: the hostname led it there.
                requested["nodes"], effective["nodes"] = ranks, sum(used > 0 for used in counters["cpu_time"])
        except (FalloffError, OSError, CalledProcessError) as error:
            fault = str(error)
        return Transcript(
            trial, self.name, self.evidence, tuple(executions), requested, effective, counters, fault
        )

    def provenance(self) -> Dict[str, Any]:
        """The network side of every node, its processor, and the cgroup version that limits it."""
        spaces = {node: self.state / links.name(node) for node in self.quotas.nodes}
        ask = ["ethtool", "-i", links.INTERFACE]
        drivers = netns.run([netns.Invocation(space, ask) for space in spaces.values()])
        ends = readback.settings(self.state, self.nodes)
        return {
            "cgroup_version": self.quotas.hierarchy.version,
            "nodes": {
                space.name: {
                    "address": links.address(node),
                    "processor": self.quotas.processor(node),
                    "driver": driver.splitlines()[0].partition(": ")[2],
                    **ends[space.name],
                }
                for (node, space), driver in zip(spaces.items(), drivers)
            },
        }

    def _tool(self, tool: str) -> str:
        # Absolute, because it runs in another folder.
        return str(Path(tools.find(tool, self.description.get("tools", {}))).absolute())

    def _effective(self) -> Dict[str, Any]:
        ends = readback.settings(self.state, self.nodes)
        for node, share in zip(self.quotas.nodes, self.quotas.read_back()):
            ends[links.name(node)]["cpu_share"] = share
        return {key: readback.agreed(ends, key) for key in ends[links.name(1)]}


def _counters(earlier: Any, later: Any, cpu_times: List[float]) -> Dict[str, List[float]]:
    sent, received = ([after - before for before, after in zip(*pair)] for pair in zip(earlier, later))
    return {"bytes_sent": sent, "bytes_received": received, "cpu_time": cpu_times}
