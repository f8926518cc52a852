"""From an HPL campaign's trials to its points: the rate, and its share of what the nodes can
compute, by block and factor."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from analysis.dataset.accessor import RecordedTestbed
from analysis.statistics.intervals import mean_over, ratios
from runners.records.record import FalloffError

# What a share is relative to.
PACED = "the nodes' paced rate"
MODELLED = "the modelled nodes' DGEMM rate"
PEAK = "Rpeak"
ONE_NODE = "n times the rate on one node"


def by_trial(dataset: xr.Dataset) -> pd.DataFrame:
    """A row for each trial, with every variable that has one value a trial.

    What has several, such as a time for each size of message, is in the dataset, where it has a dim
    of its own.
    """
    return dataset.drop_dims({*dataset.dims} - {"trial"}).to_dataframe()


def points(dataset: xr.Dataset) -> xr.Dataset:
    """Lay a campaign's HPL trials out over dims (block, *factors), the factors as in its design.

    Factors are always `interconnect` and `nodes`, in some campaigns also `N`, `daemon` or `blas`.
    Variables: `rate` [Gflop/s] on the testbed's own scale of time; `share` [1] of `known_rate`; the
    settings `N`, `NB`, `P`, `Q` and `ranks_per_node` unless they are factors; and `reason`, which
    is empty where `rate` is valid and otherwise says why it is NaN. `known_rate` [Gflop/s], over
    (block, nodes), is described at the function `known_rate`; its attribute `of` says what it is.
    The attributes are the dataset's; `evidence` is a scalar coordinate.

    Raises FalloffError if there is no HPL trial or there are several kinds of evidence.
    """
    # Otherwise each step below carries all settings along.
    dataset = dataset.reset_coords()
    kinds = sorted(set(dataset.evidence.values.tolist()))
    if len(kinds) > 1:
        mixed = f"The dataset mixes evidence ({', '.join(kinds)})"
        raise FalloffError(f"{mixed}; select one kind before deriving points.")
    result = over_factors(
        dataset,
        N=dataset.N,
        NB=dataset.NB,
        P=dataset.P,
        Q=dataset.Q,
        reason=dataset.reason,
        rate=dataset.hpl_rate * slowed(dataset),
        bytes_sent=dataset.bytes_sent.sum("node", min_count=1),
        ranks_per_node=dataset.ranks_per_node.fillna(1),
    )
    least = broadcast_bytes(result.N, result.Q, result.ranks_per_node)
    reason = result.reason.fillna("not run")
    elsewhere = (reason == "") & (result.bytes_sent < least)
    reason = reason.where(
        ~elsewhere, "fewer bytes crossed the nodes' interfaces than HPL's panels hold"
    )
    rate = result.rate.where(reason == "")
    reference_rate = known_rate(dataset.falloff.testbed, rate)
    result = result.assign(
        rate=rate, known_rate=reference_rate, share=rate / reference_rate, reason=reason
    )
    result.share.attrs = reference_rate.attrs
    return result.assign_coords(evidence=kinds[0]).assign_attrs(dataset.attrs)


def known_rate(
    testbed: RecordedTestbed, rate: xr.DataArray, peak: xr.DataArray | None = None
) -> xr.DataArray:
    """The rate that the n nodes are known to compute at together [Gflop/s], over nodes and block or
    interconnect; its attribute `of` says how it is known.

    It is the first of these that a testbed's description has: the rate at which its nodes are paced
    (`PACED`), that of the modelled node (`MODELLED`), the theoretical peak (`PEAK`). Next is the
    `peak` [flop/s] of a node, over the dims of `rate`, that results which were run elsewhere came
    with. Otherwise it is n times the harmonic mean of `rate` on one node (`ONE_NODE`), in the same
    block where a campaign was run in blocks, else of the network. Where none ran on one node, it is
    n times the rate per node on the fewest, of the network. A network that lacks these runs has the
    mean of the others.
    """
    described = {
        PACED: testbed.node.get("flop_s"),
        MODELLED: testbed.rates.get("dgemm_flop_s", {}).get("value"),
        PEAK: testbed.rpeak.get("value"),
    }
    stated = [name for name, value in described.items() if isinstance(value, (int, float))]
    if stated:
        of = stated[0]
        per_node = xr.full_like(rate.block, described[of] / 1e9, dtype=float)
    elif peak is not None and peak.notnull().any():
        of, per_node = PEAK, peak.mean("block") / 1e9
    else:
        there, count = rate.dropna("nodes", how="all").nodes.values.tolist(), counted_in(rate)
        fewest = min(there, default=1)
        is_one = fewest == 1 and count == "nodes"
        of = ONE_NODE if is_one else f"n times the rate per node on the fewest {count}"
        alone = rate.reindex(nodes=[fewest]).isel(nodes=0, drop=True) / fewest
        level = "block" if is_one and peak is None else "interconnect"
        per_node = mean_over(alone, [dim for dim in alone.dims if dim != level], "rate")
        if level == "interconnect":
            per_node = per_node.fillna(mean_over(per_node, ..., "rate"))
    known_rates = per_node * rate.nodes
    return known_rates.transpose("block", "nodes", ..., missing_dims="ignore").assign_attrs(of=of)


def counted_in(points: xr.Dataset | xr.DataArray) -> str:
    """What the dim nodes counts: "nodes", or "ranks" where only these are known."""
    return points.nodes.attrs.get("long_name", "nodes")


def means(values: xr.DataArray) -> xr.Dataset:
    """Geometric means of shares or rates over blocks, with a 95 % t interval: `ratio`, `low`,
    `high`, `blocks`. Runs of an unknown network (""), which may be of several, have no interval."""
    result = ratios(xr.ufuncs.log(values))
    return result.assign(result[["low", "high"]].where(result.interconnect != ""))


def slowed(dataset: xr.Dataset) -> xr.DataArray:
    """How many times slower than its testbed describes each trial ran [1], over (trial): its
    dilation over the described.

    Raises FalloffError if what was kept of the testbed is damaged.
    """
    node = dataset.falloff.testbed.node
    described = node.get("dilation", 1) if isinstance(node, Mapping) else None
    if not isinstance(described, (int, float)) or not described > 0:
        raise FalloffError(f"the testbed's dilation is no number above 0: {node!r:.60}")
    return dataset.dilation.fillna(described) / described


def over_factors(dataset: xr.Dataset, runner: str = "hpl", **columns: xr.DataArray) -> xr.Dataset:
    """Lay values of one runner's trials out over dims (block, *factors), levels in the design's
    order.

    Each column is over (trial), like the dataset. Trials of other roles and runners are left out,
    and so is a column that is itself a factor. Levels that are no or yes become 0 and 1. Points
    that did not run are NaN. The coordinate `session`, over (block), is there if sessions were
    recorded and matter. Raises FalloffError if there is no trial of that runner.
    """
    dataset = dataset.reset_coords()
    chosen = np.flatnonzero((dataset.role.values == "point") & (dataset.runner.values == runner))
    if not len(chosen):
        tool = "HPL" if runner == "hpl" else runner
        what = f"Campaign {dataset.attrs['campaign']} holds no {tool} trial yet"
        raise FalloffError(f"{what}; run at least one block.")
    factors = dict(dataset.falloff.design.factors)
    keys = {name: dataset[name].values[chosen] for name in ("block", *factors)}
    for name, levels in factors.items():
        if all(isinstance(level, int) for level in levels):
            factors[name] = [int(level) for level in levels]
            keys[name] = keys[name].astype(int)
    values = {
        name: column.values[chosen] for name, column in columns.items() if name not in factors
    }
    laid_out = pd.DataFrame(keys | values).set_index(list(keys)).to_xarray().reindex(factors)
    of_blocks, blocks = dataset.falloff.block_sessions, laid_out.block.values.tolist()
    if "simulated" in dataset.evidence.values or not set(blocks) <= of_blocks.keys():
        return laid_out
    # A block that was interrupted is of the session that ended it.
    return laid_out.assign_coords(session=("block", [of_blocks[block][-1] for block in blocks]))


def at(values: xr.DataArray, **levels: Any) -> xr.DataArray:
    """Values at one level of each of these factors; NaN if one of them was not run."""
    wanted = values.reindex({factor: [level] for factor, level in levels.items()})
    return wanted.isel(dict.fromkeys(levels, 0), drop=True)


def at_only_level(points: xr.Dataset, *factors: str) -> xr.Dataset:
    """The points at the only level of each of these factors, which stays as a scalar coordinate.

    Raises FalloffError if a factor has several levels: the analysis would not know which to take.
    """
    for factor in factors:
        if points.sizes[factor] != 1:
            levels = ", ".join(map(str, points[factor].values))
            what = f"Campaign {points.attrs['campaign']} needs a single level of {factor}"
            raise FalloffError(f"{what}, not {levels}.")
    return points.squeeze(factors)


def broadcast_bytes(N: Any, Q: Any, ranks_per_node: Any = 1) -> Any:
    """The least number of bytes that HPL's panel broadcasts send between nodes, over the whole run
    on a grid with Q columns.

    The panel that starts at row r has N - r rows of NB doubles. It reaches each of the other nodes
    once, whatever the shape of the broadcast. The Q processes of a row are on at least M = Q /
    ranks_per_node nodes, rounded up: 8 (M - 1) sum NB (N - r) >= 4 (M - 1) N^2. Row swaps, pivots,
    headers and data sent twice come on top.
    """
    return 4 * (np.ceil(Q / ranks_per_node) - 1) * N**2
