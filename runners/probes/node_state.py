#!/usr/bin/env python3
"""What a node counts and how it is set, as one line of JSON; nothing is changed.

usage: node_state [FOLDER]

With FOLDER it answers only where that is there. Bytes are those of every interface and RDMA port since the node
started. What the node does not tell is null, or not among the items.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

_PROC = Path("/proc")
_SYS = Path("/sys")
_RDMA_UNIT = 4  # InfiniBand's port_xmit_data and port_rcv_data count words of four octets


def main(folders: List[str]) -> None:
    """Print the state of this node; fails when a folder is not there."""
    for folder in folders:
        if not os.path.isdir(folder):
            sys.exit(f"{folder} is gone: the connection that kept it was lost")
    print(json.dumps({
        "hostname": platform.node(),
        "kernel": platform.release(),
        "interfaces": interfaces(),
        "rdma": rdma_ports(),
        "tcp": {name: read(_PROC / f"sys/net/ipv4/tcp_{name}") for name in ("congestion_control", "rmem", "wmem")},
        "cpu_model": cpu_model(),
        "clock_hz": clock_hz(),
        "governor": read(_SYS / "devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "hottest_degC": hottest(),
    }))  # fmt: skip


def interfaces() -> Dict[str, Dict[str, Any]]:
    """Addresses (with the length of their prefix), MTU [B], the interface below a VLAN, bytes sent and received."""
    output = subprocess.run(
        ["ip", "-json", "-stats", "address", "show"], stdout=subprocess.PIPE, check=True
    ).stdout
    found = {}
    for row in json.loads(output):
        addresses = [address for address in row["addr_info"] if address["scope"] == "global"]
        found[row["ifname"]] = {
            "addresses": [f"{address['local']}/{address['prefixlen']}" for address in addresses],
            "mtu": row["mtu"],
            "lower": row.get("link"),
            "received": row["stats64"]["rx"]["bytes"],
            "sent": row["stats64"]["tx"]["bytes"],
        }
    return found


def rdma_ports() -> Dict[str, Dict[str, Any]]:
    """Bytes sent and received by each port (`mlx5_0:1`), which no interface counts, and its link layer."""
    found = {}
    for port in sorted(_SYS.glob("class/infiniband/*/ports/*")):
        sent, received = (read(port / f"counters/port_{way}_data") for way in ("xmit", "rcv"))
        if sent is not None and received is not None:
            found[f"{port.parent.parent.name}:{port.name}"] = {
                "sent": _RDMA_UNIT * int(sent),
                "received": _RDMA_UNIT * int(received),
                "link_layer": read(port / "link_layer"),
            }
    return found


def cpu_model() -> Optional[str]:
    """The processor's name."""
    return next(iter(_cpuinfo("model name")), None)


def clock_hz() -> Optional[float]:
    """The mean clock of all processors at this moment."""
    files = _SYS.glob("devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq")
    clocks = [1e3 * float(text) for text in map(read, files) if text]
    clocks = clocks or [1e6 * float(text) for text in _cpuinfo("cpu MHz")]
    return sum(clocks) / len(clocks) if clocks else None


def hottest() -> Optional[float]:
    """The highest temperature that the node's sensors give."""
    texts = map(read, _SYS.glob("class/hwmon/hwmon*/temp*_input"))
    return max((float(text) / 1000 for text in texts if text is not None), default=None)


def read(file: Path) -> Optional[str]:
    """A file's text without surrounding blanks and with single ones inside; None when it cannot be read."""
    try:
        return " ".join(file.read_text().split())
    except OSError:
        return None


def _cpuinfo(key: str) -> List[str]:
    rows = (line.partition(":") for line in (_PROC / "cpuinfo").read_text().splitlines())
    return [value.strip() for name, _, value in rows if name.strip() == key]


if __name__ == "__main__":
    main(sys.argv[1:])
