"""What a campaign has of a claim's quantity, of one kind of evidence."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.experiments import Studies

SIMULATED = "simulated"


@dataclass(frozen=True)
class Sample:
    """A quantity in every block of a campaign, or in every run of a simulation.

    `values`, shape (n,), are in the claim's unit, not their logarithms; NaN is left out. `of` says in a few words what
    they are, `n_of` what they are counted in.
    """

    evidence: str
    campaign: str
    digest: str
    values: np.ndarray
    of: str
    n_of: str = "block"


@dataclass(frozen=True)
class Estimate:
    """A quantity whose intervals are not Student's t over blocks; `kind` names them. Judged by the same rule."""

    evidence: str
    campaign: str
    digest: str
    estimate: float
    interval_90: tuple[float, float]
    interval_95: tuple[float, float]
    kind: str
    n: int
    of: str
    n_of: str = "block"


@dataclass(frozen=True)
class Untestable:
    """That this evidence cannot tell, and why, in words that end a sentence."""

    evidence: str
    reason: str


Found = Sample | Estimate | Untestable
Quantity = Callable[[Studies], Iterable[Found]]


def sample(dataset: xr.Dataset, values, of: str, n_of: str = "block") -> Sample:
    """The sample of `values`, shape (n,), that come from this dataset."""
    return Sample(*origin(dataset), np.ravel(np.asarray(values, float)), of, n_of)


def untestable(dataset: xr.Dataset, reason: str) -> Untestable:
    """That the evidence of this dataset cannot tell."""
    return Untestable(origin(dataset)[0], reason)


def origin(dataset: xr.Dataset) -> tuple[str, str, str]:
    """The kind of evidence, campaign and digest of a dataset; raises ValueError where it mixes kinds of evidence."""
    (kind,) = set(np.ravel(dataset.evidence.values).tolist())
    return kind, dataset.attrs["campaign"], dataset.attrs["campaign_hash"]
