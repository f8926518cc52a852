"""The one dataset schema, read from `data/schema.toml`, and the check that lists all faults at once."""

import tomllib
from functools import cache

import xarray as xr

from analysis.paths import SCHEMA
from runners.record import FalloffError

KINDS = {"text": "OUT", "whole": "iu", "number": "fiu"}


@cache
def schema() -> dict:
    """Coordinates, variables and attributes with their dims, types, units and long names."""
    return tomllib.loads(SCHEMA.read_text(encoding="utf-8"))


def faults(dataset: xr.Dataset) -> list[str]:
    """Every way in which a dataset departs from the schema, one sentence each; empty when none does."""
    found = []
    for section, arrays in (("coordinates", dataset.coords), ("variables", dataset.data_vars)):
        known = schema()[section]
        found += [f"{section}: '{name}' is missing" for name in known.keys() - arrays.keys()]
        found += [
            f"{section}: '{name}' is not in the schema" for name in arrays.keys() - known.keys()
        ]
        for name in known.keys() & arrays.keys():
            found += _faults_of(name, dataset.variables[name], known[name])
    absent = schema()["attributes"].keys() - dataset.attrs.keys()
    return sorted([*found, *(f"attribute '{name}' is missing" for name in absent)])


def check(dataset: xr.Dataset) -> xr.Dataset:
    """Return the dataset unchanged; raises FalloffError with all of its faults."""
    found = faults(dataset)
    if found:
        raise FalloffError("the dataset does not follow data/schema.toml: " + "; ".join(found))
    return dataset


def _faults_of(name: str, array: xr.Variable, wanted: dict) -> list[str]:
    found = []
    if list(array.dims) != wanted["dims"]:
        found.append(f"'{name}' has dimensions {list(array.dims)}, not {wanted['dims']}")
    if array.dtype.kind not in KINDS[wanted["type"]]:
        found.append(f"'{name}' is {array.dtype}, not {wanted['type']}")
    for key in ("units", "long_name"):
        present, right = array.attrs.get(key), wanted.get(key)
        if present != right:
            found.append(f"'{name}' has {key} {present!r}, not {right!r}")
    strange = set(array.values.tolist()) - set(wanted["values"]) if "values" in wanted else set()
    found += [
        f"'{name}' holds {value!r}, not one of {wanted['values']}" for value in sorted(strange)
    ]
    return found
