"""The cgroup of every node: it counts CPU time and, where a quota is asked for, limits it."""

import shutil
from dataclasses import dataclass, replace
from os import sched_getaffinity
from pathlib import Path
from typing import List, Mapping, Optional, Sequence

from runners.testbeds import cgroup, links, netns


@dataclass(frozen=True)
class Quotas:
    """The cgroups of a testbed: one for each node, on one processor, and one to launch from, not limited.

    A node has `quota_us` of CPU time in every `period_us`; None: as much as it takes.
    """

    hierarchy: cgroup.Hierarchy
    state: Path
    nodes: range
    quota_us: Optional[int] = None
    period_us: int = 0

    @property
    def share(self) -> float:
        """The part of one core that each node may use; inf when it has no quota."""
        return float("inf") if self.quota_us is None else self.quota_us / self.period_us

    @property
    def cgroup_version(self) -> int:
        """Of the cgroups that are used, 1 or 2."""
        return self.hierarchy.version

    @property
    def entrances(self) -> List[Path]:
        """What a process joins that launches others outside the quota."""
        return cgroup.entrances(self.hierarchy, f"{group(self.state)}/launch")

    def build(self) -> None:
        """Make all cgroups."""
        cgroup.create(self.hierarchy, group(self.state))
        cgroup.create_leaf(self.hierarchy, f"{group(self.state)}/launch")
        for node in self.nodes:
            self._make(node)

    def entrances_of(self, node: int) -> List[Path]:
        """What a process joins whose CPU time is a node's."""
        return cgroup.entrances(self.hierarchy, self._of(node))

    def renew(self) -> None:
        """Make the nodes' cgroups again, empty, their CPU time at zero.

        The kernel gives each quota's timer a random phase when its cgroup is made. One that lived
        through a campaign would make that luck a constant; renewed it is noise from trial to trial.
        """
        for node in self.nodes:
            cgroup.remove(self.hierarchy, self._of(node))
            self._make(node)

    def read_back(self) -> List[float]:
        """The share of each node as the kernel has it."""
        return [cgroup.share(self.hierarchy, self._of(node)) for node in self.nodes]

    def cpu_times(self) -> List[float]:
        """CPU time in s that each node has used since its cgroup was made."""
        return [cgroup.cpu_time(self.hierarchy, self._of(node)) for node in self.nodes]

    def occupied(self) -> int:
        """How many nodes had a program since the trial began: it used CPU time."""
        return sum(used > 0 for used in self.cpu_times())

    def kill(self) -> None:
        """Kill every process of the testbed."""
        cgroup.kill(self.hierarchy, group(self.state))

    def processor(self, node: int) -> int:
        """The processor that a node stays on."""
        return processor(node)

    def _of(self, node: int) -> str:
        return f"{group(self.state)}/{links.name(node)}"

    def _make(self, node: int) -> None:
        cgroup.create_leaf(self.hierarchy, self._of(node))
        if self.quota_us is not None:
            cgroup.limit(self.hierarchy, self._of(node), self.quota_us, self.period_us)
        tell(self.state, node, self.entrances_of(node))


def processor(node: int) -> int:
    """The processor that a node stays on: all of this machine's in turn."""
    here = sorted(sched_getaffinity(0))
    return here[(node - 1) % len(here)]


def tell(state: Path, node: int, entrances: Sequence[Path]) -> None:
    """Write for enter_quota.py on which processor a node's programs stay, and what they join."""
    (state / links.name(node) / "quota").write_text("\n".join(map(str, [processor(node), *entrances])))


def group(state: Path) -> str:
    """The cgroup that holds all of a testbed's processes."""
    return f"falloff-{state.name}"


def demolish(state: Path) -> None:
    """Remove all that was made below a testbed's state folder, that, and the testbed's cgroups."""
    hierarchy = cgroup.find()
    cgroup.kill(hierarchy, group(state))
    netns.release(state)
    cgroup.remove(hierarchy, group(state))
    shutil.rmtree(state)


def quotas(state: Path, nodes: range, cpu: Mapping[str, float]) -> Quotas:
    """The quotas that `cpu` (share, period_us) of a testbed's description asks for; nothing is made yet."""
    quota, period = cgroup.quota_us(cpu["share"], cpu["period_us"]), cpu["period_us"]
    return Quotas(cgroup.find(), state, nodes, quota, period)


def unlimited(state: Path, nodes: range) -> Quotas:
    """Cgroups that count and do not limit; nothing is made yet.

    Where the tree that counts is not the one that schedules (version 1), nodes are in the first only: in the
    second all of them together would weigh no more than any one program beside them.
    """
    hierarchy = cgroup.find()
    return Quotas(replace(hierarchy, cpu=hierarchy.accounting), state, nodes)
