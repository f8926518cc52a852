"""What the sources' claims take from larger clusters and other networks, simulated; notebook 47 is their analysis."""

from dataclasses import dataclass

import xarray as xr

from analysis.derive import at_only_level, points
from analysis.efficiency import efficiency, gain

# The networks whose gains are computed, each with its reference.
PAIRS = (("ddr_infiniband", "10gige"), ("gige_bonded", "gige"))


@dataclass(frozen=True)
class Beyond:
    """The campaign's dataset, and HPL's rate over Rpeak, `efficiency` [1], over (interconnect, nodes), NaN where a case is missing.

    `gains`, by the pair of PAIRS, are the ratios of HPL's rates on both networks, over (nodes). The model has no scatter.
    """

    dataset: xr.Dataset
    efficiency: xr.DataArray
    gains: dict[tuple[str, str], xr.DataArray]


def analyse(hpl_beyond: xr.Dataset) -> Beyond:
    """Derive efficiencies and gains; raises FalloffError if there is no HPL trial or there are several blocks."""
    derived = at_only_level(points(hpl_beyond), "block").sortby("nodes")
    networks = {*derived.interconnect.values.tolist()}
    gains = {pair: gain(derived, *pair) for pair in PAIRS if {*pair} <= networks}
    return Beyond(hpl_beyond, efficiency(derived).transpose("interconnect", "nodes"), gains)
