"""What a campaign has of a claim's quantity, of one kind of evidence: values to be judged, or what is known already."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from analysis.findings import evidence_of
from analysis.statistics.judgement import UNKNOWN, Interval

NOT_TESTABLE = "not testable"
SIMULATED = "simulated"


@dataclass(frozen=True)
class Sample:
    """A quantity in every block of a campaign, or in every run of a simulation.

    `values`, shape (n,), are in the claim's unit, not their logarithms; NaN is left out. `of` says in a few words what
    they are, `n_of` what they are counted in.
    """

    evidence: str
    values: np.ndarray
    of: str
    n_of: str = "block"


@dataclass(frozen=True)
class Judgement:
    """A claim's verdict on one kind of evidence, and what it rests on; unknown is NaN or "".

    The estimate is in the claim's unit; `kind` names the intervals. Runs of a simulation have none: their `interval_95`
    is the range of them all, and `kind` is `range`. `of` says what was taken, `n` of how many `n_of`. `reading` names
    the readings that agree with the printed number, or else the nearest; the estimate is the nearest's. Where a campaign
    gives an estimate with intervals that are not Student's t over blocks, the verdict is "" until it is judged.
    """

    evidence: str
    verdict: str = ""
    estimate: float = math.nan
    interval_90: Interval = UNKNOWN
    interval_95: Interval = UNKNOWN
    kind: str = ""
    n: int = 0
    n_of: str = ""
    of: str = ""
    reason: str = ""
    reading: str = ""


Found = Sample | Judgement
# Of a claim: experiments, and what makes of each one's study what it has of the quantity (None where it lacks the points).
# Where two of them are of one kind of evidence, as a user's may be, the first is judged.
Quantity = Sequence[tuple[str, Callable[[Any], Found | None]]]


def sample(dataset: xr.Dataset, values, of: str, n_of: str = "block") -> Sample:
    """The sample of `values`, of any shape, that come from this dataset."""
    return Sample(evidence_of(dataset), np.ravel(np.asarray(values, float)), of, n_of)


def untestable(dataset: xr.Dataset, reason: str) -> Judgement:
    """That the evidence of this dataset cannot tell, and why, in words that end a sentence."""
    return Judgement(evidence_of(dataset), NOT_TESTABLE, reason=reason)
