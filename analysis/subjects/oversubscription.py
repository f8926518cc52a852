"""What oversubscribed networks cost and save: traffic and HPL simulated on the networks that a
design page proposes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from analysis import designs as network_designs
from analysis import drawing, paths, style
from analysis.attributes import testbed
from analysis.claims.quantities import quantity
from analysis.derive import at_only_level, over_factors
from analysis.descriptions import switch_designs
from analysis.descriptions.switch_designs import CROSSBAR, Designs
from analysis.statements import NO_INTERVAL, Statement, estimated, origin
from analysis.statistics.intervals import mean_over
from analysis.statistics.judgement import CONTRADICTED, SUPPORTED, UNDECIDED
from analysis.wording import counted, fixed, listed, number, percent
from runners.record import FalloffError

HPL = "hpl"  # shown beside the traffic patterns
TRAFFIC = {
    "nearest_neighbour": "between neighbours",
    "permutation": "between random pairs",
    "all_to_all": "from all to all",
    "many_to_one": "from many to one",
    HPL: "of HPL",
}
SIDESTEP = 0.27  # fraction of a row between the marks of two oversubscriptions


@dataclass(frozen=True)
class Judged:
    """Slowdowns at one node count, and the judgement of the page's belief that its oversubscription costs nothing.

    `slowdowns` has a row for each pattern, placement and interconnect. Its columns are `nodes`, `slowdown` [1] (geometric
    mean over the `runs`, each with newly drawn traffic), `least`, `most` and `ratio`, the design's oversubscription at the
    edges [1].

    `beliefs` has a row for each pattern and placement. `kind` is SUPPORTED if no run on the page's own designs is slower by
    more than the margin m, a slowdown of at most 1 / (1 - m), CONTRADICTED if all are, else UNDECIDED. `best` and `worst`
    are slowdowns of the page's `designs` that ran, `least` and `most` the extremes of the worst one's runs.
    """

    slowdowns: pd.DataFrame
    beliefs: pd.DataFrame

    @property
    def traffic(self) -> pd.DataFrame:
        """The beliefs on traffic alone."""
        return self.beliefs[self.beliefs.pattern != HPL]

    @property
    def hpl(self) -> pd.DataFrame:
        """The beliefs on HPL, empty if it did not run."""
        return self.beliefs[self.beliefs.pattern == HPL]


def designs_of(dataset: xr.Dataset) -> Designs:
    """The designs that the dataset's testbed names; raises FalloffError if their file is missing, or names its faults."""
    return switch_designs.read(paths.DESIGNS / f"{testbed(dataset)['designs']}.toml")


def proposed(designs: Designs) -> list[str]:
    """The page's own designs, without those that were added."""
    added = [place.split(".")[1] for place in designs.assumed() if place.startswith("designs.")]
    return [name for name in designs.designs if name not in added]


def own_ratios(designs: Designs) -> str:
    """The oversubscriptions of the page's own designs, in words."""
    ratios = {*network_designs.table(designs).edge_oversubscription[proposed(designs)]}
    return listed([f"{ratio:.3g}:1" for ratio in sorted(ratios)])


def slowdowns_of_traffic(dataset: xr.Dataset) -> xr.DataArray:
    """The time of the traffic over that without oversubscription [1], over (run, interconnect, pattern, placement, nodes).

    Raises FalloffError if there is no trial of flows or no crossbar, or there are several blocks.
    """
    return _against_crossbar(makespans(dataset), dataset)


def slowdowns_of_hpl(dataset: xr.Dataset) -> xr.DataArray:
    """The time of HPL on the most nodes over that without oversubscription [1], over the same dims; raises likewise."""
    laid_out = over_factors(dataset, rate=dataset.hpl_rate)
    rates = at_only_level(laid_out.assign_attrs(dataset.attrs), "block").rate
    time = 1 / rates.sortby("nodes").isel(nodes=-1).expand_dims(run=[1], pattern=[HPL])
    return _against_crossbar(time, dataset)


