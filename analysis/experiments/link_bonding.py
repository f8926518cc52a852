"""What a second link per node gives HPL and TCP: by hashing, MPTCP, MPI striping, and the bonding
driver if available."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, exhibit, published, style
from analysis.attributes import design, interconnects
from analysis.contrasts import differences
from analysis.derive import at_only_level, over_factors
from analysis.statements import (
    Statement,
    above,
    at_place,
    change,
    estimated,
    evidence_of,
    interval_in_words,
    judged_fall,
    judged_in_words,
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
from analysis.wire import wire_limit
from analysis.wording import counted, fixed, listed, paragraphs, percent, percent_range

# The campaigns and files of data/ behind each figure.
FIGURES = {"link_bonding": ("link_hpl", "published/bonding_blog.csv")}
NAMES = {
    "one_link": "one link",
    "ecmp_layer2": "hash of addresses",
    "ecmp_layer34": "hash of ports",
    "mptcp": "MPTCP",
    "mpi_striping": "MPI striping",
    "bond_balance_rr": "bond balance-rr",
}
# How the gain changes with the nodes, by the answer on one link's fall against two.
GROWTH = {FALLS_OFF: "grows", SIZE_OPEN: "grows", FLAT: "does not grow", RISES: "shrinks"}


@dataclass(frozen=True)
class Way:
    """A way to use two links, with a number of processes per node, against one link in the same
    blocks.

    `log_gain` is the logarithm of the ratio of the HPL rates over (block, nodes). `ratios` is over
    (nodes): `ratio` [1] (geometric mean), its 95 % t interval `low` and `high`, and `blocks`.
    `control` is on one node, which uses no link, so the gain must be none. `growth` judges the rise
    of the gain from the fewest nodes that use a network to the most: `falls off` if it grows beyond
    the margin, `flat` if it does not; None without two such node counts.
    """

    aggregation: str
    ranks_per_node: int
    log_gain: xr.DataArray
    ratios: xr.Dataset
    control: Control
    growth: Judgement | None

    @property
    def name(self) -> str:
        """The way in words."""
        return f"{NAMES[self.aggregation]} with {_processes(self.ranks_per_node)}"

    def gain(self, nodes: int) -> tuple[float, float, float]:
        """The gain on this many nodes and its 95 % interval, NaN if unknown."""
        return tuple(end - 1 for end in at_place(self.ratios.reindex(nodes=[nodes]).isel(nodes=0)))


@dataclass(frozen=True)
class Micro:
    """TCP between two nodes.

    `points` is over (block, aggregation, streams): `goodput` [bit/s]. `links` are its harmonic
    means in multiples of one link's wire limit, over (aggregation, streams): `mean`, 95 % t
    interval `low`, `high`, and `blocks`.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    links: xr.Dataset


