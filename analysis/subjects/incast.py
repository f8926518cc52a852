"""Many senders to one receiver in synchronised blocks: how much of the receiver's link they fill,
and where that collapses.

A block is complete when the last part of it is, so that a sender whose last packets were dropped,
and who waits for TCP's retransmission timeout, leaves the link idle for all (Phanishayee et al.,
FAST 2008).
"""

import numpy as np
import xarray as xr

from analysis.dataset.derive import at_only_level, over_factors, slowed
from analysis.dataset.wire import wire_limit
from analysis.statements.statement import at_place
from analysis.statistics.intervals import over_blocks, t_interval

COLLAPSED = 0.5  # less than this share of the link's payload rate
SETUPS = {
    "cubic": "Linux: CUBIC, 256 KiB, 64 KiB a port",
    "reno": "Reno instead of CUBIC",
    "acks": "Reno as in 2008, without RACK",
    "small_blocks": "blocks of 32 KiB from each sender",
    "large_blocks": "blocks of 1 MiB from each sender",
    "shared": "512 KiB that all ports share",
    "marks": "marks from 20 frames on (ECN)",
    "pause": "pauses above 32 KiB",
}


def share_of_link(runs: xr.Dataset) -> xr.DataArray:
    """Goodput over the most TCP payload that the receiver's link carries [1], over (block, *factors
    but the network); NaN where a trial gave no reading.

    Raises FalloffError if there is no trial of incast, or there are several networks.
    """
    laid_out = over_factors(runs, "incast", goodput=runs.goodput * slowed(runs))
    goodput = at_only_level(laid_out.assign_attrs(runs.attrs), "interconnect").goodput
    network = runs.falloff.networks[goodput.interconnect.item()]
    return goodput / wire_limit(network.rate_bit_s, network.mtu)


def collapses_at(share: xr.DataArray) -> xr.DataArray:
    """The number of senders from which on the share stays below COLLAPSED, over all dims
    of `share` but `senders`; infinite if the most senders are not below it, NaN if a value that
    decides it is missing.

    It is linear in the logarithm of the number between the last value above and the next. A dip
    with few senders, after which the share recovers, is none.
    """
    return xr.apply_ufunc(
        _last_crossing,
        share.sortby("senders"),
        kwargs={"senders": np.sort(share.senders.values), "below": COLLAPSED},
        input_core_dims=[["senders"]],
        vectorize=True,
    )


def _last_crossing(share: np.ndarray, senders: np.ndarray, below: float) -> float:
    places = np.flatnonzero(~(share < below))  # also those that are not known
    if not len(places):
        return float(senders[0])
    last = places[-1]
    if last + 1 == len(share) or np.isnan(share[last]):
        return np.nan if np.isnan(share[last]) else np.inf
    step = (share[last] - below) / (share[last] - share[last + 1])
    return float(senders[last] * (senders[last + 1] / senders[last]) ** step)


def mean_collapse(collapse: xr.DataArray) -> tuple[float, float, float]:
    """(mean, low, high) of the senders at which goodput collapses, over (block): the geometric mean
    with its 95 % t interval.

    Infinite where it does in no block; unknown (NaN) where some blocks collapse and others do not,
    or no trial decides.
    """
    decided = collapse.dropna("block")
    if np.isfinite(decided).all():
        return at_place(over_blocks(decided, "ratio"), "mean")
    return np.inf if np.isinf(decided).all() else np.nan, np.nan, np.nan


def growth_with_buffer(collapse: xr.DataArray) -> tuple[float, float, float]:
    """(estimate, low, high) of b in senders = a buffer^b: the slope of the logarithm of the senders
    at which goodput collapses over that of the buffer, with its 95 % t interval over the blocks.

    `collapse` is over (block, buffer_bytes). Buffers at which it is not reached in a block are left
    out there, so that b is rather too small. NaN with fewer than two buffers.
    """
    slopes = []
    for block in collapse.transpose("block", "buffer_bytes").values:
        is_finite = np.isfinite(block)
        if is_finite.sum() >= 2:
            buffers = np.log2(collapse.buffer_bytes.values[is_finite])
            slopes.append(np.polyfit(buffers, np.log2(block[is_finite]), 1)[0])
    if not slopes:
        return np.nan, np.nan, np.nan
    mean, low, high = t_interval(slopes)
    return float(mean), float(low), float(high)
