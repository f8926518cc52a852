"""Fit a model to points by lmfit; estimates always come with intervals."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import lmfit
import numpy as np
from numpy.typing import ArrayLike
from pydantic_core import to_json
from scipy import stats

from analysis.laws.models import Model, Values, bandwidth_delay, segmented
from runners.records.record import FalloffError

EXACT = 1e-9  # residuals below this share of the largest |y| are rounding, not noise
IS_EXACT = "the model is exact, so the likelihood has no bound"  # why an exact model has no AICc
SAME = 1e-9  # sums of squares with a smaller relative difference are the same
TOLERANCE = 1e-15  # of the solver: only rounding stops it
STEP = np.cbrt(np.finfo(float).eps)  # of a central difference: balances its two errors
LEAST_EFFECT = 1e-3  # a parameter is varied at least as if it made up this share of the curve
# A condition number of the scaled derivatives. If two parameters run away together, it is 6e8 to
# 8e12, as far as rounding lets the solver go. NIST's hardest problem has 1e4.
INSEPARABLE = 1e6
CLOSE = 1e-6  # x and turns with a smaller relative difference are the same
ROUNDING = 1e-24  # a sum of squares below this share of that of y is rounding, not misfit
TRIED = 400  # knees tried between the smallest and the largest window
# The name of the model's turn, and how many distinct x an estimate needs: two on either side;
# between two lines one more, to tell the sides apart.
TURNS = {segmented.MODEL.name: ("breakpoint", 5), bandwidth_delay.MODEL.name: ("knee", 4)}


@dataclass(frozen=True)
class Fit:
    """A model fitted by ordinary least squares.

    `estimates`, `standard_errors` and the 95 % `intervals` are keyed by parameter, in its own unit.
    `at_bounds` names the parameters that ended on a bound: the data ask for it or for a value
    beyond it. `interval_kind` says how the intervals were made. `residuals` (data minus model) and
    their standard deviation `sigma` are in the unit of y. `aicc` is None if it would be
    meaningless; `aicc_refused` says why. Unknown values are NaN.
    """

    model: Model
    estimates: Mapping[str, float]
    at_bounds: tuple[str, ...]
    standard_errors: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    interval_kind: str
    residuals: tuple[float, ...]
    sigma: float
    aicc: float | None
    aicc_refused: str
    n: int
    distinct_x: int

    def as_json(self) -> dict:
        """Plain JSON data; unknown values are None."""
        values = {field.name: getattr(self, field.name) for field in fields(self)[1:]}
        values["intervals_95"] = values.pop("intervals")
        about = {name: getattr(self.model, name) for name in ("equation", "source", "units")}
        whole = {"model": self.model.name, **about, **values}
        return json.loads(to_json(whole, inf_nan_mode="null"))


def fit(model: Model, x: ArrayLike, y: ArrayLike) -> Fit:
    """Fit `model` to x of shape (points,), or (quantities, points), and y of shape (points,).

    The 95 % intervals are Student's t, from standard errors; a bound ends an interval. Raises
    FalloffError if the points are not finite, are too few for the model (for `segmented` and
    `bandwidth_delay` with the bracket of its turn), do not determine its parameters separately, or
    the model cannot be computed there.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    distinct = np.unique(x, axis=-1).shape[-1]
    _require_points(model, x, y, distinct)
    estimates, at_bounds, minimum = _minimise(model, x, y)
    residuals = y - model.function(x, **estimates)
    freedom = len(y) - len(estimates)
    sigma = math.sqrt(np.sum(residuals**2) / freedom) if freedom else math.nan
    errors = _standard_errors(model, minimum, sigma)
    exact = np.max(np.abs(residuals)) <= EXACT * np.max(np.abs(y))
    quantile = float(stats.t.ppf(0.975, freedom)) if freedom else math.nan
    half = {name: quantile * error for name, error in errors.items()}
    kind = "t interval" if freedom else "none: as many parameters as points"
    if freedom and exact:
        half, kind = dict.fromkeys(estimates, 0.0), "none: the model is exact"
    intervals = {
        name: tuple(np.clip([value - half[name], value + half[name]], *model.bounds[name]).tolist())
        for name, value in estimates.items()
    }
    aicc, refused = _aicc(residuals, len(estimates), distinct, exact)
    return Fit(
        model,
        estimates,
        at_bounds,
        errors,
        intervals,
        kind,
        tuple(residuals.tolist()),
        sigma,
        aicc,
        refused,
        len(y),
        distinct,
    )


