"""Designs of two-level networks: what a file of data/designs says, the networks that follow from it, and what they cost."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from runners.record import faulty
from runners.two_level import TwoLevel, from_table

CROSSBAR = "crossbar"  # the network without oversubscription, beside the designs
TEXT, TABLE = "text", "table"
# What a row of each table says: a text, or a number of this unit; `data/designs/nemo.toml` says what each means.
FIELDS = {
    "cluster": {"nodes": "1", "node_bandwidth": "B/s", "latency": "s", "unsubscribed_extra": "USD"},
    "edges": {
        "name": TEXT,
        "ports": "1",
        "uplinks": "1",
        "uplink_bandwidth": "B/s",
        "price": "USD",
    },
    "cores": {
        "name": TEXT,
        "short": TEXT,
        "slots": "1",
        "supervisor_slots": "1",
        "cards": "1",
        "ports": "1",
        "price": "USD",
        "card_bandwidth": "B/s",
        "core_bandwidth": "B/s",
    },
    "designs": {"edge": TEXT, "core": TEXT, "nodes_per_edge": "1"},
}
# What an absent number means.
ABSENT = {
    "unsubscribed_extra": math.nan,
    "supervisor_slots": 0,
    "card_bandwidth": math.inf,
    "core_bandwidth": math.inf,
}
# Columns of `table` in the text for a terminal, and what they are called there.
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
        """A design's network as the table of `two_level.from_table`."""
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
    """The designs of a design file, a dict as TOML gives it; raises FalloffError naming every fault."""
    if faults := list(_misshapen(described)) or list(_misfits(described)):
        raise faulty(f"design file {described.get('name', '?')}", faults)
    groups = {
        group: {name: _plain(group, row) for name, row in described[group].items()}
        for group in ("edges", "cores", "designs")
    }
    assumed = {
        f"{place}.{key}": entry["source"]
        for group in FIELDS
        for place, row in _rows(group, described[group])
        for key, entry in row.items()
        if isinstance(entry, dict) and entry["source"].startswith("assumed")
    }
    cluster = _plain("cluster", described["cluster"])
    return Designs(described["name"], described["title"], cluster, **groups, assumed=assumed)


