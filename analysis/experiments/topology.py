"""What oversubscribed networks cost and save: traffic and HPL simulated on the networks that a design page proposes."""

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from analysis import designs as network_designs
from analysis import drawing, paths, style
from analysis.attributes import short_names, testbed
from analysis.derive import at_only_level, over_factors
from analysis.designs import CROSSBAR, Designs
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import Finding, known, of_estimate, origin
from analysis.statistics import design as plans
from analysis.wording import UNKNOWN, counted, fixed, listed, number, percent
from runners.record import FalloffError

HPL = "hpl"  # stands beside the patterns of traffic
FREE, COSTLY, DEPENDS = "costs nothing", "costs", "depends on the run"
SUPPORTED, CONTRADICTED, MIXED = "supported", "contradicted", "mixed"
TRAFFIC = {
    "nearest_neighbour": "between neighbours",
    "permutation": "between random pairs",
    "all_to_all": "from all to all",
    "many_to_one": "from many to one",
    HPL: "of HPL",
}
FIGURES = {"topology": ("topology", "hpl_topology")}
OPENS = {
    "topology": {"x": "pattern", "series": "interconnect", "nodes": 960, "placement": "shuffled"}
}
SIDESTEP = 0.27  # of a row, between the marks of two oversubscriptions


@dataclass(frozen=True)
class Judgement:
    """What a network costs one pattern of traffic on `nodes` nodes, with neighbours placed in order or shuffled.

    `slowdown` [1] is the time over that without oversubscription: the geometric mean over the `runs`, which draw the
    traffic anew, with their extremes `least` and `most`. `kind` is FREE where every run is within the margin m, which
    is a slowdown of at most 1 / (1 - m), COSTLY where none is, else DEPENDS.
    """

    interconnect: str
    pattern: str
    placement: str
    nodes: int
    slowdown: float
    least: float
    most: float
    runs: int
    kind: str

    @property
    def traffic(self) -> tuple[str, str]:
        """Pattern and placement."""
        return self.pattern, self.placement


@dataclass(frozen=True)
class Belief:
    """The page's belief that its oversubscription costs nothing, for one pattern and placement.

    It is SUPPORTED where all of the page's designs cost nothing, CONTRADICTED where all cost something, else MIXED.
    `judged` are the judgements on the page's designs that ran, by slowdown.
    """

    kind: str
    judged: tuple[Judgement, ...]

    @property
    def worst(self) -> Judgement:
        """The judgement with the largest slowdown."""
        return self.judged[-1]


@dataclass(frozen=True)
class Topology:
    """The campaigns' datasets and all that follows from them.

    `proposed` are the page's own designs. `slowdowns` [1] is over (run, interconnect, pattern, placement, nodes), NaN
    where a design has no slots for so many nodes. `judgements` are of the cluster's node count, or of the nearest that
    ran, and of HPL where it ran. `costs` is from `designs.table`, by design. `saved` [USD a node] is what the page says
    that oversubscription saves, NaN where it does not. `today_apart` [1] is by how much a run of today differs at most,
    None without one.
    """

    dataset: xr.Dataset
    hpl: xr.Dataset | None
    designs: Designs
    proposed: tuple[str, ...]
    costs: pd.DataFrame
    slowdowns: xr.DataArray
    margin: float
    judgements: tuple[Judgement, ...]
    beliefs: tuple[Belief, ...]
    today_apart: float | None

    @property
    def saved(self) -> float:
        """What the page says that oversubscription saves [USD a node]."""
        return self.designs.cluster["unsubscribed_extra"] / self.designs.cluster["nodes"]

    @property
    def oversubscription(self) -> pd.Series:
        """What the nodes of an edge switch can send over what its uplinks carry [1], by design."""
        return self.costs.edge_oversubscription

    @property
    def ratios(self) -> list[float]:
        """The oversubscriptions of the designs that were judged [1], ascending."""
        return sorted({self.oversubscription[one.interconnect] for one in self.judgements})

    @property
    def own_ratios(self) -> str:
        """The oversubscriptions of the page's own designs, in words."""
        ratios = sorted({*self.oversubscription[list(self.proposed)]})
        return listed([ratio_in_words(ratio) for ratio in ratios])

    def judged(self, traffic: tuple[str, str], ratio: float) -> list[Judgement]:
        """The judgements on all designs of an oversubscription for a pattern and placement."""
        alike = self.oversubscription[self.oversubscription == ratio].index
        of_traffic = [one for one in self.judgements if one.traffic == traffic]
        return [one for one in of_traffic if one.interconnect in alike]


