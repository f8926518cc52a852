"""What a node is and has besides what node_state.py tells: Python, processors, memory, links, programs and their
versions, and what else runs there.

usage: python3 - QUESTIONS < node_facts.py

QUESTIONS is JSON: `tools` (by name the candidates, of which the first that is there counts) and `watch_s`, for how
long processes are watched. Prints a JSON object, see `facts`; of a Python before 3.9 only its version. Nothing is
changed.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

_PROC = Path("/proc")
_SYS = Path("/sys/class")
_BUSIEST = 3
# Who is not listed is not asked: xhpl would start to compute.
_VERSION_WORD = {
    "mpirun": "--version",
    "iperf3": "--version",
    "perf": "--version",
    "netperf": "-V",
    "ping": "-V",
}


def facts(questions: Mapping[str, Any]) -> Dict[str, Any]:
    """All that is asked of this node, in bytes and bit/s; None is what it does not tell or does not have."""
    return {
        "system": _match(r'PRETTY_NAME="?([^"\n]+)', _read(Path("/etc/os-release"))),
        "python": platform.python_version(),
        "processors": len(os.sched_getaffinity(0)),
        "memory_bytes": _bytes("MemTotal"),
        "available_bytes": _bytes("MemAvailable"),
        "link_bit_s": {
            file.parent.name: _link_rate(_read(file)) for file in _SYS.glob("net/*/speed")
        },
        "rdma_state": {
            f"{file.parts[-4]}:{file.parts[-2]}": _read(file)
            for file in _SYS.glob("infiniband/*/ports/*/state")
        },
        "tools": {name: tool(name, candidates) for name, candidates in questions["tools"].items()},
        "busiest": busiest(questions["watch_s"]),
    }


def tool(name: str, candidates: Sequence[str]) -> Optional[Dict[str, Any]]:
    """Where a program is, what it says of its version, and the beginning of its file's SHA-256."""
    found = next(
        filter(None, (shutil.which(os.path.expanduser(candidate)) for candidate in candidates)),
        None,
    )
    if not found:
        return None
    return {
        "path": found,
        "version": _version(found, _VERSION_WORD.get(name)),
        "digest": _digest(found),
    }


def busiest(watch_s: float) -> List[Dict[str, Any]]:
    """The processes that take most of a processor meanwhile, without this one: `name`, `pid` and `share`."""
    before = _cpu_ticks()
    time.sleep(watch_s)
    used = [
        (ticks - before[pid][0], pid, name)
        for pid, (ticks, name) in _cpu_ticks().items()
        if pid in before
    ]
    most = sorted(
        (process for process in used if process[0] and process[1] != os.getpid()), reverse=True
    )
    ticks_in_all = watch_s * os.sysconf("SC_CLK_TCK")
    return [
        {"name": name, "pid": pid, "share": ticks / ticks_in_all}
        for ticks, pid, name in most[:_BUSIEST]
    ]


def _cpu_ticks() -> Dict[int, Tuple[int, str]]:
    """The processor time so far and the name of every process that can be seen."""
    found = {}
    for file in _PROC.glob("[0-9]*/stat"):
        before, _, after = (_read(file) or "").rpartition(
            ")"
        )  # the name itself may have parentheses
        if after:
            pid, _, name = before.partition(" (")
            found[int(pid)] = (sum(map(int, after.split()[11:13])), name)
    return found


def _link_rate(mbit_s: Optional[str]) -> Optional[int]:
    """What a link negotiated; a virtual interface has none, and one that is down gives -1 or refuses to say."""
    return int(mbit_s) * 10**6 if mbit_s and int(mbit_s) > 0 else None


def _version(program: str, word: Optional[str]) -> Optional[str]:
    if not word:
        return None
    try:
        done = subprocess.run(
            [program, word], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ((done.stdout or done.stderr).strip().splitlines() or [None])[0]


def _digest(program: str) -> Optional[str]:
    try:
        return hashlib.sha256(Path(program).read_bytes()).hexdigest()[:12]
    except OSError:  # one may run it and not read it
        return None


def _read(file: Path) -> Optional[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _match(pattern: str, text: Optional[str]) -> Optional[str]:
    match = re.search(pattern, text or "")
    return match[1].strip() if match else None


def _bytes(key: str) -> Optional[int]:
    kib = _match(rf"{key}:\s*(\d+) kB", _read(_PROC / "meminfo"))
    return int(kib) * 1024 if kib else None


if __name__ == "__main__":
    # An older Python, which the project's own code does not run on there either, only tells its version.
    too_old = sys.version_info < (3, 9)
    print(
        json.dumps(
            {"python": platform.python_version()} if too_old else facts(json.loads(sys.argv[1]))
        )
    )
