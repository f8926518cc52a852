"""What prose may quote of HPL over the order of the matrix: shares and margins are fractions, times in s."""

import json
from dataclasses import asdict

import numpy as np
import xarray as xr

from analysis.facts.common import common
from analysis.facts.plain import known, pair, scaled
from analysis.fitting.compare import Comparison
from analysis.inference.averages import mean_over
from analysis.inference.over_blocks import ratios
from analysis.studies.scaling import short_names
from analysis.studies.size import HPL, NEAR, Curve, Size
from analysis.wire import wire_limit

ELEMENT = 64  # bits of a matrix element


def collect(study: Size) -> dict:
    """All facts of the campaign; what is not known is None."""
    names = short_names(study.dataset)
    orders = study.points.N.values
    return {
        **common(study.dataset, study.points),
        "nodes": study.nodes,
        "network": names[study.network],
        "reference": names[study.reference],
        "least_order": int(orders.min()),
        "most_order": int(orders.max()),
        "points": [_point(study, names, N) for N in orders],
        "spans": [
            {
                "network": names[interconnect],
                "least": known(study.shares.ratio.sel(interconnect=interconnect, N=orders.min())),
                "most": known(study.shares.ratio.sel(interconnect=interconnect, N=orders.max())),
            }
            for interconnect in study.shares.interconnect.values
        ],
        "model": {"title": HPL.title, "equation": HPL.equation, "source": HPL.source},
        "near": NEAR,
        "element_bytes": ELEMENT // 8,
        "curves": [_curve(study, names[curve.interconnect], curve) for curve in study.curves],
        "agreement": asdict(study.agreement),
    }


def _point(study: Size, names: dict, N: int) -> dict:
    ratio = study.ratios.sel(N=N)
    return {
        "N": int(N),
        "ratio": known(ratio.ratio),
        "interval": pair(ratio.low, ratio.high),
        "blocks": int(ratio.blocks),
        "shares": [
            _estimate(study.shares.sel(N=N, interconnect=interconnect)) | {"network": names[interconnect]}
            for interconnect in study.shares.interconnect.values
        ],
    }


def _curve(study: Size, network: str, curve: Curve) -> dict:
    facts = {
        "network": network,
        "refused": curve.refused,
        "models": [_model(comparison) for comparison in curve.comparisons],
    }
    if curve.blocks is None:
        return facts
    node_rate = 1e9 * float(mean_over(study.points.known_rate / study.points.nodes, ..., "rate"))
    near = ratios(np.log(curve.orders_near)) if (curve.orders_near > 0).all() else None
    return facts | {
        "blocks": curve.blocks.blocks,
        "asymptote": _estimate(ratios(np.log(curve.asymptotes))),
        "order_near": None if near is None else known(near.ratio),
        "order_near_interval": None if near is None else pair(near.low, near.high),
        "message": _cost(curve, "alpha", node_rate),
        "element": _cost(curve, "beta", node_rate),
        "flop": _cost(curve, "gamma", 1.0),
        "element_on_wire": _element_on_wire(study.dataset, curve.interconnect),
    }


def _cost(curve: Curve, parameter: str, unit: float) -> dict:
    """A parameter divided by its unit: flop by a node's known rate [flop/s] give s."""
    return {
        "estimate": curve.blocks.estimates[parameter] / unit,
        "interval": scaled(pair(*curve.blocks.intervals[parameter]), 1 / unit),
    }


def _element_on_wire(dataset: xr.Dataset, interconnect: str) -> float | None:
    """The time [s] of a matrix element in full frames at the link's rate; None without a shaper."""
    link = json.loads(dataset.attrs["interconnects"])[interconnect]
    return ELEMENT / wire_limit(link["rate_bit_s"], link["mtu"]) if "rate_bit_s" in link else None


def _model(comparison: Comparison) -> dict:
    held_out = comparison.held_out
    return {
        "model": comparison.model.title,
        "aicc": comparison.aicc,
        "error": None if held_out is None else held_out.error,
        "error_interval": None if held_out is None else pair(*held_out.interval),
        "refused": comparison.refused or comparison.held_out_refused,
    }


def _estimate(found: xr.Dataset) -> dict:
    return {
        "estimate": known(found.ratio),
        "interval": pair(found.low, found.high),
        "blocks": int(found.blocks),
    }
