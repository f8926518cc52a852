"""What the sources' claims take from HPL over the order of the matrix; notebook 41 is its analysis."""

from dataclasses import dataclass

import xarray as xr

from analysis.derive import at_only_level, points
from analysis.statistics import design as designs


@dataclass(frozen=True)
class Size:
    """The campaign's dataset, its `points` from `derive.points`, its number of `nodes`, and the faster network, `reference`."""

    dataset: xr.Dataset
    points: xr.Dataset
    nodes: int
    reference: str


def analyse(hpl_size: xr.Dataset) -> Size:
    """Derive points; raises FalloffError if there is no HPL trial or there are several node counts."""
    derived = points(hpl_size)
    nodes = at_only_level(derived, "nodes").nodes.item()
    return Size(hpl_size, derived, nodes, designs.read(hpl_size).pair[1])
