"""Fit a model to points; estimates always come with intervals."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import lmfit
import numpy as np
from scipy import stats

from runners.record import FalloffError

from analysis.models import Model

EXACT = 1e-9  # residuals below this part of the largest |y| are rounding, not noise


@dataclass(frozen=True)
class Fit:
    """A model fitted by ordinary least squares.

    `estimates`, `standard_errors` and the 95 % `intervals` are keyed by parameter, in its own
    unit; `interval_kind` says how the intervals were made. `residuals` (data minus model) and
    their standard deviation `sigma` are in the unit of y. `aicc` is None where it would mean
    nothing, and `aicc_refused` says why. What cannot be known is NaN.
    """

    model: Model
    estimates: Mapping[str, float]
    standard_errors: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    interval_kind: str
    residuals: tuple[float, ...]
    sigma: float
    aicc: float | None
    aicc_refused: str
    n: int
    distinct_x: int

    def predict(self, x):
        """The fitted curve at x, shape of x."""
        return self.model.function(np.asarray(x, float), **self.estimates)

    def as_json(self) -> dict:
        """Plain JSON data; what cannot be known is None."""
        return {
            "model": self.model.name,
            "equation": self.model.equation,
            "source": self.model.source,
            "estimates": _plain(self.estimates),
            "standard_errors": _plain(self.standard_errors),
            "intervals_95": _plain(self.intervals),
            "interval_kind": self.interval_kind,
            "sigma": _plain(self.sigma),
            "aicc": self.aicc,
            "aicc_refused": self.aicc_refused,
            "n": self.n,
            "distinct_x": self.distinct_x,
            "residuals": _plain(self.residuals),
        }


def fit(model: Model, x, y) -> Fit:
    """Fit `model` to x and y, both of shape (points,).

    The 95 % intervals are profile likelihood where lmfit finds them, else t intervals. Raises
    FalloffError when the points are not finite, are too few or the model cannot be computed there.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    minimizer, result = minimise(model, x, y)
    estimates = {name: float(value) for name, value in result.params.valuesdict().items()}
    residuals = y - model.function(x, **estimates)
    freedom = len(y) - len(estimates)
    sigma = float(np.sqrt(np.sum(residuals**2) / freedom)) if freedom else math.nan
    exact = np.max(np.abs(residuals)) <= EXACT * np.max(np.abs(y))
    errors = {name: _standard_error(result.params[name]) if freedom else math.nan for name in estimates}
    if not freedom:
        intervals, kind = (
            {name: (math.nan, math.nan) for name in estimates},
            "none: as many parameters as points",
        )
    elif exact:
        intervals, kind = (
            {name: (value, value) for name, value in estimates.items()},
            "none: the model is exact",
        )
    elif profile := _profile_intervals(minimizer, result, model):
        intervals, kind = profile, "profile likelihood"
    else:
        intervals, kind = _t_intervals(estimates, errors, freedom, model), "t interval"
    distinct = len(np.unique(x))
    refused = _aicc_refusal(len(estimates), len(y), distinct, exact)
    return Fit(
        model=model,
        estimates=estimates,
        standard_errors=errors,
        intervals=intervals,
        interval_kind=kind,
        residuals=tuple(residuals.tolist()),
        sigma=sigma,
        aicc=None if refused else _aicc(residuals, len(estimates)),
        aicc_refused=refused,
        n=len(y),
        distinct_x=distinct,
    )


def minimise(model: Model, x, y) -> tuple[lmfit.Minimizer, lmfit.minimizer.MinimizerResult]:
    """The least-squares solution in lmfit's own records; raises FalloffError as `fit` does."""
    x, y = _checked(model, x, y)
    parameters = lmfit.Parameters()
    with np.errstate(all="ignore"):
        for name, start in model.guess(x, y).items():
            low, high = model.bounds[name]
            parameters.add(name, value=start, min=low, max=high)
        minimizer = lmfit.Minimizer(lambda p: y - model.function(x, **p.valuesdict()), parameters)
        try:
            result = minimizer.least_squares(x_scale="jac", jac="3-point", ftol=1e-15, xtol=1e-15, gtol=1e-15)
        except ValueError as error:  # lmfit's word for a curve that is not finite
            raise FalloffError(
                f"The {model.title} model cannot be computed at some of these points; is every x above 0?"
            ) from error
    if not result.success:
        raise FalloffError(
            f"The fit of the {model.title} model did not converge; does y look like the curve at all?"
        )
    return minimizer, result


def _checked(model, x, y):
    x, y = np.asarray(x, float), np.asarray(y, float)
    missing = int(np.sum(~(np.isfinite(x) & np.isfinite(y))))
    if missing:
        raise FalloffError(
            f"{missing} of {len(y)} points are not finite numbers; leave them out before the fit."
        )
    needed, distinct = len(model.parameters), len(np.unique(x))
    if distinct < needed:
        raise FalloffError(
            f"The {model.title} model needs at least {needed} distinct x, one for each parameter, and "
            f"the data have {distinct}; measure more, or fit a model with fewer parameters."
        )
    return x, y


def _standard_error(parameter):
    return math.nan if parameter.stderr is None else float(parameter.stderr)


def _profile_intervals(minimizer, result, model):
    """The profile's 95 % intervals, or None where there is no finite one; a bound ends an interval."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            profile = lmfit.conf_interval(minimizer, result, sigmas=[0.95])
    except (lmfit.MinimizerException, ValueError):
        return None
    intervals = {}
    for name, ladder in profile.items():
        low, high = model.bounds[name]
        intervals[name] = (max(float(ladder[0][1]), low), min(float(ladder[-1][1]), high))
    finite = all(math.isfinite(end) for interval in intervals.values() for end in interval)
    return intervals if finite else None


def _t_intervals(estimates, errors, freedom, model):
    quantile = float(stats.t.ppf(0.975, freedom))
    return {
        name: (
            max(value - quantile * errors[name], model.bounds[name][0]),
            min(value + quantile * errors[name], model.bounds[name][1]),
        )
        for name, value in estimates.items()
    }


def _aicc(residuals, parameters):
    """Akaike's criterion for least squares with few points (Hurvich and Tsai 1989); sigma counts too."""
    n, k = len(residuals), parameters + 1
    return float(n * np.log(np.mean(residuals**2)) + 2 * k + 2 * k * (k + 1) / (n - k - 1))


def _aicc_refusal(parameters, n, distinct, exact):
    if distinct <= parameters + 1:
        return f"{distinct} distinct x do not exceed {parameters} parameters + 1"
    if n <= parameters + 2:
        return f"{n} points leave the small-sample correction without a degree of freedom"
    if exact:
        return "the model is exact, so the likelihood has no bound"
    return ""


def _plain(value):
    """Numbers as JSON has them: NaN becomes None."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return float(value) if math.isfinite(value) else None
