"""Everything that is derived from the campaign over the order of the matrix, in one place."""

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from analysis import models
from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, points
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.fitting.compare import Comparison, compare
from analysis.inference.over_blocks import ratios
from analysis.models.hpl import times
from analysis.statistics import design as designs
from analysis.statistics.judgement import Control, judge_control
from runners.record import FalloffError

NEAR = 0.9  # the part of the asymptote whose order is asked for
EMPIRICAL = ("constant", "power_law")  # what HPL's model has to be better than

# HPL's model without its bounds. In a single block, noise may well make a small cost negative; cut off at 0,
# the mean over the blocks would be too large and its interval miss the truth more often than it says.
HPL = replace(
    models.find("hpl"), bounds=dict.fromkeys(models.find("hpl").parameters, (-np.inf, np.inf))
)


@dataclass(frozen=True)
class Curve:
    """HPL's model on one interconnect, fitted over N to every block.

    It is of n times the share, the rate in units of one node's known rate, so that alpha and beta are in flop at
    that rate and gamma is without unit. Over (block), `asymptotes` is 1 / gamma, the share for
    N to infinity, and `orders_near` the N at which the curve comes near it, at the part NEAR of it. All are
    None where the data do not allow the fit, and `refused` says why. `comparisons` sets it beside models that
    know nothing of HPL.
    """

    interconnect: str
    comparisons: tuple[Comparison, ...]
    blocks: BlockFit | None = None
    asymptotes: xr.DataArray | None = None
    orders_near: xr.DataArray | None = None
    refused: str = ""


@dataclass(frozen=True)
class Size:
    """The campaign's dataset and all that follows from it, on its `nodes` nodes.

    `shares` is over (interconnect, N): `ratio` (geometric mean), 95 % t interval `low`, `high` and `blocks` of the
    share (`derive.known_rate` says of what). `ratios` is over (N): `ratio` of the rates on `network` and `reference`,
    the design's primary pair
    (geometric mean), `low`, `high` and `blocks`. `agreement` judges whether the ratio of their asymptotes
    is 1: then the network costs nothing in the limit.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    nodes: int
    network: str
    reference: str
    shares: xr.Dataset
    ratios: xr.Dataset
    curves: tuple[Curve, ...]
    agreement: Control


def analyse(dataset: xr.Dataset) -> Size:
    """Derive points, shares, ratios and curves.

    Raises FalloffError when there is no HPL trial or there are several node counts.
    """
    derived = points(dataset)
    design = designs.read(dataset)
    network, reference = design.pair
    alone = at_only_level(derived, "nodes")
    curves = {name: _curve(alone, name) for name in alone.interconnect.values.tolist()}
    return Size(
        dataset=dataset,
        points=derived,
        nodes=alone.nodes.item(),
        network=network,
        reference=reference,
        shares=ratios(np.log(alone.share)),
        ratios=ratios(log_ratios(alone, network, reference)),
        curves=tuple(curves.values()),
        agreement=_agreement(curves[network], curves[reference], design.margin),
    )


def settings(derived: xr.Dataset, orders) -> np.ndarray:
    """What HPL's model takes for x at these orders: rows N, NB, P and Q, shape (4, orders)."""
    orders = np.asarray(orders, float)
    return np.array([orders, *(np.full_like(orders, derived[name].max()) for name in ("NB", "P", "Q"))])


def order_of_part(part, alpha, beta, gamma, NB, P, Q):
    """The order N at which HPL's model reaches this part of its limit P Q / gamma; 0 where it always does.

    With messages, elements and flops counted as in `models.hpl`, rate = part P Q / gamma is a quadratic
    equation in N after division by N; its larger root is where the curve stays above.
    """
    messages, elements, flops = (count.item() for count in times(np.array([[1.0], [NB], [P], [Q]])))
    scale = part * 2 / (3 * flops * gamma)
    linear = 3 / 2 - scale * beta * elements
    discriminant = linear**2 + 8 / 3 * (1 - part) * scale * alpha * messages
    root = np.sqrt(np.maximum(discriminant, 0)) - linear
    return np.where(discriminant >= 0, np.maximum(root, 0) / (4 / 3 * (1 - part)), 0.0)


def _curve(alone: xr.Dataset, interconnect: str) -> Curve:
    share = alone.share.sel(interconnect=interconnect).transpose("block", "N")
    orders, rate = settings(alone, share.N), alone.nodes.item() * share.values
    comparisons = (*compare([HPL], orders, rate), *compare(map(models.find, EMPIRICAL), share.N, rate))
    try:
        fitted = fit_blocks(HPL, orders, rate)
    except FalloffError as error:
        return Curve(interconnect, comparisons, refused=str(error))
    alpha, beta, gamma = fitted.by_block.T
    unlimited = int((gamma <= 0).sum())
    if unlimited:
        return Curve(
            interconnect,
            comparisons,
            refused=f"The fitted rate has no limit in {unlimited} of {fitted.blocks} blocks; run larger matrices.",
        )
    block = {"block": share.block[share.notnull().all("N")].values}
    near = order_of_part(NEAR, alpha, beta, gamma, *orders[1:, 0])
    return Curve(
        interconnect,
        comparisons,
        fitted,
        asymptotes=xr.DataArray(1 / gamma, block),
        orders_near=xr.DataArray(near, block),
    )


def _agreement(network: Curve, reference: Curve, margin: float) -> Control:
    if network.asymptotes is None or reference.asymptotes is None:
        return judge_control([], margin)
    return judge_control(np.log(network.asymptotes / reference.asymptotes).values, margin)
