"""What a second link a node gives HPL and TCP: by hashing, MPTCP, MPI striping, and the bonding driver where there is one."""

from collections.abc import Iterator, Mapping, Sequence
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
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import (
    T_INTERVAL,
    Finding,
    known,
    of_estimate,
    of_fall,
    origin,
    today_of,
    without_reading,
)
from analysis.inference.over_blocks import rates, ratios
from analysis.statistics.judgement import (
    FALLS_OFF,
    FLAT,
    RISES,
    SIZE_OPEN,
    Control,
    Interval,
    Judgement,
    judge,
    judge_control,
    within_campaign,
)
from analysis.statistics.reproduction import Reproduction, prediction_interval, reproduction
from analysis.wire import wire_limit
from analysis.wording import UNKNOWN, counted, fixed, listed, percent, percent_range

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {
    "link_bonding": ("link_hpl", "published/bonding_blog.csv"),
}
NAMES = {
    "one_link": "one link",
    "ecmp_layer2": "hash of addresses",
    "ecmp_layer34": "hash of ports",
    "mptcp": "MPTCP",
    "mpi_striping": "MPI striping",
    "bond_8023ad": "bond 802.3ad",
    "bond_balance_rr": "bond balance-rr",
}
BY_PEER = "ecmp_layer2"
# What a blog of 2009 may have had.
AS_BONDED = (BY_PEER, "ecmp_layer34", "bond_8023ad", "bond_balance_rr")
# How the gain changes with the nodes, by the answer on the fall of one link against two.
GROWTH = {
    FALLS_OFF: "grows",
    SIZE_OPEN: "grows, size open",
    FLAT: "does not grow",
    RISES: "shrinks",
}
APART = 0.03  # of a doubling, a mark of the mean from those of its runs


@dataclass(frozen=True)
class Way:
    """A way of using two links, with so many processes a node, against one link in the same blocks.

    `log_gain` is the logarithm of the ratio of the HPL rates over (block, nodes); `gains` is over (nodes): `ratio`
    (geometric mean), its 95 % t interval `low` and `high`, and `blocks`. `lesser` [1] is that of `sent_by_lesser` over
    (block, nodes). `growth` judges the rise of the gain from the fewest nodes that use a network to the most: `falls
    off` where it grows beyond the margin, `flat` where it does not; None without two such node counts. `control` is of
    one node, which uses no link: there the gain must be none. `on_fewest` judges in the same way whether there is a
    gain on the fewest nodes that use a network, and `one_pair` is the 95 % prediction interval for the ratio of a
    single pair of runs there, all that a source without repeats has; None from fewer than two blocks.
    """

    aggregation: str
    ranks_per_node: int
    log_gain: xr.DataArray
    gains: xr.Dataset
    lesser: xr.DataArray
    growth: Judgement | None
    control: Control | None
    on_fewest: Control | None
    one_pair: Interval | None

    @property
    def name(self) -> str:
        """The way in words."""
        return f"{NAMES[self.aggregation]} with {_processes(self.ranks_per_node)}"

    def at(self, nodes: int) -> tuple[float | None, Interval | None]:
        """The ratio to one link on so many nodes and its 95 % interval, None where they are not known."""
        if nodes not in self.gains.nodes:
            return None, None
        at = self.gains.sel(nodes=nodes)
        ends = float(at.low), float(at.high)
        return known(float(at.ratio)), ends if np.isfinite(ends).all() else None

    def blocks(self, nodes: int) -> int:
        """How many blocks that ratio rests on."""
        return int(self.gains.blocks.sel(nodes=nodes))

    def surely_gains(self, nodes: int) -> bool:
        """Whether that interval is above 1."""
        interval = self.at(nodes)[1]
        return interval is not None and interval[0] > 1


@dataclass(frozen=True)
class Hpl:
    """HPL over one link and over two.

    `points` is over (block, aggregation, nodes, ranks_per_node): `rate` [Gflop/s] and `lesser` [1], the share of the
    lesser link. `fewest` is the least number of nodes that use a network. Below `least_share` [1] of the bytes on the
    lesser link a run used one link.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    baseline: str
    margin: float
    least_share: float
    fewest: int
    ways: tuple[Way, ...]

    @property
    def most(self) -> int:
        """The most nodes."""
        return int(self.points.nodes.max())

    @property
    def evidence(self) -> str:
        """The kind of the data."""
        return origin("link_bonding", self.dataset)["evidence"]


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
    """Both campaigns; `micro` is None where it was not run, and `today` is of a shorter run of HPL's, made anew."""

    hpl: Hpl
    micro: Micro | None = None
    today: Hpl | None = None


