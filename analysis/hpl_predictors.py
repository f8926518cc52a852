"""Ways from a link's latency and bandwidth to HPL's rate: its analytic model, the same with whole blocks counted, and a
simulation of the nodes, read between the latencies and bandwidths that were simulated."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.interpolate import RectBivariateSpline

from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, points
from analysis.models import hpl
from analysis.attributes import testbed

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
        levels = [share[axis].values for axis in AXES]
        inside = np.all(
            [(at >= known[0]) & (at <= known[-1]) for at, known in zip(places, levels)], axis=0
        )
        x, y = (np.log(np.where(inside, at, known[0])) for at, known in zip(places, levels))
        return np.where(inside, _spline(share).ev(x, y, **derivative), np.nan)


@dataclass(frozen=True)
class Example:
    """What `network` should gain over `reference`: ratios of their `bandwidth` and `latency`, and HPL's gains.

    `analytic` and `simulated` are the ratios of HPL's rates less one over (nodes), as the analytic model has them
    from the two numbers of each network, and as simulated. A simulation has no scatter: there are no draws.
    """

    network: str
    reference: str
    bandwidth: float
    latency: float
    analytic: xr.DataArray
    simulated: xr.DataArray


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
    errors = []
    for axis in AXES:
        for level in share[axis].values[1:-1]:
            left_out = share.sel({axis: level})
            x, y = (np.log(left_out[name].values) for name in AXES)
            spline = _spline(share.drop_sel({axis: level}))
            between = np.exp(spline.ev(*np.broadcast_arrays(x, y)))
            errors.append(np.abs(between / left_out.values - 1).max())
    return float(np.max(errors)) if errors else np.nan


def predicted(
    settings: xr.Dataset, fits: xr.Dataset, known_rate: xr.DataArray, surface: Surface | None
) -> tuple[xr.DataArray, xr.Dataset]:
    """Each predictor's shares of the known rate and its elasticities, over (predictor, *OVER_DRAWS); without a surface the
    simulation is missing."""
    inputs, nodes = (settings, fits, known_rate), settings.nodes.values
    shares = [analytic_share(*inputs, name) for name in (ANALYTIC, BY_BLOCKS)]
    slopes = [analytic_elasticities(*inputs, name) for name in (ANALYTIC, BY_BLOCKS)]
    names = [ANALYTIC, BY_BLOCKS]
    if surface is not None:
        shares.append(simulated_share(surface, fits, nodes))
        slopes.append(simulated_elasticities(surface, fits, nodes))
        names.append(SIMULATED)
    along = xr.DataArray(names, dims="predictor", name="predictor")
    shares, slopes = (
        xr.concat(each, along, coords="minimal", compat="override") for each in (shares, slopes)
    )
    return shares, slopes


def analytic_share(
    settings: xr.Dataset, links: xr.Dataset, known_rate: xr.DataArray, predictor: str = ANALYTIC
) -> xr.DataArray:
    """HPL's share of the nodes' known rate [1] by its analytic model, over OVER_DRAWS.

    `settings` holds N, NB, P and Q over (nodes), `links` alpha [s] and beta [s/B] over (interconnect, draw), `known_rate`
    [Gflop/s] is that of all nodes together, over (nodes, draw). `predictor` is ANALYTIC or BY_BLOCKS.
    """
    computing, *sending = _times(settings, links, known_rate, predictor)
    operations = _over_nodes(settings, hpl.operations(settings.N.values))
    rate = operations / (computing + sum(sending)) / 1e9
    return (rate / known_rate).transpose(*OVER_DRAWS)


def analytic_elasticities(
    settings: xr.Dataset, links: xr.Dataset, known_rate: xr.DataArray, predictor: str = ANALYTIC
) -> xr.Dataset:
    """`latency`, -d ln rate / d ln alpha, and `bandwidth`, d ln rate / d ln (1 / beta), over OVER_DRAWS.

    They are the shares of its time that the model spends on messages and on their bytes.
    """
    computing, messages, contents = _times(settings, links, known_rate, predictor)
    whole = computing + messages + contents
    shares = xr.Dataset({"latency": messages / whole, "bandwidth": contents / whole})
    return shares.transpose(*OVER_DRAWS)


def simulated_share(surface: Surface, links: xr.Dataset, nodes: np.ndarray) -> xr.DataArray:
    """HPL's share of the nodes' known rate [1] on the modelled nodes, over OVER_DRAWS; NaN for what was not simulated."""
    return _on_surface(surface, links, nodes, surface.at)


def simulated_elasticities(surface: Surface, links: xr.Dataset, nodes: np.ndarray) -> xr.Dataset:
    """As `analytic_elasticities`, the slopes of the simulated surface."""
    slopes = {
        name: _on_surface(
            surface, links, nodes, lambda *place, at=at: surface.elasticities(*place)[at]
        )
        for at, name in enumerate(AXES)
    }
    return xr.Dataset(slopes)


def uneven_computing(settings: xr.Dataset) -> xr.DataArray:
    """The time that computing takes by whole blocks over that of the analytic model's even share, less one, over (nodes)."""
    x = _grid(settings)
    return _over_nodes(settings, hpl.times_by_blocks(x)[-1] / hpl.times(x)[-1] - 1)


