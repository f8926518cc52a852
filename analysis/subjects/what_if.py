"""What if a testbed had other networks? By name: `gige_twice_bandwidth`, `gige_half_latency`,
`gige_at_25g`, `gige_tree`.

A command line asks for them by `--network 25gige`, `--twice bandwidth` and `--half latency`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.dataset.wire import wire_limit
from analysis.descriptions.networks import between
from analysis.descriptions.testbeds import (
    Cluster,
    NetworkTable,
    SimulatedNetwork,
    SimulatedTestbed,
    SourcedNumber,
    Testbed,
    Tree,
)
from analysis.descriptions.toml_tables import TomlTable
from runners.records.record import FalloffError, unknown

# No network: what a program loses without one.
IDEAL = "unshaped"
_CHOSEN = "chosen so that messages cost next to nothing"
FREE = SimulatedNetwork(
    bandwidth=SourcedNumber(value=1e12, unit="B/s", source=_CHOSEN),
    latency=SourcedNumber(value=1e-9, unit="s", source=_CHOSEN),
)
MTU = 1500  # bytes, of a faster Ethernet
# Of a faster wire's payload at the worse end: hosts often miss the rate of a new link.
REACHED = 0.8
_FACTORS = {"twice": 2, "half": 0.5}
# The quantities of a network, and what an emulated testbed calls them.
_QUANTITIES = {"bandwidth": "rate_bit_s", "latency": "latency_s"}
_ETHERNET = re.compile(r"(\d+(?:\.\d+)?)gige")
_NAME = re.compile(
    "(?P<of>.+)_(?:(?P<factor>twice|half)_(?P<quantity>bandwidth|latency)|at_(?P<rate>.+)g|tree)"
)


@dataclass(frozen=True)
class WhatIf:
    """What is asked: `networks`, each also with `twice` and with `half` of its bandwidth or
    latency.

    An Ethernet that a simulated testbed lacks, such as `25gige`, stands for that rate with the
    latency of each slower network that it has. Raises FalloffError for another quantity.
    """

    networks: Sequence[str] = ()
    twice: str = ""
    half: str = ""

    def __post_init__(self) -> None:
        for quantity in filter(None, (self.twice, self.half)):
            if quantity not in _QUANTITIES:
                raise unknown("quantity of a network", quantity, _QUANTITIES)

    def names(self, machine: Testbed, usual: Sequence[str]) -> list[str]:
        """The names of the networks and of their what-ifs, each once; by default of the `usual`
        networks of the machine.

        Raises FalloffError for a network that the machine does not describe, and for a real
        cluster.
        """
        if isinstance(machine, Cluster):
            raise FalloffError(f"testbed {machine.name} is a cluster: its networks are as they are")
        known, networks = _described(machine), list[str]()
        for name in self.networks or usual:
            rate, change = _ETHERNET.fullmatch(name), _NAME.fullmatch(name)
            if name in known or change and change["of"] in known:
                networks.append(name)
            elif rate and isinstance(machine, SimulatedTestbed):
                least = REACHED * _payload(rate[1])
                slower = [of for of in usual if machine.network[of].bandwidth.value < least]
                networks += [f"{of}_at_{rate[1]}g" for of in slower]
            else:
                raise unknown("network of this testbed", name, known)
        asked = {"twice": self.twice, "half": self.half}
        changes = [f"_{factor}_{quantity}" for factor, quantity in asked.items() if quantity]
        return list(dict.fromkeys(name + end for name in networks for end in ("", *changes)))


def _described(machine: Testbed) -> Mapping[str, TomlTable]:
    """The networks that a testbed describes itself."""
    return machine.network if isinstance(machine, SimulatedTestbed) else machine.networks


NOTHING = WhatIf()  # is asked, so that the usual networks are meant


def with_ideal(machine: SimulatedTestbed) -> SimulatedTestbed:
    """The machine with a network without cost."""
    return machine.changed(
        network={IDEAL: FREE, **machine.network},
        networks={IDEAL: NetworkTable(short="no network"), **machine.networks},
    )


def with_networks(machine: Testbed, names: Iterable[str]) -> Testbed:
    """The machine with those of the named networks that are what-ifs of its own.

    Raises FalloffError if it does not describe what they change.
    """
    known = _described(machine)
    changes = [
        change
        for change in map(_NAME.fullmatch, names)
        if change and change[0] not in known and change["of"] in known
    ]
    if not changes or isinstance(machine, Cluster):
        return machine
    described, simulated = between(machine.networks), dict(getattr(machine, "network", {}))
    added: dict[str, NetworkTable] = {}
    for what_if in changes:
        own = described.get(what_if["of"], {"short": what_if["of"]})
        nodes = max(2, (machine.nodes or 0) // 8)  # on a switch of a tree
        words = f"switches of {nodes} nodes, 2:1 oversubscribed"
        if rate := what_if["rate"]:
            words = f"at {rate} Gbit/s"
        elif factor := what_if["factor"]:
            words = f"{factor} the {what_if['quantity']}"
        short = f"{own['short']}, {words}"
        field = _QUANTITIES.get(what_if["quantity"] or "")
        if simulated:
            added[what_if[0]] = NetworkTable(short=short)
            simulated[what_if[0]] = _changed(simulated[what_if["of"]], what_if, nodes, short)
        elif field in own:
            value = own[field] * _FACTORS[what_if["factor"]]
            added[what_if[0]] = NetworkTable(**{**own, "short": short, field: value})
        else:
            raise FalloffError(f"testbed {machine.name} cannot have {short}")
    fields: dict[str, Any] = {"networks": {**machine.networks, **added}}
    if simulated:
        fields["network"] = simulated
    if machine.interconnects is not None:
        fields["interconnects"] = [*machine.interconnects, *added]
    return machine.changed(**fields)


def _changed(
    network: SimulatedNetwork, what_if: re.Match, nodes: int, short: str
) -> SimulatedNetwork:
    source = f"what if: {short}"
    if what_if["rate"]:
        most = _payload(what_if["rate"])
        ends = {"value": most, "low": REACHED * most, "high": most}
        return network.changed(bandwidth=network.bandwidth.changed(**ends, source=source))
    if quantity := what_if["quantity"]:
        number, factor = getattr(network, quantity), _FACTORS[what_if["factor"]]
        ends = {end: getattr(number, end) for end in ("value", "low", "high")}
        ends = {end: factor * value for end, value in ends.items() if value is not None}
        return network.changed(**{quantity: number.changed(**ends, source=source)})
    tree = Tree(
        nodes_per_edge=nodes,
        uplinks=nodes // 2,
        uplink_bandwidth=network.bandwidth.value,
        edges_per_card=1000,
    )
    return network.changed(tree=tree)


def _payload(gbit_s: str) -> float:
    """TCP's payload of an Ethernet [B/s], in full frames."""
    return wire_limit(1e9 * float(gbit_s), MTU) / 8
