"""One node sends to several over a bridge, or receives from them: their total goodput, and the
resource that limits it.

The model is goodput = min(capacity of each resource). Relieving one resource raises the goodput if
and only if that resource alone is the limit; with two equal limits no single relief does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
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
    unless_across,
)
from analysis.statistics.intervals import average
from analysis.statistics.judgement import UNDECIDED
from analysis.wording import fixed, listed, percent
from runners.tools import fanout

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


def goodput(dataset: xr.Dataset) -> xr.DataArray:
    """The goodput of all flows together [bit/s] over (block, *factors); raises FalloffError if there is no fanout trial."""
    points = over_factors(dataset, runner="fanout", goodput=dataset.aggregate_goodput)
    return points.goodput.sortby("receivers")


def at_baseline(dataset: xr.Dataset, goodput: xr.DataArray) -> xr.DataArray:
    """The goodput at the design's baseline [bit/s] over (block, direction, receivers), which are the flows."""
    baseline = design(dataset)["baseline"]
    others = {name: level for name, level in baseline.items() if name != "receivers"}
    return goodput.sel(others, drop=True).transpose("block", "direction", "receivers")


def fans(dataset: xr.Dataset, goodput: xr.DataArray) -> list[Fan]:
    """The fan of each direction; `goodput` is from `goodput`."""
    path = interconnects(dataset)[design(dataset)["baseline"]["path"]]
    sender, level = settings(dataset)["sender"], at_baseline(dataset, goodput)
    return [
        _fan(goodput.sel(direction=way), level.sel(direction=way), design(dataset), path, sender)
        for way in goodput.direction.values.tolist()
    ]


def _fan(
    points: xr.DataArray, goodput: xr.DataArray, planned: Mapping, path: Mapping, sender: int
) -> Fan:
    """The fan of one direction, from all of its points and from those at the baseline, over (block, receivers)."""
    baseline, direction = planned["baseline"], points.direction.item()
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


def limited_by_the_bridge(dataset: xr.Dataset, fans: Sequence[Fan]) -> Iterator[Statement]:
    """Does the bridge limit the flows in each direction, and from how many on? Yes if its relief alone raises the goodput."""
    answers = {LIMITS["bridge"]: "yes", UNDECIDED: UNDECIDED}
    for fan in fans:
        subject = f"The bridge limits {fan.flows}, from this many on"
        if fan.was_set:
            subject += f" (set: {fan.was_set:g})"
        words = answers.get(fan.verdict.limit, "no")
        if words == "yes":
            words = unless_across(words, fan.knee[1:], min(fan.limits), max(fan.limits))
        about = {"words": words, "primary": True}
        about["reason"] = fan.model.reason or fan.verdict.reason
        yield estimated(origin(dataset), subject, "receivers", fan.knee, fan.model.blocks, **about)


def what_was_set(dataset: xr.Dataset, fans: Sequence[Fan]) -> str:
    """The limit that the emulation sets, in a sentence; empty for other evidence."""
    if evidence_of(dataset) != "emulated" or not fans[0].was_set:
        return ""
    return f"The emulation sets a shared bridge that {fans[0].was_set:g} flows fill. This does not say what limited the source."


def in_words(dataset: xr.Dataset, fan: Fan) -> str:
    """The limit of the flows in one direction, what each change does, and where their sum stops growing, in sentences
    (Markdown)."""
    verdict, sentences = fan.verdict, []
    flows = f"{design(dataset)['baseline']['receivers']} {fan.flows}"
    if verdict.relief:
        response = verdict.responses[verdict.relief]
        ends = (response.low - 1, response.high - 1)
        interval = interval_in_words(ends, level=CONFIDENCE)
        sentences.append(f"**The {verdict.limit} limits {flows}**: {verdict.reason} ({interval}).")
    else:
        sentences.append(f"**What limits {flows} is undecided**: {verdict.reason}.")
    if stay := [CHANGES[change] for change in verdict.that("stays")]:
        sentences.append(f"With {listed(stay)} it grows by less than {percent(LEAST_GROWTH, 0)}.")
    if fan.model.follows:
        _, least, most = fan.growth
        verb = "stops growing" if max(-least, most) < LEAST_GROWTH else "bends"
        sentences.append(f"The sum of all flows {verb} at {fixed(fan.knee[0], 2)} flows.")
    return " ".join(sentences)


def fans_figure(fans: Sequence[Fan]) -> Figure:
    """Above: the goodput of all flows [Gbit/s] over their number, a panel for each direction, with the links' limits. Below:
    the ratio [1] of each change with its 90 % t interval."""
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 5.2))
        above, below = figure.subfigures(2, 1, height_ratios=(1.5, 1))
        panels = above.subplots(1, len(fans), squeeze=False, sharey=True)[0]
        for axes, fan in zip(panels, fans):
            _aggregate(axes, fan)
        most = max(np.nan_to_num(fan.goodput).max() for fan in fans)
        if most:
            panels[0].set_ylim(0, HEADROOM * most / GBIT)
        panels[0].set_ylabel("goodput of all flows [Gbit/s]")
        drawing.legend_below(above, panels, 2)
        _changes(below.subplots(), fans)
    return figure


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


def _changes(axes: Axes, fans: Sequence[Fan]) -> None:
    """One row per change, one series per direction."""
    changes = list(dict.fromkeys(change for fan in fans for change in fan.verdict.responses))
    axes.axvline(1, color=style.FAINT, linewidth=0.9)
    axes.axvline(1 + LEAST_GROWTH, color=style.INK, linewidth=0.9, linestyle=":")
    for rank, fan in enumerate(fans):
        sidestep = 2 * SIDESTEP * (rank - (len(fans) - 1) / 2)
        for change, response in fan.verdict.responses.items():
            row = changes.index(change) + sidestep
            ends = response.ratio, response.low, response.high
            drawing.interval_across(axes, style.look(fan.direction), row, *ends, fan.flows)
    drawing.rows(axes, [CHANGES[change] for change in changes])
    axes.set_xlabel("goodput after / before the change [1]")
