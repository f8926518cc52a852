"""A rate that every user raises as much as the first."""

import numpy as np

from analysis.models import Model, _linear


def proportional(n, gamma):
    """X(n) = gamma n: `gamma` is the rate of one user, in the unit of X."""
    return gamma * n


def guess(n, rate):
    """The least-squares slope, not below 0, which is also the solution."""
    return {"gamma": _linear.nonnegative(n[:, None], rate)[:, 0]}


MODEL = Model(
    name="proportional",
    title="proportional",
    equation=r"X(n) = \gamma n",
    source="the null model of contention: users do not notice each other",
    function=proportional,
    bounds={"gamma": (0.0, np.inf)},
    guess=guess,
)
