"""One node to several over a bridge, and back: how much they get together, and which resource is the limit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import attributes, drawing, published, style
from analysis.bottleneck import (
    CHANGES,
    LEAST_GROWTH,
    LIMITS,
    UNDECIDED,
    Bottleneck,
    bottleneck,
)
from analysis.capacity import Limits, limits
from analysis.derive import over_factors
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import T_INTERVAL, Finding, of_estimate, origin, without_reading
from analysis.fitting.adequacy import follows
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.statistics.intervals import average, rates, ratios
from analysis.links import LINK_BOUND
from analysis.models import segmented
from analysis.wording import (
    UNKNOWN,
    between,
    counted,
    exact,
    fixed,
    percent,
    percent_range,
)
from runners import fanout
from runners.record import FalloffError

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {
    "fan_out": ("fan_out",),
    "fan_out_shares": ("fan_out",),
}

GBIT = 1e9
ENDS = {"forward": "from one sender", "reverse": "to one receiver"}
HEADROOM = 1.3  # of the axes over the largest goodput
SIDESTEP = 0.12  # of a row, between the directions


@dataclass(frozen=True)
class Fan:
    """All that follows for one direction at the baseline's path and streams.

    `goodput` [bit/s] is the aggregate over (block, receivers), `means` its harmonic mean over (receivers):
    `mean`, 95 % t interval `low`, `high`, `blocks`. `fairness` is Jain's index [1] over (receivers): `ratio`
    (geometric mean), `low`, `high`, `blocks`. `limits` are the links' by number of receivers.
    `fitted` is the segmented model of log2 of a receiver's mean goodput over the receivers, in every block:
    it is level up to the knee and falls by s per doubling beyond it; s = 1 where the aggregate does not grow
    at all. `knee` is (estimate, low, high) in receivers, a 95 % t interval of its logarithm over the blocks. Where the
    data do not carry it `fitted` is None, and `refused` says why; where the model does not follow its data (`follows`)
    the knee is not quoted. `verdict` names the limit at the baseline's receivers. `sender_cpu` is the share of one
    processor that the shared node took there, over (block).
    """

    direction: str
    goodput: xr.DataArray
    means: xr.Dataset
    fairness: xr.Dataset
    limits: Mapping[int, Limits]
    verdict: Bottleneck
    sender_cpu: xr.DataArray
    fitted: BlockFit | None = None
    knee: tuple[float, float, float] = (np.nan, np.nan, np.nan)
    refused: str = ""
    follows: bool = False

    @property
    def growth(self) -> tuple[float, float, float]:
        """What the aggregate gains [1] with a doubling of the receivers beyond the knee, with its 95 % interval."""
        if self.fitted is None:
            return np.nan, np.nan, np.nan
        low, high = self.fitted.intervals["s"]
        estimate, least, most = (2 ** (1 - s) - 1 for s in (self.fitted.estimates["s"], high, low))
        return estimate, least, most


@dataclass(frozen=True)
class FanOut:
    """The campaign's dataset and all that follows from it.

    `points` is over (block, *factors): `goodput` [bit/s] of all flows, `fairness` [1] and `sender_cpu` [1].
    `flows` has a row for each flow at the baseline's path and streams: direction, block, receivers, node,
    `goodput` [bit/s] and `share`, its part of an equal one. `baseline` holds the design's levels.
    `today` is of a shorter run of it, made anew.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    flows: pd.DataFrame
    baseline: Mapping[str, Any]
    fans: tuple[Fan, ...]
    today: "FanOut | None" = None

    @property
    def evidence(self) -> str:
        """The kind of evidence."""
        return self.dataset.evidence.values.ravel()[0].item()

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return self.points.sizes["block"]


