"""What the numbers depend on besides the tools: kernel, processor, versions, and this code's
commit."""

import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Optional

CHECKOUT = Path(__file__).resolve().parents[2]
COMMIT = "commit.json"
# A campaign that was packed there changes nothing for the next one.
_PACKED = ":!data/reference"

_VERSION_OPTIONS = {
    **dict.fromkeys(("mpirun", "iperf3", "gcc", "ethtool"), "--version"),
    **dict.fromkeys(("ip", "ping"), "-V"),
}


def host() -> dict[str, Any]:
    """This machine and this code; unknown facts are None, never guessed."""
    processor = _read("/proc/cpuinfo")
    mhz = _first_match(r"cpu MHz\s*:\s*(.+)", processor)
    blas = _first_match(r"libopenblas\.so\S* .*=> (\S+)", _output("/sbin/ldconfig", "-p"))
    versions = {tool: _output(tool, option) for tool, option in _VERSION_OPTIONS.items()}
    return {
        "hostname": platform.node(),
        "boot_id": _read("/proc/sys/kernel/random/boot_id"),  # another one after each start of it
        "kernel": platform.release(),
        "system": _first_match(r'PRETTY_NAME="?([^"\n]+)', _read("/etc/os-release")),
        "architecture": platform.machine(),
        "cpu_model": _first_match(r"model name\s*:\s*(.+)", processor),
        "cpu_clock_mhz": float(mhz) if mhz else None,
        "cpu_governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "cpus": os.cpu_count(),
        "memory_bytes": memory_bytes(),
        "load": os.getloadavg()[0],  # programs that ran or waited in the minute before
        "bonds": {file.name: _read(str(file)) for file in Path("/proc/net/bonding").glob("*")},
        "python": platform.python_version(),
        "tools": {tool: text.splitlines()[0] if text else None for tool, text in versions.items()},
        # Its name contains the version.
        "openblas": os.path.basename(os.path.realpath(blas)) if blas else None,
        **code(),
    }


def code() -> dict[str, Any]:
    """The commit of this code and whether it was changed since; a copy elsewhere has a file with
    both."""
    copied = _read(str(CHECKOUT / COMMIT))
    if copied:
        return json.loads(copied)
    status = _output("git", "status", "--porcelain", "--untracked-files=all", "--", ".", _PACKED)
    dirty = None if status is None else any(map(_is_of_code, status.splitlines()))
    return {"git_commit": _output("git", "rev-parse", "HEAD"), "git_dirty": dirty}


def _is_of_code(line: str) -> bool:
    """Whether a line of git's status is of a changed file, or of a new one of the code; new
    descriptions are users' own."""
    return not line.startswith("??") or line[3:].startswith(("runners/", "analysis/"))


def has_history() -> bool:
    """Whether this is a git clone with all earlier commits."""
    is_clone = (CHECKOUT / ".git").exists()
    return is_clone and _output("git", "rev-parse", "--is-shallow-repository") == "false"


def faults(sessions: Iterable[Mapping[str, Any]]) -> list[str]:
    """Why a campaign of these sessions cannot be run again as it was from one commit of this
    history, each in a few words; a commit is in the history if it is HEAD or before it."""
    hosts = [session.get("host", {}) for session in sessions]
    commits = dict.fromkeys(host.get("git_commit") for host in hosts)
    known = list(filter(None, commits))
    found = []
    if len(known) < len(commits) or not known:
        found.append("commit not recorded")
    if any(_output("git", "merge-base", "--is-ancestor", each, "HEAD") is None for each in known):
        found.append("commit not in the history")
    if any(host.get("git_commit") and host.get("git_dirty") is not False for host in hosts):
        found.append("uncommitted code")
    if len(known) > 1:
        found.append(f"{len(known)} commits")
    return found


def memory_bytes() -> Optional[int]:
    """The memory of this machine in bytes; None if the kernel does not say."""
    kib = _first_match(r"MemTotal:\s*(\d+) kB", _read("/proc/meminfo"))
    return int(kib) * 1024 if kib else None


def tracked() -> list[str]:
    """The files that git tracks here; empty if this is not a clone."""
    if not (CHECKOUT / ".git").exists():
        return []
    listed = _output("git", "-C", str(CHECKOUT), "ls-files", "-z") or ""
    return [name for name in listed.split("\0") if name]


def _read(file: str) -> Optional[str]:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _first_match(pattern: str, text: Optional[str]) -> Optional[str]:
    match = re.search(pattern, text or "")
    return match.group(1).strip() if match else None


def _output(*argv: str) -> Optional[str]:
    if shutil.which(argv[0]) is None:
        return None
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, cwd=CHECKOUT)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or done.stderr).strip() if done.returncode == 0 else None
