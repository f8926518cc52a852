"""The time of an HPL run from its own messages, as the rate that HPL prints."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from analysis.laws.models import Model, Number, Values, _linear
from analysis.laws.models._hpl_steps import PANELS, paths
from runners.records.record import FalloffError
from runners.tools.hpl import operations

LATENCIES = (3e-7, 5e-3)  # s: the time of a short message on any network is between these
ONE_N = 1.1  # orders N within this factor count as one
LARGEST = 50_000_000  # order N, of which the law keeps the pivots
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
    if not (np.rint(x) >= 1).all() or not (x[0] <= LARGEST).all():
        raise FalloffError(
            f"HPL's law needs N, NB, P and Q of at least 1, and N up to {LARGEST:,}."
        )
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


def of_network(alpha: float, beta: float) -> Model:
    """The law on a network of known `alpha` [s] and `beta` [s/B]: only gamma [s/flop] is free."""

    def hpl_on_network(x: Values, gamma: Number) -> Values:
        return hpl(x, alpha, beta, gamma)

    def start(x: Values, rate: Values) -> dict[str, float]:
        weight = rate**2 / operations(np.asarray(x)[0])

        def solve(along: Values) -> Values:
            beyond = rate - weight * (along[:, :2] @ [alpha, beta])
            return np.append(
                [alpha, beta], _linear.nonnegative(weight[:, None] * along[:, 2:], beyond)
            )

        return {"gamma": settled(counts(x), np.array([alpha, beta, 1.0]), solve)[2]}

    of_gamma = {"gamma": MODEL.bounds["gamma"]}
    return replace(MODEL, function=hpl_on_network, bounds=of_gamma, guess=start)


def not_apart(x: Values) -> str:
    """Why runs with these settings, rows of x as in `hpl`, cannot tell alpha and beta apart; empty
    if they may."""
    N, _, P, Q = np.rint(np.asarray(x, float)[:4])
    N, P, Q = (each[P * Q > 1] for each in (N, P, Q))
    if not len(N):
        return "one process sends no messages; run on several nodes"
    for other, grids, more in ((P, "1 x Q", "rows"), (Q, "P x 1", "columns")):
        if (other == 1).all():
            own = "where a panel's own cost looks like that of its messages"
            return f"all grids are {grids}, {own}; run a grid with more {more}, too"
    if N.max() < ONE_N * N.min():
        return "all runs have about one N; run another, too, such as half"
    return ""


def no_network(alpha: float, beta: float) -> str:
    """Why `alpha` [s] and `beta` [s/B] are not those of any network; empty if they may be."""
    shortest, longest = LATENCIES
    if not shortest <= alpha <= longest:
        return f"a latency of {1e6 * alpha:.3g} us is not one of 0.3 us to 5 ms"
    return "" if beta > 0 else "bytes would take no time"


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
    units={"alpha": "s", "beta": "s/B", "gamma": "s/flop"},
    not_apart=not_apart,
)
