"""CPU quotas by cgroup version 1 and 2; version 2 in a fake tree of plain files."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.record import FalloffError
from runners.testbeds import cgroup, delegated


def mounts(folder, *lines):
    """A table as in /proc/self/mounts."""
    file = folder / "mounts"
    file.write_text("".join(f"cgroup {line} 0 0\n" for line in lines))
    return file


@pytest.fixture
def version_2(tmp_path):
    """A fake cgroup2 tree whose root offers the cpu controller."""
    root = tmp_path / "unified"
    root.mkdir()
    (root / "cgroup.controllers").write_text("cpuset cpu io memory\n")
    return cgroup.find(mounts(tmp_path, f"{root} cgroup2 rw,nosuid"))


@pytest.fixture
def version_1(tmp_path):
    """A fake tree with cpu and cpuacct mounted apart, beside a cgroup2 without the cpu controller."""
    roots = {name: tmp_path / "hybrid" / name for name in ("cpu", "cpuacct", "unified")}
    for root in roots.values():
        root.mkdir(parents=True)
    (roots["unified"] / "cgroup.controllers").write_text("\n")
    return cgroup.find(
        mounts(
            tmp_path,
            f"{roots['cpu']} cgroup rw,relatime,cpu",
            f"{roots['cpuacct']} cgroup rw,relatime,cpuacct",
            f"{roots['unified']} cgroup2 rw",
        )
    )


def test_version_2_is_found_where_it_has_the_controller(version_2):
    """A cgroup2 mount that offers cpu limits and accounts."""
    assert version_2.version == 2 and version_2.cpu == version_2.accounting


def test_version_1_is_found_beside_an_empty_version_2(version_1):
    """On a hybrid machine the controller is where version 1 holds it, accounting where it is mounted."""
    assert version_1.version == 1
    assert (version_1.cpu.name, version_1.accounting.name) == ("cpu", "cpuacct")


def test_joint_version_1_mount_is_one_folder(tmp_path):
    """cpu,cpuacct mounted together: a group is one folder with one entrance."""
    root = tmp_path / "cpu,cpuacct"
    root.mkdir()
    joint = cgroup.find(mounts(tmp_path, f"{root} cgroup rw,cpu,cpuacct"))
    assert cgroup.entrances(joint, "a/n1") == [root / "a/n1/cgroup.procs"]


def test_no_controller_is_refused_with_the_remedy(tmp_path):
    """Nothing mounted: the message says what to mount."""
    with pytest.raises(FalloffError, match="mount -t cgroup2"):
        cgroup.find(mounts(tmp_path, "/sys/fs/cgroup/memory cgroup rw,memory"))


DELEGATED = {
    "v2": "0::/user.slice/mine\n",
    "settled": "0::/user.slice/mine/falloff-callers\n",
    "v1": "3:memory:/\n2:cpuacct:/user.slice/mine\n1:cpu:/user.slice/mine\n0::/elsewhere\n",
}


@pytest.mark.parametrize(
    ("version", "listing"), [("version_2", "v2"), ("version_2", "settled"), ("version_1", "v1")]
)
def test_user_gets_the_group_that_is_delegated(request, tmp_path, monkeypatch, version, listing):
    """Where the tree's root is closed: the process's own group in each tree, or the one that it was settled in."""
    whole = request.getfixturevalue(version)
    for folder in whole.folders("user.slice/mine"):
        folder.mkdir(parents=True)
        (folder / "cgroup.controllers").write_text("cpu memory")
    monkeypatch.setattr(cgroup.os, "access", lambda folder, mode: folder.name == "mine")
    (tmp_path / "own").write_text(DELEGATED[listing])
    part = cgroup.find(tmp_path / "mounts", tmp_path / "own")
    assert part.folders("") == whole.folders("user.slice/mine")


def test_group_without_the_controller_is_of_no_use(version_2, tmp_path, monkeypatch):
    """A group that is the user's own, of which only memory was delegated."""
    folder = version_2.cpu / "user.slice/mine"
    folder.mkdir(parents=True)
    (folder / "cgroup.controllers").write_text("memory pids")
    monkeypatch.setattr(cgroup.os, "access", lambda folder, mode: folder.name == "mine")
    (tmp_path / "own").write_text(DELEGATED["v2"])
    with pytest.raises(FalloffError, match="Delegate=cpu"):
        cgroup.find(tmp_path / "mounts", tmp_path / "own")


def test_user_without_a_group_is_told_the_ways(version_1, tmp_path, monkeypatch):
    """No group is writable: root, a group of one's own, or no quota."""
    monkeypatch.setattr(cgroup.os, "access", lambda folder, mode: False)
    (tmp_path / "own").write_text(DELEGATED["v1"])
    with pytest.raises(FalloffError, match="sudo; or .* Delegate=cpu .*; or .* testbed rootless"):
        cgroup.find(tmp_path / "mounts", tmp_path / "own")


