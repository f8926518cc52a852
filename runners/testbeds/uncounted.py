"""Nodes without cgroups, for whoever may make none: their CPU time is neither limited nor counted."""

import math
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import List

from runners.testbeds import descendants, links, netns, quota

UNLIMITED = "unlimited"


@dataclass(frozen=True)
class Uncounted:
    """What `quota.Quotas` is to a testbed, in a process that is the first of a PID namespace (see `descendants`)."""

    state: Path
    nodes: range

    share = UNLIMITED
    cgroup_version = None  # there is none
    entrances = ()

    def build(self) -> None:
        """Tell every node its processor, and where a program says that it came in."""
        for node in self.nodes:
            quota.tell(self.state, node, [self._guests(node)])

    def renew(self) -> None:
        """Forget who came in: a trial begins."""
        for node in self.nodes:
            self._guests(node).write_text("")

    def read_back(self) -> List[str]:
        """That nobody here limits a node; what limits the whole testbed from outside is not seen."""
        return [UNLIMITED for _ in self.nodes]

    def cpu_times(self) -> List[float]:
        """Not known."""
        return [math.nan for _ in self.nodes]

    def occupied(self) -> int:
        """How many nodes a program came into since the trial began."""
        return sum(bool(self._guests(node).read_text()) for node in self.nodes)

    def kill(self) -> None:
        """Kill every process of the testbed."""
        descendants.kill()

    def processor(self, node: int) -> int:
        """The processor that a node stays on."""
        return quota.processor(node)

    def _guests(self, node: int) -> Path:
        return self.state / links.name(node) / "guests"


def demolish(state: Path) -> None:
    """Remove all that was made below a testbed's state folder, and that."""
    descendants.kill()
    netns.release(state)
    shutil.rmtree(state)
