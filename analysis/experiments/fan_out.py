"""What the sources' claims take from the fan-out; notebook 51 is its analysis."""

from dataclasses import dataclass

import xarray as xr

from analysis.bottleneck import at_baseline, goodput


@dataclass(frozen=True)
class FanOut:
    """The campaign's dataset, and the goodput of all flows at its baseline [bit/s] over (block, direction, receivers)."""

    dataset: xr.Dataset
    goodput: xr.DataArray


def analyse(fan_out: xr.Dataset) -> FanOut:
    """Lay the campaign out; raises FalloffError if there is no fanout trial."""
    return FanOut(fan_out, at_baseline(fan_out, goodput(fan_out)))
