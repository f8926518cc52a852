"""Datagrams of every frame size through one path and another: packets per second at both ends, and loss.

A datagram may be lost on the path, or at the receiver's socket, when its processor is slower than the path. Only
the first speaks of the path; the interfaces' counters tell them apart.
"""

import json
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.derive import over_factors
from analysis.inference.ratio_of_means import ratio_of_means
from analysis.statistics.judgement import Control, judge_control
from analysis.wire import packet_limit


@dataclass(frozen=True)
class PacketSizes:
    """The campaign's dataset and its points over (block, path, frame_bytes): packets `sent` and `received`
    [1/s], `loss` [1], the share of datagrams that did not reach the receiver's socket, `delivered` [1], the share
    of what the sender's interface sent that reached the receiver's, and over (path, frame_bytes) `limit` [1/s]
    of the wire, NaN without a rate. `losses` is over (path, frame_bytes): `loss`, the mean number of lost datagrams a
    second over that of those sent, with Fieller's 95 % interval `low`, `high` over the blocks.

    `blocking` judges for each frame size whether `compared`, a path with a switch, delivers as large a share
    as `reference`, a cable: `holds` is an equivalence within the design's margin.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    losses: xr.Dataset
    compared: str
    reference: str
    blocking: dict[int, Control]


def analyse(dataset: xr.Dataset) -> PacketSizes:
    """Lay the packets out and compare the paths; raises FalloffError when there is no udp_sizes trial."""
    found = over_factors(
        dataset,
        "udp_sizes",
        sent=dataset.packets_sent_per_s,
        received=dataset.packets_received_per_s,
        loss=dataset.datagram_loss,
        delivered=_of(dataset.bytes_received, dataset.receiver) / _of(dataset.bytes_sent, dataset.sender),
    )
    described, design = (json.loads(dataset.attrs[name]) for name in ("interconnects", "design"))
    rates = [described[path].get("rate_bit_s", np.nan) for path in found.path.values]
    compared, reference = design["primary"]
    ratio = np.log(found.delivered.sel(path=compared) / found.delivered.sel(path=reference))
    return PacketSizes(
        dataset=dataset,
        points=found.assign(limit=packet_limit(xr.DataArray(rates, {"path": found.path}), found.frame_bytes)),
        losses=_losses(found),
        compared=compared,
        reference=reference,
        blocking={
            int(size): judge_control(ratio.sel(frame_bytes=size).values, design["margin"])
            for size in found.frame_bytes.values
        },
    )


def _losses(found: xr.Dataset) -> xr.Dataset:
    parts = xr.apply_ufunc(
        ratio_of_means,
        found.sent * found.loss,
        found.sent,
        input_core_dims=[["block"], ["block"]],
        output_core_dims=[[], [], []],
        vectorize=True,
    )
    return xr.Dataset(dict(zip(("loss", "low", "high"), parts)))


def _of(values: xr.DataArray, node: xr.DataArray) -> xr.DataArray:
    """Values over (trial, node) at each trial's own node; NaN where it has none."""
    return values.where(values.node == node).sum("node", min_count=1)
