"""What the sources' claims take from the campaigns on long paths; notebook 50 is their analysis."""

from dataclasses import dataclass

import xarray as xr

from analysis.buffers import Place, goodput, repeated
from analysis.statistics import design as designs
from analysis.statistics.repeats import Reproducibility


@dataclass(frozen=True)
class Repeats:
    """The campaign of repeats, judged for each place."""

    dataset: xr.Dataset
    judged: dict[Place, Reproducibility]


@dataclass(frozen=True)
class LongPath:
    """The campaign's dataset, its `goodput` from `analysis.buffers`, the design's congestion control, and the repeats if
    there are any."""

    dataset: xr.Dataset
    goodput: xr.DataArray
    control: str
    repeats: Repeats | None = None

    @property
    def largest_window(self) -> int:
        """The largest buffer asked for [B]."""
        return int(self.goodput.window_bytes.max())


def analyse(long_path: xr.Dataset, long_repeats: xr.Dataset | None = None) -> LongPath:
    """Lay both campaigns out; raises FalloffError if one of them holds no iperf3 trial."""
    repeats = None if long_repeats is None else Repeats(long_repeats, repeated(long_repeats))
    return LongPath(long_path, goodput(long_path), designs.read(long_path).control, repeats)
