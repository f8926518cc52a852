"""HPL over the order of the matrix on the same nodes: HPL's own model of its time, and the rate to
which it tends.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from analysis.laws import models
from analysis.laws.block_fit import Attempt, attempt

# HPL's model without its bounds. In a single block, noise may well make a small cost negative. Cut
# off at 0, the mean over the blocks would be too large, and its interval would miss the truth more
# often than it claims.
HPL = replace(
    models.find("hpl"), bounds=dict.fromkeys(models.find("hpl").parameters, (-np.inf, np.inf))
)


@dataclass(frozen=True)
class Curve(Attempt):
    """HPL's model on one network, fitted over N to every block.

    It is fitted to n times the share, the rate in units of one node's known rate, so that alpha and
    beta are in flop at that rate and gamma has no unit. `limits`, over (block), is 1 / gamma,
    the share for N to infinity. `fitted` and `limits` are None if the data do not allow the
    fit; `refused` says why. `follows` is whether the mean curve may be drawn through the points.
    """

    limits: xr.DataArray | None = None


def curves(points: xr.Dataset) -> dict[str, Curve]:
    """HPL's model fitted to each network; `points` is from `derive.points`, over (block,
    interconnect, N), at one number of nodes."""
    curves = {}
    for share in points.share.transpose("interconnect", "block", "N"):
        fit = attempt(HPL, settings(points, share.N), points.nodes.item() * share.values)
        curve = Curve(None, fit.refused)
        if fit.fitted:
            gamma = fit.fitted.by_block[:, HPL.parameters.index("gamma")]
            whole = share.block[share.notnull().all("N")].values
            limits = xr.DataArray(1 / gamma, {"block": whole})
            curve = Curve(fit.fitted, "", fit.follows, limits)
            if unlimited := int((gamma <= 0).sum()):
                blocks = f"{unlimited} of {fit.blocks} blocks"
                reason = f"The fitted rate has no limit in {blocks}; run larger matrices."
                curve = Curve(None, reason)
        curves[share.interconnect.item()] = curve
    return curves


def settings(points: xr.Dataset, orders: Any) -> np.ndarray:
    """The x of HPL's model at these orders: rows N, NB, P and Q, shape (4, orders)."""
    orders = np.asarray(orders, float)
    return np.array(
        [orders, *(np.full_like(orders, points[name].max()) for name in ("NB", "P", "Q"))]
    )
