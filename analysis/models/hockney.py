"""Latency and bandwidth: the time of a message over its size."""

from dataclasses import replace

import numpy as np

from analysis.models import Model, _reciprocal, cpu_cost


def hockney(size, alpha, beta):
    """t(s) = alpha + beta s: `alpha` [s] whatever the size, `beta` [s/B] for each of the `size` bytes."""
    return alpha + beta * size


def half_performance_length(alpha, beta):
    """n1/2 = alpha / beta [B]: the size that reaches half of the bandwidth of endless messages, 1 / beta."""
    return alpha / beta


def guess(size, time):
    """The least-squares line with no part below 0, which is also the solution; `size` is above 0."""
    line = cpu_cost.guess(1 / size, time)
    return {"alpha": line["per_byte"], "beta": line["per_packet"]}


def logarithm(size, alpha, beta):
    """ln t(s), of which an error is a part of the time, the same for short and long messages."""
    return np.log(hockney(size, alpha, beta))


def guess_logarithm(size, logarithms):
    """The time is what size / throughput is, and linear in the parameters."""
    columns = np.column_stack([np.ones_like(size), size])
    alpha, beta = _reciprocal.coefficients(size, columns, size / np.exp(logarithms)).T
    return {"alpha": alpha, "beta": beta}


MODEL = Model(
    name="hockney",
    title="latency-bandwidth",
    equation=r"t(s) = \alpha + \beta s",
    source="R. W. Hockney, The communication challenge for MPP: Intel Paragon and Meiko CS-2, Parallel "
    "Computing 20 (1994), p. 389-398, https://doi.org/10.1016/S0167-8191(06)80021-9; n1/2 = alpha / beta",
    function=hockney,
    bounds={"alpha": (0.0, np.inf), "beta": (0.0, np.inf)},
    guess=guess,
)

# The same curve, for times that are given as logarithms: measured times err by a part of themselves.
OF_LOGARITHMS = replace(MODEL, function=logarithm, guess=guess_logarithm)
