"""Designs of two-level networks, as a file of data/designs describes them: parts, prices, and how
they are put together."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from analysis.descriptions.toml_tables import (
    Count,
    Name,
    Positive,
    TomlTable,
    fault,
    must_be,
    parse,
    read_toml,
    refuse,
)
from runners.two_level import TwoLevel, from_table

CROSSBAR = "crossbar"  # the network without oversubscription, beside the designs


class _Number(TomlTable):
    value: Count
    unit: Literal["1"]
    source: Name


class _Measured(TomlTable):
    value: Positive
    source: Name


class _Rate(_Measured):
    unit: Literal["B/s"]


class _Seconds(_Measured):
    unit: Literal["s"]


class _Price(_Measured):
    unit: Literal["USD"]


_IS_A_NUMBER = '{{ value = a number above 0, unit = "{}", source = a text }}'.format
Number = Annotated[
    _Number, must_be('{ value = a whole number from 1, unit = "1", source = a text }')
]
Rate = Annotated[_Rate, must_be(_IS_A_NUMBER("B/s"))]
Seconds = Annotated[_Seconds, must_be(_IS_A_NUMBER("s"))]
Price = Annotated[_Price, must_be(_IS_A_NUMBER("USD"))]


class Size(TomlTable):
    """The cluster that the designs are for."""

    nodes: Number
    node_bandwidth: Rate
    """of a node's link, payload each way"""
    latency: Seconds
    """from any node to any other"""
    unsubscribed_extra: Price | None = None
    """what no oversubscription would cost more, by the source"""


class Edge(TomlTable):
    """An edge switch."""

    name: Name
    ports: Number
    uplinks: Number
    """of its ports"""
    uplink_bandwidth: Rate
    price: Price


class Core(TomlTable):
    """A core switch. Without a bandwidth it never blocks."""

    name: Name
    short: Name
    slots: Number
    supervisor_slots: Number | None = None
    cards: Number
    """the line cards in its price"""
    ports: Number
    """of each card"""
    price: Price
    card_bandwidth: Rate | None = None
    """of a card to the fabric"""
    core_bandwidth: Rate | None = None
    """of all forwarding together"""

    @property
    def card_slots(self) -> int:
        """The slots that no supervisor takes."""
        return self.slots.value - (self.supervisor_slots.value if self.supervisor_slots else 0)


class SwitchDesign(TomlTable):
    """A design: an edge switch with so many nodes, below a core switch."""

    edge: Name
    core: Name
    nodes_per_edge: Number


class Designs(TomlTable):
    """A design file. Rates are of payload [B/s], each way."""

    name: Name
    title: Name
    cluster: Size
    edges: Annotated[dict[str, Edge], Field(min_length=1)]
    cores: Annotated[dict[str, Core], Field(min_length=1)]
    designs: Annotated[dict[str, SwitchDesign], Field(min_length=1)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        refuse([fault(place, None, words) for place, words in self._misfits()])
        return self

    def _misfits(self) -> Iterator[tuple[tuple[str, str], str]]:
        """Parts that do not exist, and parts that do not fit together."""
        if CROSSBAR in self.designs:
            words = "is the network without oversubscription: take another name"
            yield ("designs", CROSSBAR), words
        for name, core in self.cores.items():
            if core.cards.value > core.card_slots:
                slots = f"has {core.slots.value} slots"
                yield ("cores", name), f"{slots}, which do not hold its cards and supervisors"
        for name, chosen in self.designs.items():
            place = ("designs", name)
            if chosen.edge not in self.edges or chosen.core not in self.cores:
                words = f"names edge {chosen.edge!r} and core {chosen.core!r}"
                yield place, f"{words}: one is not in [edges] or [cores]"
                continue
            edge, core = self.parts(name)
            if edge.uplinks.value > core.ports.value:
                words = f"needs a port of a card of {core.name} for each uplink of an edge switch"
                yield place, words
            elif chosen.nodes_per_edge.value + edge.uplinks.value > edge.ports.value:
                yield place, f"needs a port of {edge.name} for each node and uplink"

    def parts(self, design: str) -> tuple[Edge, Core]:
        """The edge switch and the core switch of a design."""
        chosen = self.designs[design]
        return self.edges[chosen.edge], self.cores[chosen.core]

    def tree(self, design: str) -> dict[str, Any]:
        """A design's network as the table that `two_level.from_table` reads."""
        edge, core = self.parts(design)
        bounds = {"card_bandwidth": core.card_bandwidth, "core_bandwidth": core.core_bandwidth}
        return {
            "nodes": self.cluster.nodes.value,
            "node_bandwidth": self.cluster.node_bandwidth.value,
            "latency": self.cluster.latency.value,
            "nodes_per_edge": self.designs[design].nodes_per_edge.value,
            "uplinks": edge.uplinks.value,
            "uplink_bandwidth": edge.uplink_bandwidth.value,
            "edges_per_card": core.ports.value // edge.uplinks.value,
            "cards": core.cards.value,
            **{key: bound.value for key, bound in bounds.items() if bound},
        }

    def network(self, design: str) -> TwoLevel:
        """A design's network."""
        return from_table(self.tree(design))

    def networks(self) -> dict[str, dict[str, Any]]:
        """The table `network` of a simulated testbed: the crossbar, then each design with the plain
        table of its tree.

        `bandwidth` [B/s] is that of a node's link, and `latency` [s] is from node to node.
        """
        ends = {}
        for key, field in (("bandwidth", "node_bandwidth"), ("latency", "latency")):
            number, source = getattr(self.cluster, field), f"design file {self.name}: cluster."
            ends[key] = {"value": number.value, "unit": number.unit, "source": source + field}
        trees = {design: {**ends, "tree": self.tree(design)} for design in self.designs}
        return {CROSSBAR: ends, **trees}

    def names(self) -> dict[str, dict[str, str]]:
        """The display names of the crossbar and of each design, {name, short}, by design."""
        called = {CROSSBAR: {"name": "a network without oversubscription", "short": "crossbar"}}
        for design, chosen in self.designs.items():
            edge, core = self.parts(design)
            called[design] = {
                "name": f"{core.name}, {chosen.nodes_per_edge.value} nodes on each {edge.name}",
                "short": f"{core.short}, {self.network(design).edge_oversubscription:.3g}:1",
            }
        return called

    def assumed(self) -> dict[str, Any]:
        """Every assumed number with its unit and source, by its place, such as
        `cores.cisco_6509e.card_bandwidth`, in the file's order of tables."""
        rows: dict[str, TomlTable] = {"cluster": self.cluster}
        for group in ("edges", "cores", "designs"):
            rows |= {f"{group}.{name}": row for name, row in getattr(self, group).items()}
        return {
            f"{place}.{key}": getattr(row, key)
            for place, row in rows.items()
            for key in type(row).model_fields
            if getattr(getattr(row, key), "source", "").startswith("assumed")
        }


def checked(described: Mapping[str, Any]) -> Designs:
    """The designs of a parsed file; raises FalloffError naming every fault."""
    return parse(Designs, described, f"design file {described.get('name', '?')}")


def read(file: Path) -> Designs:
    """The designs of a file; raises FalloffError naming every fault in it."""
    return checked(read_toml(file, "design file"))
