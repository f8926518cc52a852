"""Whether the machine was too busy for a trial, so that its result is the machine's and not the
network's.

It was if something of the trial that was ready to run (a program, a rank, what carries or receives
frames) often waited for a processor, and other work took processors meanwhile, or there is only
one. The kernel counts such waits in /proc/PID/schedstat; without these files, or of a rank that was
killed, they are unknown, and other work alone decides.
"""

import math
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

# Share of a trial's time: mtu lost 0.6 % at 0.045, 4 % at 0.17 and a third at 0.5.
_MOST_WAITED = 0.05
_MOST_LOAD = 0.25  # processors; a machine by itself takes less
_SAMPLE_S = 0.4

# Columns of /proc/stat: user, nice, system, and what a hypervisor gives to other machines.
# Interrupts belong to no program, and most are the trial's own frames.
_WORK = (1, 2, 3, 8)


def waited_s(process: object) -> float:
    """How long a thread, or a process with a single one, has waited for a processor so far [s]; NaN
    if the kernel does not say."""
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
    return math.nan


def verdict(waits: Iterable[float], other_work: float) -> str:
    """Why a trial is no measurement, empty if it is one. `waits` are the shares of its time [1]
    that each of its parts waited for a processor, NaN where unknown; `other_work` is how many
    processors other programs took meanwhile.

    Where a wait is unknown the trial's own work is, too: the load is measured now, after it.
    """
    shares = list(waits)
    is_known = not any(map(math.isnan, shares))
    if is_known and max(shares, default=0) <= _MOST_WAITED:
        return ""
    share = f"{100 * max(shares):.0f} % of its time" if is_known else "an unknown time"
    waited = f"the trial waited {share} for a processor"
    if is_known and len(os.sched_getaffinity(0)) == 1:
        return f"{waited}, of which it had one"
    load = other_work if is_known else load_of_others()
    return f"{waited}, of which other work took {100 * load:.0f} %" if load > _MOST_LOAD else ""


def load_of_others() -> float:
    """How many of our processors work while nothing of ours runs."""
    before, begin = worked_s(), time.monotonic()
    time.sleep(_SAMPLE_S)
    return (worked_s() - before) / (time.monotonic() - begin)


def worked_s() -> float:
    """How long our processors together have run programs so far [s]."""
    rows = [line.split() for line in Path("/proc/stat").read_text(encoding="ascii").splitlines()]
    processors = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    ticks = sum(int(row[column]) for row in rows if row[0] in processors for column in _WORK)
    return ticks / os.sysconf("SC_CLK_TCK")
