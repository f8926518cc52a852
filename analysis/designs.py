"""Designs of two-level networks: what a file of data/designs says, and the networks that follow from it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis import design_file
from analysis.design_file import CROSSBAR
from runners.record import FalloffError
from runners.two_level import TwoLevel, from_table


@dataclass(frozen=True)
class Designs:
    """A design file that was checked: `cluster`, and by name `edges`, `cores` and `designs`, as plain values.

    Rates are of payload [B/s], each way; prices in USD, NaN where unknown. `assumed` has the reason of every number
    that is assumed, by its place, such as `cores.cisco_6509e.card_bandwidth`.
    """

    name: str
    title: str
    cluster: Mapping[str, Any]
    edges: Mapping[str, Mapping[str, Any]]
    cores: Mapping[str, Mapping[str, Any]]
    designs: Mapping[str, Mapping[str, Any]]
    assumed: Mapping[str, str]

    def parts(self, design: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The edge switch and the core switch of a design."""
        chosen = self.designs[design]
        return self.edges[chosen["edge"]], self.cores[chosen["core"]]

    def tree(self, design: str) -> dict[str, Any]:
        """A design's network as the table of `two_level.from_table`, of the file's own number of nodes."""
        edge, core = self.parts(design)
        bounds = {key: core[key] for key in ("card_bandwidth", "core_bandwidth") if math.isfinite(core[key])}
        return {
            **{key: self.cluster[key] for key in ("nodes", "node_bandwidth", "latency")},
            "nodes_per_edge": self.designs[design]["nodes_per_edge"],
            **{key: edge[key] for key in ("uplinks", "uplink_bandwidth")},
            "edges_per_card": core["ports"] // edge["uplinks"],
            "cards": core["cards"],
            **bounds,
        }

    def network(self, design: str, nodes: int = 0) -> TwoLevel:
        """A design's network, of the file's own number of nodes unless another is given."""
        return from_table({**self.tree(design), **({"nodes": nodes} if nodes else {})})

    def assumed_of(self, design: str) -> list[str]:
        """The places of the assumed numbers that a design rests on."""
        chosen = self.designs[design]
        tables = ("cluster", f"edges.{chosen['edge']}", f"cores.{chosen['core']}", f"designs.{design}")
        return [place for place in self.assumed if place.rpartition(".")[0] in tables]


def check(described: Mapping[str, Any]) -> Designs:
    """The designs of a design file, a dict as TOML gives it; raises FalloffError naming every fault."""
    faults = design_file.faults(described)
    if faults:
        raise FalloffError(f"design file {described.get('name', '?')}: {'; '.join(faults)}")
    groups = {
        group: {name: design_file.plain(group, row) for name, row in described[group].items()}
        for group in ("edges", "cores", "designs")
    }
    assumed = {
        f"{place}.{key}": row[key]["source"]
        for _, place, row in design_file.rows(described)
        for key in row
        if isinstance(row[key], dict) and row[key]["source"].startswith("assumed")
    }
    cluster = design_file.plain("cluster", described["cluster"])
    return Designs(described["name"], described["title"], cluster, **groups, assumed=assumed)


def networks(designs: Designs) -> dict[str, dict[str, Any]]:
    """What a simulated testbed calls `network`: the crossbar, then each design with the plain table of its tree.

    `bandwidth` [B/s] and `latency` [s] are those of a node's link and from node to node.
    """
    ends = {
        "bandwidth": _entry(designs, "node_bandwidth", "B/s"),
        "latency": _entry(designs, "latency", "s"),
    }
    trees = {design: {**ends, "tree": designs.tree(design)} for design in designs.designs}
    return {CROSSBAR: ends, **trees}


def names(designs: Designs) -> dict[str, dict[str, str]]:
    """How the crossbar and each design are called: {name, short} by its own name."""
    called = {CROSSBAR: {"name": "a network without oversubscription", "short": "crossbar"}}
    for design, chosen in designs.designs.items():
        edge, core = designs.parts(design)
        ratio = f"{designs.network(design).edge_oversubscription:.3g}:1"
        called[design] = {
            "name": f"{core['name']}, {chosen['nodes_per_edge']} nodes on each {edge['name']}",
            "short": f"{core['short']}, {ratio}",
        }
    return called


def _entry(designs: Designs, key: str, unit: str) -> dict[str, Any]:
    return {"value": designs.cluster[key], "unit": unit, "source": f"design file {designs.name}: cluster.{key}"}
