"""The number of nodes from which on a faster network pays for itself: its gain in HPL's rate
against its extra cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from scipy import stats

from analysis import drawing, exhibit, style
from analysis import prices as price_list
from analysis import sensitivity as sensitivities
from analysis.attributes import names_in_text, testbed
from analysis.derive import at_only_level, points
from analysis.efficiency import efficiency
from analysis.prices import NODE, Price
from analysis.quoting import quoted
from analysis.sensitivity import SIDES, Sensitivity
from analysis.statements import PERCENTILE, Statement, at_place, estimated, origin
from analysis.statistics import design as plans
from analysis.wording import (
    UNKNOWN,
    counted,
    exact,
    fixed,
    number,
    percent,
    percent_range,
)
from runners.record import FalloffError

DRAWS = 10_000
PRICE_SEED, MODEL_SEED = 20261208, 20261209
ENDS = (0.025, 0.975)  # of the 95 % ranges of draws
YEARS = "2005 to 2009"  # of data/prices.toml
SURE = 0.95  # share of the draws; a smaller majority makes an answer only likely
APART = 1.7  # least ratio of nodes between ticks


@dataclass(frozen=True)
class Gains:
    """The gain of HPL's rate on `reference`, the faster network, over `network`, with its
    uncertainty.

    `value` is the logarithm of the ratio of their rates over (nodes). `drawn` is the same for each
    draw of the model's numbers, over (draw, nodes); numbers whose effect is unknown stay at their
    values.
    """

    dataset: xr.Dataset
    network: str
    reference: str
    value: xr.DataArray
    drawn: xr.DataArray


@dataclass(frozen=True)
class Payoff:
    """Whether a network's gain is worth its price.

    `premium` is the extra cost of a node with the faster network [1]; `gain` is the extra HPL rate
    on it [1] over (nodes). The faster network is cheaper if the gain is larger than the premium.
    `chance` is the share of draws in which it is, over (nodes). `from_nodes` is the node count from
    which on it is, at all larger cases too; it is infinite if it is not even at the largest. Each
    has `value`, `low` and `high`, the 95 % range of the draws. `price_share` [1] is the prices'
    part of the variance of log((1 + gain) / (1 + premium)) on the most nodes.
    """

    gains: Gains
    prices: tuple[Price, ...]
    premium: xr.Dataset
    gain: xr.Dataset
    chance: xr.DataArray
    from_nodes: xr.Dataset
    price_share: float

    @property
    def nodes(self) -> list[int]:
        """The node counts, ascending."""
        return self.gain.nodes.values.tolist()

    @property
    def answer(self) -> str:
        """Whether the faster network pays from some node count on, according to the draws."""
        first = float(self.from_nodes.value)
        if np.isinf(first):
            return "no"
        return "yes" if float(self.chance.sel(nodes=slice(first, None)).min()) >= SURE else "likely"

    @property
    def slow(self) -> str:
        """The slower network's short name."""
        return names_in_text(self.gains.dataset)[self.gains.network]

    @property
    def fast(self) -> str:
        """The faster network's short name."""
        return names_in_text(self.gains.dataset)[self.gains.reference]


def simulated_gains(
    paper: xr.Dataset, sensitivity: xr.Dataset, beyond: xr.Dataset | None = None
) -> Gains:
    """The gains on the cases that ran on both networks of the paper's contrast.

    Raises FalloffError if no case ran on both networks, or a dataset holds no HPL trial or several blocks.
    """
    network, reference = plans.read(paper).pair
    datasets = [paper] if beyond is None else [paper, beyond]
    cases = [efficiency(at_only_level(points(dataset), "block")) for dataset in datasets]
    together = xr.concat(cases, "nodes", coords="minimal", compat="override", join="outer")
    # Both campaigns have the paper's largest case.
    together = together.drop_duplicates("nodes").sel(interconnect=[network, reference])
    reached = together.dropna("nodes").sortby("nodes")
    if not reached.sizes["nodes"]:
        raise FalloffError(
            f"Campaign {paper.attrs['campaign']} has no case that ran on both networks."
        )

    def log_ratio(logarithms: xr.DataArray) -> xr.DataArray:
        fast = logarithms.sel(interconnect=reference, drop=True)
        return fast - logarithms.sel(interconnect=network, drop=True)

    varied, value = sensitivities.analyse(sensitivity), log_ratio(np.log(reached))
    chance = np.random.default_rng(MODEL_SEED)
    drawn = value + log_ratio(log_shifts(varied, reached.nodes.values, DRAWS, chance))
    return Gains(paper, network, reference, value, drawn)


def effects(sensitivity: Sensitivity) -> xr.DataArray:
    """log(efficiency with one number at an end of its range / efficiency with all numbers at their
    values).

    Dims (parameter, side, interconnect, nodes); numbers whose effect is not known at every point
    are left out.
    """
    return np.log1p(sensitivity.changes / sensitivity.base).dropna("parameter")


