"""A claim of the shipped ledger judged on made-up or altered data."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import xarray as xr

from analysis.claims import ledger
from analysis.claims.evaluate import evaluate
from analysis.claims.judge import Judgement
from analysis.experiments import Studies

shipped = cache(ledger.load)


def studies_of(datasets: Mapping[str, xr.Dataset], **made) -> Studies:
    """The studies of these campaigns alone; those already `made` are taken as they are."""
    studies = Studies(datasets.get)
    for name, study in made.items():
        setattr(studies, name, study)
    return studies


def judged(claim_id: str, studies: Studies, evidence: str = "emulated") -> Judgement:
    """The judgement of one claim on one kind of evidence."""
    claims = shipped()
    (claim,) = (claim for claim in claims.claims if claim.id == claim_id)
    (entry,) = evaluate(replace(claims, claims=(claim,)), studies)
    (found,) = (judgement for judgement in entry.judgements if judgement.evidence == evidence)
    return found


def as_evidence(dataset: xr.Dataset, kind: str) -> xr.Dataset:
    """The dataset as if it were of another kind of evidence."""
    return dataset.assign_coords(evidence=xr.full_like(dataset.evidence, kind, dtype="<U9"))


def scaled(dataset: xr.Dataset, name: str, factor: float, **where) -> xr.Dataset:
    """The dataset with a reading times a factor in the trials of these levels."""
    chosen = xr.ones_like(dataset.trial, dtype=bool)
    for factor_name, level in where.items():
        chosen = chosen & (dataset[factor_name] == level)
    assert chosen.any()
    return dataset.assign({name: dataset[name] * xr.where(chosen, factor, 1.0)})
