"""Everything that is derived from an HPL scaling campaign, and from today's run against it, in one place."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from analysis import models
from analysis.balance import balance
from analysis.block_fit import BlockFit, fit_blocks
from analysis.contrasts import Contrast, contrasts, differences, log_ratios
from analysis.derive import points
from analysis.fit import Fit, fit
from analysis.links import links, networks
from analysis.verdict import Agreement, judge_agreement
from runners.record import FalloffError

# What each model describes. The law of scalability is of a rate: n times the share is the rate in
# units of one node's DGEMM, so that its sigma and kappa do not hold the machine's drift.
RESPONSES = {"constant": "share", "power_law": "share", "universal_scalability": "n × share"}


@dataclass(frozen=True)
class Fitted:
    """One model on one interconnect: estimates over blocks, and the fit to all points for its AICc.

    Both are None where the data do not allow the fit, and `refused` says why.
    """

    interconnect: str
    model: models.Model
    response: str
    blocks: BlockFit | None
    pooled: Fit | None
    refused: str = ""


@dataclass(frozen=True)
class Scaling:
    """A campaign's dataset and all that follows from it; what it has no data for is empty or None.

    `rate_curves` holds the scalability law fitted to the rate [Gflop/s] of each interconnect.
    `today` holds the agreement of another run with each contrast, in the contrasts' order.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    contrasts: tuple[Contrast, ...]
    fits: tuple[Fitted, ...]
    rate_curves: Mapping[str, BlockFit]
    links: pd.DataFrame
    networks: pd.DataFrame
    balance: xr.Dataset | None
    today: tuple[Agreement, ...]


def analyse(reference: xr.Dataset, today: xr.Dataset | None = None) -> Scaling:
    """Derive points, contrasts, fits, links and balance; raises FalloffError when there is no HPL trial."""
    derived = points(reference)
    interconnects = derived.interconnect.values.tolist()
    surveyed = networks(reference)
    judged = contrasts(derived)
    return Scaling(
        dataset=reference,
        points=derived,
        contrasts=judged,
        fits=tuple(
            _fitted(derived, name, models.find(model), response)
            for model, response in RESPONSES.items()
            for name in interconnects
        ),
        rate_curves=_rate_curves(derived),
        links=links(reference),
        networks=surveyed,
        balance=balance(derived, surveyed) if len(surveyed) else None,
        today=() if today is None else _agreements(derived, points(today), judged),
    )


def short_names(dataset: xr.Dataset) -> dict[str, str]:
    """The short name of every interconnect that a dataset, or what is derived from it, describes."""
    return {name: it["short"] for name, it in json.loads(dataset.attrs["interconnects"]).items()}


def _rate_curves(derived: xr.Dataset) -> dict[str, BlockFit]:
    law = models.find("universal_scalability")
    curves = {}
    for interconnect in derived.interconnect.values:
        with suppress(FalloffError):  # too few node counts, or no whole block: no curve
            curves[interconnect] = fit_blocks(law, *_table(derived.rate, interconnect))
    return curves


def _table(values: xr.DataArray, interconnect: str) -> tuple[np.ndarray, np.ndarray]:
    """Node counts, and one interconnect's values over (block, nodes)."""
    return values.nodes.values.astype(float), values.sel(interconnect=interconnect).transpose(
        "block", "nodes"
    ).values


def _fitted(derived: xr.Dataset, interconnect: str, model: models.Model, response: str) -> Fitted:
    responses = {"share": derived.share, "n × share": derived.nodes * derived.share}
    nodes, table = _table(responses[response], interconnect)
    known = np.isfinite(table)
    try:
        return Fitted(
            interconnect,
            model,
            response,
            blocks=fit_blocks(model, nodes, table),
            pooled=fit(model, np.broadcast_to(nodes, table.shape)[known], table[known]),
        )
    except FalloffError as error:
        return Fitted(interconnect, model, response, None, None, str(error))


def _agreements(
    reference: xr.Dataset, today: xr.Dataset, judged: tuple[Contrast, ...]
) -> tuple[Agreement, ...]:
    baseline = json.loads(reference.attrs["design"])["baseline_nodes"]
    return tuple(
        judge_agreement(
            f"{contrast.network} / {contrast.reference}",
            *(
                differences(log_ratios(run, contrast.network, contrast.reference), baseline).values
                for run in (reference, today)
            ),
        )
        for contrast in judged
    )
