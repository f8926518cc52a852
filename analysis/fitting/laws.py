"""Laws of scalability of HPL's share over nodes: each fitted to every network, and whether it follows what was measured."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis import models
from analysis.fitting.adequacy import follows
from analysis.fitting.compare import Comparison, compare

# What each model describes. A law of scalability is of a rate: n times the share is the rate in units of one node's known
# rate, so that its parameters compare between machines. HPL's own model is not among them: with N proportional to sqrt(n)
# its messages and its operations grow alike.
MODELS = {
    "share": ("constant", "power_law", "segmented"),
    "n × share": ("amdahl", "universal_scalability"),
}


@dataclass(frozen=True)
class Law:
    """A model of one network's share over nodes, fitted to what `response` names.

    `miss` is the largest distance of its curve from the mean of a node count [1, of that mean], NaN without a fit, and
    `follows` whether the curve may be drawn through the points.
    """

    interconnect: str
    response: str
    comparison: Comparison
    miss: float
    follows: bool


def laws(points: xr.Dataset) -> Iterator[Law]:
    """Every model of every network of `derive.points`, network by network, the best AICc of a response first."""
    nodes = points.nodes.values.astype(float)
    for interconnect in points.interconnect.values.tolist():
        share = points.share.sel(interconnect=interconnect).transpose("block", "nodes").values
        for response, names in MODELS.items():
            scale = nodes if response == "n × share" else np.ones_like(nodes)
            for comparison in compare(map(models.find, names), nodes, scale * share):
                yield _law(interconnect, response, comparison, nodes, scale, share)


def _law(interconnect, response, comparison, nodes, scale, share) -> Law:
    if comparison.pooled is None:
        return Law(interconnect, response, comparison, np.nan, False)
    curve = comparison.pooled.predict(nodes) / scale
    known = np.isfinite(share).any(axis=0)
    means = np.nanmean(share[:, known], axis=0)
    miss = float(np.abs(curve[known] / means - 1).max())
    does_follow = follows(share, curve, len(comparison.model.parameters))
    return Law(interconnect, response, comparison, miss, does_follow)
