"""What a file of network designs says: its numbers with their units, and what is wrong with it."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

CROSSBAR = "crossbar"  # the network without oversubscription, beside the designs

# The unit of every number, by table; `data/designs/nemo.toml` says what each means.
UNITS = {
    "cluster": {"nodes": "1", "node_bandwidth": "B/s", "latency": "s", "unsubscribed_extra": "USD"},
    "edges": {"ports": "1", "uplinks": "1", "uplink_bandwidth": "B/s", "price": "USD"},
    "cores": {
        "slots": "1",
        "supervisor_slots": "1",
        "cards": "1",
        "ports": "1",
        "price": "USD",
        "card_price": "USD",
        "card_bandwidth": "B/s",
        "core_bandwidth": "B/s",
    },
    "designs": {"nodes_per_edge": "1"},
}
_TEXTS = {"cluster": (), "edges": ("name",), "cores": ("name", "short"), "designs": ("edge", "core")}
# What an absent number means.
_ABSENT = {
    "unsubscribed_extra": math.nan,
    "supervisor_slots": 0,
    "card_price": math.nan,
    "card_bandwidth": math.inf,
    "core_bandwidth": math.inf,
}


def plain(group: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a row of a group, and what those that are absent mean."""
    given = {key: entry["value"] if isinstance(entry, dict) else entry for key, entry in row.items()}
    return {**{key: value for key, value in _ABSENT.items() if key in UNITS[group]}, **given}


def rows(described: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Every row with the group that it belongs to and its place in the file."""
    yield "cluster", "cluster", described["cluster"]
    for group in ("edges", "cores", "designs"):
        for name, row in described[group].items():
            yield group, f"{group}.{name}", row


def faults(described: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with a design file, a sentence each; empty when nothing is."""
    return list(_misshapen(described)) or list(_misfits(described))


def _misshapen(described: Mapping[str, Any]) -> Iterator[str]:
    """What is missing, unknown or not what it should be."""
    yield from (f"{key} is unknown" for key in described if key not in ("name", "title", *UNITS))
    for key in ("name", "title"):
        if not isinstance(described.get(key), str):
            yield f"{key} must be a text"
    empty = [group for group in UNITS if not isinstance(described.get(group), dict) or not described[group]]
    yield from (f"[{group}] is missing" for group in empty)
    for group, place, row in rows({**described, **dict.fromkeys(empty, {})}):
        if group not in empty:
            yield from _faulty_row(group, place, row)


def _faulty_row(group: str, place: str, row: Any) -> Iterator[str]:
    if not isinstance(row, dict):
        yield f"{place} must be a table"
        return
    known = (*_TEXTS[group], *UNITS[group])
    yield from (f"{place}.{key} is unknown" for key in row if key not in known)
    yield from (f"{place}.{key} is missing" for key in known if key not in row and key not in _ABSENT)
    for key in _TEXTS[group]:
        if not isinstance(row.get(key, ""), str):
            yield f"{place}.{key} must be a text"
    for key, unit in UNITS[group].items():
        if key in row and not _is_number(row[key], unit):
            wanted = "a whole number from 1" if unit == "1" else "a number above 0"
            yield f'{place}.{key} must be {{ value = {wanted}, unit = "{unit}", source = a text }}'


def _is_number(entry: Any, unit: str) -> bool:
    if not isinstance(entry, dict) or set(entry) != {"value", "unit", "source"}:
        return False
    kinds = (int,) if unit == "1" else (int, float)
    fits = type(entry["value"]) in kinds and 0 < entry["value"] < math.inf
    return fits and entry["unit"] == unit and isinstance(entry["source"], str)


def _misfits(described: Mapping[str, Any]) -> Iterator[str]:
    """Names that mean two things, parts that are not there, and parts that do not fit together."""
    if CROSSBAR in described["designs"]:
        yield f"designs.{CROSSBAR}: the network without oversubscription has that name already"
    yield from (f"{name!r} is in both [edges] and [cores]" for name in described["edges"] if name in described["cores"])
    for name, row in described["cores"].items():
        core = plain("cores", row)
        if core["cards"] + core["supervisor_slots"] > core["slots"]:
            yield f"cores.{name}: {core['slots']} slots do not hold its cards and supervisors"
    for name, row in described["designs"].items():
        strange = [part for part in ("edge", "core") if row[part] not in described[f"{part}s"]]
        yield from (f"designs.{name}: {part} {row[part]!r} is not in [{part}s]" for part in strange)
        if not strange:
            edge, core = (plain(f"{part}s", described[f"{part}s"][row[part]]) for part in ("edge", "core"))
            if row["nodes_per_edge"]["value"] + edge["uplinks"] > edge["ports"]:
                yield f"designs.{name}: {edge['name']} has no port for each node and uplink"
            if edge["uplinks"] > core["ports"]:
                yield f"designs.{name}: a card of {core['name']} has no port for each uplink of an edge switch"