def judged(
    designs: Designs, margin: float, traffic: xr.DataArray, hpl: xr.DataArray | None
) -> Judged:
    """Slowdowns on the designs' own number of nodes, or the nearest that ran, and the beliefs judged by them.

    `traffic` is from `slowdowns_of_traffic`, `hpl` from `slowdowns_of_hpl` or None; `margin` [1] counts as no slowdown.
    """
    ran = traffic.dropna("nodes", how="all").nodes.values
    nodes = max(ran[ran <= designs.cluster.nodes.value], default=min(ran, default=traffic.nodes[0]))
    tables = [_judged(traffic.sel(nodes=nodes)), *([] if hpl is None else [_judged(hpl)])]
    slowdowns = pd.concat(tables, ignore_index=True)
    ratio = network_designs.table(designs).edge_oversubscription
    slowdowns["ratio"] = slowdowns.interconnect.map(ratio)
    own = slowdowns[slowdowns.interconnect.isin(proposed(designs))]
    return Judged(slowdowns, _beliefs(own, 1 / (1 - margin)))


def _judged(slowdowns: xr.DataArray) -> pd.DataFrame:
    """The slowdowns at one node count over their runs. If no run has a result, there is no row."""
    over_runs = xr.Dataset(
        {
            "slowdown": mean_over(slowdowns, "run", "ratio"),
            "least": slowdowns.min("run"),
            "most": slowdowns.max("run"),
            "runs": slowdowns.count("run"),
        }
    )
    table = over_runs.transpose("pattern", "placement", "interconnect").to_dataframe()
    return table.dropna().reset_index()


def _beliefs(judged: pd.DataFrame, limit: float) -> pd.DataFrame:
    rows = []
    for (pattern, placement), alike in judged.groupby(["pattern", "placement"], sort=False):
        worst, kind = alike.loc[alike.slowdown.idxmax()], UNDECIDED
        if (alike.most <= limit).all():
            kind = SUPPORTED
        elif (alike.least > limit).all():
            kind = CONTRADICTED
        ends = alike.slowdown.min(), alike.slowdown.max(), worst.least, worst.most
        rows.append((pattern, placement, worst.nodes, kind, len(alike), worst.runs, *ends))
    columns = ["pattern", "placement", "nodes", "kind", "designs", "runs"]
    return pd.DataFrame(rows, columns=[*columns, "best", "worst", "least", "most"])


def makespans(dataset: xr.Dataset) -> xr.DataArray:
    """The time until the last flow has arrived [s], NaN if a trial failed.

    Over (run, interconnect, pattern, placement, nodes), nodes ascending.
    """
    runs = dataset.run.values.tolist() or [1]  # there is no run if every trial failed
    times = dataset.flow_makespan.reindex(run=runs)
    columns = {f"run {run}": times.sel(run=run, drop=True) for run in runs}
    laid_out = over_factors(dataset, runner="flows", **columns).assign_attrs(dataset.attrs)
    times = at_only_level(laid_out, "block").to_array("run").sortby("nodes")
    return times.assign_coords(run=np.arange(1, len(runs) + 1))


def bearable(slowdown: float, margin: float) -> float:
    """The share f of its time [1] that a program may spend in traffic with this slowdown.

    1 - f + f s <= 1 / (1 - m) for a slowdown s and a margin m, if computing and traffic do not
    overlap.
    """
    beyond = slowdown - 1
    return 1.0 if beyond <= 0 else min(1.0, margin / (1 - margin) / beyond)


def break_even(slowdown: float, saved: float) -> float:
    """The price of a node and its network [USD] below which this saving on each node buys more than
    it loses.

    A budget buys nodes at (price - saved) that are s times slower, or at the full price without
    oversubscription. The former do more if s (price - saved) < price. The rate is assumed to be
    proportional to the number of nodes.
    """
    return saved * slowdown / (slowdown - 1) if slowdown > 1 else math.inf


