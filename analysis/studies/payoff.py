"""From how many nodes on a faster network pays for itself: its gain in HPL's rate against what it costs more."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis import model_draws
from analysis import prices as price_list
from analysis.derive import at_only_level, points
from analysis.prices import NODE, Price
from analysis.statistics import design as designs
from analysis.studies import sensitivity as sensitivities
from analysis.studies.efficiency import efficiency, rpeak
from analysis.studies.sensitivity import Sensitivity

DRAWS = 10_000
PRICE_SEED, MODEL_SEED = 20261208, 20261209
ENDS = (0.025, 0.975)  # of the 95 % ranges of draws
# Which uncertainty the draws have: of the prices, of the model's numbers, or of both.
UNCERTAIN = ("prices", "efficiency", "both")


@dataclass(frozen=True)
class Gains:
    """What HPL's rate gains on `reference`, the faster network, over `network`, and how far that may be off.

    `efficiency` [1] is over (interconnect, nodes), on those two networks; `value` is the logarithm of the ratio of
    their rates over (nodes), `drawn` the same for each draw of the model's numbers, over (draw, nodes).
    """

    dataset: xr.Dataset
    sensitivity: Sensitivity
    network: str
    reference: str
    efficiency: xr.DataArray
    value: xr.DataArray
    drawn: xr.DataArray


@dataclass(frozen=True)
class Payoff:
    """Whether what the faster network gains is worth its price.

    `cost` is what a flop/s of HPL costs [USD s/flop], over (interconnect, nodes), at the prices' values; `premium` is
    what a node with the faster network costs more [1], `gain` how much more HPL does on it [1] over (nodes), and
    `ratio` the cost of a flop/s on the slower network over that on the faster one, (1 + gain) / (1 + premium). Each
    has `value`, `low` and `high` (95 % range of the draws), the ratio over (uncertain, nodes). `worth` is what the
    faster network may cost more for each node [USD], over (nodes), to be no dearer. `chance` is the share of
    draws in which it is the cheaper one, over (uncertain, nodes), and `from_nodes` the node count from which on it
    is, at all larger cases too, over (uncertain): infinite where it is not even at the largest.
    `price_share` [1] is the prices' part of the variance of the ratio's logarithm, over (nodes).
    """

    gains: Gains
    prices: tuple[Price, ...]
    cost: xr.DataArray
    premium: xr.Dataset
    gain: xr.Dataset
    ratio: xr.Dataset
    worth: xr.Dataset
    chance: xr.DataArray
    from_nodes: xr.Dataset
    price_share: xr.DataArray


def analyse(
    paper: xr.Dataset | None,
    sensitivity: xr.Dataset | None,
    beyond: xr.Dataset | None = None,
    prices: Sequence[Price] | None = None,
) -> Payoff | None:
    """Compare the two networks of the paper's contrast on its cases, and on larger ones where `beyond` has them.

    `prices` are the shipped ones unless given. None without the cases or their sensitivity, or where no case ran on
    both networks. Raises FalloffError when a dataset holds no HPL trial or several blocks.
    """
    if paper is None or sensitivity is None:
        return None
    found = simulated_gains(paper, sensitivity, beyond)
    if not found.efficiency.sizes["nodes"]:
        return None
    return priced(found, price_list.read() if prices is None else prices)


def simulated_gains(paper: xr.Dataset, sensitivity: xr.Dataset, beyond: xr.Dataset | None = None) -> Gains:
    """The gains on the cases that ran on both networks; raises as `analyse`."""
    network, reference = designs.read(paper).pair
    cases = [efficiency(at_only_level(points(it), "block")) for it in (paper, beyond) if it is not None]
    # Both campaigns have the paper's largest case.
    together = xr.concat(cases, "nodes", coords="minimal", compat="override", join="outer").drop_duplicates("nodes")
    reached = together.sel(interconnect=[network, reference]).dropna("nodes").sortby("nodes")
    varied = sensitivities.analyse(sensitivity)
    shifts = model_draws.log_shifts(varied, reached.nodes.values, DRAWS, np.random.default_rng(MODEL_SEED))
    value = _log_ratio(np.log(reached), reference, network)
    return Gains(paper, varied, network, reference, reached, value, value + _log_ratio(shifts, reference, network))


def priced(gains: Gains, prices: Sequence[Price]) -> Payoff:
    """The gains against these prices."""
    slow, fast = (price_list.total(prices, NODE, it) for it in (gains.network, gains.reference))
    paid = price_list.draws(prices, DRAWS, np.random.default_rng(PRICE_SEED))
    slows, fasts = (xr.DataArray(paid[NODE] + paid[it], dims="draw") for it in (gains.network, gains.reference))
    log_ratio, log_ratios = _log_ratios(gains, np.log(fast / slow), np.log(fasts / slows))
    costs = xr.DataArray([slow, fast], {"interconnect": [gains.network, gains.reference]})
    return Payoff(
        gains=gains,
        prices=tuple(prices),
        cost=costs / (rpeak(gains.dataset) * gains.efficiency),
        premium=summary(xr.DataArray(fast / slow - 1), fasts / slows - 1),
        gain=summary(np.expm1(gains.value), np.expm1(gains.drawn)),
        ratio=summary(np.exp(log_ratio), np.exp(log_ratios)),
        worth=summary(slow * np.expm1(gains.value), slows * np.expm1(gains.drawn)),
        chance=(log_ratios > 0).mean("draw"),
        from_nodes=summary(lasting_from(log_ratio), lasting_from(log_ratios)),
        price_share=_price_share(log_ratios),
    )


def lasting_from(log_ratio: xr.DataArray) -> xr.DataArray:
    """The least node count from which on a value over dim nodes is above 0 at every count; infinite without one."""
    nodes, above = log_ratio.nodes.values, (log_ratio > 0).transpose(..., "nodes").values
    from_here = np.logical_and.accumulate(above[..., ::-1], axis=-1)[..., ::-1]
    first = np.where(from_here.any(-1), nodes[from_here.argmax(-1)], np.inf)
    return log_ratio.isel(nodes=0, drop=True).copy(data=first)


def summary(value: xr.DataArray, drawn: xr.DataArray) -> xr.Dataset:
    """`value` beside `low` and `high`, the 95 % range of what was drawn over dim draw."""
    # Drawn values themselves are the ends: between a node count and infinity there is nothing to interpolate.
    low, high = (drawn.quantile(end, "draw", method="inverted_cdf").drop_vars("quantile") for end in ENDS)
    return xr.Dataset({"value": value, "low": low, "high": high})


def _log_ratio(logarithms: xr.DataArray, one: str, other: str) -> xr.DataArray:
    return logarithms.sel(interconnect=one, drop=True) - logarithms.sel(interconnect=other, drop=True)


def _log_ratios(gains: Gains, dearer: float, drawn: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """The logarithm of the costs' ratio over (nodes), and its draws over (uncertain, draw, nodes).

    `dearer` and `drawn`, over (draw), are the logarithm of 1 + premium.
    """
    by_kind = {"prices": gains.value - drawn, "efficiency": gains.drawn - dearer, "both": gains.drawn - drawn}
    kinds = [by_kind[kind].transpose("draw", "nodes") for kind in UNCERTAIN]
    return gains.value - dearer, xr.concat(kinds, "uncertain").assign_coords(uncertain=list(UNCERTAIN))


def _price_share(log_ratios: xr.DataArray) -> xr.DataArray:
    variance = log_ratios.var("draw")
    alone = variance.sel(uncertain=["prices", "efficiency"])
    return alone.sel(uncertain="prices", drop=True) / alone.sum("uncertain")
