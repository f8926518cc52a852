"""One node to several over a bridge, and back: how much they get together, and which resource is the limit.

The model is goodput = min(capacity of each resource). Relieving one resource then raises the goodput if and only if that
resource alone is the limit; with two equal limits no single relief does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.attributes import design, interconnects, settings
from analysis.capacity import Limits, limits
from analysis.derive import over_factors
from analysis.exhibit import Basis, Exhibit
from analysis.findings import (
    T_INTERVAL,
    Finding,
    evidence_of,
    of_estimate,
    origin,
    resting_on,
    without_reading,
)
from analysis.fitting.block_fit import Attempt, attempt
from analysis.models import segmented
from analysis.statistics.intervals import average
from analysis.statistics.judgement import UNDECIDED
from analysis.wording import between, fixed, listed, paragraphs, percent, percent_range
from runners import fanout

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {"fan_out": ("fan_out",)}
GBIT = 1e9
ENDS = {"forward": "from one sender", "reverse": "to one receiver"}
HEADROOM = 1.3  # of the axes over the largest goodput
SIDESTEP = 0.12  # of a row, between the directions
# What can be changed, one thing at a time, against the same baseline, and which resource that relieves.
CHANGES = {
    "receiver": "more receivers",
    "stream": "more streams in each flow",
    "port": "faster ports of the nodes",
    "cpu": "more CPU for the sender",
    "bridge": "a faster bridge",
}
LIMITS = {"receiver": "receiver", "port": "link", "cpu": "sender CPU", "bridge": "shared bridge"}
# The least growth that counts. A change should promise at least twice as much, or it cannot be told from
# none: one more receiver beside seven promises 1/7, four more promise 4/7.
LEAST_GROWTH = 0.10
CONFIDENCE = 0.90  # each end of the interval is a one-sided test at 5 %


@dataclass(frozen=True)
class Response:
    """What a change did to the goodput: the ratio to the baseline, its 90 % interval, and `says`:

    `grows` (the interval lies above 1 + LEAST_GROWTH), `stays` (below it) or `unclear`.
    """

    ratio: float
    low: float
    high: float
    says: str


@dataclass(frozen=True)
class Bottleneck:
    """The `limit` (a value of LIMITS, or UNDECIDED), the reason in a sentence, and each change's response.

    `relief` is the change that raised the goodput where there is one limit, else "".
    """

    limit: str
    reason: str
    responses: Mapping[str, Response]
    relief: str = ""

    def that(self, says: str) -> list[str]:
        """The changes that say so."""
        return [name for name, response in self.responses.items() if response.says == says]


def bottleneck(baseline: np.ndarray, changed: Mapping[str, np.ndarray]) -> Bottleneck:
    """Name the limit from aggregate goodputs [bit/s] of shape (repeats,); NaN is a failed repeat.

    `changed` maps keys of CHANGES to the goodputs with that one change; entry i of each belongs to the same
    block as entry i of `baseline`. The limit is the resource of the one change that grows while all others
    that were tried stay. Faster ports explain that another receiver grows too: the receivers' ports are
    the limit then.
    """
    found = Bottleneck(
        UNDECIDED,
        "",
        {name: _response(baseline, changed[name]) for name in CHANGES if name in changed},
    )
    grows, unclear, also = found.that("grows"), found.that("unclear"), ""
    if "port" in grows:
        also = "; with more receivers too: the receivers' ports" if "receiver" in grows else ""
        grows, unclear = ([n for n in names if n != "receiver"] for names in (grows, unclear))
    raised = listed([CHANGES[name] for name in grows])
    if unclear:
        doubtful = listed([CHANGES[name] for name in unclear])
        reason = f"it is not clear what {doubtful} would do: repeat more, or change more"
    elif not grows:
        untried = listed([CHANGES[name] for name in LIMITS if name not in found.responses])
        reason = "nothing raises the goodput: two limits are equal"
        reason += f", or it is what was not tried ({untried})" if untried else ""
    elif len(grows) > 1:
        reason = f"{raised} each raise the goodput: there is not one limit"
    elif grows == ["stream"]:
        reason = "with more streams the goodput grows: a single one does not fill the path"
    elif grows == ["receiver"] and "port" not in found.responses:
        reason = "with more receivers the goodput grows: receivers or their ports; faster ones were not tried"
    else:
        growth = percent(found.responses[grows[0]].ratio - 1)
        reason = f"with {raised} the goodput grows by {growth}{also}"
        return replace(found, limit=LIMITS[grows[0]], reason=reason, relief=grows[0])
    return replace(found, reason=reason)


def _response(baseline: np.ndarray, goodput: np.ndarray) -> Response:
    """The geometric mean of the blocks' ratios with its t interval, and what it says."""
    ratios = np.asarray(goodput, float) / np.asarray(baseline, float)
    ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
    if not len(ratios):
        return Response(np.nan, np.nan, np.nan, "unclear")
    ratio, low, high = map(float, average(ratios, "ratio", CONFIDENCE))
    says = "grows" if low > 1 + LEAST_GROWTH else "stays" if high < 1 + LEAST_GROWTH else "unclear"
    return Response(ratio, low, high, says)


