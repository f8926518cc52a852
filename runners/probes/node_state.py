#!/usr/bin/env python3
"""What a node counts and how it is set, as one line of JSON; nothing is changed.

usage: node_state [FOLDER]

With FOLDER it answers only where that is there. Bytes are those of every interface (of /proc/net/dev) and RDMA port
since the node started. What the node does not tell is null, or not among the items.
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
        "temperatures_degC": temperatures(),
    }))  # fmt: skip


def interfaces() -> Dict[str, Dict[str, Any]]:
    """Addresses (with the length of their prefix), MTU [B], the interface below a VLAN, bytes sent and received."""
    said = subprocess.run(["ip", "-json", "address", "show"], stdout=subprocess.PIPE, check=True).stdout
    counted = byte_counts((_PROC / "net/dev").read_text())
    return {
        row["ifname"]: {
            "addresses": [f"{it['local']}/{it['prefixlen']}" for it in row["addr_info"] if it["scope"] == "global"],
            "mtu": row["mtu"],
            "lower": row.get("link"),
            **counted[row["ifname"]],
        }
        for row in json.loads(said)
        if row.get("ifname") in counted
    }


def byte_counts(table: str) -> Dict[str, Dict[str, int]]:
    """Bytes sent and received by each interface of a text as /proc/net/dev has it."""
    found = {}
    for line in table.splitlines()[2:]:
        name, _, counts = line.partition(":")
        words = counts.split()
        found[name.strip()] = {"received": int(words[0]), "sent": int(words[8])}
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
    return next(iter(_values("model name")), None)


def clock_hz() -> Optional[float]:
    """The mean clock of all processors at this moment."""
    files = _SYS.glob("devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq")
    clocks = [1e3 * float(text) for text in map(read, files) if text]
    clocks = clocks or [1e6 * float(text) for text in _values("cpu MHz")]
    return sum(clocks) / len(clocks) if clocks else None


def temperatures() -> Dict[str, float]:
    """Every temperature that the node's sensors give, by sensor."""
    found = {}
    for sensor in sorted(_SYS.glob("class/hwmon/hwmon*/temp*_input")):
        text = read(sensor)
        if text is not None:
            label = read(sensor.with_name(sensor.name.replace("_input", "_label"))) or sensor.name[: -len("_input")]
            found[f"{read(sensor.with_name('name'))} {label} ({sensor.parent.name})"] = float(text) / 1000
    return found


def read(file: Path) -> Optional[str]:
    """A file's text without surrounding blanks and with single ones inside; None when it cannot be read."""
    try:
        return " ".join(file.read_text().split())
    except OSError:
        return None


def _values(key: str) -> List[str]:
    lines = (_PROC / "cpuinfo").read_text().splitlines()
    return [line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == key]


if __name__ == "__main__":
    main(sys.argv[1:])
