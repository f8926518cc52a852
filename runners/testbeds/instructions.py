"""Instructions that each processor executed, counted by perf where the machine lets it."""

import os
import re
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator, Sequence

from runners.testbeds import programs

_PERF = ("perf", "stat", "--all-cpus", "--no-aggr", "--field-separator", ",", "--event", "instructions")
_PATIENCE_S = 10.0

# A processor with cores of two kinds names the kind before the event.
_COUNT = re.compile(r"^CPU(\d+),(\d+),[^,]*,(?:\w+/)?instructions", re.M)


def are_countable() -> bool:
    """Whether perf is here and the processors count: few virtual machines let them."""
    try:
        said = subprocess.run([*_PERF, "true"], capture_output=True, text=True, env=_environment()).stderr
    except FileNotFoundError:
        return False
    return bool(by_processor(said))


@contextmanager
def counted(state: Path, entrances: Sequence[Path]) -> Iterator[Dict[int, float]]:
    """Count while this is open; the dict that it gives has the instructions of each processor afterwards.

    perf writes below `state`, and it is a member of the cgroups with these entrances, which must outlive the count.
    """
    found: Dict[int, float] = {}
    with tempfile.TemporaryDirectory(dir=state) as folder:
        perf = programs.start("perf", _PERF, Path(folder), _environment(), entrances)
        try:
            yield found
            perf.process.send_signal(signal.SIGINT)  # at which it prints
            found.update(by_processor(programs.finish(perf, _PATIENCE_S).stderr))
        finally:
            programs.end(perf)


def by_processor(output: str) -> Dict[int, float]:
    """The counts in perf's output by processor; those that it does not support are not there."""
    return {int(processor): float(count) for processor, count in _COUNT.findall(output)}


def _environment() -> Dict[str, str]:
    return {"PATH": os.environ["PATH"], "LC_ALL": "C"}