def analyse(fan_out: xr.Dataset, today: xr.Dataset | None = None) -> FanOut:
    """Derive points, flows and the fans, of today's run too; raises FalloffError when there is no fanout trial."""
    sender = attributes.settings(fan_out)["sender"]
    points = over_factors(
        fan_out,
        runner="fanout",
        goodput=fan_out.aggregate_goodput,
        fairness=fan_out.fairness,
        sender_cpu=(fan_out.cpu_time.sel(node=sender, drop=True) / fan_out.wall_time),
    ).sortby("receivers")
    design = attributes.design(fan_out)
    baseline, changes = design["baseline"], design["changes"]
    path = attributes.interconnects(fan_out)[baseline["path"]]
    return FanOut(
        dataset=fan_out,
        points=points,
        flows=_flows(fan_out, baseline),
        baseline=baseline,
        fans=tuple(
            _fan(points.sel(direction=direction), baseline, changes, path, sender)
            for direction in points.direction.values.tolist()
        ),
        today=None if today is None else analyse(today),
    )


def _fan(
    points: xr.Dataset, baseline: Mapping, changes: Mapping, path: Mapping, sender: int
) -> Fan:
    others = {name: level for name, level in baseline.items() if name != "receivers"}
    over_receivers = points.sel(others, drop=True)
    direction = points.direction.item()
    goodput = over_receivers.goodput.transpose("block", "receivers")
    receivers = goodput.receivers.values.astype(float)
    each = np.log2(goodput / goodput.receivers).values
    values = {
        "direction": direction,
        "goodput": goodput,
        "means": rates(goodput),
        "fairness": ratios(np.log(over_receivers.fairness)),
        "limits": {int(n): _links_limits(path, sender, int(n), direction) for n in receivers},
        "verdict": _verdict(points.goodput, baseline, changes),
        "sender_cpu": points.sender_cpu.sel(baseline).dropna("block"),
    }
    try:
        fitted = fit_blocks(segmented.MODEL, receivers, each)
    except FalloffError as error:
        return Fan(**values, refused=str(error))
    # In bit/s: near is a part of the goodput, and not of its logarithm.
    line, *_ = fitted.band(receivers, "cost", lambda _, logarithm: 2**logarithm)
    is_close = follows(2**each, line, len(segmented.MODEL.parameters))
    knees = fitted.by_block[:, segmented.MODEL.parameters.index("n0")]
    estimate, low, high = (float(value) for value in average(knees, "ratio"))
    return Fan(**values, fitted=fitted, knee=(estimate, low, high), follows=is_close)


def _links_limits(path: Mapping, sender: int, receivers: int, direction: str) -> Limits:
    far = fanout.nodes({"sender": sender, "receivers": receivers})
    forward = [(sender, node) for node in far]
    return limits(path, forward if direction == "forward" else [pair[::-1] for pair in forward])


def _verdict(goodput: xr.DataArray, baseline: Mapping, changes: Mapping) -> Bottleneck:
    """The changes whose levels were run at all, each against the baseline of the same blocks."""
    changed = {
        change: goodput.sel({**baseline, **levels}).values
        for change, levels in changes.items()
        if all(level in goodput[name].values for name, level in levels.items())
    }
    return bottleneck(goodput.sel(baseline).values, changed)


def _flows(dataset: xr.Dataset, baseline: Mapping) -> pd.DataFrame:
    """One row for each measured flow at the baseline's path and streams."""
    chosen = (dataset.role == "point") & (dataset.runner == "fanout")
    for name in baseline.keys() - {"receivers"}:
        chosen &= dataset[name] == baseline[name]
    columns = ["direction", "block", "receivers", "node", "flow_goodput"]
    table = dataset.flow_goodput.isel(trial=np.flatnonzero(chosen)).to_dataframe().reset_index()
    table = table.dropna(subset="flow_goodput")[columns].rename(columns={"flow_goodput": "goodput"})
    together = table.groupby(["direction", "block", "receivers"]).goodput.transform("mean")
    return table.assign(share=table.goodput / together).astype({"receivers": int})


def findings(study: FanOut) -> Iterator[Finding]:
    """What limits the flows in each direction, and from how many flows on, as data."""
    source = origin("fan_out", study.dataset)
    for fan in study.fans:
        blocks = 0 if fan.fitted is None else fan.fitted.blocks
        statement = f"what limits the flows, {fan.direction}, and from how many on"
        misses = "" if fan.fitted is None or fan.follows else "the model misses its data"
        further = {"n": blocks, "answer": fan.verdict.limit, "reason": fan.refused or misses}
        estimate, *ends = fan.knee
        yield of_estimate(
            source, statement, "receivers", "1", estimate, ends, T_INTERVAL, **further
        )


