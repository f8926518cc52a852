"""The kernel's threads that receive for interfaces."""

import os
from pathlib import Path
from typing import Dict, List


def threads(prefix: str) -> Dict[str, List[int]]:
    """Those of interfaces whose name starts so, by the first ten letters of it (`napi/INTERFACE-NUMBER`)."""
    found: Dict[str, List[int]] = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            named = Path(f"/proc/{process}/comm").read_text().strip()
        except OSError:  # it has ended
            continue
        if named.startswith(f"napi/{prefix}"):
            found.setdefault(named.partition("/")[2][:10], []).append(int(process))
    return found
