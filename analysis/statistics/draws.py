"""Estimates over resamples: `draw` 0 of a value is the data themselves, the others are of what was resampled."""

import warnings

import numpy as np
import xarray as xr
from scipy import stats

from analysis.statistics.intervals import Kind, back_from_scale, on_scale

ROUNDING = 1e-9  # values that differ by no larger part are the same
MOST_LOST = 0.01  # part of the draws that may have no value before an interval is too narrow


def over_draws(values: xr.DataArray) -> xr.Dataset:
    """`value`, of draw 0, and `low`, `high`: the 95 % percentile interval over the other draws.

    The interval is NaN where more than MOST_LOST of the draws have no value, and where all are the same, since then
    nothing was resampled.
    """
    resampled = values.isel(draw=slice(1, None))
    whole = resampled.where(resampled.isnull().mean("draw") <= MOST_LOST)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the quantile of nothing is NaN
        low, high = (whole.quantile(q, "draw").drop_vars("quantile") for q in (0.025, 0.975))
    varied = ~np.isclose(low, high, rtol=ROUNDING, atol=0)
    return xr.Dataset(
        {"value": values.isel(draw=0), "low": low.where(varied), "high": high.where(varied)}
    )


def resampled_blocks(values: xr.DataArray, draws: int, seed: int, kind: Kind) -> xr.DataArray:
    """The kind's means of `values`, over (block, ...), with dim draw in place of block: all blocks, then resampled ones.

    Blocks are drawn whole, the same for all other dims and for the same seed; what is missing in them is left out.
    Of a single block only draw 0 is known.
    """
    scaled = on_scale(values, kind).transpose("block", ...).drop_vars("block", errors="ignore")
    blocks = scaled.sizes["block"]
    counts = np.ones((1 + draws, blocks))
    if blocks > 1:
        chances = np.full(blocks, 1 / blocks)
        counts[1:] = np.random.default_rng(seed).multinomial(blocks, chances, draws)
    else:
        counts[1:] = np.nan
    drawn = xr.DataArray(counts, dims=("draw", "block"))
    total = (drawn * scaled.fillna(0)).sum("block", skipna=False)
    present = (drawn * scaled.notnull()).sum("block", skipna=False)
    return back_from_scale(total / present.where(present > 0), kind).transpose(..., "draw")


def triangular(low: float, value: float, high: float, chance: np.ndarray) -> np.ndarray:
    """The quantiles at `chance` (uniform in [0, 1], any shape) of the triangular distribution, in the number's unit.

    Needs low <= value <= high; of a range without width every quantile is the value.
    """
    if high == low:
        return np.full_like(chance, value, dtype=float)
    width = high - low
    return stats.triang.ppf(chance, (value - low) / width, loc=low, scale=width)
