"""HPL on one node with two BLAS libraries: how much faster is the tuned one, and is that the doubling of a blog?"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.derive import at_only_level, points
from analysis.findings import T_INTERVAL, Finding, of_estimate, of_fall, origin
from analysis.statistics import design as designs
from analysis.statistics.intervals import ratios
from analysis.statistics.judgement import FALLS_OFF, FLAT, UNDECIDED, Judgement, judge
from analysis.wording import between, counted, number

CLAIMED_FACTOR = 2.0  # the blog's "doubled"
NAMES = {"openblas": "OpenBLAS", "reference": "reference BLAS"}


@dataclass(frozen=True)
class Blas:
    """The campaign's dataset and all that follows from it.

    `slow` and `fast` are the levels of the factor blas that are compared. `log_ratio` is
    log(rate with the fast library / rate with the slow one) over (block, N). `factors` is over (N): `ratio`
    (geometric mean) with its 95 % t interval `low`, `high` and `blocks`. `claim` judges, at the largest N, whether the
    slow library's rate falls below the fast one's by more than 1 - 1 / CLAIMED_FACTOR: it `falls off` where the factor
    is beyond the claimed one with 95 % one-sided confidence, and is `flat` where it is below.
    """

    dataset: xr.Dataset
    slow: str
    fast: str
    log_ratio: xr.DataArray
    factors: xr.Dataset
    claim: Judgement

    @property
    def names(self) -> tuple[str, str]:
        """The names of the fast and of the slow library."""
        return NAMES.get(self.fast, self.fast), NAMES.get(self.slow, self.slow)


def analyse(hpl_blas: xr.Dataset) -> Blas:
    """Derive points, factors and the claim.

    Raises FalloffError when there is no HPL trial, or there are several interconnects or node counts.
    """
    derived = points(hpl_blas)
    slow, fast = designs.read(hpl_blas).pair
    log_rate = np.log(at_only_level(derived, "interconnect", "nodes").rate)
    log_ratio = log_rate.sel(blas=fast, drop=True) - log_rate.sel(blas=slow, drop=True)
    largest = log_ratio.sel(N=log_ratio.N.max())
    return Blas(
        dataset=hpl_blas,
        slow=slow,
        fast=fast,
        log_ratio=log_ratio.rename("log_ratio"),
        factors=ratios(log_ratio),
        claim=judge(-largest.values, 1 - 1 / CLAIMED_FACTOR, derived.evidence.item()),
    )


def finding(study: Blas) -> str:
    """How much faster HPL is with the fast library at the largest N, in plain English (Markdown)."""
    fast, slow = study.names
    most = study.factors.sel(N=study.factors.N.max())
    basis = f"{counted(int(most.blocks), 'block')}, {study.claim.evidence} evidence"
    if not most.blocks:
        return f"**How much faster HPL is with {fast} cannot be said**: no block has both runs of the largest matrix."
    if study.claim.answer in (FALLS_OFF, FLAT):
        more = "more" if study.claim.answer == FALLS_OFF else "less"
        answer = (
            f"**With {fast} HPL is {number(float(most.ratio))} times as fast as with the {slow} on one node** "
            f"(95 % interval {between((float(most.low), float(most.high)), 2)}, {basis}). "
            f"That is {more} than the doubling that the bonding blog reports for another library."
        )
    else:
        answer = (
            f"**Whether {fast} at least doubles HPL's rate over the {slow} is open** ({basis})."
        )
    return f"{answer} {study.dataset.attrs.get('caveat', '')}".strip()


def findings(study: Blas) -> Iterator[Finding]:
    """The claim, and the factor at the largest N, as data."""
    source, most = origin("hpl_blas", study.dataset), study.factors.sel(N=study.factors.N.max())
    fast, slow = study.names
    doubled = f"HPL loses more than half of its rate with the {slow} instead of {fast}"
    yield of_fall(source, doubled, study.claim)
    statement = f"{fast} at least doubles the {slow}'s HPL rate"
    factor, *ends = (float(most[end]) for end in ("ratio", "low", "high"))
    answer = {FALLS_OFF: "yes", FLAT: "no"}.get(study.claim.answer, UNDECIDED)
    further = {"n": int(most.blocks), "answer": answer, "primary": True}
    yield of_estimate(source, statement, "ratio", "1", factor, ends, T_INTERVAL, **further)
