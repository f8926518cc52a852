"""What prose may quote of larger simulated clusters: efficiencies, changes and gains are fractions."""

from dataclasses import asdict

from analysis.facts.common import common
from analysis.facts.plain import known
from analysis.studies.beyond import Beyond, Gain
from analysis.studies.scaling import short_names


def collect(study: Beyond) -> dict:
    """All facts of the campaign; what is not known is None."""
    names = short_names(study.dataset)
    nodes = study.efficiency.nodes.values
    return {
        **common(study.dataset, study.points.expand_dims("block")),
        "networks": [names[interconnect] for interconnect in study.efficiency.interconnect.values],
        "least_nodes": int(nodes.min()),
        "most_nodes": int(nodes.max()),
        "margin": study.margin,
        "points": [_point(study, n) for n in nodes],
        "missing": _missing(study, names),
        "expansions": [
            {**asdict(expansion), "network": names[expansion.interconnect]} for expansion in study.expansions
        ],
        "gains": {gain.network: _gain(gain, names) for gain in study.gains},
    }


def _point(study: Beyond, n: int) -> dict:
    here = study.points.sel(nodes=n)
    return {
        "nodes": int(n),
        **{name: _whole(here[name].max()) for name in ("N", "P", "Q")},
        "efficiencies": [known(value) for value in study.efficiency.sel(nodes=n).values],
    }


def _missing(study: Beyond, names: dict) -> list[dict]:
    """The cases that have no result, with the reason."""
    reasons = study.points.reason.to_series()
    return [
        {"network": names[case["interconnect"]], "nodes": case["nodes"], "reason": case["reason"]}
        for case in reasons[reasons != ""].reset_index().to_dict("records")
    ]


def _gain(gain: Gain, names: dict) -> dict:
    simulated = gain.rate.dropna("nodes")
    return {
        "network": names[gain.network],
        "reference": names[gain.reference],
        "bandwidth": gain.bandwidth,
        "latency": gain.latency,
        "points": [{"nodes": int(n), "gain": float(simulated.sel(nodes=n))} for n in simulated.nodes.values],
    }


def _whole(value) -> int | None:
    value = known(value)
    return None if value is None else int(value)
