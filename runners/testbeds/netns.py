"""Network namespaces: make, enter and release them, and end everything that runs in them.

`ip netns` is not used: `ip netns exec` remounts /sys, and its names are shared by the whole
machine. Here a namespace is a file `net` in a folder of its testbed's state.
"""

import ctypes
import errno
import os
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Callable, NamedTuple

from runners.probes import guard
from runners.records.record import FalloffError

_CLONE_NEWNET = 0x40000000
_PATIENCE_S = 10.0

_libc = ctypes.CDLL(None, use_errno=True)


class Invocation(NamedTuple):
    """A tool to run inside a namespace, with its standard input."""

    space: Path
    argv: Sequence[str]
    stdin: str = ""


def create(*spaces: Path) -> None:
    """Make each folder, and in it a network and a UTS namespace whose hostname is the folder's
    name."""
    invocations = []
    for space in spaces:
        space.mkdir()
        for kind in ("net", "uts"):
            (space / kind).touch()
        files = [f"--net={space}/net", f"--uts={space}/uts"]
        invocations.append(Invocation(space, ["unshare", *files, "hostname", space.name]))
    run(invocations, enter=False)


def batch(tool: str, space: Path, lines: Sequence[str]) -> Invocation:
    """Several commands of `ip` or `tc` in one process; with -json each prints one line."""
    return Invocation(space, [tool, "-json", "-batch", "-"], "\n".join(lines) + "\n")


def inside(space: Path) -> list[str]:
    """The words before a command that is to run in a namespace, hostname included."""
    return ["nsenter", f"--net={space}/net", f"--uts={space}/uts", "--"]


@contextmanager
def entered(space: Path) -> Iterator[None]:
    """Enter the network namespace with this thread only; /proc and new processes show it."""
    with open("/proc/thread-self/ns/net", "rb") as home, open(space / "net", "rb") as target:
        _set(target.fileno())
        try:
            yield
        finally:
            _set(home.fileno())


def _set(namespace: int) -> None:
    if _libc.setns(namespace, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "entering a network namespace")


def run(invocations: Sequence[Invocation], enter: bool = True) -> list[str]:
    """Run tools side by side, each in its namespace, and return their outputs in the same order.

    Without `enter` the namespaces are still to be made. Raises FalloffError with the tool's own
    message if one fails.
    """
    pipe, running = subprocess.PIPE, []
    for invocation in invocations:
        with entered(invocation.space) if enter else nullcontext():
            running.append(
                subprocess.Popen(invocation.argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
            )
    results = [
        process.communicate(invocation.stdin) for process, invocation in zip(running, invocations)
    ]
    for invocation, process, (_, complaint) in zip(invocations, running, results):
        if process.returncode:
            reason = (complaint.strip().splitlines() or [f"exit code {process.returncode}"])[0]
            raise FalloffError(f"{' '.join(invocation.argv)} in {invocation.space.name}: {reason}")
    return [output for output, _ in results]


def listening(space: Path) -> set[int]:
    """The TCP ports that accept connections in the namespace."""
    with entered(space):
        return guard.listening()


def processes(spaces: Sequence[Path]) -> set[int]:
    """The ids of all processes in these namespaces, except this one; those that have ended are not
    listed."""
    inodes = {os.stat(space / "net").st_ino for space in spaces}
    numbers = set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has ended
            if os.stat(f"/proc/{process}/ns/net").st_ino in inodes:
                numbers.add(int(process))
    return numbers - {os.getpid()}


def kill(spaces: Sequence[Path], spared: Collection[int] = ()) -> None:
    """Kill every process in these namespaces except the spared ones; raises FalloffError if one
    does not die."""
    kill_all(lambda: processes(spaces).difference(spared))


def kill_all(left: Callable[[], Collection[int]]) -> None:
    """Kill the processes that `left` returns until there are none, including those being forked
    meanwhile.

    Raises FalloffError if one does not die.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while alive := left():
        if time.monotonic() > deadline:
            raise FalloffError(
                f"processes {sorted(alive)} of the testbed survive SIGKILL: restart the machine"
            )
        for process in alive:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.002)


def with_namespaces(folder: Path) -> list[Path]:
    """The folders below `folder`, at any depth, that keep a namespace alive, even an incomplete
    one."""
    return [Path(mount).parent for mount in _mounts(folder) if mount.endswith("/net")]


def release(folder: Path) -> None:
    """End the programs in the namespaces that are kept below `folder`, and unmount everything
    there, which ends the namespaces."""
    kill(with_namespaces(folder))
    for mount in reversed(_mounts(folder)):
        # umount(8) reads the list of all mounts each time, which took a minute for the 36 nodes of
        # a dozen trials side by side.
        if _libc.umount2(os.fsencode(mount), 0) and ctypes.get_errno() != errno.EINVAL:
            raise OSError(ctypes.get_errno(), "unmounting", mount)


def _mounts(folder: Path) -> list[str]:
    """The mounts below a folder, in the order of mounting: a mount on top of another comes
    later."""
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    return [line.split()[1] for line in lines if line.split()[1].startswith(f"{folder}{os.sep}")]
