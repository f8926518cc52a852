"""Amdahl's law: a part of the work that cannot be parallelised bounds the rate."""

import numpy as np

from analysis.laws.models import Model, Number, Values, _linear


def amdahl(n: Values, gamma: Number, sigma: Number) -> Values:
    """X(n) = gamma n / (1 + sigma (n - 1)), which is below gamma / sigma for every n.

    `gamma` is the rate of one node, in the unit of X; `sigma`, without unit, is the serial part.
    """
    return gamma * n / (1 + sigma * (n - 1))


def guess(n: Values, rate: Values) -> dict[str, float]:
    """The law is linear in n / X(n): its coefficients are 1 and sigma over gamma."""
    start = _linear.of_one_node(n, rate, sigma=n - 1)
    return start | {"sigma": min(start["sigma"], 1.0)}


MODEL = Model(
    title="Amdahl's law",
    equation=r"X(n) = \frac{\gamma n}{1 + \sigma (n - 1)}",
    source="G. M. Amdahl, Validity of the single processor approach to achieving large scale "
    "computing capabilities, AFIPS Spring Joint Computer Conference 1967, p. 483-485, "
    "https://doi.org/10.1145/1465482.1465560; gamma is the rate of one node",
    function=amdahl,
    bounds={"gamma": (0.0, np.inf), "sigma": (0.0, 1.0)},
    guess=guess,
)
