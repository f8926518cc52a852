"""What oversubscription saves: the price of each design of the page against the slowdown of traffic and HPL on it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import design_table, drawing, style
from analysis.designs import CROSSBAR
from analysis.exhibit import Basis, Exhibit, Table
from analysis.experiments import topology as slowdowns
from analysis.attributes import short_names
from analysis.wording import UNKNOWN, number, plain

FIGURES = {"topology_prices": ("topology", "hpl_topology", "designs/nemo.toml")}
SHOWN = (("permutation", "shuffled"), (slowdowns.HPL, "shuffled"))  # a panel each


@dataclass(frozen=True)
class Choice:
    """A network with its cost a node [USD] and its slowdown [1] in a pattern and placement.

    It is `efficient` where no other is as cheap and as fast and better in one of both.
    """

    interconnect: str
    pattern: str
    placement: str
    cost_per_node: float
    slowdown: float
    efficient: bool


@dataclass(frozen=True)
class Priced:
    """The designs of a study with their prices.

    `costs` is from `design_table.table`. `crossbar_cost` [USD a node] is that of the network without oversubscription:
    the cheapest of the page's designs and what the page adds to it, NaN where it does not say. `saved` [USD a node] is
    that addition. `break_even` [USD] is the price of a node and its network below which the saving buys more HPL than
    the network loses, for each of the page's designs and placements that HPL ran on, ascending: infinite where HPL
    loses nothing.
    """

    study: slowdowns.Topology
    costs: pd.DataFrame
    crossbar_cost: float
    saved: float
    choices: tuple[Choice, ...]
    break_even: tuple[float, ...]


def analyse(topology: xr.Dataset, hpl_topology: xr.Dataset | None = None) -> Priced:
    """The designs at the page's prices; raises as `topology.analyse`."""
    return at_prices(slowdowns.analyse(topology, hpl_topology))


def at_prices(study: slowdowns.Topology, prices: Mapping[str, float] | None = None) -> Priced:
    """Price the designs; `prices` [USD] replaces those of parts. Raises FalloffError when one is of no part."""
    costs = design_table.table(study.designs, prices=prices)
    saved = study.designs.cluster["unsubscribed_extra"] / study.designs.cluster["nodes"]
    cheapest = costs[costs.design.isin(study.proposed)].cost_per_node.min()
    crossbar_cost = float(cheapest + saved)
    listed = {**dict(zip(costs.design, costs.cost_per_node)), CROSSBAR: crossbar_cost}
    own = [one for one in study.judgements if one.interconnect in study.proposed]
    limits = [break_even(one.slowdown, saved) for one in own if one.pattern == slowdowns.HPL]
    return Priced(
        study=study,
        costs=costs,
        crossbar_cost=crossbar_cost,
        saved=saved,
        choices=choices(
            study.judgements, {name: cost for name, cost in listed.items() if math.isfinite(cost)}
        ),
        break_even=tuple(sorted(limit for limit in limits if not math.isnan(limit))),
    )


def break_even(slowdown: float, saved: float) -> float:
    """The price of a node and its network [USD] below which so much saved on each node buys more than it loses.

    A budget buys nodes at (price - saved) that are s times slower, or at the price without: the former do more where
    s (price - saved) < price. The rate is taken to be in proportion to the nodes.
    """
    return saved * slowdown / (slowdown - 1) if slowdown > 1 else math.inf


def choices(
    judged: Sequence[slowdowns.Judgement], costs: Mapping[str, float]
) -> tuple[Choice, ...]:
    """The choices by pattern and placement, cheapest first: the judged networks and the CROSSBAR, whose slowdown is 1.

    `costs` are a node's [USD] by network; one whose cost is not known is no choice.
    """
    chosen = []
    for traffic in dict.fromkeys(one.traffic for one in judged):
        slowed = {one.interconnect: one.slowdown for one in judged if one.traffic == traffic}
        slowed[CROSSBAR] = 1.0
        places = {name: (costs[name], slow) for name, slow in slowed.items() if name in costs}
        for name, place in sorted(places.items(), key=lambda item: item[1]):
            efficient = is_efficient(place, places.values())
            chosen.append(Choice(name, *traffic, *place, efficient))
    return tuple(chosen)


def is_efficient(place: tuple[float, float], places: Iterable[tuple[float, float]]) -> bool:
    """Whether none of the places (cost, slowdown) is at least as low in both and lower in one."""
    cost, slowdown = place
    others = [other for other in places if other != place]
    return not any(other[0] <= cost and other[1] <= slowdown for other in others)


def finding(priced: Priced) -> str:
    """Whether the saving is better spent on nodes, in plain English (Markdown); empty where HPL did not run."""
    limits = [limit for limit in priced.break_even if math.isfinite(limit)]
    if not limits:
        return ""
    below = " to ".join(dict.fromkeys(number(limit) for limit in (min(limits), max(limits))))
    return (
        f"The page would spend the {number(priced.saved)} USD a node that this saves on more nodes. "
        f"For HPL that pays only where a node with its network costs less than {below} USD."
    )


