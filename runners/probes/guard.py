#!/usr/bin/env python3
"""Run a program, and end it with everything that it started when the caller is gone.

usage: guard SILENCE FOLDER PORT PROGRAM ARGUMENT...

The caller counts as gone when standard input ends, or is silent for SILENCE seconds. FOLDER is the
program's working folder. If PORT is not 0, the program is a server, and standard error announces
when it listens. The exit code is the program's, or 0 if the guard ended it.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Callable

LISTENS = "falloff: it listens"
TAKEN = 98

_LISTENING = "0A"
_SET_CHILD_SUBREAPER = 36  # prctl(2): orphans become children of this process
_PATIENCE_S = 5.0
_PAUSE_S = 0.01
_PROC = Path("/proc")


def main(silence_s: float, folder: str, port: int, words: list[str]) -> int:
    """Run the program until it ends or we do; return TAKEN without running it if another program
    listens on its port."""
    if port and not _in_time(lambda: port not in listening()):
        print(f"port {port} is taken on this node: end what listens there", file=sys.stderr)
        return TAKEN
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)
    wakes = _wakes_on(signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    program = subprocess.Popen(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    line, awaited, heard = sys.stdin.fileno(), port, time.monotonic()
    while program.poll() is None:
        # It sleeps until something happens, so as not to disturb a measurement.
        ready, _, _ = select.select([line, wakes], [], [], _PAUSE_S if awaited else silence_s)
        if awaited and awaited in listening():
            print(LISTENS, file=sys.stderr, flush=True)
            awaited = 0
        asked = wakes in ready and set(os.read(wakes, 64)) - {signal.SIGCHLD}
        hung_up = line in ready and not os.read(line, 64)
        heard = time.monotonic() if line in ready else heard
        if asked or hung_up or time.monotonic() - heard >= silence_s:
            _end(program)
            return 0
    _end(program)
    return program.returncode if program.returncode >= 0 else 128 - program.returncode


def listening() -> set[int]:
    """The TCP ports that accept connections in this thread's network namespace."""
    ports = set()
    for table in (_PROC / "thread-self/net/tcp", _PROC / "thread-self/net/tcp6"):
        # A kernel without IPv6 has only one of these files.
        for row in table.read_text().splitlines()[1:] if table.exists() else ():
            local, _, state = row.split()[1:4]
            if state == _LISTENING:
                ports.add(int(local.rpartition(":")[2], 16))
    return ports


def _wakes_on(*signals: int) -> int:
    """A file descriptor from which the numbers of these signals can be read when they arrive."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return reader


def _end(program: "subprocess.Popen[bytes]") -> None:
    """End the rest of the program and everything that it started, even daemons: first ask, then
    kill."""

    def nothing_after_kill() -> bool:
        left = _left(program)
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return not left

    if not _left(program):
        return
    with suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGTERM)
    if not _in_time(lambda: not _left(program)):
        _in_time(nothing_after_kill)


def _left(program: "subprocess.Popen[bytes]") -> list[int]:
    """Our children, after reaping those that have ended. Grandchildren become our children when
    their parents end."""
    with suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                break
            if ended.si_pid == program.pid:
                program.poll()  # its exit code is still needed
            else:
                os.waitpid(ended.si_pid, 0)
    children = []
    for stat in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            text = stat.read_text(errors="replace")
            if int(text.rpartition(")")[2].split()[1]) == os.getpid():
                children.append(int(stat.parent.name))
    return children


def _in_time(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S)
    return True


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