def analyse(
    topology: xr.Dataset, hpl_topology: xr.Dataset | None = None, today: xr.Dataset | None = None
) -> Topology:
    """Derive all of it. Raises FalloffError when there is no trial of flows or no crossbar, or several blocks."""
    designs, margin = _designs(topology), plans.read(topology).margin
    costs, times = network_designs.table(designs), makespans(topology)
    slowdowns = _against_crossbar(times, topology)
    # A design has no slots for more nodes than its largest cluster.
    room = costs.largest_cluster[slowdowns.interconnect.values].to_xarray()
    slowdowns = slowdowns.where(slowdowns.nodes <= room.rename(design="interconnect"))
    judged = _of_flows(slowdowns, designs.cluster["nodes"], margin)
    judged += [] if hpl_topology is None else _of_hpl(hpl_topology, margin)
    added = [place.split(".")[1] for place in designs.assumed if place.startswith("designs.")]
    proposed = tuple(name for name in designs.designs if name not in added)
    by_traffic: dict[tuple[str, str], list[Judgement]] = {}
    for one in judged:
        if one.interconnect in proposed:
            by_traffic.setdefault(one.traffic, []).append(one)
    apart = xr.DataArray() if today is None else abs(makespans(today) / times - 1).max()
    return Topology(
        dataset=topology,
        hpl=hpl_topology,
        designs=designs,
        proposed=proposed,
        costs=costs,
        slowdowns=slowdowns,
        margin=margin,
        judgements=tuple(judged),
        beliefs=tuple(_belief(of_traffic) for of_traffic in by_traffic.values()),
        today_apart=known(apart),
    )


def at_prices(study: Topology, prices: Mapping[str, float]) -> Topology:
    """The study with these prices of parts [USD] instead of the page's; raises FalloffError when one is of no part."""
    return replace(study, costs=network_designs.table(study.designs, prices=prices))


def makespans(dataset: xr.Dataset) -> xr.DataArray:
    """The time until the last flow has arrived [s], NaN where a trial failed.

    Over (run, interconnect, pattern, placement, nodes), nodes ascending.
    """
    runs = dataset.run.values.tolist()
    columns = {f"run {run}": dataset.flow_makespan.sel(run=run, drop=True) for run in runs}
    if not columns:  # every trial failed
        columns = {"no run": xr.full_like(dataset.wall_time, math.nan)}
    laid_out = over_factors(dataset, runner="flows", **columns).assign_attrs(dataset.attrs)
    times = at_only_level(laid_out, "block").to_array("run").sortby("nodes")
    return times.assign_coords(run=np.arange(1, len(columns) + 1))


def bearable(slowdown: float, margin: float) -> float:
    """The part f of its time [1] that a program may spend in traffic that is slowed down so much.

    1 - f + f s <= 1 / (1 - m) for a slowdown s and a margin m, when computing and traffic do not overlap.
    """
    beyond = slowdown - 1
    return 1.0 if beyond <= 0 else min(1.0, margin / (1 - margin) / beyond)


def break_even(slowdown: float, saved: float) -> float:
    """The price of a node and its network [USD] below which so much saved on each node buys more than it loses.

    A budget buys nodes at (price - saved) that are s times slower, or at the price without: the former do more where
    s (price - saved) < price. The rate is taken to be in proportion to the nodes.
    """
    return saved * slowdown / (slowdown - 1) if slowdown > 1 else math.inf


