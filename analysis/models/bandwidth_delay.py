"""Goodput over the window: a window per round trip, until the path is full."""

import numpy as np

from analysis.models import Model
from analysis.models._linear import or_one


def bandwidth_delay(window, limit, rtt):
    """y(w) = min(limit, 8 w / rtt): `limit` in bit/s as y, `window` in bytes, `rtt` in seconds.

    Over the socket buffer asked for, of which the kernel grants a multiple and uses a part as window,
    `rtt` is the round-trip time over that factor.
    """
    return np.minimum(limit, 8 * window / rtt)


def knee(limit, rtt):
    """The smallest window [B] that fills a path of `limit` [bit/s] and `rtt` [s]: their product."""
    return limit * rtt / 8


def guess(window, goodput):
    """The least-squares solution itself, from every pair of neighbours between which the knee can lie.

    Between two neighbours it is known which points are on the slope, so that slope and limit are linear
    least squares; a knee that falls outside the two ends on the nearer one, as the problem is convex.
    """
    known = np.unique(window)
    below, above = known[:-1, None], known[1:, None]
    sloped = window <= below
    slope = goodput @ (sloped * window).T / or_one((sloped * window**2).sum(axis=1))
    limit = goodput @ (~sloped).T / or_one((~sloped).sum(axis=1))
    with np.errstate(all="ignore"):
        place = np.clip(np.where(slope > 0, limit / slope, np.inf), below.T, above.T)
    place = np.hstack([place, np.full((len(goodput), 1), known[-1])])
    slopes, sse = slopes_at(window, goodput, place)
    row, best = np.arange(len(goodput)), np.argmin(sse, axis=1)
    slope, place = slopes[row, best], place[row, best]
    rising = slope > 0
    return {
        "limit": np.where(rising, slope * place, 0.0),
        "rtt": 8 / np.where(rising, slope, 1.0),
    }


def slopes_at(window, goodput, knees):
    """The least-squares slope >= 0 of y = slope min(w, knee) at each knee, and the sums of squares.

    window of shape (points,), goodput (fits, points) and knees (fits, knees) give two arrays of shape
    (fits, knees).
    """
    reached = np.minimum(window, knees[:, :, None])
    square = or_one((reached**2).sum(axis=2))
    slope = np.maximum(np.einsum("fkp,fp->fk", reached, goodput) / square, 0.0)
    return slope, (goodput**2).sum(axis=1, keepdims=True) - slope**2 * square


MODEL = Model(
    name="bandwidth_delay",
    title="bandwidth-delay",
    equation=r"y(w) = \min\left(y_{\max}, \frac{8 w}{\mathrm{RTT}}\right)",
    source="V. Jacobson, R. Braden, D. Borman, TCP Extensions for High Performance, RFC 1323 (1992), section "
    "1.1, https://doi.org/10.17487/RFC1323: at most a window per round trip",
    function=bandwidth_delay,
    bounds={"limit": (0.0, np.inf), "rtt": (0.0, np.inf)},
    guess=guess,
)
