"""Judge every claim on every available kind of evidence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from analysis.claims import hpl, tcp, tokens
from analysis.claims.judging import PUBLISHED, Judgement, judge, judge_printed
from analysis.claims.ledger import EVIDENCE, Claim, Ledger
from analysis.claims.readings import readings
from analysis.experiments import Studies

# For each claim: experiments, and a function that takes the quantity from each one's study (None if it lacks the points).
# If two of them have the same kind of evidence, as a user's may, the first is judged.
QUANTITIES: Mapping[str, Sequence[tuple[str, Callable[[Any], Judgement | None]]]] = {
    **tcp.QUANTITIES,
    **tokens.QUANTITIES,
    **hpl.QUANTITIES,
}


@dataclass(frozen=True)
class Entry:
    """A claim with one judgement for each available kind of evidence, in the order of EVIDENCE."""

    claim: Claim
    judgements: tuple[Judgement, ...]


def evaluate(ledger: Ledger, studies: Studies) -> tuple[Entry, ...]:
    """Judge every claim. If a kind of evidence in the studies cannot decide it, the judgement says
    why."""
    data = [one for one in studies.datasets.values() if isinstance(one, xr.Dataset)]
    present = {kind for one in data for kind in np.unique(one.evidence.values)}
    printed, entries = readings(studies), []
    for claim in ledger.claims:
        judgements = [judge_printed(claim, printed.get(claim.aggregate or claim.id, {}))]
        found: dict[str, Judgement] = {}
        for experiment, quantity in QUANTITIES.get(claim.id, ()):
            study = getattr(studies, experiment)
            if study is not None and (one := quantity(study)) is not None:
                found.setdefault(one.evidence, one)
        judgements += [
            judge(claim, kind, found.get(kind))
            for kind in EVIDENCE
            if kind in present and kind != PUBLISHED
        ]
        entries.append(Entry(claim, tuple(judgements)))
    return tuple(entries)
