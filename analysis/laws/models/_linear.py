"""Start values for models that are linear in their coefficients, or for which the work divided by y
is."""

import numpy as np
from scipy.optimize import nnls

from analysis.laws.models import Number, Values


def nonnegative(columns: Values, y: Values) -> Values:
    """The non-negative least-squares coefficients of `columns`, shape (points, k)."""
    scale = or_one(np.linalg.norm(columns, axis=0))
    return nnls(columns / scale, y)[0] / scale


def reciprocal(work: Number, columns: Values, y: Values) -> Values:
    """The non-negative coefficients for which work / y, shape (points,), comes closest to columns @
    coefficients.

    Each equation is multiplied by y^2 / work. To first order its error is then that of y, and a
    point at which y is 0 has no weight.
    """
    unit = or_one(np.max(np.abs(y)))
    y = y / unit
    weights = np.divide(y**2, work, out=np.zeros_like(y), where=work != 0)
    return nonnegative(weights[:, None] * columns, y) / unit


def of_one_node(n: Values, rate: Values, **columns: Values) -> dict[str, float]:
    """Start values of a rate n gamma / (1 + the `columns` times the parts of their names).

    If no finite gamma fits best, gamma is the best rate per node and the parts are 0.
    """
    work = np.column_stack([np.ones_like(n), *columns.values()])
    inverse_rate, *parts = reciprocal(n, work, rate)
    if inverse_rate > 0:
        return dict(zip(["gamma", *columns], [1 / inverse_rate, *np.array(parts) / inverse_rate]))
    per_node = np.divide(rate, n, out=np.zeros_like(rate), where=n != 0).max()
    return {"gamma": max(per_node, 0.0), **dict.fromkeys(columns, 0.0)}


def line(x: Values, y: Values) -> Values:
    """The least-squares line with no negative part: its value at 0, and its slope."""
    return nonnegative(np.column_stack([np.ones_like(x), x]), y)


def or_one(scale: Number) -> Number:
    """The scale, or 1 if it is not above 0: a safe divisor."""
    return np.where(scale > 0, scale, 1.0)
