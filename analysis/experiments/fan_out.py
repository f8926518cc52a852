"""One node to several over a bridge, and back: how much they get together, and which resource is the limit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.attributes import design, interconnects, settings
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
from analysis.exhibit import Basis, Exhibit
from analysis.findings import T_INTERVAL, Finding, evidence_of, of_estimate, origin, without_reading
from analysis.fitting.adequacy import follows
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.models import segmented
from analysis.statistics.intervals import average
from analysis.wording import (
    between,
    counted,
    fixed,
    listed,
    percent,
    percent_range,
)
from runners import fanout
from runners.record import FalloffError

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {"fan_out": ("fan_out",)}
GBIT = 1e9
ENDS = {"forward": "from one sender", "reverse": "to one receiver"}
HEADROOM = 1.3  # of the axes over the largest goodput
SIDESTEP = 0.12  # of a row, between the directions


@dataclass(frozen=True)
class Fan:
    """All that follows for one direction at the baseline's path and streams.

    `goodput` [bit/s] is the aggregate over (block, receivers), `limits` are the links' by number of
    receivers. `verdict` names the limit at the baseline's receivers, and `sender_cpu` is the share of one
    processor that the shared node took there, over (block).

    `fitted` is the segmented model of log2 of a receiver's mean goodput over the receivers, in every block:
    it is level up to the knee and falls by s for each doubling beyond it; s = 1 where the aggregate does not
    grow at all. `knee` is (estimate, low, high) in receivers, a 95 % t interval of its logarithm over the
    blocks. Where the data do not carry it `fitted` is None, and `refused` says why; where the model does
    not follow its data (`follows`) the knee is not quoted.
    """

    direction: str
    goodput: xr.DataArray
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
        gain, least, most = (2 ** (1 - s) - 1 for s in (self.fitted.estimates["s"], high, low))
        return gain, least, most

    @property
    def flows(self) -> str:
        """The flows in words."""
        return f"flows {ENDS[self.direction]}"


@dataclass(frozen=True)
class FanOut:
    """The campaign's dataset and all that follows from it.

    `baseline` holds the design's levels.
    """

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
    return FanOut(
        dataset=fan_out,
        baseline=planned["baseline"],
        fans=tuple(fans),
    )


def _fan(points: xr.Dataset, planned: Mapping, path: Mapping, sender: int) -> Fan:
    baseline, direction = planned["baseline"], points.direction.item()
    others = {name: level for name, level in baseline.items() if name != "receivers"}
    goodput = points.goodput.sel(others, drop=True).transpose("block", "receivers")
    receivers = goodput.receivers.values.astype(float)
    values = {
        "direction": direction,
        "goodput": goodput,
        "limits": {int(n): _links_limits(path, sender, int(n), direction) for n in receivers},
        "verdict": _verdict(points.goodput, baseline, planned["changes"]),
        "sender_cpu": points.sender_cpu.sel(baseline).dropna("block"),
    }
    each = np.log2(goodput / goodput.receivers).values
    try:
        fitted = fit_blocks(segmented.MODEL, receivers, each)
    except FalloffError as error:
        return Fan(**values, refused=str(error))
    # In bit/s: near is a part of the goodput, and not of its logarithm.
    line, *_ = fitted.band(receivers, "cost", lambda _, logarithm: 2**logarithm)
    is_close = follows(2**each, line, len(segmented.MODEL.parameters))
    knees = fitted.by_block[:, segmented.MODEL.parameters.index("n0")]
    knee, low, high = (float(value) for value in average(knees, "ratio"))
    return Fan(**values, fitted=fitted, knee=(knee, low, high), follows=is_close)


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


def findings(study: FanOut) -> Iterator[Finding]:
    """What limits the flows in each direction, and from how many flows on, as data."""
    source = origin("fan_out", study.dataset)
    for fan in study.fans:
        blocks = 0 if fan.fitted is None else fan.fitted.blocks
        statement = f"One resource limits this many flows {ENDS[fan.direction]}"
        misses = "" if fan.fitted is None or fan.follows else "the model misses its data"
        further = {"n": blocks, "answer": fan.verdict.limit, "reason": fan.refused or misses}
        further["primary"] = True
        knee, *ends = fan.knee
        yield of_estimate(source, statement, "receivers", "1", knee, ends, T_INTERVAL, **further)


def finding(study: FanOut) -> str:
    """What limits the flows in each direction, and where they stop to gain, in plain English (Markdown)."""
    paragraphs = [_of_fan(study, fan) for fan in study.fans]
    paragraphs += [_untried(study), without_reading(study.dataset)]
    if evidence_of(study.dataset) == "emulated":
        paragraphs.append(
            "This emulation sets the rates of bridge and ports. So it tests whether the method finds a known limit. It "
            "does not say what limited the source."
        )
    return "\n\n".join(filter(None, paragraphs))


def _of_fan(study: FanOut, fan: Fan) -> str:
    verdict = fan.verdict
    flows = f"{study.baseline['receivers']} {fan.flows}"
    basis = f"{counted(study.blocks, 'block')}, {evidence_of(study.dataset)} evidence"
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
    return f"The goodput grows by less than {percent(LEAST_GROWTH, 0)} with {listed(stay)}."


def _of_knee(fan: Fan) -> str:
    """From how many flows on the aggregate grows no more, or more slowly."""
    if not fan.follows:
        return ""
    (knee, low, high), (_, least, most) = fan.knee, fan.growth
    verb = "stops growing" if max(-least, most) < LEAST_GROWTH else "bends"
    interval = "" if np.isnan(low) else f" (95 % t interval {between((low, high), 2)})"
    return f"The sum of all flows {verb} at {fixed(knee, 2)} flows{interval}."


def _untried(study: FanOut) -> str:
    """The changes that nobody tried, and how busy the processor was whose relief is among them."""
    tried = {change for fan in study.fans for change in fan.verdict.responses}
    untried = [name for change, name in CHANGES.items() if change not in tried]
    if not untried:
        return ""
    names = f"Not tried: {', '.join(untried)}."
    used = [
        f"{percent(float(fan.sender_cpu.mean()), 0)} of one processor with {fan.flows}"
        for fan in study.fans
        if fan.sender_cpu.size
    ]
    return names if "cpu" in tried or not used else f"{names} The shared node used {listed(used)}."


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
    look, values = style.look(fan.direction), fan.goodput.values / GBIT
    every = np.broadcast_to(receivers, values.shape).ravel()
    marks = {"color": look.color, "alpha": 0.6, "mew": 0, "label": fan.flows}
    axes.plot(every, values.ravel(), look.marker, **marks)
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
