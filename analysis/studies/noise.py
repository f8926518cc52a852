"""Everything that is derived from the campaign with an unsynchronised daemon on every node, in one place."""

import json
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis import models
from analysis.contrasts import differences
from analysis.derive import at_only_level, over_factors, points
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.inference.over_blocks import ratios
from analysis.inference.ratio_of_means import ratio_of_means
from analysis.inference.verdict import Verdict, judge_fall
from runners.record import FalloffError


@dataclass(frozen=True)
class Level:
    """One level of noise against none, on the same nodes within the same block.

    `noise` is the share of a node that the daemon was asked to take. `log_ratio` is
    log(rate with noise / rate without) over (block, nodes). `losses` is over (nodes): `ratio` with its 95 %
    t interval `low`, `high` and `blocks`, the share `taken` in fact, and the `amplification` with
    Fieller's 95 % interval `amplification_low`, `amplification_high`: the mean log-loss of the rate over
    that of a node's time, so that it is 1 where HPL loses what its nodes lose, and n where the losses of n
    nodes add up. `growth` judges what is lost on the most nodes beyond the loss on the fewest.
    `curve` is the power law of the ratio over nodes, None where the data do not allow it.
    """

    noise: float
    log_ratio: xr.DataArray
    losses: xr.Dataset
    growth: Verdict
    curve: BlockFit | None


@dataclass(frozen=True)
class Noise:
    """The campaign's dataset and all that follows from it; `levels` of noise above none, ascending."""

    dataset: xr.Dataset
    points: xr.Dataset
    levels: tuple[Level, ...]


def analyse(dataset: xr.Dataset) -> Noise:
    """Derive points and levels; raises FalloffError when there is no HPL trial or several interconnects."""
    derived = points(dataset)
    design = json.loads(dataset.attrs["design"])
    without = design["control"]
    rate = np.log(at_only_level(derived, "interconnect").rate)
    log_ratios = (rate - rate.sel(noise=without, drop=True)).rename("log_ratio")
    taken = taken_shares(dataset).squeeze("interconnect").where(log_ratios.notnull())
    return Noise(
        dataset=dataset,
        points=derived,
        levels=tuple(
            _level(float(noise), log_ratios.sel(noise=noise), taken.sel(noise=noise), design, derived)
            for noise in sorted(derived.noise.values)
            if noise != without
        ),
    )


def taken_shares(dataset: xr.Dataset) -> xr.DataArray:
    """The share of a node's CPU quota that the daemon took, mean over the nodes, over (block, *factors).

    It is the daemon's own CPU time over its wall time and the quota's share of a core; NaN without a daemon.
    """
    cpu_share = json.loads(dataset.attrs["settings"])["cpu_share"]
    taken = (dataset.noise_cpu_time / dataset.noise_wall_time / cpu_share).mean("node")
    laid_out = over_factors(dataset, taken=taken).taken
    return laid_out.assign_attrs(units="1", long_name="share of the node that the daemon took")


def _level(
    noise: float, log_ratio: xr.DataArray, taken: xr.DataArray, design: dict, derived: xr.Dataset
) -> Level:
    log_ratio, taken = log_ratio.drop_vars("noise"), taken.drop_vars("noise")
    fall = differences(log_ratio, design["baseline_nodes"])
    return Level(
        noise=noise,
        log_ratio=log_ratio,
        losses=ratios(log_ratio).assign(taken=taken.mean("block"), **_amplification(log_ratio, taken)),
        growth=judge_fall(fall.values, design["margin"], derived.evidence.item()),
        curve=_curve(log_ratio),
    )


def _amplification(log_ratio: xr.DataArray, taken: xr.DataArray) -> dict[str, xr.DataArray]:
    """Ratio of the mean log-losses, and its interval, over (nodes)."""
    found = xr.apply_ufunc(
        ratio_of_means,
        -log_ratio,
        -np.log1p(-taken),
        input_core_dims=[["block"], ["block"]],
        output_core_dims=[[], [], []],
        vectorize=True,
    )
    return dict(zip(("amplification", "amplification_low", "amplification_high"), found))


def _curve(log_ratio: xr.DataArray) -> BlockFit | None:
    table = np.exp(log_ratio).transpose("block", "nodes").values
    try:
        return fit_blocks(models.find("power_law"), log_ratio.nodes.values.astype(float), table)
    except FalloffError:  # a single node count, or no block with all of them
        return None
