"""What a second link a node gives HPL: by hashing, MPTCP, MPI striping, and the bonding driver where there is one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import attributes, drawing, published, style
from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, known_rate, over_factors
from analysis.exhibit import Basis, Exhibit, Table
from analysis.experiments import link_micro as tcp
from analysis.experiments.link_micro import NAMES, Micro, lesser_shares, sent_by_lesser
from analysis.findings import T_INTERVAL, Finding, known, of_estimate, of_fall, origin, today_of
from analysis.statistics.intervals import ratios
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
from analysis.wording import UNKNOWN, between, counted, fixed, percent, percent_range

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {
    "link_bonding": ("link_hpl", "published/bonding_blog.csv"),
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


@dataclass(frozen=True)
class Way:
    """A way of using two links, with so many processes a node, against one link in the same blocks.

    `log_gain` is the logarithm of the ratio of the HPL rates over (block, nodes); `gains` is over (nodes): `ratio`
    (geometric mean), its 95 % t interval `low` and `high`, and `blocks`. `lesser` is over (nodes) as `lesser_shares` has
    it. `growth` judges the rise of the gain from the fewest nodes that use a network to the most: `falls off` where it
    grows beyond the margin, `flat` where it does not; None without two such node counts. `control` is of one node, which
    uses no link: there the gain must be none. `on_fewest` judges in the same way whether there is a gain on the fewest
    nodes that use a network, and `one_pair` is the 95 % prediction interval for the ratio of a single pair of runs there,
    all that a source without repeats has; None from fewer than two blocks.
    """

    aggregation: str
    ranks_per_node: int
    log_gain: xr.DataArray
    gains: xr.Dataset
    lesser: xr.Dataset
    growth: Judgement | None
    control: Control | None
    on_fewest: Control | None
    one_pair: Interval | None

    @property
    def name(self) -> str:
        """The way in words."""
        return f"{NAMES[self.aggregation]} with {_processes(self.ranks_per_node)}"

    @property
    def short(self) -> str:
        """The way as a row of a table names it."""
        return f"{NAMES[self.aggregation]}, {self.ranks_per_node}"

    def at(self, nodes: int) -> tuple[float | None, Interval | None]:
        """The ratio to one link on so many nodes and its 95 % interval, None where they are not known."""
        if nodes not in self.gains.nodes:
            return None, None
        ratio, low, high = (
            float(self.gains[end].sel(nodes=nodes)) for end in ("ratio", "low", "high")
        )
        return known(ratio), None if np.isnan(low) else (low, high)

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

    `points` is over (block, aggregation, nodes, ranks_per_node): `rate` [Gflop/s], `share` [1] of what the nodes are
    known to compute (its attribute `of` says what that is), and `lesser` [1], the share of the lesser link. `shares` are
    the geometric means of `share` over the blocks (`ratio`, `low`, `high`, `blocks`). `fewest` is the least number
    of nodes that use a network. Below `least_share` [1] of the bytes on the lesser link a run used one link.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    shares: xr.Dataset
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
        return self.dataset.evidence.values[0].item()

    @property
    def candidates(self) -> tuple[Way, ...]:
        """The ways that the blog may have used."""
        return tuple(way for way in self.ways if way.aggregation in AS_BONDED and way.on_fewest)


@dataclass(frozen=True)
class LinkBonding:
    """Both campaigns; `micro` is None where it was not run, and `today` is of shorter runs, made anew."""

    hpl: Hpl
    micro: Micro | None = None
    today: "LinkBonding | None" = None


def analyse(
    link_hpl: xr.Dataset,
    link_micro: xr.Dataset | None = None,
    today_link_hpl: xr.Dataset | None = None,
    today_link_micro: xr.Dataset | None = None,
) -> LinkBonding:
    """Derive gains, growth and candidates from HPL's campaign, and goodputs from TCP's.

    Raises FalloffError when a dataset has no trial of its tool, or HPL ran over several interconnects.
    """
    return LinkBonding(
        hpl=_hpl(link_hpl),
        micro=None if link_micro is None else tcp.analyse(link_micro),
        today=None if today_link_hpl is None else analyse(today_link_hpl, today_link_micro),
    )


def communication(ratio: float) -> float:
    """The part of the time over one link that two links have halved at this ratio of rates.

    Amdahl's law with two links for the part f: ratio = 1 / (1 - f / 2), so that f = 2 (1 - 1 / ratio); below 0 where two
    links are slower.
    """
    return 2 * (1 - 1 / ratio)


def _hpl(dataset: xr.Dataset) -> Hpl:
    points = over_factors(dataset, rate=dataset.hpl_rate, lesser=sent_by_lesser(dataset))
    points = at_only_level(points, "interconnect").drop_vars("interconnect")
    points["lesser"] = points.lesser.where(points.nodes > 1)  # one node has nobody to send to
    nodes_rate = known_rate(attributes.testbed(dataset), points.rate)
    points["share"] = (points.rate / nodes_rate).assign_attrs(units="1", of=nodes_rate.attrs["of"])
    design = attributes.design(dataset)
    evidence = dataset.evidence.values[0].item()
    others = [way for way in points.aggregation.values.tolist() if way != design["baseline"]]
    each = points.ranks_per_node.values.tolist()
    ways = [_way(way, ranks, points, design, evidence) for way, ranks in product(others, each)]
    return Hpl(
        dataset=dataset,
        points=points,
        shares=ratios(np.log(points.share)),
        baseline=design["baseline"],
        margin=design["margin"],
        least_share=design["least_share"],
        fewest=design["fewest_nodes"],
        ways=_corrected(ways),
    )


def _way(aggregation: str, ranks: int, points: xr.Dataset, design: Mapping, evidence: str) -> Way:
    log_gain = log_ratios(points, aggregation, design["baseline"], "aggregation")
    log_gain = log_gain.sel(ranks_per_node=ranks, drop=True)
    lesser = points.lesser.sel(aggregation=aggregation, ranks_per_node=ranks, drop=True)
    most, fewest, margin = int(log_gain.nodes.max()), design["fewest_nodes"], design["margin"]
    growth = control = on_fewest = one_pair = None
    if 1 in log_gain.nodes:
        control = judge_control(log_gain.sel(nodes=1).values, margin)
    if fewest in log_gain.nodes:
        there = log_gain.sel(nodes=fewest)
        on_fewest, one_pair = judge_control(there.values, margin), _one_pair(there.dropna("block"))
        if most > fewest:
            growth = judge((there - log_gain.sel(nodes=most)).values, margin, evidence)
    return Way(
        aggregation=aggregation,
        ranks_per_node=ranks,
        log_gain=log_gain,
        gains=ratios(log_gain),
        lesser=lesser_shares(lesser, design["least_share"]),
        growth=growth,
        control=control,
        on_fewest=on_fewest,
        one_pair=one_pair,
    )


def _one_pair(log_gains: xr.DataArray) -> Interval | None:
    if len(log_gains) < 2:
        return None
    low, high = np.exp(prediction_interval(log_gains.values, 1)).tolist()
    return low, high


def _corrected(ways: list[Way]) -> tuple[Way, ...]:
    """The ways with their growths, which all have or none has, corrected for each other."""
    if any(way.growth is None for way in ways):
        return tuple(ways)
    growths = within_campaign([way.growth for way in ways])
    return tuple(replace(way, growth=growth) for way, growth in zip(ways, growths))


def findings(study: LinkBonding) -> Iterator[Finding]:
    """Gain of every way on every node count, and its growth, as data."""
    hpl = study.hpl
    source = origin("link_bonding", hpl.dataset)
    run_today = study.today.hpl.dataset if study.today else None
    for way in hpl.ways:
        each = f"{way.aggregation}, {way.ranks_per_node} processes a node"
        for nodes in way.gains.nodes.values.tolist():
            gain = way.gains.sel(nodes=nodes)
            yield of_estimate(
                source,
                f"what two links gain over one: {each}, {nodes} nodes",
                "gain",
                "1",
                float(gain.ratio) - 1,
                (float(gain.low) - 1, float(gain.high) - 1),
                T_INTERVAL,
                n=int(gain.blocks),
                today=today_of(_reproduced(study, way, nodes), run_today),
            )
        if way.growth is not None:
            statement = f"one link falls against two from {hpl.fewest} to {hpl.most} nodes: {each}"
            yield of_fall(source, statement, way.growth)


def _reproduced(study: LinkBonding, way: Way, nodes: int) -> Reproduction | None:
    """Whether today's run gives a way's gain again; None where it was not run today."""
    for today in study.today.hpl.ways if study.today else ():
        if today.name == way.name and nodes in today.log_gain.nodes:
            then, now = (one.log_gain.sel(nodes=nodes).values for one in (way, today))
            return reproduction("", then, now, study.hpl.margin)
    return None


def finding(study: LinkBonding) -> str:
    """The largest gain, why it is no larger, the blog's, and what TCP gets, in plain English (Markdown)."""
    hpl = study.hpl
    ways = [way for way in hpl.ways if way.at(hpl.most)[0] is not None]
    # The largest of those gains that are surely above 0, if any, else of all.
    sure = [way for way in ways if way.surely_gains(hpl.most)]
    best = max(sure or ways, key=lambda way: way.at(hpl.most)[0], default=None)
    gains = [
        _largest(hpl, best, len(ways)),
        _growth(hpl, best) if sure else "",
        _not_twofold(hpl, best) if sure else "",
        _evenly_used(hpl, best) if sure else "",
    ]
    limits = [_on_one_node(hpl), _rejected(hpl)]
    over_tcp = tcp.finding(study.micro) if study.micro else ""
    paragraphs = (
        " ".join(filter(None, part)) for part in (gains, limits, [_of_blog(hpl)], [over_tcp])
    )
    return "\n\n".join(filter(None, paragraphs))


