"""What oversubscribed networks cost: slowdowns of traffic and HPL, efficient designs, and the source's belief."""

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import xarray as xr

from analysis import paths
from analysis.derive import at_only_level, over_factors
from analysis.design_table import table
from analysis.designs import CROSSBAR, Designs, check
from analysis.studies.design_choices import Choice, choices
from analysis.studies.efficiency import testbed
from analysis.studies.flow_growth import Growth, growth
from analysis.studies.flow_slowdown import COSTLY, FREE, Judgement, against_crossbar, judge, times
from runners.record import FalloffError

HPL = "hpl"  # stands beside the patterns of traffic
LIKE_FLOWS = {"pattern": [HPL], "run": [1]}

SUPPORTED, CONTRADICTED, MIXED = "supported", "contradicted", "mixed"


@dataclass(frozen=True)
class Belief:
    """The source's belief that its oversubscription costs nothing, for a pattern and placement.

    SUPPORTED where all of the source's own designs cost that pattern nothing, CONTRADICTED where all cost it
    something, otherwise MIXED. `best` and `worst` are the judgements with the least and the largest slowdown, of the
    `designs` of the source's that were run.
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
    """The campaigns' datasets and all that follows from them.

    `proposed` are the source's own designs. `slowdowns` is from `flow_slowdown.against_crossbar`, without what a
    design has no slots for. `judgements` are of the cluster's node count, or of the nearest that was run, and of HPL
    where it was run. `costs` is from `design_table.table`. `crossbar_cost` [USD a node] is what the network without
    oversubscription costs: the cheapest of the source's designs and what the source says that it would cost more; NaN
    where it does not say so.
    """

    dataset: xr.Dataset
    hpl: xr.Dataset | None
    designs: Designs
    proposed: tuple[str, ...]
    slowdowns: xr.Dataset
    margin: float
    costs: pd.DataFrame
    crossbar_cost: float
    judgements: tuple[Judgement, ...]
    beliefs: tuple[Belief, ...]
    choices: tuple[Choice, ...]
    growth: tuple[Growth, ...]


def analyse(
    dataset: xr.Dataset, hpl: xr.Dataset | None = None, prices: Mapping[str, float] | None = None
) -> Topology:
    """Derive all of it, with the costs of the designs that the testbed names; `prices` [USD] replaces those of parts.

    Raises FalloffError when there is no trial of flows or no crossbar, or a price is of no part.
    """
    designs = _designs(dataset)
    margin = json.loads(dataset.attrs["design"])["margin"]
    costs = table(designs, prices=prices)
    found = _that_fit(against_crossbar(times(dataset)), costs)
    judged = _of_flows(found, designs.cluster["nodes"], margin) + (_of_hpl(hpl, margin) if hpl is not None else ())
    own = tuple(name for name in designs.designs if f"designs.{name}.nodes_per_edge" not in designs.assumed)
    cheapest = costs[costs.design.isin(own)].cost.min()
    crossbar_cost = (cheapest + designs.cluster["unsubscribed_extra"]) / designs.cluster["nodes"]
    known = {**dict(zip(costs.design, costs.cost_per_node)), CROSSBAR: crossbar_cost}
    return Topology(
        dataset=dataset,
        hpl=hpl,
        designs=designs,
        proposed=own,
        slowdowns=found,
        margin=margin,
        costs=costs,
        crossbar_cost=crossbar_cost,
        judgements=judged,
        beliefs=_beliefs([it for it in judged if it.interconnect in own]),
        choices=choices(judged, {name: cost for name, cost in known.items() if math.isfinite(cost)}, CROSSBAR),
        growth=growth(dataset),
    )


def in_words(name: str) -> str:
    """What a pattern or a placement is called in a text."""
    return "HPL" if name == HPL else name.replace("_", " ")


def _designs(dataset: xr.Dataset) -> Designs:
    """The design file that the dataset's testbed names, whose prices are no part of the dataset.

    Raises FalloffError when it is not there, or names its faults.
    """
    file = paths.DESIGNS / f"{testbed(dataset)['designs']}.toml"
    try:
        return check(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise FalloffError(f"the dataset is of the designs in {file}, which cannot be read: {error}") from None


def _that_fit(slowdowns: xr.Dataset, costs: pd.DataFrame) -> xr.Dataset:
    """The slowdowns on no more nodes than each design's largest cluster, NaN beyond."""
    largest = costs.set_index("design").largest_cluster.reindex(slowdowns.interconnect.values)
    return slowdowns.where(slowdowns.nodes <= xr.DataArray(largest.values, dims="interconnect"))


def _of_flows(slowdowns: xr.Dataset, nodes: int, margin: float) -> tuple[Judgement, ...]:
    """The judgements on the cluster's node count, or on what ran nearest to it from below, else from above."""
    counts = slowdowns.nodes.values[slowdowns.makespan.notnull().any(set(slowdowns.dims) - {"nodes"})]
    if not len(counts):
        return ()
    at = max((count for count in counts if count <= nodes), default=counts.min())
    points = slowdowns.sel(nodes=at).stack(point=("pattern", "placement", "interconnect")).transpose("point", "run")
    judged = [judge(points.isel(point=number), margin) for number in range(points.sizes["point"])]
    return tuple(it for it in judged if it)


def _of_hpl(hpl: xr.Dataset, margin: float) -> tuple[Judgement, ...]:
    """HPL's judgements from the ratios of its rates, on the most nodes that were run."""
    rate = at_only_level(over_factors(hpl, rate=hpl.hpl_rate), "block").rate.isel(nodes=-1)
    others = [name for name in rate.interconnect.values if name != CROSSBAR]
    slowdown = rate.sel(interconnect=CROSSBAR, drop=True) / rate.sel(interconnect=others)
    both = xr.Dataset({"makespan": slowdown, "mean": math.nan * slowdown})
    return _of_flows(both.expand_dims(["nodes", *LIKE_FLOWS]).assign_coords(LIKE_FLOWS), int(rate.nodes), margin)


def _beliefs(own: Sequence[Judgement]) -> tuple[Belief, ...]:
    """The source's belief, pattern by pattern, from the judgements on its own designs."""
    by_pattern = {}
    for it in own:
        by_pattern.setdefault((it.pattern, it.placement), []).append(it)
    return tuple(_belief(judged) for judged in by_pattern.values())


def _belief(judged: Sequence[Judgement]) -> Belief:
    kinds = {it.kind for it in judged}
    kind = {(FREE,): SUPPORTED, (COSTLY,): CONTRADICTED}.get(tuple(kinds), MIXED)
    ranked = sorted(judged, key=lambda it: it.slowdown)
    best, worst = ranked[0], ranked[-1]
    return Belief(best.pattern, best.placement, best.nodes, kind, len(judged), best, worst)
