"""The one dataset schema, read from `data/schema.toml`, and the check that lists all faults at once."""

import tomllib
from functools import cache

import xarray as xr

from analysis.paths import SCHEMA
from runners.record import FalloffError

IDENTITY = "trial_id role runner block order evidence testbed file version".split()
KINDS = {"text": "OUT", "whole": "iu", "number": "fiu"}


@cache
def schema() -> dict:
    """Coordinates, variables and attributes with their dims, types, units and long names."""
    return tomllib.loads(SCHEMA.read_text(encoding="utf-8"))


def settings() -> dict[str, dict]:
    """The coordinates that say what a trial was run with, and not which trial it was or where it is from."""
    return {
        name: described
        for name, described in schema()["coordinates"].items()
        if described["dims"] == ["trial"] and name not in IDENTITY
    }


def faults(dataset: xr.Dataset) -> list[str]:
    """Every way in which a dataset departs from the schema, one sentence each; empty when none does."""
    found = []
    for section, arrays in (("coordinates", dataset.coords), ("variables", dataset.data_vars)):
        known = schema()[section]
        for name in known.keys() ^ arrays.keys():
            found.append(f"'{name}' is {'missing' if name in known else 'not in the schema'}")
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
    present = {"dims": list(array.dims), **array.attrs}
    keys = [key for key in ("dims", "units", "long_name") if present.get(key) != wanted.get(key)]
    found = [f"'{name}' has {key} {present.get(key)!r}, not {wanted.get(key)!r}" for key in keys]
    if array.dtype.kind not in KINDS[wanted["type"]]:
        found.append(f"'{name}' is {array.dtype}, not {wanted['type']}")
    strange = set(array.values.tolist()) - set(wanted["values"]) if "values" in wanted else set()
    return [
        *found,
        *(f"'{name}' holds {value!r}, not one of {wanted['values']}" for value in strange),
    ]