def _largest(hpl: Hpl, best: Way | None, count: int) -> str:
    """The largest of so many gains on the most nodes; where none can be told from 0, this."""
    where = counted(hpl.most, "node")
    if best is None:
        reason = "no block has valid runs over one link and over two"
        return f"**What a second link gives HPL on {where} cannot be said**: {reason}."
    ratio, interval = best.at(hpl.most)
    basis = f"{counted(best.blocks(hpl.most), 'block')}, {hpl.evidence} evidence"
    if interval is None:
        return (
            f"**How much a second link gives HPL on {where} is open**: one block has no interval ({basis}). "
            f"The largest gain in it is {_gain(ratio)}, by {best.name} a node."
        )
    if interval[0] <= 1 <= interval[1]:
        reason = f"no gain is surely above or below 0 ({basis})"
        return f"**Whether a second link gives HPL anything on {where} is open**: {reason}."
    verb, gain = "gives" if ratio > 1 else "costs", percent(abs(ratio - 1))
    return (
        f"**A second link {verb} HPL {gain} on {where} by {best.name} a node** "
        f"(95 % t interval {_gains(interval)}, {basis}). "
        f"It is the largest of {counted(count, 'gain')}, picked after the run."
    )


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


def _not_twofold(hpl: Hpl, best: Way) -> str:
    """Amdahl's law for a gain."""
    ratio, interval = best.at(hpl.most)
    waits, ends = communication(ratio), tuple(map(communication, interval))
    return (
        "The rate does not double, because only the time that HPL waits for the network can shrink. "
        f"If two links halve that time, it is {percent(waits)} ({percent_range(ends)}) of the time over one link."
    )


