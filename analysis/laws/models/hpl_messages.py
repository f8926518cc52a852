"""HPL's efficiency on nodes of a known rate, from its own messages. Only what a message and a byte
cost is free."""

import numpy as np

from analysis.laws.models import Model, Number, Values, _linear
from analysis.laws.models.hpl import counts, longest, not_apart, settled
from runners.records.record import FalloffError
from runners.tools.hpl import operations


def hpl_messages(x: Values, alpha: Number, beta: Number) -> Values:
    """The efficiency [1] of an HPL run, its rate over that of P Q nodes: operations(N) / (P Q F T).

    The rows of x are N, NB, P, Q and the rate F [flop/s] of one node's matrix products. `alpha` [s]
    is the time of a message of any length, `beta` [s/B] that of each byte in it; T is the law of
    `hpl` with gamma = 1 / F. Fitted, both also hold what else grows with messages or bytes: they
    need not be a network's latency and inverse bandwidth.
    """
    counted, ideal, gamma = _known(x)
    return ideal / longest(counted, alpha, beta, gamma)


def _known(x: Values) -> tuple[Values, Values, Values]:
    """The paths' counts, the time of all operations on all nodes without loss, and the time of one
    operation on one node."""
    x = np.asarray(x, float)
    if x.ndim != 2 or len(x) != 5:
        raise FalloffError(
            "The law of HPL's messages needs an x of five rows: N, NB, P, Q and a node's rate."
        )
    N, _, P, Q, rate = x
    return counts(x[:4]), operations(N) / (P * Q * rate), 1 / rate


def guess(x: Values, efficiency: Values) -> dict[str, float]:
    """Along given paths the time beyond the flops' is linear in both."""
    counted, ideal, gamma = _known(x)
    # Flops of each path become seconds, so that the third cost is 1 whatever the nodes.
    counted = np.concatenate([counted[..., :2], counted[..., 2:] * gamma[:, None, None]], axis=-1)
    weight = np.where(efficiency > 0, efficiency, 0.0) ** 2 / ideal
    lost = np.divide(ideal, efficiency, out=np.zeros_like(ideal), where=efficiency > 0)

    def solve(along: Values) -> Values:
        beyond = weight * (lost - along[:, 2])
        return np.append(_linear.nonnegative(weight[:, None] * along[:, :2], beyond), 1.0)

    return dict(zip(("alpha", "beta"), settled(counted, np.array([0.0, 0.0, 1.0]), solve)))


MODEL = Model(
    title="HPL's messages on known nodes",
    equation=r"E = \frac{\frac{2}{3} N^3 + \frac{3}{2} N^2}"
    r"{P Q F \max_k (\alpha m_k + \beta b_k + f_k / F)}",
    source="as of HPL's messages; the node's rate F is known",
    function=hpl_messages,
    bounds={"alpha": (0.0, np.inf), "beta": (0.0, np.inf)},
    guess=guess,
    units={"alpha": "s", "beta": "s/B"},
    not_apart=not_apart,
)