def analyse(
    link_hpl: xr.Dataset, link_micro: xr.Dataset | None = None, today: xr.Dataset | None = None
) -> LinkBonding:
    """Derive gains, growth and candidates from HPL's campaign, and goodputs from TCP's.

    Raises FalloffError when a dataset has no trial of its tool, or HPL ran over several interconnects.
    """
    return LinkBonding(
        hpl=_hpl(link_hpl),
        micro=None if link_micro is None else _micro(link_micro),
        today=None if today is None else _hpl(today),
    )


def communication(ratio: float) -> float:
    """The part of the time over one link that two links have halved at this ratio of rates.

    Amdahl's law with two links for the part f: ratio = 1 / (1 - f / 2), so that f = 2 (1 - 1 / ratio); below 0 where two
    links are slower.
    """
    return 2 * (1 - 1 / ratio)


def sent_by_lesser(dataset: xr.Dataset) -> xr.DataArray:
    """Over (trial): the part of their bytes that nodes sent over whichever of their two links carried less.

    0.5 where every node used both alike and 0 where each used one, be it not the same one; NaN where nothing was sent.
    """
    first, second = dataset.bytes_sent_rail_1, dataset.bytes_sent_rail_2
    total = (first + second).sum("node")
    return np.minimum(first, second).sum("node") / total.where(total > 0)


def _hpl(dataset: xr.Dataset) -> Hpl:
    points = over_factors(dataset, rate=dataset.hpl_rate, lesser=sent_by_lesser(dataset))
    points = at_only_level(points, "interconnect").drop_vars("interconnect")
    points["lesser"] = points.lesser.where(points.nodes > 1)  # one node has nobody to send to
    planned, evidence = design(dataset), origin("link_bonding", dataset)["evidence"]
    others = [way for way in points.aggregation.values.tolist() if way != planned["baseline"]]
    each = product(others, points.ranks_per_node.values.tolist())
    ways = [_way(way, ranks, points, planned, evidence) for way, ranks in each]
    if all(way.growth for way in ways):
        growths = within_campaign([way.growth for way in ways])
        ways = [replace(way, growth=growth) for way, growth in zip(ways, growths)]
    return Hpl(
        dataset=dataset,
        points=points,
        baseline=planned["baseline"],
        margin=planned["margin"],
        least_share=planned["least_share"],
        fewest=planned["fewest_nodes"],
        ways=tuple(ways),
    )


def _way(aggregation: str, ranks: int, points: xr.Dataset, planned: Mapping, evidence: str) -> Way:
    log_gain = log_ratios(points, aggregation, planned["baseline"], "aggregation")
    log_gain = log_gain.sel(ranks_per_node=ranks, drop=True)
    most, fewest, margin = int(log_gain.nodes.max()), planned["fewest_nodes"], planned["margin"]
    growth = control = on_fewest = one_pair = None
    if 1 in log_gain.nodes:
        control = judge_control(log_gain.sel(nodes=1).values, margin)
    if fewest in log_gain.nodes:
        few = log_gain.sel(nodes=fewest)
        on_fewest, pairs = judge_control(few.values, margin), few.dropna("block").values
        if len(pairs) > 1:
            one_pair = tuple(np.exp(prediction_interval(pairs, 1)).tolist())
        if most > fewest:
            growth = judge((few - log_gain.sel(nodes=most)).values, margin, evidence)
    return Way(
        aggregation=aggregation,
        ranks_per_node=ranks,
        log_gain=log_gain,
        gains=ratios(log_gain),
        lesser=points.lesser.sel(aggregation=aggregation, ranks_per_node=ranks, drop=True),
        growth=growth,
        control=control,
        on_fewest=on_fewest,
        one_pair=one_pair,
    )


def _micro(dataset: xr.Dataset) -> Micro:
    points = over_factors(dataset, runner="iperf3", goodput=dataset.goodput).sortby("streams")
    points = at_only_level(points, "interconnect")
    link = interconnects(dataset)[points.interconnect.item()]
    points = points.drop_vars("interconnect")
    limit = wire_limit(link["rate_bit_s"], link["mtu"])
    return Micro(dataset, points, rates(points.goodput / limit))


