"""Many fits of one model at once: what resampling needs, without a solver's overhead for each fit."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analysis.models import Model

STEP = np.cbrt(np.finfo(float).eps)  # of a central difference: its two errors are of the same size
LEAST_EFFECT = 1e-3  # a parameter is varied at least as if it made up this part of the curve
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-9, 1e9
ITERATIONS = 200
# A step ends a fit when it moves the curve by less than these parts of the residuals' and of y's norm.
OF_RESIDUALS, OF_DATA = 1e-8, 1e-13


@dataclass(frozen=True)
class Refits:
    """Least-squares solutions, one for each row of the data.

    `estimates` has shape (fits, parameters), in the order of the model's parameters, with NaN where the
    fit did not converge; `sse`, the sum of squared residuals, and `converged` have shape (fits,).
    """

    estimates: np.ndarray
    sse: np.ndarray
    converged: np.ndarray


def refit(model: Model, x, y, start: Mapping[str, float] | None = None) -> Refits:
    """Fit `model` to every row of y, shape (fits, points), over the same x, shape (points,) or (..., points).

    `start` replaces the model's guess for the parameters that it names. Levenberg and Marquardt's method
    (Marquardt, J. SIAM 11, 1963, with his scaling by the diagonal of J'J), in which a step that leaves the
    bounds ends on them, and a parameter on a bound that the step would cross stays there.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    known = np.isfinite(y).all(axis=1)
    y = np.where(known[:, None], y, 0.0)
    low, high = np.array([model.bounds[name] for name in model.parameters], float).T
    with np.errstate(all="ignore"):
        guess = {**model.guess(x, y), **(start or {})}
        columns = [np.broadcast_to(guess[name], len(y)) for name in model.parameters]
        estimates = np.clip(np.stack(columns, axis=1).astype(float), low, high)
        least = _least_sizes(model, x, estimates)
        sse = _sse(model, x, y, estimates)
        damping = np.full(len(y), FIRST_DAMPING)
        converged = np.zeros(len(y), bool)
        going = np.flatnonzero(known & np.isfinite(sse))
        for _ in range(ITERATIONS):
            if not len(going):
                break
            before, data = estimates[going], y[going]
            slopes = _slopes(model, x, before, least[going])
            residuals = data - _curves(model, x, before)
            step, moved = _step(slopes, residuals, before <= low, before >= high, damping[going])
            after = np.clip(before + step, low, high)
            sse_after = _sse(model, x, data, after)
            size = np.linalg.norm(data, axis=1)
            small = moved <= OF_RESIDUALS * np.sqrt(sse[going]) + OF_DATA * size
            # Strong damping makes a step small anywhere. The last step is taken unasked: the sum of squares
            # has no digits left to judge it by.
            last = small & (damping[going] <= FIRST_DAMPING)
            better = (sse_after < sse[going]) | (last & np.isfinite(sse_after))
            done = last | (damping[going] > MOST_DAMPING)
            estimates[going] = np.where(better[:, None], after, before)
            sse[going] = np.where(better, sse_after, sse[going])
            damping[going] = np.maximum(damping[going] * np.where(better, 0.1, 10), LEAST_DAMPING)
            converged[going[done]] = True
            going = going[~done]
    estimates[~converged] = np.nan
    return Refits(estimates, np.where(converged, sse, np.nan), converged)


def jacobian(model: Model, x, estimates) -> np.ndarray:
    """Derivatives of the curve by each parameter at `estimates`, shape (fits, parameters).

    Central differences, one-sided where a bound is in the way; shape (parameters, fits, points), with 0
    where the curve cannot be computed nearby.
    """
    with np.errstate(all="ignore"):
        return _slopes(model, x, estimates, _least_sizes(model, x, estimates))


def _least_sizes(model, x, estimates):
    """By parameter the size whose effect is a part LEAST_EFFECT of the curve, shape (fits, parameters)."""
    effects = np.linalg.norm(_slopes(model, x, estimates, 1.0), axis=2)
    sizes = LEAST_EFFECT * np.linalg.norm(_curves(model, x, estimates), axis=1) / effects
    return np.where(np.isfinite(sizes) & (sizes > 0), sizes, 1.0).T


def _slopes(model, x, estimates, least):
    sizes = STEP * np.maximum(np.abs(estimates), least)
    columns = []
    for index, name in enumerate(model.parameters):
        upper, lower = estimates.copy(), estimates.copy()
        upper[:, index] += sizes[:, index]
        lower[:, index] -= sizes[:, index]
        for end in upper, lower:
            np.clip(end[:, index], *model.bounds[name], out=end[:, index])
        rise = _curves(model, x, upper) - _curves(model, x, lower)
        columns.append(rise / (upper - lower)[:, index, None])
    return np.nan_to_num(np.array(columns), nan=0.0, posinf=0.0, neginf=0.0)


def _curves(model, x, estimates):
    return model.function(x, *estimates.T[:, :, None])


def _sse(model, x, y, estimates):
    return np.sum((y - _curves(model, x, estimates)) ** 2, axis=1)


def _step(slopes, residuals, at_low, at_high, damping):
    """Damped steps, shape (fits, parameters), and how far they move the curves, shape (fits,)."""
    norms = np.linalg.norm(slopes, axis=2)
    norms[norms == 0] = 1
    slopes = slopes / norms[:, :, None]
    descent = np.einsum("kfp,fp->fk", slopes, residuals)
    held = (at_low & (descent <= 0)) | (at_high & (descent >= 0))
    slopes[held.T] = 0
    descent[held] = 0
    normal = np.einsum("kfp,lfp->fkl", slopes, slopes)
    damped = normal + damping[:, None, None] * np.eye(len(slopes))
    step = np.linalg.solve(damped, descent[:, :, None])[:, :, 0]
    moved = np.sqrt(np.einsum("fk,fkl,fl->f", step, normal, step))
    return step / norms.T, moved
