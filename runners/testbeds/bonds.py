"""Both links of a node as one interface of the kernel's bonding driver, while a trial runs."""

import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, List

from runners import bonding
from runners.record import FalloffError
from runners.testbeds import links, netns

INTERFACE = "bond"

_RAILS = (1, 2)
_PATIENCE_S = 10.0  # LACP agrees within some of its fast periods of a second
_PROBE = ["unshare", "--net", "ip", "link", "add", "probe", "type", "bond"]


def driver_is_here() -> bool:
    """Whether the kernel has the bonding driver; it is asked in a namespace that ends with the question."""
    return subprocess.run(_PROBE, capture_output=True).returncode == 0


@contextmanager
def bonded(state: Path, nodes: int, mode: str) -> Iterator[None]:
    """Bond the two links of every node and undo it afterwards.

    The links of balance-rr stay on their two switches, as a Beowulf's; those of 802.3ad come to one switch, whose
    ports are bonded too, since LACP needs a partner. Raises FalloffError when the kernel has no driver, or a bond
    does not aggregate, with what the driver says of it.
    """
    if not driver_is_here():
        raise FalloffError(f"aggregation by {mode} needs the kernel's bonding driver: modprobe bonding max_bonds=0")
    switch, spaces = state / links.SWITCH, links.spaces(state, nodes)
    numbers = range(1, nodes + 1)
    by_switch = [line for node in numbers for line in _bond_of_ports(node, mode)] if mode == "802.3ad" else []
    netns.run([links.batch("ip", switch, by_switch)])
    netns.run([links.batch("ip", space, _bond(node, mode)) for node, space in zip(numbers, spaces)])
    try:
        for space in spaces:
            _await(space)
        yield
    finally:
        apart = [line for node in numbers for line in _ports_apart(node)] if by_switch else []
        netns.run([links.batch("ip", space, _apart(node)) for node, space in zip(numbers, spaces)])
        netns.run([links.batch("ip", switch, apart)])


def _bond(node: int, mode: str) -> List[str]:
    """The node's address moves to the bond: a slave's own is never used."""
    devices = [links.interface(rail) for rail in _RAILS]
    return [
        _make(INTERFACE, mode),
        *(line for device in devices for line in _enslave(device, INTERFACE)),
        f"address flush dev {links.interface(1)}",
        f"address add {links.address(node)}/24 dev {INTERFACE} noprefixroute",
        f"link set {INTERFACE} up",
    ]


def _apart(node: int) -> List[str]:
    up = [f"link set {links.interface(rail)} up" for rail in _RAILS]
    return [f"link delete {INTERFACE}", links.attachment(node, 1, 1), *up]


def _bond_of_ports(node: int, mode: str) -> List[str]:
    own = _name(node)
    ports = [links.port(node, rail) for rail in _RAILS]
    return [
        _make(own, mode),
        *(line for port in ports for line in _enslave(port, own)),
        f"link set {own} master {links.bridge()} up",
    ]


def _ports_apart(node: int) -> List[str]:
    back = (f"link set {links.port(node, rail)} master {links.bridge(rail)} up" for rail in _RAILS)
    return [f"link delete {_name(node)}", *back]


def _name(node: int) -> str:
    return f"{links.name(node)}-{INTERFACE}"


def _make(name: str, mode: str) -> str:
    lacp = " lacp_rate fast xmit_hash_policy layer2" if mode == "802.3ad" else ""
    return f"link add {name} type bond mode {mode} miimon 100{lacp}"


def _enslave(device: str, bond: str) -> List[str]:
    return [f"link set {device} down", f"link set {device} master {bond}", f"link set {device} up"]


def _await(space: Path) -> None:
    """Until the node's bond aggregates."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        with netns.entered(space):
            text = Path(f"/proc/thread-self/net/bonding/{INTERFACE}").read_text(encoding="utf-8")
        found = bonding.judge(bonding.parse(text))
        if found.aggregates:
            return
        if time.monotonic() > deadline:
            raise FalloffError(f"the bond of {space.name} does not aggregate: {found.reason}")
        time.sleep(0.1)
