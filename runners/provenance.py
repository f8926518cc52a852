"""What the numbers depend on besides the tools: kernel, processor, versions, the code's own commit."""

import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Optional

from runners import bonding

HERE = Path(__file__).resolve().parent
COMMIT = "commit.json"

VERSION_COMMANDS = {
    "mpirun": ["mpirun", "--version"],
    "iperf3": ["iperf3", "--version"],
    "gcc": ["gcc", "--version"],
    "ip": ["ip", "-V"],
    "ethtool": ["ethtool", "--version"],
    "netperf": ["netperf", "-V"],
    "ping": ["ping", "-V"],
}


def host() -> Dict[str, Any]:
    """This machine and this code; what cannot be known is None, never a guess."""
    return {
        "hostname": platform.node(),
        "kernel": platform.release(),
        "system": _os_name(),
        "architecture": platform.machine(),
        "cpu_model": _first_match(r"model name\s*:\s*(.+)", _read("/proc/cpuinfo")),
        "cpu_clock_mhz": _number(_first_match(r"cpu MHz\s*:\s*(.+)", _read("/proc/cpuinfo"))),
        "cpu_governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "cpus": os.cpu_count(),
        "memory_bytes": memory_bytes(),
        "bonds": bonding.here(),
        "python": platform.python_version(),
        "tools": {tool: _version(argv) for tool, argv in VERSION_COMMANDS.items()},
        "openblas": _library_version("libopenblas"),
        **code(),
    }


def code() -> Dict[str, Any]:
    """The commit of this code and whether it was changed since; a copy elsewhere has a file that says so."""
    copied = _read(str(HERE.parent / COMMIT))
    return json.loads(copied) if copied else {"git_commit": _git("rev-parse", "HEAD"), "git_dirty": _dirty()}


def tracked() -> List[str]:
    """What git tracks here, and descriptions in data/ that it could; nothing where this is no clone."""
    if not (HERE.parent / ".git").exists():
        return []
    kinds = (["--cached"], ["--others", "--exclude-standard", "data"])
    listed = [_git("-C", str(HERE.parent), "ls-files", "-z", *kind) or "" for kind in kinds]
    return [name for names in listed for name in names.split("\0") if name]


def _read(file: str) -> Optional[str]:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _first_match(pattern: str, text: Optional[str]) -> Optional[str]:
    found = re.search(pattern, text or "")
    return found.group(1).strip() if found else None


def _number(text: Optional[str]) -> Optional[float]:
    return float(text) if text else None


def _os_name() -> Optional[str]:
    return _first_match(r'PRETTY_NAME="?([^"\n]+)', _read("/etc/os-release"))


def memory_bytes() -> Optional[int]:
    """The memory of this machine in bytes; None where the kernel does not say."""
    kib = _first_match(r"MemTotal:\s*(\d+) kB", _read("/proc/meminfo"))
    return int(kib) * 1024 if kib else None


def _output(argv: List[str]) -> Optional[str]:
    if shutil.which(argv[0]) is None:
        return None
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, cwd=HERE)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or done.stderr).strip() if done.returncode == 0 else None


def _version(argv: List[str]) -> Optional[str]:
    said = _output(argv)
    return said.splitlines()[0] if said else None


def _library_version(name: str) -> Optional[str]:
    """The file that the dynamic linker's cache gives for a library: its name carries the version."""
    path = _first_match(rf"{name}\.so\S* .*=> (\S+)", _output(["/sbin/ldconfig", "-p"]))
    return os.path.basename(os.path.realpath(path)) if path else None


def _git(*arguments: str) -> Optional[str]:
    return _output(["git", *arguments])


def _dirty() -> Optional[bool]:
    status = _git("status", "--porcelain", "--untracked-files=no")
    return None if status is None else bool(status)
