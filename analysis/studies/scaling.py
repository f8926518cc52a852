"""Everything that is derived from an HPL scaling campaign, and from today's run against it, in one place."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from analysis import models
from analysis.attributes import short_names  # noqa: F401, imported from here
from analysis.contrasts import Contrast, contrasts
from analysis.derive import points
from analysis.fitting.compare import Comparison, compare
from analysis.links import links, networks
from analysis.statistics.reproduction import Reproduction, reproduction

# What each model describes. A law of scalability is of a rate: n times the share is the rate in units of
# one node's known rate, so that its parameters compare between machines. HPL's own model is not among
# them: with N proportional to sqrt(n) its messages and its operations grow alike.
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

    `today_contrasts` are another run's own, and `today` says whether it reproduces the reference,
    contrast by contrast that both have, primary ones first.
    `today_run` is that run's dataset.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    contrasts: tuple[Contrast, ...]
    models: tuple[Compared, ...]
    links: pd.DataFrame
    networks: pd.DataFrame
    today: tuple[Reproduction, ...]
    today_contrasts: tuple[Contrast, ...]
    today_run: xr.Dataset | None


def analyse(reference: xr.Dataset, today: xr.Dataset | None = None) -> Scaling:
    """Derive points, contrasts, models and links; raises FalloffError when there is no HPL trial."""
    derived = points(reference)
    surveyed = networks(reference)
    judged = contrasts(derived)
    again = () if today is None else contrasts(points(today))
    responses = {"share": derived.share, "n × share": derived.nodes * derived.share}
    return Scaling(
        dataset=reference,
        points=derived,
        contrasts=judged,
        models=tuple(
            _compared(responses[response], name, response)
            for response in MODELS
            for name in derived.interconnect.values.tolist()
        ),
        links=links(reference),
        networks=surveyed,
        today=reproductions(judged, again),
        today_contrasts=again,
        today_run=today,
    )


def _table(values: xr.DataArray, interconnect: str) -> tuple[np.ndarray, np.ndarray]:
    """Node counts, and one interconnect's values over (block, nodes)."""
    alone = values.sel(interconnect=interconnect).transpose("block", "nodes")
    return alone.nodes.values.astype(float), alone.values


def _compared(values: xr.DataArray, interconnect: str, response: str) -> Compared:
    chosen = [models.find(name) for name in MODELS[response]]
    return Compared(interconnect, response, compare(chosen, *_table(values, interconnect)))


def reproductions(reference: tuple[Contrast, ...], today: tuple[Contrast, ...]) -> tuple[Reproduction, ...]:
    """Whether another run reproduces the contrasts that both have, in the reference's order."""
    again = {contrast.place: contrast for contrast in today}
    return tuple(
        reproduction(
            then.what,
            then.differences.values,
            again[then.place].differences.values,
            then.verdict.margin,
            (then.verdict.answer, again[then.place].verdict.answer),
            exact=then.verdict.evidence == "simulated",
        )
        for then in reference
        if then.place in again
    )
