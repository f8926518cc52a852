"""What interfaces and nodes are really set to, in the words in which settings are asked for."""

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from runners.testbeds import netns
from runners.testbeds.shaper import UNSHAPED

SYSCTLS = Path("/proc/sys/net/ipv4")

_SWITCHES = ("no_metrics_save", "slow_start_after_idle")
_BUFFERS = ("rmem", "wmem")
_HASHING = ("fib_multipath_hash_policy", "fib_multipath_hash_seed")  # the seed since Linux 6.11
_FEATURES = {
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
}


def is_known(key: str) -> bool:
    """Whether this kernel has a setting of IPv4."""
    return (SYSCTLS / key).exists()


def write(space: Path, values: Mapping[str, str]) -> None:
    """Give IPv4's settings in a namespace these values."""
    with netns.entered(space):
        for key, value in values.items():
            (SYSCTLS / key).write_text(value)


def tcp_sysctls(asked: Mapping[str, Any]) -> Dict[str, str]:
    """The settings of IPv4 that a testbed's `tcp` asks for, as they are written."""
    return {
        **{f"tcp_{key}": str(int(asked[key])) for key in _SWITCHES},
        **{f"tcp_{key}": " ".join(map(str, asked[key])) for key in _BUFFERS},
    }


def asked_of_tcp(asked: Mapping[str, Any]) -> Dict[str, Any]:
    """What `tcp` must find on a node, but for its routes; quickack where it is asked for, on or off."""
    return {
        "congestion_control": asked["congestion_control"],
        **({"quickack": bool(asked["quickack"])} if "quickack" in asked else {}),
        **{f"tcp_{key}": bool(asked[key]) for key in _SWITCHES},
        **{f"tcp_{key}": " ".join(map(str, asked[key])) for key in _BUFFERS},
    }


def interfaces(ends: Sequence[Tuple[Path, Sequence[str]]]) -> Dict[Tuple[str, str], Dict[str, Any]]:
    """Shaper, MTU and offloads of interfaces by (name of the namespace, interface), for namespaces with interfaces.

    The shaper is `rate_bit_s` and `burst_bytes`, as tc has them, or a word for what is there instead;
    `largest_packet_bytes` [B] is what may pass as one packet of several frames.
    """
    spaces = [space for space, _ in ends]
    addressing = netns.run([netns.Invocation(space, ["ip", "-details", "-json", "link", "show"]) for space in spaces])
    queueing = netns.run([netns.batch("tc", space, ["qdisc show"]) for space in spaces])
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
            rate, burst = _shaper([qdisc for qdisc in qdiscs if qdisc["dev"] == device])
            limits = ["gso_max_size", "gso_ipv4_max_size"] if offloads["tso"] or offloads["gso"] else []
            limits += ["gro_max_size", "gro_ipv4_max_size"] if offloads["gro"] else []
            found[space.name, device] = {
                "rate_bit_s": rate,
                "burst_bytes": burst,
                "mtu": row["mtu"],
                "largest_packet_bytes": max((row[limit] for limit in limits if limit in row), default=row["mtu"]),
                **offloads,
            }
    return found


def _shaper(qdiscs: Sequence[Mapping[str, Any]]) -> Tuple[Any, Any]:
    kinds = [qdisc["kind"] for qdisc in qdiscs]
    if kinds == ["tbf"]:
        return qdiscs[0]["options"]["rate"] * 8, qdiscs[0]["options"]["burst"]
    said = UNSHAPED if kinds == ["noqueue"] else " over ".join(kinds)
    return said, said


def tcp(spaces: Sequence[Path]) -> Dict[str, Dict[str, Any]]:
    """The TCP settings of nodes by their names; congestion control and quick ACKs are those of their routes.

    `routes` has for each address the interfaces that lead there.
    """
    listings = netns.run([netns.Invocation(space, ["ip", "-json", "route", "show"]) for space in spaces])
    found = {}
    for space, listing in zip(spaces, listings):
        routes = {route["dst"]: route for route in json.loads(listing)}
        metrics = {to: {"": {}, **(route.get("metrics") or [{}])[0]} for to, route in routes.items()}
        controls = {to: {"": its.get("congestion", "the kernel's default")} for to, its in metrics.items()}
        quick = {to: {"": bool(its.get("quickack", 0))} for to, its in metrics.items()}
        found[space.name] = {
            "congestion_control": agreed(controls, ""),
            "quickack": agreed(quick, ""),
            **_sysctls(space),
            "routes": {to: [hop["dev"] for hop in route.get("nexthops", [route])] for to, route in routes.items()},
        }
    return found


def routes_text(routes: Mapping[str, Sequence[Any]]) -> str:
    """By which of its links a node reaches each subnet, in words; `routes` has them by address."""
    by_subnet = defaultdict(set)
    for to, links in routes.items():
        by_subnet[to.partition("/")[0].rpartition(".")[0]].add(" and ".join(sorted(map(str, links))))
    return ", ".join(f"{subnet}.0/24 by link {' or '.join(sorted(by_subnet[subnet]))}" for subnet in sorted(by_subnet))


def agreed(found: Mapping[str, Mapping[str, Any]], key: str) -> Any:
    """The value of a setting when all ends that have it agree, else a sentence on who has which."""
    holders: Dict[Any, List[str]] = {}
    for end, values in found.items():
        if key in values:
            holders.setdefault(values[key], []).append(end)
    if len(holders) == 1:
        return next(iter(holders))
    return " and ".join(f"{value} on {', '.join(names)}" for value, names in holders.items())


def _sysctls(space: Path) -> Dict[str, Any]:
    with netns.entered(space):
        words = {f"tcp_{key}": (SYSCTLS / f"tcp_{key}").read_text().split() for key in (*_SWITCHES, *_BUFFERS)}
        hashing = {key: int((SYSCTLS / key).read_text()) for key in _HASHING if is_known(key)}
    return {
        **{f"tcp_{key}": bool(int(words[f"tcp_{key}"][0])) for key in _SWITCHES},
        **{f"tcp_{key}": " ".join(words[f"tcp_{key}"]) for key in _BUFFERS},
        **hashing,
    }
