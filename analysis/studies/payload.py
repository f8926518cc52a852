"""The messages that HPL sends: how many of which size, over the nodes, by kind of evidence."""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.derive import at_only_level, broadcast_bytes, over_factors

# B: messages below this are called small; it has to be the least size of a class. About what a GigE link
# transfers in the latency of a message.
SMALL = 4096


@dataclass(frozen=True)
class Profile:
    """What all ranks of one campaign's runs on `network` sent.

    `messages` [1] and `bytes` [B] are over (nodes, size); dim size is the least size [B] of each class, which
    reaches up to the next. Node counts without a payload are left out, and are `missing`. `summary` is over
    (nodes): what `summarise` gives, the settings N, P and Q, `bytes_sent` [B] by all nodes' interfaces and
    `broadcast_bytes` [B], the least traffic of HPL's broadcasts. `same` is whether every other network of the
    campaign had the same messages, None where there is nothing to compare.
    """

    dataset: xr.Dataset
    evidence: str
    network: str
    messages: xr.DataArray
    bytes: xr.DataArray
    summary: xr.Dataset
    missing: tuple[int, ...]
    same: bool | None


@dataclass(frozen=True)
class Payload:
    """One profile for each campaign that has one: of the simulation first, then of the emulation."""

    profiles: tuple[Profile, ...]


def analyse(simulated: xr.Dataset | None, emulated: xr.Dataset | None) -> Payload | None:
    """The profiles of two campaigns over interconnect and nodes, of one block each; None where there is none.

    The campaign's first interconnect is taken. Raises FalloffError when a dataset holds no HPL trial or
    has several blocks.
    """
    found = (_profile(dataset) for dataset in (simulated, emulated) if dataset is not None)
    profiles = tuple(profile for profile in found if profile is not None)
    return Payload(profiles) if profiles else None


def summarise(messages: xr.DataArray, sizes: xr.DataArray) -> xr.Dataset:
    """A profile over (nodes, size) in numbers over (nodes).

    `messages` [1], `bytes` [B] and `mean_size` [B] of all; `median_size` [B] is the least size of the class
    that holds the median message, `half_bytes_size` [B] of that in which half of the bytes are reached from
    below; `small_messages` and `small_bytes` [1] are the shares of messages below SMALL.
    """
    small = messages["size"] < SMALL
    total, volume = messages.sum("size"), sizes.sum("size")
    return xr.Dataset(
        {
            "messages": total,
            "bytes": volume,
            "mean_size": volume / total,
            "median_size": _class_of_half(messages),
            "half_bytes_size": _class_of_half(sizes),
            "small_messages": messages.where(small).sum("size") / total,
            "small_bytes": sizes.where(small).sum("size") / volume,
        }
    )


def _profile(dataset: xr.Dataset) -> Profile | None:
    trial = xr.DataArray(np.arange(dataset.sizes["trial"]), dims="trial")
    laid_out = over_factors(dataset, index=trial, N=dataset.N, P=dataset.P, Q=dataset.Q)
    laid_out = laid_out.assign_attrs(dataset.attrs)
    runs = at_only_level(laid_out, "block").drop_vars("block")
    network = runs.interconnect.values[0]
    messages, sizes = _at(dataset.payload_messages, runs.index), _at(dataset.payload_bytes, runs.index)
    counted = messages.sel(interconnect=network).notnull().all("size")
    if not counted.any():
        return None
    chosen = {"interconnect": network, "nodes": counted}
    its_messages, its_sizes = (values.sel(chosen).drop_vars("interconnect") for values in (messages, sizes))
    run = runs.sel(chosen).drop_vars("interconnect")
    summary = summarise(its_messages, its_sizes).merge(run[["N", "P", "Q"]]).assign(
        bytes_sent=_at(dataset.bytes_sent, run.index).sum("node", min_count=1),
        broadcast_bytes=broadcast_bytes(run.N, run.Q),
    )
    return Profile(
        dataset=dataset,
        evidence=str(dataset.evidence.values[0]),
        network=network,
        messages=its_messages,
        bytes=its_sizes,
        summary=summary,
        missing=tuple(runs.nodes.values[~counted.values].tolist()),
        same=_same(xr.concat([messages, sizes], "quantity")),
    )


def _at(values: xr.DataArray, index: xr.DataArray) -> xr.DataArray:
    """Values over (trial, other) at the trials of an index over other dims; NaN where that is NaN."""
    plain = values.reset_coords(drop=True)
    return plain.isel(trial=index.fillna(0).astype(int)).where(index.notnull())


def _class_of_half(counts: xr.DataArray) -> xr.DataArray:
    """The class of sizes in which half of the counts is reached from below."""
    reached = counts.cumsum("size") >= counts.sum("size") / 2
    return counts["size"][reached.argmax("size")].drop_vars("size")


def _same(values: xr.DataArray) -> bool | None:
    """Whether values are the same on every interconnect, where all have any; None without a comparison."""
    compared = values.dropna("nodes")
    if compared.sizes["interconnect"] < 2 or not compared.sizes["nodes"]:
        return None
    return bool((compared == compared.isel(interconnect=0)).all())
