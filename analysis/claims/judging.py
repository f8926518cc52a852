"""Judge one claim on one kind of evidence.

A sample over blocks and an estimate with its own intervals follow the same rule. Simulated runs
have no scatter to generalise from: all must lie inside the range, or all outside. Printed numbers
have no statistical verdict: a number alone is `printed`, and one that agrees with a reading of
other numbers is `consistent`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from analysis.claims.ledger import Claim
from analysis.statements import evidence_of
from analysis.statistics.judgement import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    UNKNOWN,
    Interval,
    judge_range,
    kind_of,
)

PUBLISHED, SIMULATED = "published", "simulated"
NOT_TESTABLE = "not testable"
PRINTED, CONSISTENT, INCONSISTENT = "printed", "consistent", "inconsistent"
NO_NUMBER = "the source prints no number of it"
NO_CAMPAIGN = "no campaign has what it is about"
RULE = (
    "supported: the 90 % interval lies inside the range; contradicted: the 95 % interval lies wholly outside; else "
    "undecided. Simulated runs: all inside, all outside, else undecided. Printed numbers have no statistical "
    "verdict. Each claim is judged by itself, without a correction for how many there are."
)


@dataclass(frozen=True)
class Judgement:
    """A claim's verdict on one kind of evidence, and what it rests on; unknown is NaN or "".

    The estimate is in the claim's unit; `kind` names the intervals. Simulated runs have none: their
    `interval_95` is the range of all runs, and `kind` is `range`. `of` names the quantity taken;
    `n` counts `n_of`. `reading` names the readings that agree with the printed number, or else the
    nearest; the estimate is the nearest one's.

    Before the judgement the verdict is "", and `values`, shape (n,), holds every block or simulated
    run in the claim's unit; NaN is left out. If `values` is None, the estimate has intervals of its
    own, which are not Student's t over blocks.
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
    values: np.ndarray | None = None


def sample(dataset: xr.Dataset, values, of: str, n_of: str = "block") -> Judgement:
    """A judgement to be made from `values` of any shape, which come from this dataset."""
    flat = np.ravel(np.asarray(values, float))
    return Judgement(evidence_of(dataset), of=of, n_of=n_of, values=flat)


def untestable(dataset: xr.Dataset, reason: str) -> Judgement:
    """A judgement that this dataset's evidence cannot decide. `reason` says why, in words that end
    a sentence."""
    return Judgement(evidence_of(dataset), NOT_TESTABLE, reason=reason)


def judge(claim: Claim, kind: str, found: Judgement | None) -> Judgement:
    """Judge a claim by the values from the campaigns of one kind of evidence. What the ledger rules
    out is not tested.

    Raises FalloffError if a ratio is not above 0.
    """
    if kind in claim.not_testable or found is None:
        reason = claim.not_testable.get(kind, NO_CAMPAIGN)
        return Judgement(kind, NOT_TESTABLE, reason=reason)
    if found.verdict:
        return found
    ends = claim.at_least, claim.at_most
    if found.values is None:
        return replace(found, verdict=kind_of(found.interval_90, found.interval_95, *ends))
    if kind == SIMULATED:
        return _of_runs(found, found.values[np.isfinite(found.values)], *ends)
    judged = vars(judge_range(found.values, *ends, claim.scale == "ratio"))
    return replace(found, **judged | {"verdict": judged["kind"], "kind": "t"})


def _of_runs(found: Judgement, values: np.ndarray, at_least: float, at_most: float) -> Judgement:
    if not len(values):
        return replace(found, verdict=UNDECIDED, reason="no run has a value")
    inside = (at_least <= values) & (values <= at_most)
    reason = ""
    verdict = SUPPORTED if inside.all() else CONTRADICTED
    if inside.any() and not inside.all():
        verdict, reason = UNDECIDED, f"{inside.sum()} of {len(values)} runs lie in the range"
    estimate, ends = float(np.median(values)), (float(values.min()), float(values.max()))
    judged = {"interval_95": ends, "kind": "range", "n": len(values), "reason": reason}
    return replace(found, verdict=verdict, estimate=estimate, **judged)


def judge_printed(claim: Claim, found: Mapping[str, float]) -> Judgement:
    """Compare every reading with the printed number, or with the range if no number is printed or
    it is not rounded.

    A reading agrees with the printed number if it is the same within half of `rounding`.
    """
    known = {name: value for name, value in found.items() if math.isfinite(value)}
    is_printed = math.isfinite(claim.printed)
    if not known and not is_printed:
        return Judgement(PUBLISHED, NOT_TESTABLE, reason=NO_NUMBER)
    if not known:
        how = "follows from the source's numbers" if claim.printed_how else "a bare number"
        named = {"reason": f"{how}: nothing else to check it by", "reading": claim.printed_how}
        return Judgement(PUBLISHED, PRINTED, claim.printed, **named)
    low, high = claim.at_least, claim.at_most
    if is_printed and math.isfinite(claim.rounding):
        # Slightly more than half, because 0.5 x 0.001 and 0.1085 - 0.108 differ in floating point.
        slack = 0.5 * claim.rounding * (1 + 1e-9) + 1e-12 * abs(claim.printed)
        low, high = claim.printed - slack, claim.printed + slack
    agreeing = [name for name, value in known.items() if low <= value <= high]
    ends = [claim.printed] if is_printed else [end for end in (low, high) if math.isfinite(end)]
    nearest = min(agreeing or known, key=lambda name: abs(known[name] - np.mean(ends)))
    return Judgement(
        PUBLISHED,
        CONSISTENT if agreeing else INCONSISTENT,
        known[nearest],
        n=len(known),
        n_of="reading",
        reading=" or ".join(agreeing) or nearest,
        reason="" if agreeing else "no reading of the printed numbers gives it",
    )
