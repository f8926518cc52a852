"""From an HPL campaign's trials to its points: rate and share of DGEMM by block and factor."""

import json

import numpy as np
import pandas as pd
import xarray as xr

from analysis.inference.averages import mean_over
from analysis.links import networks
from runners.record import FalloffError

LABELS = {
    "rate": ("Gflop/s", "HPL rate"),
    "dgemm": ("Gflop/s", "DGEMM rate of the same nodes, harmonic mean of before and after the block"),
    "share": ("1", "share of DGEMM"),
    "drift": ("1", "relative change of the DGEMM rate within the block"),
    "bytes_sent": ("B", "bytes sent by all nodes' interfaces"),
    "broadcast_bytes": ("B", "least traffic of HPL's panel broadcasts"),
    "N": ("1", "order of the matrix"),
    "NB": ("1", "block size of the matrix"),
    "P": ("1", "rows of the process grid"),
    "Q": ("1", "columns of the process grid"),
    "ranks_per_node": ("1", "MPI processes on each node"),
}


def points(dataset: xr.Dataset, drift_limit: float | None = None) -> xr.Dataset:
    """Lay a campaign's HPL trials out over dims (block, *factors), the factors as in its design.

    Factors are always `interconnect` and `nodes`, in some campaigns also `N`, `noise` or `blas`.
    Variables: `rate` [Gflop/s], `share` of DGEMM [1], `bytes_sent` and `broadcast_bytes` [B], the
    settings `N`, `NB`, `P`, `Q`, `ranks_per_node` as far as they are no factors, and `reason`, which is
    empty where `rate` is valid and says otherwise why it is NaN; over (block, nodes) `dgemm` [Gflop/s], the
    sum over the n nodes; over (block) `drift` [1], `block_valid` and `block_reason`; over (interconnect), from the
    survey where there is one, `goodput` and `injection_limit` [bit/s] and `limit` (`link-bound`,
    `host-bound`), since only link-bound points speak of a link. A block is invalid, and all its values NaN,
    when DGEMM drifted beyond `drift_limit`, the design's unless given, or was not measured on both sides.
    A node count without its own DGEMM has a rate but no share. The attributes are the dataset's;
    `evidence` is a scalar coordinate. Raises FalloffError when there is no HPL trial or the
    evidence is of several kinds.
    """
    dataset = dataset.reset_coords()  # else each of the steps below carries all of a trial's settings along
    found = _hpl(dataset)
    dgemm, drift = _dgemm(dataset, found)
    limit = json.loads(dataset.attrs["design"])["drift_limit"] if drift_limit is None else drift_limit
    block_reason = xr.apply_ufunc(_block_fault, drift, limit, vectorize=True, output_dtypes=[object])
    block_valid = block_reason == ""
    reason = _point_reason(found).where(block_valid, block_reason)
    rate = found.rate.where(reason == "")
    dgemm = dgemm.where(block_valid)
    result = found.assign(
        rate=rate,
        dgemm=dgemm,
        share=rate / dgemm,
        drift=drift,
        block_valid=block_valid,
        block_reason=block_reason,
        reason=reason,
        **_limits(dataset, found.interconnect.values),
    )
    for name, (units, long_name) in LABELS.items():
        result[name].attrs = {"units": units, "long_name": long_name}
    return result.assign_coords(evidence=_evidence(dataset)).assign_attrs(dataset.attrs)


def over_factors(dataset: xr.Dataset, runner: str = "hpl", **columns: xr.DataArray) -> xr.Dataset:
    """Lay values of one runner's trials out over dims (block, *factors), levels in the design's order.

    Each column is over (trial), as the dataset; the trials of other roles and runners are left out, and
    so is a column that is itself a factor. Levels that are no or yes become 0 and 1. What did not run is NaN.
    Raises FalloffError when there is no trial of that runner.
    """
    dataset = dataset.reset_coords()
    chosen = np.flatnonzero((dataset.role.values == "point") & (dataset.runner.values == runner))
    if not len(chosen):
        tool = {"hpl": "HPL"}.get(runner, runner)
        raise FalloffError(
            f"Campaign {dataset.attrs['campaign']} holds no {tool} trial yet; run at least one block."
        )
    factors = json.loads(dataset.attrs["design"])["factors"]
    whole = [name for name, levels in factors.items() if all(isinstance(level, int) for level in levels)]
    factors |= {name: [int(level) for level in factors[name]] for name in whole}
    keys = {name: dataset[name].values[chosen] for name in ("block", *factors)}
    keys |= {name: keys[name].astype(int) for name in whole}
    columns = {name: column.values[chosen] for name, column in columns.items() if name not in factors}
    return pd.DataFrame(keys | columns).set_index(list(keys)).to_xarray().reindex(factors)


