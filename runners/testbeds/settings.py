"""The settings that interfaces and nodes should have, and those that they have, in the same
words."""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Callable, Optional

from runners.records.record import Settings
from runners.testbeds import netns

SYSCTLS = Path("/proc/sys/net/ipv4")
UNSHAPED = "unshaped"

# The shaper's queue is as deep as a switch's packet memory for a port: 8 ms at 1 Gbit/s.
# A smaller queue drops packets at the start of a TCP flow; a larger queue only adds delay.
_QUEUE = "1mb"
# Holds two of the 64 KiB super-packets that segmentation offload passes down: with one, 10 Gbit/s
# is never reached.
_BURST = 128 * 1024
# Without super-packets it holds what the wire carries while the kernel's timer is late, and at
# least two frames. On a busy machine 1 ms lost up to a quarter of 50 Mbit/s, 4 ms less than a
# hundredth.
_LATE_S = 4e-3
# Bytes of a frame that are on the wire but not in what tc counts: preamble 8, checksum 4, gap 12.
UNCOUNTED = 24
HEADER = 14
_SMALLEST_ON_WIRE = 84
# tc shows a burst in whole microseconds at the rate, and drops fractions of a byte.
_SHOWN_S = 2e-6

# A node's IPv4 settings, and how each is read.
_SYSCTLS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("tcp_no_metrics_save", "tcp_slow_start_after_idle"), lambda text: text != "0"),
    **dict.fromkeys(("tcp_rmem", "tcp_wmem"), lambda text: " ".join(text.split())),
    **dict.fromkeys(("fib_multipath_hash_policy", "fib_multipath_hash_seed"), int),
    **dict.fromkeys(("tcp_early_retrans", "tcp_recovery"), int),
}
_FEATURES = {
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
}


@dataclass(frozen=True)
class Shaper:
    """What is asked of an end: bit/s on the wire (None: unshaped) for frames of an MTU in bytes.

    `super_packets` is whether tc sees packets of many frames, which are cut up after it. With
    `burst_s` [s] the burst is one full frame plus what the wire carries in that time. Every message
    gets these bytes for free, so the burst should be small.
    """

    rate_bit_s: Optional[float]
    mtu: int
    super_packets: bool = False
    burst_s: Optional[float] = None

    @property
    def tbf_rate_bit_s(self) -> Any:
        """The rate for tc, in whole bytes as tc keeps it, at which frames leave as fast as on
        Ethernet.

        tc counts MTU + 14 bytes for a full frame that occupies MTU + 38 on the wire, so the rate is
        smaller by that ratio. Without super-packets tc adds the difference to every frame itself.
        """
        if self.rate_bit_s is None:
            return UNSHAPED
        counted = self.mtu + HEADER
        ratio = counted / (counted + UNCOUNTED) if self.super_packets else 1.0
        return int(self.rate_bit_s * ratio / 8) * 8

    @property
    def burst_bytes(self) -> Any:
        """The bytes that leave at once after a pause, before the rate holds again."""
        if self.rate_bit_s is None:
            return UNSHAPED
        frame = self.mtu + HEADER + UNCOUNTED
        if self.burst_s is not None:
            return int(frame + self.rate_bit_s * self.burst_s / 8)
        return _BURST if self.super_packets else max(int(self.rate_bit_s * _LATE_S / 8), 2 * frame)

    @property
    def qdisc(self) -> str:
        """The queueing discipline in tc's words."""
        if self.rate_bit_s is None:
            return "noqueue"
        stab = "" if self.super_packets else f"stab overhead {UNCOUNTED} mpu {_SMALLEST_ON_WIRE} "
        return f"{stab}tbf rate {self.tbf_rate_bit_s}bit burst {self.burst_bytes} limit {_QUEUE}"

    def settings(self) -> Settings:
        """The settings that must be found when reading back; with the burst if one was asked
        for."""
        return self.effective(self.tbf_rate_bit_s, self.burst_bytes)

    def effective(self, rate_bit_s: Any, burst_bytes: Any) -> Settings:
        """The settings found, under the names of `settings`. The burst is the one asked for if tc
        can show no difference."""
        if self.burst_s is None:
            return {"tbf_rate_bit_s": rate_bit_s}
        shaped = rate_bit_s == self.tbf_rate_bit_s != UNSHAPED
        if shaped and abs(burst_bytes - self.burst_bytes) <= max(1, _SHOWN_S * rate_bit_s / 8):
            burst_bytes = self.burst_bytes
        return {"tbf_rate_bit_s": rate_bit_s, "tbf_burst_bytes": burst_bytes}


def is_known(key: str) -> bool:
    """Whether this kernel has an IPv4 setting."""
    return (SYSCTLS / key).exists()


def write(space: Path, values: Settings) -> None:
    """Set IPv4 settings in a namespace to these values; booleans become 0 and 1."""
    with netns.entered(space):
        for key, value in values.items():
            (SYSCTLS / key).write_text(str(int(value) if isinstance(value, bool) else value))


def sysctls(tcp: Settings, hash_policy: int, seed: int) -> Settings:
    """The IPv4 settings that a testbed's `tcp` asks for, by their names in the kernel, and those
    that decide which link a flow takes, if the kernel knows them: the seed exists since Linux
    6.11."""
    asked = {f"tcp_{key}": worded(value) for key, value in tcp.items()}
    asked.update(fib_multipath_hash_policy=hash_policy, fib_multipath_hash_seed=seed)
    return {key: asked[key] for key in filter(is_known, _SYSCTLS) if key in asked}


