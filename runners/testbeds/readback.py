"""What the links are really set to, and how much crossed them."""

import json
from pathlib import Path
from typing import Any, Dict, List, Mapping, Tuple

from runners.testbeds import links, netns

_FEATURES = {
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
}


def settings(state: Path, nodes: int) -> Dict[str, Dict[str, Any]]:
    """The settings of each end of each link as `Link.settings` names them: a node's all, a port's own."""
    found: Dict[str, Dict[str, Any]] = {}
    ends = links.ends(state, nodes)
    spaces = [space for space, _ in ends]
    asked = ["link show", f"route show {links.SUBNET}"]
    addressing = netns.run([links.batch("ip", space, asked) for space in spaces])
    queueing = netns.run([links.batch("tc", space, ["qdisc show"]) for space in spaces])
    offloading = netns.run([netns.Invocation(space, ["ethtool", "--json", "-k", "*"]) for space in spaces])
    for (space, devices), ip, tc, ethtool in zip(ends, addressing, queueing, offloading):
        interfaces, routes = (json.loads(line) for line in ip.splitlines())
        mtus = {row["ifname"]: row["mtu"] for row in interfaces}
        qdiscs, features = json.loads(tc), {row["ifname"]: row for row in json.loads(ethtool)}
        for device in devices:
            found[space.name if device == links.INTERFACE else f"port {device}"] = {
                "tbf_rate_bit_s": _rate([row for row in qdiscs if row["dev"] == device]),
                "mtu": mtus[device],
                **{short: features[device][long]["active"] for short, long in _FEATURES.items()},
            }
        if space.name != links.SWITCH:
            found[space.name].update(congestion_control=_congestion_control(routes), **_sysctls(space))
    return found


def agreed(found: Mapping[str, Mapping[str, Any]], key: str) -> Any:
    """The value of a setting when all ends that have it agree, else a sentence on who has which."""
    holders: Dict[Any, List[str]] = {}
    for end, values in found.items():
        if key in values:
            holders.setdefault(values[key], []).append(end)
    if len(holders) == 1:
        return next(iter(holders))
    return " and ".join(f"{value} on {', '.join(names)}" for value, names in holders.items())


def byte_counts(state: Path, nodes: int) -> Tuple[List[float], List[float]]:
    """Bytes sent and bytes received so far by each node's interface, Ethernet headers included."""
    sent, received = [], []
    for space in links.spaces(state, nodes):
        with netns.entered(space):
            table = Path("/proc/thread-self/net/dev").read_text()
        row = next(line for line in table.splitlines() if line.strip().startswith(f"{links.INTERFACE}:"))
        counts = row.partition(":")[2].split()
        received.append(float(counts[0]))
        sent.append(float(counts[8]))
    return sent, received


def _rate(qdiscs: List[Dict[str, Any]]) -> Any:
    kinds = [qdisc["kind"] for qdisc in qdiscs]
    if kinds == ["tbf"]:
        return qdiscs[0]["options"]["rate"] * 8
    return links.UNSHAPED if kinds == ["noqueue"] else " over ".join(kinds)


def _congestion_control(routes: List[Dict[str, Any]]) -> str:
    metrics = routes[0].get("metrics", [{}])[0] if routes else {}
    return metrics.get("congestion", "the kernel's default")


def _sysctls(space: Path) -> Dict[str, Any]:
    keys = links.TCP_SWITCHES + links.TCP_BUFFERS
    with netns.entered(space):
        words = {key: (links.SYSCTLS / key).read_text().split() for key in keys}
    return {
        **{key: bool(int(words[key][0])) for key in links.TCP_SWITCHES},
        **{key: " ".join(words[key]) for key in links.TCP_BUFFERS},
    }
