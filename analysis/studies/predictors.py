"""Ways from a link's latency and bandwidth to HPL's rate: its analytic model, the same with whole blocks counted, and a
simulation of the nodes."""

import numpy as np
import xarray as xr

from analysis.models import hpl
from analysis.studies.surface import Surface

ANALYTIC, BY_BLOCKS, SIMULATED = "analytic", "by blocks", "simulated"
TITLES = {
    ANALYTIC: "the analytic model",
    BY_BLOCKS: "the model counted block by block",
    SIMULATED: "the simulation",
}
COUNTS = {ANALYTIC: hpl.times, BY_BLOCKS: hpl.times_by_blocks}
ELEMENT_BYTES = 8  # of HPL's matrices: the analytic model counts elements, Hockney's bytes
OVER_DRAWS = ("interconnect", "nodes", "draw")


def analytic_share(
    settings: xr.Dataset, links: xr.Dataset, known_rate: xr.DataArray, predictor: str = ANALYTIC
) -> xr.DataArray:
    """HPL's share of the nodes' known rate [1] by its analytic model, over OVER_DRAWS.

    `settings` holds N, NB, P and Q over (nodes), `links` alpha [s] and beta [s/B] over (interconnect, draw), `known_rate`
    [Gflop/s] is that of all nodes together, over (nodes, draw). `predictor` is ANALYTIC or BY_BLOCKS.
    """
    computing, *sending = _times(settings, links, known_rate, predictor)
    rate = _over_nodes(settings, hpl.operations(settings.N.values)) / (computing + sum(sending)) / 1e9
    return (rate / known_rate).transpose(*OVER_DRAWS)


def analytic_elasticities(
    settings: xr.Dataset, links: xr.Dataset, known_rate: xr.DataArray, predictor: str = ANALYTIC
) -> xr.Dataset:
    """`latency`, -d ln rate / d ln alpha, and `bandwidth`, d ln rate / d ln (1 / beta), over OVER_DRAWS.

    They are the shares of its time that the model spends on messages and on their bytes.
    """
    computing, messages, contents = _times(settings, links, known_rate, predictor)
    whole = computing + messages + contents
    return xr.Dataset({"latency": messages / whole, "bandwidth": contents / whole}).transpose(*OVER_DRAWS)


def simulated_share(surface: Surface, links: xr.Dataset, nodes: np.ndarray) -> xr.DataArray:
    """HPL's share of the nodes' known rate [1] on the modelled nodes, over OVER_DRAWS; NaN for what was not simulated."""
    return _on_surface(surface, links, nodes, surface.at)


def simulated_elasticities(surface: Surface, links: xr.Dataset, nodes: np.ndarray) -> xr.Dataset:
    """As `analytic_elasticities`, the slopes of the simulated surface."""
    return xr.Dataset(
        {
            name: _on_surface(surface, links, nodes, lambda *place, at=at: surface.elasticities(*place)[at])
            for at, name in enumerate(("latency", "bandwidth"))
        }
    )


def uneven_computing(settings: xr.Dataset) -> xr.DataArray:
    """The time that computing takes by whole blocks over that of the analytic model's even share, less one, over (nodes)."""
    x = _settings(settings)
    return _over_nodes(settings, hpl.times_by_blocks(x)[-1] / hpl.times(x)[-1] - 1)


def _times(
    settings: xr.Dataset, links: xr.Dataset, known_rate: xr.DataArray, predictor: str
) -> tuple[xr.DataArray, ...]:
    """The model's times [s] for its flops, its messages and their elements."""
    messages, elements, flops = (_over_nodes(settings, counts) for counts in COUNTS[predictor](_settings(settings)))
    gamma = settings.nodes / (1e9 * known_rate)
    sends = settings.nodes > 1  # the model counts messages on one node too, where none leaves it
    return gamma * flops, sends * links.alpha * messages, sends * ELEMENT_BYTES * links.beta * elements


def _settings(settings: xr.Dataset) -> np.ndarray:
    return np.array([settings[name].values for name in ("N", "NB", "P", "Q")], float)


def _over_nodes(settings: xr.Dataset, values: np.ndarray) -> xr.DataArray:
    return xr.DataArray(values, {"nodes": settings.nodes.values}, "nodes")


def _on_surface(surface: Surface, links: xr.Dataset, nodes: np.ndarray, read) -> xr.DataArray:
    """What `read` says of every node count at the links' parameters, over OVER_DRAWS."""
    unknown = np.full(links.alpha.shape, np.nan)
    known = set(surface.share.nodes.values.tolist())
    found = [read(n, links.alpha, 1 / links.beta) if n in known else unknown for n in nodes.tolist()]
    labels = {"nodes": nodes, "interconnect": links.interconnect.values}
    return xr.DataArray(np.array(found), labels, ("nodes", "interconnect", "draw")).transpose(*OVER_DRAWS)