def _against_crossbar(times: xr.DataArray, dataset: xr.Dataset) -> xr.DataArray:
    """Each time over that of the same run on the CROSSBAR, which is left out; raises FalloffError
    without it."""
    if CROSSBAR not in times.interconnect:
        campaign = dataset.attrs["campaign"]
        raise FalloffError(f"Campaign {campaign} has no network {CROSSBAR!r} to compare with.")
    reference = times.sel(interconnect=CROSSBAR, drop=True)
    return times.drop_sel(interconnect=CROSSBAR) / reference


def traffic_in_words(designs: Designs, found: Judged, margin: float) -> str:
    """What oversubscription costs each kind of traffic, the costly ones first, and how much of its time a program may spend
    in the slowest (Markdown); empty if no traffic ran."""
    traffic = found.traffic
    if traffic.empty:
        return ""
    first, *others = _by_answer(traffic, percent(margin, 0))
    words = [
        f"**Over a network oversubscribed {own_ratios(designs)}, traffic {first}** ({_basis(designs, traffic)}).",
        *(f"Traffic {does}." for does in others),
    ]
    costly = traffic[traffic.kind == CONTRADICTED].worst.max()
    if costly > 1:
        part = percent(bearable(costly, margin), 0)
        words.append(
            f"A program that spends less than about {part} of its time in the slowest traffic loses no more than "
            f"{percent(margin, 0)}."
        )
    return " ".join(words)


def hpl_in_words(designs: Designs, found: Judged) -> str:
    """What oversubscription costs HPL, and below which price of a node the saving pays (Markdown); empty if HPL did not
    run."""
    hpl, cluster = found.hpl, designs.cluster
    if hpl.empty:
        return ""
    words = [f"**HPL takes {_span(hpl)} times as long** ({_basis(designs, hpl)})."]
    extra = cluster.unsubscribed_extra
    saved = extra.value / cluster.nodes.value if extra else 0.0
    if saved > 0 and hpl.best.min() > 1:
        ends = (number(break_even(end, saved)) for end in (hpl.worst.max(), hpl.best.min()))
        words.append(
            f"Oversubscribing saves {number(saved)} USD a node. Spent on more nodes, this wins back HPL's loss only if a node with "
            f"its network costs less than {' to '.join(dict.fromkeys(ends))} USD."
        )
    return " ".join(words)


def _basis(designs: Designs, beliefs: pd.DataFrame) -> str:
    (runs, nodes), ran = beliefs[["runs", "nodes"]].iloc[0], beliefs.designs.max()
    draws = f", {counted(runs, 'draw')} of the traffic" if runs > 1 else ""
    whole = counted(len(proposed(designs)), "design")
    part = "" if ran == len(proposed(designs)) else f"{ran} of "
    return f"simulated evidence, {counted(nodes, 'node')}, {part}Nemo's {whole}{draws}"


def _by_answer(flows: pd.DataFrame, margin: str) -> Iterator[str]:
    """The effect on each kind of traffic, by answer, the costly ones first. The placement is named
    if the other one differs."""
    for kind in (CONTRADICTED, UNDECIDED, SUPPORTED):
        alike, names = flows[flows.kind == kind], []
        for pattern, own in alike.groupby("pattern", sort=False):
            whole = len(own) == (flows.pattern == pattern).sum()
            place = "" if whole else f" ({in_words(own.placement.iloc[0])})"
            names.append(TRAFFIC[pattern] + place)
        if names and kind == SUPPORTED:
            yield f"{listed(names)} loses no more than {margin}"
        elif names:
            doubt = ", which depends on the design or the draw" if kind == UNDECIDED else ""
            yield f"{listed(names)} takes {_span(alike)} times as long{doubt}"


def _span(beliefs: pd.DataFrame) -> str:
    """The smallest and the largest slowdown."""
    ends = beliefs.best.min(), beliefs.worst.max()
    return " to ".join(dict.fromkeys(fixed(end, 2) for end in ends))


