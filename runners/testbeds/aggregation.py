"""The ways in which a node can use two links, each to a switch of its own (a rail).

Rails have subnets. Which of them a node is on, by which rails they are reached, and what of the kernel, of the
programs or of Open MPI then spreads the bytes, is the way.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Tuple

from runners.record import FalloffError, Settings
from runners.testbeds import bonds, links, netns

_ONE = ((1,),)
_BOTH = ((1, 2),)
_EACH = ((1,), (2,))

_WITHOUT_ROUTES = "route flush root 10.81.0.0/16"  # all subnets

_HASH_POLICY = "fib_multipath_hash_policy"
_HASH_SEED = "fib_multipath_hash_seed"  # since Linux 6.11; the policies need a kernel with multipath routes
MPTCP = Path("/proc/sys/net/mptcp/enabled")


@dataclass(frozen=True)
class Way:
    """How nodes reach each other: `routes` has, for each subnet from the first on, the rails that lead to it.

    Where several lead there, `hash_policy` says by what the kernel chooses: 0 by the two addresses, so that all that
    goes to one peer takes one rail (of what needs no bonding driver the nearest to a hash at layer 2), 1 by the ports
    too (layer 3+4). `is_mptcp`: programs get MPTCP for TCP. `is_striped`: Open MPI uses all subnets. `bond` is a mode
    of the bonding driver, which then makes one interface of both.
    """

    routes: Tuple[Tuple[int, ...], ...]
    hash_policy: int = 0
    is_mptcp: bool = False
    is_striped: bool = False
    bond: str = ""

    @property
    def for_mpi(self) -> List[str]:
        """The interfaces that Open MPI may use."""
        return self.interfaces((1, 2) if self.is_striped else (1,))

    def interfaces(self, rails: Tuple[int, ...]) -> List[str]:
        """A node's interfaces that lead to a subnet by these rails."""
        return [bonds.INTERFACE] if self.bond else [links.interface(rail) for rail in rails]


ONE_LINK = Way(_ONE)

_WAYS = {
    "one_link": ONE_LINK,
    "ecmp_layer2": Way(_BOTH, hash_policy=0),
    "ecmp_layer34": Way(_BOTH, hash_policy=1),
    "bond_8023ad": Way(_ONE, bond="802.3ad"),
    "bond_balance_rr": Way(_ONE, bond="balance-rr"),
    "mptcp": Way(_EACH, is_mptcp=True),
    "mpi_striping": Way(_EACH, is_striped=True),
}


def way(point: Settings, rails: int) -> Way:
    """The way that a point asks for by its `aggregation`; one link where it asks for none.

    Raises FalloffError when there is no such way, or it needs more rails than there are.
    """
    name = point.get("aggregation", "one_link")
    if name not in _WAYS:
        raise FalloffError(f"aggregation {name!r} is unknown; there are {', '.join(_WAYS)}")
    if name != "one_link" and rails < 2:
        raise FalloffError(f"aggregation {name} needs two links a node: use the testbed rails, or set `rails = 2`")
    return _WAYS[name]


def configure(state: Path, nodes: int, chosen: Way, congestion_control: str, seed: int) -> Dict[str, Any]:
    """Give every node the routes and settings of a way, and say what `effective` has to find then.

    `seed` decides which addresses or ports are hashed to which rail, where the kernel lets it be chosen (0: the
    kernel's own, which it draws when it starts). Raises FalloffError when MPTCP is asked for and not there.
    """
    if chosen.is_mptcp and not MPTCP.exists():
        raise FalloffError("the kernel has no MPTCP (CONFIG_MPTCP): leave out aggregation mptcp")
    wanted = {_HASH_POLICY: chosen.hash_policy, _HASH_SEED: seed}
    settings = {key: value for key, value in wanted.items() if _is_known(key)}
    invocations = []
    for node, space in enumerate(links.spaces(state, nodes), start=1):
        with netns.entered(space):
            for key, value in settings.items():
                (links.SYSCTLS / key).write_text(str(value))
        lines = [line for to, by in _numbered(chosen) for line in _addresses(node, to, by)]
        lines.append(_WITHOUT_ROUTES)
        lines += [_route(node, to, chosen.interfaces(by), congestion_control) for to, by in _numbered(chosen)]
        if chosen.is_mptcp:
            lines += _announcements(node, chosen)
        invocations.append(links.batch("ip", space, lines))
    netns.run(invocations)
    routes = {links.subnet(to): chosen.interfaces(by) for to, by in _numbered(chosen)}
    return {**settings, "routes": _told(routes)}


def effective(state: Path, nodes: int) -> Dict[str, Dict[str, Any]]:
    """What each node, by its name, is really set to, under the names that `configure` has for it."""
    spaces = links.spaces(state, nodes)
    shown = netns.run([netns.Invocation(space, ["ip", "-json", "route", "show"]) for space in spaces])
    return {space.name: {**_sysctls(space), "routes": _told(_routes(said))} for space, said in zip(spaces, shown)}


def _routes(shown: str) -> Dict[str, List[str]]:
    return {route["dst"]: [hop["dev"] for hop in route.get("nexthops", [route])] for route in json.loads(shown)}


def _sysctls(space: Path) -> Dict[str, int]:
    with netns.entered(space):
        return {key: int((links.SYSCTLS / key).read_text()) for key in (_HASH_POLICY, _HASH_SEED) if _is_known(key)}


def _numbered(chosen: Way) -> List[Tuple[int, Tuple[int, ...]]]:
    return list(enumerate(chosen.routes, start=1))


def _is_known(key: str) -> bool:
    return (links.SYSCTLS / key).exists()


def _addresses(node: int, to: int, by: Tuple[int, ...]) -> List[str]:
    """A node's addresses on its further rails; on the first it has its own for good.

    By whichever rail packets leave they have the address of the subnet: otherwise newer kernels (6.18) prefer,
    to what the hash says, the interface that has the packet's source address.
    """
    further = [rail for rail in by if rail > 1]
    flushed = (f"address flush dev {links.interface(rail)}" for rail in further)
    return [*flushed, *(links.attachment(node, to, rail) for rail in further)]


def _route(node: int, rail: int, interfaces: List[str], congestion_control: str) -> str:
    """How a node reaches a rail's addresses, by one interface or by several among which the kernel chooses.

    Congestion control by route: outside the first namespace the kernel lets tcp_congestion_control be set only to
    what the whole machine's tcp_allowed_congestion_control names.
    """
    hops = " ".join(f"nexthop dev {out}" for out in interfaces)
    own = links.address(node, rail)  # else the kernel takes that of the interface that it chooses
    return f"route add {links.subnet(rail)} scope link src {own} congctl {congestion_control} {hops}"


def _announcements(node: int, chosen: Way) -> List[str]:
    """A node tells every peer its addresses on the further rails; whoever connected then adds a subflow to each."""
    further = range(2, len(chosen.routes) + 1)
    return [
        "mptcp endpoint flush",
        f"mptcp limits set subflow {len(further)} add_addr_accepted {len(further)}",
        *(f"mptcp endpoint add {links.address(node, rail)} dev {links.interface(rail)} signal" for rail in further),
    ]


def _told(routes: Dict[str, List[str]]) -> str:
    return ", ".join(f"{to} by {' and '.join(sorted(devices))}" for to, devices in sorted(routes.items()))
