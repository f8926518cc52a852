"""All processes that this one started, and those that they started."""

import os
import signal
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Dict, List

from runners.record import FalloffError

_PATIENCE_S = 10.0


def kill() -> None:
    """Kill them, those too that are being forked meanwhile, until this process has no child, not even an ended one.

    It has to be the first of a PID namespace, to which orphans come back, and nobody may wait for any of them.
    Raises FalloffError when one does not die.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while _has_children():
        left = _descendants()
        if time.monotonic() > deadline:
            raise FalloffError(f"processes {sorted(left)} of the testbed survive SIGKILL: restart the machine")
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.002)


def _has_children() -> bool:
    """Whether there are any, after those that have ended were collected."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _descendants() -> List[int]:
    """Their ids, a process before those that it started."""
    children: Dict[int, List[int]] = defaultdict(list)
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it is gone
            parent = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]
            children[int(parent)].append(int(process))
    found = list(children[os.getpid()])
    for process in found:  # it grows meanwhile
        found += children[process]
    return found
