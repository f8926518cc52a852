"""Whether this machine can emulate nodes and links, and what would mend it where it cannot."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, List, Mapping, Sequence

_PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ethtool": "ethtool",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "taskset": "util-linux",
    "chrt": "util-linux",
    "hostname": "hostname",
}

# Each is tried in a namespace that ends with the attempt.
_FEATURES = {
    "veth": "ip link add left type veth peer name right",
    "bridge": "ip link add bridge type bridge",
    "sch_tbf": "tc qdisc add dev lo root tbf rate 1gbit burst 128k limit 1mb",
}

# Debian's users have these not on their PATH, and what is in them needs no root in a user namespace.
_SYSTEM = ("/usr/local/sbin", "/usr/sbin", "/sbin")

AS_ROOT = ("unshare", "--user", "--map-root-user")

_CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


def unavailable(description: Mapping[str, Any]) -> List[str]:
    """Why nodes and links cannot be made here, a line each with the remedy.

    Who is not root is asked to be root of a user namespace, where the kernel allows one.
    """
    _search_system_tools()
    lacking = sorted({package for tool, package in _PACKAGES.items() if not shutil.which(tool)})
    if lacking:
        return [f"the tools of {', '.join(lacking)} are missing: apt-get install {' '.join(lacking)}"]
    as_root = () if os.geteuid() == 0 else AS_ROOT
    if as_root:
        attempt = subprocess.run([*as_root, "true"], capture_output=True, text=True)
        if attempt.returncode:
            said = attempt.stderr.strip() or "unshare failed"
            return [f"without root a user namespace is needed, and this kernel refuses it ({said}): run it with sudo"]
    reasons = [_without(feature, as_root) for feature in _FEATURES]
    reasons.append(_without_congestion_control(description["tcp"]["congestion_control"]))
    return [reason for reason in reasons if reason]


def _search_system_tools() -> None:
    """Add the folders of system tools to PATH, of this process and of all that it starts."""
    there = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join([*there, *(folder for folder in _SYSTEM if folder not in there)])


def _without(feature: str, as_root: Sequence[str]) -> str:
    attempt = subprocess.run([*(as_root or ("unshare",)), "--net", *_FEATURES[feature].split()], capture_output=True)
    return f"the kernel has no {feature}: modprobe {feature}" if attempt.returncode else ""


def _without_congestion_control(name: str) -> str:
    if name in _CONGESTION_CONTROLS.read_text().split():
        return ""
    return f"the kernel has no TCP congestion control {name}: modprobe tcp_{name}"