def finding(study: FanOut) -> str:
    """What limits the flows in each direction, and where they stop to gain, in plain English (Markdown)."""
    paragraphs = [_of_fan(study, fan) for fan in study.fans]
    paragraphs += [_untried(study), without_reading(study.dataset), _of_today(study)]
    if study.evidence == "emulated":
        paragraphs.append(
            "The rates of bridge and ports are set in this emulation. So it tests whether the method finds a known limit. It "
            "does not say what limited the source."
        )
    return "\n\n".join(filter(None, paragraphs))


def _of_fan(study: FanOut, fan: Fan) -> str:
    verdict = fan.verdict
    flows = f"{counted(study.baseline['receivers'], 'flow')} {ENDS[fan.direction]}"
    basis = f"{counted(study.blocks, 'block')}, {study.evidence} evidence"
    if verdict.limit == UNDECIDED:
        answer = f"**What limits {flows} is undecided** ({basis}): {verdict.reason}."
    else:
        change = next(change for change, limit in LIMITS.items() if limit == verdict.limit)
        response = verdict.responses[change]
        ends = percent_range((response.low - 1, response.high - 1))
        answer = f"**The {verdict.limit} limits {flows}**: {verdict.reason} (90 % interval {ends}, {basis})."
    return " ".join(filter(None, (answer, _what_stays(verdict), _of_knee(fan))))


def _what_stays(verdict: Bottleneck) -> str:
    stay = [
        CHANGES[change]
        for change, response in verdict.responses.items()
        if response.says == "stays"
    ]
    if not stay:
        return ""
    listed = " and ".join(filter(None, (", ".join(stay[:-1]), stay[-1])))
    return f"The goodput grows by less than {percent(LEAST_GROWTH, 0)} with {listed}."


def _of_knee(fan: Fan) -> str:
    """From how many flows on the aggregate grows no more, or more slowly."""
    if not fan.follows:
        return ""
    (estimate, low, high), (_, least, most) = fan.knee, fan.growth
    verb = "bends"
    if max(-least, most) < LEAST_GROWTH:
        verb = "stops growing"
    elif least > LEAST_GROWTH:
        verb = "grows more slowly"
    interval = "" if np.isnan(low) else f" (95 % t interval {between((low, high), 2)})"
    return f"The sum of all flows {verb} at {fixed(estimate, 2)} flows{interval}."


def _untried(study: FanOut) -> str:
    """The changes that nobody tried, and how busy the processor was whose relief is among them."""
    tried = {change for fan in study.fans for change in fan.verdict.responses}
    untried = [name for change, name in CHANGES.items() if change not in tried]
    if not untried:
        return ""
    names = f"Not tried: {', '.join(untried)}."
    used = [
        f"{percent(float(fan.sender_cpu.mean()), 0)} of one processor with flows {ENDS[fan.direction]}"
        for fan in study.fans
        if fan.sender_cpu.size
    ]
    if "cpu" in tried or not used:
        return names
    return f"{names} The shared node used {' and '.join(used)}."


def _of_today(study: FanOut) -> str:
    """Which limits today's run names."""
    if study.today is None:
        return ""
    answers = [
        f"{_named(fan.verdict.limit)} for flows {ENDS[fan.direction]}" for fan in study.today.fans
    ]
    return f"Today's run ({counted(study.today.blocks, 'block')}) {' and '.join(answers)}."


def _named(limit: str) -> str:
    return "does not decide it" if limit == UNDECIDED else f"names the {limit}"


def source() -> str:
    """What the source printed of its bridge (Markdown)."""
    printed = published.grid5000()
    bridge = printed["bridge"]
    quotes = {statement["about"]: statement["quote"] for statement in printed["statement"]}
    return (
        f"The source sent from one node over a bridge to more and more others. The sum stopped growing after "
        f"{bridge['targets']['value']} of them, at about {_gbit(bridge['saturation'])}; "
        f"{_gbit(bridge['expected'])} were expected (published evidence) [@gridfive]. It says: "
        f'"{quotes["bridge"]}" A limit of the sender would show the same.'
    )


def _gbit(printed: Mapping) -> str:
    return f"{exact(printed['value'] / GBIT)} Gbit/s"