def example(beyond: xr.Dataset) -> Example | None:
    """The paper's example from a campaign of larger clusters; None when it lacks one of the two networks."""
    derived, described = at_only_level(points(beyond), "block"), testbed(beyond)["network"]
    if not set(PAIR) <= set(derived.interconnect.values):
        return None
    latency, bandwidth = (
        np.array([described[name][number]["value"] for name in PAIR])
        for number in ("latency", "bandwidth")
    )
    columns = {"alpha": latency, "beta": 1 / bandwidth}
    columns = {
        name: (("interconnect", "draw"), values[:, None]) for name, values in columns.items()
    }
    links = xr.Dataset(columns, {"interconnect": list(PAIR)})
    settings = derived[["N", "NB", "P", "Q"]].max("interconnect")
    share = analytic_share(settings, links, derived.known_rate.expand_dims("draw"))
    fast, slow = (share.isel(draw=0).sel(interconnect=name, drop=True) for name in PAIR)
    return Example(
        *PAIR,
        bandwidth=float(bandwidth[0] / bandwidth[1]),
        latency=float(latency[0] / latency[1]),
        analytic=fast / slow - 1,
        simulated=np.expm1(log_ratios(derived, *PAIR)),
    )


def paper_elasticities(sensitivity: xr.Dataset) -> xr.DataArray:
    """d ln rate / d ln bandwidth and -d ln rate / d ln latency over (parameter, interconnect, nodes), simulated.

    The slope from the low to the high end of each range of the model, ends that were not simulated being NaN.
    Raises FalloffError when there is no HPL trial or there are several blocks.
    """
    log_rate = np.log(at_only_level(points(sensitivity), "block").rate)
    described = testbed(sensitivity)["network"]
    # Of both, what is better for HPL comes second.
    better = {"bandwidth": ("low", "high"), "latency": ("high", "low")}
    slopes = []
    for parameter, ends in better.items():
        at_worse, at_better = (
            log_rate.reindex(vary=[f"{parameter}={end}"]).isel(vary=0, drop=True) for end in ends
        )
        ranges = [described[name][parameter] for name in log_rate.interconnect.values.tolist()]
        width = [np.log(entry["high"] / entry["low"]) for entry in ranges]
        over_networks = {"interconnect": log_rate.interconnect.values}
        slopes.append((at_better - at_worse) / xr.DataArray(width, over_networks, "interconnect"))
    return xr.concat(slopes, xr.DataArray(list(better), dims="parameter", name="parameter"))


def _times(
    settings: xr.Dataset, links: xr.Dataset, known_rate: xr.DataArray, predictor: str
) -> tuple[xr.DataArray, ...]:
    """The model's times [s] for its flops, its messages and their elements."""
    counts = COUNTS[predictor](_grid(settings))
    messages, elements, flops = (_over_nodes(settings, count) for count in counts)
    gamma = settings.nodes / (1e9 * known_rate)
    sends = settings.nodes > 1  # the model counts messages on one node too, where none leaves it
    of_bytes = ELEMENT_BYTES * links.beta
    return gamma * flops, sends * links.alpha * messages, sends * of_bytes * elements


def _grid(settings: xr.Dataset) -> np.ndarray:
    return np.array([settings[name].values for name in ("N", "NB", "P", "Q")], float)


def _over_nodes(settings: xr.Dataset, values: np.ndarray) -> xr.DataArray:
    return xr.DataArray(values, {"nodes": settings.nodes.values}, "nodes")


def _on_surface(
    surface: Surface, links: xr.Dataset, nodes: np.ndarray, read: Callable
) -> xr.DataArray:
    """What `read` says of every node count at the links' parameters, over OVER_DRAWS."""
    unknown = np.full(links.alpha.shape, np.nan)
    simulated = set(surface.share.nodes.values.tolist())
    values = [
        read(n, links.alpha, 1 / links.beta) if n in simulated else unknown for n in nodes.tolist()
    ]
    labels = {"nodes": nodes, "interconnect": links.interconnect.values}
    over_nodes = xr.DataArray(np.array(values), labels, ("nodes", "interconnect", "draw"))
    return over_nodes.transpose(*OVER_DRAWS)
