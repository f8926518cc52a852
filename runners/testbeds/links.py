"""Links between nodes: veth pairs to a bridge, shaped at both ends, with TCP and offloads pinned."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from runners.testbeds import netns

# The bridges are in a namespace of their own, so every testbed can use the same addresses.
SUBNET = "10.81.0.0/24"
INTERFACE = "eth0"
SWITCH = "switch"

SYSCTLS = Path("/proc/sys/net/ipv4")
TCP_SWITCHES = ("tcp_no_metrics_save", "tcp_slow_start_after_idle")
TCP_BUFFERS = ("tcp_rmem", "tcp_wmem")
OFFLOADS = ("tso", "gso", "gro")
UNSHAPED = "unshaped"

# The shaper's queue, as deep as the packet memory that a switch has for a port: 8 ms at 1 Gbit/s.
# A smaller one loses the start of a TCP flow to drops, a larger one is only delay.
_QUEUE = "1mb"
# Holds two of the 64 KiB super-packets that segmentation offload passes down: at one, 10 Gbit/s is
# never reached.
_BURST = 128 * 1024
# Without super-packets it holds what the wire carries while the kernel's timer is late, and two frames at least: on
# a busy machine 1 ms lost up to a quarter of 50 Mbit/s, 4 ms less than a hundredth.
_LATE_S = 4e-3

# Bytes of a frame that are on the wire but not in what tc counts: preamble 8, checksum 4, gap 12.
_UNCOUNTED = 24
_HEADER = 14
_SMALLEST_ON_WIRE = 84


@dataclass(frozen=True)
class Link:
    """What is asked of every link: bit/s on the wire (None: unshaped), MTU in bytes, TCP and offloads.

    `tcp` has congestion_control, no_metrics_save, slow_start_after_idle, rmem and wmem;
    `offloads` has tso, gso and gro.
    """

    rate_bit_s: Optional[float]
    mtu: int
    tcp: Mapping[str, Any]
    offloads: Mapping[str, bool]

    @property
    def super_packets(self) -> bool:
        """Whether tc sees packets of many frames, to be cut up behind it."""
        return self.offloads["tso"] or self.offloads["gso"]

    @property
    def tbf_rate_bit_s(self) -> Any:
        """The rate for tc, in whole bytes as tc keeps it, with which frames leave as fast as on Ethernet.

        tc counts MTU + 14 bytes for a full frame that occupies MTU + 38 on the wire, so the rate is
        smaller by that ratio. Without super-packets tc adds the difference to every frame itself.
        """
        if self.rate_bit_s is None:
            return UNSHAPED
        counted = self.mtu + _HEADER
        ratio = counted / (counted + _UNCOUNTED) if self.super_packets else 1.0
        return int(self.rate_bit_s * ratio / 8) * 8

    @property
    def burst_bytes(self) -> int:
        """How much leaves at once after a pause, before the rate holds again."""
        if self.super_packets:
            return _BURST
        return max(int(self.rate_bit_s * _LATE_S / 8), 2 * (self.mtu + _HEADER + _UNCOUNTED))

    @property
    def qdisc(self) -> str:
        """The queueing discipline in tc's words."""
        if self.rate_bit_s is None:
            return "noqueue"
        stab = "" if self.super_packets else f"stab overhead {_UNCOUNTED} mpu {_SMALLEST_ON_WIRE} "
        return f"{stab}tbf rate {self.tbf_rate_bit_s}bit burst {self.burst_bytes} limit {_QUEUE}"

    def settings(self) -> Dict[str, Any]:
        """What must be found on every link when it is read back."""
        asked = {f"tcp_{key}": value for key, value in self.tcp.items()}
        return {
            "tbf_rate_bit_s": self.tbf_rate_bit_s,
            "mtu": self.mtu,
            "congestion_control": asked["tcp_congestion_control"],
            **{key: bool(asked[key]) for key in TCP_SWITCHES},
            **{key: " ".join(map(str, asked[key])) for key in TCP_BUFFERS},
            **{key: bool(self.offloads[key]) for key in OFFLOADS},
        }


