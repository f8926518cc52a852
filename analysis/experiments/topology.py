"""What the sources' claims take from oversubscribed networks; notebook 60 is their analysis."""

from dataclasses import dataclass

import pandas as pd
import xarray as xr

from analysis import oversubscription
from analysis.statistics import design as plans

OPENS = {
    "topology": {"x": "pattern", "series": "interconnect", "nodes": 960, "placement": "shuffled"}
}


@dataclass(frozen=True)
class Topology:
    """The campaigns' datasets; the page's own designs, `proposed`; `slowdowns` [1] of traffic over (run, interconnect, pattern,
    placement, nodes); and the table `judged` of `oversubscription.Judged.slowdowns`."""

    dataset: xr.Dataset
    hpl: xr.Dataset | None
    proposed: tuple[str, ...]
    slowdowns: xr.DataArray
    judged: pd.DataFrame


def analyse(topology: xr.Dataset, hpl_topology: xr.Dataset | None = None) -> Topology:
    """Derive all results. Raises FalloffError if there is no trial of flows or no crossbar, or
    there are several blocks."""
    designs = oversubscription.designs_of(topology)
    traffic = oversubscription.slowdowns_of_traffic(topology)
    hpl = None if hpl_topology is None else oversubscription.slowdowns_of_hpl(hpl_topology)
    found = oversubscription.judged(designs, plans.read(topology).margin, traffic, hpl)
    own = tuple(oversubscription.proposed(designs))
    return Topology(topology, hpl_topology, own, traffic, found.slowdowns)
