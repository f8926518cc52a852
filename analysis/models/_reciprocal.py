"""Start values for models whose work divided by y is linear in their coefficients."""

import numpy as np


def coefficients(work, columns, y):
    """The non-negative coefficients for which work / y comes closest to columns @ coefficients.

    `work` has shape (points,), `columns` (points, k), `y` (fits, points); the result has shape
    (fits, k). Each equation is multiplied by y^2 / work: to first order, its error is then that of
    y, and a point at which y is 0 has no say. With so few coefficients every choice of the positive
    ones can be tried, which finds the optimum where setting negative ones to 0 would not.
    """
    unit = _or_one(np.max(np.abs(y), axis=1, keepdims=True))
    y = y / unit
    weights = np.divide(y**2, work, out=np.zeros_like(y), where=work != 0)
    rows = weights[:, :, None] * columns
    scale = _or_one(np.linalg.norm(rows, axis=1))
    rows = rows / scale[:, None, :]
    gram, moment = np.swapaxes(rows, 1, 2) @ rows, np.einsum("fpk,fp->fk", rows, y)
    best, gain = np.zeros_like(moment), np.zeros(len(y))
    for positive in _subsets(columns.shape[1]):
        inverse = np.linalg.pinv(gram[:, positive][:, :, positive], rcond=1e-12, hermitian=True)
        found = np.einsum("fjk,fk->fj", inverse, moment[:, positive])
        explained = np.einsum("fk,fk->f", found, moment[:, positive])
        better = (found >= 0).all(axis=1) & (explained > gain)
        gain[better] = explained[better]
        best[better] = 0
        best[np.ix_(better, positive)] = found[better]
    return best / (scale * unit)


def of_one_node(n, rate, one, **parts):
    """Start values gamma = 1 / one and parts / one, all of shape (fits,).

    Where no finite gamma fits best (`one` is 0) it is the best rate per node, and the parts are 0.
    """
    finite = one > 0
    one = np.where(finite, one, 1.0)
    per_node = np.divide(rate, n, out=np.zeros_like(rate), where=n != 0).max(axis=1)
    gamma = np.where(finite, 1 / one, np.maximum(per_node, 0.0))
    return {"gamma": gamma, **{name: np.where(finite, part / one, 0.0) for name, part in parts.items()}}


def _subsets(k):
    return [[index for index in range(k) if mask >> index & 1] for mask in range(1, 2**k)]


def _or_one(scale):
    return np.where(scale > 0, scale, 1.0)
