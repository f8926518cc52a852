"""Latency and bandwidth of each network's links, from one pair's tokens, with draws of how well they are known."""

import warnings
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.derive import over_factors
from analysis.fitting.batch import refit
from analysis.models import hockney

DRAWS = 1000
SEED = 20261202


@dataclass(frozen=True)
class LinkParameters:
    """Hockney's parameters of the links, as one pair of nodes finds them.

    `time` [s] is over (interconnect, token_bytes, block, run): half of a run's median round trip. `fits`
    holds `alpha` [s] and `beta` [s/B] over (interconnect, draw), fitted to mean times: draw 0 is of all runs, the others are of resampled ones. `misfit` over
    (interconnect) is the largest part by which a mean time of all runs differs from the model's. NaN where a network
    lacks a size.
    """

    time: xr.DataArray
    fits: xr.Dataset
    misfit: xr.DataArray


def link_parameters(dataset: xr.Dataset, draws: int = DRAWS) -> LinkParameters:
    """Fit the model to the means over all runs, and to those of `draws` resamples.

    A resample draws blocks whole, the same for all networks and sizes, and within each trial of a drawn block its
    runs. With a single block it is its runs alone. Raises FalloffError when there is no token trial.
    """
    time = _times(dataset).transpose("interconnect", "token_bytes", "block", "run")
    resampled = _resampled_means(time.values, draws)
    means = np.concatenate([_mean(time.values)[..., None], resampled], axis=2).transpose(0, 2, 1)
    sizes = time.token_bytes.values
    fits = np.stack([_fits(sizes, table) for table in means])
    columns = {name: (("interconnect", "draw"), fits[..., at]) for at, name in enumerate(hockney.MODEL.parameters)}
    networks = {"interconnect": time.interconnect.values}
    modelled = hockney.hockney(sizes, *fits[:, 0].T[:, :, None])
    misfit = np.abs(means[:, 0] / modelled - 1).max(axis=1)
    return LinkParameters(time, xr.Dataset(columns, networks), xr.DataArray(misfit, networks, "interconnect"))


def _fits(sizes: np.ndarray, times: np.ndarray) -> np.ndarray:
    """alpha [s] and beta [s/B], shape (draws, 2), of times [s] of shape (draws, size)."""
    # Of times with much noise the model's own guess may be no latency at all, where the fit would stay.
    return refit(hockney.OF_LOGARITHMS, sizes, np.log(times), {"alpha": times[:, 0]}).estimates


def _times(dataset: xr.Dataset) -> xr.DataArray:
    """Half of the median round trip [s] of each run, over (run, block, interconnect, token_bytes).

    The throughput would not do: few long tokens return within a window, and the last one seldom at its end.
    """
    time = dataset.token_round_trip.isel(pair=0, drop=True).sel(quantile=0.5, drop=True) / 2
    runs = {f"run {run}": time.sel(run=run, drop=True) for run in time.run.values}
    laid_out = over_factors(dataset, runner="token_exchange", **runs).to_array("run")
    return laid_out.assign_coords(run=time.run.values).sortby("token_bytes")


def _resampled_means(time: np.ndarray, draws: int) -> np.ndarray:
    """Means of resampled runs, shape (interconnect, size, draws), of times of shape (..., block, run)."""
    chance = np.random.default_rng(SEED)
    *cells, blocks, runs = time.shape
    drawn = chance.integers(blocks, size=(draws, blocks))
    found = np.empty((*cells, draws))
    for cell in np.ndindex(*cells):
        which = chance.integers(runs, size=(draws, blocks, runs))
        found[cell] = _mean(time[cell][drawn[:, :, None], which])
    return found


def _mean(time: np.ndarray) -> np.ndarray:
    """The mean over the last two axes, blocks and runs, without what is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a mean of nothing is NaN, as it should be
        return np.nanmean(time, axis=(-2, -1))
