"""What prose may quote of where a faster network pays: prices in USD, gains, premiums and chances as fractions."""

import xarray as xr

from analysis.facts.plain import known, pair
from analysis.model_draws import left_out
from analysis.prices import NODE, TYPED
from analysis.studies.payoff import DRAWS, UNCERTAIN, Payoff
from analysis.studies.scaling import short_names
from analysis.studies.sensitivity import meaning


def collect(study: Payoff) -> dict:
    """All facts of the comparison. A node count of None in `from_nodes` means: not even at `most_nodes`.

    `price_share` is None where every price is certain.
    """
    gains, names = study.gains, short_names(study.gains.dataset)
    nodes = gains.efficiency.nodes.values.tolist()
    listed = [price for price in study.prices if price.of in (NODE, gains.network, gains.reference)]
    return {
        "evidence": gains.efficiency.evidence.item(),
        "network": names[gains.network],
        "reference": names[gains.reference],
        "least_nodes": nodes[0],
        "most_nodes": nodes[-1],
        "enlarged": nodes[-1] > int(gains.dataset.nodes.max()),
        "draws": DRAWS,
        "prices": [
            {
                "name": price.name,
                "of": "a node" if price.of == NODE else names[price.of],
                "part": price.part,
                "value": price.value,
                "range": (price.low, price.high) if price.low < price.high else None,
                "source": price.source,
            }
            for price in listed
        ],
        "typed": [price.name for price in listed if price.source == TYPED],
        "assumed": [price.name for price in listed if price.source.startswith("assumed")],
        "premium": _estimate(study.premium),
        "points": [_point(study, n) for n in nodes],
        "from_nodes": {kind: _from_nodes(study, kind) for kind in UNCERTAIN},
        "price_share": known(study.price_share[-1]) if any(it.low < it.high for it in listed) else None,
        "effects_on": gains.sensitivity.base.nodes.values.tolist(),
        "left_out": [meaning(name) for name in left_out(gains.sensitivity)],
    }


def _estimate(values: xr.Dataset) -> dict:
    return {"value": known(values.value), "range": pair(values.low, values.high)}


def _point(study: Payoff, n: int) -> dict:
    cost = 1e9 * study.cost.sel(nodes=n)  # of a Gflop/s
    return {
        "nodes": n,
        "gain": _estimate(study.gain.sel(nodes=n)),
        "ratio": _estimate(study.ratio.sel(nodes=n, uncertain="both")),
        "worth": _estimate(study.worth.sel(nodes=n)),
        "cost": known(cost.sel(interconnect=study.gains.network)),
        "reference_cost": known(cost.sel(interconnect=study.gains.reference)),
        "chance": {kind: float(study.chance.sel(nodes=n, uncertain=kind)) for kind in UNCERTAIN},
    }


def _from_nodes(study: Payoff, kind: str) -> dict:
    found = study.from_nodes.sel(uncertain=kind)
    return {
        **{name: _count(found[name]) for name in ("value", "low", "high")},
        "never": 1 - float(study.chance.sel(uncertain=kind).isel(nodes=-1)),
    }


def _count(nodes: xr.DataArray) -> int | None:
    value = known(nodes)
    return None if value is None else int(value)
