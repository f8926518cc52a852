"""What designs of a two-level network are worth, and what they cost: as a table, and as text for a terminal."""

import math
from collections.abc import Mapping

import pandas as pd

from analysis.design_file import UNITS
from analysis.designs import Designs
from runners.record import FalloffError

# Heading, column of `table`, and how its numbers are written.
_SHOWN = (
    ("design", "design", str),
    ("edge", "edge_oversubscription", lambda ratio: f"{ratio:.3g}:1"),
    ("core", "core_oversubscription", lambda ratio: f"{ratio:.3g}:1"),
    ("bisection GB/s", "bisection", lambda rate: f"{rate / 1e9:.2f}"),
    ("cost $", "cost", lambda dollars: f"{dollars:,.0f}"),
    ("$ per node", "cost_per_node", lambda dollars: f"{dollars:,.0f}"),
    ("most nodes", "largest_cluster", str),
    ("free ports", "free_ports", lambda ports: f"{ports:.0f}"),
    ("free slots", "free_slots", lambda slots: f"{slots:.0f}"),
)
_UNKNOWN = "unknown"
_NOTE = "edge, core: oversubscription. Costs are those of the switches, unknown beyond the cards that have a price."


def table(designs: Designs, nodes: int = 0, prices: Mapping[str, float] | None = None) -> pd.DataFrame:
    """A row for each design of so many nodes, or of the file's own number of them.

    Columns: `design`, `edge` and `core` (names of parts), `nodes`, `nodes_per_edge`, `edges`, `cards` (those in the
    core's price, or as many as are needed), `edge_oversubscription`, `core_oversubscription` (1: none), `bisection`
    [B/s each way], `cost` [USD, of all switches], `cost_per_node` [USD], `largest_cluster` [nodes, with all slots
    filled], `free_ports` and `free_slots` (with the cards that are there), `assumed` (tuple of places in the file).
    Costs are NaN where a price is unknown; they and what is free are NaN where the core has too few slots.
    `prices` replaces prices [USD] by the names of parts; raises FalloffError when there is no such part, or a price
    is no number above 0.
    """
    given = prices or {}
    strange = [name for name in given if name not in {**designs.edges, **designs.cores}]
    strange += [name for name, price in given.items() if name not in strange and not 0 < price < math.inf]
    if strange:
        known = ", ".join([*designs.edges, *designs.cores])
        raise FalloffError(f"prices: {', '.join(strange)}: give a price above 0 to some of {known}")
    return pd.DataFrame([_row(designs, design, nodes, given) for design in designs.designs])


def text(designs: Designs, nodes: int = 0) -> str:
    """The table and what it rests on, for a terminal."""
    rows = table(designs, nodes)
    columns = [[head, *(_written(value, write) for value in rows[column])] for head, column, write in _SHOWN]
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join([cells[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:]))])
        for cells in zip(*columns)
    ]
    return "\n".join([f"{designs.title}, {rows.nodes.iloc[0]} nodes", *lines, _NOTE, *_assumptions(designs)])


def _assumptions(designs: Designs) -> list[str]:
    """What is assumed, a line each with its value and reason, below a heading; empty when nothing is."""
    lines = []
    for place, reason in designs.assumed.items():
        table, key = place.rsplit(".", 1)
        group, _, name = table.partition(".")
        rows, unit = getattr(designs, group), UNITS[group][key]
        value = f"{(rows[name] if name else rows)[key]:.6g}" + (f" {unit}" if unit != "1" else "")
        why = reason.removeprefix("assumed").lstrip(": ")
        lines.append(f"  {place} = {value}" + (f": {why}" if why else ""))
    return ["Assumed:", *lines] if lines else []


def _row(designs: Designs, design: str, nodes: int, prices: Mapping[str, float]) -> dict[str, object]:
    chosen = designs.designs[design]
    edge, core = designs.parts(design)
    network = designs.network(design, nodes)
    edges_of_a_card = core["ports"] // edge["uplinks"]
    card_slots = core["slots"] - core["supervisor_slots"]
    present = max(core["cards"], math.ceil(network.edges / edges_of_a_card))
    fits = present <= card_slots
    further = present - core["cards"]
    cost = (
        network.edges * prices.get(chosen["edge"], edge["price"])
        + prices.get(chosen["core"], core["price"])
        + (further * core["card_price"] if further else 0)
    )
    return {
        "design": design,
        "edge": edge["name"],
        "core": core["name"],
        "nodes": network.nodes,
        "nodes_per_edge": network.nodes_per_edge,
        "edges": network.edges,
        "cards": present,
        "edge_oversubscription": network.edge_oversubscription,
        "core_oversubscription": network.core_oversubscription,
        "bisection": network.bisection,
        "cost": float(cost) if fits else math.nan,
        "cost_per_node": cost / network.nodes if fits else math.nan,
        "largest_cluster": card_slots * edges_of_a_card * network.nodes_per_edge,
        "free_ports": float(present * core["ports"] - network.edges * network.uplinks) if fits else math.nan,
        "free_slots": float(card_slots - present) if fits else math.nan,
        "assumed": tuple(designs.assumed_of(design)),
    }


def _written(value, write) -> str:
    return _UNKNOWN if isinstance(value, float) and math.isnan(value) else write(value)
