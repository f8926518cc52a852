"""The same transfers over a long path again and again: does TCP reach the same goodput?"""

import json
from dataclasses import dataclass
from itertools import product

import xarray as xr

from analysis.capacity import travelled
from analysis.derive import over_factors
from analysis.inference.reproducibility import Reproducibility, judge_repeats
from analysis.wire import wire_limit


@dataclass(frozen=True)
class Series:
    """All goodputs on a path with one congestion control in one direction, judged; `wire_limit` [bit/s]."""

    path: str
    congestion_control: str
    direction: str
    wire_limit: float
    judged: Reproducibility


@dataclass(frozen=True)
class LongRepeats:
    """The campaign's dataset and its series; `margin` is the largest variation that counts as reproducible."""

    dataset: xr.Dataset
    margin: float
    series: tuple[Series, ...]

    @property
    def blocks(self) -> int:
        """How often every transfer was run, at most."""
        return max(len(series.judged.sample.values) for series in self.series)


def analyse(dataset: xr.Dataset) -> LongRepeats:
    """Judge every series; raises FalloffError when there is no iperf3 trial."""
    points = over_factors(dataset, runner="iperf3", goodput=dataset.goodput)
    margin = json.loads(dataset.attrs["design"])["margin"]
    described, settings = (json.loads(dataset.attrs[name]) for name in ("interconnects", "settings"))

    def series(path: str, control: str, direction: str) -> Series:
        rate = travelled(described[path], settings, direction).rate
        goodput = points.goodput.sel(path=path, congestion_control=control, direction=direction)
        limit = wire_limit(rate, described[path]["mtu"])
        return Series(path, control, direction, limit, judge_repeats(goodput.values, margin))

    levels = product(*(points[name].values.tolist() for name in ("path", "congestion_control", "direction")))
    return LongRepeats(dataset, margin, tuple(series(*level) for level in levels))
