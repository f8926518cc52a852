"""Two ways from a link's latency and bandwidth to HPL's rate: its analytic model, and a simulation of the nodes."""

import numpy as np
import xarray as xr

from analysis.models import hpl
from analysis.studies.surface import Surface

ANALYTIC, SIMULATED = "analytic", "simulated"
TITLES = {ANALYTIC: "the analytic model", SIMULATED: "the simulation"}
ELEMENT_BYTES = 8  # of HPL's matrices: the analytic model counts elements, Hockney's bytes
OVER_DRAWS = ("interconnect", "nodes", "draw")


def analytic_share(settings: xr.Dataset, links: xr.Dataset, dgemm: xr.DataArray) -> xr.DataArray:
    """HPL's share of DGEMM [1] by its analytic model, over OVER_DRAWS.

    `settings` holds N, NB, P and Q over (nodes), `links` alpha [s] and beta [s/B] over (interconnect, draw), `dgemm`
    [Gflop/s] is that of all nodes together, over (nodes, draw): a flop's time in the model is DGEMM's.
    """
    computing, *sending = _times(settings, links, dgemm)
    rate = _over_nodes(settings, hpl.operations(settings.N.values)) / (computing + sum(sending)) / 1e9
    return (rate / dgemm).transpose(*OVER_DRAWS)


def analytic_elasticities(settings: xr.Dataset, links: xr.Dataset, dgemm: xr.DataArray) -> xr.Dataset:
    """`latency`, -d ln rate / d ln alpha, and `bandwidth`, d ln rate / d ln (1 / beta), over OVER_DRAWS.

    They are the shares of its time that the analytic model spends on messages and on their bytes.
    """
    computing, messages, contents = _times(settings, links, dgemm)
    whole = computing + messages + contents
    return xr.Dataset({"latency": messages / whole, "bandwidth": contents / whole}).transpose(*OVER_DRAWS)


def simulated_share(surface: Surface, links: xr.Dataset, nodes: np.ndarray) -> xr.DataArray:
    """HPL's share of DGEMM [1] on the modelled nodes, over OVER_DRAWS; NaN for what was not simulated."""
    return _on_surface(surface, links, nodes, surface.at)


def simulated_elasticities(surface: Surface, links: xr.Dataset, nodes: np.ndarray) -> xr.Dataset:
    """As `analytic_elasticities`, the slopes of the simulated surface."""
    return xr.Dataset(
        {
            name: _on_surface(surface, links, nodes, lambda *place, at=at: surface.elasticities(*place)[at])
            for at, name in enumerate(("latency", "bandwidth"))
        }
    )


def _times(settings: xr.Dataset, links: xr.Dataset, dgemm: xr.DataArray) -> tuple[xr.DataArray, ...]:
    """The model's times [s] for its flops, its messages and their elements."""
    x = np.array([settings[name].values for name in ("N", "NB", "P", "Q")], float)
    messages, elements, flops = (_over_nodes(settings, counts) for counts in hpl.times(x))
    gamma = settings.nodes / (1e9 * dgemm)
    sends = settings.nodes > 1  # the model counts messages on one node too, where none leaves it
    return gamma * flops, sends * links.alpha * messages, sends * ELEMENT_BYTES * links.beta * elements


def _over_nodes(settings: xr.Dataset, values: np.ndarray) -> xr.DataArray:
    return xr.DataArray(values, {"nodes": settings.nodes.values}, "nodes")


def _on_surface(surface: Surface, links: xr.Dataset, nodes: np.ndarray, read) -> xr.DataArray:
    """What `read` says of every node count at the links' parameters, over OVER_DRAWS."""
    unknown = np.full(links.alpha.shape, np.nan)
    known = set(surface.share.nodes.values.tolist())
    found = [read(n, links.alpha, 1 / links.beta) if n in known else unknown for n in nodes.tolist()]
    labels = {"nodes": nodes, "interconnect": links.interconnect.values}
    return xr.DataArray(np.array(found), labels, ("nodes", "interconnect", "draw")).transpose(*OVER_DRAWS)
