"""One node sends to several over a bridge, or receives from them: their total goodput, and the
resource that limits it.

The model is goodput = min(capacity of each resource). Relieving one resource raises the goodput if
and only if that resource alone is the limit; with two equal limits no single relief does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, exhibit, style
from analysis.attributes import design, interconnects, settings
from analysis.capacity import Limits, limits
from analysis.derive import over_factors
from analysis.fitting.block_fit import Attempt, attempt
from analysis.models import segmented
from analysis.statements import (
    Statement,
    estimated,
    evidence_of,
    interval_in_words,
    origin,
    resting_on,
    without_reading,
)
from analysis.statistics.intervals import average
from analysis.statistics.judgement import UNDECIDED
from analysis.wording import fixed, listed, paragraphs, percent
from runners.tools import fanout

# The campaigns and files of data/ behind each figure.
FIGURES = {"fan_out": ("fan_out",)}
GBIT = 1e9
ENDS = {"forward": "from one sender", "reverse": "to one receiver"}
HEADROOM = 1.3  # height of the axes over the largest goodput
SIDESTEP = 0.12  # fraction of a row between the directions
# Changes to the same baseline, one at a time, and the resource that each relieves.
CHANGES = {
    "receiver": "more nodes",
    "stream": "more streams in each flow",
    "port": "faster ports of the nodes",
    "bridge": "a faster bridge",
}
LIMITS = {
    "receiver": "receiver",
    "stream": "single stream",
    "port": "link",
    "bridge": "shared bridge",
}
# The least growth that counts. A change should promise at least twice as much, or it cannot be told from
# no growth: one more receiver beside seven promises 1/7, four more promise 4/7.
LEAST_GROWTH = 0.10
CONFIDENCE = 0.90  # each end of the interval is a one-sided test at 5 %


@dataclass(frozen=True)
class Response:
    """The effect of a change on the goodput: the ratio to the baseline with its 90 % interval, and
    `says`.

    `says` is `grows` (the interval lies above 1 + LEAST_GROWTH), `stays` (below it) or `unclear`.
    """

    ratio: float
    low: float
    high: float
    says: str


@dataclass(frozen=True)
class Bottleneck:
    """Each change's response, by key of CHANGES, and the changes that decide what the limit is."""

    responses: Mapping[str, Response]

    def that(self, says: str) -> list[str]:
        """The changes with this response. If faster ports help, more receivers prove nothing,
        because their ports are the limit."""
        ports_help = "port" in self.responses and self.responses["port"].says == "grows"
        return [
            name
            for name, response in self.responses.items()
            if response.says == says and not (ports_help and name == "receiver")
        ]

    @property
    def relief(self) -> str:
        """The one change that raises the goodput while all others tried do not; "" if there is
        none."""
        grows = self.that("grows")
        return grows[0] if len(grows) == 1 and not self.that("unclear") else ""

    @property
    def limit(self) -> str:
        """The limiting resource, a value of LIMITS, or UNDECIDED."""
        return LIMITS.get(self.relief, UNDECIDED)

    @property
    def reason(self) -> str:
        """The reason, in a sentence."""
        grows, unclear = (
            [CHANGES[name] for name in self.that(says)] for says in ("grows", "unclear")
        )
        if unclear:
            return f"it is not clear what {listed(unclear)} would do: repeat more, or change more"
        if not grows:
            return (
                "nothing that was tried raises the goodput: two limits are equal, or it is another"
            )
        if len(grows) > 1:
            return f"{listed(grows)} each raise the goodput: there is not one limit"
        return (
            f"with {grows[0]} the goodput grows by {percent(self.responses[self.relief].ratio - 1)}"
        )


def bottleneck(baseline: np.ndarray, changed: Mapping[str, np.ndarray]) -> Bottleneck:
    """Judge changes by aggregate goodputs [bit/s] of shape (repeats,); NaN is a failed repeat.

    `changed` maps keys of CHANGES to the goodputs with that one change; entry i of each belongs to the same
    block as entry i of `baseline`.
    """
    responses = {name: _response(baseline, changed[name]) for name in CHANGES if name in changed}
    return Bottleneck(responses)


