"""Network namespaces: made, entered and released.

`ip netns` is not used: `ip netns exec` remounts /sys and so loses the cgroups, and its names are
one list for the whole machine. A namespace is here a file `net` in the state folder of its testbed.
"""

import ctypes
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Sequence, Set

from runners.record import FalloffError

_CLONE_NEWNET = 0x40000000
_LISTENING = "0A"

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Invocation:
    """A tool to run inside a namespace, with what it reads from standard input."""

    space: Path
    argv: Sequence[str]
    stdin: str = ""


def create(space: Path) -> None:
    """Make the folder `space` and in it a network and a UTS namespace whose hostname is its name."""
    space.mkdir()
    for kind in ("net", "uts"):
        (space / kind).touch()
    argv = ["unshare", f"--net={space}/net", f"--uts={space}/uts", "hostname", space.name]
    subprocess.run(argv, check=True, capture_output=True)


def inside(space: Path) -> List[str]:
    """The words before a command that is to run in a namespace, hostname included."""
    return ["nsenter", f"--net={space}/net", f"--uts={space}/uts", "--"]


@contextmanager
def entered(space: Path) -> Iterator[None]:
    """Be in the network namespace, this thread only: /proc and new processes show it."""
    with open("/proc/thread-self/ns/net", "rb") as home, open(space / "net", "rb") as there:
        _set(there.fileno())
        try:
            yield
        finally:
            _set(home.fileno())


def _set(namespace: int) -> None:
    if _libc.setns(namespace, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "entering a network namespace")


def run(invocations: Sequence[Invocation]) -> List[str]:
    """Run tools side by side, each in its namespace, and return what they print, in the same order.

    Raises FalloffError with the tool's own words when one fails.
    """
    running = [_start(invocation) for invocation in invocations]
    results = [process.communicate(invocation.stdin) for process, invocation in zip(running, invocations)]
    for invocation, process, (_, complaint) in zip(invocations, running, results):
        if process.returncode:
            said = complaint.strip().splitlines()[:1] or [f"exit code {process.returncode}"]
            raise FalloffError(f"{' '.join(invocation.argv)} in {invocation.space.name}: {said[0]}")
    return [output for output, _ in results]


def _start(invocation: Invocation) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    with entered(invocation.space):
        return subprocess.Popen(invocation.argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def listening(space: Path) -> Set[int]:
    """The TCP ports on which somebody accepts connections in the namespace."""
    ports = set()
    with entered(space):
        for family in ("tcp", "tcp6"):
            table = Path("/proc/thread-self/net") / family
            if not table.exists():  # a kernel without IPv6
                continue
            for row in table.read_text().splitlines()[1:]:
                _, local, _, state = row.split()[:4]
                if state == _LISTENING:
                    ports.add(int(local.rpartition(":")[2], 16))
    return ports


def release(folder: Path) -> None:
    """Unmount every namespace that is kept below `folder`; an unused one ends with that."""
    mounts = (line.split()[1] for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines())
    kept = [mount for mount in mounts if mount.startswith(f"{folder}{os.sep}")]
    if kept:
        subprocess.run(["umount", *kept], check=True, capture_output=True)
