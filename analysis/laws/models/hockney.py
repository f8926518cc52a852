"""Latency and bandwidth: the time of a message over its size."""

import numpy as np

from analysis.laws.models import Model, Number, Values, _linear


def hockney(size: Values, alpha: Number, beta: Number) -> Values:
    """t(s) = alpha + beta s: `alpha` [s] whatever the size, `beta` [s/B] for each of the `size`
    bytes.
    """
    return alpha + beta * size


def guess(size: Values, time: Values) -> dict[str, float]:
    """The least-squares line with no negative part, which is also the solution."""
    return dict(zip(("alpha", "beta"), _linear.line(size, time)))


MODEL = Model(
    title="latency-bandwidth",
    equation=r"t(s) = \alpha + \beta s",
    source="R. W. Hockney, The communication challenge for MPP: Intel Paragon and Meiko CS-2, "
    "Parallel Computing 20 (1994), p. 389-398, https://doi.org/10.1016/S0167-8191(06)80021-9; "
    "n1/2 = alpha / beta",
    function=hockney,
    bounds={"alpha": (0.0, np.inf), "beta": (0.0, np.inf)},
    guess=guess,
    units={"alpha": "s", "beta": "s/B"},
)
