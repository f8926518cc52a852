"""Judge one claim on one kind of evidence.

An estimate that has only an interval is judged by that. Simulated runs
have no scatter to generalise from: all must lie inside the range, or all outside. Printed numbers
have no statistical verdict: a number alone is `printed`, and one that agrees with a reading of
other numbers is `consistent`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analysis.descriptions.ledger import Claim
from analysis.statements.statement import SIMULATED, Statement
from analysis.statistics.judgement import (
    CONTRADICTED,
    REFUSED,
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


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim's verdict on one kind of evidence, and what it rests on; unknown is NaN or "".

    The estimate is in the claim's unit, and `interval` is the one that decided; `kind` names it.
    `of` names the quantity taken; `n` counts `n_of`, which ran in so many `sessions` (None: not
    known). `reading` names the readings that agree with the printed number, or else the nearest;
    the estimate is the nearest one's.
    """

    evidence: str
    answer: str = ""
    estimate: float = math.nan
    interval: Interval = UNKNOWN
    kind: str = ""
    n: int = 0
    n_of: str = ""
    sessions: int | None = None
    of: str = ""
    reason: str = ""
    reading: str = ""


def judge(claim: Claim, kind: str, quantity: Statement | None) -> ClaimVerdict:
    """Judge a claim on one kind of evidence by the quantity that a notebook stated. What the ledger
    rules out is not tested, nor what was not run (None).

    Raises FalloffError if a ratio is not above 0.
    """
    if kind in claim.not_testable or quantity is None:
        return ClaimVerdict(kind, NOT_TESTABLE, reason=claim.not_testable.get(kind, NO_CAMPAIGN))
    if quantity.answer == REFUSED:
        return ClaimVerdict(kind, NOT_TESTABLE, reason=quantity.reason)
    ends, about = (claim.at_least, claim.at_most), {"n": quantity.n, "n_of": quantity.n_of}
    about |= {"of": quantity.subject, "sessions": quantity.sessions}
    if not quantity.values and quantity.interval:  # the interval is all that is known of it
        verdict = kind_of(quantity.interval, quantity.interval, *ends)
        about |= {"kind": quantity.interval_kind, "interval": quantity.interval}
        return ClaimVerdict(kind, verdict, quantity.estimate, **about)
    values = np.array(quantity.values)
    if kind == SIMULATED:
        return _of_runs(values, *ends, **about)
    judged = judge_range(values, *ends, claim.scale == "ratio")
    about |= {"reason": judged.reason}
    return ClaimVerdict(kind, judged.kind, judged.estimate, *judged.decisive, **about)


def _of_runs(values: np.ndarray, at_least: float, at_most: float, **about) -> ClaimVerdict:
    if not len(values):
        return ClaimVerdict(SIMULATED, UNDECIDED, reason="no run has a value", **about)
    inside, reason = (at_least <= values) & (values <= at_most), ""
    if inside.all() or not inside.any():
        verdict = SUPPORTED if inside.all() else CONTRADICTED
    else:
        verdict, reason = UNDECIDED, f"{inside.sum()} of {len(values)} runs lie in the range"
    estimate, ends = float(np.median(values)), (float(values.min()), float(values.max()))
    return ClaimVerdict(SIMULATED, verdict, estimate, ends, "range", reason=reason, **about)


def judge_printed(claim: Claim, readings: Mapping[str, float]) -> ClaimVerdict:
    """Compare every reading with the printed number, or with the range if no number is printed or
    it is not rounded.

    A reading agrees with the printed number if it is the same within half of `rounding`.
    """
    readings = {name: value for name, value in readings.items() if math.isfinite(value)}
    is_printed = math.isfinite(claim.printed)
    if not readings and not is_printed:
        return ClaimVerdict(PUBLISHED, NOT_TESTABLE, reason=NO_NUMBER)
    if not readings:
        how = "follows from the source's numbers" if claim.printed_how else "a bare number"
        named = {"reason": f"{how}: nothing else to check it by", "reading": claim.printed_how}
        return ClaimVerdict(PUBLISHED, PRINTED, claim.printed, **named)
    low, high = claim.at_least, claim.at_most
    if is_printed and math.isfinite(claim.rounding):
        # Slightly more than half, because 0.5 x 0.001 and 0.1085 - 0.108 differ in floating point.
        slack = 0.5 * claim.rounding * (1 + 1e-9) + 1e-12 * abs(claim.printed)
        low, high = claim.printed - slack, claim.printed + slack
    agreeing = [name for name, value in readings.items() if low <= value <= high]
    ends = [claim.printed] if is_printed else [end for end in (low, high) if math.isfinite(end)]
    nearest = min(agreeing or readings, key=lambda name: abs(readings[name] - np.mean(ends)))
    return ClaimVerdict(
        PUBLISHED,
        CONSISTENT if agreeing else INCONSISTENT,
        readings[nearest],
        n=len(readings),
        n_of="reading",
        reading=" or ".join(agreeing) or nearest,
        reason="" if agreeing else "no reading of the printed numbers gives it",
    )
