"""Every claim judged on every kind of evidence that there is, as records and as a dataset.

A sample over blocks and an estimate with intervals of its own are judged by the same rule. Runs of a simulation have no
scatter to generalise from: all have to lie inside the range, or outside. Printed numbers have no statistical verdict: a
number alone is `printed`, one that a reading of others agrees with `consistent`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from analysis.claims import hpl, tcp, tokens
from analysis.claims.ledger import EVIDENCE, Claim, Ledger
from analysis.claims.readings import readings
from analysis.claims.sample import SIMULATED, Estimate, Found, Sample, Untestable
from analysis.experiments import Studies
from analysis.statistics.judgement import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    UNKNOWN,
    Interval,
    judge_range,
    kind_of,
)

PUBLISHED = "published"
NOT_TESTABLE = "not testable"
PRINTED, CONSISTENT, INCONSISTENT = "printed", "consistent", "inconsistent"
NO_NUMBER = "the source prints no number of it"
NO_CAMPAIGN = "no campaign has what it is about"
RULE = (
    "supported: the 90 % interval lies inside the range; contradicted: the 95 % interval lies wholly outside; else "
    "undecided. Simulated runs: all inside, all outside, else undecided. Printed numbers have no statistical "
    "verdict. Each claim is judged by itself, without a correction for how many there are."
)
QUANTITIES = {**tcp.QUANTITIES, **tokens.QUANTITIES, **hpl.QUANTITIES}


@dataclass(frozen=True)
class Judgement:
    """A claim's verdict on one kind of evidence, and what it rests on; unknown is NaN or "".

    The estimate is in the claim's unit; `kind` names the intervals. Runs of a simulation have none: their `interval_95`
    is the range of them all, and `kind` is `range`. `of` says what was taken, `n` of how many `n_of`. `reading` names
    the readings that agree with the printed number, or else the nearest; the estimate is the nearest's.
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


@dataclass(frozen=True)
class Entry:
    """A claim with its judgements, one for each kind of evidence that there is, in the order of EVIDENCE."""

    claim: Claim
    judgements: tuple[Judgement, ...]


def evaluate(ledger: Ledger, studies: Studies) -> tuple[Entry, ...]:
    """Judge every claim; where a kind of evidence that the studies hold cannot tell, its judgement says why."""
    data = studies.datasets.values()
    present = {PUBLISHED, *(kind for one in data for kind in np.unique(one.evidence.values))}
    kinds = [kind for kind in EVIDENCE if kind in present]
    printed = readings(studies)
    entries = []
    for claim in ledger.claims:
        quantity = QUANTITIES.get(claim.id)
        found: dict[str, Found] = {}
        for one in quantity(studies) if quantity else ():
            found.setdefault(one.evidence, one)
        own = printed.get(claim.aggregate or claim.id, {})
        judgements = [
            judge_printed(claim, own) if kind == PUBLISHED else judge(claim, kind, found.get(kind))
            for kind in kinds
        ]
        entries.append(Entry(claim, tuple(judgements)))
    return tuple(entries)


def judge(claim: Claim, kind: str, found: Found | None) -> Judgement:
    """Judge a claim by what the campaigns of a kind of evidence have of it; what the ledger rules out is not tested.

    Raises FalloffError when a ratio is not above 0.
    """
    if kind in claim.not_testable:
        return Judgement(kind, NOT_TESTABLE, reason=claim.not_testable[kind])
    if found is None:
        return Judgement(kind, NOT_TESTABLE, reason=NO_CAMPAIGN)
    if isinstance(found, Untestable):
        return Judgement(kind, NOT_TESTABLE, reason=found.reason)
    if isinstance(found, Estimate):
        verdict = kind_of(found.interval_90, found.interval_95, claim.at_least, claim.at_most)
        return Judgement(
            verdict=verdict, **{one.name: getattr(found, one.name) for one in fields(found)}
        )
    origin = {
        name: getattr(found, name) for name in ("evidence", "of", "n_of", "campaign", "digest")
    }
    if kind == SIMULATED:
        return Judgement(**origin, **_of_runs(claim, found))
    judged = judge_range(found.values, claim.at_least, claim.at_most, claim.scale == "ratio")
    return Judgement(
        **origin,
        verdict=judged.kind,
        estimate=judged.estimate,
        interval_90=judged.interval_90,
        interval_95=judged.interval_95,
        kind="t",
        n=judged.n,
        reason=judged.reason,
    )


def _of_runs(claim: Claim, found: Sample) -> dict:
    values = found.values[np.isfinite(found.values)]
    if not len(values):
        return {"verdict": UNDECIDED, "reason": "no run has a value"}
    inside = (claim.at_least <= values) & (values <= claim.at_most)
    verdict = SUPPORTED if inside.all() else UNDECIDED if inside.any() else CONTRADICTED
    open_ = f"{inside.sum()} of {len(values)} runs lie in the range"
    return {
        "verdict": verdict,
        "estimate": float(np.median(values)),
        "interval_95": (float(values.min()), float(values.max())),
        "kind": "range",
        "n": len(values),
        "reason": open_ if verdict == UNDECIDED else "",
    }


def judge_printed(claim: Claim, found: Mapping[str, float]) -> Judgement:
    """Every reading against the printed number, or against the range where none is printed or it is no rounding.

    A reading agrees with the printed number when it is the same within half of `rounding`.
    """
    known = {name: value for name, value in found.items() if math.isfinite(value)}
    is_printed = math.isfinite(claim.printed)
    if not known and is_printed:
        how = "follows from the source's numbers" if claim.printed_how else "a bare number"
        reason = f"{how}: nothing else to check it by"
        return Judgement(
            PUBLISHED, PRINTED, claim.printed, reason=reason, reading=claim.printed_how
        )
    if not known:
        return Judgement(PUBLISHED, NOT_TESTABLE, reason=NO_NUMBER)
    if is_printed and math.isfinite(claim.rounding):
        # A hair more than half, since 0.5 x 0.001 and 0.1085 - 0.108 differ in floating point.
        slack = 0.5 * claim.rounding * (1 + 1e-9) + 1e-12 * abs(claim.printed)
        low, high = claim.printed - slack, claim.printed + slack
    else:
        low, high = claim.at_least, claim.at_most
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
