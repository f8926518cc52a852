"""Everything that is derived from the fan-out campaign: aggregate, shares, knee and the limiting resource."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from analysis.bottleneck import Bottleneck, bottleneck
from analysis.capacity import Limits, limits
from analysis.derive import over_factors
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.fitting.breakpoint import bracket
from analysis.inference.intervals import t_interval
from analysis.inference.over_blocks import rates, ratios
from analysis.models import segmented
from runners import fanout
from runners.record import FalloffError


@dataclass(frozen=True)
class Fan:
    """All that follows for one direction at the baseline's path and streams.

    `goodput` [bit/s] is the aggregate over (block, receivers), `means` its harmonic mean over (receivers):
    `mean`, 95 % t interval `low`, `high`, `blocks`. `fairness` is Jain's index over (receivers): `ratio` (geometric
    mean), `low`, `high`, `blocks`. `limits` are the links' by number of receivers.
    `fitted` is the segmented model of log2 of a receiver's mean goodput over the receivers, in every block:
    it is level up to the knee and falls by s per doubling beyond it; s = 1 where the aggregate does not grow
    at all. `knee` is (estimate, low, high), a 95 % t interval of its logarithm over the blocks. Where the
    data do not carry it `fitted` is None, and `refused` says why. `bracket` holds the receivers between
    which it lies for all points together. `verdict` names the limit at the baseline's
    receivers. `sender_cpu` is the share of one processor that the shared node took there, over (block).
    """

    direction: str
    goodput: xr.DataArray
    means: xr.Dataset
    fairness: xr.Dataset
    limits: Mapping[int, Limits]
    verdict: Bottleneck
    sender_cpu: xr.DataArray
    bracket: tuple[float, float]
    fitted: BlockFit | None = None
    knee: tuple[float, float, float] = (np.nan, np.nan, np.nan)
    refused: str = ""


@dataclass(frozen=True)
class FanOut:
    """The campaign's dataset and all that follows from it.

    `points` is over (block, *factors): `goodput` [bit/s] of all flows, `fairness` [1] and `sender_cpu` [1].
    `flows` has a row for each flow at the baseline's path and streams: direction, block, receivers, node,
    `goodput` [bit/s] and `share`, its part of an equal one. `baseline` holds the design's levels.
    `today` is of a shorter run of it, made anew.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    flows: pd.DataFrame
    baseline: Mapping[str, Any]
    fans: tuple[Fan, ...]
    today: "FanOut | None" = None


def analyse(dataset: xr.Dataset, today: xr.Dataset | None = None) -> FanOut:
    """Derive points, flows and the fans, of today's run too; raises FalloffError when there is no fanout trial."""
    sender = json.loads(dataset.attrs["settings"])["sender"]
    points = over_factors(
        dataset,
        runner="fanout",
        goodput=dataset.aggregate_goodput,
        fairness=dataset.fairness,
        sender_cpu=(dataset.cpu_time.sel(node=sender, drop=True) / dataset.wall_time),
    ).sortby("receivers")
    design, paths = json.loads(dataset.attrs["design"]), json.loads(dataset.attrs["interconnects"])
    baseline, changes = design["baseline"], design["changes"]
    path = paths[baseline["path"]]
    return FanOut(
        dataset=dataset,
        points=points,
        flows=_flows(dataset, baseline),
        baseline=baseline,
        fans=tuple(
            _fan(points.sel(direction=direction), baseline, changes, path, sender)
            for direction in points.direction.values.tolist()
        ),
        today=None if today is None else analyse(today),
    )


def _fan(points: xr.Dataset, baseline, changes, path, sender: int) -> Fan:
    others = {name: level for name, level in baseline.items() if name != "receivers"}
    over_receivers = points.sel(others, drop=True)
    goodput = over_receivers.goodput.transpose("block", "receivers")
    receivers = goodput.receivers.values.astype(float)
    each = np.log2(goodput / goodput.receivers)
    known = {
        "direction": points.direction.item(),
        "goodput": goodput,
        "means": rates(goodput),
        "fairness": ratios(np.log(over_receivers.fairness)),
        "limits": {int(n): _limits(path, sender, int(n), points.direction.item()) for n in receivers},
        "verdict": _verdict(points.goodput, baseline, changes),
        "sender_cpu": points.sender_cpu.sel(baseline).dropna("block"),
        "bracket": _bracket(receivers, each.values),
    }
    try:
        fitted = fit_blocks(segmented.MODEL, receivers, each.values)
    except FalloffError as error:
        return Fan(**known, refused=str(error))
    knees = fitted.by_block[:, segmented.MODEL.parameters.index("n0")]
    mean, _, low, high = np.exp(t_interval(np.log(knees)))
    return Fan(**known, fitted=fitted, knee=(float(mean), float(low), float(high)))


def _limits(path, sender: int, receivers: int, direction: str) -> Limits:
    far = fanout.nodes({"sender": sender, "receivers": receivers})
    flows = [(sender, node) if direction == "forward" else (node, sender) for node in far]
    return limits(path, flows)


def _verdict(goodput: xr.DataArray, baseline, changes) -> Bottleneck:
    """The changes whose levels were run at all, each against the baseline of the same blocks."""
    there = {
        change: goodput.sel({**baseline, **levels}).values
        for change, levels in changes.items()
        if all(level in goodput[name].values for name, level in levels.items())
    }
    return bottleneck(goodput.sel(baseline).values, there)


def _bracket(receivers, each) -> tuple[float, float]:
    """The numbers of receivers between which the knee lies for all points together; NaN without a point."""
    measured = np.isfinite(each)
    if not measured.any():
        return np.nan, np.nan
    return bracket(np.broadcast_to(receivers, each.shape)[measured], each[measured])


def _flows(dataset: xr.Dataset, baseline) -> pd.DataFrame:
    """One row for each measured flow at the baseline's path and streams."""
    chosen = (dataset.role == "point") & (dataset.runner == "fanout")
    for name in baseline.keys() - {"receivers"}:
        chosen &= dataset[name] == baseline[name]
    columns = ["direction", "block", "receivers", "node", "flow_goodput"]
    table = dataset.flow_goodput.isel(trial=np.flatnonzero(chosen)).to_dataframe().reset_index()
    table = table.dropna(subset="flow_goodput")[columns].rename(columns={"flow_goodput": "goodput"})
    together = table.groupby(["direction", "block", "receivers"]).goodput.transform("mean")
    return table.assign(share=table.goodput / together).astype({"receivers": int})
