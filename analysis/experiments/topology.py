"""What oversubscribed networks cost: traffic and HPL simulated on the networks that a design page proposes."""

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from analysis import design_table, drawing, paths, style
from analysis.derive import at_only_level, over_factors
from analysis.designs import CROSSBAR, Designs, check
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import Finding, of_estimate, origin
from analysis.statistics.intervals import mean_over
from analysis.statistics import design as plans
from analysis.attributes import testbed
from analysis.attributes import short_names
from analysis.wording import UNKNOWN, counted, fixed, number, percent
from runners.record import FalloffError

RUNNER = "flows"
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
    is a slowdown of at most 1 / (1 - m), COSTLY where none is, else DEPENDS. `bearable` [1] is the part of its time
    without oversubscription that a program may spend in such traffic, and yet lose no more than the margin.
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
    bearable: float

    @property
    def traffic(self) -> tuple[str, str]:
        """Pattern and placement."""
        return self.pattern, self.placement


@dataclass(frozen=True)
class Belief:
    """The page's belief that its oversubscription costs nothing, for one pattern and placement.

    It is SUPPORTED where all of the page's designs cost nothing, CONTRADICTED where all cost something, else MIXED.
    `best` and `worst` are the judgements with the least and the largest slowdown of the page's `designs` that ran.
    """

    pattern: str
    placement: str
    nodes: int
    kind: str
    designs: int
    best: Judgement
    worst: Judgement


@dataclass(frozen=True)
class Topology:
    """The campaigns' datasets and all that follows from them but for prices.

    `proposed` are the page's own designs. `slowdowns` [1] is over (run, interconnect, pattern, placement, nodes), NaN
    where a design has no slots for so many nodes. `judgements` are of the cluster's node count, or of the nearest that
    ran, and of HPL where it ran. `oversubscription` [1] is what the nodes of an edge switch can send over what its
    uplinks carry. `today_apart` [1] is by how much a run of today differs at most, None without one.
    """

    dataset: xr.Dataset
    hpl: xr.Dataset | None
    designs: Designs
    proposed: tuple[str, ...]
    oversubscription: Mapping[str, float]
    slowdowns: xr.DataArray
    margin: float
    judgements: tuple[Judgement, ...]
    beliefs: tuple[Belief, ...]
    today_apart: float | None

    @property
    def evidence(self) -> str:
        """The kind of evidence of the slowdowns."""
        return self.dataset.evidence.values[0].item()

    @property
    def ratios(self) -> list[float]:
        """The oversubscriptions of the designs that were judged [1], ascending."""
        return sorted({self.oversubscription[one.interconnect] for one in self.judgements})

    @property
    def own_ratios(self) -> str:
        """The oversubscriptions of the page's own designs, in words."""
        ratios = sorted({self.oversubscription[name] for name in self.proposed})
        return _listed([ratio_in_words(ratio) for ratio in ratios])

    def judged(self, traffic: tuple[str, str], ratio: float) -> list[Judgement]:
        """The judgements on all designs of an oversubscription for a pattern and placement."""
        alike = [name for name, own in self.oversubscription.items() if own == ratio]
        return [
            one for one in self.judgements if one.traffic == traffic and one.interconnect in alike
        ]


def analyse(
    topology: xr.Dataset, hpl_topology: xr.Dataset | None = None, today: xr.Dataset | None = None
) -> Topology:
    """Derive all of it. Raises FalloffError when there is no trial of flows or no crossbar, or several blocks."""
    designs, margin = _designs(topology), plans.read(topology).margin
    table, times = design_table.table(designs).set_index("design"), makespans(topology)
    slowdowns = _against_crossbar(times, topology)
    # A design has no slots for more nodes than its largest cluster.
    room = table.largest_cluster.reindex(slowdowns.interconnect.values)
    slowdowns = slowdowns.where(slowdowns.nodes <= xr.DataArray(room.values, dims="interconnect"))
    judged = _of_flows(slowdowns, designs.cluster["nodes"], margin)
    judged += () if hpl_topology is None else _of_hpl(hpl_topology, margin)
    ours = [place.split(".")[1] for place in designs.assumed if place.startswith("designs.")]
    proposed = tuple(name for name in designs.designs if name not in ours)
    return Topology(
        dataset=topology,
        hpl=hpl_topology,
        designs=designs,
        proposed=proposed,
        oversubscription=table.edge_oversubscription.to_dict(),
        slowdowns=slowdowns,
        margin=margin,
        judgements=judged,
        beliefs=_beliefs([one for one in judged if one.interconnect in proposed]),
        today_apart=None if today is None else _apart(times, makespans(today)),
    )


