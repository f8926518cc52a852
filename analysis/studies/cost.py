"""What simulating HPL takes itself, fitted over the order of the matrix and the grid, in one place."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from statsmodels.regression.linear_model import OLS
from statsmodels.tools import add_constant

FEWEST = 8  # trials that a law of three parameters is fitted to, at least
SHORTEST = 1.0  # s: below it a simulation's start-up counts, of which the law knows nothing
COLUMNS = ("interconnect", "nodes", "N", "P", "Q", "simulator_cpu_time", "simulator_memory")


@dataclass(frozen=True)
class Law:
    """CPU time = scale N^order searches(P)^grid [s], by least squares on the logarithms.

    `scale` is in s. The exponents' intervals (low, high) are 95 % t intervals that take the trials for
    independent. `typical_error` is exp(s) - 1 for the standard deviation s of the residuals: about two
    thirds of the trials lie within such a factor of the law.
    """

    scale: float
    order: float
    order_interval: tuple[float, float]
    grid: float
    grid_interval: tuple[float, float]
    typical_error: float

    def cpu_time(self, N, P) -> np.ndarray:
        """The CPU time [s] of a matrix of order N on a grid of P rows of processes; arguments broadcast."""
        return self.scale * np.asarray(N, float) ** self.order * searches(P) ** self.grid


@dataclass(frozen=True)
class Slope:
    """What each node adds, by least squares, with its 95 % t interval (low, high)."""

    value: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Cost:
    """The simulated trials of several campaigns that say what they took, and what follows from it.

    `trials` has a row for each: campaign, interconnect, nodes, N, P, Q, simulator_cpu_time [s],
    simulator_memory [B] and the `messages` of all ranks (NaN: not counted). `fitted` are those of at least
    SHORTEST, to which the `law` is fitted. `memory` [B] is what each simulated node adds to the simulator's;
    None where fewer than FEWEST trials give theirs.
    """

    trials: pd.DataFrame
    fitted: pd.DataFrame
    law: Law
    memory: Slope | None


def analyse(datasets: Sequence[xr.Dataset]) -> Cost | None:
    """Fit the simulated HPL trials of these datasets.

    None where fewer than FEWEST took SHORTEST or longer, or all of these have the same N or P.
    """
    empty = pd.DataFrame(columns=COLUMNS)
    trials = pd.concat([_trials(dataset) for dataset in datasets] or [empty], ignore_index=True)
    fitted = trials[trials.simulator_cpu_time >= SHORTEST]
    if len(fitted) < FEWEST or fitted.N.nunique() < 2 or fitted.P.nunique() < 2:
        return None
    return Cost(trials, fitted, _law(fitted), _memory(trials))


def searches(P) -> np.ndarray:
    """P (1 + log2 P): the messages with which P processes agree on the pivot of one column, to leading order.

    HPL exchanges the candidates in log2 P rounds of P messages. N columns have one pivot each, and messages
    are what a simulation of HPL spends its time on.
    """
    rows = np.asarray(P, float)
    return rows * (1 + np.log2(rows))


def _trials(dataset: xr.Dataset) -> pd.DataFrame:
    """The dataset's simulated HPL trials with a CPU time above 0."""
    chosen = (
        (dataset.evidence == "simulated")
        & (dataset.runner == "hpl")
        & (dataset.role == "point")
        & (dataset.status == "ok")
        & (dataset.simulator_cpu_time > 0)
    )
    trials = dataset.isel(trial=np.flatnonzero(chosen))
    table = pd.DataFrame({name: trials[name].values for name in COLUMNS})
    return table.assign(
        campaign=dataset.attrs["campaign"],
        messages=trials.payload_messages.sum("size", min_count=1).values,
    )


def _law(trials: pd.DataFrame) -> Law:
    terms = np.column_stack([np.log(trials.N), np.log(searches(trials.P))])
    fitted = OLS(np.log(trials.simulator_cpu_time.values), add_constant(terms)).fit()
    (scale, order, grid), intervals = fitted.params, fitted.conf_int()
    return Law(
        scale=math.exp(scale),
        order=float(order),
        order_interval=tuple(intervals[1].tolist()),
        grid=float(grid),
        grid_interval=tuple(intervals[2].tolist()),
        typical_error=math.expm1(math.sqrt(fitted.mse_resid)),
    )


def _memory(trials: pd.DataFrame) -> Slope | None:
    known = trials.dropna(subset="simulator_memory")
    if len(known) < FEWEST or known.nodes.nunique() < 2:
        return None
    fitted = OLS(known.simulator_memory.values, add_constant(known.nodes.values)).fit()
    return Slope(float(fitted.params[1]), tuple(fitted.conf_int()[1].tolist()))
