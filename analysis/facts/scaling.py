"""What prose may quote of an HPL scaling campaign, and of today's run against it.

Rates are in Gflop/s, goodputs in bit/s, times in s; falls, shares and margins are fractions. What
cannot be known is None, and a section without data is None or empty.
"""

import json
from dataclasses import asdict

import numpy as np
import xarray as xr

from analysis.contrasts import Contrast
from analysis.facts.common import common
from analysis.facts.conduct import campaign, host
from analysis.facts.plain import known, pair
from analysis.fitting.compare import Comparison
from analysis.inference.over_blocks import rates, ratios
from analysis.statistics.reproduction import Reproduction
from analysis.studies.scaling import Compared, Scaling, short_names


def collect(scaling: Scaling) -> dict:
    """All facts of a campaign and of today's run against it."""
    nodes = scaling.points.nodes
    facts = common(scaling.dataset, scaling.points)
    return {
        **facts,
        "blocks": {**facts["blocks"], "least_nodes": int(nodes.min()), "most_nodes": int(nodes.max())},
        "interconnects": json.loads(scaling.dataset.attrs["interconnects"]),
        "contrasts": [_contrast(scaling, contrast) for contrast in scaling.contrasts],
        "points": _points(scaling.points),
        "models": [_model(scaling, fitted, one) for fitted in scaling.models for one in fitted.comparisons],
        "links": _links(scaling),
        "today": None if scaling.today_run is None else _today(scaling, scaling.today_run),
        "host": host(scaling.dataset),
    }


def _contrast(scaling: Scaling, contrast: Contrast) -> dict:
    names, found = short_names(scaling.dataset), contrast.ratios
    return {
        "network": names[contrast.network],
        "reference": names[contrast.reference],
        "pair": f"{names[contrast.network]} / {names[contrast.reference]}",
        "range": f"from {contrast.start} to {contrast.end} nodes",
        "expected": contrast.expected,
        "primary": contrast.primary,
        **asdict(contrast.verdict),
        "control": None if contrast.control is None else asdict(contrast.control),
        "ratios": [
            {
                "nodes": int(n),
                "ratio": known(found.ratio.sel(nodes=n)),
                "interval": pair(found.low.sel(nodes=n), found.high.sel(nodes=n)),
                "blocks": int(found.blocks.sel(nodes=n)),
            }
            for n in found.nodes.values
        ],
    }


def _points(points: xr.Dataset) -> list[dict]:
    """Harmonic mean rate and geometric mean share of each interconnect and node count, and its settings."""
    names = short_names(points)
    rows = []
    for n in points.nodes.values:
        here = points.sel(nodes=n)
        for interconnect in points.interconnect.values:
            point = here.sel(interconnect=interconnect)
            rate, share = rates(point.rate), ratios(np.log(point.share))
            rows.append(
                {
                    "network": names[interconnect],
                    "nodes": int(n),
                    **{key: _whole(point[key].max()) for key in ("N", "NB", "P", "Q")},
                    "rate": known(rate["mean"]),
                    "rate_interval": pair(rate.low, rate.high),
                    "share": known(share.ratio),
                    "share_interval": pair(share.low, share.high),
                    "blocks": int(point.rate.notnull().sum()),
                }
            )
    return rows


def _model(scaling: Scaling, fitted: Compared, comparison: Comparison) -> dict:
    model, pooled, held_out = comparison.model, comparison.pooled, comparison.held_out
    return {
        "network": short_names(scaling.dataset)[fitted.interconnect],
        "model": model.title,
        "equation": model.equation,
        "source": model.source,
        "response": fitted.response,
        "parameters": [
            {
                "name": name,
                "estimate": value,
                "interval": pair(*comparison.intervals[name]) if name in comparison.intervals else None,
                "at_bound": name in pooled.at_bounds,
            }
            for name, value in (pooled.estimates.items() if pooled else ())
        ],
        "interval_kind": comparison.interval_kind,
        "aicc": comparison.aicc,
        "aicc_refused": pooled.aicc_refused if pooled else "",
        "error": None if held_out is None else held_out.error,
        "error_interval": None if held_out is None else pair(*held_out.interval),
        "error_refused": comparison.held_out_refused,
        "refused": comparison.refused,
    }


def _links(scaling: Scaling) -> list[dict]:
    names = short_names(scaling.dataset)
    counts = scaling.links.groupby("interconnect").size()
    numbers = ("goodput", "round_trip_time", "wire_limit")
    return [
        {
            "network": names[interconnect],
            **{key: known(network[key]) for key in numbers},
            "limit": network.limit,
            "links": int(counts[interconnect]),
        }
        for interconnect, network in scaling.networks.iterrows()
    ]


def _today(scaling: Scaling, today: xr.Dataset) -> dict:
    """Another run's falls beside the reference's, where both have them."""
    return {"campaign": campaign(today), "contrasts": [_reproduction(scaling, it) for it in scaling.today]}


def _reproduction(scaling: Scaling, found: Reproduction) -> dict:
    names = short_names(scaling.dataset)
    return {
        "what": " ".join(names.get(word, word) for word in found.what.split(" ")),
        "kind": found.kind,
        "fall": None if found.today is None else 1 - found.today,
        "reference_fall": None if found.reference is None else 1 - found.reference,
        "ratio": None if found.reference is None or found.today is None else found.today / found.reference,
        "interval": found.interval,
        "confidence": found.confidence,
        "blocks": found.blocks,
        "answers": found.answers,
        "reason": found.reason,
    }


def _whole(value) -> int | None:
    value = known(value)
    return None if value is None else int(value)
