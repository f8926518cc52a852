"""What the sources' claims take from the campaign over nodes; notebook 40 is its analysis."""

from dataclasses import dataclass

import pandas as pd
import xarray as xr

from analysis.contrasts import Contrast, contrasts
from analysis.derive import points
from analysis.links import networks


@dataclass(frozen=True)
class Scaling:
    """The campaign's dataset, its `points` from `derive.points`, its planned statements, and the survey of its links."""

    dataset: xr.Dataset
    points: xr.Dataset
    contrasts: tuple[Contrast, ...]
    networks: pd.DataFrame


def analyse(hpl_scaling: xr.Dataset) -> Scaling:
    """Derive points and statements; raises FalloffError when there is no HPL trial."""
    derived = points(hpl_scaling)
    return Scaling(hpl_scaling, derived, contrasts(derived), networks(hpl_scaling))
