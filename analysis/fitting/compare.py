"""Models beside each other: support by the data, prediction of the largest configuration, intervals."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

import numpy as np

from analysis.fitting.batch import refit
from analysis.fitting.block_fit import fit_blocks
from analysis.fitting.fit import Fit, fit
from analysis.models import Model
from analysis.statistics.intervals import average
from runners.record import FalloffError

ROUNDING = 1e-6  # of an estimate or an interval's end, by which blocks without scatter may miss it


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

    `pooled` is the fit to all points, with its AICc. `intervals` (95 %, by parameter) are those of fits to every whole
    block, as `interval_kind` says. `refused` is not empty where the data cannot carry the model at all.
    """

    model: Model
    pooled: Fit | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    interval_kind: str = ""
    held_out: HeldOut | None = None
    held_out_refused: str = ""
    refused: str = ""

    @property
    def aicc(self) -> float | None:
        """The pooled fit's AICc; the reason why there is none is in `refused` or the fit's `aicc_refused`."""
        return self.pooled.aicc if self.pooled else None

    def as_json(self) -> dict:
        """Plain JSON data; what was refused is None, with the reason beside it."""
        return {
            "model": self.model.name,
            "refused": self.refused,
            "pooled": self.pooled and self.pooled.as_json(),
            "intervals_95": {name: list(ends) for name, ends in self.intervals.items()},
            "interval_kind": self.interval_kind,
            "held_out": self.held_out and asdict(self.held_out),
            "held_out_refused": self.held_out_refused,
        }


def compare(curves: Iterable[Model], x, table) -> tuple[Comparison, ...]:
    """Compare models of `table`, shape (block, points), whose last column is the largest configuration.

    x has shape (points,), or (quantities, points) for models of several quantities. The best AICc comes
    first; models without one follow, and those that the data cannot carry are last. Missing values are
    NaN: the pooled fit uses every known point, the rest only blocks without a missing one.
    """
    x, table = np.asarray(x, float), np.asarray(table, float)
    return tuple(sorted((_comparison(model, x, table) for model in curves), key=_rank))


def _rank(comparison):
    return comparison.pooled is None, comparison.aicc is None, comparison.aicc or 0.0


def _comparison(model, x, table):
    known = np.isfinite(table)
    whole = table[known.all(axis=1)]
    try:
        all_x = np.tile(x, len(table))[..., known.ravel()]
        pooled = fit(model, all_x, table[known])
    except FalloffError as refusal:
        return Comparison(model, refused=str(refusal))
    if not len(whole):
        reason = "none: no block is complete"
        return Comparison(model, pooled, interval_kind=reason, held_out_refused=reason)
    held_out, reason = _held_out(model, x, whole)
    return Comparison(model, pooled, *_intervals(pooled, x, whole), held_out, reason)


def _intervals(pooled, x, table):
    """The parameters' t intervals over the blocks, and their kind; none where a block cannot be fitted.

    None either where one does not hold the estimate from all points: the blocks then do not tell that parameter, and
    their mean is of runaway fits.
    """
    model = pooled.model
    try:
        blocks = fit_blocks(model, x, table)
    except FalloffError as refusal:
        return {}, f"none: {refusal}"
    if blocks.blocks < 2:
        return {}, "none: a single block"
    intervals = {
        name: tuple(np.clip(ends, *model.bounds[name]).tolist())
        for name, ends in blocks.intervals.items()
    }
    for name, (low, high) in intervals.items():
        estimate = pooled.estimates[name]
        slack = ROUNDING * max(abs(low), abs(high), abs(estimate))
        if not low - slack <= estimate <= high + slack:
            outside = (
                f"{name} is {estimate:.3g} over all points, {low:.3g} to {high:.3g} over the blocks"
            )
            return {}, f"none: {outside}; the blocks do not tell it"
    return intervals, f"t interval over {blocks.blocks} blocks"


def _held_out(model, x, table):
    """The prediction of the last column from the others and an empty text, or None and the reason."""
    smaller, largest = x[..., :-1], x[..., -1:]
    try:
        fit(model, smaller, table[:, :-1].mean(axis=0))
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
        return (
            None,
            f"The smaller configurations predict nothing above 0 of the largest in {impossible} blocks.",
        )
    mean, low, high = (float(factor) - 1 for factor in average(factors, "ratio"))
    return HeldOut(mean, (low, high), len(factors)), ""
