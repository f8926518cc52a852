"""Goodput over the window: one window per round trip, until the path is full."""

import numpy as np

from analysis.laws.models import Model, Number, Values
from analysis.laws.models._linear import or_one


def bandwidth_delay(window: Values, limit: Number, rtt: Number) -> Values:
    """y(w) = min(limit, 8 w / rtt): `limit` in bit/s like y, `window` in bytes, `rtt` in seconds.

    If x is the socket buffer asked for, `rtt` is the round-trip time divided by a factor: the
    kernel grants a multiple of the buffer and uses part of it as window.
    """
    return np.minimum(limit, 8 * window / rtt)


def knee(limit: Number, rtt: Number) -> Number:
    """The smallest window [B] that fills a path of `limit` [bit/s] and `rtt` [s]: their product."""
    return limit * rtt / 8


def guess(window: Values, goodput: Values) -> dict[str, float]:
    """The least-squares solution itself, from every pair of neighbours between which the knee can
    lie.

    Between two neighbours it is known which points are on the slope, so slope and limit follow from
    linear least squares. A knee outside the two falls on the nearer one, because the problem is
    convex.
    """
    windows = np.unique(window)
    knees = [windows[-1]]
    for low, high in zip(windows[:-1], windows[1:]):
        sloped = window <= low
        rise = goodput[sloped] @ window[sloped]  # the slope times the sum of squares
        limit = goodput[~sloped].mean()
        place = limit * (window[sloped] ** 2).sum() / rise if rise > 0 else high
        knees.append(np.clip(place, low, high))
    slopes, sse = slopes_at(window, goodput, np.array(knees))
    slope, place = slopes[np.argmin(sse)], knees[np.argmin(sse)]
    return {"limit": slope * place, "rtt": 8 / slope} if slope > 0 else {"limit": 0.0, "rtt": 8.0}


def slopes_at(window: Values, goodput: Values, knees: Values) -> tuple[Values, Values]:
    """The least-squares slope >= 0 of y = slope min(w, knee) at each knee, and their sums of
    squares."""
    reached = np.minimum(window, knees[:, None])
    square = or_one((reached**2).sum(axis=1))
    slope = np.maximum(reached @ goodput / square, 0.0)
    return slope, (goodput**2).sum() - slope**2 * square


MODEL = Model(
    title="bandwidth-delay",
    equation=r"y(w) = \min\left(y_{\max}, \frac{8 w}{\mathrm{RTT}}\right)",
    source="V. Jacobson, R. Braden, D. Borman, TCP Extensions for High Performance, RFC 1323 "
    "(1992), section 1.1, https://doi.org/10.17487/RFC1323: at most a window per round trip",
    function=bandwidth_delay,
    bounds={"limit": (0.0, np.inf), "rtt": (0.0, np.inf)},
    guess=guess,
)
