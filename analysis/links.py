"""What the testbed measured about itself: how much one link of each network carries, and what
limits it."""

import numpy as np
import pandas as pd
import xarray as xr

from analysis.wire import wire_limit

LINK_BOUND = 0.97  # from this share of the wire limit on, the link is the limit


def networks(dataset: xr.Dataset) -> pd.DataFrame:
    """One row for each interconnect of the survey, in the campaign's order.

    Columns: `goodput` [bit/s], the median over the links' own medians; `wire_limit` [bit/s], NaN if
    it is unshaped; and `limit`: `link-bound` if every measured link reaches 0.97 of the wire limit,
    else `host-bound`; empty if none was measured.
    """
    surveyed = dataset.role.values == "survey"
    keys = ["interconnect", "sender", "receiver"]
    trials = pd.DataFrame({name: dataset[name].values[surveyed] for name in (*keys, "goodput")})
    links = trials.groupby(keys).goodput.median().groupby("interconnect").agg(["median", "min"])
    limits = {
        name: wire_limit(network.rate_bit_s, network.mtu)
        for name, network in dataset.falloff.networks.items()
    }
    table = links.reindex([name for name in limits if name in links.index])
    limit = table.index.map(limits).astype(float)
    bound = np.where(table["min"] >= LINK_BOUND * limit, "link-bound", "host-bound")
    named = np.where(table["min"].isna(), "", bound)
    return pd.DataFrame({"goodput": table["median"], "wire_limit": limit, "limit": named})
