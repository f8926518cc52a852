"""Whether this machine can emulate nodes and links, and what would mend it where it cannot."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable, List, Mapping

from runners import tools
from runners.record import FalloffError
from runners.testbeds import cgroup

_PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ethtool": "ethtool",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "hostname": "hostname",
}

# Each is tried in a namespace that ends with the attempt.
_FEATURES = {
    "veth": "ip link add left type veth peer name right",
    "bridge": "ip link add bridge type bridge",
    "sch_tbf": "tc qdisc add dev lo root tbf rate 1gbit burst 128k limit 1mb",
}

_CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


def unavailable(description: Mapping[str, Any]) -> List[str]:
    """One line, with the remedy, for each reason why root cannot have the emulated testbed here."""
    cpu = description["cpu"]
    checks: List[Callable[[], Any]] = [lambda: tools.find("mpirun", description.get("tools", {}))]
    if "share" in cpu:
        checks += [lambda: cgroup.quota_us(cpu["share"], cpu["period_us"]), cgroup.find]
    return _obstacles(description, checks)


def obstacles(description: Mapping[str, Any]) -> List[str]:
    """Why nodes, links and cgroups cannot be made here, a line each with the remedy."""
    return _obstacles(description, [cgroup.find])


def _obstacles(description: Mapping[str, Any], checks: List[Callable[[], Any]]) -> List[str]:
    if os.geteuid() != 0:
        return ["network namespaces and CPU quotas need root: run it with sudo"]
    lacking = sorted({package for tool, package in _PACKAGES.items() if not shutil.which(tool)})
    if lacking:
        return [f"the tools of {', '.join(lacking)} are missing: apt-get install {' '.join(lacking)}"]
    reasons = [*map(_complaint, checks), *map(_without, _FEATURES)]
    reasons.append(_without_congestion_control(description["tcp"]["congestion_control"]))
    return [reason for reason in reasons if reason]


def _complaint(check: Callable[[], Any]) -> str:
    try:
        check()
    except FalloffError as error:
        return str(error)
    return ""


def _without(feature: str) -> str:
    attempt = subprocess.run(["unshare", "--net", *_FEATURES[feature].split()], capture_output=True)
    return f"the kernel has no {feature}: modprobe {feature}" if attempt.returncode else ""


def _without_congestion_control(name: str) -> str:
    if name in _CONGESTION_CONTROLS.read_text().split():
        return ""
    return f"the kernel has no TCP congestion control {name}: modprobe tcp_{name}"
