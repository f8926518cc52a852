"""A second opinion on a fall: a mixed model with a random effect of each block, from all node counts."""

import json
import math
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats
from statsmodels.regression.mixed_linear_model import MixedLM

from analysis.inference.verdict import Interval

EXACT = 1e-9  # runs of a cell that differ by less than this part are equal but for rounding
NO_BLOCK_VARIANCE = 0.01  # part of the runs' variance below which the blocks' is not told from zero


@dataclass(frozen=True)
class MixedFall:
    """The fall of one level against a reference, as the mixed model sees it.

    `fall` and its 95 % `interval` (low, high) are relative; the interval takes the normal distribution for
    Student's t, so that it is too narrow with few blocks, as `interval_kind` says. `blocks` counts those with
    any valid point. `note` says what the solver met; where there is no result, which is then None, why.
    """

    fall: float | None
    interval: Interval | None
    blocks: int
    note: str = ""
    interval_kind: str = "z-based, from the normal distribution"


def mixed_fall(
    points: xr.Dataset, level: str, reference: str, along: str = "interconnect", **levels
) -> MixedFall:
    """The fall of `level` against `reference`, two levels of the factor `along`, by restricted likelihood.

    log rate = mean of each (level, node count) + effect of the block + error (N. M. Laird and J. H. Ware,
    Biometrics 38, 1982, p. 963-974); the fall is 1 - exp(D), D being the log-ratio at the largest node count
    minus that at the design's baseline. `levels` fixes the other factors of `points` by name, where they
    have more than one level.
    """
    rows = _rows(points.rate.sel({along: [level, reference], **levels}), along)
    baseline, largest = json.loads(points.attrs["design"])["baseline_nodes"], int(points.nodes.max())
    contrast = {
        (level, largest): 1,
        (reference, largest): -1,
        (level, baseline): -1,
        (reference, baseline): 1,
    }
    cells = pd.get_dummies(pd.MultiIndex.from_frame(rows[[along, "nodes"]]).to_flat_index(), dtype=float)
    blocks = rows.block.nunique()
    if blocks < 2 or not set(contrast) <= set(cells.columns):
        reason = f"It needs two blocks with runs at {baseline} and {largest} nodes."
        return MixedFall(None, None, blocks, reason)
    weights = np.array([contrast.get(cell, 0) for cell in cells.columns])
    return _solved(rows.log_rate.to_numpy(), cells.to_numpy(), rows.block.to_numpy(), weights, blocks)


def _rows(rate, along):
    """One row for each valid point: block, level, nodes and log_rate."""
    fixed = [name for name in rate.dims if name not in ("block", along, "nodes")]
    series = np.log(rate.squeeze(fixed)).reset_coords(drop=True).to_series()
    return series.rename("log_rate").dropna().reset_index()


def _solved(log_rate, cells, block, weights, blocks):
    """The mixed model in units of the runs' own scatter: statsmodels' thresholds are absolute."""
    means = np.linalg.lstsq(cells, log_rate, rcond=None)[0]
    scatter = float(np.std(log_rate - cells @ means))
    if scatter < EXACT:
        return MixedFall(None, None, blocks, "The blocks do not differ, so there is no variance to estimate.")
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # what they say is read from the result
            result = MixedLM(log_rate / scatter, cells, block).fit(reml=True)
            covariance = np.asarray(result.cov_params())[: len(weights), : len(weights)]
    except (np.linalg.LinAlgError, ValueError) as error:
        return MixedFall(None, None, blocks, f"The mixed model cannot be solved: {error}.")
    difference = scatter * float(weights @ result.fe_params)
    half = scatter * float(stats.norm.ppf(0.975) * np.sqrt(weights @ covariance @ weights))
    if not math.isfinite(half):
        return MixedFall(None, None, blocks, "The mixed model has no standard error.")
    interval = -math.expm1(difference + half), -math.expm1(difference - half)
    return MixedFall(-math.expm1(difference), interval, blocks, _note(result))


def _note(result):
    if float(result.cov_re[0, 0]) < NO_BLOCK_VARIANCE * result.scale:
        return "The variance between blocks is not told from zero."
    return "" if result.converged else "The solver stopped before it converged."
