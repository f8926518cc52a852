"""The emulated testbed: a cluster of network namespaces on this machine, with real TCP and real MPI.

A node is a network namespace with a hostname, an address and, if its description gives it a share of a core, a CPU
quota of its own; nodes are joined by veth pairs to a bridge and shaped by tc at both ends of each link. With two
`rails` each has a link to either of two bridges, and a trial's `aggregation` says how it uses them.
"""

import os
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any, ContextManager, Dict, Iterator, List, Mapping, Sequence, Tuple, Union

from runners import tools
from runners.record import Command, Execution, FalloffError, Transcript, Trial
from runners.testbeds import aggregation, available, bonds, launch, lease, links, netns
from runners.testbeds import quota, readback, rootless, uncounted

__all__ = ["STANDS_FOR", "Emulated", "open_testbed", "unavailable"]

STANDS_FOR: Dict[str, str] = {}  # every tool runs itself


def unavailable(description: Mapping[str, Any]) -> List[str]:
    """One line, with the remedy, for each reason why the emulated testbed cannot run here."""
    return (available if _is_for_root(description) else rootless).unavailable(description)


@contextmanager
def open_testbed(
    description: Mapping[str, Any], interconnects: Mapping[str, Any]
) -> Iterator[Union["Emulated", rootless.Rootless]]:
    """Build the nodes and take them down on leaving, whatever happens; SIGTERM becomes SystemExit.

    What testbeds left behind whose owner was killed is removed first. `description` is a file of
    data/testbeds, `interconnects` is data/interconnects.toml, both parsed. Without root, or without a share of a
    core in `cpu`, it is up in a user namespace.
    Raises FalloffError when it cannot run here, with the remedies.
    """
    opened = up if _is_for_root(description) else rootless.open_testbed
    with lease.sigterm_exits(), opened(description, interconnects) as testbed:
        yield testbed


def _is_for_root(description: Mapping[str, Any]) -> bool:
    """Whether root is here and needed: nodes without a quota are the same for everybody."""
    return os.geteuid() == 0 and "share" in description["cpu"]


@contextmanager
def up(
    description: Mapping[str, Any], interconnects: Mapping[str, Any], states: Path = lease.ROOT
) -> Iterator["Emulated"]:
    """What `open_testbed` does, for root or root of a user namespace; state folders are made in `states`."""
    reasons = available.unavailable(description)
    if reasons:
        raise FalloffError("the emulated testbed cannot run here: " + "; ".join(reasons))
    nodes, cpu = range(1, description["nodes"] + 1), description["cpu"]
    demolish = quota.demolish if "share" in cpu else uncounted.demolish
    with lease.held(demolish, states) as state:
        limits = quota.quotas(state, nodes, cpu) if "share" in cpu else uncounted.Uncounted(state, nodes)
        links.build(state, len(nodes), description.get("rails", 1))
        limits.build()
        launch.prepare(state, nodes)
        testbed = Emulated(state, limits, description, interconnects)
        testbed.configure(next(iter(interconnects)))
        yield testbed


@dataclass(frozen=True)
class Emulated:
    """The testbed while it is up: `state` is its folder, whose name tags everything it made."""

    state: Path
    quotas: Union[quota.Quotas, uncounted.Uncounted]
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

    @property
    def rails(self) -> int:
        """How many links each node has, each to a switch of its own."""
        return self.description.get("rails", 1)

    def configure(
        self, interconnect: str, way: aggregation.Way = aggregation.ONE_LINK, seed: int = 0
    ) -> Dict[str, Any]:
        """Turn every link into that interconnect, used in that way, and say what has to be found then.

        `seed` is that of the kernel's choice among several links.
        """
        asked = self.interconnects[interconnect]
        tcp, offloads = self.description["tcp"], self.description["offloads"]
        link = links.Link(asked.get("rate_bit_s"), asked["mtu"], tcp, offloads)
        links.configure(self.state, self.nodes, link, self.rails)
        routed = aggregation.configure(self.state, self.nodes, way, tcp["congestion_control"], seed)
        return {**link.settings(), **routed}

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
        Counters are `bytes_sent` and `bytes_received` (B, by the node's interfaces), with several rails
        `bytes_sent_rail_1` and so on, and `cpu_time` (s, inside the quota; NaN where nobody counts it). The testbed's
        own failures become the transcript's `fault`.
        """
        requested: Dict[str, Any] = {}
        effective: Dict[str, Any] = {}
        counters: Dict[str, List[float]] = {}
        executions: List[Execution] = []
        fault = ""
        try:
            way = aggregation.way(trial.point, self.rails)
            transport = launch.Transport(way.for_mpi, self._tool("mptcp.so") if way.is_mptcp else "")
            with self._bonded(way):
                # A seed of the block: the luck of the hash is the same for all that is compared within one.
                asked = self.configure(trial.point["interconnect"], way, trial.block)
                requested.update(asked, cpu_share=self.quotas.share)
                self.quotas.renew()
                earlier = self._byte_counts()
                launch.execute(commands, self.state, self.quotas, self._tool, executions, transport)
                counters.update(_counters(earlier, self._byte_counts()), cpu_time=self.quotas.cpu_times())
                effective.update(self._effective())
            nodes = max((command.nodes for command in commands if command.in_quota and command.ranks), default=0)
            if nodes:
                # A node that a program came into had a rank: the hostname led it there.
                requested["nodes"], effective["nodes"] = nodes, self.quotas.occupied()
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
        ends = readback.settings(self.state, self.nodes, self.rails)
        return {
            "cgroup_version": self.quotas.cgroup_version,
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

    def _bonded(self, way: aggregation.Way) -> ContextManager[None]:
        return bonds.bonded(self.state, self.nodes, way.bond) if way.bond else nullcontext()

    def _effective(self) -> Dict[str, Any]:
        ends = readback.settings(self.state, self.nodes, self.rails)
        routed = aggregation.effective(self.state, self.nodes)
        for node, share in zip(self.quotas.nodes, self.quotas.read_back()):
            ends[links.name(node)].update(routed[links.name(node)], cpu_share=share)
        return {key: readback.agreed(ends, key) for key in ends[links.name(1)]}

    def _byte_counts(self) -> "_Counts":
        """Bytes sent and received by every node so far, on each rail."""
        rails = range(1, self.rails + 1)
        return [readback.byte_counts(self.state, self.nodes, links.interface(rail)) for rail in rails]


_Counts = List[Tuple[List[float], List[float]]]


def _counters(earlier: _Counts, later: _Counts) -> Dict[str, List[float]]:
    """What was sent and received in between by each node, on all rails together and, of several, sent on each."""
    grown = [
        [[now - then for then, now in zip(*counts)] for counts in zip(*rail)] for rail in zip(earlier, later)
    ]
    sent, received = ([sum(rails) for rails in zip(*way)] for way in zip(*grown))
    on_rails = {f"bytes_sent_rail_{rail}": own for rail, (own, _) in enumerate(grown, start=1)}
    return {"bytes_sent": sent, "bytes_received": received, **(on_rails if len(grown) > 1 else {})}
