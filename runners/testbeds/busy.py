"""Whether the machine was too busy for a trial, so that its result is the machine's and not the network's.

It was if something of the trial that was ready to run (a program, a rank, what carries or receives frames) often waited for
a processor, and other work took processors too, or there is only one. The kernel counts such waits in
/proc/PID/schedstat; without these files, or of a rank that was killed, they are unknown, and other work alone decides.
"""

import math
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

# Share of a trial's time: mtu lost 0.6 % at 0.045, 4 % at 0.17 and a third at 0.5.
_MOST_WAITED = 0.05
_MOST_LOAD = 0.25  # share of a processor; less is what a machine does by itself
_SAMPLE_S = 0.4

# Columns of /proc/stat: idle and iowait. What a hypervisor gives to other machines counts as busy.
_IDLE = slice(4, 6)


def waited_s(process: object) -> float:
    """How long a thread, or a process with a single one, has waited for a processor so far [s]; NaN if the kernel does not
    say."""
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
    return math.nan


def verdict(waits: Iterable[float]) -> str:
    """Why a trial is no measurement, empty if it is one. `waits` are the shares of its time [1] that each of its parts waited
    for a processor, NaN where unknown.

    The load is measured now, after the trial.
    """
    shares = list(waits)
    is_known = not any(map(math.isnan, shares))
    if is_known and max(shares, default=0) <= _MOST_WAITED:
        return ""
    share = f"{100 * max(shares):.0f} % of its time" if is_known else "an unknown time"
    waited = f"the trial waited {share} for a processor"
    if is_known and len(os.sched_getaffinity(0)) == 1:
        return f"{waited}, of which it had one"
    load = load_of_others()
    return f"{waited}, of which other work took {100 * load:.0f} %" if load > _MOST_LOAD else ""


def load_of_others() -> float:
    """The share [1] of the busiest of our processors that is not idle while nothing of ours runs."""
    before, begin = _idle_s(), time.monotonic()
    time.sleep(_SAMPLE_S)
    after, elapsed = _idle_s(), time.monotonic() - begin
    idle = [(after[number] - before[number]) / elapsed for number in after if number in before]
    return 1 - min(idle, default=1.0)


def _idle_s() -> dict[str, float]:
    """How long each of our processors has been idle [s], by its name."""
    rows = [line.split() for line in Path("/proc/stat").read_text(encoding="ascii").splitlines()]
    processors = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    ticks = os.sysconf("SC_CLK_TCK")
    return {row[0]: sum(map(int, row[_IDLE])) / ticks for row in rows if row[0] in processors}
