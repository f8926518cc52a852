"""Intervals of a model's parameters from whole blocks, whose points depend on each other."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy import stats

from analysis.fitting.batch import jacobian, refit
from analysis.models import Model

RESAMPLES = 1999  # of so many, the 2.5 % quantiles are order statistics: the 50th from either end
SEED = 20070601
FEWEST_BLOCKS = 4  # of three, every ninth resample repeats a single block and has no spread
MOST_LOST = 0.01  # part of the resamples that may not converge before the bootstrap is given up

Intervals = Mapping[str, tuple[float, float]]


def block_intervals(
    model: Model, x, table, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[Intervals, str]:
    """95 % intervals of the parameters of the blocks' mean curve, and their kind in words.

    `table` has shape (block, points) without a missing value; x is as the model takes it. Bootstrap-t:
    blocks are drawn whole, across all x, and each resample's estimate is studentised with the standard
    error that is robust to dependence within blocks (B. Efron and R. J. Tibshirani, An Introduction to the
    Bootstrap, 1993, section 12.5). With fewer than FEWEST_BLOCKS, or where too many resamples cannot be
    fitted: Student's t with that standard error. With one block, and where a parameter has no effect: NaN.

    Estimates may cross the model's bounds here, because resampling fails for an estimate on a bound (D. W. K.
    Andrews, Econometrica 68, 2000, p. 399-405), and the intervals end at the bound. A parameter whose
    interval lies wholly beyond a bound is held on it, for the intervals of the others too.
    """
    table = np.asarray(table, float)
    blocks = len(table)
    if blocks < 2:
        return dict.fromkeys(model.parameters, (np.nan, np.nan)), "none: a single block"
    resamples = resamples if blocks >= FEWEST_BLOCKS else 0
    drawn = np.random.default_rng(seed).multinomial(blocks, np.full(blocks, 1 / blocks), resamples)
    counts = np.vstack([np.ones(blocks), drawn])
    free = dict.fromkeys(model.parameters, (-np.inf, np.inf))
    while True:
        ends, kind = _free_intervals(replace(model, bounds=free), x, table, counts)
        beyond = {
            name: float(np.clip(low, *model.bounds[name]))
            for name, (low, high) in ends.items()
            if high < model.bounds[name][0] or low > model.bounds[name][1]
        }
        if not beyond:
            break
        free.update((name, (bound, bound)) for name, bound in beyond.items())
    return {name: tuple(np.clip(pair, *model.bounds[name]).tolist()) for name, pair in ends.items()}, kind


def _free_intervals(model, x, table, counts):
    """The intervals as estimated, and their kind; the first row of `counts` is the data themselves."""
    blocks = len(table)
    estimates = refit(model, x, counts @ table / blocks).estimates
    with np.errstate(all="ignore"):
        errors = _standard_errors(model, x, table, counts, estimates)
        studentised = (estimates[1:] - estimates[0]) / errors[1:]
    converged = np.isfinite(estimates[1:]).all(axis=1)
    if len(converged) and converged.mean() >= 1 - MOST_LOST:
        ranked = np.sort(np.where(np.isnan(studentised), 0, studentised)[converged], axis=0)
        tail = int(0.025 * (len(ranked) + 1))
        low, high = ranked[tail - 1], ranked[-tail]
        kind = f"bootstrap-t, {len(ranked)} resamples of {blocks} blocks"
    else:
        high = np.full(len(model.parameters), stats.t.ppf(0.975, blocks - 1))
        low = -high
        kind = f"t interval over {blocks} blocks"
    ends = np.array([estimates[0] - high * errors[0], estimates[0] - low * errors[0]])
    return dict(zip(model.parameters, ends.T.tolist())), kind


def _standard_errors(model, x, table, counts, estimates):
    """The sandwich over blocks for curves fitted to the means of resamples, shape (fits, parameters).

    `counts`, shape (fits, blocks), says how often each block was drawn. A block's score is the shift of
    the estimate by the block's deviation from the mean, to first order. NaN where a parameter that may
    move does not move the curve.
    """
    slopes = jacobian(model, x, estimates)
    norms = np.linalg.norm(slopes, axis=2)
    held = np.array([low == high for low, high in model.bounds.values()])
    scale = np.where(norms > 0, norms, np.where(held[:, None], 1, np.nan))
    slopes = slopes / np.where(norms > 0, norms, 1)[:, :, None]
    normal = np.einsum("kfp,lfp->fkl", slopes, slopes)
    shifts = np.einsum("fkl,lfp->fkp", np.linalg.pinv(normal, hermitian=True), slopes)
    blocks = len(table)
    scores = shifts @ table.T - np.einsum("fkp,fp->fk", shifts, counts @ table / blocks)[:, :, None]
    variance = np.einsum("fb,fkb->fk", counts, scores**2) / (blocks * (blocks - 1))
    return np.sqrt(variance) / scale.T
