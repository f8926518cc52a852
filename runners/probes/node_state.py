#!/usr/bin/env python3
"""Print a node's properties, programs, counters and settings as one line of JSON. It changes
nothing else on the node.

usage: node_state TOOLS [FOLDER [FILES]]

TOOLS is JSON: by name the candidates for each tool; the first existing one counts. With FOLDER it
answers only if that exists, and first writes FILES into it, the text of each by name. Numbers are
in bytes and bit/s; counters of interfaces and RDMA ports start with the node. What the node does
not report is null or missing. The project's other code needs Python 3.9; an older Python prints
only its version.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Mapping, Optional, Sequence

_PROC = Path("/proc")
_SYS = Path("/sys")
_RELEASE = Path("/etc/os-release")
_RDMA_UNIT = 4  # InfiniBand's port_xmit_data and port_rcv_data count words of four octets


def main(tools: str, folder: str = "", files: str = "{}") -> None:
    """Print the state of this node; fails if the folder does not exist."""
    if folder and not os.path.isdir(folder):
        sys.exit(f"{folder} is gone: the connection that kept it was lost")
    if sys.version_info >= (3, 9):
        for name, text in json.loads(files).items():
            # Nodes that share a file system may do this at the same time.
            part = Path(folder) / f".{name}-{platform.node()}-{os.getpid()}"
            part.write_text(text, encoding="utf-8")
            part.replace(Path(folder) / name)
        print(json.dumps(state(json.loads(tools))))
    elif folder:
        sys.exit(f"Python 3.9 or newer is needed, this is {platform.python_version()}")
    else:
        print(json.dumps({"python": platform.python_version()}))


def state(candidates: Mapping[str, Sequence[str]]) -> dict:
    """The complete state of this node; `candidates` are those of the tools, by name."""
    memory = dict(re.findall(r"^(\w+):\s*(\d+) kB$", (_PROC / "meminfo").read_text(), re.M))
    release = _RELEASE.read_text(errors="replace") if _RELEASE.exists() else ""
    system = re.search(r'PRETTY_NAME="?([^"\n]+)', release)
    processor = re.search(r"^model name\s*: (.+)", (_PROC / "cpuinfo").read_text(), re.M)
    links, ports = _SYS.glob("class/net/*/speed"), _SYS.glob("class/infiniband/*/ports/*/state")
    tcp = ("congestion_control", "rmem", "wmem")
    return {
        "hostname": platform.node(),
        "kernel": platform.release(),
        "system": system and system[1],
        "python": platform.python_version(),
        "processors": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "memory_bytes": 1024 * int(memory["MemTotal"]),
        "interfaces": interfaces(),
        "link_bit_s": {file.parent.name: link_rate(file) for file in links},
        "rdma": rdma_ports(),
        "rdma_state": {f"{file.parts[-4]}:{file.parts[-2]}": read(file) for file in ports},
        "tcp": {name: read(_PROC / f"sys/net/ipv4/tcp_{name}") for name in tcp},
        "cpu_model": processor and processor[1],
        "governor": read(_SYS / "devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "tools": {name: tool(words) for name, words in candidates.items()},
    }


def tool(candidates: Sequence[str]) -> Optional[dict]:
    """A program's path and the beginning of its file's SHA-256, None if the file may be run but not
    read."""
    path = next(filter(None, map(shutil.which, map(os.path.expanduser, candidates))), None)
    if not path:
        return None
    readable = os.access(path, os.R_OK)
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12] if readable else None
    return {"path": path, "digest": digest}


def link_rate(file: Path) -> Optional[int]:
    """The negotiated rate of a link. A virtual interface has none; an inactive one gives -1 or an
    error."""
    mbit_s = read(file)
    return int(mbit_s) * 10**6 if mbit_s and int(mbit_s) > 0 else None


def interfaces() -> dict:
    """Addresses (with prefix length), MTU [B], the interface below a VLAN, and bytes sent and
    received."""
    argv = ["ip", "-json", "-stats", "address", "show"]
    return {
        row["ifname"]: {
            "addresses": [
                f"{address['local']}/{address['prefixlen']}"
                for address in row["addr_info"]
                if address["scope"] == "global"
            ],
            "mtu": row["mtu"],
            "lower": row.get("link"),
            "received": row["stats64"]["rx"]["bytes"],
            "sent": row["stats64"]["tx"]["bytes"],
        }
        for row in json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout)
    }


def rdma_ports() -> dict:
    """Bytes sent and received by each port (`mlx5_0:1`), which no interface counts, and its link
    layer."""
    ports = {}
    for port in sorted(_SYS.glob("class/infiniband/*/ports/*")):
        sent, received = (read(port / f"counters/port_{way}_data") for way in ("xmit", "rcv"))
        if sent is not None and received is not None:
            ports[f"{port.parent.parent.name}:{port.name}"] = {
                "sent": _RDMA_UNIT * int(sent),
                "received": _RDMA_UNIT * int(received),
                "link_layer": read(port / "link_layer"),
            }
    return ports


def read(file: Path) -> Optional[str]:
    """A file's text, stripped and with single blanks; None if it cannot be read."""
    try:
        return " ".join(file.read_text(errors="replace").split())
    except OSError:
        return None


if __name__ == "__main__":
    main(*sys.argv[1:])
