"""Where a curve turns: the breakpoints and knees that data allow, and what data must hold to estimate one."""

import numpy as np
from scipy import stats

from analysis.models import bandwidth_delay, segmented
from runners.record import FalloffError

NEEDED = 5  # distinct x: two on either side of the breakpoint and one that tells the sides apart
CLOSE = 1e-6  # x and breakpoints that differ by less than this part are the same
ROUNDING = 1e-24  # a sum of squares below this part of that of y is rounding, not misfit
TRIED = 400  # knees between the smallest and the largest window


def bracket(x, y) -> tuple[float, float]:
    """The closest two of the measured x between which every breakpoint of `segmented` lies that the data allow.

    x and y have shape (points,), x is above 0. A breakpoint is allowed as `_largest_sse` says; the lowest x stands
    for every breakpoint at or below it.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    known = np.unique(x)
    if len(known) < 3:
        return float(known[0]), float(known[-1])
    grid = segmented.breakpoints(x)
    sse = segmented.lines(x, y[None], grid)[2][0]
    allowed = grid[sse <= _largest_sse(sse.min(), y, 3)]
    low = known[known <= allowed[0] * (1 + CLOSE)][-1]
    # beyond the last x but one only one x falls, so that every breakpoint fits as well as that x
    last = allowed[-1] >= known[-2] * (1 - CLOSE)
    return float(low), float(known[-1] if last else known[known >= allowed[-1] * (1 - CLOSE)][0])


def knee_bracket(window, goodput) -> tuple[float, float]:
    """The smallest and the largest knee [B] of `bandwidth_delay` that the data allow, both of shape (points,).

    It is looked for between the smallest and the largest window; there it stands for every knee beyond them.
    """
    window, goodput = np.asarray(window, float), np.asarray(goodput, float)
    best = {name: value[0] for name, value in bandwidth_delay.guess(window, goodput[None]).items()}
    ends = window.min(), window.max()
    tried = np.append(np.geomspace(*ends, TRIED), np.clip(bandwidth_delay.knee(**best), *ends))
    sse = bandwidth_delay.slopes_at(window, goodput[None], tried[None])[1][0]
    allowed = tried[sse <= _largest_sse(sse.min(), goodput, 2)]
    return float(allowed.min()), float(allowed.max())


def require_breakpoint(x, y) -> None:
    """Raise FalloffError, with the bracket, unless x and y carry the estimate of a breakpoint.

    They do with at least 5 distinct x, two of them on either side of every breakpoint that the data
    allow: a single x on one side could be anything.
    """
    if np.any(x <= 0):
        raise FalloffError(
            "The segmented model takes log2 x; leave out the points where x is not above 0."
        )
    known = np.unique(x)
    low, high = bracket(x, y)
    place = (
        f"it lies between {low:g} and {high:g}" if low < high else f"it lies at {low:g} or below"
    )
    smallest = segmented.lines(x, y[None], segmented.breakpoints(x))[2].min()
    if np.sum((y - np.mean(y)) ** 2) <= _largest_sse(smallest, y, 3):
        place += ", if there is one"
    if len(known) < NEEDED:
        listed = ", ".join(f"{value:g}" for value in known)
        raise FalloffError(
            f"{len(known)} distinct x ({listed}) cannot carry a breakpoint; {place}. An estimate needs {NEEDED}."
        )
    if low < known[1] or high > known[-2]:
        raise FalloffError(
            f"These x and y cannot carry a breakpoint; {place}. "
            "An estimate needs 2 distinct x on either side of all that the data allow."
        )


def require_knee(window, goodput) -> None:
    """Raise FalloffError, with the bracket, unless two windows lie on either side of all allowed knees."""
    if np.any(window <= 0):
        raise FalloffError("The bandwidth-delay model needs windows above 0; leave the others out.")
    low, high = knee_bracket(window, goodput)
    known = np.unique(window)
    few_below = np.sum(known <= low * (1 + CLOSE)) < 2
    few_above = np.sum(known >= high * (1 - CLOSE)) < 2
    if not (few_below or few_above):
        return
    place = f"at {high:g} bytes or below"
    if few_above:
        place = f"at {low:g} bytes or above"
    if few_below and few_above:
        place = f"between {low:g} and {high:g} bytes, or there is none"
    raise FalloffError(
        f"These windows cannot carry a knee; it lies {place}. An estimate needs 2 windows on either side."
    )


def _largest_sse(smallest: float, y, parameters: int) -> float:
    """The largest sum of squares that the 95 % profile interval of one of the parameters allows, by the F criterion.

    `smallest` is that of the best fit to y, shape (points,). Infinite without a degree of freedom.
    Source: D. M. Bates and D. G. Watts, Nonlinear Regression Analysis, Wiley 1988, chapter 6.
    """
    freedom = len(y) - parameters
    if freedom < 1:
        return np.inf
    return max(smallest * (1 + stats.f.ppf(0.95, 1, freedom) / freedom), ROUNDING * np.sum(y**2))
