"""HPL on one node with two BLAS libraries: how much faster is the tuned one, and is it the factor
of two of a blog?"""

from collections.abc import Iterator
from dataclasses import dataclass

import xarray as xr

from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, points
from analysis.findings import (
    Finding,
    at_place,
    interval_in_words,
    of_estimate,
    of_fall,
    origin,
    resting_on,
)
from analysis.statistics import design as designs
from analysis.statistics.intervals import ratios
from analysis.statistics.judgement import FALLS_OFF, FLAT, UNDECIDED, Judgement, judge
from analysis.wording import number

CLAIMED_FACTOR = 2.0  # the blog's "doubled"
NAMES = {"openblas": "OpenBLAS", "reference": "reference BLAS"}


@dataclass(frozen=True)
class Blas:
    """The campaign's dataset and all results.

    `slow` and `fast` are the compared levels of the factor blas. `log_ratio` is log(rate with the
    fast library / rate with the slow one) over (block, N). `factors` is over (N): `ratio`
    (geometric mean) with its 95 % t interval `low`, `high` and `blocks`. `claim` judges, at the
    largest N, whether the slow library's rate falls below the fast one's by more than 1 - 1 /
    CLAIMED_FACTOR: it `falls off` if the factor exceeds the claimed one with 95 % one-sided
    confidence, and is `flat` if it is below.
    """

    dataset: xr.Dataset
    slow: str
    fast: str
    log_ratio: xr.DataArray
    factors: xr.Dataset
    claim: Judgement


def analyse(hpl_blas: xr.Dataset) -> Blas:
    """Derive points, factors and the claim.

    Raises FalloffError if there is no HPL trial, or there are several interconnects or node counts.
    """
    alone = at_only_level(points(hpl_blas), "interconnect", "nodes")
    slow, fast = designs.read(hpl_blas).pair
    log_ratio = log_ratios(alone, fast, slow, "blas")
    largest = log_ratio.sel(N=log_ratio.N.max())
    claim = judge(-largest.values, 1 - 1 / CLAIMED_FACTOR, alone.evidence.item())
    return Blas(hpl_blas, slow, fast, log_ratio, ratios(log_ratio), claim)


def finding(study: Blas) -> str:
    """How much faster HPL is with the fast library at the largest N, in plain English
    (Markdown)."""
    fast, slow = NAMES[study.fast], NAMES[study.slow]
    factor, *ends = at_place(study.factors.sel(N=study.factors.N.max()))
    blocks, caveat = study.claim.blocks, study.dataset.attrs.get("caveat", "")
    if not blocks:
        return f"**How much faster HPL is with {fast} cannot be said**: no block has both runs of the largest matrix."
    if study.claim.answer not in (FALLS_OFF, FLAT):
        basis = resting_on(study.dataset, blocks)
        answer = (
            f"**Whether {fast} at least doubles HPL's rate over the {slow} is open** ({basis})."
        )
        return f"{answer} {caveat}".strip()
    more = "more" if study.claim.answer == FALLS_OFF else "less"
    answer = (
        f"**With {fast} HPL is {number(factor)} times as fast as with the {slow} on one node** "
        f"({resting_on(study.dataset, blocks, interval_in_words(ends, 2))}). "
        f"That is {more} than the doubling that the bonding blog reports for another library."
    )
    return f"{answer} {caveat}".strip()


def findings(study: Blas) -> Iterator[Finding]:
    """The claim, and the factor at the largest N, as data."""
    source, claim = origin("hpl_blas", study.dataset), study.claim
    fast, slow = NAMES[study.fast], NAMES[study.slow]
    doubled = f"HPL loses more than half of its rate with the {slow} instead of {fast}"
    yield of_fall(source, doubled, claim)
    statement = f"{fast} at least doubles the {slow}'s HPL rate"
    factor = at_place(study.factors.sel(N=study.factors.N.max()))
    answer = {FALLS_OFF: "yes", FLAT: "no"}.get(claim.answer, UNDECIDED)
    yield of_estimate(source, statement, "ratio", factor, claim.blocks, answer=answer, primary=True)
