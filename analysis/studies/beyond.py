"""What the model foretells of larger clusters and other networks, in one place."""

import json
import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, points
from analysis.studies.efficiency import efficiency, testbed

# What is asked of the networks: which gains over which.
PAIRS = (("ddr_infiniband", "10gige"), ("gige_bonded", "gige"))


@dataclass(frozen=True)
class Expansion:
    """Whether a network's efficiency on `from_nodes` applies on `to_nodes`, the most that were simulated.

    `change` is relative; `applies` where it is inside the margin m, from -m to 1 / (1 - m) - 1. Both are
    None, and `to_nodes` too, where there is no larger case or none at the start.
    """

    interconnect: str
    from_nodes: int
    to_nodes: int | None
    change: float | None
    applies: bool | None


@dataclass(frozen=True)
class Gain:
    """What one network gains over another: `rate` is the ratio of HPL's rates less one, over (nodes).

    `bandwidth` and `latency` are the ratios of the model's parameters.
    """

    network: str
    reference: str
    bandwidth: float
    latency: float
    rate: xr.DataArray


@dataclass(frozen=True)
class Beyond:
    """A simulated campaign beyond the paper's cluster, and the paper's own cases of the same model.

    `efficiency` is HPL's rate over Rpeak, over (interconnect, nodes), NaN where a case is missing; `paper`
    is the same of the paper's cases, None without them. There is one value a case: the model has no scatter.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    efficiency: xr.DataArray
    paper: xr.DataArray | None
    margin: float
    expansions: tuple[Expansion, ...]
    gains: tuple[Gain, ...]


def analyse(beyond: xr.Dataset, paper: xr.Dataset | None = None) -> Beyond:
    """Derive efficiencies, expansions and gains.

    Raises FalloffError when a dataset holds no HPL trial or several blocks.
    """
    derived = at_only_level(points(beyond), "block")
    margin = json.loads(beyond.attrs["design"])["margin"]
    reached = efficiency(derived)
    return Beyond(
        dataset=beyond,
        points=derived,
        efficiency=reached,
        paper=None if paper is None else efficiency(at_only_level(points(paper), "block")),
        margin=margin,
        expansions=tuple(_expansion(alone, margin) for alone in reached.transpose("interconnect", ...)),
        gains=tuple(_gain(derived, *pair) for pair in PAIRS if set(pair) <= set(derived.interconnect.values)),
    )


def _expansion(reached: xr.DataArray, margin: float) -> Expansion:
    start, simulated = int(reached.nodes.min()), reached.dropna("nodes")
    to_nodes = int(simulated.nodes.max()) if simulated.size else start
    if start not in simulated.nodes or to_nodes == start:
        return Expansion(reached.interconnect.item(), start, None, None, None)
    ratio = float(reached.sel(nodes=to_nodes) / reached.sel(nodes=start))
    applies = abs(math.log(ratio)) <= -math.log1p(-margin)
    return Expansion(reached.interconnect.item(), start, to_nodes, ratio - 1, applies)


def _gain(derived: xr.Dataset, network: str, reference: str) -> Gain:
    modelled = testbed(derived)["network"]
    bandwidth, latency = (
        modelled[network][name]["value"] / modelled[reference][name]["value"]
        for name in ("bandwidth", "latency")
    )
    return Gain(network, reference, bandwidth, latency, np.expm1(log_ratios(derived, network, reference)))
