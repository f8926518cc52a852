"""What oversubscribed networks cost and save: traffic and HPL simulated on the networks that a
design page proposes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.ticker import NullLocator

from analysis import designs as network_designs
from analysis import drawing, exhibit, paths, style
from analysis.attributes import testbed
from analysis.derive import at_only_level, over_factors
from analysis.descriptions import switch_designs
from analysis.descriptions.switch_designs import CROSSBAR, Designs
from analysis.findings import NO_INTERVAL, Finding, of_estimate, origin
from analysis.statistics import design as plans
from analysis.statistics.intervals import mean_over
from analysis.wording import counted, fixed, listed, number, percent
from runners.record import FalloffError

HPL = "hpl"  # shown beside the traffic patterns
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
SIDESTEP = 0.27  # fraction of a row between the marks of two oversubscriptions


@dataclass(frozen=True)
class Topology:
    """The campaigns' datasets and all results.

    `proposed` are the page's own designs. `slowdowns` [1], the time over that without
    oversubscription, is over (run, interconnect, pattern, placement, nodes). `judged` has a row for
    each pattern, placement and interconnect on the cluster's node count, or the nearest that ran,
    and for HPL if it ran. Its columns are `nodes`, `slowdown` (geometric mean over the `runs`, each
    with newly drawn traffic), `least`, `most` and `ratio`, the design's oversubscription at the
    edges [1].

    `beliefs` has a row for each pattern and placement: the page believes that its oversubscription
    costs nothing. `kind` is SUPPORTED if no run on its designs is slower by more than the margin m,
    a slowdown of at most 1 / (1 - m), CONTRADICTED if all are, else MIXED. `best` and `worst` are
    slowdowns of the page's `designs` that ran, `least` and `most` the extremes of the worst one's
    runs. `costs` is from `designs.table`.
    """

    dataset: xr.Dataset
    hpl: xr.Dataset | None
    designs: Designs
    proposed: tuple[str, ...]
    costs: pd.DataFrame
    slowdowns: xr.DataArray
    margin: float
    judged: pd.DataFrame
    beliefs: pd.DataFrame

    @property
    def own_ratios(self) -> str:
        """The oversubscriptions of the page's own designs, in words."""
        ratios = {*self.costs.edge_oversubscription[list(self.proposed)]}
        return listed([f"{ratio:.3g}:1" for ratio in sorted(ratios)])


def analyse(topology: xr.Dataset, hpl_topology: xr.Dataset | None = None) -> Topology:
    """Derive all results. Raises FalloffError if there is no trial of flows or no crossbar, or
    there are several blocks."""
    designs, margin = _designs(topology), plans.read(topology).margin
    costs, slowdowns = (
        network_designs.table(designs),
        _against_crossbar(makespans(topology), topology),
    )
    ran = slowdowns.dropna("nodes", how="all").nodes.values
    nodes = max(
        ran[ran <= designs.cluster.nodes.value], default=min(ran, default=slowdowns.nodes[0])
    )
    judged = [_judged(slowdowns.sel(nodes=nodes))]
    if hpl_topology is not None:
        laid_out = over_factors(hpl_topology, rate=hpl_topology.hpl_rate)
        rates = at_only_level(laid_out.assign_attrs(hpl_topology.attrs), "block").rate
        time = 1 / rates.sortby("nodes").isel(nodes=-1).expand_dims(run=[1], pattern=[HPL])
        judged.append(_judged(_against_crossbar(time, hpl_topology)))
    judged = pd.concat(judged, ignore_index=True)
    judged["ratio"] = judged.interconnect.map(costs.edge_oversubscription)
    added = [place.split(".")[1] for place in designs.assumed() if place.startswith("designs.")]
    proposed = tuple(name for name in designs.designs if name not in added)
    return Topology(
        dataset=topology,
        hpl=hpl_topology,
        designs=designs,
        proposed=proposed,
        costs=costs,
        slowdowns=slowdowns,
        margin=margin,
        judged=judged,
        beliefs=_beliefs(judged[judged.interconnect.isin(proposed)], 1 / (1 - margin)),
    )


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
        worst, kind = alike.loc[alike.slowdown.idxmax()], MIXED
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


def _designs(dataset: xr.Dataset) -> Designs:
    """The design file that the dataset's testbed names; raises FalloffError if it is missing, or
    names its faults."""
    return switch_designs.read(paths.DESIGNS / f"{testbed(dataset)['designs']}.toml")


def _against_crossbar(times: xr.DataArray, dataset: xr.Dataset) -> xr.DataArray:
    """Each time over that of the same run on the CROSSBAR, which is left out; raises FalloffError
    without it."""
    if CROSSBAR not in times.interconnect:
        campaign = dataset.attrs["campaign"]
        raise FalloffError(f"Campaign {campaign} has no network {CROSSBAR!r} to compare with.")
    reference = times.sel(interconnect=CROSSBAR, drop=True)
    return times.drop_sel(interconnect=CROSSBAR) / reference


