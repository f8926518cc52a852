"""What prose may quote of the model's sensitivity to its rates: changes of efficiency, as fractions."""

import xarray as xr

from analysis.facts.common import common
from analysis.facts.plain import known, pair
from analysis.studies import sensitivity
from analysis.studies.efficiency import testbed
from analysis.studies.scaling import short_names
from analysis.studies.sensitivity import Sensitivity

QUOTED = ("fall", "late_fall")  # of the curve's numbers, those whose ranges the report gives


def collect(study: Sensitivity) -> dict:
    """All facts of the campaign; what is not known is None."""
    names = short_names(study.dataset)
    nodes = study.base.nodes.values.tolist()
    return {
        **common(study.dataset, study.points),
        "nodes": nodes,
        "most_nodes": nodes[-1],
        "networks": [_network(study, it, names[it]) for it in study.base.interconnect.values.tolist()],
    }


def _network(study: Sensitivity, interconnect: str, name: str) -> dict:
    changes = study.changes.sel(interconnect=interconnect)
    base = study.base.sel(interconnect=interconnect)
    shape, shape_changes = (it.sel(interconnect=interconnect) for it in (study.shape, study.shape_changes))
    at_most = changes.isel(nodes=-1)
    parameters = [
        {
            "meaning": sensitivity.meaning(parameter),
            "assumed": sensitivity.is_assumed(testbed(study.dataset), interconnect, parameter),
            "changes": [_sides(changes.sel(parameter=parameter, nodes=n)) for n in changes.nodes.values],
            "at_most": _sides(at_most.sel(parameter=parameter)),
            **{it: _sides(shape_changes[it].sel(parameter=parameter)) for it in QUOTED},
        }
        for parameter in sensitivity.ranked(at_most)
    ]
    return {
        "network": name,
        "points": [
            {"nodes": int(n), **_ranges(base.sel(nodes=n), changes.sel(nodes=n))} for n in base.nodes.values
        ],
        "parameters": parameters,
        "largest_assumed": next((it for it in parameters if it["assumed"]), None),
        **{it: _ranges(shape[it], shape_changes[it]) for it in QUOTED},
    }


def _sides(changes: xr.DataArray) -> dict:
    return {side: known(changes.sel(side=side)) for side in sensitivity.SIDES}


def _ranges(base: xr.DataArray, changes: xr.DataArray) -> dict:
    """A value, its range over all single changes, and the bracket of all together."""
    alone, together = sensitivity.extent(changes), sensitivity.bracket(changes)
    return {
        "value": known(base),
        "range": pair(base + alone.low, base + alone.high),
        "bracket": pair(base + together.low, base + together.high),
    }
