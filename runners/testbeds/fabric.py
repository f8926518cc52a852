"""Which network carried a trial's bytes: the fabric that was asked for has to be the fabric that was used.

A state is what runners/probes/node_state.py prints of a node; bytes are differences of two states.
"""

import ipaddress
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional

from runners.record import FalloffError

State = Mapping[str, Any]

# What else a node sends during a trial [B]: answers to ssh, mpirun's own talk, monitoring.
_BACKGROUND = 1e6
# Of all bytes, beyond the background: more of it elsewhere, and it was not the network that was asked for.
_LARGEST_SHARE_ELSEWHERE = 0.05


@dataclass(frozen=True)
class Place:
    """Where a node is on a network: its interface and its address there."""

    interface: str
    address: str


def place(state: State, network: Mapping[str, Any]) -> Place:
    """The node's interface on a network of a cluster's description, and the address that others reach it by.

    Raises FalloffError when it has none there.
    """
    inside = ipaddress.ip_network(network.get("subnet", "0.0.0.0/0"))
    for name, interface in state["interfaces"].items():
        if network.get("interface", name) != name:
            continue
        for address in map(ipaddress.ip_interface, interface["addresses"]):
            if address.version == inside.version and address.ip in inside:
                return Place(name, str(address.ip))
    wanted = " and ".join(f"{key} {network[key]}" for key in ("subnet", "interface") if key in network)
    raise FalloffError(f"{state['hostname']} has no address on {wanted}")


def carried(before: State, after: State, network: Mapping[str, Any], at: Place) -> Dict[str, float]:
    """Bytes `sent` and `received` by a node on the network, and those `elsewhere` that it sent on others.

    RDMA bypasses the interface's counters. An InfiniBand port counts what its IP interface sends too.
    Raises FalloffError when a counter that is needed is missing.
    """
    interfaces, ports = _grown(before, after, "interfaces"), _grown(before, after, "rdma")
    own_port = network.get("rdma")
    if own_port is not None and own_port not in ports:
        there = ", ".join(ports) or "none"
        raise FalloffError(f"{after['hostname']} has no counters of RDMA port {own_port}; there are {there}")
    own = [ports[own_port]] if own_port else []
    if not own_port or after["rdma"][own_port]["link_layer"] != "InfiniBand":
        own.append(interfaces[at.interface])
    others = [ports[name]["sent"] for name in ports if name != own_port]
    others += [interfaces[name]["sent"] for name in _apart(after["interfaces"], at.interface)]
    return {
        "sent": sum(counts["sent"] for counts in own),
        "received": sum(counts["received"] for counts in own),
        "elsewhere": sum(others),
    }


def used(network: str, nodes: List[Mapping[str, float]]) -> Optional[str]:
    """The network's name when it carried what these nodes sent, else in words how much went elsewhere; None when too
    little was sent to tell. `nodes` are from `carried`."""
    own, elsewhere = (sum(node[way] for node in nodes) for way in ("sent", "elsewhere"))
    background = _BACKGROUND * len(nodes)
    if max(own, elsewhere) <= background:
        return None
    if elsewhere <= max(background, _LARGEST_SHARE_ELSEWHERE * (own + elsewhere)):
        return network
    return f"{network} for {own:.3g} bytes and other interfaces for {elsewhere:.3g}"


def _grown(before: State, after: State, kind: str) -> Dict[str, Dict[str, float]]:
    """By how much the counters grew of every interface or port that was there all the time."""
    return {
        name: {way: after[kind][name][way] - before[kind][name][way] for way in ("sent", "received")}
        for name in after[kind]
        if name in before[kind]
    }


def _apart(interfaces: Mapping[str, Any], own: str) -> List[str]:
    """The interfaces with addresses of their own whose bytes are not counted as those of `own` too, as a VLAN's are
    by the interface below."""
    return [
        name
        for name, interface in interfaces.items()
        if interface["addresses"] and name not in (own, interfaces[own]["lower"]) and interface["lower"] != own
    ]
