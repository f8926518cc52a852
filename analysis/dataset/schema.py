"""The one dataset schema, and the check that lists all faults at once.

What every trial has, and what testbeds count, is in data/schema.toml; what a tool reads and is told
is in the tool's own file.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

import xarray as xr
from pydantic import Field, model_validator

from analysis.descriptions.toml_tables import Name, TomlTable, must_be, parse, read_toml
from analysis.paths import SCHEMA
from runners.records.record import FalloffError, Quantity
from runners.tools import all_tools

IDENTITY = "trial_id role runner block order evidence testbed file version".split()
# Other text levels are shown unchanged, as they contain no markup. Networks and paths are shown by
# their display names, which may contain anything; variants are HPL's own, units a log's.
NAMED = ("interconnect", "path", "variant", "unit")
WORDS = re.compile(r"(?!.*(?:_ | _|--|\.[. ]))(?:[^\W_](?:[\w %.,=+-]*[^\W_%])?)?")
# Counts, which have no unit.
COUNTS = ("nodes", "pairs", "receivers", "senders", "streams", "systems", "flows", "connections")
TABLES = ("design", "interconnects", "testbed_settings", "settings", "provenance")  # in JSON
Dimension = Literal[
    "trial", "node", "interval", "size", "message", "pair", "partner", "run", "quantile", "place"
]
DIMENSIONS = get_args(Dimension)
KINDS = {"text": "OUT", "whole": "iu", "number": "fiu"}


class SchemaEntry(TomlTable):
    """What data/schema.toml says of a coordinate or a variable."""

    dims: Annotated[
        list[Dimension], Field(min_length=1), must_be(f"a list of {', '.join(DIMENSIONS)}")
    ]
    type: Annotated[Literal["text", "whole", "number"], must_be("one of text, whole, number")]
    long_name: Name
    units: Name | None = None
    values: list[str] | None = None

    @model_validator(mode="after")
    def _has_units(self) -> Self:
        if (self.type == "text") != (self.units is None):
            raise ValueError('needs units ("1" of a pure number), or type = "text"')
        return self


class SchemaFile(TomlTable):
    """data/schema.toml."""

    coordinates: dict[str, SchemaEntry]
    variables: dict[str, SchemaEntry]
    attributes: dict[
        str, Annotated[Name, must_be("a text: rows stand above, in their own sections")]
    ]


@cache
def schema() -> dict:
    """Coordinates, variables and attributes with their dims, types, units and long names.

    Raises FalloffError naming every faulty row, and where two tools describe one name differently.
    """
    return read(SCHEMA)


def read(file: Path) -> dict:
    """As `schema`, of a file."""
    described = parse(SchemaFile, read_toml(file, "schema"), str(file)).plain()
    for tool in all_tools():
        for section, quantities in (("coordinates", tool.factors), ("variables", tool.readings)):
            for name, quantity in quantities.items():
                row = _row(quantity)
                if described[section].setdefault(name, row) != row:
                    raise FalloffError(f"tool {tool.name} describes {name} in its own way")
    if both := described["coordinates"].keys() & described["variables"].keys():
        raise FalloffError(f"{file}: {', '.join(sorted(both))} is a coordinate and a variable")
    return described


def _row(quantity: Quantity) -> dict:
    """A quantity as data/schema.toml has it."""
    row = {"dims": list(quantity.dims), "long_name": quantity.long_name}
    row |= {"type": "number", "units": quantity.units} if quantity.units else {"type": "text"}
    return row | ({"values": list(quantity.values)} if quantity.values else {})


@cache
def settings() -> dict[str, dict]:
    """The coordinates that state a trial's settings, not its identity or origin."""
    return {
        name: described
        for name, described in schema()["coordinates"].items()
        if described["dims"] == ["trial"] and name not in IDENTITY
    }


def is_shown(name: str) -> bool:
    """Whether the levels of a coordinate are words."""
    return settings().get(name, {}).get("type") == "text" and name not in NAMED


def faults(dataset: xr.Dataset) -> list[str]:
    """Every way in which a dataset departs from the schema, one sentence each; empty if there is
    none."""
    departures = []
    for section, arrays in (("coordinates", dataset.coords), ("variables", dataset.data_vars)):
        described = schema()[section]
        for name in described.keys() ^ arrays.keys():
            departures.append(
                f"'{name}' is {'missing' if name in described else 'not in the schema'}"
            )
        for name in described.keys() & arrays.keys():
            departures += _faults_of(name, dataset.variables[name], described[name])
    for name in schema()["attributes"]:
        departures += _faults_of_attribute(name, dataset.attrs.get(name))
    return sorted(departures)


def check(dataset: xr.Dataset) -> xr.Dataset:
    """Return the dataset unchanged; raises FalloffError listing all of its faults."""
    departures = faults(dataset)
    if departures:
        raise FalloffError("the dataset does not follow the schema: " + "; ".join(departures))
    return dataset


def _faults_of_attribute(name: str, value: object) -> list[str]:
    if value is None:
        return [f"attribute '{name}' is missing"]
    if not isinstance(value, str):
        return [f"attribute '{name}' is no text"]
    if name not in TABLES:
        return []
    try:
        table = json.loads(value)
    except ValueError:
        table = None
    if not isinstance(table, dict):
        return [f"attribute '{name}' is no table in JSON"]
    factors = table.get("factors", {}) if name == "design" else {}
    strange = [factor for factor in factors if factor not in settings()]
    return [f"the design's factor {factor[:40]!r} is no setting of a trial" for factor in strange]


def _faults_of(name: str, array: xr.Variable, wanted: dict) -> list[str]:
    present = {"dims": list(array.dims), **array.attrs}
    keys = [key for key in ("dims", "units", "long_name") if present.get(key) != wanted.get(key)]
    faults = [f"'{name}' has {key} {present.get(key)!r}, not {wanted.get(key)!r}" for key in keys]
    if array.dtype.kind not in KINDS[wanted["type"]]:
        faults.append(f"'{name}' is {array.dtype}, not {wanted['type']}")
    held = set(array.values.ravel().tolist()) if array.dtype.kind in KINDS["text"] else set()
    strange = held - set(wanted["values"]) if "values" in wanted else set()
    if is_shown(name):
        odd = [value for value in held if not WORDS.fullmatch(str(value))]
        faults += [f"'{name}' holds {str(value)[:40]!r}, which is no word" for value in odd]
    return [
        *faults,
        *(f"'{name}' holds {value!r}, not one of {wanted['values']}" for value in strange),
    ]
