"""From a TCP campaign's trials to its points: goodput, share of the wire limit, CPU time at both ends."""

import numpy as np
import xarray as xr

from analysis.attributes import interconnects, settings
from analysis.derive import over_factors
from analysis.statistics.intervals import mean_over
from analysis.wire import wire_limit, wire_limit_both_ways

FULL = 0.99  # from this share of a full wire on, the path is the limit
EXCESS = 1.001  # of the wire limit: a larger share means a faulty shaper; the ends' clocks differ by less
LINK_BOUND, HOST_BOUND, SHAPER = "link-bound", "host-bound", "shaper"
ENDS = {"local": "sender", "remote": "receiver"}  # netperf's names of both machines
# Share of the machine's CPU time. If more belongs to no node, it may include an end's work.
MOST_UNATTRIBUTED = 0.10


def points(dataset: xr.Dataset) -> xr.Dataset:
    """Lay a campaign's iperf3 trials out over dims (block, path, mtu, direction).

    Variables: `goodput` one way or forward and `total` of all ways [bit/s], `share` of the wire
    limit [1], `cpu_local` and `cpu_remote` [processors], `cost_local` and `cost_remote` [s/B]: CPU
    time of an end, and that for each byte, both ways and warm-up included. These are NaN if more
    than MOST_UNATTRIBUTED of the machine's CPU time belongs to no node. `busy` is the number of the
    machine's processors in use. Over (path, mtu, direction): `limit` [bit/s] of all ways, NaN
    without a rate, and `full` [bit/s], which a path in full use reaches. Raises FalloffError if
    there is no iperf3 trial.
    """
    # Otherwise each step below carries all settings along.
    dataset = dataset.reset_coords()
    total = dataset.goodput + xr.where(dataset.direction == "both", dataset.goodput_reverse, 0)
    given = settings(dataset)
    seconds = given["duration_s"] + given["omit_s"]
    unattributed = dataset.unattributed_cpu_time / dataset.host_cpu_time
    is_attributed = (np.abs(unattributed) <= MOST_UNATTRIBUTED) & (total > 0)
    cpu_time = {
        end: dataset.cpu_time.where(dataset.node == dataset[role]).sum("node", min_count=1)
        for end, role in ENDS.items()
    }
    laid_out = over_factors(
        dataset,
        "iperf3",
        goodput=dataset.goodput,
        total=total,
        busy=dataset.host_cpu_time / seconds,
        **{f"cpu_{end}": time.where(is_attributed) / seconds for end, time in cpu_time.items()},
    )
    for end in ENDS:
        laid_out[f"cost_{end}"] = laid_out[f"cpu_{end}"] / (laid_out.total / 8)
    described = interconnects(dataset)
    rates = [described[path].get("rate_bit_s", np.nan) for path in laid_out.path.values]
    rate, is_both = xr.DataArray(rates, {"path": laid_out.path}), laid_out.direction == "both"
    one_way, both_ways = (limit(rate, laid_out.mtu) for limit in (wire_limit, wire_limit_both_ways))
    limit = one_way * xr.where(is_both, 2, 1)
    full = xr.where(is_both, 2 * both_ways, one_way)
    return laid_out.assign(limit=limit, full=full, share=laid_out.total / limit).assign_attrs(
        dataset.attrs
    )


def stamps(points: xr.Dataset) -> xr.DataArray:
    """What limits each point, over (path, mtu, direction), judged by its harmonic mean over the
    blocks.

    LINK_BOUND: at least FULL of what a full wire carries. HOST_BOUND: less. SHAPER: beyond the wire
    limit, so the shaper counts wrongly. Empty if there is no limit or no reading.
    """
    mean = mean_over(points.total, "block", "rate")
    known = mean.notnull() & points.limit.notnull()
    bound = xr.where(mean >= FULL * points.full, LINK_BOUND, HOST_BOUND)
    return xr.where(mean > EXCESS * points.limit, SHAPER, bound).where(known, "")