def subnet(rail: int) -> str:
    """The subnet of a rail (rails count from 1)."""
    return SUBNET.replace(".0.0/", f".{rail - 1}.0/")


def address(node: int, rail: int = 1) -> str:
    """The address of a node (nodes count from 1) on a rail."""
    return subnet(rail).replace("0/24", str(node))


def interface(rail: int) -> str:
    """A node's interface that ends its link of a rail."""
    return f"eth{rail - 1}"


def port(node: int, rail: int = 1) -> str:
    """The switch's interface at the other end of it."""
    return name(node) if rail == 1 else f"{name(node)}-{rail}"


def bridge(rail: int = 1) -> str:
    """The switch of a rail: one in the same namespace for each."""
    return "bridge" if rail == 1 else f"bridge-{rail}"


def name(node: int) -> str:
    """The hostname of a node, and of its folder and its port on the switch."""
    return f"n{node}"


def spaces(state: Path, nodes: int) -> List[Path]:
    """The namespaces of the nodes."""
    return [state / name(node) for node in range(1, nodes + 1)]


def ends(state: Path, nodes: int, rails: int = 1) -> List[Tuple[Path, List[str]]]:
    """Every namespace with the interfaces in it that end a link."""
    interfaces = [interface(rail) for rail in range(1, rails + 1)]
    ports = [port(node, rail) for rail in range(1, rails + 1) for node in range(1, nodes + 1)]
    return [*((space, interfaces) for space in spaces(state, nodes)), (state / SWITCH, ports)]


def build(state: Path, nodes: int, rails: int = 1) -> None:
    """Make the namespaces of the nodes and of the switches, one for each rail, and wire every node to each."""
    switch = state / SWITCH
    for space in (switch, *spaces(state, nodes)):
        netns.create(space)
    wiring = []
    for rail in range(1, rails + 1):
        wiring += [f"link add {bridge(rail)} type bridge", f"link set {bridge(rail)} up"]
        for node, space in enumerate(spaces(state, nodes), start=1):
            own = port(node, rail)
            wiring.append(f"link add {own} type veth peer name {interface(rail)} netns {space}/net")
            wiring.append(f"link set {own} master {bridge(rail)} up")
    netns.run([batch("ip", switch, wiring)])
    netns.run([batch("ip", space, _plug(node, rails)) for node, space in enumerate(spaces(state, nodes), start=1)])


def configure(state: Path, nodes: int, link: Link, rails: int = 1) -> None:
    """Give every link the rate, MTU and offloads, and every node the TCP settings, of `link`."""
    settings = link.settings()
    for space in spaces(state, nodes):
        with netns.entered(space):
            for key in TCP_SWITCHES:
                (SYSCTLS / key).write_text(str(int(settings[key])))
            for key in TCP_BUFFERS:
                (SYSCTLS / key).write_text(settings[key])
    features = [word for key in OFFLOADS for word in (key, "on" if settings[key] else "off")]
    invocations = []
    for space, devices in ends(state, nodes, rails):
        mtus = [f"link set {device} mtu {link.mtu}" for device in devices]
        shapers = [f"qdisc replace dev {device} root {link.qdisc}" for device in devices]
        invocations.append(batch("ip", space, mtus))
        invocations.append(batch("tc", space, shapers))
        invocations += [netns.Invocation(space, ["ethtool", "-K", device, *features]) for device in devices]
    netns.run(invocations)


def _plug(node: int, rails: int) -> List[str]:
    up = [f"link set {interface(rail)} up" for rail in range(1, rails + 1)]
    return ["link set lo up", attachment(node, 1, 1), *up]


def attachment(node: int, to: int, rail: int) -> str:
    """How a node's interface of a rail gets its address on the subnet of rail `to`."""
    return f"address add {address(node, to)}/24 dev {interface(rail)} noprefixroute"


def batch(tool: str, space: Path, lines: List[str]) -> netns.Invocation:
    """Several commands of `ip` or `tc` in one process; with -json each prints one line."""
    return netns.Invocation(space, [tool, "-json", "-batch", "-"], "\n".join(lines) + "\n")
