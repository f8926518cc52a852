"""What the whole machine's processors did, and how a program takes precedence over others on it."""

import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator

HIGHEST_PRIORITY = -20

_STAT = Path("/proc/stat")
# Columns of proc(5) that are work: user, nice, system, irq, softirq. Others are idle, iowait and steal; guests are
# counted in user and nice already.
_WORK = (0, 1, 2, 5, 6)


def cpu_time(stat: Path = _STAT) -> float:
    """CPU time [s] that all processors together have worked since the machine started, interrupts included."""
    columns = stat.read_text(encoding="ascii").splitlines()[0].split()[1:]
    return sum(int(columns[column]) for column in _WORK) / os.sysconf("SC_CLK_TCK")


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
