"""What the sources' claims take from HPL with two BLAS libraries; notebook 43 is its analysis."""

from dataclasses import dataclass

import xarray as xr

from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, points
from analysis.statistics import design as designs


@dataclass(frozen=True)
class Blas:
    """The campaign's dataset, the libraries `slow` and `fast`, and log(rate with the fast one / rate with the slow one) over
    (block, N)."""

    dataset: xr.Dataset
    slow: str
    fast: str
    log_ratio: xr.DataArray


def analyse(hpl_blas: xr.Dataset) -> Blas:
    """Derive the ratios; raises FalloffError if there is no HPL trial, or there are several interconnects or node counts."""
    alone = at_only_level(points(hpl_blas), "interconnect", "nodes")
    slow, fast = designs.read(hpl_blas).pair
    return Blas(hpl_blas, slow, fast, log_ratios(alone, fast, slow, "blas"))
