"""Designs of two-level networks: read a file of data/designs, build its networks, and compute their
costs."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from runners.record import faulty
from runners.two_level import TwoLevel, from_table

CROSSBAR = "crossbar"  # the network without oversubscription, beside the designs
TEXT, TABLE = "text", "table"
# The fields of each table's rows: text, or a number in this unit. `data/designs/nemo.toml` explains each.
FIELDS = {
    "cluster": {"nodes": "1", "node_bandwidth": "B/s", "latency": "s", "unsubscribed_extra": "USD"},
    "edges": {"name": TEXT, "price": "USD", "uplink_bandwidth": "B/s"}
    | dict.fromkeys(("ports", "uplinks"), "1"),
    "cores": {"name": TEXT, "short": TEXT, "price": "USD"}
    | dict.fromkeys(("slots", "supervisor_slots", "cards", "ports"), "1")
    | dict.fromkeys(("card_bandwidth", "core_bandwidth"), "B/s"),
    "designs": {"edge": TEXT, "core": TEXT, "nodes_per_edge": "1"},
}
FILE = {"name": TEXT, "title": TEXT, **dict.fromkeys(FIELDS, TABLE)}
# The meaning of an absent number.
ABSENT = {
    "unsubscribed_extra": math.nan,
    "supervisor_slots": 0,
    "card_bandwidth": math.inf,
    "core_bandwidth": math.inf,
}
# Columns of `table` that the terminal shows, with their headings there.
SHOWN = {
    "edge_oversubscription": "edge",
    "core_oversubscription": "core",
    "bisection": "bisection GB/s",
    "cost": "cost $",
    "cost_per_node": "$ per node",
    "largest_cluster": "most nodes",
}
NOTE = "edge, core: oversubscription. Costs are those of the switches, unknown beyond the cards in a core's price."


@dataclass(frozen=True)
class Designs:
    """A checked design file: `cluster`, and by name `edges`, `cores` and `designs`, as plain
    values.

    Rates are of payload [B/s], each way. Prices are in USD, NaN where unknown. `assumed` lists
    every assumed number with its unit and source, by its place, such as
    `cores.cisco_6509e.card_bandwidth`.
    """

    name: str
    title: str
    cluster: Mapping[str, Any]
    edges: Mapping[str, Mapping[str, Any]]
    cores: Mapping[str, Mapping[str, Any]]
    designs: Mapping[str, Mapping[str, Any]]
    assumed: Mapping[str, Mapping[str, Any]]

    def parts(self, design: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The edge switch and the core switch of a design."""
        chosen = self.designs[design]
        return self.edges[chosen["edge"]], self.cores[chosen["core"]]

    def tree(self, design: str) -> dict[str, Any]:
        """A design's network as the table that `two_level.from_table` reads."""
        edge, core = self.parts(design)
        bounds = ("card_bandwidth", "core_bandwidth")
        return {
            **{key: self.cluster[key] for key in ("nodes", "node_bandwidth", "latency")},
            "nodes_per_edge": self.designs[design]["nodes_per_edge"],
            **{key: edge[key] for key in ("uplinks", "uplink_bandwidth")},
            "edges_per_card": core["ports"] // edge["uplinks"],
            "cards": core["cards"],
            **{key: core[key] for key in bounds if math.isfinite(core[key])},
        }

    def network(self, design: str) -> TwoLevel:
        """A design's network."""
        return from_table(self.tree(design))


def check(described: Mapping[str, Any]) -> Designs:
    """Check a design file, given as TOML's dict, and return its designs; raises FalloffError naming
    every fault."""
    faults = list(_faults("", described, FILE))
    rows = [] if faults else list(_rows(described))
    faults += [fault for place, row, fields in rows for fault in _faults(f"{place}.", row, fields)]
    plain: dict[str, Any] = {group: {} for group in FIELDS}
    if not faults:
        for place, row, fields in rows:
            group, _, name = place.partition(".")
            values = {key: _value(row.get(key, ABSENT.get(key))) for key in fields}
            plain[group] |= {name: values} if name else values
        faults = list(_misfits(**plain))
    if faults:
        raise faulty(f"design file {described.get('name', '?')}", faults)
    assumed = {
        f"{place}.{key}": entry
        for place, row, _ in rows
        for key, entry in row.items()
        if isinstance(entry, dict) and entry["source"].startswith("assumed")
    }
    return Designs(described["name"], described["title"], **plain, assumed=assumed)


def _rows(described: Mapping[str, Any]) -> Iterator[tuple[str, Any, Mapping[str, str]]]:
    """Every row of a file's tables with its place and fields; the cluster is one row."""
    for group, fields in FIELDS.items():
        if group == "cluster":
            yield group, described[group], fields
        else:
            yield from ((f"{group}.{name}", row, fields) for name, row in described[group].items())


def _value(entry: Any) -> Any:
    return entry["value"] if isinstance(entry, dict) else entry


