"""HPL on a twin: the campaign that simulates what was held out and what if, and how far the simulation is off."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import attributes, derive, drawing, style
from analysis.statistics.intervals import average, mean_over
from analysis.twin import Twin, what_ifs
from analysis.wording import counted, estimate, fixed, number, percent
from runners.description import problem
from runners.record import FalloffError

MARGIN = 0.03  # of a held-out rate, decided before the simulation
WITHIN, BEYOND, OPEN = "within", "beyond", "open"
# The model as fitted, and with every number at the end that is worse or better for HPL.
FITTED, WORSE, BETTER = (
    "none",
    "bandwidth=low,latency=high,dgemm_flop_s=low",
    "bandwidth=high,latency=low,dgemm_flop_s=high",
)
HELD_OUT, WHAT_IF = "twin_held_out", "twin_what_if"  # campaigns
_BYTES = 8  # of a matrix element


@dataclass(frozen=True)
class Rate:
    """HPL's rate [Gflop/s] on a network and so many nodes as simulated, and at the worse and better ends of the ranges."""

    network: str
    words: str
    nodes: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class HeldOut:
    """A point that was run and not read by the fit: its mean rate [Gflop/s] over blocks, and the `error` of the twin's [1].

    `low` and `high` are the error's 95 % t interval over the blocks, NaN from one; the `answer` compares it with MARGIN.
    """

    predicted: Rate
    measured: float
    blocks: int
    error: float
    low: float
    high: float

    @property
    def answer(self) -> str:
        """Whether the error is within the margin, beyond it, or neither can be said."""
        if -MARGIN < self.low and self.high < MARGIN:
            return WITHIN
        if self.low > MARGIN or self.high < -MARGIN:
            return BEYOND
        return OPEN


@dataclass(frozen=True)
class Prediction:
    """The held-out points, and HPL's rates on the networks of `twin.what_ifs`, on the most nodes held out and twice as many."""

    twin: Twin
    held_out: tuple[HeldOut, ...]
    what_if: tuple[Rate, ...]


def held_out_points(datasets: Sequence[xr.Dataset], twin: Twin) -> xr.Dataset:
    """HPL's points on several nodes and a fitted network; raises FalloffError where there are none, or more is varied."""
    for dataset in datasets:
        if not ((dataset.runner == "hpl") & (dataset.role == "point") & (dataset.nodes > 1)).any():
            continue
        varied = sorted(set(attributes.factors(dataset)) ^ {"interconnect", "nodes"})
        if varied:
            raise FalloffError(
                f"campaign {dataset.attrs['campaign']} cannot be held out: it should vary interconnect and nodes alone, as "
                f"hpl_scaling does (differs: {', '.join(varied)})"
            )
        points = derive.points(dataset)
        known = [name for name in points.interconnect.values.tolist() if name in twin.links]
        several = [nodes for nodes in points.nodes.values.tolist() if nodes > 1]
        if known:
            return points.sel(interconnect=known, nodes=several)
    raise FalloffError(
        "no campaign has HPL on several nodes of a fitted network: add `hpl_scaling`, or give --fit-only"
    )


def campaigns(twin: Twin, points: xr.Dataset, defaults: Mapping[str, Any]) -> Iterator[dict]:
    """The campaigns to simulate: the held-out points, then the what-ifs. `defaults` are HPL's settings where the run
    recorded none."""
    settings = {**defaults, **attributes.settings(points)}
    settings = {key: value for key, value in settings.items() if key in defaults}
    shape = points[["N", "P", "Q", "NB"]].max(["block", "interconnect"])
    levels = {
        str(nodes): {name: int(shape[name].sel(nodes=nodes)) for name in ("N", "P", "Q")}
        for nodes in points.nodes.values.tolist()
    }
    most, block = int(points.nodes.max()), int(shape.NB.max())
    of_node = _BYTES * levels[str(most)]["N"] ** 2 / most
    twice = {str(most): levels[str(most)], str(2 * most): problem(2 * most, 1, of_node, block)}
    networks = points.interconnect.values.tolist()
    yield _campaign(HELD_OUT, networks, levels, {**settings, "NB": block})
    others = [other for name in networks for other in what_ifs(twin.links[name], name, name, most)]
    yield _campaign(WHAT_IF, [*networks, *others], twice, {**settings, "NB": block})


def _campaign(name: str, networks: list[str], levels: Mapping, settings: Mapping) -> dict:
    return {
        "name": name,
        "title": "HPL on a calibrated twin",
        "runner": "hpl",
        "seed": 20261123,
        "factors": {
            "interconnect": networks,
            "nodes": [int(nodes) for nodes in levels],
            "vary": [FITTED, WORSE, BETTER],
        },
        "levels": {"nodes": dict(levels)},
        "settings": dict(settings),
        "design": {},
        "stopping": {"blocks": 1},
    }


def predict(
    twin: Twin, points: xr.Dataset, held_out: xr.Dataset, what_if: xr.Dataset
) -> Prediction:
    """Compare the simulated campaigns with the points held out; raises FalloffError where a simulation failed."""
    found = []
    for rate in _rates(held_out):
        ran = points.rate.sel(interconnect=rate.network, nodes=rate.nodes).values
        ran = ran[np.isfinite(ran)]
        if len(ran):
            mean = float(
                mean_over(
                    points.rate.sel(interconnect=rate.network, nodes=rate.nodes), "block", "rate"
                )
            )
            _, low, high = map(float, average(rate.rate / ran, "ratio"))
            found.append(HeldOut(rate, mean, len(ran), rate.rate / mean - 1, low - 1, high - 1))
    return Prediction(twin, tuple(found), tuple(_rates(what_if)))