def findings(study: LinkBonding) -> Iterator[Finding]:
    """Gain of every way on every node count, and its growth, as data."""
    hpl = study.hpl
    source = origin("link_bonding", hpl.dataset)
    run_today = study.today.dataset if study.today else None
    for way in hpl.ways:
        each = f"{way.aggregation}, {way.ranks_per_node} processes a node"
        for nodes in way.gains.nodes.values.tolist():
            gain = way.gains.sel(nodes=nodes) - 1
            yield of_estimate(
                source,
                f"what two links gain over one: {each}, {nodes} nodes",
                "gain",
                "1",
                float(gain.ratio),
                (float(gain.low), float(gain.high)),
                T_INTERVAL,
                n=way.blocks(nodes),
                today=today_of(_reproduced(study, way, nodes), run_today),
            )
        if way.growth is not None:
            statement = f"one link falls against two from {hpl.fewest} to {hpl.most} nodes: {each}"
            yield of_fall(source, statement, way.growth)
    if study.micro is not None:
        source = origin("link_bonding", study.micro.dataset)
        for place in product(
            *(study.micro.links[name].values for name in ("aggregation", "streams"))
        ):
            at = study.micro.links.sel(dict(zip(("aggregation", "streams"), place)))
            statement = "TCP's goodput in units of one link's wire limit: {}, {} connections".format(*place)
            ends, n = (float(at.low), float(at.high)), int(at.blocks)
            yield of_estimate(
                source, statement, "links", "1", float(at["mean"]), ends, T_INTERVAL, n=n
            )


def _reproduced(study: LinkBonding, way: Way, nodes: int) -> Reproduction | None:
    """Whether today's run gives a way's gain again; None where it was not run today."""
    for today in study.today.ways if study.today else ():
        if today.name == way.name and nodes in today.log_gain.nodes:
            then, now = (one.log_gain.sel(nodes=nodes).values for one in (way, today))
            return reproduction("", then, now, study.hpl.margin)
    return None


def finding(study: LinkBonding) -> str:
    """The largest gain, why it is no larger, the blog's, and what TCP gets, in plain English (Markdown)."""
    hpl = study.hpl
    paragraphs = (
        _of_gains(hpl),
        (_on_one_node(hpl), without_reading(hpl.dataset)),
        _of_blog(hpl),
        (_of_micro(study.micro) if study.micro else "", _of_today(study)),
    )
    return "\n\n".join(filter(None, (" ".join(filter(None, part)) for part in paragraphs)))


def _of_gains(hpl: Hpl) -> Iterator[str]:
    """The largest gain on the most nodes of those that are surely above 0, if any, else of all; and what it tells."""
    ways = [way for way in hpl.ways if way.at(hpl.most)[0] is not None]
    sure = [way for way in ways if way.surely_gains(hpl.most)]
    where = counted(hpl.most, "node")
    if not ways:
        reason = "no block has valid runs over one link and over two"
        yield f"**What a second link gives HPL on {where} cannot be said**: {reason}."
        return
    best = max(sure or ways, key=lambda way: way.at(hpl.most)[0])
    ratio, interval = best.at(hpl.most)
    basis = f"{counted(best.blocks(hpl.most), 'block')}, {hpl.evidence} evidence"
    if interval is None:
        reason = f"one block has no interval ({basis})"
        yield f"**How much a second link gives HPL on {where} is open**: {reason}."
        return
    if interval[0] <= 1 <= interval[1]:
        reason = f"no gain is surely above or below 0 ({basis})"
        yield f"**Whether a second link gives HPL anything on {where} is open**: {reason}."
        return
    yield (
        f"**A second link {'gives' if ratio > 1 else 'costs'} HPL {percent(abs(ratio - 1))} on {where} by {best.name} a node** "
        f"(95 % t interval {_gains(interval)}, {basis}). It is the largest of {counted(len(ways), 'gain')}, picked after the run."
    )
    if sure:
        yield _growth(hpl, best)
        yield (
            "The rate does not double, because only the time that HPL waits for the network can shrink. If two links halve that "
            f"time, it is {percent(communication(ratio))} ({percent_range(tuple(map(communication, interval)))}) of the time over one link."
        )
        yield _evenly_used(hpl, best)


def _growth(hpl: Hpl, way: Way) -> str:
    growth = way.growth
    if growth is None or growth.interval is None:
        return ""
    if growth.answer not in GROWTH:
        return "Whether it changes with the number of nodes is open."
    changes = GROWTH[growth.answer].removesuffix(", size open")
    start = f"{_gain(way.at(hpl.fewest)[0])} on {counted(hpl.fewest, 'node')}"
    interval = f"{percent(growth.confidence, 0)} interval of the rise {_rise(growth.interval)}"
    return f"It {changes} with the nodes, from {start} ({interval})."


