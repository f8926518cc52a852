"""The window from which a path is full: what the data must hold for it, and its interval over blocks."""

import numpy as np

from runners.record import FalloffError

from analysis.fitting.breakpoint import CLOSE, largest_sse
from analysis.statistics.intervals import t_interval
from analysis.models import bandwidth_delay

TRIED = 400  # knees between the smallest and the largest window


def bracket(window, goodput) -> tuple[float, float]:
    """The smallest and the largest knee [B] that the data allow, both of shape (points,).

    A knee is allowed when its sum of squares, with the best slope, is not above the smallest one by more
    than the F criterion of a 95 % profile interval. It is looked for between the smallest and the largest
    window; there it stands for every knee beyond them.
    """
    window, goodput = np.asarray(window, float), np.asarray(goodput, float)
    best = {name: value[0] for name, value in bandwidth_delay.guess(window, goodput[None]).items()}
    ends = window.min(), window.max()
    tried = np.append(np.geomspace(*ends, TRIED), np.clip(bandwidth_delay.knee(**best), *ends))
    sse = bandwidth_delay.slopes_at(window, goodput[None], tried[None])[1][0]
    allowed = tried[sse <= largest_sse(sse.min(), goodput, 2)]
    return float(allowed.min()), float(allowed.max())


def require(window, goodput) -> None:
    """Raise FalloffError, with the bracket, unless two windows lie on either side of all allowed knees.

    With one window on a side, that side could be anything.
    """
    if np.any(window <= 0):
        raise FalloffError("The bandwidth-delay model needs windows above 0; leave the others out.")
    low, high = bracket(window, goodput)
    known = np.unique(window)
    below, above = np.sum(known <= low * (1 + CLOSE)), np.sum(known >= high * (1 - CLOSE))
    if below < 2 or above < 2:
        place = f"at {high:g} bytes or below" if above >= 2 else f"at {low:g} bytes or above"
        if below < 2 and above < 2:
            place = f"between {low:g} and {high:g} bytes, or there is none"
        raise FalloffError(
            f"These windows cannot carry a knee; it lies {place}. An estimate needs 2 windows on either side."
        )


def over_blocks(by_block) -> tuple[float, float, float]:
    """(knee, low, high) [B] of limits [bit/s] and RTTs [s] fitted to each block, shape (blocks, 2).

    `by_block` is that of a `BlockFit`. The blocks' products are combined as logarithms, with their t
    interval; from a single block it is NaN.
    """
    products = bandwidth_delay.knee(*np.asarray(by_block, float).T)
    mean, _, low, high = np.exp(t_interval(np.log(products)))
    return float(mean), float(low), float(high)
