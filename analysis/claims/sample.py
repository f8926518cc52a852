"""What is found of a claim's quantity on one kind of evidence."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

PUBLISHED, SIMULATED = "published", "simulated"


@dataclass(frozen=True)
class Sample:
    """A quantity in every block of a campaign, or in every run of a simulation.

    `values`, shape (n,), are in the claim's unit, not their logarithms; NaN is left out. `of` says in a few words what
    they are, `n_of` what they are counted in.
    """

    evidence: str
    values: np.ndarray
    of: str
    campaign: str
    digest: str
    n_of: str = "block"


@dataclass(frozen=True)
class Estimate:
    """A quantity whose intervals are not Student's t over blocks; `kind` names them. Judged by the same rule."""

    evidence: str
    estimate: float
    interval_90: tuple[float, float]
    interval_95: tuple[float, float]
    kind: str
    n: int
    of: str
    campaign: str
    digest: str
    n_of: str = "block"


@dataclass(frozen=True)
class Untestable:
    """That this evidence cannot tell, and why, in words that end a sentence."""

    evidence: str
    reason: str


@dataclass(frozen=True)
class Printed:
    """What follows from the source's printed numbers alone: every reading by what it is.

    Where the wording hides a choice of statistic, each choice is a reading. A reading agrees with the printed number
    when it is the same within half of `rounding`, the unit of the printed number's last digit.
    """

    readings: Mapping[str, float]
    rounding: float | None = None
    evidence: str = PUBLISHED


Found = Sample | Estimate | Untestable | Printed


def first_of_each(found: Iterable[Found]) -> list[Found]:
    """The first finding of each kind of evidence: a user's own data may make two studies the same kind."""
    by_kind: dict[str, Found] = {}
    for one in found:
        by_kind.setdefault(one.evidence, one)
    return list(by_kind.values())


def sample(dataset: xr.Dataset, values, of: str, n_of: str = "block") -> Sample:
    """The sample of `values`, shape (n,), that come from this dataset: its evidence, campaign and digest.

    A DataArray may have the dims of the unit of repetition only.
    """
    return Sample(values=np.ravel(np.asarray(values, float)), of=of, n_of=n_of, **origin(dataset))


def origin(dataset: xr.Dataset) -> dict[str, str]:
    """The `evidence`, `campaign` and `digest` of a dataset that `store.assemble` made, or that was derived from it."""
    kinds = sorted(set(np.ravel(dataset.evidence.values).tolist()))
    if len(kinds) != 1:
        raise ValueError(f"{dataset.attrs['campaign']} mixes evidence: {', '.join(kinds)}")
    return {
        "evidence": kinds[0],
        "campaign": dataset.attrs["campaign"],
        "digest": dataset.attrs["campaign_hash"],
    }
