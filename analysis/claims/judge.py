"""One claim judged on one kind of evidence."""

import math
from dataclasses import dataclass

import numpy as np

from analysis.claims.ledger import Claim
from analysis.claims.sample import (
    PUBLISHED,
    SIMULATED,
    Estimate,
    Found,
    Printed,
    Sample,
    Untestable,
)
from analysis.statistics.judgement import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    UNKNOWN,
    Interval,
    judge_range,
    kind_of,
)

NOT_TESTABLE = "not testable"
PRINTED, CONSISTENT, INCONSISTENT = (
    "printed",
    "consistent",
    "inconsistent",
)  # of printed numbers, no statistics
NO_NUMBER = "the source prints no number of it"
VERDICTS = (SUPPORTED, CONTRADICTED, UNDECIDED, NOT_TESTABLE, PRINTED, CONSISTENT, INCONSISTENT)


@dataclass(frozen=True)
class Judgement:
    """A claim's verdict on one kind of evidence, and what it rests on; unknown is NaN or "".

    The estimate is in the claim's unit; `kind` names the intervals, of which runs of a simulation have none: their
    `interval_95` is the range of them all, and `kind` says so. `of` says what was taken, `n` of how many `n_of`.
    `reading` names those that agree with the printed number, or else the nearest; the estimate is the nearest's.
    """

    evidence: str
    verdict: str
    estimate: float = math.nan
    interval_90: Interval = UNKNOWN
    interval_95: Interval = UNKNOWN
    kind: str = ""
    n: int = 0
    n_of: str = ""
    of: str = ""
    reason: str = ""
    reading: str = ""
    campaign: str = ""
    digest: str = ""


def judge(claim: Claim, found: Found) -> Judgement:
    """Judge a claim by what was found.

    Samples over blocks by `judge_range`, estimates with intervals of their own by the same rule. Simulated runs have
    no scatter to generalise from, so that all have to lie inside the range (supported) or outside (contradicted).
    Printed numbers have no statistical verdict: a number alone is `printed`, one that a reading of others agrees with
    `consistent`.
    Raises FalloffError when a ratio is not above 0.
    """
    if isinstance(found, Untestable):
        return Judgement(found.evidence, NOT_TESTABLE, reason=found.reason)
    if isinstance(found, Printed):
        return _printed(claim, found)
    if not claim.has_range:
        return Judgement(
            found.evidence, UNDECIDED, reason="the source's words give no range to judge by"
        )
    if isinstance(found, Estimate):
        return _estimated(claim, found)
    return _simulated(claim, found) if found.evidence == SIMULATED else _over_blocks(claim, found)


def _over_blocks(claim: Claim, found: Sample) -> Judgement:
    judged = judge_range(found.values, claim.at_least, claim.at_most, claim.scale == "ratio")
    return Judgement(
        **_origin(found),
        verdict=judged.kind,
        estimate=judged.estimate,
        interval_90=judged.interval_90,
        interval_95=judged.interval_95,
        kind="t",
        n=judged.n,
        reason=judged.reason,
    )


def _estimated(claim: Claim, found: Estimate) -> Judgement:
    known = (
        np.isfinite(found.estimate) and not np.isnan([*found.interval_90, *found.interval_95]).any()
    )
    verdict = (
        kind_of(found.interval_90, found.interval_95, claim.at_least, claim.at_most)
        if known
        else UNDECIDED
    )
    return Judgement(
        **_origin(found),
        verdict=verdict,
        estimate=found.estimate,
        interval_90=found.interval_90,
        interval_95=found.interval_95,
        kind=found.kind,
        n=found.n,
        reason="" if known else "it has no interval",
    )


def _simulated(claim: Claim, found: Sample) -> Judgement:
    values = np.asarray(found.values, float)
    values = values[np.isfinite(values)]
    if not len(values):
        return Judgement(**_origin(found), verdict=UNDECIDED, reason="no run has a value")
    inside = (claim.at_least <= values) & (values <= claim.at_most)
    verdict = CONTRADICTED
    if inside.any():
        verdict = SUPPORTED if inside.all() else UNDECIDED
    return Judgement(
        **_origin(found),
        verdict=verdict,
        estimate=float(np.median(values)),
        interval_95=(float(values.min()), float(values.max())),
        kind="range",
        n=len(values),
        reason=""
        if verdict != UNDECIDED
        else f"{inside.sum()} of {len(values)} runs lie in the range",
    )


def _printed(claim: Claim, found: Printed) -> Judgement:
    """Every reading against the printed number, or against the range where none is printed or it is no rounding.

    Where the number itself is computed from the printed ones, that it agrees with them is no finding, only `printed`.
    """
    readings = {name: value for name, value in found.readings.items() if math.isfinite(value)}
    if not readings:
        return bare(claim)
    agreeing = [name for name, value in readings.items() if _agrees(claim, found, value)]
    aim = claim.printed if math.isfinite(claim.printed) else _middle(claim)
    nearest = min(agreeing or readings, key=lambda name: abs(readings[name] - aim))
    verdict, reason = INCONSISTENT, "no reading of the printed numbers gives it"
    if agreeing and claim.printed_how:
        verdict, reason = PRINTED, "follows from the source's numbers: nothing else to check it by"
    elif agreeing:
        verdict, reason = CONSISTENT, ""
    return Judgement(
        PUBLISHED,
        verdict,
        estimate=readings[nearest],
        n=len(readings),
        n_of="reading",
        reading=" or ".join(agreeing) or nearest,
        reason=reason,
    )


def bare(claim: Claim) -> Judgement:
    """The judgement of a claim's printed number where nothing is there to check it by."""
    if math.isfinite(claim.printed):
        return Judgement(
            PUBLISHED,
            PRINTED,
            estimate=claim.printed,
            reason="a bare number: nothing to check it by",
        )
    return Judgement(PUBLISHED, NOT_TESTABLE, reason=NO_NUMBER)


def _agrees(claim: Claim, found: Printed, value: float) -> bool:
    if found.rounding is not None and math.isfinite(claim.printed):
        # A hair more than half, since 0.5 x 0.001 and 0.1085 - 0.108 differ in floating point.
        return abs(value - claim.printed) <= 0.5 * found.rounding * (1 + 1e-9) + 1e-12 * abs(
            claim.printed
        )
    return claim.has_range and claim.at_least <= value <= claim.at_most


def _middle(claim: Claim) -> float:
    ends = [end for end in (claim.at_least, claim.at_most) if math.isfinite(end)]
    return sum(ends) / len(ends)


def _origin(found: Sample | Estimate) -> dict[str, str]:
    return {name: getattr(found, name) for name in ("evidence", "of", "n_of", "campaign", "digest")}
