"""The CPU quota of a node, and a handle on every process of a testbed, by cgroup version 1 or 2."""

import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Dict, List, Set, Tuple

from runners.record import FalloffError
from runners.testbeds import delegated

# The kernel refuses a shorter slice (min_cfs_quota_period in kernel/sched).
SHORTEST_SLICE_US = 1000

_PATIENCE_S = 10.0

_PF_KTHREAD = 0x00200000  # include/linux/sched.h


@dataclass(frozen=True)
class Hierarchy:
    """Where the machine's cgroups are mounted: `cpu` limits CPU time, `accounting` counts it.

    In version 2 both are the one tree; in version 1 they may be mounted apart.
    """

    version: int
    cpu: Path
    accounting: Path

    def folders(self, group: str) -> Tuple[Path, ...]:
        """The folders of a group, each tree once."""
        return tuple(sorted({self.cpu / group, self.accounting / group}))


def find(mounts: Path = Path("/proc/self/mounts"), own: Path = Path("/proc/self/cgroup")) -> Hierarchy:
    """The cgroup tree that holds the cpu controller, or that part of it which is ours to divide.

    That is the group that this process is in, where somebody has delegated it to the user.
    Raises FalloffError with the remedy when there is none.
    """
    version_1: Dict[str, Path] = {}
    version_2 = None
    for line in mounts.read_text(encoding="utf-8").splitlines():
        _, folder, kind, options = line.split()[:4]
        if kind == "cgroup":
            version_1.update((option, Path(folder)) for option in options.split(","))
        elif kind == "cgroup2" and _has_cpu(Path(folder)):
            version_2 = Path(folder)
    if version_2:
        whole = Hierarchy(2, version_2, version_2)
    elif {"cpu", "cpuacct"} <= set(version_1):
        whole = Hierarchy(1, version_1["cpu"], version_1["cpuacct"])
    else:
        raise FalloffError("no cgroup cpu controller is mounted: mount -t cgroup2 none /sys/fs/cgroup")
    for hierarchy in (whole, _part(whole, own.read_text(encoding="utf-8"))):
        writable = all(os.access(folder, os.W_OK) for folder in hierarchy.folders(""))
        if writable and (hierarchy.version == 1 or _has_cpu(hierarchy.cpu)):
            return hierarchy
    raise FalloffError(
        f"no cgroup of {whole.cpu} can be divided, for CPU quotas: run it with sudo; or in a cgroup of your own, as in "
        "`systemd-run --user --scope -p Delegate=cpu falloff ...`; or without quotas, on testbed rootless"
    )


def _has_cpu(group: Path) -> bool:
    """Whether a group of version 2 has the cpu controller to hand down."""
    return "cpu" in (group / "cgroup.controllers").read_text().split()


def _part(whole: Hierarchy, listing: str) -> Hierarchy:
    """The groups in which the process is whose /proc/PID/cgroup is `listing`."""
    cpu, accounting = ("", "") if whole.version == 2 else ("cpu", "cpuacct")
    return replace(
        whole,
        cpu=delegated.own(whole.cpu, cpu, listing),
        accounting=delegated.own(whole.accounting, accounting, listing),
    )


def quota_us(share: float, period_us: int) -> int:
    """CPU time in us that a node may use in each period, for a share of one core (0 < share <= 1).

    Raises FalloffError when the kernel would refuse so short a slice.
    """
    if not 0 < share <= 1:
        raise FalloffError(f"cpu.share is {share}: it must be above 0 and at most 1, the part of one core")
    quota = round(share * period_us)
    if quota < SHORTEST_SLICE_US:
        raise FalloffError(
            f"cpu.share {share} of a period of {period_us} us is a slice of {quota} us, the kernel takes no "
            f"less than {SHORTEST_SLICE_US}: set cpu.period_us to {round(SHORTEST_SLICE_US / share)} or more"
        )
    return quota


def create(hierarchy: Hierarchy, group: str) -> None:
    """Make a group that will hold other groups but no processes of its own (version 2 demands that)."""
    for folder in hierarchy.folders(group):
        folder.mkdir()
    if hierarchy.version == 2:
        for folder in (hierarchy.cpu, hierarchy.cpu / group):
            (folder / "cgroup.subtree_control").write_text("+cpu")


def create_leaf(hierarchy: Hierarchy, group: str) -> None:
    """Make a group for processes, without a limit."""
    for folder in hierarchy.folders(group):
        folder.mkdir()


def limit(hierarchy: Hierarchy, group: str, quota: int, period: int) -> None:
    """Let a group use `quota` us of CPU time in every `period` us."""
    folder = hierarchy.cpu / group
    if hierarchy.version == 2:
        (folder / "cpu.max").write_text(f"{quota} {period}")
    else:
        (folder / "cpu.cfs_period_us").write_text(str(period))
        (folder / "cpu.cfs_quota_us").write_text(str(quota))


def share(hierarchy: Hierarchy, group: str) -> float:
    """The part of one core that a group may use, read back; inf when it has no limit."""
    folder = hierarchy.cpu / group
    if hierarchy.version == 2:
        quota, period = (folder / "cpu.max").read_text().split()
    else:
        quota, period = (folder / "cpu.cfs_quota_us").read_text(), (folder / "cpu.cfs_period_us").read_text()
    return float("inf") if quota.strip() in ("max", "-1") else int(quota) / int(period)


def cpu_time(hierarchy: Hierarchy, group: str) -> float:
    """CPU time in s that the processes of a group have used since it was made."""
    if hierarchy.version == 2:
        lines = (hierarchy.accounting / group / "cpu.stat").read_text().splitlines()
        return int(dict(line.split() for line in lines)["usage_usec"]) / 1e6
    return int((hierarchy.accounting / group / "cpuacct.usage").read_text()) / 1e9


def entrances(hierarchy: Hierarchy, group: str) -> List[Path]:
    """The files into which a process writes its id to join a group."""
    return [folder / "cgroup.procs" for folder in hierarchy.folders(group)]


def processes(hierarchy: Hierarchy, group: str) -> Set[int]:
    """The ids of all processes in a group and in the groups below it."""
    listings = (listing for folder in hierarchy.folders(group) for listing in folder.rglob("cgroup.procs"))
    return {int(process) for listing in listings for process in listing.read_text().split()}


def _is_of_the_kernel(process: int) -> bool:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended: nothing to spare
        return False
    return bool(int(fields[6]) & _PF_KTHREAD)


def kill(hierarchy: Hierarchy, group: str) -> None:
    """Kill every process in a group and below it, those too that are being forked meanwhile.

    The kernel's own threads cannot be killed; they end with what they serve.
    Raises FalloffError when one does not die.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        left = [process for process in processes(hierarchy, group) if not _is_of_the_kernel(process)]
        if not left:
            return
        if time.monotonic() > deadline:
            raise FalloffError(f"processes {sorted(left)} of {group} survive SIGKILL: restart the machine")
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.002)


def remove(hierarchy: Hierarchy, group: str) -> None:
    """Remove a group and all below it; it must be free of processes. It need not be there."""
    for top in hierarchy.folders(group):
        for folder, _, _ in os.walk(top, topdown=False):
            _remove_folder(Path(folder))


def _remove_folder(folder: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            folder.rmdir()
            return
        except OSError:
            # A process that is gone from the list may hold its group for another moment.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.002)