def figures(study: FanOut) -> dict[str, Exhibit]:
    """Aggregate and responses to each change, and each flow's share."""
    return {
        "fan_out": Exhibit(
            "fan_out",
            aggregate_and_changes(study),
            "Goodput of all flows over their number, and below it what one change at a time does",
            _basis(study, "every run above, 90 % t intervals below"),
            "Above, goodput of all flows over their number for both directions, with the links' limits; below, the ratio of "
            "goodputs after and before each change",
            f"Marks above are single runs, below geometric means. Dotted below: {percent(LEAST_GROWTH, 0)} more, the least that counts.",
            rests_on=FIGURES["fan_out"],
        ),
        "fan_out_shares": Exhibit(
            "fan_out_shares",
            shares(study),
            "Each flow's goodput as a part of an equal share",
            _basis(study, "every flow is drawn"),
            "Share of each flow over the number of flows, a panel for each direction",
            "At 1 all flows get the same.",
            rests_on=FIGURES["fan_out_shares"],
        ),
    }


def aggregate_and_changes(study: FanOut) -> Figure:
    """Above the goodput of all flows [Gbit/s] over their number, a panel a direction; below the ratios [1] of the changes."""
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 5.2))
        above, below = figure.subfigures(2, 1, height_ratios=(1.5, 1))
        panels = above.subplots(1, len(study.fans), squeeze=False, sharey=True)[0]
        for axes, fan in zip(panels, study.fans):
            _aggregate(axes, fan)
        most = max(np.nan_to_num(fan.goodput).max() for fan in study.fans)
        if most:
            panels[0].set_ylim(0, HEADROOM * most / GBIT)
        panels[0].set_ylabel("goodput of all flows [Gbit/s]")
        drawing.legend_below(above, panels, 2)
        _changes(below.subplots(), study)
        return figure


def _aggregate(axes: Axes, fan: Fan) -> None:
    receivers = fan.goodput.receivers.values
    links = [fan.limits[int(n)].own / GBIT for n in receivers]
    shared = fan.limits[int(receivers.max())].shared / GBIT
    axes.plot(
        receivers,
        links,
        "--",
        color=style.INK,
        linewidth=0.9,
        label="limit of the flows' own links",
        gid=drawing.BOUND,
    )
    axes.axhline(
        shared,
        color=style.INK,
        linewidth=0.9,
        linestyle=":",
        label="limit of the link that all share",
    )
    look = style.look(fan.direction)
    values = fan.goodput.values / GBIT
    axes.plot(
        np.broadcast_to(receivers, values.shape).ravel(),
        values.ravel(),
        look.marker,
        color=look.color,
        alpha=0.6,
        mew=0,
        label=_flows_named(fan),
    )
    _flow_axis(axes, fan)


def _changes(axes: Axes, study: FanOut) -> None:
    """A row a change, a series a direction."""
    changes = list(dict.fromkeys(change for fan in study.fans for change in fan.verdict.responses))
    axes.axvline(1, color=style.FAINT, linewidth=0.9)
    axes.axvline(1 + LEAST_GROWTH, color=style.INK, linewidth=0.9, linestyle=":")
    for rank, fan in enumerate(study.fans):
        look = style.look(fan.direction)
        for change, response in fan.verdict.responses.items():
            row = changes.index(change) + 2 * SIDESTEP * (rank - (len(study.fans) - 1) / 2)
            ends = [[response.ratio - response.low], [response.high - response.ratio]]
            axes.errorbar(
                response.ratio,
                row,
                xerr=ends,
                fmt=look.marker,
                color=look.color,
                mfc="white",
                capsize=3,
            )
    drawing.rows(axes, [CHANGES[change] for change in changes])
    axes.set_xlabel("goodput after / before the change [1]")


def shares(study: FanOut) -> Figure:
    """Each flow's goodput as a part of an equal one [1] over the flows; 1 for all is perfectly fair."""
    with style.styled():
        figure, panels = drawing.new_figures(2.8, len(study.fans))
        for axes, fan in zip(panels, study.fans):
            look = style.look(fan.direction)
            flows = study.flows[study.flows.direction == fan.direction]
            axes.sharey(panels[0])
            axes.axhline(1, color=style.FAINT, linewidth=0.9)
            axes.plot(flows.receivers, flows.share, look.marker, color=look.color, alpha=0.4, mew=0)
            axes.set_title(_flows_named(fan))
            _flow_axis(axes, fan)
        panels[0].set_ylim(0, None)
        panels[0].set_ylabel("goodput of a flow / mean of all [1]")
        return figure


