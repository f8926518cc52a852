"""A curve that is straight on doubly logarithmic axes."""

import numpy as np

from analysis.laws.models import Model, Number, Values


def power_law(x: Values, a: Number, b: Number) -> Values:
    """y(x) = a x^b for x > 0; a in the unit of y (its value at x = 1), b without unit."""
    return a * x**b


def guess(x: Values, y: Values) -> dict[str, float]:
    """The straight line through log y over log x, from the positive points, each with weight y^2.

    With this weight a point counts in log y as much as in y. Without a slope, a is the mean.
    """
    positive = (x > 0) & (y > 0)
    if len(np.unique(x[positive])) < 2:
        return {"a": y.mean(), "b": 0.0}
    weights = y[positive] / y.max()
    slope, level = np.polyfit(np.log(x[positive]), np.log(y[positive]), 1, w=weights)
    return {"a": np.exp(level), "b": slope}


MODEL = Model(
    title="power law",
    equation=r"y = a \, x^{b}",
    source="empirical; on rates over node counts b = 1 is linear scaling",
    function=power_law,
    bounds={"a": (-np.inf, np.inf), "b": (-np.inf, np.inf)},
    guess=guess,
)