def _faults(place: str, row: Any, fields: Mapping[str, str]) -> Iterator[str]:
    """The missing, unknown or wrong fields of a row, one sentence each."""
    if not isinstance(row, dict):
        yield f"{place.rstrip('.')} must be a table"
        return
    yield from (f"{place}{key} is unknown" for key in row if key not in fields)
    for key, unit in fields.items():
        if key not in row and key not in ABSENT:
            yield f"{place}{key} is missing"
        elif key in row and not _fits(row[key], unit):
            number = "a whole number from 1" if unit == "1" else "a number above 0"
            wanted = f'{{ value = {number}, unit = "{unit}", source = a text }}'
            yield f"{place}{key} must be {f'a {unit}' if unit in (TEXT, TABLE) else wanted}"


def _fits(entry: Any, unit: str) -> bool:
    if unit in (TEXT, TABLE):
        return isinstance(entry, str) if unit == TEXT else bool(entry) and isinstance(entry, dict)
    if not isinstance(entry, dict) or set(entry) != {"value", "unit", "source"}:
        return False
    is_number = type(entry["value"]) in ((int,) if unit == "1" else (int, float))
    is_sourced = entry["unit"] == unit and isinstance(entry["source"], str)
    return is_number and is_sourced and 0 < entry["value"] < math.inf


def _misfits(edges: Mapping, cores: Mapping, designs: Mapping, **_) -> Iterator[str]:
    """Parts that do not exist, and parts that do not fit together."""
    if CROSSBAR in designs:
        yield f"designs.{CROSSBAR}: the network without oversubscription has that name already"
    for name, core in cores.items():
        if core["cards"] + core["supervisor_slots"] > core["slots"]:
            yield f"cores.{name}: {core['slots']} slots do not hold its cards and supervisors"
    for name, row in designs.items():
        edge, core = edges.get(row["edge"]), cores.get(row["core"])
        if not edge or not core:
            yield f"designs.{name}: there is no edge {row['edge']!r} in [edges] or no core {row['core']!r} in [cores]"
        elif edge["uplinks"] > core["ports"]:
            yield f"designs.{name}: a card of {core['name']} has no port for each uplink of an edge switch"
        elif row["nodes_per_edge"] + edge["uplinks"] > edge["ports"]:
            yield f"designs.{name}: {edge['name']} has no port for each node and uplink"


def networks(designs: Designs) -> dict[str, dict[str, Any]]:
    """The table `network` of a simulated testbed: the crossbar, then each design with the plain
    table of its tree.

    `bandwidth` [B/s] is that of a node's link, and `latency` [s] is from node to node.
    """
    source = f"design file {designs.name}: cluster."
    ends = {
        name: {"value": designs.cluster[key], "unit": unit, "source": source + key}
        for name, key, unit in (("bandwidth", "node_bandwidth", "B/s"), ("latency", "latency", "s"))
    }
    trees = {design: {**ends, "tree": designs.tree(design)} for design in designs.designs}
    return {CROSSBAR: ends, **trees}


def names(designs: Designs) -> dict[str, dict[str, str]]:
    """The display names of the crossbar and of each design, {name, short}, by design."""
    called = {CROSSBAR: {"name": "a network without oversubscription", "short": "crossbar"}}
    for design, chosen in designs.designs.items():
        edge, core = designs.parts(design)
        called[design] = {
            "name": f"{core['name']}, {chosen['nodes_per_edge']} nodes on each {edge['name']}",
            "short": f"{core['short']}, {designs.network(design).edge_oversubscription:.3g}:1",
        }
    return called


def table(designs: Designs) -> pd.DataFrame:
    """A row for each design, indexed by `design`.

    Columns: `edge_oversubscription`, `core_oversubscription` (1: none), `bisection` [B/s each way], `cost` [USD, of all
    switches, NaN where they need more cards than are in the core's price], `cost_per_node` [USD] and `largest_cluster`
    [nodes, with all slots filled].
    """
    rows = {}
    for design in designs.designs:
        network, (edge, core) = designs.network(design), designs.parts(design)
        edges_per_card = core["ports"] // edge["uplinks"]
        is_priced = network.edges <= core["cards"] * edges_per_card
        cost = network.edges * edge["price"] + core["price"] if is_priced else math.nan
        card_slots = core["slots"] - core["supervisor_slots"]
        rows[design] = {
            "edge_oversubscription": network.edge_oversubscription,
            "core_oversubscription": network.core_oversubscription,
            "bisection": network.bisection,
            "cost": cost,
            "cost_per_node": cost / network.nodes,
            "largest_cluster": card_slots * edges_per_card * network.nodes_per_edge,
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("design")


def text(designs: Designs) -> str:
    """The table and the assumed numbers, for a terminal."""
    worth = table(designs).assign(bisection=lambda rows: rows.bisection / 1e9)
    shown = worth[list(SHOWN)].rename(columns=SHOWN).rename_axis(None).round(2)
    rows = shown.to_string(float_format="{:,.10g}".format, na_rep="unknown")
    lines = [f"{designs.title}, {designs.cluster['nodes']} nodes", rows, NOTE]
    lines += ["Assumed:"] if designs.assumed else []
    for place, entry in designs.assumed.items():
        unit, why = entry["unit"].replace("1", ""), entry["source"].removeprefix("assumed")
        lines.append(f"  {place} = {entry['value']:.6g} {unit}".rstrip() + f": {why.lstrip(': ')}")
    return "\n".join(lines)
