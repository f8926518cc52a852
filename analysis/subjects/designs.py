"""What designs of two-level networks are worth: their oversubscription, bisection and costs."""

import math
from typing import Any

import pandas as pd

from analysis.descriptions.switch_designs import Designs

# Columns of `table` that the terminal shows, with their headings there.
SHOWN = {
    "edge_oversubscription": "edge",
    "core_oversubscription": "core",
    "bisection": "bisection GB/s",
    "cost": "cost $",
    "cost_per_node": "$ per node",
    "largest_cluster": "most nodes",
}
NOTE = (
    "edge, core: oversubscription. Costs are those of the switches, "
    "unknown beyond the cards in a core's price."
)


def table(designs: Designs) -> pd.DataFrame:
    """A row for each design, indexed by `design`.

    Columns: `edge_oversubscription`, `core_oversubscription` (1: none), `bisection` [B/s each way],
    `cost` [USD, of all switches, NaN where they need more cards than are in the core's price],
    `cost_per_node` [USD] and `largest_cluster` [nodes, with all slots filled].
    """
    rows = {}
    for design in designs.designs:
        network = designs.network(design)
        parts: Any = designs.parts(design)
        edge, core = parts
        edges_per_card = core.ports.value // edge.uplinks.value
        is_priced = network.edges <= core.cards.value * edges_per_card
        cost = network.edges * edge.price.value + core.price.value if is_priced else math.nan
        rows[design] = {
            "edge_oversubscription": network.edge_oversubscription,
            "core_oversubscription": network.core_oversubscription,
            "bisection": network.bisection,
            "cost": cost,
            "cost_per_node": cost / network.nodes,
            "largest_cluster": core.card_slots * edges_per_card * network.nodes_per_edge,
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("design")


def text(designs: Designs) -> str:
    """The table and the assumed numbers, for a terminal."""
    worth = table(designs).assign(bisection=lambda rows: rows.bisection / 1e9)
    shown = worth[list(SHOWN)].rename(columns=SHOWN).rename_axis(None).round(2)
    rows = shown.to_string(float_format="{:,.10g}".format, na_rep="unknown")
    assumed = designs.assumed()
    cluster: Any = designs.cluster
    lines = [f"{designs.title}, {cluster.nodes.value} nodes", rows, NOTE]
    lines += ["Assumed:"] if assumed else []
    for place, entry in assumed.items():
        unit, why = entry.unit.replace("1", ""), entry.source.removeprefix("assumed")
        lines.append(f"  {place} = {entry.value:.6g} {unit}".rstrip() + f": {why.lstrip(': ')}")
    return "\n".join(lines)
