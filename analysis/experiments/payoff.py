"""From how many nodes on a faster network pays for itself: its gain in HPL's rate against what it costs more."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, model_draws, style
from analysis import prices as price_list
from analysis.derive import at_only_level, points
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import PERCENTILE, Finding, of_estimate, origin
from analysis.prices import NODE, TYPED, Price
from analysis.statistics import design as plans
from analysis.experiments import sensitivity as sensitivities
from analysis.efficiency import efficiency, rpeak
from analysis.attributes import short_names
from analysis.experiments.sensitivity import Sensitivity, meaning
from analysis.wording import (
    UNKNOWN,
    counted,
    exact,
    number,
    percent,
    percent_range,
    plain,
)
from runners.record import FalloffError

DRAWS = 10_000
PRICE_SEED, MODEL_SEED = 20261208, 20261209
ENDS = (0.025, 0.975)  # of the 95 % ranges of draws
# Which uncertainty the draws have: of the prices, of the model's numbers, or of both.
UNCERTAIN = ("prices", "efficiency", "both")
YEARS = "2005 to 2009"  # of data/prices.toml
FIGURES = {"payoff": ("hpl_paper", "hpl_sensitivity", "hpl_beyond", "prices.toml")}
APART = 1.7  # ticks lie at least this factor of nodes apart


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
    """Whether what a network gains is worth its price.

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

    @property
    def nodes(self) -> list[int]:
        """The node counts, ascending."""
        return self.gain.nodes.values.tolist()

    @property
    def slow(self) -> str:
        """The slower network's short name."""
        return short_names(self.gains.dataset)[self.gains.network]

    @property
    def fast(self) -> str:
        """The faster network's short name."""
        return short_names(self.gains.dataset)[self.gains.reference]

    @property
    def paid(self) -> list[Price]:
        """The prices of what is compared: of a node, and of its place in either network."""
        owners = (NODE, self.gains.network, self.gains.reference)
        return [price for price in self.prices if price.of in owners]


def analyse(
    hpl_paper: xr.Dataset, hpl_sensitivity: xr.Dataset, hpl_beyond: xr.Dataset | None = None
) -> Payoff:
    """Compare the two networks of the paper's contrast, at the shipped prices, on its cases and on larger ones.

    Raises FalloffError where no case ran on both networks, or when a dataset holds no HPL trial or several blocks.
    """
    gains = simulated_gains(hpl_paper, hpl_sensitivity, hpl_beyond)
    if not gains.efficiency.sizes["nodes"]:
        campaign = hpl_paper.attrs["campaign"]
        raise FalloffError(f"Campaign {campaign} has no case that ran on both networks.")
    return priced(gains, price_list.read())


def at_prices(study: Payoff, given: Mapping[str, Any]) -> Payoff:
    """The same gains at a reader's prices, as `prices.read` takes them; raises FalloffError naming every fault."""
    return priced(study.gains, price_list.read(given))


def simulated_gains(
    paper: xr.Dataset, sensitivity: xr.Dataset, beyond: xr.Dataset | None = None
) -> Gains:
    """The gains on the cases that ran on both networks; raises as `analyse`."""
    network, reference = plans.read(paper).pair
    datasets = [paper] if beyond is None else [paper, beyond]
    cases = [efficiency(at_only_level(points(dataset), "block")) for dataset in datasets]
    # Both campaigns have the paper's largest case.
    together = xr.concat(cases, "nodes", coords="minimal", compat="override", join="outer")
    together = together.drop_duplicates("nodes").sel(interconnect=[network, reference])
    reached = together.dropna("nodes").sortby("nodes")
    varied = sensitivities.analyse(sensitivity)
    chance = np.random.default_rng(MODEL_SEED)
    shifts = model_draws.log_shifts(varied, reached.nodes.values, DRAWS, chance)
    value = _log_ratio(np.log(reached), reference, network)
    drawn = value + _log_ratio(shifts, reference, network)
    return Gains(paper, varied, network, reference, reached, value, drawn)


def priced(gains: Gains, prices: Sequence[Price]) -> Payoff:
    """The gains against these prices."""
    slow, fast = (price_list.total(prices, NODE, one) for one in (gains.network, gains.reference))
    paid = price_list.draws(prices, DRAWS, np.random.default_rng(PRICE_SEED))
    slows = xr.DataArray(paid[NODE] + paid[gains.network], dims="draw")
    fasts = xr.DataArray(paid[NODE] + paid[gains.reference], dims="draw")
    dearer, dearers = np.log(fast / slow), np.log(fasts / slows)
    log_ratio = gains.value - dearer
    by_kind = {
        "prices": gains.value - dearers,
        "efficiency": gains.drawn - dearer,
        "both": gains.drawn - dearers,
    }
    kinds = [by_kind[kind].transpose("draw", "nodes") for kind in UNCERTAIN]
    log_ratios = xr.concat(kinds, "uncertain").assign_coords(uncertain=list(UNCERTAIN))
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
    ends = [
        drawn.quantile(end, "draw", method="inverted_cdf").drop_vars("quantile") for end in ENDS
    ]
    return xr.Dataset({"value": value, "low": ends[0], "high": ends[1]})


