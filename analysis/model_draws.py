"""How far a simulated efficiency may be off: draws of all of the model's numbers within their ranges."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from analysis.statistics.draws import triangular
from analysis.attributes import testbed
from analysis.experiments.sensitivity import SIDES, Sensitivity


def effects(sensitivity: Sensitivity) -> xr.DataArray:
    """log(efficiency with one number at an end of its range / efficiency with all at their values).

    Dims (parameter, side, interconnect, nodes).
    """
    return np.log1p(sensitivity.changes / sensitivity.base)


def left_out(sensitivity: Sensitivity) -> list[str]:
    """The numbers whose effect is not known at every point that was simulated; draws leave them at their values."""
    unknown = effects(sensitivity).isnull().any(("side", "interconnect", "nodes"))
    return unknown.parameter.values[unknown.values].tolist()


def log_shifts(
    sensitivity: Sensitivity, nodes: np.ndarray, count: int, chance: np.random.Generator
) -> xr.DataArray:
    """log(efficiency of a draw / efficiency with all numbers at their values), dims (draw, interconnect, nodes).

    Each draw gives every number of the model a value within its range, its own value being the likeliest: a network's
    bandwidth and latency on their own, a node's rates alike on all networks. A number's effect is linear between its
    value and the end of its range, the effects of all add up in the logarithm, which is exact to first order, and
    between simulated node counts they are interpolated over log nodes; beyond these the nearest count's are taken.
    """
    known = effects(sensitivity).drop_sel(parameter=left_out(sensitivity))
    described = testbed(sensitivity.dataset)
    networks = known.interconnect.values
    shape = {"draw": count, "interconnect": len(networks), "nodes": len(nodes)}
    total = xr.DataArray(np.zeros(tuple(shape.values())), {"interconnect": networks, "nodes": nodes}, tuple(shape))
    for parameter in known.parameter.values.tolist():
        effect = _over_nodes(known.sel(parameter=parameter, drop=True), nodes)
        if parameter in described["rates"]:
            total = total + _linear(effect, described["rates"][parameter], count, chance)
        else:
            alone = [
                _linear(effect.sel(interconnect=[it]), described["network"][it][parameter], count, chance)
                for it in networks
            ]
            total = total + xr.concat(alone, "interconnect")
    return total.transpose("draw", "interconnect", "nodes")


def _over_nodes(effects: xr.DataArray, nodes: np.ndarray) -> xr.DataArray:
    simulated = effects.rename(nodes="simulated")
    found = xr.apply_ufunc(
        lambda values: np.interp(np.log2(nodes), np.log2(simulated.simulated), values),
        simulated,
        input_core_dims=[["simulated"]],
        output_core_dims=[["nodes"]],
        vectorize=True,
    )
    return found.assign_coords(nodes=nodes)


def _linear(effect: xr.DataArray, entry: Mapping, count: int, chance: np.random.Generator) -> xr.DataArray:
    """The effect (side, ...) of so many draws of one number, dims (draw, ...)."""
    low, value, high = (entry[key] for key in ("low", "value", "high"))
    drawn = triangular(low, value, high, chance.random(count))
    ways = [_part(value - drawn, value - low), _part(drawn - value, high - value)]
    return (xr.DataArray(ways, {"side": list(SIDES)}, ("side", "draw")) * effect).sum("side")


def _part(distance: np.ndarray, whole: float) -> np.ndarray:
    """How much of the way to an end of the range [1]: none in the other direction, or where the end is the value."""
    return np.clip(distance, 0, None) / whole if whole else np.zeros_like(distance)