def finding(study: Topology) -> str:
    """The cost of the page's oversubscription for traffic and HPL, in plain English (Markdown)."""
    flows = study.beliefs[study.beliefs.pattern != HPL]
    of_hpl = study.beliefs[study.beliefs.pattern == HPL]
    if study.beliefs.empty:
        return (
            "**What oversubscription costs cannot be told**: none of Nemo's designs ran beside a network without it "
            "(simulated evidence)."
        )
    margin = percent(study.margin, 0)
    words, (first, *others) = [], [*_of_traffic(flows, margin), ""]
    if first:
        where = f"Over a network oversubscribed {study.own_ratios}"
        words.append(f"**{where}, traffic {first}** ({_basis(study, flows)}).")
    if len(of_hpl):
        words.append(f"**HPL takes {_span(of_hpl)} times as long** ({_basis(study, of_hpl)}).")
    words += [f"Traffic {does}." for does in others if does]
    costly = flows[flows.kind == CONTRADICTED].worst.max()
    if costly > 1:
        part = percent(bearable(costly, study.margin), 0)
        words.append(
            f"A program that spends less than about {part} of its time in the slowest traffic loses no more than {margin}."
        )
    cluster = study.designs.cluster
    extra = cluster.unsubscribed_extra
    saved = extra.value / cluster.nodes.value if extra else 0.0
    if saved > 0 and of_hpl.best.min() > 1:
        ends = (number(break_even(end, saved)) for end in (of_hpl.worst.max(), of_hpl.best.min()))
        words.append(
            f"Oversubscribing saves {number(saved)} USD a node. Spent on more nodes, this wins back HPL's loss only if a node with "
            f"its network costs less than {' to '.join(dict.fromkeys(ends))} USD."
        )
    return " ".join(words)


def _basis(study: Topology, beliefs: pd.DataFrame) -> str:
    (runs, nodes), ran = beliefs[["runs", "nodes"]].iloc[0], beliefs.designs.max()
    draws = f", {counted(runs, 'draw')} of the traffic" if runs > 1 else ""
    whole = counted(len(study.proposed), "design")
    part = "" if ran == len(study.proposed) else f"{ran} of "
    return f"simulated evidence, {counted(nodes, 'node')}, {part}Nemo's {whole}{draws}"


def _of_traffic(flows: pd.DataFrame, margin: str) -> Iterator[str]:
    """The effect on each kind of traffic, by answer, the costly ones first. The placement is named
    if the other one differs."""
    for kind in (CONTRADICTED, MIXED, SUPPORTED):
        alike, names = flows[flows.kind == kind], []
        for pattern, own in alike.groupby("pattern", sort=False):
            whole = len(own) == (flows.pattern == pattern).sum()
            place = "" if whole else f" ({in_words(own.placement.iloc[0])})"
            names.append(TRAFFIC[pattern] + place)
        if names and kind == SUPPORTED:
            yield f"{listed(names)} loses no more than {margin}"
        elif names:
            doubt = ", which depends on the design or the draw" if kind == MIXED else ""
            yield f"{listed(names)} takes {_span(alike)} times as long{doubt}"


def _span(beliefs: pd.DataFrame) -> str:
    """The smallest and the largest slowdown."""
    ends = beliefs.best.min(), beliefs.worst.max()
    return " to ".join(dict.fromkeys(fixed(end, 2) for end in ends))


def in_words(name: str) -> str:
    """The name of a pattern or a placement in a table or a figure."""
    return TRAFFIC[name].partition(" ")[2] if name in TRAFFIC else name.replace("_", " ")


def findings(study: Topology) -> Iterator[Finding]:
    """The page's belief for each kind of traffic and for HPL, judged by the largest slowdown of its
    own designs."""
    for belief in study.beliefs.itertuples():
        is_hpl = belief.pattern == HPL
        what = "neighbours " if is_hpl else f"{in_words(belief.pattern)}, "
        what += f"{in_words(belief.placement)}, {belief.nodes} nodes"
        who = "HPL" if is_hpl else "traffic"
        ends = (belief.least, belief.most) if belief.runs > 1 else NO_INTERVAL
        yield of_estimate(
            origin("topology", study.hpl if is_hpl else study.dataset),
            f"Oversubscribing {study.own_ratios} costs {who} nothing: {what}",
            "slowdown",
            (belief.worst, *ends),
            belief.runs,
            "range over the random draws",
            n_of="draw",
            answer=belief.kind,
            primary=is_hpl,
        )


def figures(study: Topology) -> dict[str, exhibit.Exhibit]:
    """One row per kind of traffic, one series per oversubscription, over the slowdown [1]."""
    with style.styled():
        traffic, judged = ["pattern", "placement"], study.judged
        rows = [tuple(row) for row in judged[traffic].drop_duplicates().values]
        ratios = sorted(judged.ratio.unique())
        own = {*study.costs.edge_oversubscription[list(study.proposed)]}
        figure, axes = drawing.new_figure(1.1 + 0.31 * max(len(rows), 2))
        axes.axvspan(1, 1 / (1 - study.margin), color=style.MARGIN, linewidth=0)
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
    return exhibit.only(
        FIGURES,
        figure,
        "Time of traffic, and of HPL as a whole, over the time without oversubscription",
        exhibit.Basis("simulated"),
        "Slowdown of each kind of traffic and of HPL, at each oversubscription of the edge switches",
        "Mark: the slowest design of each oversubscription (geometric mean over the draws of the traffic). Bar: all such designs "
        f"and draws. A slowdown in the shaded margin of {percent(study.margin, 0)} counts as none.",
    )
