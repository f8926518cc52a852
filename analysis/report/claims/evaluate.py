"""Judge every claim on every available kind of evidence.

An estimate that has only an interval is judged by that. Simulated runs
have no scatter to generalise from: all must lie inside the range, or all outside. Printed numbers
have no statistical verdict: a number alone is `printed`, and one that agrees with a reading of
other numbers is `consistent`.
"""

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import xarray as xr

from analysis import paths
from analysis.descriptions.ledger import EVIDENCE, Claim, Ledger
from analysis.report.claims.readings import readings
from analysis.statements import notebooks
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
    "supported: the 90 % interval lies inside the range; contradicted: the 95 % interval lies "
    "wholly outside; else undecided. Simulated runs: all inside, all outside, else undecided. "
    "Printed numbers have no statistical verdict. Each claim is judged by itself, without a "
    "correction for how many there are."
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


@dataclass(frozen=True)
class Entry:
    """A claim with one verdict for each available kind of evidence, in the order of EVIDENCE."""

    claim: Claim
    verdicts: tuple[ClaimVerdict, ...]


def evaluate(ledger: Ledger, stated: Mapping[str, Iterable[Statement]]) -> tuple[Entry, ...]:
    """Judge every claim by what the notebooks stated, by the notebook's name. If a kind of evidence
    cannot decide it, the verdict says why.

    If two statements of a claim have the same kind of evidence, as a user's may, the first is
    judged.
    """
    kinds = {statement.evidence for statement in chain.from_iterable(stated.values())}
    printed, entries = readings(), []
    for claim in ledger.claims:
        by_kind: dict[str, Statement] = {}
        for place in claim.judged_by:
            notebook, _, name = place.partition("/")
            for statement in stated.get(notebook, ()):
                if statement.name == name:
                    by_kind.setdefault(statement.evidence, statement)
        on_runs = (
            judge(claim, kind, by_kind.get(kind))
            for kind in EVIDENCE
            if kind in kinds and kind != PUBLISHED
        )
        of_source = judge_printed(claim, printed.get(claim.aggregate or claim.id, {}))
        entries.append(Entry(claim, (of_source, *on_runs)))
    return tuple(entries)


def stated_on(ledger: Ledger, data: Mapping[str, xr.Dataset]) -> dict[str, tuple[Statement, ...]]:
    """What the notebooks that judge these claims state on datasets by campaign: they are run in
    this process. One whose data are missing states nothing."""
    names = {name.partition("/")[0] for claim in ledger.claims for name in claim.judged_by}
    stated = {}
    for name in sorted(names):
        with suppress(*notebooks.INSUFFICIENT):
            stated[name] = notebooks.run(paths.NOTEBOOKS / f"{name}.ipynb", data).stated
    return stated


def judge(claim: Claim, kind: str, stated: Statement | None) -> ClaimVerdict:
    """Judge a claim on one kind of evidence by a notebook's statement. What the ledger rules out is
    not tested, nor what was not run (None).

    Raises FalloffError if a ratio is not above 0.
    """
    if kind in claim.not_testable or stated is None:
        return ClaimVerdict(kind, NOT_TESTABLE, reason=claim.not_testable.get(kind, NO_CAMPAIGN))
    if stated.answer == REFUSED:
        return ClaimVerdict(kind, NOT_TESTABLE, reason=stated.reason)
    low, high, values = claim.at_least, claim.at_most, np.array(stated.values)
    verdict = ClaimVerdict(
        kind,
        UNDECIDED,
        math.nan if stated.estimate is None else stated.estimate,
        stated.interval or UNKNOWN,
        stated.interval_kind,
        stated.n,
        stated.n_of,
        stated.sessions,
        stated.subject,
    )
    if not len(values) and stated.interval:  # the interval is all that is known of it
        return replace(verdict, answer=kind_of(stated.interval, stated.interval, low, high))
    if kind != SIMULATED:
        judged = judge_range(values, low, high, claim.scale == "ratio")
        verdict = replace(verdict, answer=judged.kind, reason=judged.reason)
        ends, of_ends = judged.decisive
        return replace(verdict, estimate=judged.estimate, interval=ends, kind=of_ends)
    inside = (low <= values) & (values <= high)
    if not len(values):
        return replace(verdict, reason="no run has a value")
    if inside.any() and not inside.all():
        reason = f"{inside.sum()} of {len(values)} runs lie in the range"
        return replace(verdict, kind="range", reason=reason)
    return replace(verdict, kind="range", answer=SUPPORTED if inside.all() else CONTRADICTED)


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
        reason = f"{how}: nothing else to check it by"
        return ClaimVerdict(
            PUBLISHED, PRINTED, claim.printed, reason=reason, reading=claim.printed_how
        )
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
