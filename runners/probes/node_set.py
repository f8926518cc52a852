#!/usr/bin/env python3
"""Sets MTUs and TCP's defaults on a node, and puts back what was there when whoever asked is gone.

usage: node_set SILENCE SETTINGS

SETTINGS are JSON: {"mtu": {INTERFACE: BYTES}, "congestion_control": NAME, "rmem": TEXT, "wmem": TEXT}. Prints the
earlier values of what had to be changed, in the same form, and puts them back when standard input ends or nothing comes
from there for SILENCE seconds. It takes the rights of an administrator.
"""

import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Dict

_SYSCTLS = Path("/proc/sys/net/ipv4")
_TCP = ("congestion_control", "rmem", "wmem")
_GET_MTU, _SET_MTU = 0x8921, 0x8922  # SIOCGIFMTU and SIOCSIFMTU of Linux
_REQUEST = "16si12x"  # struct ifreq: the interface's name, a number


def main(silence_s: float, wanted: Dict[str, Any]) -> None:
    """Set, say what was there, wait, and put back; also when only a part could be set."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))  # the stack below is unwound
    earlier: Dict[str, Any] = {}
    with ExitStack() as undo:
        for interface, mtu in wanted.get("mtu", {}).items():
            before = get_mtu(interface)
            if before != mtu:
                undo.callback(set_mtu, interface, before)
                set_mtu(interface, mtu)
                earlier.setdefault("mtu", {})[interface] = before
        for name in _TCP:
            before = get_tcp(name)
            if wanted.get(name, before) != before:
                undo.callback(set_tcp, name, before)
                set_tcp(name, wanted[name])
                earlier[name] = before
        print(json.dumps(earlier), flush=True)
        while select.select([sys.stdin], [], [], silence_s)[0] and os.read(sys.stdin.fileno(), 64):
            pass


def get_mtu(interface: str) -> int:
    """The MTU of an interface [B]."""
    return struct.unpack(_REQUEST, _request(_GET_MTU, interface, 0))[1]


def set_mtu(interface: str, mtu: int) -> None:
    """Give an interface another MTU [B]; raises OSError when it may or can not have it."""
    _request(_SET_MTU, interface, mtu)


def get_tcp(name: str) -> str:
    """One of TCP's defaults, with single blanks between its words."""
    return " ".join((_SYSCTLS / f"tcp_{name}").read_text().split())


def set_tcp(name: str, value: str) -> None:
    """Change one of TCP's defaults; raises OSError when it may or can not be so."""
    (_SYSCTLS / f"tcp_{name}").write_text(value)


def _request(number: int, interface: str, value: int) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        return fcntl.ioctl(any_socket, number, struct.pack(_REQUEST, interface.encode(), value))


if __name__ == "__main__":
    main(float(sys.argv[1]), json.loads(sys.argv[2]))
