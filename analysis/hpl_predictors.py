"""From a link's latency and bandwidth to HPL's rate, by HPL's own analytic model."""

import numpy as np
import xarray as xr

from analysis.models import hpl

ELEMENT_BYTES = 8  # of HPL's matrices: the analytic model counts elements, a link's bandwidth bytes


def analytic_share(
    settings: xr.Dataset, links: xr.Dataset, known_rate: xr.DataArray
) -> xr.DataArray:
    """HPL's share of the nodes' known rate [1], over (interconnect, nodes, ...).

    `settings` holds N, NB, P and Q over (nodes), `links` the latency alpha [s] and the inverse bandwidth beta [s/B]
    over (interconnect, ...). `known_rate` [Gflop/s] is that of all nodes together.
    """
    x = np.array([settings[name].values for name in ("N", "NB", "P", "Q")], float)
    messages, elements, flops = (xr.DataArray(count, dims="nodes") for count in hpl.times(x))
    sends = settings.nodes > 1  # the model counts messages on one node too, where none leaves it
    computing = settings.nodes / (1e9 * known_rate) * flops
    sending = sends * (links.alpha * messages + ELEMENT_BYTES * links.beta * elements)
    operations = xr.DataArray(hpl.operations(settings.N.values), dims="nodes")
    share = operations / (computing + sending) / 1e9 / known_rate
    return share.transpose("interconnect", "nodes", ...)