def fit_known(model: Model, x: Values, table: Values) -> Fit:
    """`fit` to every known (finite) point of `table`, shape (blocks, points)."""
    is_known = np.isfinite(table)
    return fit(model, np.tile(x, len(table))[..., is_known.ravel()], table[is_known])


def fit_rows(model: Model, x: ArrayLike, table: Values) -> Values:
    """The estimates from every row of `table`, shape (rows, parameters); raises FalloffError as
    `fit` does for the mean row."""
    x = np.asarray(x, float)
    fit(model, x, table.mean(axis=0))  # refuses a model that these x do not allow
    return np.array([[*_minimise(model, x, row)[0].values()] for row in table])


def combined(
    model: Model, x: ArrayLike, y: ArrayLike, weights: ArrayLike
) -> tuple[float, float, float]:
    """The sum of the parameters times `weights`, shape (parameters,), with its 95 % t interval.

    The data may tell this sum but not each parameter; where they do not tell the sum either, its
    interval is very long. x and y are as in `fit`, which says what is raised.
    """
    x, y, weights = (np.asarray(each, float) for each in (x, y, weights))
    _require_points(model, x, y, np.unique(x, axis=-1).shape[-1])
    estimates, _, minimum = _minimise(model, x, y)
    value, freedom = float(weights @ [*estimates.values()]), len(y) - len(weights)
    if not freedom:
        return value, math.nan, math.nan
    sizes = np.linalg.norm(minimum.jac, axis=0)
    sizes[sizes == 0] = 1.0
    _, effects, ways = np.linalg.svd(minimum.jac / sizes, full_matrices=False)
    effects = np.maximum(effects, effects[0] / INSEPARABLE)  # a smaller effect is rounding
    spread = np.linalg.norm(ways @ (weights / sizes) / effects) / np.max(np.abs(y))
    sigma = math.sqrt(_sse(model, x, y, estimates) / freedom)
    half = float(stats.t.ppf(0.975, freedom) * sigma * spread)
    return value, value - half, value + half


def _require_points(model: Model, x: Values, y: Values, distinct: int) -> None:
    finite = np.isfinite(np.atleast_2d(x)).all(axis=0) & np.isfinite(y)
    if not finite.all():
        missing = np.sum(~finite)
        raise FalloffError(
            f"{missing} of {len(y)} points are not finite numbers; leave them out before the fit."
        )
    if all(low >= 0 for low, _ in model.bounds.values()) and not (y > 0).any():
        raise FalloffError(f"The {model.title} model needs a y above 0, and no point has one.")
    needed = len(model.parameters)
    if distinct < needed:
        raise FalloffError(
            f"The {model.title} model needs at least {needed} distinct x, one for each parameter, "
            f"and the data have {distinct}; measure more, or fit a model with fewer parameters."
        )
    if model.name not in TURNS:
        return
    # With a single x on one side of a turn, that side could be anything.
    turn, needed = TURNS[model.name]
    if np.any(x <= 0):
        raise FalloffError(f"The {model.title} model needs x above 0; leave the others out.")
    places = np.unique(x)
    low, high = bracket(model, x, y)
    if len(places) >= needed and low >= places[1] and high <= places[-2]:
        return
    place = f"between {low:g} and {high:g}"
    if low == places[0] and high == places[-1]:
        place += ", or there is none"
    elif low == high:
        place = f"at {low:g} or {'below' if low == places[0] else 'above'}"
    raise FalloffError(
        f"These x cannot carry a {turn}; it lies {place}. "
        f"An estimate needs {needed} distinct x, "
        "2 of them on either side of all that the data allow."
    )


