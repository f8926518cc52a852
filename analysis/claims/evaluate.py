"""Every claim judged on every kind of evidence that there is.

A sample over blocks and an estimate with intervals of its own are judged by the same rule. Runs of a simulation have no
scatter to generalise from: all have to lie inside the range, or outside. Printed numbers have no statistical verdict: a
number alone is `printed`, one that a reading of others agrees with `consistent`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from analysis.claims import hpl, tcp, tokens
from analysis.claims.found import NOT_TESTABLE, SIMULATED, Found, Judgement, Sample
from analysis.claims.ledger import EVIDENCE, Claim, Ledger
from analysis.claims.readings import readings
from analysis.experiments import Studies
from analysis.statistics.judgement import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    judge_range,
    kind_of,
)

PUBLISHED = "published"
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
        found, own = _found(claim, studies), printed.get(claim.aggregate or claim.id, {})
        judgements = [
            judge_printed(claim, own) if kind == PUBLISHED else judge(claim, kind, found.get(kind))
            for kind in kinds
        ]
        entries.append(Entry(claim, tuple(judgements)))
    return tuple(entries)


def _found(claim: Claim, studies: Studies) -> dict[str, Found]:
    """What the studies have of a claim's quantity, by kind of evidence."""
    found: dict[str, Found] = {}
    for experiment, quantity in QUANTITIES.get(claim.id, ()):
        study = getattr(studies, experiment)
        one = None if study is None else quantity(study)
        if one is not None:
            found.setdefault(one.evidence, one)
    return found


def judge(claim: Claim, kind: str, found: Found | None) -> Judgement:
    """Judge a claim by what the campaigns of a kind of evidence have of it; what the ledger rules out is not tested.

    Raises FalloffError when a ratio is not above 0.
    """
    if kind in claim.not_testable or found is None:
        reason = claim.not_testable.get(kind, NO_CAMPAIGN)
        return Judgement(kind, NOT_TESTABLE, reason=reason)
    if isinstance(found, Judgement):
        ends = found.interval_90, found.interval_95
        verdict = found.verdict or kind_of(*ends, claim.at_least, claim.at_most)
        return replace(found, verdict=verdict)
    if kind == SIMULATED:
        return _of_runs(claim, found)
    judged = judge_range(found.values, claim.at_least, claim.at_most, claim.scale == "ratio")
    return Judgement(
        kind,
        judged.kind,
        judged.estimate,
        judged.interval_90,
        judged.interval_95,
        kind="t",
        n=judged.n,
        n_of=found.n_of,
        of=found.of,
        reason=judged.reason,
    )


def _of_runs(claim: Claim, found: Sample) -> Judgement:
    values, named = found.values[np.isfinite(found.values)], {"of": found.of, "n_of": found.n_of}
    if not len(values):
        return Judgement(SIMULATED, UNDECIDED, **named, reason="no run has a value")
    inside = (claim.at_least <= values) & (values <= claim.at_most)
    verdict = SUPPORTED if inside.all() else UNDECIDED if inside.any() else CONTRADICTED
    open_ = f"{inside.sum()} of {len(values)} runs lie in the range"
    return Judgement(
        SIMULATED,
        verdict,
        float(np.median(values)),
        interval_95=(float(values.min()), float(values.max())),
        kind="range",
        n=len(values),
        reason=open_ if verdict == UNDECIDED else "",
        **named,
    )


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
