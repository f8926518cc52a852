"""Start values for models that are linear in their coefficients, or whose work divided by y is."""

import numpy as np


def nonnegative(rows, y):
    """The non-negative least-squares coefficients, shape (fits, k).

    `rows` has shape (points, k) or (fits, points, k), `y` (fits, points). With so few coefficients every choice of the
    positive ones can be tried, which finds the optimum where setting negative ones to 0 would not.
    """
    rows = np.broadcast_to(rows, (len(y), *rows.shape[-2:]))
    scale = or_one(np.linalg.norm(rows, axis=1))
    rows = rows / scale[:, None, :]
    gram, moment = np.swapaxes(rows, 1, 2) @ rows, np.einsum("fpk,fp->fk", rows, y)
    best, gain = np.zeros_like(moment), np.zeros(len(y))
    k = rows.shape[2]
    for mask in range(1, 2**k):
        positive = [index for index in range(k) if mask >> index & 1]
        inverse = np.linalg.pinv(gram[:, positive][:, :, positive], rcond=1e-12, hermitian=True)
        candidates = np.einsum("fjk,fk->fj", inverse, moment[:, positive])
        explained = np.einsum("fk,fk->f", candidates, moment[:, positive])
        better = (candidates >= 0).all(axis=1) & (explained > gain)
        gain[better] = explained[better]
        best[better] = 0
        best[np.ix_(better, positive)] = candidates[better]
    return best / scale


def reciprocal(work, columns, y):
    """The non-negative coefficients, shape (fits, k), for which work / y comes closest to columns @ coefficients.

    `work` has shape (points,), `columns` (points, k), `y` (fits, points). Each equation is multiplied by y^2 / work: to
    first order, its error is then that of y, and a point at which y is 0 has no say.
    """
    unit = or_one(np.max(np.abs(y), axis=1, keepdims=True))
    y = y / unit
    weights = np.divide(y**2, work, out=np.zeros_like(y), where=work != 0)
    return nonnegative(weights[:, :, None] * columns, y) / unit


def of_one_node(n, rate, one, **parts):
    """Start values gamma = 1 / one and parts / one, all of shape (fits,).

    Where no finite gamma fits best (`one` is 0) it is the best rate per node, and the parts are 0.
    """
    finite = one > 0
    one = np.where(finite, one, 1.0)
    per_node = np.divide(rate, n, out=np.zeros_like(rate), where=n != 0).max(axis=1)
    gamma = np.where(finite, 1 / one, np.maximum(per_node, 0.0))
    return {
        "gamma": gamma,
        **{name: np.where(finite, part / one, 0.0) for name, part in parts.items()},
    }


def or_one(scale):
    """The scale, or 1 where it is not above 0: what one may divide by."""
    return np.where(scale > 0, scale, 1.0)
