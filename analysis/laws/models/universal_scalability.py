"""Gunther's universal scalability law: contention and coherency bend a linear rate."""

import numpy as np

from analysis.laws.models import Model, Number, Values, _linear


def universal_scalability(n: Values, gamma: Number, sigma: Number, kappa: Number) -> Values:
    """X(n) = gamma n / (1 + sigma (n - 1) + kappa n (n - 1)).

    `gamma` is the rate of one node, in the unit of X; `sigma` (contention) and `kappa` (coherency)
    have no unit.
    """
    return gamma * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def guess(n: Values, rate: Values) -> dict[str, float]:
    """The law is linear in n / X(n): its coefficients are 1, sigma and kappa over gamma."""
    return _linear.of_one_node(n, rate, sigma=n - 1, kappa=n * (n - 1))


MODEL = Model(
    title="universal scalability law",
    equation=r"X(n) = \frac{\gamma n}{1 + \sigma (n - 1) + \kappa n (n - 1)}",
    source="N. J. Gunther, Guerrilla Capacity Planning, Springer 2007; gamma is the rate "
    "of one node",
    function=universal_scalability,
    bounds={"gamma": (0.0, np.inf), "sigma": (0.0, np.inf), "kappa": (0.0, np.inf)},
    guess=guess,
)
