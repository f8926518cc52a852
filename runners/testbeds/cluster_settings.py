"""What a cluster's description wants of nodes on a network, and what was found there; pure functions.

Settings are named as in node_set.py: `mtu` [B], `congestion_control`, `rmem` and `wmem` as the kernel writes them.
"""

import math
from typing import Any, Dict, List, Mapping, Sequence

from runners.testbeds import fabric, readback


def wanted(description: Mapping[str, Any], network: str) -> Dict[str, Any]:
    """The settings that a description states for a network; whatever it does not state may be as it is."""
    stated = dict(description.get("tcp", {}))
    if "mtu" in description["networks"][network]:
        stated["mtu"] = description["networks"][network]["mtu"]
    return {name: " ".join(map(str, it)) if isinstance(it, list) else it for name, it in stated.items()}


def to_set(description: Mapping[str, Any], network: str, interface: str) -> Dict[str, Any]:
    """What of that may be set on a node with this interface, for node_set.py; empty when nothing."""
    allowed = description.get("may_set", ())
    settings = {name: value for name, value in wanted(description, network).items() if name in allowed}
    return {**settings, "mtu": {interface: settings["mtu"]}} if "mtu" in settings else settings


def read_back(states: Mapping[str, fabric.State], places: Mapping[str, fabric.Place]) -> Dict[str, Any]:
    """All settings of the hosts, on the interfaces of their places; a sentence where they differ."""
    found = {
        host: {"mtu": state["interfaces"][places[host].interface]["mtu"], **state["tcp"]}
        for host, state in states.items()
    }
    return {name: readback.agreed(found, name) for name in next(iter(found.values()))}


def counters(
    hosts: Sequence[str], carried: Mapping[str, Mapping[str, float]], states: Mapping[str, fabric.State]
) -> Dict[str, Any]:
    """Counters of a trial over all hosts, NaN for those that took no part: `bytes_sent`, `bytes_received` [B] on its
    network, `node_clock` [Hz] and `node_temperature` [degC] afterwards, and `fabric_share` of all bytes sent [1]."""

    def over_hosts(found: Mapping[str, Any]) -> List[float]:
        return [math.nan if found.get(host) is None else found[host] for host in hosts]

    sent, elsewhere = (sum(own[way] for own in carried.values()) for way in ("sent", "elsewhere"))
    hottest = {host: max(state["temperatures_degC"].values(), default=None) for host, state in states.items()}
    return {
        "bytes_sent": over_hosts({host: own["sent"] for host, own in carried.items()}),
        "bytes_received": over_hosts({host: own["received"] for host, own in carried.items()}),
        "node_clock": over_hosts({host: state["clock_hz"] for host, state in states.items()}),
        "node_temperature": over_hosts(hottest),
        "fabric_share": sent / (sent + elsewhere) if sent + elsewhere else math.nan,
    }
