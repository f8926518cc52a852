"""What the whole machine's processors did, and how a program takes precedence over others on it."""

import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator

HIGHEST_PRIORITY = -20

_STAT = Path("/proc/stat")
# Columns of proc(5) in which a processor does nothing for this machine: idle, iowait and steal.
_REST = (3, 4, 7)


def cpu_time(stat: Path = _STAT) -> float:
    """CPU time [s] that all processors together have worked since a moment in the past, interrupts included.

    It is the time that they did not rest, which the kernel measures by the clock. What it calls work is sampled at its
    ticks, which miss work of less than a tick that begins with a timer, such as a shaper's: up to a third of a
    transfer's.
    """
    total, *rows = [line.split()[1:] for line in stat.read_text(encoding="ascii").splitlines() if line.startswith("cpu")]
    rested = sum(int(total[column]) for column in _REST) / os.sysconf("SC_CLK_TCK")
    return len(rows) * time.monotonic() - rested


def clock() -> Dict[str, float]:
    """The time now [s] as `elapsed`, since a moment in the past, and `host_cpu_time` [s] so far."""
    return {"elapsed": time.monotonic(), "host_cpu_time": cpu_time()}


def load(seconds: float) -> float:
    """CPU-seconds that the machine works in a second, measured for so many seconds."""
    before = clock()
    time.sleep(seconds)
    after = clock()
    return (after["host_cpu_time"] - before["host_cpu_time"]) / (after["elapsed"] - before["elapsed"])


@contextmanager
def precedence() -> Iterator[None]:
    """Give this thread, and what it starts meanwhile, the highest priority: nothing else shall slow a node down."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, HIGHEST_PRIORITY)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, usual)
