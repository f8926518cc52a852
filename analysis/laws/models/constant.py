"""A curve that does not depend on x."""

import numpy as np

from analysis.laws.models import Model, Number, Values


def constant(x: Values, c: Number) -> Values:
    """y(x) = c, in the unit of y."""
    return c + np.zeros_like(x, dtype=float)


def guess(x: Values, y: Values) -> dict[str, float]:
    """The mean, which is also the least-squares solution."""
    return {"c": y.mean()}


MODEL = Model(
    title="constant",
    equation=r"y = c",
    source="the null model: no dependence on x",
    function=constant,
    bounds={"c": (-np.inf, np.inf)},
    guess=guess,
)
