"""Where a curve that is flat and then falls begins to fall: an estimate, or a bracket of measured x."""

import numpy as np
from scipy import stats

from runners.record import FalloffError

from analysis.models.segmented import breakpoints, lines

NEEDED = 5  # distinct x: two on either side of the breakpoint and one that tells the sides apart
CLOSE = 1e-6  # x and breakpoints that differ by less than this part are the same
ROUNDING = 1e-24  # a sum of squares below this part of that of y is rounding, not misfit


def bracket(x, y) -> tuple[float, float]:
    """The closest two of the measured x between which every breakpoint lies that the data allow.

    x and y have shape (points,), x is above 0. A breakpoint is allowed when its sum of squares, with
    the best c and s >= 0 of the segmented model, is not above the smallest one by more than the F
    criterion of a 95 % profile interval (Bates and Watts, Nonlinear Regression Analysis, Wiley 1988,
    chapter 6). The lowest x stands for every breakpoint at or below it.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    known = np.unique(x)
    if len(known) < 3:
        return float(known[0]), float(known[-1])
    grid = breakpoints(x)
    allowed = grid[lines(x, y[None], grid)[2][0] <= _largest_sse(x, y)]
    low = known[known <= allowed[0] * (1 + CLOSE)][-1]
    # beyond the last x but one only one x falls, so that every breakpoint fits as well as that x
    last = allowed[-1] >= known[-2] * (1 - CLOSE)
    return float(low), float(known[-1] if last else known[known >= allowed[-1] * (1 - CLOSE)][0])


def largest_sse(smallest: float, y, parameters: int) -> float:
    """The largest sum of squares that the 95 % profile interval of one of the parameters allows.

    `smallest` is that of the best fit to y, shape (points,). Infinite without a degree of freedom.
    """
    freedom = len(y) - parameters
    if freedom < 1:
        return np.inf
    return max(smallest * (1 + stats.f.ppf(0.95, 1, freedom) / freedom), ROUNDING * np.sum(y**2))


def _largest_sse(x, y):
    """The largest sum of squares of a breakpoint that is still allowed."""
    return largest_sse(lines(x, y[None], breakpoints(x))[2].min(), y, 3)


def require(x, y) -> None:
    """Raise FalloffError, with the bracket, unless x and y carry the estimate of a breakpoint.

    They do with at least 5 distinct x, two of them on either side of every breakpoint that the data
    allow: a single x on one side could be anything.
    """
    if np.any(x <= 0):
        raise FalloffError("The segmented model takes log2 x; leave out the points where x is not above 0.")
    known = np.unique(x)
    low, high = bracket(x, y)
    place = f"it lies between {low:g} and {high:g}" if low < high else f"it lies at {low:g} or below"
    if np.sum((y - np.mean(y)) ** 2) <= _largest_sse(x, y):
        place += ", if there is one"
    if len(known) < NEEDED:
        listed = ", ".join(f"{value:g}" for value in known)
        raise FalloffError(
            f"{len(known)} distinct x ({listed}) cannot carry a breakpoint; {place}. "
            f"An estimate needs {NEEDED}."
        )
    if low < known[1] or high > known[-2]:
        raise FalloffError(
            f"These x and y cannot carry a breakpoint; {place}. "
            "An estimate needs 2 distinct x on either side of all that the data allow."
        )
