"""What a dataset's attributes describe, read from their JSON here and nowhere else."""

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


def factors(dataset: xr.Dataset) -> dict[str, list]:
    """The levels of every factor of the design, by its name."""
    return design(dataset)["factors"]


def testbed(dataset: xr.Dataset) -> dict[str, Any]:
    """The description of the testbed, or of the modelled cluster, that a dataset is from."""
    return json.loads(dataset.attrs["testbed_settings"])


def settings(dataset: xr.Dataset) -> dict[str, Any]:
    """The settings that have the same value in all points of the design."""
    return json.loads(dataset.attrs["settings"])


def hosts(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """The machine of each of the campaign's sessions, the last one last."""
    sessions = json.loads(dataset.attrs["provenance"]).get("sessions", [])
    return [session.get("host", {}) for session in sessions]


def host(dataset: xr.Dataset) -> dict[str, Any]:
    """The machine of the campaign's last session; empty when it is not recorded."""
    return (hosts(dataset) or [{}])[-1]
