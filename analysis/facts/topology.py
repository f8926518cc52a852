"""What prose may quote of the network designs: costs in USD, rates in B/s, times in s; shares are fractions."""

import json
from dataclasses import asdict

import pandas as pd

from analysis import published
from analysis.designs import CROSSBAR
from analysis.facts.conduct import campaign
from analysis.facts.plain import known, pair
from analysis.studies.design_choices import Choice
from analysis.studies.flow_growth import Growth
from analysis.studies.flow_slowdown import Judgement
from analysis.studies.scaling import short_names
from analysis.studies.topology import CONTRADICTED, HPL, MIXED, SUPPORTED, Belief, Topology, in_words


def collect(study: Topology) -> dict:
    """All facts of the campaign; what is not known is None."""
    names, about = short_names(study.dataset), campaign(study.dataset)
    cluster, extra = study.designs.cluster, known(study.designs.cluster["unsubscribed_extra"])
    beliefs = [_belief(it, names) for it in study.beliefs]
    efficient = {_place(it) for it in study.choices if it.efficient}
    return {
        "campaign": about,
        "evidence": about["evidence"],
        "names": names,
        "margin": study.margin,
        "nodes": cluster["nodes"],
        "settings": json.loads(study.dataset.attrs["settings"]),
        "proposed": len(study.proposed),
        "designs": [_design(row, names) for _, row in study.costs.iterrows()],
        "assumed": [
            {"place": place, "reason": reason.removeprefix("assumed").lstrip(": ")}
            for place, reason in study.designs.assumed.items()
        ],
        "crossbar": {"network": names[CROSSBAR], "cost_per_node": known(study.crossbar_cost)},
        "extra": extra,
        "extra_per_node": None if extra is None else extra / cluster["nodes"],
        "judged_nodes": max((it.nodes for it in study.judgements if it.pattern != HPL), default=None),
        "judgements": [{**_judgement(it, names), "efficient": _place(it) in efficient} for it in study.judgements],
        "beliefs": beliefs,
        "said": [said for kind in (SUPPORTED, CONTRADICTED, MIXED) if (said := _said(kind, beliefs))],
        "choices": [_choice(it, names) for it in study.choices],
        "growth": [_growth(it) for it in study.growth],
        "hpl": _hpl(study),
        "published": published.nemo(),
    }


def _design(row: pd.Series, names: dict) -> dict:
    numbers = ("edge_oversubscription", "core_oversubscription", "bisection", "cost", "cost_per_node")
    whole = ("nodes", "nodes_per_edge", "edges", "cards", "largest_cluster", "free_ports", "free_slots")
    return {
        "network": names[row.design],
        "edge": row.edge,
        "core": row.core,
        **{name: known(row[name]) for name in numbers},
        **{name: None if known(row[name]) is None else int(row[name]) for name in whole},
        "assumed": len(row.assumed),
    }


def _judgement(it: Judgement, names: dict) -> dict:
    return {
        "network": names[it.interconnect],
        "pattern": in_words(it.pattern),
        "placement": in_words(it.placement),
        "nodes": it.nodes,
        "slowdown": it.slowdown,
        "range": (it.least, it.most),
        "mean_flow": known(it.mean_flow),
        "runs": it.runs,
        "kind": it.kind,
        "bearable": it.bearable,
    }


def _choice(it: Choice, names: dict) -> dict:
    called = {"pattern": in_words(it.pattern), "placement": in_words(it.placement)}
    return {**asdict(it), **called, "network": names[it.interconnect]}


def _place(it: Judgement | Choice) -> tuple[str, str, str]:
    return it.interconnect, it.pattern, it.placement


def _belief(it: Belief, names: dict) -> dict:
    return {
        "pattern": in_words(it.pattern),
        "placement": in_words(it.placement),
        "nodes": it.nodes,
        "kind": it.kind,
        "designs": it.designs,
        "best": _judgement(it.best, names),
        "worst": _judgement(it.worst, names),
    }


def _said(kind: str, beliefs: list[dict]) -> dict | None:
    """The patterns of a kind, each once with its placements and its least and largest slowdown; None without any."""
    own = [it for it in beliefs if it["kind"] == kind]
    patterns = [
        {
            "pattern": pattern,
            "placements": [it["placement"] for it in own if it["pattern"] == pattern],
            "slowdown": (
                min(it["best"]["slowdown"] for it in own if it["pattern"] == pattern),
                max(it["worst"]["slowdown"] for it in own if it["pattern"] == pattern),
            ),
        }
        for pattern in dict.fromkeys(it["pattern"] for it in own)
    ]
    return {"kind": kind, "patterns": patterns} if own else None


def _growth(it: Growth) -> dict:
    return {
        "pattern": in_words(it.pattern),
        "exponent": known(it.exponent),
        "interval": pair(*it.interval),
        "last": known(it.last),
        "last_interval": pair(*it.last_interval),
        "worse_than_linear": max(it.interval[0], it.last_interval[0]) > 1,
        "trials": it.trials,
        "most_nodes": it.most_nodes,
        "longest": it.longest,
    }


def _hpl(study: Topology) -> dict | None:
    """HPL's own campaign, where it was run."""
    if study.hpl is None:
        return None
    settings = json.loads(study.hpl.attrs["settings"])
    points = study.hpl.where(study.hpl.runner == "hpl", drop=True)
    shape = {name: settings.get(name, known(points[name].max())) for name in ("N", "NB", "P", "Q")}
    return {
        "campaign": campaign(study.hpl),
        "nodes": int(points.nodes.max()),
        **{name: None if value is None else int(value) for name, value in shape.items()},
    }