def makespans(dataset: xr.Dataset) -> xr.DataArray:
    """The time until the last flow has arrived [s], NaN where a trial failed.

    Over (run, interconnect, pattern, placement, nodes), nodes ascending.
    """
    runs = dataset.run.values.tolist()
    columns = {f"run {run}": dataset.flow_makespan.sel(run=run, drop=True) for run in runs}
    if not columns:  # every trial failed
        columns = {"no run": xr.full_like(dataset.wall_time, math.nan)}
    laid_out = over_factors(dataset, runner=RUNNER, **columns).assign_attrs(dataset.attrs)
    times = at_only_level(laid_out, "block").to_array("run").sortby("nodes")
    return times.assign_coords(run=np.arange(1, len(columns) + 1))


def judge(
    interconnect: str, pattern: str, placement: str, nodes: int, runs: np.ndarray, margin: float
) -> Judgement | None:
    """The judgement on the slowdowns of all `runs` [1], of shape (runs,); None where no run has a result."""
    runs = runs[np.isfinite(runs)]
    if not len(runs):
        return None
    slowdown, least, most = np.exp(np.log(runs).mean()), runs.min(), runs.max()
    limit = 1 / (1 - margin)
    return Judgement(
        interconnect=interconnect,
        pattern=pattern,
        placement=placement,
        nodes=nodes,
        slowdown=float(slowdown),
        least=float(least),
        most=float(most),
        runs=len(runs),
        kind=FREE if most <= limit else COSTLY if least > limit else DEPENDS,
        bearable=bearable(float(slowdown), margin),
    )


def bearable(slowdown: float, margin: float) -> float:
    """The part f of its time that a program may spend in traffic that is slowed down so much.

    1 - f + f s <= 1 / (1 - m) for a slowdown s and a margin m, when computing and traffic do not overlap.
    """
    beyond = slowdown - 1
    return 1.0 if beyond <= 0 else min(1.0, margin / (1 - margin) / beyond)


def _designs(dataset: xr.Dataset) -> Designs:
    """The design file that the dataset's testbed names; raises FalloffError when it is not there, or names its faults."""
    file = paths.DESIGNS / f"{testbed(dataset)['designs']}.toml"
    try:
        return check(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError) as error:
        said = f"the dataset is of the designs in {file}, which cannot be read: {error}"
        raise FalloffError(said) from None


def _against_crossbar(times: xr.DataArray, dataset: xr.Dataset) -> xr.DataArray:
    """Each time over that of the same run on the CROSSBAR, which is left out; raises FalloffError without it."""
    if CROSSBAR not in times.interconnect:
        campaign = dataset.attrs["campaign"]
        raise FalloffError(f"Campaign {campaign} has no network {CROSSBAR!r} to compare with.")
    others = [name for name in times.interconnect.values if name != CROSSBAR]
    return times.sel(interconnect=others) / times.sel(interconnect=CROSSBAR, drop=True)


def _of_flows(slowdowns: xr.DataArray, nodes: int, margin: float) -> tuple[Judgement, ...]:
    """The judgements on the cluster's node count, or on what ran nearest to it from below, else from above."""
    ran = slowdowns.dropna("nodes", how="all").nodes.values.tolist()
    if not ran:
        return ()
    at = max((count for count in ran if count <= nodes), default=min(ran))
    return _judged(slowdowns.sel(nodes=at), at, margin)


def _of_hpl(hpl: xr.Dataset, margin: float) -> tuple[Judgement, ...]:
    """HPL's judgements from the ratios of its rates, on the most nodes that ran."""
    laid_out = over_factors(hpl, rate=hpl.hpl_rate).assign_attrs(hpl.attrs)
    rate = at_only_level(laid_out, "block").rate.sortby("nodes").isel(nodes=-1)
    slowdowns = _against_crossbar(1 / rate, hpl).expand_dims(run=[1], pattern=[HPL])
    return _judged(slowdowns, int(rate.nodes), margin)


def _judged(slowdowns: xr.DataArray, nodes: int, margin: float) -> tuple[Judgement, ...]:
    levels = [slowdowns[dim].values.tolist() for dim in ("pattern", "placement", "interconnect")]
    judged = []
    for pattern, placement, name in product(*levels):
        runs = slowdowns.sel(pattern=pattern, placement=placement, interconnect=name)
        judged.append(judge(name, pattern, placement, nodes, runs.values, margin))
    return tuple(one for one in judged if one)


def _beliefs(of_page: Sequence[Judgement]) -> tuple[Belief, ...]:
    """The page's belief for each kind of traffic, from the judgements on its own designs."""
    by_traffic = {}
    for one in of_page:
        by_traffic.setdefault(one.traffic, []).append(one)
    return tuple(_belief(judged) for judged in by_traffic.values())