def _minimise(model: Model, x: Values, y: Values) -> tuple[dict[str, float], tuple[str, ...], Any]:
    """The estimates, the parameters on a bound, and lmfit's result; its `jac` has the residuals'
    derivatives, shape (points, parameters).
    """
    estimates, at_bounds, result = _minimised(model, x.shape, x.tobytes(), y.tobytes())
    return dict(estimates), at_bounds, result


@lru_cache(maxsize=10_000)  # a notebook, the claims and the explorer fit the same points
def _minimised(
    model: Model, shape: tuple[int, ...], of_x: bytes, of_y: bytes
) -> tuple[dict[str, float], tuple[str, ...], Any]:
    x, y = np.frombuffer(of_x).reshape(shape), np.frombuffer(of_y)
    unit = np.max(np.abs(y)) or 1.0  # the solver's threshold is absolute, so y is scaled
    parameters = lmfit.Parameters()
    # the solver itself shrinks a step to where the curve is not finite
    minimizer = lmfit.Minimizer(
        lambda p: (y - model.function(x, **p.valuesdict())) / unit,
        parameters,
        nan_policy="propagate",
    )
    stop = {"ftol": TOLERANCE, "xtol": TOLERANCE, "gtol": None}
    with np.errstate(all="ignore"):
        try:
            guess = model.guess(x, y)
            for name in model.parameters:
                low, high = model.bounds[name]
                parameters.add(name, value=guess[name], min=low, max=high)
            result = minimizer.least_squares(
                x_scale="jac", jac=lambda p: -_slopes(model, x, p.valuesdict()) / unit, **stop
            )
        except ValueError as error:  # scipy raises this if the curve is not finite at the start
            raise FalloffError(
                f"The {model.title} model cannot be computed at some of these points; "
                "is every x above 0?"
            ) from error
    if not result.success:
        raise FalloffError(
            f"The fit of the {model.title} model did not converge; "
            "does y look like the curve at all?"
        )
    return *_on_bounds(model, x, y, result.params.valuesdict()), result


def _slopes(model: Model, x: Values, values: Mapping[str, float]) -> Values:
    """Derivatives of the curve by each parameter, shape (points, parameters).

    These are central differences, one-sided at a bound, and 0 where the curve cannot be computed
    nearby.
    """

    def slope(name: str, size: float) -> Values:
        ends = np.clip(values[name] + STEP * size * np.array([-1, 1]), *model.bounds[name])
        low, high = ends.tolist()
        below, above = (model.function(x, **{**values, name: end}) for end in (low, high))
        rise = above - below
        return np.nan_to_num(rise / (high - low), nan=0.0, posinf=0.0, neginf=0.0)

    curve, columns = np.linalg.norm(model.function(x, **values)), []
    for name, value in values.items():
        tried = max(abs(value), 1.0)
        derivative = slope(name, tried)
        effect = np.linalg.norm(derivative)
        least = LEAST_EFFECT * curve / effect if effect > 0 else abs(value)
        size = max(abs(value), least if 0 < least < np.inf else 1.0)
        columns.append(derivative if size == tried else slope(name, float(size)))
    return np.stack(columns, axis=1)


def _on_bounds(
    model: Model, x: Values, y: Values, values: Mapping[str, float]
) -> tuple[dict[str, float], tuple[str, ...]]:
    """The estimates, and the names of the parameters on a bound.

    The solver stays inside the bounds, so a parameter counts as on a bound if moving it there loses
    nothing.
    """
    estimates = {name: float(value) for name, value in values.items()}
    at_bounds = []
    with np.errstate(all="ignore"):
        lossless = _sse(model, x, y, estimates) * (1 + SAME) + (EXACT * np.max(np.abs(y))) ** 2
        for name, value in estimates.items():
            bound = float(min(model.bounds[name], key=lambda end: abs(end - value)))
            is_lossless = _sse(model, x, y, estimates | {name: bound}) <= lossless
            if is_lossless and math.isfinite(bound):
                estimates[name] = bound
                at_bounds.append(name)
    return estimates, tuple(at_bounds)


