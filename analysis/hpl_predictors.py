"""Ways from a link's latency and bandwidth to HPL's rate: its analytic model, the same with whole blocks counted, and a
simulation of the nodes, read between the latencies and bandwidths that were simulated."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.interpolate import RectBivariateSpline

from analysis.attributes import testbed
from analysis.derive import at_only_level, points
from analysis.models import hpl

ANALYTIC, BY_BLOCKS, SIMULATED = "analytic", "by blocks", "simulated"
TITLES = {
    ANALYTIC: "analytic model",
    BY_BLOCKS: "model counted by blocks",
    SIMULATED: "simulation",
}
COUNTS = {ANALYTIC: hpl.times, BY_BLOCKS: hpl.times_by_blocks}
ELEMENT_BYTES = 8  # of HPL's matrices: the analytic model counts elements, Hockney's bytes
OVER_DRAWS = ("interconnect", "nodes", "draw")
AXES = ("latency", "bandwidth")
# The paper's own example of two networks that latency and bandwidth tell apart.
PAIR = ("ddr_infiniband", "10gige")


@dataclass(frozen=True)
class Surface:
    """HPL's share of the nodes' known rate [1] over (nodes, latency [s], bandwidth [B/s]), simulated at every combination.

    Between them the logarithm of the share is a cubic spline of the logarithms of both (fewer levels: of a lower
    degree). `error`, over (nodes), is the largest relative error of that spline at levels that were left out one
    after another, every inner one of both axes: its steps are then twice as wide, so that it bounds the spline's own.
    """

    share: xr.DataArray
    error: xr.DataArray

    def at(self, nodes: int, latency, bandwidth) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The share, -d ln share / d ln latency and d ln share / d ln bandwidth [1], in that order.

        Latency [s] and bandwidth [B/s] broadcast. NaN beyond the simulated levels, and on other node counts.
        """
        places = np.broadcast_arrays(np.asarray(latency, float), np.asarray(bandwidth, float))
        if nodes not in self.share.nodes:
            return tuple(np.full((3, *places[0].shape), np.nan))
        share = self.share.sel(nodes=nodes)
        levels = [share[axis].values for axis in AXES]
        inside = np.all(
            [(at >= known[0]) & (at <= known[-1]) for at, known in zip(places, levels)], axis=0
        )
        x, y = (np.log(np.where(inside, at, known[0])) for at, known in zip(places, levels))
        spline = _spline(share)
        values = np.exp(spline.ev(x, y)), -spline.ev(x, y, dx=1), spline.ev(x, y, dy=1)
        return tuple(np.where(inside, value, np.nan) for value in values)


def surface(dataset: xr.Dataset) -> Surface:
    """The surface of a campaign whose levels of `vary` are `latency=L,bandwidth=B`.

    Node counts with a missing simulation are left out: a spline needs every one. Raises FalloffError when there is
    no HPL trial or there are several blocks or networks.
    """
    derived = at_only_level(points(dataset), "block", "interconnect")
    pairs = [
        dict(part.split("=") for part in level.split(",")) for level in derived.vary.values.tolist()
    ]
    levels = {axis: ("vary", [float(pair[axis]) for pair in pairs]) for axis in AXES}
    share = derived.share.assign_coords(levels).set_index(vary=AXES).unstack("vary")
    share = share.sortby(list(AXES)).transpose("nodes", *AXES)
    share = share.dropna("nodes").reset_coords(drop=True)
    errors = [_largest_error(share.sel(nodes=n)) for n in share.nodes.values]
    return Surface(share, xr.DataArray(errors, {"nodes": share.nodes.values}, "nodes"))


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
            between = np.exp(_spline(share.drop_sel({axis: level})).ev(x, y))
            errors.append(np.abs(between / left_out.values - 1).max())
    return float(np.fmax.reduce(errors))


