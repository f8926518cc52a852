"""What the links are really set to, and how much crossed them."""

import json
import math
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from runners.testbeds import links, netns

_FEATURES = {
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
}


def settings(state: Path, nodes: int, rails: int = 1) -> Dict[str, Dict[str, Any]]:
    """The settings of each end of each link as `Link.settings` names them: a node's with its first link."""
    found: Dict[str, Dict[str, Any]] = {}
    for (place, device), values in interfaces(links.ends(state, nodes, rails)).items():
        further = f"port {device}" if place == links.SWITCH else f"{place} {device}"
        found[place if device == links.INTERFACE else further] = values
    for space in links.spaces(state, nodes):
        found[space.name].update(tcp(space))
    return found


def interfaces(ends: Sequence[Tuple[Path, Sequence[str]]]) -> Dict[Tuple[str, str], Dict[str, Any]]:
    """Rate, MTU and offloads of interfaces by (name of the namespace, interface), for namespaces with interfaces."""
    spaces = [space for space, _ in ends]
    addressing = netns.run([netns.Invocation(space, ["ip", "-details", "-json", "link", "show"]) for space in spaces])
    queueing = netns.run([links.batch("tc", space, ["qdisc show"]) for space in spaces])
    offloading = netns.run([netns.Invocation(space, ["ethtool", "--json", "-k", "*"]) for space in spaces])
    found = {}
    for (space, devices), ip, tc, ethtool in zip(ends, addressing, queueing, offloading):
        shown = {row["ifname"]: row for row in json.loads(ip)}
        qdiscs, features = json.loads(tc), {row["ifname"]: row for row in json.loads(ethtool)}
        for device in devices:
            row = shown[device]
            offloads = {short: features[device][long]["active"] for short, long in _FEATURES.items()}
            # What may not grow beyond a frame is not aggregated, though the feature be on.
            offloads["gro"] = offloads["gro"] and row.get("gro_max_size", math.inf) > row["mtu"]
            rate = _rate([qdisc for qdisc in qdiscs if qdisc["dev"] == device])
            found[space.name, device] = {"tbf_rate_bit_s": rate, "mtu": row["mtu"], **offloads}
    return found


def tcp(space: Path) -> Dict[str, Any]:
    """The TCP settings of a node as `Link.settings` names them; the congestion control is that of its routes."""
    (shown,) = netns.run([netns.Invocation(space, ["ip", "-json", "route", "show"])])
    controls = {route["dst"]: _congestion_control(route) for route in json.loads(shown)}
    return {"congestion_control": agreed({to: {"": it} for to, it in controls.items()}, ""), **_sysctls(space)}


def agreed(found: Mapping[str, Mapping[str, Any]], key: str) -> Any:
    """The value of a setting when all ends that have it agree, else a sentence on who has which."""
    holders: Dict[Any, List[str]] = {}
    for end, values in found.items():
        if key in values:
            holders.setdefault(values[key], []).append(end)
    if len(holders) == 1:
        return next(iter(holders))
    return " and ".join(f"{value} on {', '.join(names)}" for value, names in holders.items())


def byte_counts(state: Path, nodes: int, interface: str = links.INTERFACE) -> Tuple[List[float], List[float]]:
    """Bytes sent and bytes received so far by an interface of each node, Ethernet headers included."""
    sent, received = [], []
    for space in links.spaces(state, nodes):
        with netns.entered(space):
            table = Path("/proc/thread-self/net/dev").read_text()
        row = next(line for line in table.splitlines() if line.strip().startswith(f"{interface}:"))
        counts = row.partition(":")[2].split()
        received.append(float(counts[0]))
        sent.append(float(counts[8]))
    return sent, received


def _rate(qdiscs: List[Dict[str, Any]]) -> Any:
    kinds = [qdisc["kind"] for qdisc in qdiscs]
    if kinds == ["tbf"]:
        return qdiscs[0]["options"]["rate"] * 8
    return links.UNSHAPED if kinds == ["noqueue"] else " over ".join(kinds)


def _congestion_control(route: Mapping[str, Any]) -> str:
    return route.get("metrics", [{}])[0].get("congestion", "the kernel's default")


def _sysctls(space: Path) -> Dict[str, Any]:
    keys = links.TCP_SWITCHES + links.TCP_BUFFERS
    with netns.entered(space):
        words = {key: (links.SYSCTLS / key).read_text().split() for key in keys}
    return {
        **{key: bool(int(words[key][0])) for key in links.TCP_SWITCHES},
        **{key: " ".join(words[key]) for key in links.TCP_BUFFERS},
    }