@dataclass(frozen=True)
class Fan:
    """All that follows for one direction at the baseline's path and streams.

    `goodput` [bit/s] is the aggregate over (block, receivers), `limits` are the links' by number of
    receivers. `verdict` names the limit at the baseline's receivers, and `sender_cpu` is the share of one
    processor that the shared node took there, over (block).

    `model` is the segmented model of log2 of a receiver's mean goodput over the receivers, in every block:
    it is level up to the knee and falls by s for each doubling beyond it; s = 1 where the aggregate does not
    grow at all. `knee` is (estimate, low, high) in receivers, a 95 % t interval of its logarithm over the
    blocks, and `growth` what the aggregate gains [1] with a doubling beyond it.
    """

    direction: str
    goodput: xr.DataArray
    limits: Mapping[int, Limits]
    verdict: Bottleneck
    sender_cpu: xr.DataArray
    model: Attempt
    knee: tuple[float, ...] = (np.nan, np.nan, np.nan)
    growth: tuple[float, ...] = (np.nan, np.nan, np.nan)

    @property
    def was_set(self) -> float:
        """From how many flows on the link that all share is the limit by the path's description; 0 where that is unknown."""
        flow, all_flows = (self.limits[count] for count in (min(self.limits), max(self.limits)))
        limit = all_flows.shared * min(self.limits) / flow.own
        return round(limit, 2) if np.isfinite(limit) else 0.0

    @property
    def flows(self) -> str:
        """The flows in words."""
        return f"flows {ENDS[self.direction]}"


@dataclass(frozen=True)
class FanOut:
    """The campaign's dataset and all that follows from it; `baseline` holds the design's levels."""

    dataset: xr.Dataset
    baseline: Mapping[str, Any]
    fans: tuple[Fan, ...]

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return self.fans[0].goodput.sizes["block"]


def analyse(fan_out: xr.Dataset) -> FanOut:
    """Derive the fans; raises FalloffError when there is no fanout trial."""
    sender = settings(fan_out)["sender"]
    points = over_factors(
        fan_out,
        runner="fanout",
        goodput=fan_out.aggregate_goodput,
        sender_cpu=(fan_out.cpu_time.sel(node=sender, drop=True) / fan_out.wall_time),
    ).sortby("receivers")
    planned = design(fan_out)
    path = interconnects(fan_out)[planned["baseline"]["path"]]
    fans = (
        _fan(points.sel(direction=way), planned, path, sender) for way in points.direction.values
    )
    return FanOut(fan_out, planned["baseline"], tuple(fans))


def _fan(points: xr.Dataset, planned: Mapping, path: Mapping, sender: int) -> Fan:
    baseline, direction = planned["baseline"], points.direction.item()
    others = {name: level for name, level in baseline.items() if name != "receivers"}
    goodput = points.goodput.sel(others, drop=True).transpose("block", "receivers")
    receivers = goodput.receivers.values.astype(float)
    changed = {
        change: points.goodput.sel({**baseline, **levels}).values
        for change, levels in planned["changes"].items()
        if all(level in points[name].values for name, level in levels.items())
    }
    each = np.log2(goodput / goodput.receivers).values
    # The model is held against bit/s: near is a part of the goodput, and not of its logarithm.
    model = attempt(segmented.MODEL, receivers, each, lambda _, logarithm: 2**logarithm)
    fitted = {}
    if model.fitted:
        fitted["knee"] = model.fitted.parameter("n0", "ratio")
        slope, low, high = model.fitted.parameter("s", "cost")
        fitted["growth"] = tuple(2 ** (1 - s) - 1 for s in (slope, high, low))
    return Fan(
        direction=direction,
        goodput=goodput,
        limits={int(n): _links_limits(path, sender, int(n), direction) for n in receivers},
        verdict=bottleneck(points.goodput.sel(baseline).values, changed),
        sender_cpu=points.sender_cpu.sel(baseline).dropna("block"),
        model=model,
        **fitted,
    )


def _links_limits(path: Mapping, sender: int, receivers: int, direction: str) -> Limits:
    far = fanout.nodes({"sender": sender, "receivers": receivers})
    forward = [(sender, node) for node in far]
    return limits(path, forward if direction == "forward" else [pair[::-1] for pair in forward])


def findings(study: FanOut) -> Iterator[Finding]:
    """What limits the flows in each direction, and from how many flows on, as data."""
    source = origin("fan_out", study.dataset)
    for fan in study.fans:
        statement = f"What limits flows {ENDS[fan.direction]}, and from how many on"
        if fan.was_set:
            statement += f" (set: the bridge, from {fan.was_set:g} on)"
        further = {"n": fan.model.blocks, "answer": fan.verdict.limit, "reason": fan.model.reason}
        knee, *ends = fan.knee
        yield of_estimate(
            source, statement, "receivers", "1", knee, ends, T_INTERVAL, primary=True, **further
        )


