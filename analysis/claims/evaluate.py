"""Every claim judged on every kind of evidence that there is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.claims import hpl, tcp, tokens
from analysis.claims.judging import PUBLISHED, Judgement, judge, judge_printed
from analysis.claims.ledger import EVIDENCE, Claim, Ledger
from analysis.claims.readings import readings
from analysis.experiments import Studies

# Of a claim: experiments, and what makes of each one's study what it has of the quantity (None where it lacks the points).
# Where two of them are of one kind of evidence, as a user's may be, the first is judged.
QUANTITIES: Mapping[str, Sequence[tuple[str, Callable[[Any], Judgement | None]]]] = {
    **tcp.QUANTITIES,
    **tokens.QUANTITIES,
    **hpl.QUANTITIES,
}


@dataclass(frozen=True)
class Entry:
    """A claim with its judgements, one for each kind of evidence that there is, in the order of EVIDENCE."""

    claim: Claim
    judgements: tuple[Judgement, ...]


def evaluate(ledger: Ledger, studies: Studies) -> tuple[Entry, ...]:
    """Judge every claim; where a kind of evidence that the studies hold cannot tell, its judgement says why."""
    data = studies.datasets.values()
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
