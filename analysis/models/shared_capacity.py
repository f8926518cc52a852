"""A rate that grows with the number of users until what they share is full, and stays there."""

import numpy as np

from analysis.models import Model, bandwidth_delay


def shared_capacity(n, gamma, sigma):
    """X(n) = gamma n / max(1, sigma n): at most gamma / sigma, the capacity, which 1 / sigma users fill.

    `gamma` is the rate of one user, in the unit of X; `sigma`, without unit, its part of the capacity.
    """
    return gamma * n / np.maximum(1, sigma * n)


def guess(n, rate):
    """The bandwidth-delay model is the same curve, a line up to a limit; its guess is the solution."""
    line = bandwidth_delay.guess(n, rate)
    rises = line["limit"] > 0
    users = np.where(rises, bandwidth_delay.knee(**line), 1.0)
    return {"gamma": np.where(rises, 8 / line["rtt"], 0.0), "sigma": np.minimum(1 / users, 1.0)}


MODEL = Model(
    name="shared_capacity",
    title="shared capacity",
    equation=r"X(n) = \frac{\gamma n}{\max(1, \sigma n)}",
    source="asymptotic bounds of a closed system: E. D. Lazowska, J. Zahorjan, G. S. Graham, K. C. Sevcik, "
    "Quantitative System Performance, Prentice-Hall 1984, section 5.2; gamma is the rate of one user",
    function=shared_capacity,
    bounds={"gamma": (0.0, np.inf), "sigma": (0.0, 1.0)},
    guess=guess,
)
