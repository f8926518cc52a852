"""Gunther's universal scalability law: contention and coherency bend a linear rate."""

import numpy as np

from analysis.models import Model


def universal_scalability(n, gamma, sigma, kappa):
    """X(n) = gamma n / (1 + sigma (n - 1) + kappa n (n - 1)).

    `gamma` is the rate of one node, in the unit of X; `sigma` (contention) and `kappa`
    (coherency) are without unit.
    """
    return gamma * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def guess(n, rate):
    """The law is linear in n / X(n): its coefficients are 1, sigma and kappa over gamma."""
    moving = rate != 0
    n, rate = n[moving], rate[moving]
    columns = np.column_stack([np.ones_like(n), n - 1, n * (n - 1)])
    one, contention, coherency = np.linalg.lstsq(columns, n / rate, rcond=None)[0]
    if one <= 0:
        return {"gamma": np.max(rate / n, initial=0.0), "sigma": 0.0, "kappa": 0.0}
    return {"gamma": 1 / one, "sigma": max(contention / one, 0.0), "kappa": max(coherency / one, 0.0)}


MODEL = Model(
    name="universal_scalability",
    title="universal scalability law",
    equation=r"X(n) = \frac{\gamma n}{1 + \sigma (n - 1) + \kappa n (n - 1)}",
    source="N. J. Gunther, Guerrilla Capacity Planning, Springer 2007; gamma is the rate of one node",
    function=universal_scalability,
    bounds={"gamma": (0.0, np.inf), "sigma": (0.0, np.inf), "kappa": (0.0, np.inf)},
    guess=guess,
)