def predicted(
    settings: xr.Dataset, links: xr.Dataset, known_rate: xr.DataArray, surface: Surface | None
) -> xr.Dataset:
    """What each predictor says of HPL, over (predictor, *OVER_DRAWS); without a surface the simulation is missing.

    `settings` holds N, NB, P and Q over (nodes), `links` alpha [s] and beta [s/B] over (interconnect, draw), `known_rate`
    [Gflop/s] is that of all nodes together, over (nodes, draw). The result's `share` [1] is of that; `latency` is
    -d ln rate / d ln alpha and `bandwidth` d ln rate / d ln (1 / beta).
    """
    answers = {name: _analytic(settings, links, known_rate, name) for name in COUNTS}
    if surface is not None:
        answers[SIMULATED] = _simulated(surface, links, settings.nodes)
    along = xr.DataArray([*answers], dims="predictor", name="predictor")
    return xr.concat([*answers.values()], along, coords="minimal", compat="override")


def analytic_share(
    settings: xr.Dataset, links: xr.Dataset, known_rate: xr.DataArray
) -> xr.DataArray:
    """HPL's share of the nodes' known rate [1] by its analytic model, over OVER_DRAWS; all is as in `predicted`."""
    return _analytic(settings, links, known_rate, ANALYTIC).share


def _analytic(
    settings: xr.Dataset, links: xr.Dataset, known_rate: xr.DataArray, predictor: str
) -> xr.Dataset:
    """The elasticities are the shares of its time that the model spends on messages and on their bytes."""
    x = np.array([settings[name].values for name in ("N", "NB", "P", "Q")], float)
    counts = COUNTS[predictor](x)
    messages, elements, flops = (xr.DataArray(count, dims="nodes") for count in counts)
    sends = settings.nodes > 1  # the model counts messages on one node too, where none leaves it
    computing = settings.nodes / (1e9 * known_rate) * flops
    latency = sends * links.alpha * messages
    contents = sends * ELEMENT_BYTES * links.beta * elements
    time = computing + latency + contents
    operations = xr.DataArray(hpl.operations(settings.N.values), dims="nodes")
    columns = {
        "share": operations / time / 1e9 / known_rate,
        "latency": latency / time,
        "bandwidth": contents / time,
    }
    return xr.Dataset(columns).transpose(*OVER_DRAWS)


def _simulated(surface: Surface, links: xr.Dataset, nodes: xr.DataArray) -> xr.Dataset:
    values = [surface.at(n, links.alpha, 1 / links.beta) for n in nodes.values.tolist()]
    columns = {
        name: (("nodes", "interconnect", "draw"), np.array(column))
        for name, column in zip(("share", *AXES), zip(*values))
    }
    labels = {"nodes": nodes.values, "interconnect": links.interconnect.values}
    return xr.Dataset(columns, labels).transpose(*OVER_DRAWS)


def paper_elasticities(sensitivity: xr.Dataset) -> xr.DataArray:
    """d ln rate / d ln bandwidth and -d ln rate / d ln latency over (parameter, interconnect, nodes), simulated.

    The slope from the low to the high end of each range of the model, ends that were not simulated being NaN.
    Raises FalloffError when there is no HPL trial or there are several blocks.
    """
    log_rate = np.log(at_only_level(points(sensitivity), "block").rate)
    described = testbed(sensitivity)["network"]
    networks = log_rate.interconnect.values.tolist()
    slopes = []
    # Of both, what is better for HPL comes second.
    for parameter, worse, better in (("bandwidth", "low", "high"), ("latency", "high", "low")):
        at_worse, at_better = (
            log_rate.reindex(vary=[f"{parameter}={end}"]).isel(vary=0, drop=True)
            for end in (worse, better)
        )
        ranges = [described[name][parameter] for name in networks]
        width = [np.log(entry["high"] / entry["low"]) for entry in ranges]
        slopes.append((at_better - at_worse) / xr.DataArray(width, dims="interconnect"))
    parameters = xr.DataArray(["bandwidth", "latency"], dims="parameter", name="parameter")
    return xr.concat(slopes, parameters)