def _response(baseline: np.ndarray, goodput: np.ndarray) -> Response:
    """The geometric mean of the blocks' ratios with its t interval, and the response."""
    ratios = np.asarray(goodput, float) / np.asarray(baseline, float)
    ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
    if not len(ratios):
        return Response(np.nan, np.nan, np.nan, "unclear")
    ratio, low, high = map(float, average(ratios, "ratio", CONFIDENCE))
    says = "grows" if low > 1 + LEAST_GROWTH else "stays" if high < 1 + LEAST_GROWTH else "unclear"
    return Response(ratio, low, high, says)


@dataclass(frozen=True)
class Fan:
    """All results for one direction at the baseline's path and streams.

    `goodput` [bit/s] is the aggregate over (block, receivers); `limits` are the links' limits by
    number of receivers. `verdict` names the limit at the baseline's receivers.

    `model` is the segmented model of log2 of a receiver's mean goodput over the receivers, in every
    block: it is level up to the knee and falls by s for each doubling beyond it; s = 1 if the
    aggregate does not grow at all. `knee` is (estimate, low, high) in receivers, a 95 % t interval
    of its logarithm over the blocks. `growth` is the gain of the aggregate [1] for each doubling
    beyond the knee.
    """

    direction: str
    goodput: xr.DataArray
    limits: Mapping[int, Limits]
    verdict: Bottleneck
    model: Attempt
    knee: tuple[float, ...] = (np.nan, np.nan, np.nan)
    growth: tuple[float, ...] = (np.nan, np.nan, np.nan)

    @property
    def was_set(self) -> float:
        """The number of flows from which on the shared link is the limit, by the path's
        description; 0 if unknown."""
        flow, all_flows = (self.limits[count] for count in (min(self.limits), max(self.limits)))
        limit = all_flows.shared * min(self.limits) / flow.own
        return round(limit, 2) if np.isfinite(limit) else 0.0

    @property
    def flows(self) -> str:
        """The flows in words."""
        return f"flows {ENDS[self.direction]}"


@dataclass(frozen=True)
class FanOut:
    """The campaign's dataset and all results; `baseline` holds the design's levels."""

    dataset: xr.Dataset
    baseline: Mapping[str, Any]
    fans: tuple[Fan, ...]


def analyse(fan_out: xr.Dataset) -> FanOut:
    """Derive the fans; raises FalloffError if there is no fanout trial."""
    points = over_factors(fan_out, runner="fanout", goodput=fan_out.aggregate_goodput)
    points, planned = points.goodput.sortby("receivers"), design(fan_out)
    path = interconnects(fan_out)[planned["baseline"]["path"]]
    sender = settings(fan_out)["sender"]
    fans = (
        _fan(points.sel(direction=way), planned, path, sender) for way in points.direction.values
    )
    return FanOut(fan_out, planned["baseline"], tuple(fans))


def _fan(points: xr.DataArray, planned: Mapping, path: Mapping, sender: int) -> Fan:
    baseline, direction = planned["baseline"], points.direction.item()
    others = {name: level for name, level in baseline.items() if name != "receivers"}
    goodput = points.sel(others, drop=True).transpose("block", "receivers")
    receivers = goodput.receivers.values.astype(float)
    changed = {
        change: points.sel({**baseline, **levels}).values
        for change, levels in planned["changes"].items()
        if all(level in points[name].values for name, level in levels.items())
    }
    each = np.log2(goodput / goodput.receivers).values
    # The model is compared in bit/s: closeness is relative to the goodput, not to its logarithm.
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
        verdict=bottleneck(points.sel(baseline).values, changed),
        model=model,
        **fitted,
    )


def _links_limits(path: Mapping, sender: int, receivers: int, direction: str) -> Limits:
    far = fanout.nodes({"sender": sender, "receivers": receivers})
    forward = [(sender, node) for node in far]
    return limits(path, forward if direction == "forward" else [pair[::-1] for pair in forward])