def _designs(dataset: xr.Dataset) -> Designs:
    """The design file that the dataset's testbed names; raises FalloffError when it is not there, or names its faults."""
    file = paths.DESIGNS / f"{testbed(dataset)['designs']}.toml"
    try:
        return network_designs.check(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise FalloffError(f"the dataset is of the designs in {file}: {error}") from None


def _against_crossbar(times: xr.DataArray, dataset: xr.Dataset) -> xr.DataArray:
    """Each time over that of the same run on the CROSSBAR, which is left out; raises FalloffError without it."""
    if CROSSBAR not in times.interconnect:
        campaign = dataset.attrs["campaign"]
        raise FalloffError(f"Campaign {campaign} has no network {CROSSBAR!r} to compare with.")
    reference = times.sel(interconnect=CROSSBAR, drop=True)
    return times.drop_sel(interconnect=CROSSBAR) / reference


def _of_flows(slowdowns: xr.DataArray, nodes: int, margin: float) -> list[Judgement]:
    """The judgements on the cluster's node count, or on what ran nearest to it from below, else from above."""
    ran = slowdowns.dropna("nodes", how="all").nodes.values.tolist()
    if not ran:
        return []
    at = max((count for count in ran if count <= nodes), default=min(ran))
    return _judged(slowdowns.sel(nodes=at), margin)


def _of_hpl(hpl: xr.Dataset, margin: float) -> list[Judgement]:
    """HPL's judgements from the ratios of its rates, on the most nodes that ran."""
    laid_out = over_factors(hpl, rate=hpl.hpl_rate).assign_attrs(hpl.attrs)
    rate = at_only_level(laid_out, "block").rate.sortby("nodes").isel(nodes=-1)
    return _judged(_against_crossbar(1 / rate, hpl).expand_dims(run=[1], pattern=[HPL]), margin)


def _judged(slowdowns: xr.DataArray, margin: float) -> list[Judgement]:
    """The judgements on the slowdowns of one node count; where no run has a result there is none."""
    limit, judged = 1 / (1 - margin), []
    dims = ("pattern", "placement", "interconnect")
    for pattern, placement, name in product(*(slowdowns[dim].values.tolist() for dim in dims)):
        runs = slowdowns.sel(pattern=pattern, placement=placement, interconnect=name)
        runs = runs.dropna("run").values
        if len(runs):
            least, most = float(runs.min()), float(runs.max())
            kind = FREE if most <= limit else COSTLY if least > limit else DEPENDS
            mean, nodes = float(np.exp(np.log(runs).mean())), int(slowdowns.nodes)
            judged.append(
                Judgement(name, pattern, placement, nodes, mean, least, most, len(runs), kind)
            )
    return judged


def _belief(judged: Sequence[Judgement]) -> Belief:
    kinds, kind = {one.kind for one in judged}, MIXED
    if kinds == {FREE}:
        kind = SUPPORTED
    elif kinds == {COSTLY}:
        kind = CONTRADICTED
    return Belief(kind, tuple(sorted(judged, key=lambda one: one.slowdown)))


def finding(study: Topology) -> str:
    """What the page's oversubscription costs traffic and HPL, in plain English (Markdown)."""
    if not study.beliefs:
        return (
            "**What oversubscription costs cannot be told**: none of the page's designs ran beside a network without it "
            "(simulated evidence)."
        )
    flows = [belief for belief in study.beliefs if belief.worst.pattern != HPL]
    of_hpl = [belief for belief in study.beliefs if belief.worst.pattern == HPL]
    words = [f"Traffic {sentence}." for sentence in _of_traffic(flows, study.margin)]
    if flows:
        first = words[0].removesuffix(".").replace("Traffic", "traffic", 1)
        head = f"**Over a network oversubscribed {study.own_ratios}, {first}** ({_basis(study, flows)})."
        words[0] = head
    if of_hpl:
        words.insert(1, f"**HPL takes {_span(of_hpl)} times as long** ({_basis(study, of_hpl)}).")
    costly = [belief.worst.slowdown for belief in flows if belief.kind == CONTRADICTED]
    if costly:
        part, margin = percent(bearable(max(costly), study.margin)), percent(study.margin, 0)
        words.append(
            f"A program that spends less than {part} of its time in the slowest traffic loses no more than {margin}."
        )
    limits = [break_even(one.slowdown, study.saved) for belief in of_hpl for one in belief.judged]
    if limits := [limit for limit in limits if math.isfinite(limit)]:
        below = dict.fromkeys(number(limit) for limit in (min(limits), max(limits)))
        words.append(
            f"The page would spend the {number(study.saved)} USD a node that this saves on more nodes. For HPL that pays only "
            f"where a node with its network costs less than {' to '.join(below)} USD."
        )
    if study.today_apart == 0:
        words.append("Today's shorter run repeats these times to the last digit.")
    elif study.today_apart:
        apart = number(100 * study.today_apart)
        words.append(f"Today's shorter run differs from these times by up to {apart} %.")
    return " ".join(words)


def _basis(study: Topology, beliefs: Sequence[Belief]) -> str:
    runs, nodes = beliefs[0].worst.runs, beliefs[0].worst.nodes
    ran, whole = max(len(belief.judged) for belief in beliefs), len(study.proposed)
    draws = f", {counted(runs, 'draw')} of the traffic" if runs > 1 else ""
    part = "" if ran == whole else f"{ran} of "
    return f"simulated evidence, {counted(nodes, 'node')}, {part}the page's {counted(whole, 'design')}{draws}"


def _of_traffic(flows: Sequence[Belief], margin: float) -> Iterator[str]:
    """What each kind of traffic does, by the answer; the costly ones first."""
    for kind in (CONTRADICTED, MIXED, SUPPORTED):
        alike = [belief for belief in flows if belief.kind == kind]
        placements: dict[str, list[str]] = {}
        for belief in alike:
            placements.setdefault(belief.worst.pattern, []).append(belief.worst.placement)
        names = []
        for pattern, places in placements.items():
            whole = len(places) == sum(belief.worst.pattern == pattern for belief in flows)
            names.append(_traffic(pattern) + ("" if whole else f" ({in_words(places[0])})"))
        if alike and kind == SUPPORTED:
            yield f"{listed(names)} loses no more than {percent(margin, 0)}"
        elif alike:
            doubt = ", which depends on the design or the draw" if kind == MIXED else ""
            yield f"{listed(names)} takes {_span(alike)} times as long{doubt}"


def _span(beliefs: Sequence[Belief]) -> str:
    """The least and the largest slowdown."""
    ends = (
        min(belief.judged[0].slowdown for belief in beliefs),
        max(belief.worst.slowdown for belief in beliefs),
    )
    return " to ".join(dict.fromkeys(fixed(end, 2) for end in ends))


def _traffic(pattern: str) -> str:
    """What a pattern is called in a sentence."""
    return TRAFFIC.get(pattern, f"of {in_words(pattern)}")


def in_words(name: str) -> str:
    """What a pattern or a placement is called in a table or a figure."""
    return TRAFFIC[name].partition(" ")[2] if name in TRAFFIC else name.replace("_", " ")


def ratio_in_words(ratio: float) -> str:
    """An oversubscription as a ratio."""
    return f"{ratio:.3g}:1"


def findings(study: Topology) -> Iterator[Finding]:
    """The page's belief for each kind of traffic and for HPL, by the largest slowdown of its own designs."""
    for belief in study.beliefs:
        worst = belief.worst
        what = f"{in_words(worst.pattern)}, {in_words(worst.placement)}, {worst.nodes} nodes"
        yield of_estimate(
            origin("topology", study.hpl if worst.pattern == HPL else study.dataset),
            f"oversubscription of {study.own_ratios} costs nothing: {what}",
            "slowdown",
            "1",
            worst.slowdown,
            (worst.least, worst.most) if worst.runs > 1 else (math.nan, math.nan),
            "range over the random draws",
            n=worst.runs,
            n_of="draw",
            answer=belief.kind,
            primary=worst.pattern == HPL,
        )


def figures(study: Topology) -> dict[str, Exhibit]:
    """The slowdown of every kind of traffic and of HPL."""
    marks = (
        "Marks are the slowest design of each oversubscription (geometric mean over the draws of the traffic), bars the range "
        f"over such designs and draws. A slowdown in the shaded margin of {percent(study.margin, 0)} counts as none."
    )
    return {
        "topology": Exhibit(
            "topology",
            slowdown_by_traffic(study),
            "Time that traffic, and HPL as a whole, take over the time without oversubscription",
            Basis("simulated"),
            "Slowdown of each kind of traffic and of HPL, at each oversubscription of the edge switches",
            marks,
            rests_on=FIGURES["topology"],
        )
    }


def slowdown_by_traffic(study: Topology) -> Figure:
    """A row for each kind of traffic, a series for each oversubscription, over the slowdown [1]."""
    with style.styled():
        rows = list(dict.fromkeys(one.traffic for one in study.judgements))
        figure, axes = drawing.new_figure(1.1 + 0.31 * max(len(rows), 2))
        axes.axvspan(1, 1 / (1 - study.margin), color=style.MARGIN, linewidth=0)
        own = {study.oversubscription[name] for name in study.proposed}
        for rank, ratio in enumerate(study.ratios):
            look = style.look(f"scenario {rank + 1}")
            mark = {"marker": look.marker, "color": look.color, "markersize": 3.8, "linestyle": ""}
            label = ratio_in_words(ratio) + (" (the page's designs)" if ratio in own else "")
            axes.plot([], [], **mark, label=label)
            for row, traffic in enumerate(rows):
                if judged := study.judged(traffic, ratio):
                    ends = min(one.least for one in judged), max(one.most for one in judged)
                    place = row + SIDESTEP * (rank - (len(study.ratios) - 1) / 2)
                    axes.plot(ends, [place] * 2, color=look.color, linewidth=3, alpha=0.4)
                    axes.plot(max(one.slowdown for one in judged), place, **mark)
        drawing.rows(axes, [", ".join(map(in_words, traffic)) for traffic in rows])
        ticks = [1, *study.ratios]
        axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("slowdown [1]")
        drawing.legend_below(figure, axes, 3)
        return figure


def designs_table(study: Topology) -> Table:
    """What each design costs a node, beside its oversubscription and what it does to random pairs and to HPL."""
    names, rows = short_names(study.dataset), []
    for name, design in study.costs.iterrows():
        slowed = {one.traffic: one.slowdown for one in study.judgements if one.interconnect == name}
        cells = (
            names[name] + ("" if name in study.proposed else " *"),
            ratio_in_words(design.edge_oversubscription),
            ratio_in_words(design.core_oversubscription),
            number(design.bisection / 1e9),
            number(known(design.cost_per_node)),
            *(fixed(slowed.get((pattern, "shuffled")), 2) for pattern in ("permutation", HPL)),
        )
        rows.append(cells)
    cheapest = study.costs.cost_per_node[list(study.proposed)].min()
    crossbar = number(known(cheapest + study.saved))
    rows.append((names[CROSSBAR], "1:1", "1:1", UNKNOWN, crossbar, fixed(1, 2), fixed(1, 2)))
    columns = (
        "Network",
        "Edge",
        "Core",
        "Bisection [GB/s]",
        "Cost [USD a node]",
        "Random pairs [1]",
        "HPL [1]",
    )
    caption = (
        f"The designs for {study.designs.cluster['nodes']} nodes: oversubscription at the edges and in the core, what one half "
        "of the nodes can send to the other, the price of all switches, and the slowdowns with neighbours shuffled. \\*: not "
        "the page's; its edge switches filled up. The network without oversubscription costs the page's cheapest design and "
        f"what the page adds to that. {UNKNOWN}: not known, or not run"
    )
    return Table("topology-designs", columns, "lrrrrrr", rows, caption, Basis("simulated"))