def _evenly_used(hpl: Hpl, best: Way) -> str:
    """Which part of the bytes a node's lesser link carried, by the best way and by others."""
    shares = {way.name: float(way.lesser.sel(nodes=hpl.most).median()) for way in hpl.ways}
    rest = [shares[way.name] for way in hpl.ways if way.aggregation != best.aggregation]
    if not np.isfinite([shares[best.name], *rest]).all():
        return ""
    others = f"; by the other ways {percent_range((min(rest), max(rest)), 0)}" if rest else ""
    return f"The link that carried less had {percent(shares[best.name], 0)} of the bytes{others}."


def _on_one_node(hpl: Hpl) -> str:
    """How much two links differ from one where no link is used."""
    controls = [way.control for way in hpl.ways if way.control and way.control.interval]
    if not controls:
        return ""
    most = max(abs(control.ratio - 1) for control in controls)
    failed = sum(control.kind == "violated" for control in controls)
    beyond = f", {failed} of {len(controls)} of them beyond margin and chance" if failed else ""
    return (
        f"On one node, which uses no link, the combinations differ from one link by up to {percent(most)}{beyond}. "
        "A smaller gain elsewhere may be the machine's own."
    )


def _of_blog(hpl: Hpl) -> Iterator[str]:
    """What could explain the gain that the blog printed on the fewest nodes."""
    printed = published_gains()
    if hpl.fewest not in printed.index:
        return
    each = " and ".join(f"{percent(gain)} on {counted(n, 'node')}" for n, gain in printed.items())
    yield f"A blog printed gains of {each}, of one pair of runs each [@bonding]."
    yield _one_peer(hpl)
    gain = printed[hpl.fewest]
    judged = [way for way in hpl.ways if way.aggregation in AS_BONDED and way.on_fewest]
    judged = [way for way in judged if way.on_fewest.interval]
    means, pairs = (
        [way.name for way, (low, high) in zip(judged, intervals) if low <= 1 + gain <= high]
        for intervals in (
            [way.on_fewest.interval for way in judged],
            [way.one_pair for way in judged],
        )
    )
    if means:
        yield f"A mean gain of {percent(gain)} there is possible by {' or '.join(means)}."
    elif judged:
        yield f"No hash that was tried has a mean gain of {percent(gain)} there."
    if pairs:
        yield f"A single pair of runs may reach it by {' or '.join(pairs)}."


def _one_peer(hpl: Hpl) -> str:
    """That a hash of addresses uses one link between two nodes, where it did so in every run."""
    ways = [
        way for way in hpl.ways if way.aggregation == BY_PEER and hpl.fewest in way.lesser.nodes
    ]
    shares = [way.lesser.sel(nodes=hpl.fewest).dropna("block").values for way in ways]
    runs = np.concatenate(shares) if shares else np.array([])
    if not runs.size or (runs >= hpl.least_share).any():
        return ""
    return (
        "The bonding driver's default, a hash of addresses, leaves all traffic to one peer on one link. "
        f"On {counted(hpl.fewest, 'node')} it used one link in all {counted(runs.size, 'run')} here."
    )


def _of_micro(study: Micro) -> str:
    """How many links the fewest and the most connections fill."""
    ends = study.links["mean"].isel(streams=[0, -1]).dropna("aggregation")
    ends = ends.sel(aggregation=ends.aggregation != "one_link")
    if not ends.size:
        return "What TCP connections get of two links cannot be said: no way of using both has a valid run."
    names = [NAMES[way] for way in ends.aggregation.values]
    first, last = (
        [fixed(links, 2) for links in at] for at in ends.transpose("streams", ...).values
    )
    fewest, most = ends.streams.values.tolist()
    evidence = origin("link_bonding", study.dataset)["evidence"]
    filled = listed([f"{links} links by {name}" for links, name in zip(first, names)])
    basis = f"{counted(study.points.sizes['block'], 'block')}, {evidence} evidence"
    return (
        f"Between two nodes, {counted(fewest, 'TCP connection')} {'fills' if fewest == 1 else 'fill'} {filled}. "
        f"With {most} connections these are {listed(last)} links ({basis})."
    )


