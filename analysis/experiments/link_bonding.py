"""What a second link a node gives HPL and TCP: by hashing, MPTCP, MPI striping, and the bonding driver where there is one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, published, style
from analysis.attributes import design, interconnects
from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, over_factors
from analysis.exhibit import Basis, Exhibit
from analysis.findings import (
    T_INTERVAL,
    Finding,
    above,
    evidence_of,
    of_estimate,
    of_fall,
    origin,
    resting_on,
    without_reading,
)
from analysis.statistics.intervals import rates, ratios
from analysis.statistics.judgement import (
    FALLS_OFF,
    FLAT,
    RISES,
    SIZE_OPEN,
    Control,
    Judgement,
    judge,
    judge_control,
    within_campaign,
)
from analysis.statistics.reproduction import prediction_interval
from analysis.wire import wire_limit
from analysis.wording import counted, fixed, listed, paragraphs, percent, percent_range

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {"link_bonding": ("link_hpl", "published/bonding_blog.csv")}
NAMES = {
    "one_link": "one link",
    "ecmp_layer2": "hash of addresses",
    "ecmp_layer34": "hash of ports",
    "mptcp": "MPTCP",
    "mpi_striping": "MPI striping",
    "bond_balance_rr": "bond balance-rr",
}
BY_PEER = "ecmp_layer2"
# What a blog of 2009 may have had.
AS_BONDED = (BY_PEER, "ecmp_layer34", "bond_balance_rr")
# How the gain changes with the nodes, by the answer on the fall of one link against two.
GROWTH = {FALLS_OFF: "grows", SIZE_OPEN: "grows", FLAT: "does not grow", RISES: "shrinks"}
APART = 0.03  # of a doubling, a mark of the mean from those of its runs


@dataclass(frozen=True)
class Way:
    """A way of using two links, with so many processes a node, against one link in the same blocks.

    `log_gain` is the logarithm of the ratio of the HPL rates over (block, nodes); `gains` is over (nodes): `gain` [1]
    (of the geometric mean), its 95 % t interval `low` and `high`, and `blocks`. `control` is of one node, which uses no
    link: there the gain must be none. `growth` judges the rise of the gain from the fewest nodes that use a network to
    the most: `falls off` where it grows beyond the margin, `flat` where it does not; None without two such node counts.
    """

    aggregation: str
    ranks_per_node: int
    log_gain: xr.DataArray
    gains: xr.Dataset
    control: Control
    growth: Judgement | None

    @property
    def name(self) -> str:
        """The way in words."""
        return f"{NAMES[self.aggregation]} with {_processes(self.ranks_per_node)}"

    def gain(self, nodes: int) -> tuple[float, float, float]:
        """The gain on so many nodes and its 95 % interval, NaN where they are not known."""
        at = self.gains.reindex(nodes=[nodes]).isel(nodes=0)
        return float(at.gain), float(at.low), float(at.high)


@dataclass(frozen=True)
class Hpl:
    """HPL over one link and over two.

    `points` is over (block, aggregation, nodes, ranks_per_node): `rate` [Gflop/s]. `fewest` is the least number of
    nodes that use a network.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    baseline: str
    fewest: int
    ways: tuple[Way, ...]

    @property
    def most(self) -> int:
        """The most nodes."""
        return int(self.points.nodes.max())

    @property
    def best(self) -> Way | None:
        """The way of the largest gain on the most nodes, of those that are surely above 0 if any; None without a gain."""
        gains = {way.name: way.gain(self.most) for way in self.ways}
        ways = [way for way in self.ways if np.isfinite(gains[way.name][0])]
        sure = [way for way in ways if gains[way.name][1] > 0]
        return max(sure or ways, key=lambda way: gains[way.name][0], default=None)