def at_only_level(points: xr.Dataset, *factors: str) -> xr.Dataset:
    """The points at the one level of each of these factors, which stays as a scalar coordinate.

    Raises FalloffError where a factor has several: the analysis would not know which to take.
    """
    for factor in factors:
        if points.sizes[factor] != 1:
            levels = ", ".join(str(level) for level in points[factor].values)
            raise FalloffError(
                f"Campaign {points.attrs['campaign']} needs a single level of {factor}, not {levels}."
            )
    return points.squeeze(factors)


def broadcast_bytes(N, Q, ranks_per_node=1):
    """The least number of bytes that HPL's panel broadcasts send between nodes, over all of a grid with Q columns.

    The panel that starts at row r has N - r rows of NB doubles and reaches each of the other nodes once, whatever the
    broadcast's shape. The Q processes of a row are on no fewer than M = Q / ranks_per_node nodes, rounded up:
    8 (M - 1) sum NB (N - r) >= 4 (M - 1) N^2. Row swaps, pivots, headers and what is sent twice come on top.
    """
    return 4 * (np.ceil(Q / ranks_per_node) - 1) * N**2


def _hpl(dataset):
    """The HPL trials' readings and settings; what did not run has that for its reason."""
    found = over_factors(
        dataset,
        **{name: dataset[name] for name in ("N", "NB", "P", "Q", "reason")},
        rate=dataset.hpl_rate,
        bytes_sent=dataset.bytes_sent.sum("node", min_count=1),
        ranks_per_node=dataset.ranks_per_node.fillna(1),
    )
    least = broadcast_bytes(found.N, found.Q, found.ranks_per_node)
    return found.assign(reason=found.reason.fillna("not run"), broadcast_bytes=least)


def _dgemm(dataset, found):
    """DGEMM of n nodes at once over (block, nodes), and its relative change within each block."""
    chosen = (dataset.runner.values == "dgemm") & np.isin(dataset.role.values, ["before", "after"])
    columns = {name: dataset[name].values[chosen] for name in ("role", "block", "nodes")}
    columns["nodes"] = columns["nodes"].astype(int)
    columns["rate"] = dataset.dgemm_rate[chosen].sum("node", min_count=1).values
    table = pd.DataFrame(columns).set_index(["role", "block", "nodes"]).rate.to_xarray()
    rate = table.reindex(role=["before", "after"], block=found.block, nodes=found.nodes)
    twice = rate.notnull().all("role").values
    nodes = (twice * rate.nodes.values).sum(axis=-1)
    before, after = np.where(twice, rate.values, 0).sum(axis=-1) / np.where(nodes, nodes, np.nan)
    drift = xr.DataArray(after / before - 1, {"block": rate.block})
    return mean_over(rate, "role", "rate", skipna=False), drift


def _block_fault(drift, limit):
    if np.isnan(drift):
        return "DGEMM was not measured both before and after the block"
    if abs(drift) > limit:
        return f"DGEMM drifted by {100 * drift:+.1f} % within the block, beyond {100 * limit:g} %"
    return ""


def _point_reason(found):
    """The trial's own reason, or that its traffic cannot have crossed the nodes' interfaces."""
    elsewhere = (found.reason == "") & (found.bytes_sent < found.broadcast_bytes)
    return xr.where(
        elsewhere, "fewer bytes crossed the nodes' interfaces than HPL's panels hold", found.reason
    )


def _limits(dataset, interconnects):
    """What the survey says of each interconnect's links; NaN and empty where it was not surveyed."""
    surveyed = networks(dataset).reindex(interconnects)
    return {
        "goodput": ("interconnect", surveyed.goodput, {"units": "bit/s", "long_name": "TCP payload received"}),
        "injection_limit": (
            "interconnect",
            surveyed.injection_limit,
            {"units": "bit/s", "long_name": "TCP payload that a node sends inside its CPU quota"},
        ),
        "limit": ("interconnect", surveyed.limit.fillna("").astype(str)),
    }


def _evidence(dataset):
    kinds = sorted(set(dataset.evidence.values.tolist()))
    if len(kinds) > 1:
        raise FalloffError(
            f"The dataset mixes evidence ({', '.join(kinds)}); select one kind before deriving points."
        )
    return kinds[0]
