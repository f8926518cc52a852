"""The least-squares solution of one fit: checked, to the last digits, with its standard errors."""

import math
from collections.abc import Mapping

import lmfit
import numpy as np

from runners.record import FalloffError

from analysis.fitting import breakpoint, knee
from analysis.fitting.batch import jacobian
from analysis.models import Model, bandwidth_delay, segmented

EXACT = 1e-9  # residuals below this part of the largest |y| are rounding, not noise
SAME = 1e-9  # sums of squares that differ by less than this part are the same
LARGEST = 1e150  # |y|, whose squares are added
TOLERANCE = 1e-15  # of the solver: it stops when rounding stops it
INSEPARABLE = 1e9  # a condition number of the derivatives that only rounding keeps finite
REFINEMENTS = 2  # Gauss-Newton steps after the solver


def minimise(
    model: Model, x, y, start: Mapping[str, float] | None = None
) -> tuple[lmfit.Minimizer, lmfit.minimizer.MinimizerResult]:
    """The least-squares solution in lmfit's own records; raises FalloffError as `fit` does."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    _require_points(model, x, y)
    parameters = lmfit.Parameters()
    with np.errstate(all="ignore"):
        guess = {name: value[0] for name, value in model.guess(x, y[None]).items()} | dict(start or {})
        for name in model.parameters:
            low, high = model.bounds[name]
            parameters.add(name, value=guess[name], min=low, max=high)
        # the solver itself shrinks a step to where the curve is not finite
        minimizer = lmfit.Minimizer(
            lambda p: y - model.function(x, **p.valuesdict()), parameters, nan_policy="propagate"
        )
        try:
            result = minimizer.least_squares(
                x_scale="jac",
                jac=lambda p: -_slopes(model, x, p.valuesdict()),
                ftol=TOLERANCE,
                xtol=TOLERANCE,
                gtol=TOLERANCE,
            )
        except ValueError as error:  # scipy's word for a curve that is not finite where it begins
            raise FalloffError(
                f"The {model.title} model cannot be computed at some of these points; is every x above 0?"
            ) from error
    if not result.success:
        raise FalloffError(
            f"The fit of the {model.title} model did not converge; does y look like the curve at all?"
        )
    return minimizer, result


def _require_points(model, x, y):
    missing = int(np.sum(~(np.isfinite(np.atleast_2d(x)).all(axis=0) & np.isfinite(y))))
    if missing:
        raise FalloffError(
            f"{missing} of {len(y)} points are not finite numbers; leave them out before the fit."
        )
    if np.max(np.abs(y), initial=0.0) > LARGEST:
        raise FalloffError("The squares of y are beyond floating-point numbers; give y in a larger unit.")
    needed, distinct = len(model.parameters), distinct_columns(x)
    if distinct < needed:
        raise FalloffError(
            f"The {model.title} model needs at least {needed} distinct x, one for each parameter, and "
            f"the data have {distinct}; measure more, or fit a model with fewer parameters."
        )
    if model is segmented.MODEL:
        breakpoint.require(x, y)
    if model is bandwidth_delay.MODEL:
        knee.require(x, y)


def settle(model: Model, x, y, result) -> tuple[dict[str, float], tuple[str, ...]]:
    """The estimates with their last digits, and the names of those that are on a bound.

    The solver stays inside the bounds, so that a parameter is on one when moving it there loses
    nothing. The others take Gauss-Newton steps: where parameters are strongly correlated the solver
    stops when the sum of squares has no digits left, the estimates still have some.
    """
    estimates = {name: float(value) for name, value in result.params.valuesdict().items()}
    with np.errstate(all="ignore"):
        sse = _sse(model, x, y, estimates)
        lossless = sse * (1 + SAME) + (EXACT * np.max(np.abs(y))) ** 2
        at_bounds = {}
        for name in estimates:
            bound = min(model.bounds[name], key=lambda end: abs(end - estimates[name]))
            if _sse(model, x, y, estimates | at_bounds | {name: bound}) <= lossless:
                at_bounds[name] = float(bound)
        estimates |= at_bounds
        free = [name for name in estimates if name not in at_bounds]
        for _ in range(REFINEMENTS):
            slopes = _slopes(model, x, estimates)[:, [name in free for name in estimates]]
            scale = np.linalg.norm(slopes, axis=0)
            if not scale.all():
                break
            residuals = y - model.function(x, **estimates)
            step = np.linalg.lstsq(slopes / scale, residuals, rcond=None)[0] / scale
            refined = estimates | {name: estimates[name] + float(part) for name, part in zip(free, step)}
            if _sse(model, x, y, refined) <= sse * (1 + SAME):
                estimates = refined
    return estimates, tuple(at_bounds)


def _slopes(model, x, estimates):
    """Derivatives of the curve by each parameter, shape (points, parameters), with steps fit for its size."""
    return jacobian(model, x, np.array([list(estimates.values())]))[:, 0].T


def standard_errors(model: Model, x, estimates, sigma: float) -> dict[str, float]:
    """By parameter: sigma times the root of the diagonal of (J'J)^-1, from the triangle of J's QR.

    NaN where a parameter has no effect at all (the exponent of a curve that is 0). Raises FalloffError
    where parameters have the same effect, so that they can run away together.
    """
    slopes = _slopes(model, x, estimates)
    scale = np.linalg.norm(slopes, axis=0)
    if not scale.all():
        return dict.fromkeys(estimates, math.nan)
    triangle = np.linalg.qr(slopes / scale, mode="r")
    if np.linalg.cond(triangle) > INSEPARABLE:
        raise FalloffError(
            f"The data do not tell the parameters of the {model.title} model apart; measure at other x, or "
            "fit a model with fewer parameters."
        )
    return dict(zip(estimates, (sigma * np.linalg.norm(np.linalg.inv(triangle), axis=1) / scale).tolist()))


def _sse(model, x, y, estimates):
    return float(np.sum((y - model.function(x, **estimates)) ** 2))


def distinct_columns(x) -> int:
    """How many different x there are, or columns of an x of shape (quantities, points)."""
    return np.unique(x, axis=-1).shape[-1]
