"""JSON schemas of the description files, for editors: `python -m analysis.commands.schemas FOLDER`.

They are made from the classes that read the files, so that an editor completes the keys that
falloff reads, and underlines what it would refuse.
"""

import ast
import inspect
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from analysis import paths
from analysis.dataset.schema import SchemaFile
from analysis.descriptions import (
    campaigns,
    ledger,
    networks,
    switch_designs,
    testbeds,
)
from runners.records.journal import write_whole
from runners.tools import all_tools

FOLDER = paths.BUILD / "schemas"
DRAFT = "http://json-schema.org/draft-07/schema#"  # as Taplo reads
# The files that each schema is for, relative to the project's root, and what reads them.
SCHEMAS: dict[str, tuple[str, Any]] = {
    "campaign": ("data/campaigns/*.toml", campaigns.Campaign),
    "testbed": (
        "data/testbeds/*.toml",
        testbeds.Cluster | testbeds.EmulatedTestbed | testbeds.SimulatedTestbed,
    ),
    "interconnects": ("data/interconnects.toml", dict[str, networks.Interconnect]),
    "paths": ("data/paths.toml", dict[str, networks.Path]),
    "designs": ("data/designs/*.toml", switch_designs.Designs),
    "claims": ("data/published/claims.toml", ledger.ClaimsFile),
    "schema": ("data/schema.toml", SchemaFile),
}


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON schema of each kind of file, by name."""
    return {name: _schema(name, kind) for name, (_, kind) in SCHEMAS.items()}


def write(folder: Path = FOLDER) -> list[Path]:
    """Write NAME.json for each kind of file, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, schema in schemas().items():
        files.append(folder / f"{name}.json")
        write_whole(files[-1], (json.dumps(schema, indent=1) + "\n").encode())
    return files


def _schema(name: str, kind: Any) -> dict[str, Any]:
    made = _without_null(TypeAdapter(kind).json_schema(by_alias=True))
    tables = {**made.get("$defs", {}), made.get("title", ""): made}
    comments = dict(_comments())
    for title, table in tables.items():
        for key, field in table.get("properties", {}).items():
            field.pop("title", None)
            if about := comments.get((title, key)):
                field["description"] = about
    # What a file does not state may stand in the one that it extends.
    for table in tables.values():
        if "extends" in table.get("properties", {}) and "required" in table:
            wanted = {"required": table.pop("required")}
            table |= {"if": {"not": {"required": ["extends"]}}, "then": wanted}
    if name == "campaign":
        for table in (made, tables["Preset"]):
            table["properties"]["settings"] |= {"properties": _settings()}
    return {"$schema": DRAFT, "title": name, **made}


def _without_null(schema: Any) -> Any:
    """A schema without null, which TOML does not have."""
    if isinstance(schema, list):
        return [_without_null(part) for part in schema if part != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    parts = {
        key: _without_null(part) for key, part in schema.items() if not _is_no_default(key, part)
    }
    if len(parts.get("anyOf", ())) == 1:
        parts |= parts.pop("anyOf")[0]
    return parts


def _is_no_default(key: str, value: Any) -> bool:
    """Whether this is a default that JSON does not have: none, an infinite number, or an unknown
    one.
    """
    return key == "default" and (
        value is None or isinstance(value, float) and not math.isfinite(value)
    )


def _settings() -> dict[str, Any]:
    """The settings that tools read, each with what it must be and the tools that read it."""
    meanings: dict[str, dict[str, list[str]]] = {}
    for tool in all_tools():
        for name, rule in tool.settings.items():
            meanings.setdefault(name, {}).setdefault(rule.words, []).append(tool.name)
    return {
        name: {"description": "; ".join(f"{', '.join(by)}: {what}" for what, by in of.items())}
        for name, of in sorted(meanings.items())
    }


def _comments() -> Iterator[tuple[tuple[str, str], str]]:
    """What stands below each field of a class, by the names of both; pydantic's own way reads the
    source of every class whenever one is imported."""
    for module in (campaigns, networks, switch_designs, testbeds, ledger):
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.ClassDef):
                for field, after in zip(node.body, node.body[1:]):
                    if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
                        yield (node.name, _key(field)), ast.literal_eval(after.value)


def _key(field: ast.AnnAssign) -> str:
    """The key of a field in a file: its alias, if it has one."""
    calls = [
        node for node in ast.walk(field) if isinstance(node, ast.keyword) and node.arg == "alias"
    ]
    return ast.literal_eval(calls[0].value) if calls else ast.unparse(field.target)


if __name__ == "__main__":
    for file in write(*map(Path, sys.argv[1:2])):
        print(file)