def log_shifts(
    sensitivity: Sensitivity, nodes: np.ndarray, count: int, chance: np.random.Generator
) -> xr.DataArray:
    """log(efficiency of a draw / efficiency with all numbers at their values), dims (draw,
    interconnect, nodes).

    Each draw gives every number of the model a value within its range; its own value is the
    likeliest. A network's bandwidth and latency are drawn for that network, a node's rates once for
    all networks. A number's effect is linear between its value and the end of its range. The
    effects of all numbers add up in the logarithm, which is exact to first order. Between simulated
    node counts they are interpolated over log nodes; beyond these the nearest count's are taken.
    """
    simulated = effects(sensitivity)
    places = np.log2(nodes.clip(simulated.nodes.values.min(), simulated.nodes.values.max()))
    in_doublings = simulated.assign_coords(nodes=np.log2(simulated.nodes))
    single = in_doublings.sizes["nodes"] == 1
    at_places = in_doublings.sel(nodes=places) if single else in_doublings.interp(nodes=places)
    at_nodes = at_places.assign_coords(nodes=nodes)
    described, networks = testbed(sensitivity.dataset), at_nodes.interconnect.values.tolist()
    shifts: dict[str, xr.DataArray] = dict.fromkeys(networks, 0)
    for parameter in at_nodes.parameter.values.tolist():
        of_node = described["rates"].get(parameter)
        drawn = None if of_node is None else _parts(of_node, count, chance)
        for network in networks:
            if of_node is None:
                drawn = _parts(described["network"][network][parameter], count, chance)
            effect = at_nodes.sel(parameter=parameter, interconnect=network, drop=True)
            shifts[network] = shifts[network] + (drawn * effect).sum("side")
    total = xr.concat(shifts.values(), pd.Index(networks, name="interconnect"))
    return total.transpose("draw", "interconnect", "nodes")


def _parts(entry: Mapping, count: int, chance: np.random.Generator) -> xr.DataArray:
    """How far each of `count` draws of a number goes towards the low or the high end of its range
    [1], over (side, draw)."""
    low, value, high = (entry[key] for key in ("low", "value", "high"))
    drawn = triangular(low, value, high, chance.random(count))
    ways = [
        np.clip(distance, 0, None) / (whole or 1)  # no distance if the end is the value itself
        for distance, whole in ((value - drawn, value - low), (drawn - value, high - value))
    ]
    return xr.DataArray(ways, {"side": list(SIDES)}, ("side", "draw"))


def triangular(low: float, value: float, high: float, chance: np.ndarray) -> np.ndarray:
    """The quantiles at `chance` [1] of the triangular distribution; for a range without width, all
    equal the value."""
    if high == low:
        return np.full_like(chance, value, dtype=float)
    width = high - low
    return stats.triang.ppf(chance, (value - low) / width, loc=low, scale=width)


def priced(gains: Gains, prices: Sequence[Price]) -> Payoff:
    """The gains at these prices; the price of each part is drawn independently."""
    chance = np.random.default_rng(PRICE_SEED)
    paid = dict.fromkeys((price.of for price in prices), 0)
    for price in prices:
        drawn = triangular(price.low, price.value, price.high, chance.random(DRAWS))
        paid[price.of] = paid[price.of] + xr.DataArray(drawn, dims="draw")
    slow, fast = (price_list.total(prices, NODE, one) for one in (gains.network, gains.reference))
    premium = np.log(fast / slow)
    premiums = np.log((paid[NODE] + paid[gains.reference]) / (paid[NODE] + paid[gains.network]))
    drawn = gains.drawn - premiums
    of_prices, of_model = premiums.var(), gains.drawn.isel(nodes=-1).var()
    return Payoff(
        gains=gains,
        prices=tuple(prices),
        premium=_range(xr.DataArray(np.expm1(premium)), np.expm1(premiums)),
        gain=_range(np.expm1(gains.value), np.expm1(gains.drawn)),
        chance=(drawn > 0).mean("draw"),
        from_nodes=_range(lasting_from(gains.value - premium), lasting_from(drawn)),
        price_share=float(of_prices / (of_prices + of_model)),
    )


def lasting_from(log_ratio: xr.DataArray) -> xr.DataArray:
    """The least node count from which on a value over dim nodes is above 0 at every count; infinite
    if there is none."""
    nodes, above = log_ratio.nodes.values, (log_ratio > 0).transpose(..., "nodes").values
    from_here = np.logical_and.accumulate(above[..., ::-1], axis=-1)[..., ::-1]
    first = np.where(from_here.any(-1), nodes[from_here.argmax(-1)], np.inf)
    return log_ratio.isel(nodes=0, drop=True).copy(data=first)


