"""Hockney's latency and bandwidth of one pair on every path, and what a path adds to the local wire's."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.inference.intervals import t_interval
from analysis.inference.ratio_of_means import ratio_of_means
from analysis.models import hockney
from analysis.studies.token_points import Place
from runners.record import FalloffError

Estimate = tuple[float, float, float]  # mean, and its 95 % t interval over the blocks (NaN: not known)
UNKNOWN: Estimate = (np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Latency:
    """One pair on a path: `time` [s] one way over (block, token_bytes), half of the median exchange.

    Of a median, since what else the machine does delays some exchanges by many times what an exchange takes.
    `fitted` is Hockney's model of every block, on the logarithms of the times; None where the data do not
    carry it, and `refused` says why. `alpha` [s] and `beta` [s/B] are over the blocks, and `half` = n1/2 [B] is the ratio of their
    means with Fieller's 95 % interval.
    """

    place: Place
    time: xr.DataArray
    fitted: BlockFit | None = None
    alpha: Estimate = UNKNOWN
    beta: Estimate = UNKNOWN
    half: Estimate = UNKNOWN
    refused: str = ""

    @property
    def misfit(self) -> float:
        """The largest part by which the mean time at a size differs from the model's; NaN without a fit."""
        if self.fitted is None:
            return np.nan
        modelled, *_ = self.fitted.band(self.time.token_bytes.values, "cost", _seconds)
        measured = self.time.dropna("block").mean("block").values
        return float(np.abs(measured / modelled - 1).max())

    def parameters(self) -> xr.Dataset:
        """`alpha` and `beta` of every whole block, over (block); nothing without a fit."""
        names = hockney.MODEL.parameters
        if self.fitted is None:
            return xr.Dataset({name: ("block", np.empty(0)) for name in names}, {"block": np.empty(0, int)})
        columns = dict(zip(names, self.fitted.by_block.T))
        blocks = self.time.dropna("block").block.values
        return xr.Dataset({name: ("block", column) for name, column in columns.items()}, {"block": blocks})

    def throughput(self, token_bytes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The fitted tokens written x size [B/s], shape of token_bytes, and its 95 % band over the blocks."""
        mean, low, high = (token_bytes / (2 * time) for time in self.fitted.band(token_bytes, "cost", _seconds))
        return mean, high, low  # a longer time is less throughput


@dataclass(frozen=True)
class Added:
    """What a path adds to the path `against` of the same rate: `alpha` [s], `beta` [s/B], block by block."""

    path: str
    against: str
    alpha: Estimate
    beta: Estimate
    blocks: int


def latency(place: Place, round_trip: xr.DataArray) -> Latency:
    """Fit the model to one pair's median round trips [s], over (block, token_bytes)."""
    time = (round_trip / 2).transpose("block", "token_bytes")
    try:
        fitted = fit_blocks(hockney.OF_LOGARITHMS, time.token_bytes.values, np.log(time.values))
    except FalloffError as error:
        return Latency(place, time, refused=str(error))
    alpha, beta = fitted.by_block.T
    return Latency(place, time, fitted, estimate(alpha), estimate(beta), ratio_of_means(alpha, beta))


def added(latencies: tuple[Latency, ...], against: str) -> tuple[Added, ...]:
    """What each path adds to the topology `against` of the same rate, where both were run."""
    local = {it.place.rate: it for it in latencies if it.place.topology == against}
    others = [it for it in latencies if it.place.topology != against and it.place.rate in local]
    return tuple(_added(it, local[it.place.rate]) for it in others)


def estimate(values) -> Estimate:
    """The mean and its 95 % t interval over the blocks, of shape (blocks,); NaN where it is not known."""
    if not len(values):
        return UNKNOWN
    mean, _, low, high = t_interval(values)
    return float(mean), float(low), float(high)


def _seconds(_, log_time: np.ndarray) -> np.ndarray:
    return np.exp(log_time)


def _added(other: Latency, local: Latency) -> Added:
    more = other.parameters() - local.parameters()  # in the blocks that both have
    alpha, beta = (estimate(more[name].values) for name in ("alpha", "beta"))
    return Added(other.place.path, local.place.path, alpha, beta, more.sizes["block"])
