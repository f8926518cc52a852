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
from analysis.contrasts import Contrast, contrasts, differences, log_ratios
from analysis.derive import points
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.fitting.compare import Comparison, compare
from analysis.inference.mixed import MixedFall, mixed_fall
from analysis.inference.verdict import Agreement, judge_agreement
from analysis.links import links, networks
from runners.record import FalloffError

# What each model describes. A law of scalability is of a rate: n times the share is the rate in units of
# one node's DGEMM, so that its parameters do not hold the machine's drift. HPL's own model is not among
# them: with N proportional to sqrt(n) on one row of processes its messages and its operations grow alike.
MODELS = {
    "share": ("constant", "power_law", "segmented"),
    "n × share": ("amdahl", "universal_scalability"),
}


@dataclass(frozen=True)
class Compared:
    """The models of one response on one interconnect, the one with the best AICc first."""

    interconnect: str
    response: str
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True)
class Scaling:
    """A campaign's dataset and all that follows from it; what it has no data for is empty or None.

    In the contrasts' order, `second_opinions` holds a mixed model's fall for each, and `all_blocks` what it
    would be with those blocks, too, in which DGEMM drifted beyond the limit. `share_curves`
    and `rate_curves` hold the scalability law fitted to n times the share and to the rate [Gflop/s] of each
    interconnect. `today` holds the agreement of another run with each contrast, in the contrasts' order and
    with all blocks of both: a short run has none to lose, and the networks' ratio does not depend on DGEMM.
    `today_run` is that run's dataset.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    contrasts: tuple[Contrast, ...]
    second_opinions: tuple[MixedFall, ...]
    all_blocks: tuple[Contrast, ...]
    models: tuple[Compared, ...]
    share_curves: Mapping[str, BlockFit]
    rate_curves: Mapping[str, BlockFit]
    links: pd.DataFrame
    networks: pd.DataFrame
    balance: xr.Dataset | None
    today: tuple[Agreement, ...]
    today_run: xr.Dataset | None


def analyse(reference: xr.Dataset, today: xr.Dataset | None = None) -> Scaling:
    """Derive points, contrasts, models, links and balance; raises FalloffError when there is no HPL trial."""
    derived = points(reference)
    surveyed = networks(reference)
    judged = contrasts(derived)
    everything = points(reference, drift_limit=np.inf)
    responses = {"share": derived.share, "n × share": derived.nodes * derived.share}
    return Scaling(
        dataset=reference,
        points=derived,
        contrasts=judged,
        second_opinions=tuple(mixed_fall(derived, it.network, it.reference) for it in judged),
        all_blocks=contrasts(everything),
        models=tuple(
            _compared(responses[response], name, response)
            for response in MODELS
            for name in derived.interconnect.values.tolist()
        ),
        share_curves=_curves(responses["n × share"]),
        rate_curves=_curves(derived.rate),
        links=links(reference),
        networks=surveyed,
        balance=balance(derived, surveyed) if len(surveyed) else None,
        today=() if today is None else _agreements(everything, points(today, drift_limit=np.inf), judged),
        today_run=today,
    )


def short_names(dataset: xr.Dataset) -> dict[str, str]:
    """The short name of every interconnect that a dataset, or what is derived from it, describes."""
    return {name: it["short"] for name, it in json.loads(dataset.attrs["interconnects"]).items()}


def _curves(values: xr.DataArray) -> dict[str, BlockFit]:
    law = models.find("universal_scalability")
    curves = {}
    for interconnect in values.interconnect.values:
        with suppress(FalloffError):  # too few node counts, or no whole block: no curve
            curves[interconnect] = fit_blocks(law, *_table(values, interconnect))
    return curves


def _table(values: xr.DataArray, interconnect: str) -> tuple[np.ndarray, np.ndarray]:
    """Node counts, and one interconnect's values over (block, nodes)."""
    alone = values.sel(interconnect=interconnect).transpose("block", "nodes")
    return alone.nodes.values.astype(float), alone.values


def _compared(values: xr.DataArray, interconnect: str, response: str) -> Compared:
    chosen = [models.find(name) for name in MODELS[response]]
    return Compared(interconnect, response, compare(chosen, *_table(values, interconnect)))


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