def _log_ratio(logarithms: xr.DataArray, one: str, other: str) -> xr.DataArray:
    both = (logarithms.sel(interconnect=name, drop=True) for name in (one, other))
    return next(both) - next(both)


def _price_share(log_ratios: xr.DataArray) -> xr.DataArray:
    variance = log_ratios.var("draw")
    alone = variance.sel(uncertain=["prices", "efficiency"])
    return alone.sel(uncertain="prices", drop=True) / alone.sum("uncertain")


def finding(study: Payoff) -> str:
    """Where the faster network gives cheaper HPL, in plain English (Markdown)."""
    both, slow, fast = study.from_nodes.sel(uncertain="both"), study.slow, study.fast
    first, most = float(both.value), study.nodes[-1]
    lasting = [n for n in study.nodes if n >= first] or study.nodes
    gains = study.gain.value.sel(nodes=lasting)
    if np.isinf(first):
        answer = (
            f"{slow} gives cheaper HPL than {fast} up to {counted(most, 'node')}, the largest case"
        )
    elif first == study.nodes[0]:
        answer = (
            f"{fast} gives cheaper HPL than {slow} already on {_count(first)}, the smallest case"
        )
    else:
        answer = f"{fast} gives cheaper HPL than {slow} from {_count(first)} on"
    ends = _count(float(both.low)), _count(float(both.high))
    spread = "" if ends[0] == ends[1] else f"; the 95 % range is {ends[0]} to {ends[1]}"
    when = _whose_prices(study)
    gained = " to ".join(
        dict.fromkeys(number(100 * float(end)) for end in (gains.min(), gains.max()))
    )
    premium = study.premium
    within = percent_range((float(premium.low), float(premium.high)))
    range_of_premium = f" ({within})" if premium.low < premium.high else ""
    cheaper = float(study.chance.sel(uncertain="both", nodes=most))
    return " ".join(
        [
            f"**At {when}, {answer}{spread}** ({counted(DRAWS, 'draw')}, {_evidence(study)} evidence).",
            f"A node costs {percent(float(premium.value))} more with {fast}{range_of_premium}.",
            f"HPL gains {gained} % on {lasting[0]} to {most} nodes.",
            f"On {counted(most, 'node')} {fast} is cheaper in {percent(cheaper, 0)} of the draws.",
            _of_uncertainty(study),
        ]
    ).strip()


def _whose_prices(study: Payoff) -> str:
    """Whose prices they are, and how many of them are assumed."""
    if any(price.source == TYPED for price in study.paid):
        return "the prices that were typed in"
    assumed = sum(price.source.startswith("assumed") for price in study.paid)
    return f"prices of {YEARS}, {assumed} of {len(study.paid)} assumed"


def _of_uncertainty(study: Payoff) -> str:
    """What most of the uncertainty is from; empty where every price is certain."""
    if not any(price.low < price.high for price in study.paid):
        return ""
    share = float(study.price_share[-1])
    if share > 0.5:
        return f"The prices make {percent(share, 0)} of that uncertainty; better prices would tell more than a better model."
    return f"The model makes {percent(1 - share, 0)} of that uncertainty."


def _evidence(study: Payoff) -> str:
    return study.gains.efficiency.evidence.item()


def _count(nodes: float) -> str:
    return "never" if np.isinf(nodes) else counted(int(nodes), "node")


def findings(study: Payoff) -> Iterator[Finding]:
    """From how many nodes on the faster network gives cheaper HPL."""
    both = study.from_nodes.sel(uncertain="both")
    yield of_estimate(
        origin("payoff", study.gains.dataset),
        f"from how many nodes on {study.gains.reference} gives cheaper HPL than {study.gains.network}",
        "nodes",
        "1",
        float(both.value),
        (float(both.low), float(both.high)),
        PERCENTILE,
        n=study.gains.drawn.sizes["draw"],
        n_of="draw",
        primary=True,
    )


def figures(study: Payoff) -> dict[str, Exhibit]:
    """Gain against price, and the chance that the faster network is the cheaper one."""
    return {
        "payoff": Exhibit(
            "payoff",
            gain_and_chance(study),
            f"Above: what HPL gains on {study.fast} over {study.slow}, and what a node with it costs more; where the gain is "
            f"higher, {study.fast} pays. Below: the share of the draws in which it does",
            _basis(study),
            "The faster network's gain in HPL beside its price, and the chance that it pays, over nodes",
            "The bars are the range of the gain, the grey band is that of the price.",
            rests_on=FIGURES["payoff"],
        )
    }