def finding(study: FanOut) -> str:
    """What limits the flows in each direction, and where they stop to gain, in plain English (Markdown)."""
    return paragraphs(
        _what_was_set(study),
        *(_of_fan(study, fan) for fan in study.fans),
        (*_untried(study), without_reading(study.dataset)),
    )


def _what_was_set(study: FanOut) -> Iterator[str]:
    """Whether an emulation's own limit is found."""
    if evidence_of(study.dataset) != "emulated":
        return
    limits = [fan.was_set for fan in study.fans]
    set_here = f"a shared bridge that {limits[0]:g} flows fill" if limits[0] else "all rates"
    if limits[0] and {fan.verdict.limit for fan in study.fans} == {LIMITS["bridge"]}:
        yield f"**The method finds the limit that was set, {set_here}**."
    else:
        yield f"The emulation sets {set_here}."
    yield "This does not say what limited the source."


def _of_fan(study: FanOut, fan: Fan) -> Iterator[str]:
    verdict, blocks = fan.verdict, fan.goodput.sizes["block"]
    flows = f"{study.baseline['receivers']} {fan.flows}"
    if verdict.relief:
        response = verdict.responses[verdict.relief]
        ends = percent_range((response.low - 1, response.high - 1))
        basis = resting_on(study.dataset, blocks, f"90 % interval {ends}")
        yield f"**The {verdict.limit} limits {flows}**: {verdict.reason} ({basis})."
    else:
        basis = resting_on(study.dataset, blocks)
        yield f"**What limits {flows} is undecided** ({basis}): {verdict.reason}."
    stay = [CHANGES[change] for change in verdict.that("stays")]
    is_told = fan is not study.fans[0] and verdict.that("stays") == study.fans[0].verdict.that(
        "stays"
    )
    if stay and not is_told:
        yield f"With {listed(stay)} it grows by less than {percent(LEAST_GROWTH, 0)}."
    if fan.model.follows:
        (knee, low, high), (_, least, most) = fan.knee, fan.growth
        verb = "stops growing" if max(-least, most) < LEAST_GROWTH else "bends"
        interval = "" if np.isnan(low) else f" (95 % t interval {between((low, high), 2)})"
        yield f"The sum of all flows {verb} at {fixed(knee, 2)} flows{interval}."


def _untried(study: FanOut) -> Iterator[str]:
    """The changes that nobody tried, and how busy the processor was whose relief is among them."""
    tried = {change for fan in study.fans for change in fan.verdict.responses}
    untried = [name for change, name in CHANGES.items() if change not in tried]
    if untried:
        yield f"Not tried: {', '.join(untried)}."
    used = [
        f"{percent(float(fan.sender_cpu.mean()), 0)} with {fan.flows}"
        for fan in study.fans
        if fan.sender_cpu.size
    ]
    if "cpu" not in tried and used:
        yield f"Of one processor the shared node used {listed(used)}."


def figures(study: FanOut) -> dict[str, Exhibit]:
    """Aggregate over the flows, and the responses to each change."""
    exhibit = Exhibit(
        "fan_out",
        aggregate_and_changes(study),
        "Goodput of all flows over their number, and below it what one change at a time does",
        Basis(evidence_of(study.dataset), study.blocks, "every run above, 90 % t intervals below"),
        "Above, goodput of all flows over their number for both directions, with the links' limits; below, the ratio of "
        "goodputs after and before each change",
        f"Marks above are single runs, marks below are geometric means. The dotted line below is the least change that counts, {percent(LEAST_GROWTH, 0)}.",
        rests_on=FIGURES["fan_out"],
    )
    return {"fan_out": exhibit}


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
    line = {"color": style.INK, "linewidth": 0.9}
    label = "limit of the flows' own links"
    axes.plot(receivers, links, "--", label=label, **line)
    axes.axhline(shared, linestyle=":", label="limit of the link that all share", **line)
    drawing.runs(axes, fan.direction, receivers, fan.goodput / GBIT, fan.flows)
    axes.set_xticks(receivers)
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel("flows")


def _changes(axes: Axes, study: FanOut) -> None:
    """A row a change, a series a direction."""
    changes = list(dict.fromkeys(change for fan in study.fans for change in fan.verdict.responses))
    axes.axvline(1, color=style.FAINT, linewidth=0.9)
    axes.axvline(1 + LEAST_GROWTH, color=style.INK, linewidth=0.9, linestyle=":")
    for rank, fan in enumerate(study.fans):
        sidestep = 2 * SIDESTEP * (rank - (len(study.fans) - 1) / 2)
        for change, response in fan.verdict.responses.items():
            row = changes.index(change) + sidestep
            ends = response.ratio, response.low, response.high
            drawing.interval_across(axes, style.look(fan.direction), row, *ends, fan.flows)
    drawing.rows(axes, [CHANGES[change] for change in changes])
    axes.set_xlabel("goodput after / before the change [1]")
