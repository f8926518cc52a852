"""HPL's own model of its run time, as the rate that HPL prints."""

import numpy as np

from analysis.models import Model, _linear
from runners.hpl import operations
from runners.record import FalloffError


def hpl(x, alpha, beta, gamma):
    """The rate of an HPL run: operations(N) / T(N, NB, P, Q; alpha, beta, gamma).

    The rows of x are the matrix order N, the block size NB and the process grid's rows P and
    columns Q. `alpha` is the time of a message whatever its length, `beta` that of one more matrix
    element in it and `gamma` that of a floating-point operation, all in operations over the unit
    of the rate: rates in Gflop/s give times in ns.
    """
    messages, elements, flops = times(x)
    return operations(x[0]) / (alpha * messages + beta * elements + gamma * flops)


def times(x):
    """What alpha, beta and gamma count on the critical path: three arrays of shape (points,).

    Raises FalloffError when x does not have the four rows.
    """
    if np.ndim(x) != 2 or len(x) != 4:
        raise FalloffError("HPL's analytic model needs an x of four rows: N, NB, P and Q.")
    order, block, rows, columns = x
    messages = order * ((block + 1) * np.log2(rows) + rows) / block
    elements = order**2 * (3 * rows + columns) / (2 * rows * columns)
    return messages, elements, 2 * order**3 / (3 * rows * columns)


def guess(x, rate):
    """The time is linear in the parameters."""
    alpha, beta, gamma = _linear.reciprocal(operations(x[0]), np.column_stack(times(x)), rate)
    return {"alpha": alpha, "beta": beta, "gamma": gamma}


MODEL = Model(
    title="HPL's analytic",
    equation=r"R = \frac{\frac{2}{3} N^3 + \frac{3}{2} N^2}{\frac{2 \gamma N^3}{3 P Q} "
    r"+ \frac{\beta N^2 (3 P + Q)}{2 P Q} + \frac{\alpha N ((NB + 1) \log_2 P + P)}{NB}}",
    source="A. Petitet, R. C. Whaley, J. Dongarra, A. Cleary, HPL Scalability Analysis, "
    "https://www.netlib.org/benchmark/hpl/scalability.html; its log P is to base 2 as in HPL_pdfact's",
    function=hpl,
    bounds={"alpha": (0.0, np.inf), "beta": (0.0, np.inf), "gamma": (0.0, np.inf)},
    guess=guess,
)
