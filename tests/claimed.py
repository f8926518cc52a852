"""A claim of the shipped ledger judged on made-up or altered data, without the studies that it does not need."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import xarray as xr

from analysis.claims import ledger
from analysis.claims.evaluate import evaluate
from analysis.claims.judge import Judgement
from analysis.studies.together import Studies

shipped = cache(ledger.load)


def studies_of(datasets: Mapping[str, xr.Dataset], **members) -> Studies:
    """Studies that are all missing but `members`, of these datasets."""
    return Studies(datasets=datasets, **{"scaling": None, **members})


def judged(claim_id: str, studies: Studies, evidence: str = "emulated") -> Judgement:
    """The judgement of one claim on one kind of evidence."""
    claims = shipped()
    (claim,) = (it for it in claims.claims if it.id == claim_id)
    (entry,) = evaluate(replace(claims, claims=(claim,)), studies)
    (found,) = (it for it in entry.judgements if it.evidence == evidence)
    return found


def as_evidence(dataset: xr.Dataset, kind: str) -> xr.Dataset:
    """The dataset as if it were of another kind of evidence."""
    return dataset.assign_coords(evidence=xr.full_like(dataset.evidence, kind, dtype="<U9"))


def scaled(dataset: xr.Dataset, name: str, factor: float, **where) -> xr.Dataset:
    """The dataset with a reading times a factor in the trials of these levels."""
    chosen = xr.ones_like(dataset.trial, dtype=bool)
    for factor_name, level in where.items():
        chosen = chosen & (dataset[factor_name] == level)
    return dataset.assign({name: dataset[name] * xr.where(chosen, factor, 1.0)})
