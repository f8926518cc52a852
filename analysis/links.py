"""What the testbed measured of itself: each link's goodput and round-trip time, and what limits it."""

import json

import numpy as np
import pandas as pd
import xarray as xr

from analysis.wire import wire_limit

LINK_BOUND = 0.97  # from this part of the wire limit on, the link is what limits


def links(dataset: xr.Dataset) -> pd.DataFrame:
    """One row for each link of the survey, indexed by (interconnect, sender, receiver).

    Columns: `goodput` and `goodput_in_quota` [bit/s], `round_trip_time` and `round_trip_time_in_quota`
    [s], `wire_limit` [bit/s] and `limit`: `link-bound` when the goodput outside the quota is at least
    0.97 of the wire limit, else `host-bound`; empty when it was not measured. NaN where not measured;
    an unshaped interconnect has no wire limit.
    """
    surveyed = dataset.role.values == "survey"
    keys = ["interconnect", "sender", "receiver"]
    readings = ["goodput", "round_trip_time"]
    trials = pd.DataFrame({name: dataset[name].values[surveyed] for name in (*keys, "in_quota", *readings)})
    trials = trials.astype({"sender": int, "receiver": int})
    medians = trials.groupby([*keys, "in_quota"])[readings].median().unstack()
    wanted = [(name, flag) for flag in (0, 1) for name in readings]
    table = medians.reindex(columns=pd.MultiIndex.from_tuples(wanted))
    table.columns = pd.Index([name + "_in_quota" * flag for name, flag in wanted])
    limits = _wire_limits(dataset)
    table["wire_limit"] = table.index.get_level_values("interconnect").map(limits).astype(float)
    table["limit"] = np.where(table.goodput >= LINK_BOUND * table.wire_limit, "link-bound", "host-bound")
    table.loc[table.goodput.isna(), "limit"] = ""
    return table.reindex(list(limits), level="interconnect")


def networks(dataset: xr.Dataset) -> pd.DataFrame:
    """One row for each interconnect of the survey: medians over its links.

    Columns as in `links`, with `injection_limit` [bit/s], the goodput inside the quota, and `limit`,
    which is `link-bound` only when every measured link is.
    """
    by_interconnect = links(dataset).groupby("interconnect", sort=False)
    table = by_interconnect.median(numeric_only=True).rename(columns={"goodput_in_quota": "injection_limit"})
    table["limit"] = by_interconnect.limit.agg(_common_limit)
    return table


def injection_limit(surveyed: pd.DataFrame, interconnect: str) -> float | None:
    """The most [bit/s] that a node in its quota sends, where that and not the link is the limit; of `networks`."""
    if interconnect not in surveyed.index:
        return None
    network = surveyed.loc[interconnect]
    return float(network.injection_limit) if network.injection_limit < LINK_BOUND * network.wire_limit else None


def _wire_limits(dataset):
    interconnects = json.loads(dataset.attrs["interconnects"])
    return {name: wire_limit(it.get("rate_bit_s", np.nan), it.get("mtu", np.nan)) for name, it in interconnects.items()}


def _common_limit(limits):
    measured = set(limits) - {""}
    return measured.pop() if len(measured) == 1 else "host-bound" if measured else ""
