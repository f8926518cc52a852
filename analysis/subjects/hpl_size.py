"""HPL over the order of the matrix on the same nodes: HPL's own model of its time, and the rate to
which it tends.
"""

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from analysis.laws import models
from analysis.laws.adequacy import follows
from analysis.laws.block_fit import BlockFit, fit_blocks
from runners.records.record import FalloffError

# HPL's model without its bounds. In a single block, noise may well make a small cost negative. Cut
# off at 0, the mean over the blocks would be too large, and its interval would miss the truth more
# often than it claims.
HPL = replace(
    models.find("hpl"), bounds=dict.fromkeys(models.find("hpl").parameters, (-np.inf, np.inf))
)


@dataclass(frozen=True)
class Curve:
    """HPL's model on one network, fitted over N to every block.

    It is fitted to n times the share, the rate in units of one node's known rate, so that alpha and
    beta are in flop at that rate and gamma has no unit. `limits`, over (block), is 1 / gamma,
    the share for N to infinity. `fitted` and `limits` are None if the data do not allow the
    fit; `refused` says why. `follows` is whether the mean curve may be drawn through the points.
    """

    fitted: BlockFit | None = None
    limits: xr.DataArray | None = None
    follows: bool = False
    refused: str = ""


def curves(points: xr.Dataset) -> dict[str, Curve]:
    """HPL's model fitted to each network; `points` is from `derive.points`, over (block,
    interconnect, N), at one number of nodes."""
    return {name: _curve(points, name) for name in points.interconnect.values.tolist()}


def _curve(points: xr.Dataset, network: str) -> Curve:
    share = points.share.sel(interconnect=network).transpose("block", "N")
    orders, rate = settings(points, share.N), points.nodes.item() * share.values
    try:
        fitted = fit_blocks(HPL, orders, rate)
    except FalloffError as error:
        return Curve(refused=str(error))
    gamma = fitted.by_block[:, HPL.parameters.index("gamma")]
    if unlimited := int((gamma <= 0).sum()):
        reason = f"The fitted rate has no limit in {unlimited} of {fitted.blocks} blocks; run larger matrices."
        return Curve(refused=reason)
    mean_curve, *_ = fitted.band(orders, "ratio")
    whole = share.block[share.notnull().all("N")].values
    return Curve(
        fitted,
        xr.DataArray(1 / gamma, {"block": whole}),
        follows(rate, mean_curve, len(HPL.parameters)),
    )


def settings(points: xr.Dataset, orders) -> np.ndarray:
    """The x of HPL's model at these orders: rows N, NB, P and Q, shape (4, orders)."""
    orders = np.asarray(orders, float)
    return np.array(
        [orders, *(np.full_like(orders, points[name].max()) for name in ("NB", "P", "Q"))]
    )
