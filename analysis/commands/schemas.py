"""JSON schemas of the description files, for editors: `python -m analysis.commands.schemas FOLDER`.

They are made from the classes that read the files, so that an editor completes the keys that
falloff reads, and underlines what it would refuse.
"""

import ast
import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from analysis import paths
from analysis.dataset.schema import SchemaFile
from analysis.descriptions import (
    campaigns,
    ledger,
    networks,
    switch_designs,
    testbeds,
)
from analysis.descriptions.toml_tables import TomlTable
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


class _InToml(GenerateJsonSchema):
    """Schemas without what TOML or JSON does not have: null, infinite and unknown numbers."""

    def nullable_schema(self, schema: Any) -> Any:
        """As if the value could not be null."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> Any:
        """Without a default that is null, unknown or infinite."""
        made = super().default_schema(schema)
        if str(made.get("default")) in ("None", "nan", "inf", "-inf"):
            made.pop("default", None)
        return made

    def field_title_should_be_set(self, _schema: Any) -> bool:
        """Keys name themselves."""
        return False


def write(folder: Path = FOLDER) -> list[Path]:
    """Write NAME.json for each kind of file, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {folder / f"{name}.json": _schema(name, kind) for name, (_, kind) in SCHEMAS.items()}
    for file, schema in files.items():
        write_whole(file, json.dumps(schema, indent=1) + "\n")
    return list(files)


def _schema(name: str, kind: Any) -> dict[str, Any]:
    made = TypeAdapter(kind).json_schema(schema_generator=_InToml)
    tables = {**made.get("$defs", {}), made.get("title", ""): made}
    comments = dict(_comments())
    for title, table in tables.items():
        for key, field in table.get("properties", {}).items():
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
        for kind in vars(module).values():
            if not (inspect.isclass(kind) and issubclass(kind, TomlTable)):
                continue
            node: Any = ast.parse(inspect.getsource(kind)).body[0]
            for field, after in zip(node.body, node.body[1:]):
                if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
                    name = ast.unparse(field.target)
                    key = kind.model_fields[name].alias or name
                    yield (kind.__name__, key), ast.literal_eval(after.value)


if __name__ == "__main__":
    for file in write(*map(Path, sys.argv[1:2])):
        print(file)