@dataclass(frozen=True)
class Micro:
    """TCP between two nodes.

    `points` is over (block, aggregation, streams): `goodput` [bit/s]. `links` are its harmonic means as multiples of
    one link's wire limit, over (aggregation, streams): `mean`, 95 % t interval `low`, `high`, and `blocks`.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    links: xr.Dataset


@dataclass(frozen=True)
class LinkBonding:
    """Both campaigns; `micro` is None where it was not run."""

    hpl: Hpl
    micro: Micro | None = None


def analyse(link_hpl: xr.Dataset, link_micro: xr.Dataset | None = None) -> LinkBonding:
    """Derive gains and their growth from HPL's campaign, and goodputs from TCP's.

    Raises FalloffError when a dataset has no trial of its tool, or HPL ran over several interconnects.
    """
    return LinkBonding(_hpl(link_hpl), None if link_micro is None else _micro(link_micro))


def _hpl(dataset: xr.Dataset) -> Hpl:
    points = over_factors(dataset, rate=dataset.hpl_rate)
    points = at_only_level(points, "interconnect").drop_vars("interconnect")
    planned, evidence = design(dataset), evidence_of(dataset)
    others = [way for way in points.aggregation.values.tolist() if way != planned["baseline"]]
    each = product(others, points.ranks_per_node.values.tolist())
    ways = [_way(way, ranks, points, planned, evidence) for way, ranks in each]
    if all(way.growth for way in ways):
        growths = within_campaign([way.growth for way in ways])
        ways = [replace(way, growth=growth) for way, growth in zip(ways, growths)]
    return Hpl(dataset, points, planned["baseline"], planned["fewest_nodes"], tuple(ways))


def _way(aggregation: str, ranks: int, points: xr.Dataset, planned: Mapping, evidence: str) -> Way:
    log_gain = log_ratios(points, aggregation, planned["baseline"], "aggregation")
    log_gain = log_gain.sel(ranks_per_node=ranks, drop=True)
    gains = ratios(log_gain).rename(ratio="gain")
    gains = gains.assign({end: gains[end] - 1 for end in ("gain", "low", "high")})
    fewest, most, margin = planned["fewest_nodes"], int(log_gain.nodes.max()), planned["margin"]
    alone, few, many = log_gain.reindex(nodes=[1, fewest, most]).transpose("nodes", "block").values
    growth = judge(few - many, margin, evidence) if most > fewest else None
    return Way(aggregation, ranks, log_gain, gains, judge_control(alone, margin), growth)


def _micro(dataset: xr.Dataset) -> Micro:
    points = over_factors(dataset, runner="iperf3", goodput=dataset.goodput).sortby("streams")
    points = at_only_level(points, "interconnect")
    link = interconnects(dataset)[points.interconnect.item()]
    points = points.drop_vars("interconnect")
    limit = wire_limit(link["rate_bit_s"], link["mtu"])
    return Micro(dataset, points, rates(points.goodput / limit))


def findings(study: LinkBonding) -> Iterator[Finding]:
    """Gain of every way on every node count, its growth, and TCP's goodput over both links, as data.

    Planned for is what a second link gives on the most nodes: the way of the largest gain tells it.
    """
    hpl, best = study.hpl, study.hpl.best
    source = origin("link_bonding", hpl.dataset)
    for way in hpl.ways:
        each = f": {way.name} a node"
        for nodes in way.gains.nodes.values.tolist():
            is_best = way is best and nodes == hpl.most
            picked = f" (best of {counted(len(hpl.ways), 'way')} to use it)" if is_best else each
            statement = f"A second link speeds up HPL on {counted(nodes, 'node')}{picked}"
            gain, *ends = way.gain(nodes)
            further = {"answer": above(ends, 0), "primary": is_best}
            further["n"] = int(way.gains.blocks.sel(nodes=nodes))
            yield of_estimate(source, statement, "gain", "1", gain, ends, T_INTERVAL, **further)
        if way.growth is not None:
            statement = (
                f"HPL over one link falls behind HPL over two from {hpl.fewest} to {hpl.most} nodes"
            )
            primary = way is best
            yield of_fall(
                source, statement + ("" if primary else each), way.growth, primary=primary
            )
    if study.micro is None:
        return
    source, links = origin("link_bonding", study.micro.dataset), study.micro.links
    for way, streams in product(links.aggregation.values, links.streams.values):
        at, connections = (
            links.sel(aggregation=way, streams=streams),
            counted(streams, "TCP connection"),
        )
        statement = f"{connections} can fill this many links: {NAMES[way]}"
        ends, n = (float(at.low), float(at.high)), int(at.blocks)
        yield of_estimate(source, statement, "links", "1", float(at["mean"]), ends, T_INTERVAL, n=n)


def finding(study: LinkBonding) -> str:
    """The largest gain, why it is no larger, the blog's, and what TCP gets, in plain English (Markdown)."""
    hpl = study.hpl
    return paragraphs(
        _of_gains(hpl),
        (_on_one_node(hpl), without_reading(hpl.dataset)),
        _of_blog(hpl),
        [_of_micro(study.micro)] if study.micro else (),
    )


