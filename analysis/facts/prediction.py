"""What prose may quote of HPL predicted from its links: fractions, times in s, bandwidths in bit/s."""

import json

import xarray as xr

from analysis.facts.conduct import campaign
from analysis.facts.plain import known, pair
from analysis.models import hockney, hpl
from analysis.studies.prediction import MISLEADS, PREDICTS, UNDECIDED, Gain, Prediction
from analysis.studies.prediction_of_paper import Example
from analysis.studies.predictors import TITLES
from analysis.studies.scaling import short_names
from analysis.studies.surface import AXES


def collect(study: Prediction) -> dict:
    """All facts of the prediction; what is not known is None."""
    names, about = short_names(study.emulated_points), campaign(study.tokens)
    predictors = study.errors.predictor.values.tolist()
    return {
        "campaign": about,
        "evidence": about["evidence"],
        "runs": study.links.time.sizes["run"],
        "blocks": study.links.time.sizes["block"],
        "sizes": study.links.time.token_bytes.values.tolist(),
        "window": json.loads(study.tokens.attrs["settings"])["window_s"],
        "draws": study.links.fits.sizes["draw"] - 1,
        "models": {it.name: {"equation": it.equation, "source": it.source} for it in (hockney.MODEL, hpl.MODEL)},
        "hpl": {
            "campaign": study.emulated_points.attrs["campaign"],
            "evidence": study.emulated_points.evidence.item(),
            "blocks": study.emulated_points.sizes["block"],
        },
        "margin": study.margin,
        "links": [_link(study, name, names) for name in study.errors.interconnect.values],
        "surface": _surface(study),
        "uneven": [{"nodes": int(n), "part": float(study.uneven.sel(nodes=n))} for n in study.uneven.nodes.values if n > 1],
        "predictors": [_predictor(study, name) for name in predictors],
        "points": [
            _point(study, name, int(n), names)
            for name in study.errors.interconnect.values
            for n in study.errors.nodes.values
        ],
        "gain": None if study.gain is None else _gain(study.gain, names),
        "elasticities": _elasticities(study, names),
        "example": None if study.example is None else _example(study.example, study),
        "paper": None if study.paper_elasticities is None else _paper(study),
    }


def _estimate(estimate: xr.Dataset) -> dict:
    return {"value": known(estimate.value), "interval": pair(estimate.low, estimate.high)}


def _link(study: Prediction, interconnect: str, names: dict) -> dict:
    of = study.parameters.sel(interconnect=interconnect)
    beta = of.sel(parameter="beta")
    rate = json.loads(study.tokens.attrs["interconnects"])[interconnect].get("rate_bit_s")
    return {
        "network": names[interconnect],
        "alpha": _estimate(of.sel(parameter="alpha")),
        # A longer time for a byte is less bandwidth.
        "bandwidth": _estimate(xr.Dataset({"value": 8 / beta.value, "low": 8 / beta.high, "high": 8 / beta.low})),
        "misfit": known(study.links.misfit.sel(interconnect=interconnect)),
        "rate": rate,
        "beyond_its_rate": rate is not None and float(8 / beta.high) > rate,
    }


def _surface(study: Prediction) -> dict | None:
    """How the simulated surface was made, and how far its interpolation is off at most."""
    if study.surface is None:
        return None
    share = study.surface.share
    return {
        "campaign": campaign(study.simulated),
        "evidence": campaign(study.simulated)["evidence"],
        "points": share.size,
        "levels": {axis: share.sizes[axis] for axis in AXES},
        "latency": pair(share.latency.min(), share.latency.max()),
        "bandwidth": pair(8 * share.bandwidth.min(), 8 * share.bandwidth.max()),
        "error": known(study.surface.error.max()),
    }


def _predictor(study: Prediction, predictor: str) -> dict:
    """How often a predictor misleads, over all points where messages are sent, and its range of errors there."""
    errors = study.errors.value.sel(predictor=predictor, nodes=study.errors.nodes > 1)
    return {
        "title": TITLES[predictor],
        "points": int(errors.notnull().sum()),
        "counts": _counts(study.kinds.sel(predictor=predictor, nodes=study.kinds.nodes > 1)),
        "range": pair(errors.min(), errors.max()),
    }


def _counts(kinds: xr.DataArray) -> dict[str, int]:
    return {kind: int((kinds == kind).sum()) for kind in (MISLEADS, PREDICTS, UNDECIDED)}


def _point(study: Prediction, interconnect: str, nodes: int, names: dict) -> dict:
    here = {"interconnect": interconnect, "nodes": nodes}
    predictions = [
        {
            "title": TITLES[name],
            "share": _estimate(study.shares.sel({**here, "predictor": name})),
            "error": _estimate(study.errors.sel({**here, "predictor": name})),
            "kind": study.kinds.sel({**here, "predictor": name}).item() if nodes > 1 else None,
        }
        for name in study.errors.predictor.values
    ]
    return {
        "network": names[interconnect],
        "nodes": nodes,
        "emulated": _estimate(study.emulated.sel(here)),
        "predictions": predictions,
    }


def _gain(gain: Gain, names: dict) -> dict:
    said = gain.predicted
    return {
        "network": names[gain.network],
        "reference": names[gain.reference],
        "bandwidth": _estimate(gain.bandwidth),
        "latency": _estimate(gain.latency),
        "points": [
            {
                "nodes": int(n),
                "hpl": _estimate(gain.hpl.sel(nodes=n)),
                "predicted": [_estimate(said.sel(nodes=n, predictor=it)) for it in said.predictor],
            }
            for n in gain.hpl.nodes.values
        ],
    }


def _elasticities(study: Prediction, names: dict) -> list[dict]:
    """A row for each predictor, network and node count; `bound` names the larger of the two, or undecided."""
    table = study.elasticities
    return [
        {
            "title": TITLES[predictor],
            "network": names[network],
            "nodes": int(n),
            **{name: _estimate(at.sel(parameter=name)) for name in ("bandwidth", "latency")},
            "bound": _bound(at.sel(parameter="difference")),
        }
        for predictor in table.predictor.values
        for network in table.interconnect.values
        for n in table.nodes.values
        for at in [table.sel(predictor=predictor, interconnect=network, nodes=n)]
    ]


def _bound(difference: xr.Dataset) -> str:
    return "bandwidth" if difference.low > 0 else "latency" if difference.high < 0 else UNDECIDED


def _example(example: Example, study: Prediction) -> dict:
    names, there = short_names(study.beyond), example.simulated.dropna("nodes").nodes.values
    return {
        "network": names[example.network],
        "reference": names[example.reference],
        "bandwidth": example.bandwidth - 1,
        "latency": example.latency,
        "points": [
            {
                "nodes": int(n),
                "analytic": known(example.analytic.sel(nodes=n)),
                "simulated": known(example.simulated.sel(nodes=n)),
            }
            for n in there
        ],
    }


def _paper(study: Prediction) -> list[dict]:
    table, names = study.paper_elasticities, short_names(study.sensitivity)
    return [
        {
            "network": names[name],
            "nodes": int(n),
            **{it: known(table.sel(interconnect=name, nodes=n, parameter=it)) for it in table.parameter.values},
        }
        for name in table.interconnect.values
        for n in table.nodes.values
    ]
