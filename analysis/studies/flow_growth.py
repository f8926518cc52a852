"""How the CPU time that a simulation of flows takes grows with the nodes."""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from statsmodels.regression.linear_model import OLS

from analysis.studies.flow_slowdown import RUNNER

GROUP = ("interconnect", "placement")


@dataclass(frozen=True)
class Growth:
    """CPU time = c nodes^exponent of a pattern's trials, by least squares on the logarithms.

    Each network in each placement has a c of its own; `interval` is the exponent's 95 % t interval, which takes the
    `trials` for independent. What the simulator takes to start is part of the time, so that the exponent grows with
    the nodes: `last` and `last_interval` are those of the two largest node counts alone. `longest` [s] is the longest
    trial, of `most_nodes`; `residuals` are those of the fit to the logarithms, of shape (trials,), none without a fit.
    What cannot be had is NaN.
    """

    pattern: str
    exponent: float
    interval: tuple[float, float]
    last: float
    last_interval: tuple[float, float]
    trials: int
    most_nodes: int
    longest: float
    residuals: np.ndarray


def growth(dataset: xr.Dataset) -> tuple[Growth, ...]:
    """The growth of every pattern that was simulated, in the order of the design."""
    chosen = (dataset.runner == RUNNER) & (dataset.status == "ok") & (dataset.simulator_cpu_time > 0)
    trials = dataset.isel(trial=np.flatnonzero(chosen))
    table = pd.DataFrame({name: trials[name].values for name in ("pattern", *GROUP, "nodes", "simulator_cpu_time")})
    patterns = json.loads(dataset.attrs["design"])["factors"]["pattern"]
    return tuple(_growth(it, table[table.pattern == it]) for it in patterns if it in table.pattern.values)


def _growth(pattern: str, trials: pd.DataFrame) -> Growth:
    longest = trials.loc[trials.simulator_cpu_time.idxmax()]
    exponent, interval, residuals = _exponent(trials)
    largest = sorted(trials.nodes.unique())[-2:]
    last, last_interval, _ = _exponent(trials[trials.nodes.isin(largest)])
    took = float(longest.simulator_cpu_time)
    return Growth(pattern, exponent, interval, last, last_interval, len(trials), int(longest.nodes), took, residuals)


def _exponent(trials: pd.DataFrame) -> tuple[float, tuple[float, float], np.ndarray]:
    """The common slope of log CPU time over log nodes, its 95 % t interval, and what the fit leaves."""
    own = pd.get_dummies(trials.groupby(list(GROUP)).ngroup()).to_numpy(float)
    if trials.nodes.nunique() < 2 or len(trials) <= own.shape[1] + 1:
        return np.nan, (np.nan, np.nan), np.empty(0)
    fitted = OLS(np.log(trials.simulator_cpu_time.to_numpy()), np.column_stack([np.log(trials.nodes), own])).fit()
    return float(fitted.params[0]), tuple(fitted.conf_int()[0].tolist()), fitted.resid