def worded(value: Any) -> Any:
    """A setting as it is read back: the numbers of a list as one text."""
    return " ".join(map(str, value)) if isinstance(value, list) else value


# The settings of a node's routes by their names here, and as metrics in ip's words: congestion
# control, and if asked for the least retransmission timeout [ms] and ECN.
_METRICS = {
    "congestion_control": "congctl {}",
    "rto_min_ms": "rto_min {}ms",
    "ecn": "features ecn",
    "quickack": "quickack 1",
}


def of_routes(tcp: Settings) -> Settings:
    """Those of a testbed's `tcp` settings that a node's routes have."""
    return {key: tcp[key] for key in _METRICS if tcp.get(key)}


def metrics(tcp: Settings) -> str:
    """The metrics of a node's routes in ip's words."""
    return " ".join(_METRICS[key].format(value) for key, value in of_routes(tcp).items())


def interfaces(spaces: Sequence[Path]) -> dict[str, dict]:
    """Shaper, MTU and offloads of all interfaces in these namespaces, by name.

    The shaper is `rate_bit_s` and `burst_bytes`, in tc's form, or a word for another discipline;
    `largest_packet_bytes` [B] is the most that may pass as one packet of several frames.
    """
    links = chain(*_in_each(spaces, "ip", "-details", "-json", "link", "show"))
    offloads = chain(*_in_each(spaces, "ethtool", "--json", "-k", "*"))
    features, qdiscs = {row["ifname"]: row for row in offloads}, defaultdict(list)
    for qdisc in chain(*_in_each(spaces, "tc", "-json", "qdisc", "show")):
        qdiscs[qdisc["dev"]].append(qdisc)
    return {
        row["ifname"]: _interface(row, qdiscs[row["ifname"]], features[row["ifname"]])
        for row in links
    }


def _in_each(spaces: Sequence[Path], *argv: str) -> list[list]:
    """The rows that a tool prints in each of these namespaces."""
    return list(map(json.loads, netns.run([netns.Invocation(space, argv) for space in spaces])))


def _interface(row: Settings, qdiscs: Sequence[Settings], features: Settings) -> dict:
    offloads = {short: features[long]["active"] for short, long in _FEATURES.items()}
    # Packets that may not exceed a frame are not aggregated, even if the feature is on.
    offloads["gro"] = offloads["gro"] and row.get("gro_max_size", math.inf) > row["mtu"]
    limits = ["gso_max_size", "gso_ipv4_max_size"] if offloads["tso"] or offloads["gso"] else []
    limits += ["gro_max_size", "gro_ipv4_max_size"] if offloads["gro"] else []
    kinds = [qdisc["kind"] for qdisc in qdiscs]
    rate = burst = UNSHAPED if kinds == ["noqueue"] else " over ".join(kinds)
    if kinds == ["tbf"]:
        rate, burst = qdiscs[0]["options"]["rate"] * 8, qdiscs[0]["options"]["burst"]
    return {
        "rate_bit_s": rate,
        "burst_bytes": burst,
        "mtu": row["mtu"],
        "largest_packet_bytes": max((row[key] for key in limits if key in row), default=row["mtu"]),
        **offloads,
    }


def tcp(spaces: Sequence[Path]) -> dict[str, dict]:
    """The TCP settings of nodes by name; congestion control is that of their routes.

    `routes` has the interfaces that lead to each address.
    """
    settings = {}
    for space, routes in zip(spaces, _in_each(spaces, "ip", "-json", "route", "show")):
        metrics, links = {}, {}
        for route in routes:
            metric, to = (route.get("metrics") or [{}])[0], route["dst"]
            links[to] = [hop["dev"] for hop in route.get("nexthops", [route])]
            metrics[to] = {"congestion_control": metric.get("congestion", "the kernel's default")}
            if "rto_min" in metric:
                metrics[to]["rto_min_ms"] = metric["rto_min"]
            if "ecn" in metric:
                metrics[to]["ecn"] = True
            if metric.get("quickack"):
                metrics[to]["quickack"] = True
        with netns.entered(space):
            texts = {key: (SYSCTLS / key).read_text().strip() for key in filter(is_known, _SYSCTLS)}
        sysctls = {key: _SYSCTLS[key](text) for key, text in texts.items()}
        settings[space.name] = {**all_agreed(metrics), **sysctls, "routes": links}
    return settings


def routes_text(routes: Mapping[str, Sequence[Any]]) -> str:
    """The links by which a node reaches each subnet, in words; `routes` has them by address."""
    by_subnet = defaultdict(set)
    for to, links in routes.items():
        subnet = to.partition("/")[0].rpartition(".")[0]
        by_subnet[subnet].add(" and ".join(sorted(map(str, links))))
    return ", ".join(
        f"{subnet}.0/24 by link {' or '.join(sorted(links))}"
        for subnet, links in sorted(by_subnet.items())
    )


def agreed(settings: Mapping[str, Settings], key: str) -> Any:
    """The value of a setting if all agree, else a sentence that says who has which."""
    by_value = holders({who: values[key] for who, values in settings.items() if key in values})
    if len(by_value) == 1:
        return next(iter(by_value))
    return " and ".join(f"{value} on {', '.join(names)}" for value, names in by_value.items())


def all_agreed(settings: Mapping[str, Settings]) -> dict:
    """Every setting that somebody has, as `agreed` says it."""
    keys = {key: None for values in settings.values() for key in values}
    return {key: agreed(settings, key) for key in keys}


def holders(values: Mapping[str, Any]) -> dict[Any, list[str]]:
    """Each value, with those that have it."""
    by_value = defaultdict(list)
    for holder, value in values.items():
        by_value[value].append(holder)
    return by_value
