"""What a node is and has besides what node_state.py tells: Python, processors, memory, links and programs.

usage: python3 - TOOLS < node_facts.py

TOOLS is JSON: by name the candidates for each tool, of which the first that is there counts. Prints a JSON object, see
`facts`; of a Python before 3.9 only its version. Nothing is changed.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence

_SYS = Path("/sys/class")


def facts(candidates: Mapping[str, Sequence[str]]) -> Dict[str, Any]:
    """All that is asked of this node, in bytes and bit/s; None is what it does not tell or does not have."""
    memory = dict(re.findall(r"^(\w+):\s*(\d+) kB$", _read(Path("/proc/meminfo")), re.M))
    system = re.search(r'PRETTY_NAME="?([^"\n]+)', _read(Path("/etc/os-release")))
    return {
        "system": system and system[1],
        "python": platform.python_version(),
        "processors": len(os.sched_getaffinity(0)),
        "memory_bytes": 1024 * int(memory["MemTotal"]),
        "available_bytes": 1024 * int(memory["MemAvailable"]),
        "link_bit_s": {file.parent.name: _link_rate(file) for file in _SYS.glob("net/*/speed")},
        "rdma_state": {
            f"{file.parts[-4]}:{file.parts[-2]}": _read(file)
            for file in _SYS.glob("infiniband/*/ports/*/state")
        },
        "tools": {name: tool(words) for name, words in candidates.items()},
    }


def tool(candidates: Sequence[str]) -> Optional[Dict[str, Any]]:
    """Where a program is, and the beginning of its file's SHA-256, None where one may run it and not read it."""
    paths = filter(None, (shutil.which(os.path.expanduser(candidate)) for candidate in candidates))
    path = next(paths, None)
    if not path:
        return None
    readable = os.access(path, os.R_OK)
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12] if readable else None
    return {"path": path, "digest": digest}


def _link_rate(file: Path) -> Optional[int]:
    """What a link negotiated; a virtual interface has none, and one that is down gives -1 or refuses to say."""
    mbit_s = _read(file)
    return int(mbit_s) * 10**6 if mbit_s and int(mbit_s) > 0 else None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


if __name__ == "__main__":
    # An older Python, which the project's own code does not run on there either, only tells its version.
    too_old = sys.version_info < (3, 9)
    version = {"python": platform.python_version()}
    print(json.dumps(version if too_old else facts(json.loads(sys.argv[1]))))