def figures(priced: Priced) -> dict[str, Exhibit]:
    """Slowdown over the network's cost."""
    return {
        "topology_prices": Exhibit(
            "topology_prices",
            cost_and_slowdown(priced),
            "Slowdown of random pairs and of HPL over what the network costs, with neighbours shuffled",
            Basis(priced.study.evidence),
            "Slowdown over cost a node for each network design, for random pairs and for HPL",
            "The numbers are the oversubscriptions at the edges. Filled marks are efficient: no other network is as "
            "cheap and as fast, and better in one of both. Slowdowns are geometric means over the draws.",
            rests_on=FIGURES["topology_prices"],
        )
    }


def cost_and_slowdown(priced: Priced) -> Figure:
    """Slowdown [1] over cost [USD a node], a panel for each of SHOWN that ran; efficient choices are filled."""
    ran = [
        traffic for traffic in SHOWN if traffic[0] != slowdowns.HPL or priced.study.hpl is not None
    ]
    with style.styled():
        figure, panels = drawing.new_figures(3.2, len(ran))
        for axes, traffic in zip(panels, ran):
            chosen = [one for one in priced.choices if (one.pattern, one.placement) == traffic]
            for choice in chosen:
                _mark(axes, choice, priced.study)
            _label(axes, chosen, priced.study)
            axes.set(xlabel="cost [USD a node]")
            axes.set_title(slowdowns.in_words(traffic[0]), loc="left")
            axes.margins(x=0.15, y=0.12)
            axes.sharex(panels[0])
        panels[0].set_ylabel("slowdown [1]")
        drawing.legend_below(figure, panels, 3)
        return figure


def _mark(axes: Axes, choice: Choice, study: slowdowns.Topology) -> None:
    """A choice; each core switch has a colour and marker."""
    designs, name = study.designs.designs, choice.interconnect
    series, label = CROSSBAR, "without oversubscription"
    if name in designs:
        core = designs[name]["core"]
        series = next(other for other in designs if designs[other]["core"] == core)
        label = study.designs.cores[core]["short"]
    look = style.look(series)
    face = look.color if choice.efficient else "white"
    place = choice.cost_per_node, choice.slowdown
    axes.plot(*place, look.marker, color=look.color, mfc=face, markersize=6, zorder=3)
    axes.plot([], [], look.marker, color=look.color, markersize=6, label=label)


def _label(axes: Axes, chosen: Sequence[Choice], study: slowdowns.Topology) -> None:
    """Each oversubscription beside the cheapest network that has it; `chosen` are cheapest first."""
    labelled = set()
    for choice in chosen:
        ratio = study.oversubscription.get(choice.interconnect)
        if ratio and ratio not in labelled:
            labelled.add(ratio)
            place = choice.cost_per_node, choice.slowdown
            axes.annotate(
                slowdowns.ratio_in_words(ratio), place, (6, 4), textcoords="offset points"
            )


def designs_table(priced: Priced) -> Table:
    """The designs with their oversubscription, bisection bandwidth, cost and largest cluster."""
    study, names = priced.study, short_names(priced.study.dataset)
    rows = [
        (
            names[row.design] + ("" if row.design in study.proposed else " *"),
            str(row.nodes_per_edge),
            slowdowns.ratio_in_words(row.edge_oversubscription),
            slowdowns.ratio_in_words(row.core_oversubscription),
            number(row.bisection / 1e9),
            _usd(row.cost_per_node),
            str(row.largest_cluster),
        )
        for row in priced.costs.itertuples()
    ]
    crossbar = (
        names[CROSSBAR],
        UNKNOWN,
        "1:1",
        "1:1",
        UNKNOWN,
        _usd(priced.crossbar_cost),
        UNKNOWN,
    )
    columns = (
        "Network",
        "Nodes on a switch",
        "Edge",
        "Core",
        "Bisection [GB/s]",
        "Cost [USD a node]",
        "Most nodes",
    )
    caption = (
        f"The designs for {study.designs.cluster['nodes']} nodes: oversubscription at the edges and in the core, what one half "
        "of the nodes can send to the other, the price of all switches, and the largest cluster with all slots filled. "
        "\\*: not the page's; its edge switches filled up. Prices are the page's; the network without oversubscription costs "
        f"its cheapest design and what it adds to that. {UNKNOWN}: not known."
    )
    return Table("topology-designs", columns, "lrrrrrr", [*rows, crossbar], caption)


def assumed_table(priced: Priced) -> Table:
    """What the page does not print, by its place in the design file, and why the value there is taken."""
    rows = [
        (f"`{place}`", plain(reason.removeprefix("assumed").lstrip(": ")))
        for place, reason in priced.study.designs.assumed.items()
    ]
    caption = "What the page leaves open, by its place in the file of designs, and why the value there is taken."
    return Table("topology-assumed", ("Assumed", "Because"), "ll", rows, caption)


def _usd(value: float) -> str:
    return number(value) if math.isfinite(value) else UNKNOWN