def _rates(dataset: xr.Dataset) -> Iterator[Rate]:
    points, names = derive.points(dataset).squeeze("block"), attributes.short_names(dataset)
    for network in points.interconnect.values.tolist():
        for nodes in points.nodes.values.tolist():
            at = points.sel(interconnect=network, nodes=nodes)
            rates = [float(at.rate.sel(vary=vary)) for vary in (FITTED, WORSE, BETTER)]
            if not all(map(math.isfinite, rates)):
                reason = next(filter(None, at.reason.values.tolist()), "no result")
                raise FalloffError(f"HPL on {nodes} nodes of {network} was not simulated: {reason}")
            # More bandwidth may let messages meet that did not: an end is not always the worse one.
            yield Rate(network, names[network], nodes, rates[0], min(rates), max(rates))


def text(found: Prediction) -> str:
    """The prediction for a terminal: the answer, every held-out point, every what-if."""
    lines = [finding(found).replace("**", ""), ""]
    rows = [("network", "nodes", "measured", "blocks", "predicted (range)", "error (95 %)", "")]
    for point in found.held_out:
        rate = point.predicted
        error = estimate(
            100 * point.error, 100 * point.low, 100 * point.high, lambda v: fixed(v, 1)
        )
        cells = (
            number(point.measured),
            str(point.blocks),
            estimate(rate.rate, rate.low, rate.high),
        )
        rows.append((rate.words, str(rate.nodes), *cells, f"{error} %", point.answer))
    lines += ["HPL on several nodes, held out [Gflop/s]", *_aligned(rows), ""]
    base = {(rate.network, rate.nodes): rate.rate for rate in found.what_if}
    rows = [("what if", "nodes", "Gflop/s (range)", "against the network as it is")]
    for rate in found.what_if:
        fitted = max((name for name in found.twin.links if rate.network.startswith(name)), key=len)
        gain = (
            "" if rate.network == fitted else f"{_signed(rate.rate / base[fitted, rate.nodes] - 1)}"
        )
        rows.append((rate.words, str(rate.nodes), estimate(rate.rate, rate.low, rate.high), gain))
    lines += ["What if (range: every fitted number at its worse or better end)", *_aligned(rows)]
    return "\n".join(lines).replace("\u00a0", " ")


def _signed(change: float) -> str:
    return f"{'+' if change > 0 else ''}{percent(change)}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
        for row in rows
    ]


def finding(found: Prediction) -> str:
    """How well the twin predicts what was held out (Markdown)."""
    if not found.held_out:
        return "**Whether the twin predicts HPL cannot be said**: no point was held out."
    answers = [point.answer for point in found.held_out]
    worst = max(found.held_out, key=lambda point: abs(point.error))
    at = f"{worst.predicted.words}, {counted(worst.predicted.nodes, 'node')}"
    within = f"{answers.count(WITHIN)} of {counted(len(answers), 'held-out point')}"
    still_open = f", {answers.count(OPEN)} are open" if OPEN in answers else ""
    return (
        f"**The twin predicts HPL within {percent(MARGIN, 0)} at {within}**{still_open}. Its largest error is "
        f"{_signed(worst.error)} ({at}; {counted(worst.blocks, 'block')}, {found.twin.evidence} evidence)."
    )


def draw(found: Prediction) -> Figure:
    """HPL's rate a node [Gflop/s] over nodes, a panel a network: measured, predicted with its range, and what if."""
    networks = [
        name
        for name in found.twin.links
        if any(p.predicted.network == name for p in found.held_out)
    ]
    looks = [style.look(name) for name in ("gige", "10gige", "unshaped", "infiniband")]
    with style.styled():
        figure, panels = drawing.new_figures(3.6, len(networks))
        for axes, network in zip(panels, networks):
            points = [point for point in found.held_out if point.predicted.network == network]
            nodes = np.array([point.predicted.nodes for point in points])
            axes.plot(
                nodes,
                [p.measured / p.predicted.nodes for p in points],
                "x",
                color=style.INK,
                label="measured, held out",
            )
            _simulated(axes, looks[0], [point.predicted for point in points], "twin", 1.0)
            others = [rate for rate in found.what_if if rate.network.startswith(network)]
            names = dict.fromkeys(rate.network for rate in others)
            for rank, name in enumerate(names):
                rates = [rate for rate in others if rate.network == name]
                label = "twin" if name == network else rates[0].words.partition(", ")[2]
                _simulated(axes, looks[rank % len(looks)], rates, label, 1 + 0.04 * rank)
            every = sorted({*nodes.tolist(), *(rate.nodes for rate in others)})
            drawing.node_axis(axes, drawing.apart(every, 1.9))
            axes.set_title(points[0].predicted.words)
        panels[0].set_ylabel("HPL's rate a node [Gflop/s]")
        drawing.legend_below(figure, panels, 2)
        return figure


def _simulated(axes, look: style.Look, rates: Sequence[Rate], label: str, aside: float) -> None:
    nodes = np.array([rate.nodes for rate in rates])
    value, low, high = (
        np.array([getattr(rate, end) for rate in rates]) / nodes for end in ("rate", "low", "high")
    )
    axes.errorbar(
        nodes * aside, value, [value - low, high - value], fmt=look.marker, color=look.color,
        mfc="white", capsize=3, linestyle="none", label=label,
    )  # fmt: skip
