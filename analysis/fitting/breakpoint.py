"""Where a curve turns: the breakpoints and knees that data allow, and the data needed to estimate
one."""

import numpy as np
from scipy import stats

from analysis.models import Model, bandwidth_delay, segmented
from runners.record import FalloffError

CLOSE = 1e-6  # x and turns with a smaller relative difference are the same
ROUNDING = 1e-24  # a sum of squares below this share of that of y is rounding, not misfit
TRIED = 400  # knees tried between the smallest and the largest window
# The name of the model's turn, and how many distinct x an estimate needs: two on either side; between two lines one
# more, to tell the sides apart.
TURNS = {segmented.MODEL.name: ("breakpoint", 5), bandwidth_delay.MODEL.name: ("knee", 4)}


def bracket(model: Model, x, y) -> tuple[float, float]:
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
    allowed = turns[sse <= _largest_sse(sse.min(), y, len(model.parameters))]
    low = places[places <= allowed[0] * (1 + CLOSE)][-1]
    high = places[places >= allowed[-1] * (1 - CLOSE)][0]
    # Beyond the second-last x only one x is left on the falling line, so every breakpoint there fits as well as that x.
    if model is segmented.MODEL and allowed[-1] >= places[-2] * (1 - CLOSE):
        high = places[-1]
    return float(low), float(high)


def require_turn(model: Model, x, y) -> None:
    """Raise FalloffError, with the bracket, unless two x lie on either side of every turn that the
    data allow.

    With a single x on one side, that side could be anything.
    """
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
        f"An estimate needs {needed} distinct x, 2 of them on either side of all that the data allow."
    )


def _largest_sse(smallest: float, y, parameters: int) -> float:
    """The largest allowed sum of squares, `smallest` being the best; infinite without a degree of
    freedom."""
    freedom = len(y) - parameters
    if freedom < 1:
        return np.inf
    return max(smallest * (1 + stats.f.ppf(0.95, 1, freedom) / freedom), ROUNDING * np.sum(y**2))
