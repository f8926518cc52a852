"""Execute programs: keep each one's output, limit its time and count its CPU time."""

import math
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, Callable, NamedTuple, Optional

from runners.records.record import Command, Execution, FalloffError, Transcript, Trial
from runners.testbeds import busy, netns

_LIMITED = ("sh", "-c", 'ulimit -t "$0" && exec "$@"')  # then seconds and a command line
# A simulation's limit is in processor time. One that waits for nothing and never ends is ended
# after this many times that.
BUSY = 50
_PATIENCE_S = 5.0
_STEP_S = 0.002


class ExecutedCommand(NamedTuple):
    """An executed command, the CPU time [s] of its program and of those that it waited for, and how
    long that program was kept waiting for a processor [s]."""

    command: Command
    execution: Execution
    cpu_time: float
    delayed_s: float = math.nan


@dataclass
class TrialState:
    """What is known about a trial so far."""

    ran: list[ExecutedCommand] = field(default_factory=list)
    requested: dict = field(default_factory=dict)
    effective: dict = field(default_factory=dict)
    counters: dict = field(default_factory=dict)
    fault: str = ""

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Store the testbed's own failure as the trial's `fault`."""
        try:
            yield
        except (FalloffError, OSError, subprocess.CalledProcessError) as error:
            self.fault = str(error)

    def transcript(self, testbed: Any, trial: Trial) -> Transcript:
        """The transcript of a trial on a testbed."""
        executions = tuple(program.execution for program in self.ran)
        results = self.requested, self.effective, self.counters, self.fault
        return Transcript(
            trial, testbed.description["name"], testbed.evidence, executions, *results
        )


@dataclass
class RunningProgram:
    """A started program: its tool and argv, and the unnamed files for its output.

    `cpu_time` [s] is that of the program and of those that it waited for, `delayed_s` how long it
    was kept waiting for a processor; both are NaN until it has ended. A program that runs elsewhere
    ends when we `hang_up`, within `patience_s` seconds.
    """

    tool: str
    argv: Sequence[str]
    process: Any
    stdout: IO[bytes]
    stderr: IO[bytes]
    start: float
    begin: float
    cpu_time: float = math.nan
    delayed_s: float = math.nan
    hang_up: Optional[Callable[[], None]] = None
    patience_s: float = _PATIENCE_S
    most_cpu_s: float = math.inf

    @property
    def complaints(self) -> str:
        """What it has written to standard error so far."""
        return _text(self.stderr)

    def poll(self) -> Optional[int]:
        """The exit code, None while it runs."""
        return self._collect(os.WNOHANG)

    def wait(self, limit_s: Optional[float] = None) -> Optional[int]:
        """Wait for its end, at most `limit_s` seconds, and return the exit code, None if it still
        runs.

        Without a limit this process sleeps, so that it disturbs no measurement.
        """
        deadline = time.monotonic() + limit_s if limit_s else math.inf
        while self._collect(os.WNOHANG if limit_s else 0) is None and time.monotonic() <= deadline:
            # It still runs, or another thread has collected it and is about to store the result.
            time.sleep(_STEP_S)
        return self.process.returncode

    def _collect(self, options: int) -> Optional[int]:
        """The exit code; subprocess would lose the CPU time."""
        if self.process.returncode is None:
            with suppress(ChildProcessError):
                # What has ended keeps its record until it is collected.
                if os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT | options):
                    self.delayed_s = busy.waited_s(self.process.pid)
                ended, status, used = os.wait4(self.process.pid, options)
                if ended:
                    self.cpu_time = used.ru_utime + used.ru_stime
                    self.process.returncode = os.waitstatus_to_exitcode(status)
        return self.process.returncode

    def send(self, number: int) -> None:
        """Send it a signal unless it has ended."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it: hang up if it runs elsewhere, otherwise send it the signal. Kill it if it does
        not end in time."""
        if self.hang_up:
            self.hang_up()
        else:
            self.send(number)
        if self.wait(self.patience_s) is None:
            self.send(signal.SIGKILL)
            self.wait()


def start(
    tool: str,
    argv: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    space: Optional[Path] = None,
    stdin: int = subprocess.DEVNULL,
    most_cpu_s: Optional[float] = None,
) -> RunningProgram:
    """Start a program in `folder`, in the network namespace of `space` from its first moment. The
    kernel kills it, or what it starts, after `most_cpu_s` seconds of processor time.

    Output goes to files, because a surviving child could keep a pipe open, or fill it. `stdin` is
    passed to subprocess.Popen.
    """
    stdout, stderr = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    with netns.entered(space) if space else nullcontext():
        begun = time.time(), time.monotonic()
        process = subprocess.Popen(
            [*_LIMITED, str(math.ceil(most_cpu_s)), *argv] if most_cpu_s else argv,
            cwd=folder,
            env=dict(environment),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,  # Ctrl-C goes to the testbed, which then ends its programs
        )
    return RunningProgram(
        tool, argv, process, stdout, stderr, *begun, most_cpu_s=most_cpu_s or math.inf
    )


def finish(started: RunningProgram, limit_s: float) -> Execution:
    """Wait for a program, at most `limit_s` seconds, then end it. Programs that it started itself
    are not ended."""
    timer = threading.Timer(limit_s, started.end, [signal.SIGKILL])
    timer.daemon = True  # a signal that comes while it starts would wait for its end
    try:
        timer.start()
        exit_code = started.wait()
    finally:
        timer.cancel()
        started.end(signal.SIGKILL)
    has_used = started.cpu_time > 0.95 * started.most_cpu_s
    timed_out = time.monotonic() - started.begin >= limit_s or bool(exit_code) and has_used
    return _execution(started, None if timed_out else exit_code, timed_out)


def end(started: RunningProgram) -> Execution:
    """End a server. Being ended by us is normal, so its exit code is 0, or its own if it had ended
    before."""
    exit_code = started.poll()
    started.end()
    return _execution(started, 0 if exit_code is None else exit_code)


def _text(file: IO[bytes]) -> str:
    # The file position belongs to the program, which may still write.
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")


def run(
    commands: Sequence[Command],
    start: Callable[[Command], RunningProgram],
    listens: Callable[[Command, RunningProgram], bool],
    ran: list[ExecutedCommand],
    patience_s: float = _PATIENCE_S,
) -> None:
    """Run commands in order up to the first that fails, adding to `ran` in the order of their
    start.

    A server is waited for until it `listens`. Afterwards all servers are ended. Raises FalloffError
    if one does not listen within `patience_s` seconds.
    """
    servers: list[tuple[Command, RunningProgram]] = []
    try:
        for command in commands:
            started = start(command)
            if command.background:
                servers.append((command, started))
                ready = partial(listens, command, started)
                if not command.listens or becomes(started, ready, patience_s):
                    continue
                if started.poll() is None:
                    where = f"on node {command.node} does not listen on port {command.listens}"
                    raise FalloffError(f"{started.tool} {where}")
                break
            execution = finish(started, command.timeout_s)
            ran.append(ExecutedCommand(command, execution, started.cpu_time, started.delayed_s))
            if execution.exit_code != 0:
                break
    finally:
        # End the last one first: a client must end before its server, or it would fail.
        for command, started in reversed(servers):
            ran.append(ExecutedCommand(command, end(started), started.cpu_time, started.delayed_s))
        ran.sort(key=lambda program: program.execution.start)


def _execution(
    started: RunningProgram, exit_code: Optional[int], timed_out: bool = False
) -> Execution:
    return Execution(
        tool=started.tool,
        argv=tuple(started.argv),
        stdout=_text(started.stdout),
        stderr=started.complaints,
        exit_code=exit_code,
        start=started.start,
        wall_s=time.monotonic() - started.begin,
        timed_out=timed_out,
    )


def becomes(
    started: RunningProgram, ready: Callable[[], bool], patience_s: float = _PATIENCE_S
) -> bool:
    """Wait until a program is ready; return whether it was before it ended, and in time."""
    deadline = time.monotonic() + patience_s
    while started.poll() is None and time.monotonic() < deadline:
        if ready():
            return True
        time.sleep(_STEP_S)
    return False
