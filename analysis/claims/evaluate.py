"""Every claim judged on every kind of evidence that there is, as records and as a dataset."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.claims import quantities
from analysis.claims.judge import NOT_TESTABLE, Judgement, bare, judge
from analysis.claims.ledger import EVIDENCE, Claim, Ledger
from analysis.claims.sample import PUBLISHED, Found, Untestable
from analysis.experiments import Studies
from runners.record import FalloffError

NOTHING_OF_IT = "no campaign has what it is about"
RULE = (
    "supported: the 90 % interval lies inside the range; contradicted: the 95 % interval lies wholly outside; else "
    "undecided. Simulated runs: all inside, all outside, else undecided. Printed numbers have no statistical "
    "verdict. Each claim is judged by itself, without a correction for how many there are."
)
_TEXTS = ("verdict", "reason", "reading", "of", "n_of", "kind", "campaign", "digest")
_OF_CLAIM = ("source", "where", "statement", "unit", "scale", "why", "printed_how")
_NUMBERS_OF_CLAIM = ("printed", "at_least", "at_most")


@dataclass(frozen=True)
class Entry:
    """A claim with its judgements, one for each kind of evidence that there is, in the order of EVIDENCE."""

    claim: Claim
    judgements: tuple[Judgement, ...]


def evaluate(ledger: Ledger, studies: Studies) -> tuple[Entry, ...]:
    """Judge every claim; where a kind of evidence that the studies hold cannot tell, its judgement says why."""
    kinds = evidence(studies)
    return tuple(Entry(claim, _judgements(claim, studies, kinds)) for claim in ledger.claims)


def evidence(studies: Studies) -> tuple[str, ...]:
    """The kinds of evidence that there are: what is published, and that of the studies' datasets."""
    there = {
        kind for dataset in studies.datasets.values() for kind in np.unique(dataset.evidence.values)
    }
    return tuple(kind for kind in EVIDENCE if kind == PUBLISHED or kind in there)


def dataset(entries: Sequence[Entry], ledger: Ledger) -> xr.Dataset:
    """The entries over dims (claim, evidence): verdicts, estimates and intervals in the claim's unit, and origins.

    `interval` names the intervals (t, or another kind; range: of all simulated runs). What is not known is "" or NaN;
    a bound that a claim has not is infinite. The attribute `confounds` is JSON: what else each is mixed with.
    """
    kinds = [judgement.evidence for judgement in entries[0].judgements] if entries else []
    claims = [entry.claim for entry in entries]
    judgements = [judgement for entry in entries for judgement in entry.judgements]

    def judged(values: list, dtype: type) -> tuple[tuple[str, str], np.ndarray]:
        return ("claim", "evidence"), np.array(values, dtype).reshape(len(claims), len(kinds))

    table = {name: judged([getattr(one, name) for one in judgements], object) for name in _TEXTS}
    table["interval"] = table.pop("kind")
    table["estimate"] = judged([one.estimate for one in judgements], float)
    table["n"] = judged([one.n for one in judgements], int)
    for end, name in enumerate(("low", "high")):
        table[f"{name}_90"] = judged([one.interval_90[end] for one in judgements], float)
        table[f"{name}_95"] = judged([one.interval_95[end] for one in judgements], float)
    for name in _OF_CLAIM:
        table[name] = ("claim", np.array([getattr(claim, name) for claim in claims], object))
    for name in _NUMBERS_OF_CLAIM:
        table[name] = ("claim", np.array([getattr(claim, name) for claim in claims], float))
    table["confounds"] = (
        "claim",
        np.array([" ".join(claim.confounds) for claim in claims], object),
    )
    meanings = {confound.id: confound.meaning for confound in ledger.confounds}
    names = [claim.id for claim in claims]
    title = "The sources' claims and what the evidence says to them"
    return xr.Dataset(
        table,
        {"claim": np.array(names, object), "evidence": np.array(kinds, object)},
        {"title": title, "rule": RULE, "confounds": json.dumps(meanings)},
    )


def _judgements(claim: Claim, studies: Studies, kinds: Sequence[str]) -> tuple[Judgement, ...]:
    quantity = quantities.find(claim.source, claim.quantity) if claim.quantity else None
    found = quantity(studies) if quantity else []
    by_kind = {one.evidence: one for one in found}
    if len(by_kind) < len(found):
        raise FalloffError(
            f"claim {claim.id}: {claim.quantity} gives several findings for one kind of evidence"
        )
    return tuple(_judged(claim, kind, by_kind.get(kind)) for kind in kinds)


def _judged(claim: Claim, kind: str, found: Found | None) -> Judgement:
    """What the ledger rules out is not tested, whatever was found."""
    if kind in claim.not_testable:
        return Judgement(kind, NOT_TESTABLE, reason=claim.not_testable[kind])
    if found is None:
        return bare(claim) if kind == PUBLISHED else judge(claim, Untestable(kind, NOTHING_OF_IT))
    try:
        return judge(claim, found)
    except FalloffError as error:
        raise FalloffError(f"claim {claim.id}: {error}") from None
