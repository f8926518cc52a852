"""What the sources' claims take from HPL beside daemons; notebook 42 is its analysis."""

from dataclasses import dataclass

import xarray as xr

from analysis.daemons import against_none
from analysis.statistics import design as designs


@dataclass(frozen=True)
class Noise:
    """The campaign's dataset, the daemon that its design judges, `primary`, and log(rate with / rate without) over (block,
    nodes, daemon)."""

    dataset: xr.Dataset
    primary: str
    log_ratio: xr.DataArray

    @property
    def nodes(self) -> list[int]:
        """The node counts, ascending."""
        return self.log_ratio.nodes.values.tolist()


def analyse(hpl_noise: xr.Dataset) -> Noise:
    """Derive the losses to each daemon; raises FalloffError if there is no HPL trial or there are
    several interconnects."""
    log_ratio = against_none(hpl_noise).log_ratio
    return Noise(hpl_noise, designs.read(hpl_noise).pair[0], log_ratio)
