"""What the sources' claims take from the paper's cases, simulated at their own size; notebook 44 is their analysis."""

from dataclasses import dataclass

import xarray as xr

from analysis.derive import at_only_level, points
from analysis.efficiency import efficiency
from analysis.sensitivity import Sensitivity, require_same_model
from analysis.sensitivity import analyse as changes_of
from analysis.statistics import design as designs

OPENS = {"hpl_sensitivity": {"x": "vary", "series": "interconnect", "nodes": 36}}


@dataclass(frozen=True)
class Paper:
    """The campaign's dataset, and HPL's share of Rpeak [1], `efficiency`, over (interconnect, nodes).

    `network` is compared with `reference`. `sensitivity` is of the same model; it may be None.
    """

    dataset: xr.Dataset
    network: str
    reference: str
    efficiency: xr.DataArray
    sensitivity: Sensitivity | None


def analyse(hpl_paper: xr.Dataset, hpl_sensitivity: xr.Dataset | None = None) -> Paper:
    """Derive efficiencies and their sensitivity to the model's numbers.

    Raises FalloffError if a dataset holds no HPL trial, has several blocks, or was simulated with
    other numbers than the first.
    """
    if hpl_sensitivity is not None:
        require_same_model(hpl_paper, hpl_sensitivity)
    return Paper(
        hpl_paper,
        *designs.read(hpl_paper).pair,
        efficiency=efficiency(at_only_level(points(hpl_paper), "block")),
        sensitivity=None if hpl_sensitivity is None else changes_of(hpl_sensitivity),
    )
