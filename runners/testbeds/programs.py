"""Execute programs, each with its output kept, its time limited and its CPU time counted."""

import math
import os
import signal
import subprocess
import threading
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, ContextManager, Mapping, Optional, Sequence

from runners.record import Command, Execution, FalloffError
from runners.testbeds import netns

_PATIENCE_S = 5.0
_STEP_S = 0.002


@dataclass
class Started:
    """A program that was started: its tool and argv, and where its output goes.

    `cpu_time` [s] is that of the program and of those that it waited for; NaN until it has ended.
    """

    tool: str
    argv: Sequence[str]
    process: "subprocess.Popen[bytes]"
    output: Path
    complaints: Path
    start: float
    begin: float
    cpu_time: float = math.nan

    def poll(self) -> Optional[int]:
        """The exit code, None while it runs."""
        return self._collect(os.WNOHANG)

    def wait(self, limit_s: Optional[float] = None) -> Optional[int]:
        """Wait for its end, at most so many seconds, and return the exit code, None when it still runs.

        Without a limit this process sleeps, so that it disturbs no measurement.
        """
        deadline = None if limit_s is None else time.monotonic() + limit_s
        while self._collect(0 if deadline is None else os.WNOHANG) is None:
            if deadline is not None and time.monotonic() > deadline:
                break
            time.sleep(_STEP_S)  # or another thread has collected it, and is about to say so
        return self.process.returncode

    def _collect(self, options: int) -> Optional[int]:
        """The exit code; subprocess would forget the CPU time."""
        if self.process.returncode is None:
            with suppress(ChildProcessError):
                ended, status, used = os.wait4(self.process.pid, options)
                if ended:
                    self.cpu_time = used.ru_utime + used.ru_stime
                    self.process.returncode = os.waitstatus_to_exitcode(status)
        return self.process.returncode

    def signal(self, number: int) -> None:
        """Send it a signal unless it has ended."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, number)


def start(
    tool: str,
    argv: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    space: Optional[Path] = None,
    stdin: int = subprocess.DEVNULL,
) -> Started:
    """Start a program in `folder`, in the network namespace of `space` from its first moment.

    Output goes to files: a child of it that lives on could hold a pipe open, or fill it. `stdin` is as
    subprocess.Popen takes it.
    """
    stem = folder / f".{time.monotonic_ns()}"
    output, complaints = stem.with_suffix(".stdout"), stem.with_suffix(".stderr")
    place: ContextManager[None] = netns.entered(space) if space else nullcontext()
    with open(output, "wb") as stdout, open(complaints, "wb") as stderr, place:
        begun = time.time(), time.monotonic()
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=dict(environment),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,  # Ctrl-C is for the testbed, which then ends its programs
        )
    return Started(tool, argv, process, output, complaints, *begun)


def finish(
    started: Started, limit_s: float, stop: Optional[Callable[[], None]] = None
) -> Execution:
    """Wait for a program, at most `limit_s` seconds; then it is stopped, by `stop` or else killed. What it started
    itself is not."""
    timer = threading.Timer(limit_s, stop or (lambda: started.signal(signal.SIGKILL)))
    timer.start()
    try:
        exit_code = started.wait()
    finally:
        timer.cancel()
    timed_out = time.monotonic() - started.begin >= limit_s
    return _execution(started, None if timed_out else exit_code, timed_out)


def end(started: Started) -> Execution:
    """End a server. That we ended it is as it should be: exit code 0, but its own if it ended before."""
    exit_code = started.poll()
    if exit_code is None:
        started.signal(signal.SIGTERM)
        if started.wait(_PATIENCE_S) is None:
            started.signal(signal.SIGKILL)
            started.wait()
        exit_code = 0
    return _execution(started, exit_code)


def _execution(started: Started, exit_code: Optional[int], timed_out: bool = False) -> Execution:
    return Execution(
        tool=started.tool,
        argv=tuple(started.argv),
        stdout=started.output.read_text(encoding="utf-8", errors="replace"),
        stderr=started.complaints.read_text(encoding="utf-8", errors="replace"),
        exit_code=exit_code,
        start=started.start,
        wall_s=time.monotonic() - started.begin,
        timed_out=timed_out,
    )


def serves(
    command: Command, started: Started, listens: Callable[[], bool], patience_s: float = _PATIENCE_S
) -> bool:
    """Wait until a server listens, if it is to; False when it ended by itself.

    Raises FalloffError when it does not in time.
    """
    if not command.listens or _becomes(started, listens, patience_s):
        return True
    if started.poll() is None:
        where = f"on node {command.node} does not listen on port {command.listens}"
        raise FalloffError(f"{started.tool} {where}")
    return False


def _becomes(started: Started, ready: Callable[[], bool], patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while started.poll() is None and time.monotonic() < deadline:
        if ready():
            return True
        time.sleep(_STEP_S)
    return False


def awaited(started: Started, space: Path, interface: str) -> Started:
    """The program when the last interface that it makes is there; raises FalloffError when it ends before."""

    def has_interface() -> bool:
        with netns.entered(space):
            return f"{interface}:" in Path("/proc/thread-self/net/dev").read_text()

    if not _becomes(started, has_interface, _PATIENCE_S):
        complaint = started.complaints.read_text(encoding="utf-8", errors="replace").strip()
        raise FalloffError(f"{started.tool} does not start: {complaint or 'it made no interface'}")
    return started