def _plain(group: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a row of a group, and what those that are absent mean."""
    values = {key: row.get(key, ABSENT.get(key)) for key in FIELDS[group]}
    return {key: each["value"] if isinstance(each, dict) else each for key, each in values.items()}


def _rows(group: str, rows: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every row of a group with its place in the file."""
    if group == "cluster":
        yield group, rows
    else:
        yield from ((f"{group}.{name}", row) for name, row in rows.items())


def _misshapen(described: Mapping[str, Any]) -> Iterator[str]:
    """What is missing, unknown or not what it should be, a sentence each."""
    yield from _faults("", described, {"name": TEXT, "title": TEXT, **dict.fromkeys(FIELDS, TABLE)})
    for group, fields in FIELDS.items():
        rows = described.get(group)
        for place, row in _rows(group, rows) if isinstance(rows, dict) else ():
            yield from _faults(f"{place}.", row, fields)


def _faults(place: str, row: Any, fields: Mapping[str, str]) -> Iterator[str]:
    if not isinstance(row, dict):
        yield f"{place.rstrip('.')} must be a table"
        return
    yield from (f"{place}{key} is unknown" for key in row if key not in fields)
    for key, unit in fields.items():
        number = "a whole number from 1" if unit == "1" else "a number above 0"
        wanted = f'{{ value = {number}, unit = "{unit}", source = a text }}'
        if key not in row and key not in ABSENT:
            yield f"{place}{key} is missing"
        elif key in row and not _fits(row[key], unit):
            yield f"{place}{key} must be {f'a {unit}' if unit in (TEXT, TABLE) else wanted}"


def _fits(entry: Any, unit: str) -> bool:
    if unit in (TEXT, TABLE):
        return isinstance(entry, str) if unit == TEXT else bool(entry) and isinstance(entry, dict)
    if not isinstance(entry, dict) or set(entry) != {"value", "unit", "source"}:
        return False
    is_number = type(entry["value"]) in ((int,) if unit == "1" else (int, float))
    is_sourced = entry["unit"] == unit and isinstance(entry["source"], str)
    return is_number and is_sourced and 0 < entry["value"] < math.inf


def _misfits(described: Mapping[str, Any]) -> Iterator[str]:
    """Parts that are not there, and parts that do not fit together."""
    edges, cores, designs = (described[group] for group in ("edges", "cores", "designs"))
    if CROSSBAR in designs:
        yield f"designs.{CROSSBAR}: the network without oversubscription has that name already"
    for name, row in cores.items():
        core = _plain("cores", row)
        if core["cards"] + core["supervisor_slots"] > core["slots"]:
            yield f"cores.{name}: {core['slots']} slots do not hold its cards and supervisors"
    for name, row in designs.items():
        if row["edge"] not in edges or row["core"] not in cores:
            yield f"designs.{name}: there is no edge {row['edge']!r} in [edges] or no core {row['core']!r} in [cores]"
            continue
        edge, core = _plain("edges", edges[row["edge"]]), _plain("cores", cores[row["core"]])
        if row["nodes_per_edge"]["value"] + edge["uplinks"] > edge["ports"]:
            yield f"designs.{name}: {edge['name']} has no port for each node and uplink"
        if edge["uplinks"] > core["ports"]:
            yield f"designs.{name}: a card of {core['name']} has no port for each uplink of an edge switch"


def networks(designs: Designs) -> dict[str, dict[str, Any]]:
    """What a simulated testbed calls `network`: the crossbar, then each design with the plain table of its tree.

    `bandwidth` [B/s] and `latency` [s] are those of a node's link and from node to node.
    """
    source = f"design file {designs.name}: cluster."
    ends = {
        name: {"value": designs.cluster[key], "unit": unit, "source": source + key}
        for name, key, unit in (("bandwidth", "node_bandwidth", "B/s"), ("latency", "latency", "s"))
    }
    trees = {design: {**ends, "tree": designs.tree(design)} for design in designs.designs}
    return {CROSSBAR: ends, **trees}


def names(designs: Designs) -> dict[str, dict[str, str]]:
    """How the crossbar and each design are called: {name, short} by its own name."""
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
    rows = {design: _row(designs, design) for design in designs.designs}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("design")


def _row(designs: Designs, design: str) -> dict[str, float]:
    network = designs.network(design)
    edge, core = designs.parts(design)
    edges_per_card = core["ports"] // edge["uplinks"]
    cost = network.edges * edge["price"] + core["price"]
    cost = cost if network.edges <= core["cards"] * edges_per_card else math.nan
    card_slots = core["slots"] - core["supervisor_slots"]
    return {
        "edge_oversubscription": network.edge_oversubscription,
        "core_oversubscription": network.core_oversubscription,
        "bisection": network.bisection,
        "cost": cost,
        "cost_per_node": cost / network.nodes,
        "largest_cluster": card_slots * edges_per_card * network.nodes_per_edge,
    }


def text(designs: Designs) -> str:
    """The table and what is assumed, for a terminal."""
    worth = table(designs).assign(bisection=lambda rows: rows.bisection / 1e9)
    shown = worth[list(SHOWN)].rename(columns=SHOWN).rename_axis(None).round(2)
    rows = shown.to_string(float_format="{:,.10g}".format, na_rep="unknown")
    lines = [f"{designs.title}, {designs.cluster['nodes']} nodes", rows, NOTE]
    lines += ["Assumed:"] if designs.assumed else []
    for place, reason in designs.assumed.items():
        *tables, key = place.split(".")
        row = getattr(designs, tables[0])
        value, unit = (row[tables[1]] if tables[1:] else row)[key], FIELDS[tables[0]][key]
        why = reason.removeprefix("assumed").lstrip(": ")
        lines.append(f"  {place} = {value:.6g} {unit.replace('1', '')}".rstrip() + f": {why}")
    return "\n".join(lines)