@dataclass(frozen=True)
class LinkBonding:
    """HPL over one link and over two, and the TCP campaign, None if it was not run.

    `points` is over (block, aggregation, nodes, ranks_per_node): `rate` [Gflop/s]. `fewest` is the
    smallest number of nodes that use a network.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    baseline: str
    fewest: int
    ways: tuple[Way, ...]
    micro: Micro | None = None

    @property
    def most(self) -> int:
        """The most nodes."""
        return int(self.points.nodes.max())

    @property
    def best(self) -> Way | None:
        """The way with the largest gain on the most nodes, if possible among those surely above 0;
        None without a gain."""
        gains = {way.name: way.gain(self.most) for way in self.ways}
        ways = [way for way in self.ways if np.isfinite(gains[way.name][0])]
        sure = [way for way in ways if gains[way.name][1] > 0]
        return max(sure or ways, key=lambda way: gains[way.name][0], default=None)


def analyse(link_hpl: xr.Dataset, link_micro: xr.Dataset | None = None) -> LinkBonding:
    """Derive gains and their growth from the HPL campaign, and goodputs from the TCP campaign.

    Raises FalloffError if a dataset has no trial of its tool, or HPL ran over several
    interconnects.
    """
    points = at_only_level(over_factors(link_hpl, rate=link_hpl.hpl_rate), "interconnect")
    points, planned = points.drop_vars("interconnect"), design(link_hpl)
    baseline, fewest, margin = (planned[key] for key in ("baseline", "fewest_nodes", "margin"))
    most, evidence, rate = int(points.nodes.max()), evidence_of(link_hpl), np.log(points.rate)
    log_gain = rate.drop_sel(aggregation=baseline) - rate.sel(aggregation=baseline, drop=True)
    places = [*product(log_gain.aggregation.values.tolist(), points.ranks_per_node.values.tolist())]
    gains = [
        log_gain.sel(aggregation=way, ranks_per_node=ranks, drop=True) for way, ranks in places
    ]
    growths = [None] * len(gains)
    if most > fewest:
        falls = [differences(-gain.reindex(nodes=[fewest, most]), fewest) for gain in gains]
        growths = within_campaign([judge(fall.values, margin, evidence) for fall in falls])
    controls = [judge_control(gain.reindex(nodes=[1]).values, margin) for gain in gains]
    ways = (
        Way(*place, gain, ratios(gain), *judged)
        for place, gain, *judged in zip(places, gains, controls, growths)
    )
    micro = None if link_micro is None else _micro(link_micro)
    return LinkBonding(link_hpl, points, baseline, fewest, tuple(ways), micro)


def _micro(dataset: xr.Dataset) -> Micro:
    points = over_factors(dataset, runner="iperf3", goodput=dataset.goodput).sortby("streams")
    points = at_only_level(points, "interconnect")
    link = interconnects(dataset)[points.interconnect.item()]
    points = points.drop_vars("interconnect")
    limit = wire_limit(link["rate_bit_s"], link["mtu"])
    return Micro(dataset, points, rates(points.goodput / limit))


def findings(study: LinkBonding) -> Iterator[Statement]:
    """The gain of every way on every node count, its growth, and TCP's goodput over both links, as
    data.

    Primary is the gain from a second link on the most nodes, by the way with the largest gain.
    """
    source, best = origin(study.dataset), study.best
    falls = f"HPL over one link falls behind two from {study.fewest} to {study.most} nodes"
    for way in study.ways:
        each = f": {way.name} a node"
        for nodes in way.ratios.nodes.values.tolist():
            is_best = way is best and nodes == study.most
            picked = f" (best of {len(study.ways)} gains)" if is_best else each
            statement = f"A second link speeds up HPL on {counted(nodes, 'node')}{picked}"
            gain, blocks = way.gain(nodes), int(way.ratios.blocks.sel(nodes=nodes))
            about = {"words": above(gain[1:], 0), "primary": is_best}
            yield estimated(source, statement, "gain", gain, blocks, **about)
        if way.growth is not None:
            statement = falls if way is best else falls + each
            yield judged_fall(source, statement, way.growth, primary=way is best)
    if study.micro is None:
        return
    source, links = origin(study.micro.dataset), study.micro.links
    for way, streams in product(links.aggregation.values, links.streams.values):
        at = links.sel(aggregation=way, streams=streams)
        connections = counted(streams, "TCP connection")
        statement = f"{connections} can fill this many links: {NAMES[way]}"
        yield estimated(source, statement, "links", at_place(at, "mean"), int(at.blocks))


def finding(study: LinkBonding) -> str:
    """The largest gain, why it is no larger, the blog's gain, and TCP's, in plain English
    (Markdown)."""
    return paragraphs(
        _of_gains(study),
        (_on_one_node(study), without_reading(study.dataset)),
        _of_blog(study),
        [_of_micro(study.micro)] if study.micro else (),
    )


def _of_gains(study: LinkBonding) -> Iterator[str]:
    """The largest gain on the most nodes, if possible among those surely above 0, and what follows
    from it."""
    where, best = counted(study.most, "node"), study.best
    if best is None:
        reason = "no block has valid runs over one link and over two"
        yield f"**What a second link gives HPL on {where} cannot be said**: {reason}."
        return
    gain, *ends = best.gain(study.most)
    answer, interval = above(ends, 0), interval_in_words(ends)
    blocks = int(best.ratios.blocks.sel(nodes=study.most))
    if answer not in ("yes", "no"):
        reason = f"no gain is surely above or below 0 ({resting_on(study.dataset, blocks)})"
        yield f"**Whether a second link gives HPL anything on {where} is open**: {reason}."
        return
    count = sum(np.isfinite(way.gain(study.most)[0]) for way in study.ways)
    yield (
        f"**A second link {'gives' if gain > 0 else 'costs'} HPL {percent(abs(gain))} on {where} by {best.name} a node** "
        f"({resting_on(study.dataset, blocks, interval)}). This is the largest of {counted(count, 'gain')}, picked after the run, "
        "and so may be somewhat too large."
    )
    if answer == "yes":
        yield _growth(study, best)
        waits = percent_range([communication(end) for end in ends])
        yield (
            "Only the time that HPL waits for its network can shrink. If a second link halves it, HPL waits "
            f"{percent(communication(gain))} of the time over one link ({waits})."
        )


def communication(gain: float) -> float:
    """The share of the time over one link that two links have halved at this gain.

    Amdahl's law with two links for the share f: 1 + gain = 1 / (1 - f / 2), so that f = 2 (1 - 1 /
    (1 + gain)). It is below 0 if two links are slower.
    """
    return 2 * (1 - 1 / (1 + gain))


def _growth(study: LinkBonding, way: Way) -> str:
    growth = way.growth
    if growth is None or growth.interval is None:
        return ""
    if growth.answer not in GROWTH:
        return "Whether it changes with the number of nodes is open."
    start = f"{percent(way.gain(study.fewest)[0])} on {counted(study.fewest, 'node')}"
    return (
        f"It {GROWTH[growth.answer]} with the nodes, from {start}: HPL over one link {change(growth.fall)} against HPL over two "
        f"({judged_in_words(growth)})."
    )


def _on_one_node(study: LinkBonding) -> str:
    """How much two links differ from one where no link is used."""
    controls = [way.control for way in study.ways if way.control.interval]
    if not controls:
        return ""
    most = max(abs(control.ratio - 1) for control in controls)
    failed = sum(control.kind == "violated" for control in controls)
    beyond = f", {failed} of {len(controls)} ways beyond margin and chance" if failed else ""
    return (
        f"On one node, which uses no link, two links differ from one by up to {percent(most)}{beyond}. "
        "That much error is not in the intervals."
    )


def _of_blog(study: LinkBonding) -> Iterator[str]:
    """The gains that the blog printed, each from a single pair of runs, beside the largest ones
    here."""
    printed = published_gains()
    each = " and ".join(f"{percent(gain)} on {counted(n, 'node')}" for n, gain in printed.items())
    yield f"The bonding blog printed gains of {each}, of one pair of runs each [@bonding]."
    gains = {n: np.array([way.gain(n)[0] for way in study.ways]) for n in printed.index}
    most = [
        f"{percent(np.nanmax(here))} on {counted(n, 'node')}"
        for n, here in gains.items()
        if np.isfinite(here).any()
    ]
    if most:
        yield f"The ways here give at most {' and '.join(most)}."


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


def figures(study: LinkBonding) -> dict[str, exhibit.Exhibit]:
    """Gain over one link [%] over nodes, one panel per number of processes per node: every block,
    and means."""
    each, blog = study.points.ranks_per_node.values.tolist(), 100 * published_gains()
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 0.9 + 2.0 * len(each)))
        panels = figure.subplots(len(each), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
        for axes, ranks in zip(panels, each):
            ways = [way for way in study.ways if way.ranks_per_node == ranks]
            axes.axhline(0, color=style.INK, linewidth=0.8)
            for rank, way in enumerate(ways):
                places = drawing.beside(way.ratios.nodes.values, rank, len(ways))
                gains, means = 100 * np.expm1(way.log_gain), 100 * (way.ratios - 1)
                name = way.aggregation
                drawing.runs_and_means(axes, name, places, gains, means, NAMES[name])
            cross = {"color": style.INK, "markersize": 6, "label": "bonding blog (published)"}
            axes.plot(blog.index.values, blog.values, style.PUBLISHED_MARKER, **cross)
            axes.set_title(f"{_processes(ranks)} a node", loc="left")
            axes.set_ylabel("gain over one link [%]")
        # Scale by the blocks: intervals over two or three blocks may be wider than all gains together.
        gains = [100 * np.expm1(way.log_gain.values.ravel()) for way in study.ways]
        shown = np.concatenate([[0], blog.values, *gains])
        room = 0.1 * (np.nanmax(shown) - np.nanmin(shown))
        panels[0].set_ylim(np.nanmin(shown) - room, np.nanmax(shown) + room)
        drawing.doubling_axis(panels[-1], study.points.nodes.values)
        drawing.legend_below(figure, panels, 3)
    return exhibit.only(
        FIGURES,
        figure,
        "HPL's gain from a second link, against one link in the same block",
        exhibit.Basis.of_dataset(study.dataset, "95 % t intervals"),
        "Gain over one link over nodes, a panel for each number of processes a node, a series for each way",
        f"{drawing.RUNS_AND_MEANS} Intervals may end outside of the axes. Crosses are the bonding blog's single runs (published), the "
        "same in both panels: its processes a node are not known.",
    )


def published_gains() -> pd.Series:
    """The gains [1] that the blog printed, by number of nodes."""
    results = published.table("bonding_blog")
    rates = results.pivot(index="nodes", columns="links_per_node", values="rate_gflop_s")
    return rates[2] / rates[1] - 1


def _processes(ranks: int) -> str:
    return f"{ranks} {'process' if ranks == 1 else 'processes'}"
