"""What-ifs of a simulated network by name: twice its bandwidth, half its latency."""

from collections.abc import Collection
from dataclasses import dataclass

from analysis.descriptions.networks import between
from analysis.descriptions.testbed_tables import NetworkTable, SimulatedNetwork, SourcedNumber
from analysis.descriptions.testbeds import SimulatedTestbed
from runners.record import unknown

# No network: what a program loses without one.
IDEAL = "unshaped"
_CHOSEN = "chosen so that messages cost next to nothing"
FREE = SimulatedNetwork(
    bandwidth=SourcedNumber(value=1e12, unit="B/s", source=_CHOSEN),
    latency=SourcedNumber(value=1e-9, unit="s", source=_CHOSEN),
)
_FACTORS = {"twice": 2.0, "half": 0.5}
_QUANTITIES = ("bandwidth", "latency")


@dataclass(frozen=True)
class WhatIf:
    """A change to a network: `quantity` (bandwidth or latency) times `factor`, in `words`."""

    words: str
    quantity: str
    factor: float

    @classmethod
    def named(cls, word: str, quantity: str) -> "WhatIf":
        """`twice` or `half` of a quantity; raises FalloffError if it is unknown."""
        if quantity not in _QUANTITIES:
            raise unknown("quantity of a network", quantity, _QUANTITIES)
        return cls(f"{word} the {quantity}", quantity, _FACTORS[word])


def changed(
    machine: SimulatedTestbed, names: Collection[str], what_ifs: Collection[WhatIf]
) -> tuple[SimulatedTestbed, list[str]]:
    """The machine with a network for each what-if of each of these, and one without cost; and the names
    of all these networks, each once.

    Raises FalloffError for a network that the machine does not describe.
    """
    described = {IDEAL: FREE, **machine.network}
    shown = {IDEAL: NetworkTable(short="no network"), **machine.networks}
    short, levels = between(machine.networks), []
    for name in names:
        if name not in machine.network:
            raise unknown("network of this testbed", name, machine.network)
        levels.append(name)
        for change in what_ifs:
            other, before = f"{name}, {change.words}", getattr(described[name], change.quantity)
            after = before.changed(value=before.value * change.factor)
            described[other] = described[name].changed(**{change.quantity: after})
            shown[other] = NetworkTable(
                short=f"{short.get(name, {}).get('short', name)}, {change.words}"
            )
            levels.append(other)
    return machine.changed(network=described, networks=shown), list(dict.fromkeys([*levels, IDEAL]))