def _of_gains(hpl: Hpl) -> Iterator[str]:
    """The largest gain on the most nodes of those that are surely above 0, if any, else of all; and what it tells."""
    where, best = counted(hpl.most, "node"), hpl.best
    if best is None:
        reason = "no block has valid runs over one link and over two"
        yield f"**What a second link gives HPL on {where} cannot be said**: {reason}."
        return
    gain, *ends = best.gain(hpl.most)
    blocks, answer = int(best.gains.blocks.sel(nodes=hpl.most)), above(ends, 0)
    if answer not in ("yes", "no"):
        reason = f"no gain is surely above or below 0 ({resting_on(hpl.dataset, blocks)})"
        yield f"**Whether a second link gives HPL anything on {where} is open**: {reason}."
        return
    count = sum(np.isfinite(way.gain(hpl.most)[0]) for way in hpl.ways)
    basis = resting_on(hpl.dataset, blocks, f"95 % t interval {percent_range(ends)}")
    yield (
        f"**A second link {'gives' if gain > 0 else 'costs'} HPL {percent(abs(gain))} on {where} by {best.name} a node** "
        f"({basis}). This is the largest of {counted(count, 'gain')}, picked after the run, and so may be somewhat too large."
    )
    if answer == "yes":
        yield _growth(hpl, best)
        waits = percent_range([communication(end) for end in ends])
        yield (
            "Only the time that HPL waits for its network can shrink. If a second link halves it, HPL waits "
            f"{percent(communication(gain))} of the time over one link ({waits})."
        )


def communication(gain: float) -> float:
    """The part of the time over one link that two links have halved at this gain.

    Amdahl's law with two links for the part f: 1 + gain = 1 / (1 - f / 2), so that f = 2 (1 - 1 / (1 + gain)); below 0
    where two links are slower.
    """
    return 2 * (1 - 1 / (1 + gain))


def _growth(hpl: Hpl, way: Way) -> str:
    growth = way.growth
    if growth is None or growth.interval is None:
        return ""
    if growth.answer not in GROWTH:
        return "Whether it changes with the number of nodes is open."
    start = f"{percent(way.gain(hpl.fewest)[0])} on {counted(hpl.fewest, 'node')}"
    text = f"It {GROWTH[growth.answer]} with the nodes, from {start}"
    if growth.fall <= 0:
        return f"{text}."
    ends = f"{percent(growth.confidence, 0)} interval {percent_range(growth.interval)}"
    return f"{text}: HPL over one link falls behind HPL over two by another {percent(growth.fall)} ({ends})."


def _on_one_node(hpl: Hpl) -> str:
    """How much two links differ from one where no link is used."""
    controls = [way.control for way in hpl.ways if way.control.interval]
    if not controls:
        return ""
    most = max(abs(control.ratio - 1) for control in controls)
    failed = sum(control.kind == "violated" for control in controls)
    beyond = f", {failed} of {len(controls)} ways beyond margin and chance" if failed else ""
    return (
        f"On one node, which uses no link, two links differ from one by up to {percent(most)}{beyond}. "
        "So smaller gains mean nothing."
    )


def _of_blog(hpl: Hpl) -> Iterator[str]:
    """What could explain the gain that the blog printed on the fewest nodes, of a single pair of runs, and whether its
    others are reached."""
    printed = published_gains()
    if hpl.fewest not in printed.index:
        return
    each = " and ".join(f"{percent(gain)} on {counted(n, 'node')}" for n, gain in printed.items())
    yield f"The bonding blog printed gains of {each}, of one pair of runs each [@bonding]."
    gain, judged, means, pairs = percent(printed[hpl.fewest]), 0, [], []
    ratio = 1 + printed[hpl.fewest]
    for way in hpl.ways:
        few = way.log_gain.reindex(nodes=[hpl.fewest]).values.ravel()
        few = few[np.isfinite(few)]
        if way.aggregation in AS_BONDED and len(few) > 1:
            judged += 1
            low, high = judge_control(few, way.control.margin).interval
            means += [way.name] if low <= ratio <= high else []
            low, high = np.exp(prediction_interval(few, 1))
            pairs += [way.name] if low <= ratio <= high else []
    if means:
        yield f"A mean gain of {gain} on {hpl.fewest} nodes is possible by {' or '.join(means)}."
    elif judged:
        yield f"No hash that was tried has a mean gain of {gain} on {hpl.fewest} nodes."
    if pairs:
        yield f"A single pair of runs may reach {gain} by {' or '.join(pairs)}."
    for nodes in printed.index.drop(hpl.fewest):
        best = max(np.nan_to_num([way.gain(nodes)[0] for way in hpl.ways], nan=-np.inf))
        if np.isfinite(best):
            verb = "reach" if best >= printed[nodes] else "do not reach"
            yield f"The ways here {verb} its {percent(printed[nodes])} on {counted(nodes, 'node')}: they give at most {percent(best)}."