def _sse(model: Model, x: Values, y: Values, estimates: Mapping[str, float]) -> float:
    return float(np.sum((y - model.function(x, **estimates)) ** 2))


def _standard_errors(model: Model, minimum: Any, sigma: float) -> dict[str, float]:
    """lmfit's standard errors by parameter; NaN if a parameter has no effect at all (the exponent
    of a curve that is 0).

    Raises FalloffError if parameters have the same effect, so that they can run away together.
    """
    sizes = np.linalg.norm(minimum.jac, axis=0)
    if sizes.all() and np.linalg.cond(minimum.jac / sizes) > INSEPARABLE:
        raise FalloffError(
            f"The data do not tell the parameters of the {model.title} model apart; "
            "measure at other x, or fit a model with fewer parameters."
        )
    errors = np.array([minimum.params[name].stderr for name in model.parameters], float)
    is_known = math.isfinite(sigma) and sizes.all() and not np.isnan(errors).any()
    return dict(zip(model.parameters, np.where(is_known, errors, np.nan).tolist()))


def _aicc(
    residuals: Values, parameters: int, distinct: int, exact: bool
) -> tuple[float | None, str]:
    """Akaike's criterion for least squares with few points (Hurvich and Tsai 1989), or None and the
    reason; sigma counts as a parameter."""
    n, k = len(residuals), parameters + 1
    if distinct <= k:
        return None, f"{distinct} distinct x do not exceed {parameters} parameters + 1"
    if n <= k + 1:
        return None, f"{n} points leave the small-sample correction without a degree of freedom"
    if exact:
        return None, IS_EXACT
    criterion = n * np.log(np.mean(residuals**2)) + 2 * k + 2 * k * (k + 1) / (n - k - 1)
    return float(criterion), ""


def bracket(model: Model, x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """The smallest and the largest turn of `segmented` or `bandwidth_delay` that the data allow, at
    measured x.

    x and y have shape (points,), x is above 0. A turn is allowed if its sum of squares exceeds the
    smallest one by no more than the F criterion of a 95 % profile interval (D. M. Bates and D. G.
    Watts, Nonlinear Regression Analysis, Wiley 1988, chapter 6). The first and the last x stand for
    every turn at or beyond them.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    places = np.unique(x)
    if len(places) < 3:
        return float(places[0]), float(places[-1])
    if model is segmented.MODEL:
        turns = segmented.breakpoints(x)
        sse = segmented.lines(x, y, turns)[2]
    else:
        knee = np.clip(bandwidth_delay.knee(**bandwidth_delay.guess(x, y)), places[0], places[-1])
        turns = np.sort(np.append(np.geomspace(places[0], places[-1], TRIED), knee))
        sse = bandwidth_delay.slopes_at(x, y, turns)[1]
    freedom, largest = len(y) - len(model.parameters), np.inf
    if freedom > 0:
        criterion = 1 + stats.f.ppf(0.95, 1, freedom) / freedom
        largest = max(sse.min() * criterion, ROUNDING * np.sum(y**2))
    allowed = turns[sse <= largest]
    low = places[places <= allowed[0] * (1 + CLOSE)][-1]
    high = places[places >= allowed[-1] * (1 - CLOSE)][0]
    # Beyond the second-last x only one x is left on the falling line, so every breakpoint there
    # fits as well as that x.
    if model is segmented.MODEL and allowed[-1] >= places[-2] * (1 - CLOSE):
        high = places[-1]
    return float(low), float(high)