def findings(study: FanOut) -> Iterator[Statement]:
    """The limit of the flows in each direction, and the number of flows from which on it applies,
    as data."""
    source = origin(study.dataset)
    for fan in study.fans:
        statement = f"Limit of {fan.flows}, and from how many on"
        if fan.was_set:
            statement += f" (set: the bridge, from {fan.was_set:g} on)"
        about = {
            "words": "yes" if fan.model.blocks else "undecided",
            "reason": fan.model.reason,
            "primary": True,
        }
        yield estimated(source, statement, "receivers", fan.knee, fan.model.blocks, **about)


def finding(study: FanOut) -> str:
    """The limit of the flows in each direction, and where they stop gaining, in plain English
    (Markdown)."""
    parts = [_of_fan(study, fan) for fan in study.fans]
    return paragraphs([_what_was_set(study)], *parts, [without_reading(study.dataset)])


def _what_was_set(study: FanOut) -> str:
    """Whether the study finds the limit that the emulation set."""
    flows, found = study.fans[0].was_set, {fan.verdict.limit for fan in study.fans}
    if evidence_of(study.dataset) != "emulated" or not flows:
        return ""
    limit, head = f"a shared bridge that {flows:g} flows fill", "The emulation sets {}."
    if found == {LIMITS["bridge"]}:
        head = "**The method finds the limit that was set, {}**."
    return f"{head.format(limit)} This does not say what limited the source."


def _of_fan(study: FanOut, fan: Fan) -> Iterator[str]:
    verdict, blocks = fan.verdict, fan.goodput.sizes["block"]
    flows = f"{study.baseline['receivers']} {fan.flows}"
    if verdict.relief:
        response = verdict.responses[verdict.relief]
        interval = interval_in_words((response.low - 1, response.high - 1), level=CONFIDENCE)
        basis = resting_on(study.dataset, blocks, interval)
        yield f"**The {verdict.limit} limits {flows}**: {verdict.reason} ({basis})."
    else:
        basis = resting_on(study.dataset, blocks)
        yield f"**What limits {flows} is undecided** ({basis}): {verdict.reason}."
    if stay := [CHANGES[change] for change in verdict.that("stays")]:
        yield f"With {listed(stay)} it grows by less than {percent(LEAST_GROWTH, 0)}."
    if fan.model.follows:
        (knee, *ends), (_, least, most) = fan.knee, fan.growth
        verb = "stops growing" if max(-least, most) < LEAST_GROWTH else "bends"
        interval = interval_in_words(ends, 2)
        within = f" ({interval})" if interval else ""
        yield f"The sum of all flows {verb} at {fixed(knee, 2)} flows{within}."


def figures(study: FanOut) -> dict[str, exhibit.Exhibit]:
    """Above: the goodput of all flows [Gbit/s] over their number, one panel per direction. Below:
    the ratios [1] of the changes."""
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
    return exhibit.only(
        FIGURES,
        figure,
        "Goodput of all flows over their number, and below it what one change at a time does",
        exhibit.Basis.of_dataset(study.dataset, "every run above, 90 % t intervals below"),
        "Above, goodput of all flows over their number for both directions, with the links' limits; below, the ratio of "
        "goodputs after and before each change",
        f"Marks above are single runs, marks below are geometric means. The dotted line below is the least change that counts, {percent(LEAST_GROWTH, 0)}.",
    )


def _aggregate(axes: Axes, fan: Fan) -> None:
    receivers = fan.goodput.receivers.values
    links = [fan.limits[int(n)].own / GBIT for n in receivers]
    shared = fan.limits[int(receivers.max())].shared / GBIT
    line = {"color": style.INK, "linewidth": 0.9}
    label = "the nodes' ports"
    axes.plot(receivers, links, "--", label=label, **line)
    axes.axhline(shared, linestyle=":", label="the bridge's rate", **line)
    drawing.runs(axes, fan.direction, receivers, fan.goodput / GBIT, fan.flows)
    axes.set_xticks(receivers)
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel("flows")


def _changes(axes: Axes, study: FanOut) -> None:
    """One row per change, one series per direction."""
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
