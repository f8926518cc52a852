"""Fit a model to the curve of every block, because the block is the unit of repetition, and decide
whether a fitted curve may be drawn through its data: a curve that misses them would mislead."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.laws.fit import fit_rows
from analysis.laws.models import Model, Values
from analysis.statistics.intervals import Kind, average
from runners.records.record import FalloffError

LEVEL = 0.01  # of the lack-of-fit test
CLOSE = 0.02  # of a level's mean: this is close enough, however little the runs scatter


@dataclass(frozen=True)
class BlockFit:
    """A model fitted to every block: `by_block` has shape (blocks, parameters)."""

    model: Model
    by_block: np.ndarray

    @property
    def blocks(self) -> int:
        """The number of blocks behind the fit."""
        return len(self.by_block)

    def band(
        self, x: ArrayLike, kind: Kind, of: Callable = lambda x, y: y
    ) -> tuple[Values, Values, Values]:
        """Mean curve and pointwise 95 % t interval over the blocks: (mean, low, high), each of
        shape (x,).

        `of(x, y)` transforms the model's curves before they are averaged with the `kind` of mean.
        """
        x = np.asarray(x, float)
        return average(of(x, self.model.function(x, *self.by_block.T[:, :, None])), kind)

    def parameter(self, name: str, kind: Kind) -> tuple[float, float, float]:
        """A parameter's mean of this kind over the blocks, and its 95 % t interval, NaN from one
        block: (mean, low, high).
        """
        mean, low, high = average(self.by_block[:, self.model.parameters.index(name)], kind)
        return float(mean), float(low), float(high)


def fit_blocks(model: Model, x: ArrayLike, table: ArrayLike) -> BlockFit:
    """Fit `model` to every row of `table`, shape (block, x); a row with a missing (NaN) point is
    left out.

    Raises FalloffError if no row is complete, and in the cases of `fit_rows`.
    """
    table = np.asarray(table, float)
    whole = table[np.isfinite(table).all(axis=1)]
    if not len(whole):
        raise FalloffError(
            f"The {model.title} model has nothing to fit: none of {len(table)} blocks is complete."
        )
    return BlockFit(model, fit_rows(model, x, whole))


@dataclass(frozen=True)
class Attempt:
    """A model fitted to every block if the data allow it, else None with the reason in `refused`.

    `follows` says whether the curve follows the data, so that it may be drawn and quoted.
    """

    fitted: BlockFit | None
    refused: str = ""
    follows: bool = False

    @property
    def reason(self) -> str:
        """Why nothing of the fit is quoted; empty if it is quoted."""
        return self.refused or ("" if self.follows else "the model misses its data")

    @property
    def blocks(self) -> int:
        """The number of blocks behind the fit."""
        return self.fitted.blocks if self.fitted else 0


def attempt(model: Model, x: Values, table: Values, of: Callable = lambda x, y: y) -> Attempt:
    """Fit as `fit_blocks` does, and compare the arithmetic mean curve of `of(x, y)` with the means
    of the data."""
    try:
        fitted = fit_blocks(model, x, table)
    except FalloffError as error:
        return Attempt(None, refused=str(error))
    curve = fitted.band(x, "cost", of)[0]
    return Attempt(fitted, follows=follows(of(x, table), curve, len(model.parameters)))


def follows(values: Values, fitted: Values, parameters: int) -> bool:
    """Whether a curve follows its data: it is close to the mean of every level, or no lack of fit
    can be shown.

    `values` are over (block, level), NaN where there is no run, and `fitted` over (level,), in the
    same unit. The test is the F test of lack of fit against the scatter of repeated runs, with the
    given number of fitted `parameters`. Without repeats only closeness counts. Source: Draper and
    Smith, Applied Regression Analysis (1998), section 2.1.
    """
    farthest, p = misfit(values, fitted, parameters)
    return farthest <= CLOSE or p > LEVEL


def misfit(values: Values, fitted: Values, parameters: int) -> tuple[float, float]:
    """The curve's largest relative distance from a level's mean [1], and the p-value of the test
    for lack of fit, as in `follows`.

    The distance is infinite for a curve that is not finite. The p-value is NaN if there is nothing
    to test with.
    """
    values, fitted = np.asarray(values, float), np.asarray(fitted, float)
    there = np.isfinite(values).any(axis=0)
    values, fitted = values[:, there], fitted[there]
    if not np.isfinite(fitted).all() or not there.any():
        return np.inf, np.nan
    means, counts = np.nanmean(values, axis=0), np.isfinite(values).sum(axis=0)
    off, size = np.abs(fitted - means), np.abs(means)
    farthest = float(np.divide(off, size, out=np.where(off > 0, np.inf, 0.0), where=size > 0).max())
    free, of_scatter = len(means) - parameters, int(counts.sum()) - len(means)
    scatter = np.nansum((values - means) ** 2) / of_scatter if of_scatter > 0 else 0.0
    if free < 1 or not scatter > 0:
        return farthest, np.nan
    lack = float(counts @ (fitted - means) ** 2) / free
    return farthest, float(stats.f.sf(lack / scatter, free, of_scatter))
