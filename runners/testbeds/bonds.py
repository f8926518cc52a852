"""Bonds: all links of a node as one interface, by the kernel's bonding driver or, in turn, by a program of our own."""

import subprocess
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, List, Tuple

from runners import bonding
from runners.record import FalloffError
from runners.testbeds import netns, programs

_PATIENCE_S = 10.0  # LACP agrees within some of its fast periods of a second
_PROBE = ["unshare", "--net", "ip", "link", "add", "probe", "type", "bond"]


@lru_cache(maxsize=None)
def has_driver() -> bool:
    """Whether the kernel has the bonding driver; it is asked in a namespace that ends with the question."""
    return subprocess.run(_PROBE, capture_output=True).returncode == 0


def join(net: Any, start: Callable[[str, List[str]], programs.Started]) -> Tuple[programs.Started, ...]:
    """Join the links of every node of a network as its graph says; the programs that do it, none where the kernel does.

    `start(program, arguments)` starts a program. Where the graph asks for a mode of the kernel's, only the kernel will
    do. Raises FalloffError when it has no driver, a bond does not aggregate, with what the driver says of it, or a
    program ends at once.
    """
    mode = "balance-rr" if net.graph.bonded is True else net.graph.bonded
    if has_driver():
        _by_kernel(net, mode)
        return ()
    if net.graph.bonded is not True:
        raise FalloffError(f"aggregation by {mode} needs the kernel's bonding driver: modprobe bonding max_bonds=0")
    return tuple(_by_program(net, node, start) for node in net.graph.nodes)


def _by_kernel(net: Any, mode: str) -> None:
    invocations, ports = [], {}
    for node in net.graph.nodes:
        place = f"n{node}"
        lines = [*_bond(net.bond(node), mode, net.devices(place)), f"link set {net.bond(node)} up"]
        invocations.append(netns.batch("ip", net.space(place), lines))
        if mode == "802.3ad":
            opposite = list(map(net.graph.opposite, net.graph.ends(place)))
            (switch,) = set(map(net.graph.place, opposite))
            own, devices = net.port_bond(node), list(map(net.device, opposite))
            ports.setdefault(switch, []).extend([*_bond(own, mode, devices), f"link set {own} master bridge up"])
    invocations += [netns.batch("ip", net.space(switch), lines) for switch, lines in ports.items()]
    netns.run(invocations)
    for node in net.graph.nodes:
        _await(net.space(f"n{node}"), net.bond(node))


def _bond(name: str, mode: str, devices: List[str]) -> List[str]:
    """The driver takes in only what is down, and has it up when it is up itself."""
    lacp = " lacp_rate fast xmit_hash_policy layer2" if mode == "802.3ad" else ""
    lines = [f"link add {name} type bond mode {mode} miimon 100{lacp}"]
    return lines + [line for own in devices for line in (f"link set {own} down", f"link set {own} master {name}")]


def _by_program(net: Any, node: int, start: Callable[[str, List[str]], programs.Started]) -> programs.Started:
    space, devices, bond = net.space(f"n{node}"), net.devices(f"n{node}"), net.bond(node)
    started = programs.awaited(start("channel_bond", [f"{space}/net", bond, *devices]), space, bond)
    # Else the kernel would answer for the bond's address by the interface that the question came in by.
    lines = [f"link set {own} arp off" for own in devices]
    netns.run([netns.batch("ip", space, [*lines, f"link set {bond} up"])])
    return started


def _await(space: Path, bond: str) -> None:
    """Until a node's bond aggregates."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        with netns.entered(space):
            text = Path(f"/proc/thread-self/net/bonding/{bond}").read_text(encoding="utf-8")
        found = bonding.judge(bonding.parse(text))
        if found.aggregates:
            return
        if time.monotonic() > deadline:
            raise FalloffError(f"the bond of {space.name} does not aggregate: {found.reason}")
        time.sleep(0.1)
