"""A curve that is straight on doubly logarithmic axes."""

import numpy as np

from analysis.models import Model


def power_law(x, a, b):
    """y(x) = a x^b for x > 0; a in the unit of y (its value at x = 1), b without unit."""
    return a * x**b


def guess(x, y):
    """The straight line through log y over log x, from the positive points, each with weight y^2.

    The weight gives a point in log y the say that it has in y. Without a slope, a is the mean.
    """
    positive = (x > 0) & (y > 0)
    log_x, log_y = np.log(np.where(x > 0, x, 1.0)), np.log(np.where(positive, y, 1.0))
    weight = np.where(positive, (y / np.max(np.abs(y), axis=1, keepdims=True)) ** 2, 0.0)
    total = weight.sum(axis=1, keepdims=True)
    weight = weight / np.where(total > 0, total, 1.0)
    center = (weight * log_x).sum(axis=1, keepdims=True)
    spread = (weight * (log_x - center) ** 2).sum(axis=1)
    sloped = spread > 1e-12
    shared = (weight * (log_x - center) * log_y).sum(axis=1)
    slope = np.divide(shared, spread, out=np.zeros_like(spread), where=sloped)
    level = (weight * log_y).sum(axis=1) - slope * center[:, 0]
    return {"a": np.where(sloped, np.exp(level), y.mean(axis=1)), "b": slope}


MODEL = Model(
    name="power_law",
    title="power law",
    equation=r"y = a \, x^{b}",
    source="empirical; on rates over node counts b = 1 is linear scaling",
    function=power_law,
    bounds={"a": (-np.inf, np.inf), "b": (-np.inf, np.inf)},
    guess=guess,
)
