"""What the testbed measured of itself: each link's goodput and round-trip time, and what limits it."""

import numpy as np
import pandas as pd
import xarray as xr

from analysis.attributes import interconnects
from analysis.wire import wire_limit

LINK_BOUND = 0.97  # from this part of the wire limit on, the link is what limits


def links(dataset: xr.Dataset) -> pd.DataFrame:
    """One row for each link of the survey, indexed by (interconnect, sender, receiver).

    Columns: `goodput` [bit/s] and `round_trip_time` [s], medians, `wire_limit` [bit/s] and `limit`: `link-bound` when
    the goodput is at least 0.97 of the wire limit, else `host-bound`; empty when it was not measured. NaN where not
    measured; an unshaped interconnect has no wire limit.
    """
    # Older campaigns had CPU quotas.
    surveyed = (dataset.role.values == "survey") & (dataset.in_quota.values != 1)
    keys, readings = ["interconnect", "sender", "receiver"], ["goodput", "round_trip_time"]
    trials = pd.DataFrame({name: dataset[name].values[surveyed] for name in (*keys, *readings)})
    table = trials.astype({"sender": int, "receiver": int}).groupby(keys)[readings].median()
    limits = {
        name: wire_limit(described.get("rate_bit_s", np.nan), described.get("mtu", np.nan))
        for name, described in interconnects(dataset).items()
    }
    table["wire_limit"] = table.index.get_level_values("interconnect").map(limits).astype(float)
    is_link_bound = table.goodput >= LINK_BOUND * table.wire_limit
    table["limit"] = np.where(is_link_bound, "link-bound", "host-bound")
    table.loc[table.goodput.isna(), "limit"] = ""
    return table.reindex(list(limits), level="interconnect")


def networks(dataset: xr.Dataset) -> pd.DataFrame:
    """One row for each interconnect of the survey: medians over its links, columns as in `links`.

    `limit` is `link-bound` only when every measured link is.
    """
    by_interconnect = links(dataset).groupby("interconnect", sort=False)
    table = by_interconnect.median(numeric_only=True)
    # Of the two words the alphabetically first is the worse; nothing measured comes last.
    worst = by_interconnect.limit.agg(lambda limits: min(filter(None, limits), default=""))
    return table.assign(limit=worst)
