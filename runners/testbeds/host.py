"""The work of the machine's processors and for whom it was done, and the processor of each node."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HIGHEST_PRIORITY = -20

# Columns of /proc/stat, see proc(5), for time in which a processor does nothing for this machine:
# idle, iowait and steal.
_REST = (3, 4, 7)
_ALL_USERS = 4294967295


def is_root_of_machine() -> bool:
    """Whether we are root of the whole machine, not of a user namespace."""
    return os.geteuid() == 0 and str(_ALL_USERS) in Path("/proc/self/uid_map").read_text()


def processor(node: int) -> int:
    """The processor that a node stays on; nodes take this machine's processors in turn."""
    available = sorted(os.sched_getaffinity(0))
    return available[(node - 1) % len(available)]


def clock() -> dict[str, float]:
    """The time now [s] as `elapsed`, and `host_cpu_time` [s] so far, both since a moment in the
    past.

    The latter is the time in which the processors together were not idle, interrupts included. The
    kernel measures idle time by the clock. The time that it reports as work is sampled at ticks,
    which miss work shorter than a tick that begins with a timer, such as a shaper's: up to a third
    of a transfer's work.
    """
    lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    total, *rows = [line.split()[1:] for line in lines if line.startswith("cpu")]
    rested = sum(int(total[column]) for column in _REST) / os.sysconf("SC_CLK_TCK")
    now = time.monotonic()
    return {"elapsed": now, "host_cpu_time": len(rows) * now - rested}


def load(seconds: float) -> float:
    """The machine's CPU-seconds per second, measured for `seconds` seconds."""
    before = clock()
    time.sleep(seconds)
    after = clock()
    work_s, elapsed_s = (after[key] - before[key] for key in ("host_cpu_time", "elapsed"))
    return work_s / elapsed_s


def thread_time(thread: int) -> float:
    """CPU time [s] so far of a thread, or of a single-threaded process; 0 if it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{thread}/schedstat").read_text().split()[0]) / 1e9
    return 0.0


def kernel_threads(prefix: str) -> dict[str, list[int]]:
    """The ids of the kernel's threads with this prefix of their name; the kernel keeps only 15
    letters."""
    threads: dict[str, list[int]] = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has ended
            thread = Path(f"/proc/{process}/comm").read_text().strip()
            if thread.startswith(prefix):
                threads.setdefault(thread[:15], []).append(int(process))
    return threads


@contextmanager
def precedence() -> Iterator[None]:
    """Give this thread, and everything that it starts meanwhile, the highest priority if the
    machine allows it, so that nothing else slows a node down."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, HIGHEST_PRIORITY)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, usual)
