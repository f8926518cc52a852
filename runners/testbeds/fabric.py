"""What a cluster's nodes did and how they were set in a trial: the fabric asked for has to be the fabric used.

A state is what runners/probes/node_state.py prints of a node; bytes are differences of two states. Settings are `mtu`
[B], `congestion_control`, `rmem` and `wmem` as the kernel writes them.
"""

import ipaddress
import math
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence

from runners.record import FalloffError
from runners.testbeds.settings import agreed

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
    subnet = ipaddress.ip_network(network.get("subnet", "0.0.0.0/0"))
    for name, interface in state["interfaces"].items():
        if network.get("interface", name) != name:
            continue
        for address in map(ipaddress.ip_interface, interface["addresses"]):
            if address.version == subnet.version and address.ip in subnet:
                return Place(name, str(address.ip))
    wanted = " and ".join(
        f"{key} {network[key]}" for key in ("subnet", "interface") if key in network
    )
    raise FalloffError(f"{state['hostname']} has no address on {wanted}")


def carried(before: State, after: State, network: Mapping[str, Any], at: Place) -> Dict[str, float]:
    """Bytes `sent` and `received` by a node on the network, and those `elsewhere` that it sent on others.

    RDMA bypasses the interface's counters. An InfiniBand port counts what its IP interface sends too.
    Raises FalloffError when a counter that is needed is missing.
    """
    interfaces, ports = _grown(before, after, "interfaces"), _grown(before, after, "rdma")
    port = network.get("rdma")
    if port is not None and port not in ports:
        known = ", ".join(ports) or "none"
        raise FalloffError(
            f"{after['hostname']} has no counters of RDMA port {port}; there are {known}"
        )
    counts = [ports[port]] if port else []
    if not port or after["rdma"][port]["link_layer"] != "InfiniBand":
        counts.append(interfaces[at.interface])
    lower = after["interfaces"][at.interface]["lower"]
    elsewhere = [ports[name]["sent"] for name in ports if name != port]
    for name, interface in after["interfaces"].items():
        # What a VLAN sends the interface below it counts too; without an address it is a member of another.
        same = name in (at.interface, lower) or interface["lower"] == at.interface
        if interface["addresses"] and not same:
            elsewhere.append(interfaces[name]["sent"])
    return {
        "sent": sum(count["sent"] for count in counts),
        "received": sum(count["received"] for count in counts),
        "elsewhere": sum(elsewhere),
    }


def _grown(before: State, after: State, kind: str) -> Dict[str, Dict[str, float]]:
    """By how much the counters grew of every interface or port that was there all the time."""
    return {
        name: {
            way: after[kind][name][way] - before[kind][name][way] for way in ("sent", "received")
        }
        for name in after[kind]
        if name in before[kind]
    }


def used(network: str, nodes: List[Mapping[str, float]]) -> Optional[str]:
    """The network's name when it carried what these nodes sent, else in words how much went elsewhere.

    None when too little was sent to tell. `nodes` are from `carried`.
    """
    sent, elsewhere = (sum(node[way] for node in nodes) for way in ("sent", "elsewhere"))
    background = _BACKGROUND * len(nodes)
    if max(sent, elsewhere) <= background:
        return None
    if elsewhere <= max(background, _LARGEST_SHARE_ELSEWHERE * (sent + elsewhere)):
        return network
    return f"{network} for {sent:.3g} bytes and other interfaces for {elsewhere:.3g}"


def wanted(description: Mapping[str, Any], network: str) -> Dict[str, Any]:
    """The settings that a description states for a network; whatever it does not state may be as it is."""
    stated = dict(description.get("tcp", {}))
    if "mtu" in description["networks"][network]:
        stated["mtu"] = description["networks"][network]["mtu"]
    return {
        name: " ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in stated.items()
    }


def effective(states: Mapping[str, State], places: Mapping[str, Place]) -> Dict[str, Any]:
    """All settings of the hosts, on the interfaces of their places; a sentence where they differ."""
    settings = {
        host: {"mtu": state["interfaces"][places[host].interface]["mtu"], **state["tcp"]}
        for host, state in states.items()
    }
    return {name: agreed(settings, name) for name in next(iter(settings.values()))}


def counters(
    hosts: Sequence[str], bytes_of: Mapping[str, Mapping[str, float]], states: Mapping[str, State]
) -> Dict[str, Any]:
    """Counters of a trial over all hosts, NaN for those that took no part.

    `bytes_sent`, `bytes_received` [B] on its network, `node_clock` [Hz] and `node_temperature` [degC] afterwards, and
    `fabric_share` of all bytes sent [1].
    """

    def over_hosts(values: Mapping[str, Mapping[str, Any]], key: str) -> List[float]:
        known = {host: value[key] for host, value in values.items() if value[key] is not None}
        return [known.get(host, math.nan) for host in hosts]

    sent, elsewhere = (
        sum(counts[way] for counts in bytes_of.values()) for way in ("sent", "elsewhere")
    )
    return {
        "bytes_sent": over_hosts(bytes_of, "sent"),
        "bytes_received": over_hosts(bytes_of, "received"),
        "node_clock": over_hosts(states, "clock_hz"),
        "node_temperature": over_hosts(states, "hottest_degC"),
        "fabric_share": sent / (sent + elsewhere) if sent + elsewhere else math.nan,
    }
