"""From a TCP campaign's trials to its points: goodput, share of the wire limit, CPU time at both ends."""


import numpy as np
import xarray as xr

from analysis import attributes, cpu_account
from analysis.derive import over_factors
from analysis.statistics.intervals import mean_over
from analysis.wire import wire_limit, wire_limit_both_ways

FULL = 0.99  # from this part of what the wire carries on, the path is what limits
STAMPS = ("link-bound", "host-bound", "shaper")
EXCESS = 1.001  # beyond this part of the wire limit a shaper lets too much pass; the ends' clocks differ by less

LABELS = {
    "goodput": ("bit/s", "TCP payload received, one way or forward"),
    "goodput_reverse": ("bit/s", "TCP payload received the other way at the same time"),
    "total": ("bit/s", "TCP payload received, both ways together"),
    "share": ("1", "share of the wire limit, of both ways together"),
    "cpu_local": ("1", "processors that the client's machine used"),
    "cpu_remote": ("1", "processors that the other machine used"),
    "cpu_mean": ("1", "processors that the machines used on average, with what is nobody's"),
    "cost_local": ("s/B", "CPU time of the client's machine per byte that it sent and received"),
    "cost_remote": ("s/B", "CPU time of the other machine per byte that it sent and received"),
    "instructions_local": ("1/B", "instructions of the client's machine per byte that it sent and received"),
    "instructions_remote": ("1/B", "instructions of the other machine per byte that it sent and received"),
    "unattributed": ("1", "share of the machine's CPU time that is nobody's"),
    "retransmits": ("1", "TCP segments sent again, both ways together"),
}


def points(dataset: xr.Dataset) -> xr.Dataset:
    """Lay a campaign's iperf3 trials out over dims (block, path, mtu, direction).

    Variables: `goodput`, `goodput_reverse` (NaN but for `both`) and `total` [bit/s], `share` of the wire limit
    [1], `cpu_local` and `cpu_remote` [processors], `cpu_mean` of both with what is nobody's, `cost_local` and
    `cost_remote` [s/B] (NaN where too much CPU time is nobody's, see `cpu_account`), `instructions_local` and
    `instructions_remote` [1/B] (NaN where the machine cannot count them), `unattributed` [1], `retransmits` [1] and
    `reason`, which is empty where the trial is valid. CPU time and bytes are of the whole transfer, the warm-up at the same rate included.
    Over (path, mtu, direction) `limit` [bit/s] of all ways together, NaN without a rate, and `full` [bit/s],
    which a path in full use reaches. Raises FalloffError when there is no iperf3 trial.
    """
    dataset = dataset.reset_coords()  # else each of the steps below carries all of a trial's settings along
    both = dataset.direction == "both"
    reverse = dataset.goodput_reverse.where(both)
    total = dataset.goodput + xr.where(both, reverse, 0)
    settings = attributes.settings(dataset)
    seconds = settings["duration_s"] + settings["omit_s"]
    of_ends = {end: cpu_account.of_end(dataset, end).where(total > 0) for end in cpu_account.ENDS}
    found = over_factors(
        dataset,
        "iperf3",
        goodput=dataset.goodput,
        goodput_reverse=reverse,
        total=total,
        unattributed=cpu_account.unattributed(dataset),
        retransmits=dataset.retransmits + xr.where(both, dataset.retransmits_reverse, 0),
        cpu_mean=cpu_account.of_both(dataset).where(total > 0) / (2 * seconds),
        reason=dataset.reason,
        **{f"cpu_{end}": time / seconds for end, time in of_ends.items()},
        **{f"cost_{end}": time / (seconds * total / 8) for end, time in of_ends.items()},
        **{
            f"instructions_{end}": cpu_account.instructions_of_end(dataset, end) / (seconds * total / 8)
            for end in cpu_account.ENDS
        },
    )
    found = found.assign({**_limits(dataset, found), "reason": found.reason.fillna("not run")})
    found["share"] = found.total / found.limit
    for name, (units, long_name) in LABELS.items():
        found[name].attrs = {"units": units, "long_name": long_name}
    return found.assign_attrs(dataset.attrs)


def stamps(found: xr.Dataset) -> xr.DataArray:
    """What limits each point, over (path, mtu, direction), by its harmonic mean over the blocks.

    `link-bound`: at least FULL of what a full wire carries; `host-bound`: less; `shaper`: beyond the wire
    limit, so that the shaper counts wrongly; empty where there is no limit or no reading.
    """
    mean = mean_over(found.total, "block", "rate")
    known = mean.notnull() & found.limit.notnull()
    bound = xr.where(mean >= FULL * found.full, "link-bound", "host-bound")
    return xr.where(mean > EXCESS * found.limit, "shaper", bound).where(known, "")


def _limits(dataset: xr.Dataset, found: xr.Dataset) -> dict[str, xr.DataArray]:
    described = attributes.interconnects(dataset)
    rates = [described[path].get("rate_bit_s", np.nan) for path in found.path.values]
    rate = xr.DataArray(rates, {"path": found.path})
    both = found.direction == "both"
    one_way = wire_limit(rate, found.mtu)
    return {
        "limit": one_way * xr.where(both, 2, 1),
        "full": xr.where(both, 2 * wire_limit_both_ways(rate, found.mtu), one_way),
    }
