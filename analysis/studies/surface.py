"""HPL's rate as a model of the nodes gives it, over latency and bandwidth of the network, at any of both."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.interpolate import RectBivariateSpline

from analysis.derive import at_only_level, points

AXES = ("latency", "bandwidth")


@dataclass(frozen=True)
class Surface:
    """HPL's share of the nodes' known rate [1] over (nodes, latency [s], bandwidth [B/s]), simulated at every combination.

    Between them the logarithm of the share is a cubic spline of the logarithms of both (fewer levels: of a lower
    degree). `error`, over (nodes), is the largest relative error of that spline at levels that were left out one
    after another, every inner one of both axes: its steps are then twice as wide, so that it bounds the spline's own.
    """

    share: xr.DataArray
    error: xr.DataArray

    def at(self, nodes: int, latency, bandwidth) -> np.ndarray:
        """The share of the nodes' known rate [1]; latency [s] and bandwidth [B/s] broadcast. NaN beyond the simulated levels."""
        return np.exp(self._evaluate(nodes, latency, bandwidth))

    def elasticities(self, nodes: int, latency, bandwidth) -> tuple[np.ndarray, np.ndarray]:
        """-d ln rate / d ln latency and d ln rate / d ln bandwidth there [1]; NaN beyond the simulated levels."""
        by_latency = -self._evaluate(nodes, latency, bandwidth, dx=1)
        return by_latency, self._evaluate(nodes, latency, bandwidth, dy=1)

    def _evaluate(self, nodes: int, latency, bandwidth, **derivative: int) -> np.ndarray:
        share = self.share.sel(nodes=nodes)
        places = np.broadcast_arrays(np.asarray(latency, float), np.asarray(bandwidth, float))
        inside = np.all([_is_inside(place, share[axis].values) for place, axis in zip(places, AXES)], axis=0)
        x, y = (np.log(np.where(inside, place, share[axis].values[0])) for place, axis in zip(places, AXES))
        return np.where(inside, _spline(share).ev(x, y, **derivative), np.nan)


def surface(dataset: xr.Dataset) -> Surface:
    """The surface of a campaign whose levels of `vary` are `latency=L,bandwidth=B`.

    Node counts with a missing simulation are left out: a spline needs every one. Raises FalloffError when there is
    no HPL trial or there are several blocks or networks.
    """
    derived = at_only_level(points(dataset), "block", "interconnect")
    pairs = [dict(part.split("=") for part in level.split(",")) for level in derived.vary.values.tolist()]
    levels = {axis: ("vary", [float(pair[axis]) for pair in pairs]) for axis in AXES}
    share = derived.share.assign_coords(levels).set_index(vary=AXES).unstack("vary").sortby(list(AXES))
    share = share.transpose("nodes", *AXES).dropna("nodes").reset_coords(drop=True)
    errors = [_largest_error(share.sel(nodes=n)) for n in share.nodes.values]
    return Surface(share, xr.DataArray(errors, {"nodes": share.nodes.values}, "nodes"))


def _is_inside(place: np.ndarray, levels: np.ndarray) -> np.ndarray:
    return (place >= levels[0]) & (place <= levels[-1])


def _spline(share: xr.DataArray) -> RectBivariateSpline:
    x, y = (np.log(share[axis].values) for axis in AXES)
    degrees = {"kx": min(3, len(x) - 1), "ky": min(3, len(y) - 1)}
    return RectBivariateSpline(x, y, np.log(share.values), s=0, **degrees)


def _largest_error(share: xr.DataArray) -> float:
    """The largest relative error at inner levels that are left out; NaN when none can be."""
    errors = [np.nan]
    for axis in AXES:
        for level in share[axis].values[1:-1]:
            left_out = share.sel({axis: level})
            x, y = (np.log(left_out[name].values) for name in AXES)
            found = _spline(share.drop_sel({axis: level})).ev(*np.broadcast_arrays(x, y))
            errors.append(np.abs(np.exp(found) / left_out.values - 1).max())
    return float(np.nanmax(errors)) if len(errors) > 1 else np.nan