def _evenly_used(hpl: Hpl, best: Way) -> str:
    """Which part of the bytes a node's lesser link carried, by the best way and by others."""
    shares = {way.name: float(way.lesser.median_share.sel(nodes=hpl.most)) for way in hpl.ways}
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


def _rejected(hpl: Hpl) -> str:
    count = int((hpl.dataset.status != "ok").sum())
    if not count:
        return ""
    total = counted(hpl.dataset.sizes["trial"], "run")
    return f"{count} of {total} gave no valid rate; the table counts the blocks that are left."


def _of_blog(hpl: Hpl) -> str:
    """What could explain the gain that the blog printed on the fewest nodes."""
    printed = published_gains()
    if hpl.fewest not in printed.index:
        return ""
    each = " and ".join(f"{percent(gain)} on {counted(n, 'node')}" for n, gain in printed.items())
    gain = percent(printed[hpl.fewest])
    judged = [way for way in hpl.candidates if way.on_fewest.interval]
    means = [way.name for way in judged if _may_be_blogs(way.on_fewest.interval, hpl) == "yes"]
    pairs = [way.name for way in judged if _may_be_blogs(way.one_pair, hpl) == "yes"]
    sentences = [f"A blog printed gains of {each}, of one pair of runs each [@bonding]."]
    sentences.append(_one_peer(hpl))
    if means:
        sentences.append(f"A mean gain of {gain} there is possible by {' or '.join(means)}.")
    elif judged:
        sentences.append(f"No hash that was tried has a mean gain of {gain} there.")
    if pairs:
        sentences.append(f"A single pair of runs may reach it by {' or '.join(pairs)}.")
    return " ".join(filter(None, sentences))