def _belief(judged: Sequence[Judgement]) -> Belief:
    kinds, ranked = {one.kind for one in judged}, sorted(judged, key=lambda one: one.slowdown)
    kind = MIXED
    if kinds == {FREE}:
        kind = SUPPORTED
    elif kinds == {COSTLY}:
        kind = CONTRADICTED
    best, worst = ranked[0], ranked[-1]
    return Belief(best.pattern, best.placement, best.nodes, kind, len(judged), best, worst)


def _apart(times: xr.DataArray, today: xr.DataArray) -> float | None:
    """By how much the same runs differ at most [1]; None where none is in both."""
    apart = abs(today / times - 1)
    return float(apart.max()) if apart.notnull().any() else None


def finding(study: Topology) -> str:
    """What the page's oversubscription costs traffic and HPL, in plain English (Markdown)."""
    if not study.beliefs:
        return (
            "**What oversubscription costs cannot be told**: none of the page's designs ran beside a network without it "
            f"({study.evidence} evidence)."
        )
    flows = [belief for belief in study.beliefs if belief.pattern != HPL]
    of_hpl = [belief for belief in study.beliefs if belief.pattern == HPL]
    first, *others = _of_traffic(flows, study.margin) or [""]
    words = [
        f"**Over a network oversubscribed {study.own_ratios}, traffic {first}** ({_basis(study, flows)})."
        if first
        else "",
        f"**HPL takes {_slowdowns(of_hpl)} times as long** ({_basis(study, of_hpl)})."
        if of_hpl
        else "",
        *(f"Traffic {sentence}." for sentence in others),
        _of_today(study.today_apart),
    ]
    return " ".join(filter(None, words))


def _basis(study: Topology, beliefs: Sequence[Belief]) -> str:
    runs, designs = beliefs[0].worst.runs, max(belief.designs for belief in beliefs)
    whole = len(study.proposed)
    draws = f", {counted(runs, 'draw')} of the traffic" if runs > 1 else ""
    part = "" if designs == whole else f"{designs} of "
    ran = f"{counted(beliefs[0].nodes, 'node')}, {part}the page's {counted(whole, 'design')}"
    return f"{study.evidence} evidence, {ran}{draws}"


def _of_traffic(flows: Sequence[Belief], margin: float) -> list[str]:
    """What each kind of traffic does, by the answer; the costly ones first."""
    sentences = []
    for kind in (CONTRADICTED, MIXED, SUPPORTED):
        alike = [belief for belief in flows if belief.kind == kind]
        if alike and kind == SUPPORTED:
            sentences.append(f"{_named(alike, flows)} loses no more than {percent(margin, 0)}")
        elif alike:
            doubt = ", which depends on the design or the draw" if kind == MIXED else ""
            sentences.append(
                f"{_named(alike, flows)} takes {_slowdowns(alike)} times as long{doubt}"
            )
    return sentences


def _named(alike: Sequence[Belief], flows: Sequence[Belief]) -> str:
    """Each pattern once, with its placement where the other placement has another answer."""
    names = []
    for pattern in dict.fromkeys(belief.pattern for belief in alike):
        placements = [belief.placement for belief in alike if belief.pattern == pattern]
        whole = len(placements) == sum(belief.pattern == pattern for belief in flows)
        names.append(_traffic(pattern) + ("" if whole else f" ({placed(placements[0])})"))
    return _listed(names)


def _of_today(apart: float | None) -> str:
    if apart is None:
        return ""
    if apart == 0:
        return "Today's shorter run repeats these times to the last digit."
    return f"Today's shorter run differs from these times by up to {number(100 * apart)} %."


def _slowdowns(beliefs: Sequence[Belief]) -> str:
    ends = [min(one.best.slowdown for one in beliefs), max(one.worst.slowdown for one in beliefs)]
    return " to ".join(dict.fromkeys(fixed(end, 2) for end in ends))


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _traffic(pattern: str) -> str:
    """What a pattern is called in a sentence."""
    return TRAFFIC.get(pattern, f"of {pattern.replace('_', ' ')}")


def in_words(pattern: str) -> str:
    """What a pattern is called in a table or a figure."""
    return _traffic(pattern).partition(" ")[2]


def placed(placement: str) -> str:
    """What a placement of neighbours is called."""
    return placement.replace("_", " ")


def ratio_in_words(ratio: float) -> str:
    """An oversubscription as a ratio."""
    return f"{ratio:.3g}:1"


