"""Everything that is derived from the campaigns over long paths: windows, congestion control and repeats."""

import json
from dataclasses import dataclass
from itertools import product

import numpy as np
import xarray as xr

from analysis.capacity import travelled
from analysis.derive import over_factors
from analysis.fitting import knee
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.models import bandwidth_delay
from analysis.statistics.judgement import Control, judge_control
from analysis.studies import long_repeats
from analysis.studies.long_repeats import LongRepeats
from analysis.wire import wire_limit
from runners.record import FalloffError


@dataclass(frozen=True)
class Curve:
    """Goodput over the socket buffer on one path, with one congestion control, in one direction.

    `goodput` [bit/s] is over (block, window_bytes). `wire_limit` [bit/s] and `round_trip` [s] are of the
    path's description; `measured_round_trip` [s] is what the sending kernel saw with the smallest buffer,
    which fills no queue: the median over the blocks, NaN where it is not known.
    `fitted` is the bandwidth-delay model of every block and `knee` its (estimate, low, high) [B of buffer
    asked for], a 95 % t interval over the blocks; where the data do not carry it, `fitted` is None, and
    `refused` says why. `bracket` [B] holds every knee that all points together allow (95 % profile), between
    the smallest and the largest buffer.
    """

    path: str
    congestion_control: str
    direction: str
    goodput: xr.DataArray
    wire_limit: float
    round_trip: float
    measured_round_trip: float
    bracket: tuple[float, float]
    fitted: BlockFit | None = None
    knee: tuple[float, float, float] = (np.nan, np.nan, np.nan)
    refused: str = ""

    @property
    def product(self) -> float:
        """The window [B] that theory asks for: the wire limit times the round trip of the description."""
        return bandwidth_delay.knee(self.wire_limit, self.round_trip)


@dataclass(frozen=True)
class Contrast:
    """A congestion control against the design's control at the largest buffer, on a path in a direction.

    `agreement` is of the geometric-mean ratio of their goodputs in the same blocks.
    """

    path: str
    direction: str
    congestion_control: str
    agreement: Control


@dataclass(frozen=True)
class LongPath:
    """The campaign's dataset and all that follows from it, and the study of repeats where there are data for one.
    `today` is of a shorter run of it, made anew.

    `points` is over (block, *factors): `goodput` [bit/s] and `round_trip` [s], the sending kernel's mean;
    buffers that no trial got, such as larger ones than the machine grants, are left out.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    margin: float
    control: str
    curves: tuple[Curve, ...]
    contrasts: tuple[Contrast, ...]
    repeats: LongRepeats | None = None
    today: "LongPath | None" = None

    @property
    def largest_window(self) -> int:
        """The largest buffer asked for [B]."""
        return int(self.points.window_bytes.max())


def analyse(dataset: xr.Dataset, repeats: xr.Dataset | None = None, today: xr.Dataset | None = None) -> LongPath:
    """Derive points, curves and contrasts of the campaign long_path and today's run of it, and judge long_repeats.

    Raises FalloffError when one of them holds no iperf3 trial.
    """
    points = over_factors(dataset, runner="iperf3", goodput=dataset.goodput, round_trip=dataset.rtt_mean)
    points = _measured(points.sortby("window_bytes"))
    design, paths = json.loads(dataset.attrs["design"]), json.loads(dataset.attrs["interconnects"])
    settings = json.loads(dataset.attrs["settings"])
    levels = product(*(points[name].values for name in ("path", "congestion_control", "direction")))
    return LongPath(
        dataset=dataset,
        points=points,
        margin=design["margin"],
        control=design["control"],
        curves=tuple(_curve(points, paths, settings, *map(str, level)) for level in levels),
        contrasts=_contrasts(points, design),
        repeats=None if repeats is None else long_repeats.analyse(repeats),
        today=None if today is None else analyse(today),
    )


def _measured(points: xr.Dataset) -> xr.Dataset:
    """The points at buffers with a goodput; all where there is none at all."""
    there = points.goodput.notnull().any([name for name in points.goodput.dims if name != "window_bytes"])
    return points.sel(window_bytes=there) if there.any() else points


def _curve(points, paths, settings, path, congestion_control, direction) -> Curve:
    own = points.sel(path=path, congestion_control=congestion_control, direction=direction)
    goodput = own.goodput.transpose("block", "window_bytes")
    window = goodput.window_bytes.values.astype(float)
    taken = travelled(paths[path], settings, direction)
    known = {
        "path": path,
        "congestion_control": congestion_control,
        "direction": direction,
        "goodput": goodput,
        "wire_limit": wire_limit(taken.rate, paths[path]["mtu"]),
        "round_trip": taken.round_trip,
        "measured_round_trip": float(own.round_trip.isel(window_bytes=0).median()),
        "bracket": _bracket(window, goodput.values),
    }
    try:
        fitted = fit_blocks(bandwidth_delay.MODEL, window, goodput.values)
    except FalloffError as error:
        return Curve(**known, refused=str(error))
    return Curve(**known, fitted=fitted, knee=knee.over_blocks(fitted.by_block))


def _bracket(window, goodput) -> tuple[float, float]:
    """The knees that all points together allow; NaN without a point."""
    measured = np.isfinite(goodput)
    if not measured.any():
        return np.nan, np.nan
    return knee.bracket(np.broadcast_to(window, goodput.shape)[measured], goodput[measured])


def _contrasts(points, design) -> tuple[Contrast, ...]:
    log = np.log(points.goodput.isel(window_bytes=-1))
    others = log.drop_sel(congestion_control=design["control"])
    ratios = others - log.sel(congestion_control=design["control"], drop=True)
    ratios = ratios.stack(place=["path", "direction", "congestion_control"]).transpose("place", "block")
    return tuple(
        Contrast(*place, judge_control(blocks, design["margin"]))
        for place, blocks in zip(ratios.place.values.tolist(), ratios.values)
    )
