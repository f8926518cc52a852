"""What prose may quote of the paper's own cases, simulated: efficiencies and their changes are fractions."""

import json

import xarray as xr

from analysis.derive import at_only_level, points
from analysis.facts import contention as contention_facts
from analysis.facts import sensitivity as sensitivity_facts
from analysis.facts.common import common
from analysis.facts.plain import known
from analysis.studies.efficiency import PLATEAU, efficiency, testbed
from analysis.studies.paper import CALIBRATED, Paper
from analysis.studies.scaling import short_names
from analysis.studies.sensitivity import meaning


def collect(study: Paper) -> dict:
    """All facts of the section; what is not known is None, as are parts without a campaign."""
    names = {it: short_names(study.dataset)[it] for it in study.efficiency.interconnect.values.tolist()}
    nodes = study.efficiency.nodes.values
    return {
        **common(study.dataset, study.points),
        "simulator": simulator(study.dataset),
        "network": names[study.network],
        "reference": names[study.reference],
        "least_nodes": int(nodes.min()),
        "most_nodes": int(nodes.max()),
        "plateau": PLATEAU,
        "line": study.line,
        "calibrated": _calibrated(study),
        "points": [_point(study, names, int(n)) for n in nodes],
        "curves": [_curve(study, it, name) for it, name in names.items()],
        "relative_fall": known(study.relative_fall),
        "rates": rates(study.dataset, names),
        "sensitivity": sensitivity_facts.collect(study.sensitivity) if study.sensitivity else None,
        "contention": contention_facts.collect(study.contention) if study.contention else None,
        "today": None if study.today_run is None else _today(study, study.today_run),
    }


def simulator(dataset: xr.Dataset) -> str | None:
    """The simulator's name and version as its testbed recorded them in the last session."""
    sessions = json.loads(dataset.attrs["provenance"]).get("sessions", [])
    return sessions[-1]["testbed"].get("simulator") if sessions else None


def rates(dataset: xr.Dataset, names: dict) -> list[dict]:
    """Every number of the model's node and networks: meaning, value, range from low to high, unit and source.

    `names` holds the networks' names; `of` is one of these, or "node".
    """
    described = testbed(dataset)
    tables = {"node": {"rpeak": described["rpeak"], **described["rates"]}}
    tables |= {names[it]: table for it, table in described["network"].items() if it in names}
    return [
        {"of": of, "name": name, "meaning": meaning(name), "low": None, "high": None, **entry}
        for of, table in tables.items()
        for name, entry in table.items()
    ]


def _today(study: Paper, run: xr.Dataset) -> dict:
    """How many cases were simulated again, when, on how many nodes at most, and how far they are from the stored ones."""
    again = efficiency(at_only_level(points(run), "block"))
    apart = abs(again / study.efficiency - 1)  # over the cases that both have
    return {
        "ended": run.attrs["ended"],
        "cases": int(apart.notnull().sum()),
        "same": int((apart == 0).sum()),
        "largest": known(apart.max()),
        "most_nodes": int(apart.nodes.max()) if apart.size else None,
    }


def _calibrated(study: Paper) -> dict:
    described = testbed(study.dataset)
    rate = described["rates"][CALIBRATED]
    return {
        "rate": CALIBRATED,
        "value": rate["value"],
        "part_of_rpeak": rate["value"] / described["rpeak"]["value"],
        "nodes": int(study.calibrated.nodes),
        "efficiency": known(study.calibrated),
    }


def _point(study: Paper, names: dict, nodes: int) -> dict:
    rates = study.points.rate.squeeze("block").sel(nodes=nodes)
    reached = study.efficiency.sel(nodes=nodes)
    return {
        "nodes": nodes,
        "networks": [
            {
                "network": name,
                "rate": known(rates.sel(interconnect=it)),
                "efficiency": known(reached.sel(interconnect=it)),
            }
            for it, name in names.items()
        ],
    }


def _curve(study: Paper, interconnect: str, name: str) -> dict:
    """The curve in numbers; `level` where no two cases from PLATEAU on differ by more than the margin."""
    cases = study.efficiency.sel(interconnect=interconnect)
    found = {it: known(study.shape[it].sel(interconnect=interconnect)) for it in study.shape.data_vars}
    margin = json.loads(study.dataset.attrs["design"])["margin"]
    return {
        "network": name,
        "first": known(cases[0]),
        "last": known(cases[-1]),
        "farthest_from_line": known(abs(cases - study.line).max()),
        "level": None if found["spread"] is None else found["spread"] <= margin * float(cases.max()),
        **found,
    }
