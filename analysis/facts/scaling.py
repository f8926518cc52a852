"""Every number that prose may quote, as plain values in base units; the template only formats them.

Rates are in Gflop/s, goodputs in bit/s, times in s; falls, shares and margins are fractions. What
cannot be known is None, and a section without data is None or empty.
"""

import json
import math
from dataclasses import asdict

import numpy as np
import xarray as xr

from analysis.contrasts import Contrast
from analysis.facts.conduct import campaign, faults, host
from analysis.facts.published import published_sources, smith_balance
from analysis.links import LINK_BOUND
from analysis.studies.scaling import Fitted, Scaling, short_names
from analysis.verdict import Agreement


def collect(scaling: Scaling, today: xr.Dataset | None = None) -> dict:
    """All facts of a campaign, of the run of `today` against it, and of the published sources."""
    return {
        "campaign": campaign(scaling.dataset),
        "design": json.loads(scaling.dataset.attrs["design"]),
        "names": short_names(scaling.dataset),
        "interconnects": json.loads(scaling.dataset.attrs["interconnects"]),
        "evidence": scaling.points.evidence.item(),
        "blocks": _blocks(scaling.points),
        "contrasts": [_contrast(scaling, contrast) for contrast in scaling.contrasts],
        "points": _points(scaling.points),
        "models": [_model(scaling, fitted) for fitted in scaling.fits],
        "links": _links(scaling),
        "balance": _balance(scaling),
        "today": None if today is None else _today(scaling, today),
        "published": published_sources(),
        "faults": faults(scaling.dataset, scaling.points),
        "settings": json.loads(scaling.dataset.attrs["settings"]),
        "testbed": json.loads(scaling.dataset.attrs["testbed_settings"]),
        "host": host(scaling.dataset),
    }


def _blocks(points: xr.Dataset) -> dict:
    drift = np.abs(points.drift.values[np.isfinite(points.drift.values)])
    return {
        "run": points.sizes["block"],
        "valid": int(points.block_valid.sum()),
        "largest_drift": float(drift.max()) if drift.size else None,
        "least_nodes": int(points.nodes.min()),
        "most_nodes": int(points.nodes.max()),
    }


def _contrast(scaling: Scaling, contrast: Contrast) -> dict:
    names, ratios = short_names(scaling.dataset), contrast.ratios
    return {
        "network": names[contrast.network],
        "reference": names[contrast.reference],
        "pair": f"{names[contrast.network]} / {names[contrast.reference]}",
        "primary": contrast.primary,
        **asdict(contrast.verdict),
        "control": None if contrast.control is None else asdict(contrast.control),
        "injection_limit": _injection_limit(scaling, contrast.network),
        "ratios": [
            {
                "nodes": int(n),
                "ratio": _known(ratios.ratio.sel(nodes=n)),
                "interval": _pair(ratios.low.sel(nodes=n), ratios.high.sel(nodes=n)),
                "blocks": int(ratios.blocks.sel(nodes=n)),
            }
            for n in ratios.nodes.values
        ],
    }


def _injection_limit(scaling: Scaling, interconnect: str) -> float | None:
    """The most [bit/s] that a node in its quota sends, where that and not the link is the limit."""
    if interconnect not in scaling.networks.index:
        return None
    network = scaling.networks.loc[interconnect]
    return (
        float(network.injection_limit) if network.injection_limit < LINK_BOUND * network.wire_limit else None
    )


def _points(points: xr.Dataset) -> list[dict]:
    """Geometric mean rate and mean share of each interconnect and node count, and its settings."""
    names = short_names(points)
    rows = []
    for n in points.nodes.values:
        here = points.sel(nodes=n)
        for interconnect in points.interconnect.values:
            point = here.sel(interconnect=interconnect)
            rows.append(
                {
                    "network": names[interconnect],
                    "nodes": int(n),
                    **{key: _whole(point[key].max()) for key in ("N", "NB", "P", "Q")},
                    "rate": _known(np.exp(np.log(point.rate).mean())),
                    "share": _known(point.share.mean()),
                    "blocks": int(point.rate.notnull().sum()),
                }
            )
    return rows


def _model(scaling: Scaling, fitted: Fitted) -> dict:
    estimates = {} if fitted.blocks is None else fitted.blocks.estimates
    return {
        "network": short_names(scaling.dataset)[fitted.interconnect],
        "model": fitted.model.title,
        "equation": fitted.model.equation,
        "source": fitted.model.source,
        "response": fitted.response,
        "parameters": [
            {"name": name, "estimate": value, "interval": _pair(*fitted.blocks.intervals[name])}
            for name, value in estimates.items()
        ],
        "blocks": fitted.blocks.blocks if fitted.blocks else 0,
        "aicc": fitted.pooled.aicc if fitted.pooled else None,
        "aicc_refused": fitted.pooled.aicc_refused if fitted.pooled else "",
        "refused": fitted.refused,
    }


def _links(scaling: Scaling) -> list[dict]:
    names = short_names(scaling.dataset)
    counts = scaling.links.groupby("interconnect").size()
    numbers = ("goodput", "injection_limit", "round_trip_time", "round_trip_time_in_quota", "wire_limit")
    return [
        {
            "network": names[interconnect],
            **{key: _known(network[key]) for key in numbers},
            "limit": network.limit,
            "injection_limited": _injection_limit(scaling, interconnect) is not None,
            "links": int(counts[interconnect]),
        }
        for interconnect, network in scaling.networks.iterrows()
    ]


def _balance(scaling: Scaling) -> dict | None:
    if scaling.balance is None:
        return None
    names, shares = short_names(scaling.dataset), scaling.balance
    return {
        "emulated": [
            {
                "network": names[interconnect],
                "nodes": int(n),
                "bandwidth_share": _known(shares.bandwidth_share.sel(interconnect=interconnect, nodes=n)),
                "latency_share": _known(shares.latency_share.sel(interconnect=interconnect, nodes=n)),
            }
            for interconnect in shares.interconnect.values
            for n in shares.nodes.values
        ],
        "smith": [
            {
                "network": names[name],
                "least": min(cases.values()),
                "most": max(cases.values()),
                "cases": len(cases),
            }
            for name, cases in smith_balance(scaling.dataset).items()
        ],
    }


def _today(scaling: Scaling, today: xr.Dataset) -> dict:
    """Another run's falls beside what the reference predicts for them, in the contrasts' order."""
    return {
        "campaign": campaign(today),
        "same_trials": today.attrs["campaign_hash"] == scaling.dataset.attrs["campaign_hash"],
        "contrasts": [_agreement(scaling, *both) for both in zip(scaling.contrasts, scaling.today)],
    }


def _agreement(scaling: Scaling, contrast: Contrast, agreement: Agreement) -> dict:
    names = short_names(scaling.dataset)
    return {
        "pair": f"{names[contrast.network]} / {names[contrast.reference]}",
        "fall": None if agreement.today is None else 1 - agreement.today,
        "expected": None
        if agreement.interval is None
        else (1 - agreement.interval[1], 1 - agreement.interval[0]),
        "blocks": agreement.k,
        "agrees": agreement.agrees,
    }


def _known(value) -> float | None:
    value = float(value)
    return value if math.isfinite(value) else None


def _pair(low, high) -> tuple[float, float] | None:
    pair = (_known(low), _known(high))
    return None if None in pair else pair


def _whole(value) -> int | None:
    value = _known(value)
    return None if value is None else int(value)