def _flow_axis(axes: Axes, fan: Fan) -> None:
    axes.set_xticks(fan.goodput.receivers.values)
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel("flows")


def _flows_named(fan: Fan) -> str:
    return f"flows {ENDS[fan.direction]}"


def changes_table(study: FanOut) -> Table:
    """What each change alone does to the goodput of the baseline's flows."""
    rows = [
        (
            ENDS[fan.direction],
            CHANGES[change],
            fixed(_known(response.ratio), 3) + _in_parentheses(response.low, response.high, 3),
            str(response.repeats),
            response.says,
        )
        for fan in study.fans
        for change, response in fan.verdict.responses.items()
    ]
    columns = ("Flows", "Change", "After / before (90 % interval) [1]", "Blocks", "The goodput")
    caption = (
        f"What one change at a time does to the goodput of {counted(study.baseline['receivers'], 'flow')}: geometric means. It "
        f"grows where the whole interval lies above {percent(LEAST_GROWTH, 0)} more, and stays where it lies below."
    )
    return Table(
        "fan-out-changes", columns, "llrrl", rows, caption, _basis(study, "90 % t intervals")
    )


def points_table(study: FanOut) -> Table:
    """Goodput, its share of the links' limit and fairness for every number of flows."""
    columns = (
        "Flows",
        "Number",
        "Goodput (95 % interval) [Gbit/s]",
        "Of the links' limit [%]",
        "Bound by",
        "Jain's fairness (95 % interval) [1]",
        "Blocks",
    )
    rows = [_point_row(fan, n) for fan in study.fans for n in fan.limits]
    caption = (
        "Goodput of all flows (harmonic means) and how evenly they share it (geometric means). Bound by the host is what stays "
        f"below {percent(LINK_BOUND, 0)} of the links' limit; queues may bring a run a little beyond it."
    )
    return Table("fan-out", columns, "lrrrlrr", rows, caption, _basis(study, "95 % t intervals"))


def _point_row(fan: Fan, receivers: int) -> tuple[str, ...]:
    at, fairness = (values.sel(receivers=receivers) for values in (fan.means, fan.fairness))
    links = fan.limits[receivers]
    share = float(at["mean"]) / min(links.own, links.shared)
    bound = "link" if share >= LINK_BOUND else "host"
    least, most = max(float(fairness.low), 1 / receivers), min(float(fairness.high), 1.0)
    ends = (least, most) if np.isfinite(fairness.low) else (np.nan, np.nan)
    return (
        ENDS[fan.direction],
        str(receivers),
        fixed(_known(at["mean"] / GBIT), 3) + _in_parentheses(at.low / GBIT, at.high / GBIT, 3),
        fixed(_known(100 * share), 1),
        bound if np.isfinite(share) else UNKNOWN,
        fixed(_known(fairness.ratio), 3) + _in_parentheses(*ends, 3),
        str(int(at.blocks)),
    )


def _basis(study: FanOut, intervals: str) -> Basis:
    return Basis(study.evidence, study.blocks, intervals)


def _in_parentheses(low, high, decimals: int) -> str:
    ends = float(low), float(high)
    return f" ({between(ends, decimals)})" if np.isfinite(ends).all() else ""


def _known(value) -> float | None:
    return float(value) if np.isfinite(value) else None


def _printed(design: Mapping) -> pd.DataFrame:
    """The aggregate goodput [bit/s] at which the source saw its bridge saturated."""
    source = published.grid5000()
    bridge = source["bridge"]
    told = f"{source['source']['short']}, {bridge['saturation']['where']}"
    levels = {"path": "fanout_3g", "receivers": bridge["targets"]["value"], "direction": "forward"}
    return pd.DataFrame([{**levels, "value": bridge["saturation"]["value"], "text": told}])


PRINTED = {("fan_out", "aggregate_goodput"): _printed}
