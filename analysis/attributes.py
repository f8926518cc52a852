"""What a dataset's attributes describe, read from their JSON: its interconnects, design and testbed."""

import json
from typing import Any

import xarray as xr


def interconnects(dataset: xr.Dataset) -> dict[str, dict[str, Any]]:
    """The description of every interconnect of a dataset, or of what is derived from it, by its name."""
    return json.loads(dataset.attrs["interconnects"])


def short_names(dataset: xr.Dataset) -> dict[str, str]:
    """The short name of every interconnect, by its name."""
    return {name: described["short"] for name, described in interconnects(dataset).items()}


def design(dataset: xr.Dataset) -> dict[str, Any]:
    """What was decided before the run: the factors with their levels, the margin, what is compared with what."""
    return json.loads(dataset.attrs["design"])


def testbed(dataset: xr.Dataset) -> dict[str, Any]:
    """The description of the testbed, or of the modelled cluster, that a dataset is from."""
    return json.loads(dataset.attrs["testbed_settings"])