def _one_peer(hpl: Hpl) -> str:
    """That a hash of addresses uses one link between two nodes, where it did so in every run."""
    ways = [way for way in hpl.candidates if way.aggregation == BY_PEER]
    runs = sum(int(way.lesser.runs.sel(nodes=hpl.fewest)) for way in ways)
    on_one = sum(int(way.lesser.on_one.sel(nodes=hpl.fewest)) for way in ways)
    if not runs or on_one < runs:
        return ""
    return (
        "The bonding driver's default, a hash of addresses, leaves all traffic to one peer on one link. "
        f"On {counted(hpl.fewest, 'node')} it used one link in all {counted(runs, 'run')} here."
    )


def _may_be_blogs(interval: Interval | None, hpl: Hpl) -> str:
    """Whether an interval of ratios holds that of the blog on the fewest nodes."""
    gain = published_gains().get(hpl.fewest)
    if interval is None or gain is None:
        return UNKNOWN
    return "yes" if interval[0] <= 1 + gain <= interval[1] else "no"


def figures(study: LinkBonding) -> dict[str, Exhibit]:
    """HPL's gain over nodes, and where it was run what TCP connections get."""
    gains = Exhibit(
        "link_bonding",
        gains_over_nodes(study.hpl),
        "HPL's gain from a second link, against one link in the same block",
        _basis(study.hpl, "95 % t intervals"),
        "Gain over one link over nodes, a panel for each number of processes a node, a series for each way",
        "Small marks are single blocks; open marks and bars are geometric means with their intervals, which may end "
        "outside of the axes. Crosses are a blog's single runs (published); its processes a node are not known.",
        rests_on=FIGURES["link_bonding"],
    )
    return {"gains": gains} | (tcp.figures(study.micro) if study.micro else {})


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
                places = drawing.beside(way.gains.nodes.values, rank, len(ways) + 1)
                means = 100 * (way.gains[["ratio", "low", "high"]] - 1)
                runs = 100 * np.expm1(way.log_gain)
                tcp.marks(axes, way.aggregation, places, runs, means.rename(ratio="mean"))
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
    basis = _basis(hpl, "t intervals")
    return Table("link-bonding", columns, "lrrrlrr", rows, caption, basis)


def _growth_row(hpl: Hpl, way: Way) -> tuple[str, ...]:
    ends = (_gain(*way.at(nodes)) for nodes in (hpl.fewest, hpl.most))
    rise, answer, blocks = UNKNOWN, UNKNOWN, UNKNOWN
    if (growth := way.growth) and growth.fall is not None:
        interval = f" ({_rise(growth.interval)})" if growth.interval else ""
        rise = percent(1 / (1 - growth.fall) - 1) + interval
        answer, blocks = GROWTH.get(growth.answer, growth.answer), str(growth.blocks)
    return way.short, *ends, rise, answer, blocks, _gain(*way.at(1))


def gains_table(study: LinkBonding) -> Table:
    """HPL's rate over one link and two on several nodes, the gain, and which links carried the bytes."""
    hpl = study.hpl
    columns = (
        "Way, processes a node",
        "Nodes",
        "One link [%]",
        "Two links [%]",
        "Gain (95 % interval)",
        "Sent over the lesser link",
        "Runs on one link",
    )
    nodes = [n for n in hpl.points.nodes.values.tolist() if n > 1]
    caption = (
        f"HPL's rate as a share of {hpl.points.share.attrs['of']}, and the gain: geometric means. "
        f"{tcp.LESSER} A run used one link if that is below {percent(hpl.least_share, 0)}."
    )
    rows = [_gain_row(hpl, way, n) for way, n in product(hpl.ways, nodes)]
    basis = _basis(hpl, "95 % t intervals")
    return Table("link-bonding-gains", columns, "lrrrrrr", rows, caption, basis)


