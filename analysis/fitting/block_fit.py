"""Fit a model to the curve of every block: the block is the unit of repetition."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from runners.record import FalloffError

from analysis.fitting.batch import refit
from analysis.fitting.fit import fit
from analysis.statistics.intervals import Kind, average, t_interval
from analysis.models import Model


@dataclass(frozen=True)
class BlockFit:
    """A model fitted to every block; means and t intervals over the blocks.

    `by_block` has shape (blocks, parameters); `left_out` counts blocks with a missing point.
    With a single block the standard errors and intervals are NaN.
    """

    model: Model
    by_block: np.ndarray
    estimates: Mapping[str, float]
    standard_errors: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    blocks: int
    left_out: int
    interval_kind: str = "t interval over blocks"

    def band(self, x, kind: Kind, of: Callable = lambda x, y: y) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean curve and pointwise 95 % t interval over the blocks: (mean, low, high), each of shape (x,).

        `of(x, y)` turns the model's curves into what is averaged, which is of the `kind` of mean.
        """
        x = np.asarray(x, float)
        return average(of(x, self.model.function(x, *self.by_block.T[:, :, None])), kind)

    def parameter(self, name: str, kind: Kind) -> tuple[float, float, float]:
        """A parameter's mean of this kind over the blocks, and its 95 % t interval: (mean, low, high)."""
        mean, low, high = average(self.by_block[:, self.model.parameters.index(name)], kind)
        return float(mean), float(low), float(high)


def fit_blocks(model: Model, x, table) -> BlockFit:
    """Fit `model` to every row of `table`, shape (block, x): the block is the unit of repetition.

    A row with a missing (NaN) point is left out, so that all curves rest on the same x.
    Raises FalloffError when no row is whole, and as `fit` does.
    """
    table = np.asarray(table, float)
    whole = np.isfinite(table).all(axis=1)
    if not whole.any():
        raise FalloffError(
            f"The {model.title} model has nothing to fit: none of {len(table)} blocks is complete."
        )
    fit(model, x, table[whole].mean(axis=0), profile=False)  # refuses what the x cannot carry
    fits = refit(model, x, table[whole])
    if not fits.converged.all():
        raise FalloffError(
            f"The fit of the {model.title} model did not converge in {np.sum(~fits.converged)} of "
            f"{whole.sum()} blocks; do they look like the curve at all?"
        )
    by_block = fits.estimates
    mean, error, low, high = t_interval(by_block)
    return BlockFit(
        model=model,
        by_block=by_block,
        estimates=dict(zip(model.parameters, mean.tolist())),
        standard_errors=dict(zip(model.parameters, error.tolist())),
        intervals=dict(zip(model.parameters, zip(low.tolist(), high.tolist()))),
        blocks=int(whole.sum()),
        left_out=int((~whole).sum()),
    )
