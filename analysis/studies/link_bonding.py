"""Everything that is derived from HPL and TCP over one link and over two: gains, their growth, candidates."""

import json
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, known_rate, over_factors
from analysis.inference.over_blocks import rates, ratios
from analysis.rails import lesser_shares, sent_by_lesser
from analysis.statistics.judgement import Control, Interval, Judgement, judge, judge_control, within_campaign
from analysis.statistics.reproduction import prediction_interval
from analysis.wire import wire_limit

BY_PEER, BY_CONNECTION = "ecmp_layer2", "ecmp_layer34"
AS_BONDED = (BY_PEER, BY_CONNECTION, "bond_8023ad", "bond_balance_rr")  # what a blog of 2009 may have had


@dataclass(frozen=True)
class Way:
    """A way of using two links, with so many processes a node, against one link in the same blocks.

    `log_gain` is the logarithm of the ratio of the HPL rates over (block, nodes); `gains` is over (nodes):
    `ratio` (geometric mean), its 95 % t interval `low` and `high`, and `blocks`. `lesser` is over (nodes) as
    `lesser_shares` has it. `growth` judges the rise of the gain from the fewest nodes that use a network to the
    most: `falls off` where it grows beyond the margin, `flat` where it does not; None without two such node
    counts. `control` is of one node, which uses no link: there the gain must be none.
    """

    aggregation: str
    ranks_per_node: int
    log_gain: xr.DataArray
    gains: xr.Dataset
    lesser: xr.Dataset
    growth: Judgement | None
    control: Control | None


@dataclass(frozen=True)
class Candidate:
    """What could explain a published gain at the fewest nodes: a way, with so many processes a node.

    `none` judges whether its gain there is none (`holds`). `one_pair` is the 95 % prediction interval for the
    ratio of a single pair of runs, all that a source without repeats has; None from fewer than two blocks.
    """

    aggregation: str
    ranks_per_node: int
    none: Control
    one_pair: Interval | None


@dataclass(frozen=True)
class Hpl:
    """HPL over one link and two.

    `points` is over (block, aggregation, nodes, ranks_per_node): `rate` [Gflop/s], `share` [1] of what the nodes are
    known to compute (its attribute `of` says what that is), and `lesser` [1], the share of the lesser link. `shares`
    are the geometric means of `share` over the blocks (`ratio`, `low`, `high`, `blocks`).
    `candidates` are at `fewest` nodes. `by_connection` holds, for each number of processes a node, the ratio
    there of hashing connections to hashing peers, where both were run.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    shares: xr.Dataset
    baseline: str
    margin: float
    least_share: float
    fewest: int
    ways: tuple[Way, ...]
    candidates: tuple[Candidate, ...]
    by_connection: dict[int, Control]


@dataclass(frozen=True)
class Micro:
    """TCP between two nodes.

    `points` is over (block, aggregation, streams): `goodput` [bit/s] and `lesser` [1]; `goodputs` the harmonic
    means over the blocks and `lesser` as `lesser_shares` has it, over (aggregation, streams). `wire_limit`
    [bit/s] is that of one link.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    goodputs: xr.Dataset
    lesser: xr.Dataset
    wire_limit: float


@dataclass(frozen=True)
class LinkBonding:
    """Both campaigns; `micro` is None where it was not run, and `today` is of shorter runs, made anew."""

    hpl: Hpl
    micro: Micro | None = None
    today: "LinkBonding | None" = None


def analyse(
    hpl: xr.Dataset,
    micro: xr.Dataset | None = None,
    hpl_today: xr.Dataset | None = None,
    micro_today: xr.Dataset | None = None,
) -> LinkBonding:
    """Derive gains, growth and candidates from the campaign link_hpl, and goodputs from link_micro.

    Raises FalloffError when a dataset has no trial of its tool, or HPL ran over several interconnects.
    """
    return LinkBonding(
        hpl=_hpl(hpl),
        micro=None if micro is None else _micro(micro),
        today=None if hpl_today is None else analyse(hpl_today, micro_today),
    )


