"""Instructions that each processor executed, counted by perf where the machine lets it."""

import os
import re
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterator, Optional

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


@dataclass
class Count:
    """The instructions of each processor, once the count is over; `cpu_time` [s] is what perf itself took."""

    by_processor: Dict[int, float] = field(default_factory=dict)
    cpu_time: float = 0.0


@contextmanager
def counted(folder: Path, space: Optional[Path] = None) -> Iterator[Count]:
    """Count while this is open. perf writes below `folder`; it is in a network namespace of the testbed's, where it is
    found when its owner is dead."""
    found = Count()
    with tempfile.TemporaryDirectory(dir=folder) as kept:
        perf = programs.start("perf", _PERF, Path(kept), _environment(), space)
        try:
            yield found
            perf.signal(signal.SIGINT)  # at which it prints
            found.by_processor = by_processor(programs.finish(perf, _PATIENCE_S).stderr)
            found.cpu_time = perf.cpu_time
        finally:
            programs.end(perf)


def by_processor(output: str) -> Dict[int, float]:
    """The counts in perf's output by processor; those that it does not support are not there."""
    return {int(processor): float(count) for processor, count in _COUNT.findall(output)}


def _environment() -> Dict[str, str]:
    return {"PATH": os.environ["PATH"], "LC_ALL": "C"}
