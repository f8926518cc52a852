"""Execute programs, each with its output kept and its time limited."""

import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Mapping, Optional, Sequence

from runners.record import Execution

_PATIENCE_S = 5.0


@dataclass(frozen=True)
class Started:
    """A program that runs: its tool and argv, and where its output goes."""

    tool: str
    argv: Sequence[str]
    process: "subprocess.Popen[bytes]"
    output: Path
    complaints: Path
    start: float
    begin: float


def start(
    tool: str,
    argv: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    entrances: Sequence[Path],
    stdin: int = subprocess.DEVNULL,
) -> Started:
    """Start a program in `folder`, as a member of the cgroups with these entrances from its first moment.

    Output goes to files: a child of it that lives on could hold a pipe open, or fill it. `stdin` is as
    subprocess.Popen takes it.
    """

    def enter() -> None:
        for entrance in entrances:
            with open(entrance, "w", encoding="utf-8") as file:
                file.write("0")

    stem = folder / f".{time.monotonic_ns()}"
    output, complaints = stem.with_suffix(".stdout"), stem.with_suffix(".stderr")
    with open(output, "wb") as stdout, open(complaints, "wb") as stderr:
        begun = time.time(), time.monotonic()
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=dict(environment),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,  # Ctrl-C is for the testbed, which then ends its programs
            preexec_fn=enter if entrances else None,  # it must not be used where threads start programs
        )
    return Started(tool, argv, process, output, complaints, *begun)


def finish(started: Started, limit_s: float, stop: Optional[Callable[[], None]] = None) -> Execution:
    """Wait for a program, at most `limit_s` seconds; then it is stopped, by `stop` or else killed. What it started
    itself is not."""
    process = started.process
    timer = threading.Timer(limit_s, stop or process.kill)
    timer.start()
    try:
        process.wait()
    finally:
        timer.cancel()
    wall = time.monotonic() - started.begin
    timed_out = wall >= limit_s
    return _execution(started, None if timed_out else process.returncode, wall, timed_out)


def end(started: Started) -> Execution:
    """End a server. That we ended it is as it should be: exit code 0, but its own if it ended before."""
    process = started.process
    exit_code = process.poll()
    if exit_code is None:
        process.terminate()
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        exit_code = 0
    return _execution(started, exit_code, time.monotonic() - started.begin, False)


def _execution(started: Started, exit_code: Optional[int], wall: float, timed_out: bool) -> Execution:
    return Execution(
        tool=started.tool,
        argv=tuple(started.argv),
        stdout=started.output.read_text(encoding="utf-8", errors="replace"),
        stderr=started.complaints.read_text(encoding="utf-8", errors="replace"),
        exit_code=exit_code,
        start=started.start,
        wall_s=wall,
        timed_out=timed_out,
    )


def serves(started: Started, ready: Callable[[], bool], patience_s: float = _PATIENCE_S) -> bool:
    """Wait until a server is `ready`; False when it ended, or was not ready in time."""
    deadline = time.monotonic() + patience_s
    while started.process.poll() is None and time.monotonic() < deadline:
        if ready():
            return True
        time.sleep(0.002)
    return False