def _hpl(dataset: xr.Dataset) -> Hpl:
    points = over_factors(dataset, rate=dataset.hpl_rate, lesser=sent_by_lesser(dataset))
    points = at_only_level(points, "interconnect").drop_vars("interconnect")
    points["lesser"] = points.lesser.where(points.nodes > 1)  # one node has nobody to send to
    known = known_rate(json.loads(dataset.attrs["testbed_settings"]), points.rate)
    points["share"] = (points.rate / known).assign_attrs(units="1", of=known.attrs["of"])
    design = json.loads(dataset.attrs["design"])
    baseline, margin, fewest = design["baseline"], design["margin"], design["fewest_nodes"]
    each = points.ranks_per_node.values.tolist()
    others = [name for name in points.aggregation.values.tolist() if name != baseline]
    log_gains = {
        (way, ranks): log_ratios(points, way, baseline, "aggregation").sel(ranks_per_node=ranks, drop=True)
        for way in others
        for ranks in each
    }
    return Hpl(
        dataset=dataset,
        points=points,
        shares=ratios(np.log(points.share)),
        baseline=baseline,
        margin=margin,
        least_share=design["least_share"],
        fewest=fewest,
        ways=_corrected(
            [
                _way(*key, log_gain, points, design, dataset.evidence.values[0].item())
                for key, log_gain in log_gains.items()
            ]
        ),
        candidates=tuple(
            _candidate(*key, log_gain.sel(nodes=fewest).values, margin)
            for key, log_gain in log_gains.items()
            if fewest in log_gain.nodes and key[0] in AS_BONDED
        ),
        by_connection={
            ranks: judge_control(_against(log_gains, ranks).sel(nodes=fewest).values, margin)
            for ranks in each
            if {BY_PEER, BY_CONNECTION} <= set(others) and fewest in points.nodes
        },
    )


def _corrected(ways: list[Way]) -> tuple[Way, ...]:
    """The ways with their growths corrected for each other."""
    growths = iter(within_campaign([way.growth for way in ways if way.growth]))
    return tuple(replace(way, growth=next(growths)) if way.growth else way for way in ways)


def _way(aggregation, ranks, log_gain: xr.DataArray, points, design, evidence: str) -> Way:
    most, fewest, margin = int(log_gain.nodes.max()), design["fewest_nodes"], design["margin"]
    there = fewest in log_gain.nodes and most > fewest
    grown = log_gain.sel(nodes=most) - log_gain.sel(nodes=fewest) if there else None
    lesser = points.lesser.sel(aggregation=aggregation, ranks_per_node=ranks, drop=True)
    return Way(
        aggregation=aggregation,
        ranks_per_node=ranks,
        log_gain=log_gain,
        gains=ratios(log_gain),
        lesser=lesser_shares(lesser, design["least_share"]),
        growth=None if grown is None else judge(-grown.values, margin, evidence),
        control=judge_control(log_gain.sel(nodes=1).values, margin) if 1 in log_gain.nodes else None,
    )


def _candidate(aggregation, ranks, log_gain: np.ndarray, margin: float) -> Candidate:
    known = log_gain[np.isfinite(log_gain)]
    one_pair = None
    if len(known) > 1:
        low, high = np.exp(prediction_interval(known, 1)).tolist()
        one_pair = low, high
    return Candidate(aggregation, ranks, judge_control(log_gain, margin), one_pair)


def _against(log_gains, ranks) -> xr.DataArray:
    return log_gains[BY_CONNECTION, ranks] - log_gains[BY_PEER, ranks]


def _micro(dataset: xr.Dataset) -> Micro:
    points = over_factors(
        dataset, runner="iperf3", goodput=dataset.goodput, lesser=sent_by_lesser(dataset)
    ).sortby("streams")
    points = at_only_level(points, "interconnect")
    link = json.loads(dataset.attrs["interconnects"])[points.interconnect.item()]
    least = json.loads(dataset.attrs["design"])["least_share"]
    points = points.drop_vars("interconnect")
    return Micro(
        dataset=dataset,
        points=points,
        goodputs=rates(points.goodput),
        lesser=lesser_shares(points.lesser, least),
        wire_limit=float(wire_limit(link["rate_bit_s"], link["mtu"])),
    )
