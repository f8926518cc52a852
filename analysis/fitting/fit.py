"""Fit a model to points; estimates always come with intervals."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analysis.fitting import parameter_intervals
from analysis.fitting.solver import EXACT, distinct_columns, minimise, settle, standard_errors
from analysis.models import Model


@dataclass(frozen=True)
class Fit:
    """A model fitted by ordinary least squares.

    `estimates`, `standard_errors` and the 95 % `intervals` are keyed by parameter, in its own
    unit; `at_bounds` names the parameters that ended on a bound: the data ask for it or for a value
    beyond it. `interval_kind` says how the intervals were made. `residuals` (data minus model) and
    their standard deviation `sigma` are in the unit of y. `aicc` is None where it would mean nothing,
    and `aicc_refused` says why. What cannot be known is NaN.
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
            "at_bounds": list(self.at_bounds),
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


def fit(model: Model, x, y, start: Mapping[str, float] | None = None, profile: bool = True) -> Fit:
    """Fit `model` to x of shape (points,), or (quantities, points), and y of shape (points,).

    `start` replaces the model's guess for the parameters that it names. The 95 % intervals are profile
    likelihood where lmfit finds them, else t intervals; without `profile`, which takes nearly all of the
    time, they are t intervals at once. Raises FalloffError when the points are not finite, cannot carry
    the model (for `segmented` and `bandwidth_delay` with the bracket of its breakpoint or knee), or the
    model cannot be computed there.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    minimizer, result = minimise(model, x, y, start)
    estimates, at_bounds = settle(model, x, y, result)
    residuals = y - model.function(x, **estimates)
    freedom = len(y) - len(estimates)
    sigma = float(np.sqrt(np.sum(residuals**2) / freedom)) if freedom else math.nan
    errors = standard_errors(model, x, estimates, sigma)
    exact = np.max(np.abs(residuals)) <= EXACT * np.max(np.abs(y))
    if not freedom:
        intervals = dict.fromkeys(estimates, (math.nan, math.nan))
        kind = "none: as many parameters as points"
    elif exact:
        intervals = {name: (value, value) for name, value in estimates.items()}
        kind = "none: the model is exact"
    elif profile and (found := parameter_intervals.profile(minimizer, result, model.bounds)):
        intervals, kind = found, "profile likelihood"
    else:
        intervals = parameter_intervals.student(estimates, errors, freedom, model.bounds)
        kind = "t interval"
    distinct = distinct_columns(x)
    refused = _aicc_refusal(len(estimates), len(y), distinct, exact)
    return Fit(
        model=model,
        estimates=estimates,
        at_bounds=at_bounds,
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