def _of_micro(study: Micro) -> str:
    """How many links the fewest and the most connections fill."""
    ends = study.links["mean"].isel(streams=[0, -1]).dropna("aggregation")
    ends = ends.sel(aggregation=ends.aggregation != "one_link")
    if not ends.size:
        return "What TCP connections get of two links cannot be said: no way of using both has a valid run."
    fewest, most = ends.streams.values.tolist()
    few, many = ([fixed(float(n), 2) for n in ends.isel(streams=at)] for at in (0, -1))
    names = [NAMES[way] for way in ends.aggregation.values]
    filled = listed([f"{links} by {name}" for links, name in zip(few, names)])
    return (
        f"Between two nodes, {counted(fewest, 'TCP connection')} {'carries' if fewest == 1 else 'carry'} this many links' rate: "
        f"{filled}; {most} connections: {listed(many)} ({resting_on(study.dataset, study.points.sizes['block'])})."
    )


def figures(study: LinkBonding) -> dict[str, Exhibit]:
    """HPL's gain over nodes."""
    hpl = study.hpl
    exhibit = Exhibit(
        "link_bonding",
        gains_over_nodes(hpl),
        "HPL's gain from a second link, against one link in the same block",
        Basis(evidence_of(hpl.dataset), hpl.points.sizes["block"], "95 % t intervals"),
        "Gain over one link over nodes, a panel for each number of processes a node, a series for each way",
        "Small marks are single blocks. Open marks and bars are geometric means with their intervals, which may end outside of "
        "the axes. Both are moved sideways. Crosses are the bonding blog's single runs (published), the same in both panels: its "
        "processes a node are not known.",
        rests_on=FIGURES["link_bonding"],
    )
    return {"gains": exhibit}


def gains_over_nodes(hpl: Hpl) -> Figure:
    """Gain over one link [%] over nodes, a panel for each number of processes a node: every block, and means."""
    each, blog = hpl.points.ranks_per_node.values.tolist(), published_gains()
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 0.9 + 2.0 * len(each)))
        panels = figure.subplots(len(each), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
        for axes, ranks in zip(panels, each):
            ways = [way for way in hpl.ways if way.ranks_per_node == ranks]
            axes.axhline(0, color=style.INK, linewidth=0.8)
            for rank, way in enumerate(ways):
                name, look = way.aggregation, style.look(way.aggregation)
                places = drawing.beside(way.gains.nodes.values, rank, len(ways))
                gains = 100 * np.expm1(way.log_gain)
                drawing.runs(axes, name, places * 2**-APART, gains, "_")
                axes.plot([], [], look.marker, color=look.color, mfc="white", label=NAMES[name])
                ends = (100 * way.gains[end].values for end in ("gain", "low", "high"))
                drawing.interval(axes, name, places * 2**APART, *ends)
            cross = {"color": style.INK, "markersize": 6, "label": "bonding blog (published)"}
            axes.plot(blog.index.values, 100 * blog.values, style.PUBLISHED_MARKER, **cross)
            axes.set_title(f"{_processes(ranks)} a node", loc="left")
            axes.set_ylabel("gain over one link [%]")
        # By the blocks: intervals of two or three of them may be wider than all gains together.
        gains = [np.expm1(way.log_gain.values.ravel()) for way in hpl.ways]
        shown = 100 * np.concatenate([[0], blog.values, *gains])
        room = 0.1 * (np.nanmax(shown) - np.nanmin(shown))
        panels[0].set_ylim(np.nanmin(shown) - room, np.nanmax(shown) + room)
        drawing.node_axis(panels[-1], hpl.points.nodes.values)
        drawing.legend_below(figure, panels, 3)
        return figure


def published_gains() -> pd.Series:
    """The gain [1] that the blog printed, by the number of nodes."""
    results = published.table("bonding_blog")
    rates = results.pivot(index="nodes", columns="links_per_node", values="rate_gflop_s")
    return rates[2] / rates[1] - 1


def _processes(ranks: int) -> str:
    return f"{ranks} {'process' if ranks == 1 else 'processes'}"
