"""Models beside each other: support by the data, prediction of the largest configuration, intervals."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

import numpy as np

from analysis.fitting.batch import refit
from analysis.fitting.fit import Fit, fit
from analysis.fitting.resample import Intervals, block_intervals
from analysis.statistics.intervals import average
from analysis.models import Model
from runners.record import FalloffError


@dataclass(frozen=True)
class HeldOut:
    """How well the smaller configurations predict the largest.

    `error` is the geometric mean over the blocks of predicted / measured, less one, `interval` its 95 % t
    interval (NaN from one block); `blocks` counts the blocks that it rests on.
    """

    error: float
    interval: tuple[float, float]
    blocks: int


@dataclass(frozen=True)
class Comparison:
    """One model beside others on the same data; what it was refused is None or empty, with the reason.

    `pooled` is the fit to all points, with its AICc. `intervals` (95 %, by parameter) rest on whole
    blocks, as `interval_kind` says. `refused` is not empty where the data cannot carry the model at all.
    """

    model: Model
    pooled: Fit | None = None
    intervals: Intervals = field(default_factory=dict)
    interval_kind: str = ""
    held_out: HeldOut | None = None
    held_out_refused: str = ""
    refused: str = ""

    @property
    def aicc(self) -> float | None:
        """The pooled fit's AICc; the reason why there is none is in `refused` or the fit's `aicc_refused`."""
        return self.pooled.aicc if self.pooled else None


def compare(models: Iterable[Model], x, table) -> tuple[Comparison, ...]:
    """Compare models of `table`, shape (block, points), whose last column is the largest configuration.

    x has shape (points,), or (quantities, points) for models of several quantities. The best AICc comes
    first; models without one follow, and those that the data cannot carry are last. Missing values are
    NaN: the pooled fit uses every known point, the rest only blocks without a missing one.
    """
    x, table = np.asarray(x, float), np.asarray(table, float)
    return tuple(sorted((_comparison(model, x, table) for model in models), key=_rank))


def _rank(comparison):
    return comparison.pooled is None, comparison.aicc is None, comparison.aicc or 0.0


def _comparison(model, x, table):
    known = np.isfinite(table)
    whole = table[known.all(axis=1)]
    try:
        pooled = fit(model, np.tile(x, len(table))[..., known.ravel()], table[known], profile=False)
    except FalloffError as refusal:
        return Comparison(model, refused=str(refusal))
    if not len(whole):
        reason = "none: no block is complete"
        return Comparison(model, pooled, interval_kind=reason, held_out_refused=reason)
    held_out, reason = _held_out(model, x, whole)
    return Comparison(model, pooled, *block_intervals(model, x, whole), held_out, reason)


def _held_out(model, x, table):
    """The prediction of the last column from the others and an empty text, or None and the reason."""
    smaller, largest = x[..., :-1], x[..., -1:]
    try:
        fit(model, smaller, table[:, :-1].mean(axis=0), profile=False)
    except FalloffError as refusal:
        return None, str(refusal)
    estimates = refit(model, smaller, table[:, :-1]).estimates
    with np.errstate(all="ignore"):
        factors = model.function(largest, *estimates.T[:, :, None])[:, 0] / table[:, -1]
    factors = factors[np.isfinite(factors)]
    if not len(factors):
        return None, "The smaller configurations give no finite error of the largest."
    impossible = int((factors <= 0).sum())
    if impossible:
        return None, f"The smaller configurations predict nothing above 0 of the largest in {impossible} blocks."
    mean, low, high = (float(factor) - 1 for factor in average(factors, "ratio"))
    return HeldOut(mean, (low, high), len(factors)), ""


def as_json(comparison: Comparison) -> dict:
    """A comparison as plain JSON data; what it was refused is None, with the reason beside it."""
    held_out, pooled = comparison.held_out, comparison.pooled
    return {
        "model": comparison.model.name,
        "refused": comparison.refused,
        "pooled": None if pooled is None else pooled.as_json(),
        "intervals_95": {name: list(ends) for name, ends in comparison.intervals.items()},
        "interval_kind": comparison.interval_kind,
        "held_out": None if held_out is None else asdict(held_out),
        "held_out_refused": comparison.held_out_refused,
    }
