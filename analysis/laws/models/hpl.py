"""The time of an HPL run from its own messages, as the rate that HPL prints."""

from collections.abc import Callable

import numpy as np

from analysis.laws.models import Model, Number, Values, _linear
from analysis.laws.models._hpl_steps import PANELS, paths
from runners.records.record import FalloffError
from runners.tools.hpl import operations

TRIES = 10  # iterations of the guess to find the longest paths


def hpl(x: Values, alpha: Number, beta: Number, gamma: Number) -> Values:
    """The rate of an HPL run: operations(N) / T(N, NB, P, Q; alpha, beta, gamma).

    The rows of x are the matrix order N, the block size NB and the process grid's rows P and
    columns Q. `alpha` is the time of a message of any length, `beta` that of each byte in it and
    `gamma` that of a floating-point operation, all in operations over the unit of the rate: rates
    in Gflop/s give times in ns.
    """
    return operations(np.asarray(x)[0]) / longest(counts(x), alpha, beta, gamma)


def counts(x: Values, panels: int = PANELS) -> Values:
    """Messages, bytes and flops on the paths of each run, shape (points, paths, 3); see
    `_hpl_steps.paths`.

    Raises FalloffError if x does not have the four rows, or they are not valid settings of HPL.
    """
    x = np.asarray(x, float)
    if x.ndim != 2 or len(x) != 4:
        raise FalloffError("HPL's law needs an x of four rows: N, NB, P and Q.")
    if not (np.rint(x) >= 1).all():
        raise FalloffError("HPL's law needs N, NB, P and Q of at least 1.")
    return np.stack([paths(*run, panels) for run in np.rint(x.T).astype(int).tolist()])


def longest(counted: Values, alpha: Number, beta: Number, gamma: Number) -> Values:
    """The time of the longest path: shape (points,), or (fits, points) for parameters of shape
    (fits, 1).
    """
    messages, bytes_, flops = np.moveaxis(counted, -1, 0)
    alpha, beta, gamma = (np.asarray(cost, float)[..., None] for cost in (alpha, beta, gamma))
    return (alpha * messages + beta * bytes_ + gamma * flops).max(axis=-1)


def settled(counted: Values, start: Values, solve: Callable[[Values], Values]) -> Values:
    """The costs at which the longest paths stay the same: `solve` finds the best ones along given
    paths, these give new paths, and so on."""
    costs = start
    for _ in range(TRIES):
        longest_path = (counted @ costs).argmax(axis=-1)
        along = counted[np.arange(len(counted)), longest_path]
        costs, before = solve(along), costs
        if np.allclose(costs, before, rtol=1e-9):
            break
    return costs


def guess(x: Values, rate: Values) -> dict[str, float]:
    """Along given paths the time is linear in the parameters."""
    work = operations(np.asarray(x)[0])
    start = np.array([0.0, 0.0, 1.0])
    costs = settled(counts(x), start, lambda along: _linear.reciprocal(work, along, rate))
    return dict(zip(("alpha", "beta", "gamma"), costs))


MODEL = Model(
    title="HPL's messages",
    equation=r"R = \frac{\frac{2}{3} N^3 + \frac{3}{2} N^2}"
    r"{\max_k (\alpha m_k + \beta b_k + \gamma f_k)}",
    source="the longest path through HPL 2.0's own steps, https://www.netlib.org/benchmark/hpl, of "
    "m messages, b bytes and f flops; A. Petitet, R. C. Whaley, J. Dongarra, A. Cleary, HPL "
    "Scalability Analysis, count one path in closed form",
    function=hpl,
    bounds={"alpha": (0.0, np.inf), "beta": (0.0, np.inf), "gamma": (0.0, np.inf)},
    guess=guess,
)
