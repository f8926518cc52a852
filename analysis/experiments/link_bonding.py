"""What the sources' claims take from the campaigns over two links; notebook 30 is their analysis."""

from dataclasses import dataclass

import xarray as xr

from analysis import second_link
from analysis.attributes import design


@dataclass(frozen=True)
class Micro:
    """TCP between two nodes: the campaign's dataset, and its `goodput` from `second_link`."""

    dataset: xr.Dataset
    goodput: xr.DataArray


@dataclass(frozen=True)
class LinkBonding:
    """HPL over one link and over two: the campaign's dataset, `rate` and `log_gain` from `second_link`, and the TCP campaign,
    None if it was not run.

    `baseline` is one link's name among the ways, and `fewest` the smallest number of nodes that use a network.
    """

    dataset: xr.Dataset
    rate: xr.DataArray
    log_gain: xr.DataArray
    baseline: str
    fewest: int
    micro: Micro | None = None

    @property
    def most(self) -> int:
        """The most nodes."""
        return int(self.rate.nodes.max())


def analyse(link_hpl: xr.Dataset, link_micro: xr.Dataset | None = None) -> LinkBonding:
    """Lay both campaigns out; raises FalloffError if a dataset has no trial of its tool, or ran over several
    interconnects."""
    rate, planned = second_link.rate(link_hpl), design(link_hpl)
    gain = second_link.log_gain(link_hpl, rate)
    micro = None if link_micro is None else Micro(link_micro, second_link.goodput(link_micro))
    return LinkBonding(link_hpl, rate, gain, planned["baseline"], planned["fewest_nodes"], micro)