def _range(value: xr.DataArray, drawn: xr.DataArray) -> xr.Dataset:
    """`value` with `low` and `high`, the 95 % range of the values drawn over dim draw."""
    # The ends are drawn values themselves, because nothing can be interpolated between a node count and infinity.
    low, high = (
        drawn.quantile(end, "draw", method="inverted_cdf").drop_vars("quantile") for end in ENDS
    )
    return xr.Dataset({"value": value, "low": low, "high": high})


def pays_from(study: Payoff) -> Statement:
    """Does the faster network give cheaper HPL from some number of nodes on, up to the largest case?"""
    estimate = first, low, high = at_place(study.from_nodes, "value")
    slow, fast, most = study.slow, study.fast, study.nodes[-1]
    subject = f"{fast} gives cheaper HPL than {slow} from this many nodes on"
    about = {"n_of": "draw", "words": study.answer, "primary": True}
    source = origin(study.gains.dataset)
    one = estimated(source, subject, "nodes", estimate, DRAWS, PERCENTILE, **about)
    gives = "likely gives" if study.answer == "likely" else "gives"
    answer = f"{fast} {gives} cheaper HPL than {slow} from {_count(first)} on"
    if np.isinf(first):
        answer = (
            f"{slow} gives cheaper HPL than {fast} up to {counted(most, 'node')}, the largest case"
        )
    # An infinite end is not a number, so the sentence states it.
    spread = "" if low == high else f" The 95 % range is {_count(low)} to {_count(high)}."
    assumed = sum(price.source.startswith("assumed") for price in study.prices)
    sentence = f"**{answer}, at prices of {YEARS}** ({assumed} of {len(study.prices)} assumed; simulated evidence).{spread}"
    return replace(one, sentence=sentence)


def _count(nodes: float) -> str:
    return "never" if np.isinf(nodes) else counted(int(nodes), "node")


def in_words(study: Payoff) -> str:
    """What the answer rests on: the chance, the extra price and the gain, and which of both is less certain."""
    first, most = float(study.from_nodes.value), study.nodes[-1]
    lasting = [n for n in study.nodes if n >= first] or study.nodes
    gains, chances = (100 * each.sel(nodes=lasting) for each in (study.gain.value, study.chance))
    gain_ends = dict.fromkeys(number(float(end)) for end in (gains.min(), gains.max()))
    chance_ends = dict.fromkeys(fixed(float(end), 0) for end in (chances.min(), chances.max()))
    premium, *ends = at_place(study.premium, "value")
    return (
        f"On {lasting[0]} to {most} nodes it is cheaper in {' to '.join(chance_ends)} % of {counted(DRAWS, 'draw')}. "
        f"A node costs {percent(premium)} more with {study.fast} ({percent_range(ends)}). HPL's rate is "
        f"{' to '.join(gain_ends)} % higher. The prices make {percent(study.price_share, 0)} of that uncertainty, the model the rest."
    )


def over_nodes(study: Payoff) -> Figure:
    """Above: the gain [%] over nodes and the extra cost of a node [%]. Below: the chance [%] that
    the network pays."""
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 4.3))
        gain, chance = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        color, nodes = style.look(study.gains.reference).color, study.nodes
        gains = 100 * study.gain
        value, low, high = (100 * float(study.premium[end]) for end in ("value", "low", "high"))
        gain.vlines(nodes, gains.low, gains.high, color=color, linewidth=1.2)
        gain.plot(nodes, gains.value, "o", color=color, markersize=3.5, label="gain in HPL")
        gain.axhline(value, color=style.INK, linewidth=1.2, label="extra price of a node")
        gain.axhspan(low, high, color=style.FAINT, alpha=0.3, linewidth=0)
        gain.set(ylim=(0, None), ylabel=f"{study.fast} over {study.slow} [%]")
        cheaper = 100 * study.chance
        chance.plot(nodes, cheaper, "o", color=color, markersize=3.5)
        chance.set(ylim=(-5, 105), ylabel=f"{study.fast} cheaper\n[% of draws]")
        drawing.doubling_axis(chance, drawing.apart(nodes, APART))
        drawing.legend_below(figure, gain, 2)
    return figure


def prices_table(study: Payoff) -> exhibit.Table:
    """The price of each part of a node, with its source."""
    owners = {NODE: "Node", study.gains.network: study.slow, study.gains.reference: study.fast}
    rows = [
        (
            f"{owners[price.of]}: {quoted(price.part)}",
            exact(price.value),
            f"{exact(price.low)} to {exact(price.high)}" if price.low < price.high else UNKNOWN,
            quoted(price.source),
        )
        for price in study.prices
    ]
    columns = ("Part", "Price [USD]", "Range [USD]", "Source")
    caption = (
        "What a node pays for each part. The ranges are thought possible. They are no intervals."
    )
    return exhibit.Table("payoff-prices", columns, "lrll", rows, caption, widths=(3, 2, 3, 10))
