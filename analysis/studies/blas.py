"""Everything that is derived from the campaign with two BLAS libraries, in one place."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.derive import at_only_level, points
from analysis.inference.over_blocks import rates, ratios
from analysis.statistics import design as designs
from analysis.statistics.judgement import Judgement, judge

CLAIMED_FACTOR = 2.0  # the blog's "doubled"


@dataclass(frozen=True)
class Blas:
    """The campaign's dataset and all that follows from it.

    `slow` and `fast` are the levels of the factor blas that are compared. `log_ratio` is
    log(rate with the fast library / rate with the slow one) over (block, N). `factors` is over (N): `ratio`
    with its 95 % t interval `low`, `high` and `blocks`; `rates` over (blas, N) holds those of the rate [Gflop/s],
    with the harmonic `mean`. `claim` judges, at the largest N, whether the slow library's rate
    falls below the fast one's by more than 1 - 1 / CLAIMED_FACTOR: it `falls off` where the factor is
    beyond the claimed one with 95 % one-sided confidence, and is `flat` where it is below.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    slow: str
    fast: str
    log_ratio: xr.DataArray
    factors: xr.Dataset
    rates: xr.Dataset
    claim: Judgement


def analyse(dataset: xr.Dataset) -> Blas:
    """Derive points, factors, rates and the claim.

    Raises FalloffError when there is no HPL trial, or there are several interconnects or node counts.
    """
    derived = points(dataset)
    slow, fast = designs.read(dataset).pair
    alone = at_only_level(derived, "interconnect", "nodes")
    log_rate = np.log(alone.rate)
    log_ratio = log_rate.sel(blas=fast, drop=True) - log_rate.sel(blas=slow, drop=True)
    return Blas(
        dataset=dataset,
        points=derived,
        slow=slow,
        fast=fast,
        log_ratio=log_ratio.rename("log_ratio"),
        factors=ratios(log_ratio),
        rates=rates(alone.rate),
        claim=judge(
            -log_ratio.sel(N=log_ratio.N.max()).values, 1 - 1 / CLAIMED_FACTOR, derived.evidence.item()
        ),
    )