def gain_and_chance(study: Payoff) -> Figure:
    """Above the gain [%] over nodes and what a node costs more [%], below the chance [%] that the network pays."""
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 4.3))
        gain, chance = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        color, nodes = style.look(study.gains.reference).color, study.nodes
        gains, premium = 100 * study.gain, 100 * study.premium
        gain.vlines(nodes, gains.low, gains.high, color=color, linewidth=1.2)
        gain.plot(nodes, gains.value, "o", color=color, markersize=3.5, label="gain in HPL")
        gain.axhline(
            float(premium.value), color=style.INK, linewidth=1.2, label="extra price of a node"
        )
        gain.axhspan(
            float(premium.low), float(premium.high), color=style.FAINT, alpha=0.3, linewidth=0
        )
        gain.set(ylim=(0, None), ylabel=f"{study.fast} over {study.slow} [%]")
        cheaper = 100 * study.chance.sel(uncertain="both")
        chance.plot(nodes, cheaper, "o", color=color, markersize=3.5)
        chance.set(ylim=(-5, 105), ylabel=f"{study.fast} cheaper\n[% of draws]")
        drawing.node_axis(chance, drawing.apart(nodes, APART))
        drawing.legend_below(figure, gain, 2)
        return figure


def from_table(study: Payoff) -> Table:
    """From which node count on the faster network is the cheaper one, by what is uncertain."""
    kinds = {"prices": "The prices", "efficiency": "The model's numbers", "both": "Both"}
    rows = []
    for kind, name in kinds.items():
        at = study.from_nodes.sel(uncertain=kind)
        value, low, high = (_count(float(at[end])) for end in ("value", "low", "high"))
        never = 1 - float(study.chance.sel(uncertain=kind).isel(nodes=-1))
        rows.append(
            (name, value, low if low == high else f"{low} to {high}", number(100 * never, 2))
        )
    varied = study.gains.sensitivity
    counts = ", ".join(str(n) for n in varied.base.nodes.values)
    left_out = [meaning(name) for name in model_draws.left_out(varied)]
    unknown = f" No effect is known of: {plain(', '.join(left_out))}." if left_out else ""
    caption = (
        f"From which node count on {study.fast} gives cheaper HPL, in all larger cases too. A draw gives each uncertain number "
        "a value within its range, the listed one being the likeliest (triangular distribution). The effects of the model's "
        f"numbers were simulated one by one on {counts} nodes and are interpolated.{unknown}"
    )
    columns = (
        "Uncertain",
        f"{study.fast} pays from",
        "95 % range",
        f"Never up to {study.nodes[-1]} nodes [% of draws]",
    )
    return Table("payoff-from", columns, "lllr", rows, caption, _basis(study))


def points_table(study: Payoff) -> Table:
    """Gain, costs and chance on every node count."""
    names = study.gains.network, study.gains.reference
    rows = []
    for n in study.nodes:
        slow, fast = (1e9 * float(study.cost.sel(nodes=n, interconnect=name)) for name in names)
        rows.append(
            (
                str(n),
                _estimate(100 * study.gain.sel(nodes=n)),
                number(slow),
                number(fast),
                _estimate(study.worth.sel(nodes=n)),
                number(100 * float(study.chance.sel(nodes=n, uncertain="both")), 2),
            )
        )
    columns = (
        "Nodes",
        "Gain [%] (95 % range)",
        f"{study.slow} [USD per Gflop/s]",
        f"{study.fast} [USD per Gflop/s]",
        "May cost more [USD a node] (95 % range)",
        "Cheaper [% of draws]",
    )
    caption = (
        f"What HPL gains on {study.fast}, what a Gflop/s of HPL costs with each network, and what {study.fast} may cost more "
        "for each node to be no dearer. Gain and costs are at the listed values"
    )
    widths = (2, 6, 4, 4, 6, 3)
    return Table("payoff", columns, "rlrrlr", rows, caption, _basis(study), widths)


def _estimate(values: xr.Dataset) -> str:
    value, low, high = (number(float(values[end])) for end in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def prices_table(study: Payoff) -> Table:
    """What a node pays for each part, with its source."""
    owners = {NODE: "Node", study.gains.network: study.slow, study.gains.reference: study.fast}
    rows = [
        (
            f"{owners[price.of]}: {plain(price.part)}",
            exact(price.value),
            f"{exact(price.low)} to {exact(price.high)}" if price.low < price.high else UNKNOWN,
            plain(price.source),
        )
        for price in study.paid
    ]
    columns = ("Part", "Price [USD]", "Range [USD]", "Source")
    caption = (
        "What a node pays for each part. The ranges are thought possible; they are no intervals."
    )
    return Table("payoff-prices", columns, "lrll", rows, caption, widths=(3, 2, 3, 10))


def _basis(study: Payoff) -> Basis:
    return Basis(_evidence(study), DRAWS, "95 % ranges of the draws", "draw")