def findings(study: Topology) -> Iterator[Finding]:
    """The page's belief for each kind of traffic and for HPL, by the largest slowdown of its own designs."""
    for belief in study.beliefs:
        what = f"{in_words(belief.pattern)}, {placed(belief.placement)}, {belief.nodes} nodes"
        worst = belief.worst
        yield of_estimate(
            origin("topology", study.hpl if belief.pattern == HPL else study.dataset),
            f"oversubscription of {study.own_ratios} costs nothing: {what}",
            "slowdown",
            "1",
            worst.slowdown,
            (worst.least, worst.most) if worst.runs > 1 else (math.nan, math.nan),
            "range over the random draws",
            n=worst.runs,
            n_of="draw",
            answer=belief.kind,
            primary=belief.pattern == HPL,
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
            Basis(study.evidence),
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
        for rank, ratio in enumerate(study.ratios):
            sidestep = SIDESTEP * (rank - (len(study.ratios) - 1) / 2)
            _series(axes, study, rows, ratio, f"scenario {rank + 1}", sidestep)
        drawing.rows(axes, [f"{in_words(pattern)}, {placed(where)}" for pattern, where in rows])
        ticks = [1, *study.ratios]
        axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("slowdown [1]")
        drawing.legend_below(figure, axes, 3)
        return figure


def _series(
    axes: Axes, study: Topology, rows: Sequence, ratio: float, series: str, sidestep: float
) -> None:
    """The marks of all designs with an oversubscription."""
    of_page = any(study.oversubscription[name] == ratio for name in study.proposed)
    label = ratio_in_words(ratio) + (" (the page's designs)" if of_page else "")
    look = style.look(series)
    mark = {"marker": look.marker, "color": look.color, "markersize": 3.8, "linestyle": ""}
    axes.plot([], [], **mark, label=label)
    for row, traffic in enumerate(rows):
        judged = study.judged(traffic, ratio)
        if judged:
            ends = min(one.least for one in judged), max(one.most for one in judged)
            axes.plot(ends, [row + sidestep] * 2, color=look.color, linewidth=3, alpha=0.4)
            slowest = max(one.slowdown for one in judged)
            axes.plot(slowest, row + sidestep, **mark)


def slowdown_table(study: Topology) -> Table:
    """Slowdowns of every kind of traffic by oversubscription, and the answer for the page's own designs."""
    answers = {SUPPORTED: "no", CONTRADICTED: "yes", MIXED: "depends"}
    rows = []
    for belief in study.beliefs:
        traffic = belief.pattern, belief.placement
        part = UNKNOWN if belief.pattern == HPL else number(100 * belief.worst.bearable, 2)
        alike = [study.judged(traffic, ratio) for ratio in study.ratios]
        cells = [_range([one.slowdown for one in judged]) for judged in alike]
        name = in_words(belief.pattern)
        rows.append((name, placed(belief.placement), *cells, answers[belief.kind], part))
    ratios = [ratio_in_words(ratio) for ratio in study.ratios]
    cost = f"{study.own_ratios} costs it"
    columns = ("Traffic", "Placed", *ratios, cost, "Harmless [% of time]")
    nodes = dict.fromkeys(str(one.nodes) for one in study.judgements if one.pattern != HPL)
    nodes |= dict.fromkeys(f"{one.nodes} for HPL" for one in study.judgements if one.pattern == HPL)
    caption = (
        f"Slowdown [1] at each oversubscription of the edges, on {' nodes, '.join(nodes)}: geometric means over the draws, with "
        f"their range over the designs. {study.own_ratios} costs a kind of traffic something where each of the page's designs "
        f"slows each draw by more than {percent(study.margin, 0)}. A program may spend the last column's part of its time in "
        "such traffic, on the slowest of these designs, and lose no more than that"
    )
    align = "ll" + "r" * len(study.ratios) + "lr"
    return Table("topology-slowdown", columns, align, rows, caption, Basis(study.evidence))


def nodes_table(study: Topology) -> Table:
    """The largest slowdown of any traffic on every design, over the nodes."""
    largest = mean_over(study.slowdowns, "run", "ratio").max(("pattern", "placement"))
    names, counts = short_names(study.dataset), largest.nodes.values.tolist()
    rows = [
        (names[name], *(_range([float(value)]) for value in largest.sel(interconnect=name)))
        for name in largest.interconnect.values.tolist()
    ]
    caption = (
        "The largest slowdown [1] of any kind of traffic (geometric means over the draws). Each design has as many edge switches "
        f"and line cards as so many nodes take; {UNKNOWN}: it has no slots for them, or nothing ran"
    )
    columns = ("Network", *(f"{n} nodes" for n in counts))
    align = "l" + "r" * len(counts)
    return Table("topology-nodes", columns, align, rows, caption, Basis(study.evidence))


def _range(values: Sequence[float]) -> str:
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return UNKNOWN
    return " to ".join(dict.fromkeys(fixed(end, 2) for end in (min(known), max(known))))