def _gain_row(hpl: Hpl, way: Way, nodes: int) -> tuple[str, ...]:
    at = hpl.shares.ratio.sel(ranks_per_node=way.ranks_per_node, nodes=nodes)
    both = (known(100 * at.sel(aggregation=name)) for name in (hpl.baseline, way.aggregation))
    used = tcp.lesser_text(way.lesser.sel(nodes=nodes))
    return way.short, str(nodes), *(fixed(share, 1) for share in both), _gain(*way.at(nodes)), *used


def candidates_table(study: LinkBonding) -> Table:
    """What could explain the gain that the blog printed on the fewest nodes."""
    hpl = study.hpl
    columns = (
        "Way, processes a node",
        "Mean gain (90 % interval)",
        "One pair of runs (95 % prediction)",
        "May the mean be the blog's?",
        "May one pair?",
    )
    caption = (
        f"What the blog may have used on {hpl.fewest} nodes: the geometric mean of its gain, and where a single pair of runs "
        f"may lie. The blog printed {percent(published_gains().get(hpl.fewest))} of one pair, and does not say which hash."
    )
    rows = [_candidate_row(hpl, way) for way in hpl.candidates]
    basis = _basis(hpl, "90 % t intervals")
    return Table("link-bonding-candidates", columns, "lrrll", rows, caption, basis)


def _candidate_row(hpl: Hpl, way: Way) -> tuple[str, ...]:
    answers = (_may_be_blogs(interval, hpl) for interval in (way.on_fewest.interval, way.one_pair))
    gain = _gain(way.on_fewest.ratio, way.on_fewest.interval)
    return way.short, gain, _gains(way.one_pair), *answers


def today_tables(study: LinkBonding) -> tuple[Table, ...]:
    """Shorter runs of today beside the references, HPL's and TCP's; none without them."""
    if study.today is None:
        return ()
    nodes, rows = study.hpl.points.nodes.values.tolist(), []
    for way, count in product(study.hpl.ways, nodes):
        if found := _reproduced(study, way, count):
            gains = (_gain(ratio) for ratio in (found.today, found.reference))
            rows.append((way.short, str(count), *gains, between(found.interval, 3), found.kind))
    columns = ("Way, processes", "Nodes", "Gain today", "Reference", "Ratio [1]", "Today's run")
    caption = (
        "HPL's gain today and in the reference, and the interval of the ratio of today's rates to the reference's. The gain "
        f"is reproduced where that lies within the margin of {percent(study.hpl.margin, 0)}."
    )
    blocks = study.today.hpl.points.sizes["block"]
    basis = Basis(study.hpl.evidence, blocks, "90 % t intervals")
    table = Table("link-bonding-today", columns, "lrrrrl", rows, caption, basis)
    if study.micro is None or study.today.micro is None:
        return (table,)
    return table, tcp.today_table(study.micro, study.today.micro)


def published_gains() -> pd.Series:
    """The gain [1] that the blog printed, by the number of nodes."""
    results = published.bonding_blog()
    rates = results.pivot(index="nodes", columns="links_per_node", values="rate_gflop_s")
    return rates[2] / rates[1] - 1


def _processes(ranks: int) -> str:
    return f"{ranks} {'process' if ranks == 1 else 'processes'}"


def _basis(hpl: Hpl, intervals: str) -> Basis:
    return Basis(hpl.evidence, hpl.points.sizes["block"], intervals)


def _rise(falls: Interval) -> str:
    """The interval of a gain's rise, from that of the fall of one link against two."""
    return percent_range(tuple(1 / (1 - end) - 1 for end in falls))


def _gain(ratio: float | None, interval: Interval | None = None) -> str:
    """A ratio to one link as a gain, with its interval where there is one."""
    gain = percent(None if ratio is None else ratio - 1)
    return gain if interval is None else f"{gain} ({_gains(interval)})"


def _gains(interval: Interval | None) -> str:
    return UNKNOWN if interval is None else percent_range((interval[0] - 1, interval[1] - 1))