def version_2_mounts() -> list[Path]:
    """Where this machine has a tree of version 2, with or without the cpu controller."""
    lines = map(str.split, Path("/proc/self/mounts").read_text().splitlines())
    return [Path(folder) for _, folder, kind, *_ in lines if kind == "cgroup2" and os.access(folder, os.W_OK)]


@pytest.mark.skipif(not version_2_mounts(), reason="no writable cgroup of version 2")
def test_processes_of_a_divided_group_settle_below_it():
    """The real kernel: what is in the group moves, once, and the group itself is free to be divided."""
    group = version_2_mounts()[0] / f"falloff-test-{os.getpid()}"
    group.mkdir()
    child = subprocess.Popen(["sleep", "60"])
    try:
        (group / "cgroup.procs").write_text(str(child.pid))
        for _ in range(2):
            delegated.settle(group)
            assert (group / "cgroup.procs").read_text() == ""
            assert (group / "falloff-callers/cgroup.procs").read_text().split() == [str(child.pid)]
    finally:
        child.kill()
        child.wait()
        cgroup.remove(cgroup.Hierarchy(2, group, group), "")


def test_version_2_group_delegates_cpu_and_limits_its_leaf(version_2):
    """The controller is enabled at the root and in the group, and the leaf gets `quota period`."""
    cgroup.create(version_2, "falloff-x")
    cgroup.create_leaf(version_2, "falloff-x/n1")
    cgroup.limit(version_2, "falloff-x/n1", 1000, 10000)
    for folder in (version_2.cpu, version_2.cpu / "falloff-x"):
        assert (folder / "cgroup.subtree_control").read_text() == "+cpu"
    assert not (version_2.cpu / "falloff-x/n1/cgroup.subtree_control").exists()
    assert (version_2.cpu / "falloff-x/n1/cpu.max").read_text() == "1000 10000"
    assert cgroup.share(version_2, "falloff-x/n1") == 0.1
    assert cgroup.entrances(version_2, "falloff-x/n1") == [version_2.cpu / "falloff-x/n1/cgroup.procs"]


def test_version_1_group_is_made_in_both_trees(version_1):
    """Limit in one tree, accounting in the other: a process must enter both."""
    cgroup.create(version_1, "falloff-x")
    cgroup.create_leaf(version_1, "falloff-x/n1")
    cgroup.limit(version_1, "falloff-x/n1", 1000, 20000)
    assert (version_1.cpu / "falloff-x/n1/cpu.cfs_period_us").read_text() == "20000"
    assert (version_1.cpu / "falloff-x/n1/cpu.cfs_quota_us").read_text() == "1000"
    assert cgroup.share(version_1, "falloff-x/n1") == 0.05
    assert len(cgroup.entrances(version_1, "falloff-x/n1")) == 2


@pytest.mark.parametrize("unlimited", ["max 100000\n", "-1"])
def test_no_limit_reads_as_infinite(version_1, version_2, unlimited):
    """An unlimited group has no share that could be mistaken for a number."""
    hierarchy = version_2 if "max" in unlimited else version_1
    cgroup.create_leaf(hierarchy, "n1")
    (hierarchy.cpu / "n1" / ("cpu.max" if "max" in unlimited else "cpu.cfs_quota_us")).write_text(unlimited)
    (hierarchy.cpu / "n1/cpu.cfs_period_us").write_text("100000")
    assert cgroup.share(hierarchy, "n1") == float("inf")


def test_cpu_time_is_in_seconds_in_both_versions(version_1, version_2):
    """Nanoseconds in version 1, microseconds in version 2."""
    for hierarchy, file, text in (
        (version_1, "cpuacct.usage", "1500000000\n"),
        (version_2, "cpu.stat", "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n"),
    ):
        cgroup.create_leaf(hierarchy, "n1")
        (hierarchy.accounting / "n1" / file).write_text(text)
        assert cgroup.cpu_time(hierarchy, "n1") == 1.5


def test_processes_below_a_group_are_found(version_2):
    """All ids in the group's own list and in those of the groups in it, each once."""
    for group, listed in (("a", ""), ("a/n1", "12\n13\n"), ("a/n2", "14\n"), ("b", "99\n")):
        cgroup.create_leaf(version_2, group)
        (version_2.cpu / group / "cgroup.procs").write_text(listed)
    assert cgroup.processes(version_2, "a") == {12, 13, 14}


@given(share=st.floats(0.001, 1.0), period=st.integers(1000, 1_000_000))
def test_quota_is_the_share_or_refused_with_a_period_that_works(share, period):
    """Never a slice below 1 ms; the period that the message names is accepted."""
    try:
        assert cgroup.quota_us(share, period) == pytest.approx(share * period, abs=0.5)
    except FalloffError as error:
        assert share * period < 1000
        assert cgroup.quota_us(share, int(str(error).split("cpu.period_us to ")[1].split()[0])) >= 1000


@pytest.mark.parametrize("share", [0, -0.1, 1.5])
def test_share_must_be_a_part_of_one_core(share):
    """A node stays on one processor, so it can have no more than that."""
    with pytest.raises(FalloffError, match="cpu.share"):
        cgroup.quota_us(share, 100000)