def in_words(name: str) -> str:
    """The name of a pattern or a placement in a table or a figure."""
    return TRAFFIC[name].partition(" ")[2] if name in TRAFFIC else name.replace("_", " ")


def costs_nothing(
    designs: Designs, found: Judged, traffic: xr.Dataset, hpl: xr.Dataset | None
) -> list[Statement]:
    """Does oversubscription cost each kind of traffic, and HPL, nothing? By the largest slowdown of the page's own designs;
    `traffic` and `hpl` are the campaigns."""
    statements = []
    for belief in found.beliefs.itertuples():
        is_hpl = belief.pattern == HPL
        what = "neighbours " if is_hpl else f"{in_words(belief.pattern)}, "
        what += f"{in_words(belief.placement)}, {belief.nodes} nodes"
        who, dataset = ("HPL", hpl) if is_hpl else ("traffic", traffic)
        one = estimated(
            origin(dataset),
            f"Oversubscribing {own_ratios(designs)} costs {who} nothing: {what}",
            "slowdown",
            (belief.worst, *((belief.least, belief.most) if belief.runs > 1 else NO_INTERVAL)),
            belief.runs,
            "range over the random draws",
            n_of="draw",
            words=belief.kind,
            primary=is_hpl,
        )
        statements.append(one)
    return statements


def on_own_designs(
    designs: Designs,
    found: Judged,
    traffic: xr.DataArray,
    dataset: xr.Dataset,
    hpl: xr.Dataset | None,
) -> Iterator[Statement]:
    """The slowdown of every simulated run on each of the page's own designs, for neighbours in order and shuffled, by kind of
    traffic, as quantities. `traffic` is from `slowdowns_of_traffic`."""
    own = found.slowdowns[found.slowdowns.interconnect.isin(proposed(designs))]
    for pattern, rows in own.groupby("pattern"):
        nodes, names = rows.nodes.iloc[0], rows.interconnect.unique().tolist()
        values = rows.slowdown.to_numpy()
        if pattern != HPL:
            values = traffic.sel(pattern=pattern, interconnect=names, nodes=nodes).values
        text = f"slowdown of {in_words(str(pattern))} on {nodes} nodes, the source's own designs, neighbours in order and shuffled"
        source = hpl if pattern == HPL and hpl is not None else dataset
        yield quantity(source, str(pattern), text, values, "run")


def over_slowdown(designs: Designs, found: Judged, margin: float) -> Figure:
    """One row per kind of traffic, one series per oversubscription, over the slowdown [1]."""
    with style.styled():
        traffic, judged = ["pattern", "placement"], found.slowdowns
        rows = [tuple(row) for row in judged[traffic].drop_duplicates().values]
        ratios = sorted(judged.ratio.unique())
        own = {*network_designs.table(designs).edge_oversubscription[proposed(designs)]}
        figure, axes = drawing.new_figure(1.1 + 0.31 * max(len(rows), 2))
        axes.axvspan(1, 1 / (1 - margin), color=style.MARGIN, linewidth=0)
        for rank, ratio in enumerate(ratios):
            look = style.look(f"scenario {rank + 1}")
            mark = {"marker": look.marker, "color": look.color, "markersize": 3.8, "linestyle": ""}
            label = f"{ratio:.3g}:1" + (" (Nemo's designs)" if ratio in own else "")
            axes.plot([], [], **mark, label=label)
            for at, alike in judged[judged.ratio == ratio].groupby(traffic):
                place = rows.index(at) + SIDESTEP * (rank - (len(ratios) - 1) / 2)
                ends = alike.least.min(), alike.most.max()
                axes.plot(ends, [place] * 2, color=look.color, linewidth=3, alpha=0.4)
                axes.plot(alike.slowdown.max(), place, **mark)
        drawing.rows(axes, [", ".join(map(in_words, row)) for row in rows])
        ticks = [1, *ratios]
        axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("slowdown [1]")
        drawing.legend_below(figure, axes, 3)
    return figure