def _of_today(study: LinkBonding) -> str:
    """How many of today's gains are the reference's."""
    compared = [
        _reproduced(study, way, nodes)
        for way, nodes in product(study.hpl.ways, study.hpl.points.nodes.values.tolist())
    ]
    kinds = [one.kind for one in compared if one]
    if not kinds:
        return ""
    return (
        f"Today's shorter run reproduces {kinds.count('reproduced')} of {counted(len(kinds), 'gain')}; "
        f"{kinds.count('not reproduced')} differ."
    )


def figures(study: LinkBonding) -> dict[str, Exhibit]:
    """HPL's gain over nodes."""
    hpl = study.hpl
    exhibit = Exhibit(
        "link_bonding",
        gains_over_nodes(hpl),
        "HPL's gain from a second link, against one link in the same block",
        Basis(hpl.evidence, hpl.points.sizes["block"], "95 % t intervals"),
        "Gain over one link over nodes, a panel for each number of processes a node, a series for each way",
        "Small marks are single blocks; open marks and bars are geometric means with their intervals, which may end "
        "outside of the axes. Crosses are a blog's single runs (published); its processes a node are not known.",
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
                places = drawing.beside(way.gains.nodes.values, rank, len(ways) + 1)
                gains = 100 * np.expm1(way.log_gain)
                drawing.runs(axes, name, places * 2**-APART, gains, "_")
                axes.plot([], [], look.marker, color=look.color, mfc="white", label=NAMES[name])
                means = 100 * (way.gains - 1)
                ends = (means[end].values for end in ("ratio", "low", "high"))
                drawing.interval(axes, name, places * 2**APART, *ends)
            places = drawing.beside(blog.index.values, len(ways), len(ways) + 1)
            cross = {"color": style.INK, "markersize": 6, "label": "published (blog)"}
            axes.plot(places, 100 * blog.values, style.PUBLISHED_MARKERS["gige"], **cross)
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


def growth_table(study: LinkBonding) -> Table:
    """Every way's gain on the fewest and the most nodes, whether it grows, and its check on one node."""
    hpl = study.hpl
    columns = (
        "Way, processes a node",
        f"On {hpl.fewest} nodes ({percent(0.95, 0)})",
        f"On {hpl.most} nodes ({percent(0.95, 0)})",
        f"Rise ({percent(0.9, 0)})",
        "The gain",
        "Blocks",
        f"On 1 node ({percent(0.95, 0)})",
    )
    caption = (
        f"HPL's gain from a second link, and whether it rises from {hpl.fewest} to {hpl.most} nodes beyond a margin of "
        f"{percent(hpl.margin, 0)}, by Holm's procedure over all rows. One node uses no link: its gain has to be none."
    )
    rows = [_growth_row(hpl, way) for way in hpl.ways]
    basis = Basis(hpl.evidence, hpl.points.sizes["block"], "t intervals")
    return Table("link-bonding", columns, "lrrrlrr", rows, caption, basis)


def _growth_row(hpl: Hpl, way: Way) -> Sequence[str]:
    few, most, alone = (_gain(*way.at(nodes)) for nodes in (hpl.fewest, hpl.most, 1))
    rise, answer, blocks = UNKNOWN, UNKNOWN, UNKNOWN
    if (growth := way.growth) and growth.fall is not None:
        interval = f" ({_rise(growth.interval)})" if growth.interval else ""
        rise = percent(1 / (1 - growth.fall) - 1) + interval
        answer, blocks = GROWTH.get(growth.answer, growth.answer), str(growth.blocks)
    return f"{NAMES[way.aggregation]}, {way.ranks_per_node}", few, most, rise, answer, blocks, alone


def published_gains() -> pd.Series:
    """The gain [1] that the blog printed, by the number of nodes."""
    results = published.bonding_blog()
    rates = results.pivot(index="nodes", columns="links_per_node", values="rate_gflop_s")
    return rates[2] / rates[1] - 1


def _processes(ranks: int) -> str:
    return f"{ranks} {'process' if ranks == 1 else 'processes'}"


def _rise(falls: Interval) -> str:
    """The interval of a gain's rise, from that of the fall of one link against two."""
    return percent_range(tuple(1 / (1 - end) - 1 for end in falls))


def _gain(ratio: float | None, interval: Interval | None = None) -> str:
    """A ratio to one link as a gain, with its interval where there is one."""
    gain = percent(None if ratio is None else ratio - 1)
    return gain if interval is None else f"{gain} ({_gains(interval)})"


def _gains(interval: Interval) -> str:
    return percent_range((interval[0] - 1, interval[1] - 1))
