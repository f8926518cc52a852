"""Whether a simulation that was fitted to a cluster's micro-benchmarks predicts its HPL, and what other networks would do."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import attributes, derive, drawing, exhibit, paths, store, style
from analysis.descriptions.adaptation import problem
from analysis.descriptions.campaigns import Campaign, checked
from analysis.evidence import verify
from analysis.quoting import quoted
from analysis.statements import T_INTERVAL, YES, Statement, range_answer, value
from analysis.statistics.intervals import average, mean_over
from analysis.statistics.judgement import UNDECIDED
from analysis.store import IMPORTED, UNORDERED
from analysis.subjects import hpl_points
from analysis.subjects.twin import HplJob, Twin, what_ifs
from analysis.wording import UNKNOWN, counted, estimate, fixed, number, percent
from runners.record import FalloffError

# What `falloff twin` simulates: points that were run, and networks that are not there.
HELD_OUT, WHAT_IF = "twin_held_out", "twin_what_if"
_OF_EXAMPLE = ("twin_tokens", "twin_load", "suspects", "twin_hpl")
MARGIN = 0.03  # of a held-out rate, decided before the simulation
# The model as fitted, and with every number at the end that is worse or better for HPL.
VARIED = (
    "none",
    "bandwidth=low,latency=high,dgemm_flop_s=low",
    "bandwidth=high,latency=low,dgemm_flop_s=high",
)
_BYTES = 8  # of a matrix element
_WHAT_IF = (
    quoted(",") + " "
)  # between a network's name and what differs from it, as `twin.what_ifs` writes them


@dataclass(frozen=True)
class Rate:
    """HPL's simulated rate [Gflop/s] on a network and a number of nodes, with the rates at the worse and better ends
    of the ranges.

    `fitted` is the twin's network that it is, or a change of.
    """

    network: str
    fitted: str
    words: str
    nodes: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class HeldOut:
    """A measured point that the fit did not read: its mean rate [Gflop/s] over blocks, and the `error` of the twin's
    rate [1].

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
        """Whether the error is within the margin."""
        return range_answer((self.low, self.high), -MARGIN, MARGIN)


@dataclass(frozen=True)
class Study:
    """The dataset of the simulated points that were held out, these points, and HPL's rates on the networks of
    `twin.what_ifs`. Repeats of a point are of this `unit`, block or run."""

    dataset: xr.Dataset
    twin: Twin
    held_out: tuple[HeldOut, ...]
    what_if: tuple[Rate, ...]
    unit: str = "block"

    def gain(self, rate: Rate) -> float:
        """What a change of a network gains [1] on the same nodes."""
        return rate.rate / self._as_is(rate).rate - 1

    def gain_range(self, rate: Rate) -> tuple[float, float, float]:
        """The gain [1] as fitted, and the least and most of it with both networks at the ends of their ranges."""
        before = self._as_is(rate)
        every = [rate.rate / before.rate, rate.low / before.low, rate.high / before.high]
        return every[0] - 1, min(every) - 1, max(every) - 1

    def _as_is(self, rate: Rate) -> Rate:
        (before,) = (
            other
            for other in self.what_if
            if (other.network, other.nodes) == (rate.fitted, rate.nodes)
        )
        return before


def datasets(data: str) -> tuple[list[xr.Dataset], xr.Dataset, xr.Dataset]:
    """The datasets that a twin was fitted to, its simulation of the points that were run, and that of other networks.

    All are read from the folder `data`, or from the shipped example if it is empty. Of several simulations the latest counts.

    Raises FalloffError if the folder holds no twin's simulations.
    """
    if not data:
        stored = {
            file.parent.name.split("-")[0]: file.parent
            for file in paths.REFERENCE.glob("*/trials.json")
        }
        held_out, what_if = (store.read(stored[name]) for name in (HELD_OUT, WHAT_IF))
        return [store.read(stored[name]) for name in _OF_EXAMPLE], held_out, what_if
    folder = Path(data) if Path(data).exists() else paths.ROOT / data
    simulated: dict[str, list[xr.Dataset]] = {name: [] for name in (HELD_OUT, WHAT_IF)}
    for dataset in map(store.read, verify.folders([folder])):
        simulated.get(dataset.attrs["campaign"], []).append(dataset)
    if not all(simulated.values()):
        remedy = f"`falloff twin {folder} --name NAME --out {folder}` makes them"
        raise FalloffError(f"{folder} holds no simulations of a twin: {remedy}")
    held_out, what_if = (
        max(runs, key=lambda run: run.attrs["started"]) for runs in simulated.values()
    )
    measured = [store.read(Path(name)) for name in verify.measured_folders(str(folder))]
    return measured, held_out, what_if


def held_out_points(datasets: Sequence[xr.Dataset], twin: Twin) -> xr.Dataset:
    """HPL's points on several nodes and a fitted network; raises FalloffError where there are none, or more is varied."""
    for dataset in datasets:
        if attributes.testbed(dataset).get("kind") == IMPORTED:
            points = _imported(dataset)
            fitted = (
                []
                if points is None
                else [name for name in points.interconnect.values.tolist() if name in twin.links]
            )
            if fitted:
                return points.sel(interconnect=fitted, nodes=points.nodes > 1)
            continue
        if not ((dataset.runner == "hpl") & (dataset.role == "point") & (dataset.nodes > 1)).any():
            continue
        varied = sorted(set(attributes.factors(dataset)) ^ {"interconnect", "nodes"})
        if varied:
            raise FalloffError(
                f"campaign {dataset.attrs['campaign']} cannot be held out: it should vary interconnect and nodes alone, as "
                f"hpl_scaling does (differs: {', '.join(varied)})"
            )
        points = derive.points(dataset)
        fitted = [name for name in points.interconnect.values.tolist() if name in twin.links]
        if fitted:
            return points.sel(interconnect=fitted, nodes=points.nodes > 1)
    raise FalloffError(
        "no campaign has HPL on several nodes of a fitted network: add `hpl_scaling`, or give --fit-only"
    )


def _imported(dataset: xr.Dataset) -> xr.Dataset | None:
    """Imported HPL points over (block, interconnect, nodes) with `ranks_per_node`, those of one grid at each number of nodes; None
    if the numbers of nodes are not known."""
    try:
        points = hpl_points.results(dataset).points
    except FalloffError:
        return None
    if points.nodes.attrs["long_name"] != "nodes":
        return None
    ranks = points.P * points.Q / points.nodes
    whole = (ranks % 1 == 0) | ranks.isnull()
    if not whole.all():
        odd = points.where(~whole).to_dataframe().dropna(subset="P").reset_index().iloc[0]
        raise FalloffError(
            f"HPL ran on {odd.P:g} x {odd.Q:g} processes and {odd.nodes:g} nodes: of such a job the twin cannot place the "
            "processes. Import without it, or say `--set nodes=N`"
        )
    return points.assign(ranks_per_node=ranks)


def job(points: xr.Dataset) -> HplJob:
    """How HPL ran on the most nodes of the held-out points."""
    most = points.isel(nodes=-1).max(["block", "interconnect"])
    of_node = _BYTES * float(most.N) ** 2 / int(most.nodes)
    return HplJob(int(points.ranks_per_node.max()), of_node, int(points.NB.max()))


def campaigns(twin: Twin, points: xr.Dataset, defaults: Mapping[str, Any]) -> Iterator[Campaign]:
    """The campaigns to simulate: the held-out points, then the what-ifs. `defaults` are HPL's settings where the run
    recorded none."""
    shape = points[["N", "P", "Q", "NB"]].max(["block", "interconnect"])
    per_node = (points.P * points.Q / points.nodes).max(["block", "interconnect"])
    ran, block = _settings(points), int(shape.NB.max())
    settings = {key: ran.get(key, value) for key, value in defaults.items()} | {"NB": block}
    levels = {
        str(nodes): _as_run(shape.sel(nodes=nodes), int(per_node.sel(nodes=nodes)))
        for nodes in points.nodes.values.tolist()
    }
    most, networks = int(points.nodes.max()), points.interconnect.values.tolist()
    of_node, ranks = _BYTES * levels[str(most)]["N"] ** 2 / most, int(per_node.sel(nodes=most))
    larger = problem(2 * most, ranks, of_node, block) | _ranks(ranks)
    twice = {str(most): levels[str(most)], str(2 * most): larger}
    others = [
        other
        for name in networks
        for other in what_ifs(twin.links[name], name, name, most, twin.faster)
    ]
    # Faster Ethernets are asked of the nodes that are there.
    asked = levels if twin.faster else twice
    for name, between, sizes in (
        (HELD_OUT, networks, levels),
        (WHAT_IF, [*networks, *others], asked),
    ):
        yield checked(
            {
                "name": name,
                "title": "HPL on a calibrated twin",
                "runner": "hpl",
                "seed": 20261123,
                "factors": {
                    "interconnect": between,
                    "nodes": [int(nodes) for nodes in sizes],
                    "vary": list(VARIED),
                },
                "levels": {"nodes": sizes},
                "settings": settings,
                "design": {},
                "stopping": {"blocks": 1},
            }
        )


def _as_run(shape: xr.Dataset, ranks: int) -> dict[str, int]:
    """HPL's order and grid as it ran with this number of processes a node; the squarest grid where networks had
    several."""
    ran = {name: int(shape[name]) for name in ("N", "P", "Q")}
    if ran["P"] * ran["Q"] != int(shape.nodes) * ranks:
        ran |= problem(int(shape.nodes), ranks, _BYTES, 1) | {"N": ran["N"]}
    return ran | _ranks(ranks)


def _ranks(ranks: int) -> dict[str, int]:
    """The setting for this number of processes a node; empty for one."""
    return {"ranks_per_node": ranks} if ranks > 1 else {}


def _settings(points: xr.Dataset) -> Mapping[str, Any]:
    return json.loads(points.attrs.get("settings", "{}"))


def predict(twin: Twin, points: xr.Dataset, held_out: xr.Dataset, what_if: xr.Dataset) -> Study:
    """Compare the simulated campaigns with the points held out; raises FalloffError where a simulation failed."""
    points_held_out = []
    for rate in _rates(held_out, twin):
        ran = points.rate.sel(interconnect=rate.network, nodes=rate.nodes).dropna("block")
        if ran.size:
            mean = float(mean_over(ran, "block", "rate"))
            _, low, high = map(float, average(rate.rate / ran.values, "ratio"))
            points_held_out.append(
                HeldOut(rate, mean, ran.size, rate.rate / mean - 1, low - 1, high - 1)
            )
    unit = "run" if points.attrs.get("repeats") == UNORDERED else "block"
    return Study(held_out, twin, tuple(points_held_out), tuple(_rates(what_if, twin)), unit)


def _rates(dataset: xr.Dataset, twin: Twin) -> Iterator[Rate]:
    points, names = derive.points(dataset).squeeze("block"), attributes.short_names(dataset)
    for network in points.interconnect.values.tolist():
        fitted = max((name for name in twin.links if network.startswith(name)), key=len)
        for nodes in points.nodes.values.tolist():
            at = points.sel(interconnect=network, nodes=nodes, vary=list(VARIED))
            rates = at.rate.values.tolist()
            if not all(map(math.isfinite, rates)):
                reason = next(filter(None, at.reason.values.tolist()), "no result")
                raise FalloffError(f"HPL on {nodes} nodes of {network} was not simulated: {reason}")
            # More bandwidth may let messages meet that did not: an end is not always the worse one.
            ends = rates[0], min(rates), max(rates)
            yield Rate(network, fitted, names[network], nodes, *ends)


def accuracy(study: Study) -> str:
    """How well the twin predicts what was held out (Markdown)."""
    if not study.held_out:
        return "**Whether the twin predicts HPL cannot be said**: no point was held out."
    answers = [point.answer for point in study.held_out]
    worst = max(study.held_out, key=lambda point: abs(point.error))
    at = f"{worst.predicted.words}, {counted(worst.predicted.nodes, 'node')}"
    within = f"{answers.count(YES)} of {counted(len(answers), 'held-out point')}"
    still_open = f", {answers.count(UNDECIDED)} are open" if UNDECIDED in answers else ""
    return (
        f"**The twin predicts HPL within {percent(MARGIN, 0)} at {within}**{still_open}. Its largest error is "
        f"{_signed(worst.error)} ({at}; {counted(worst.blocks, study.unit)}, {study.twin.evidence} evidence)."
    )


def is_right(study: Study) -> list[Statement]:
    """Is HPL's rate on the twin right within MARGIN, at each point held out? Primary is the largest error on each network."""
    by_error = sorted(study.held_out, key=lambda point: abs(point.error))
    largest = {point.predicted.network: point for point in by_error}
    statements = []
    for point in study.held_out:
        rate, error = point.predicted, (point.error, point.low, point.high)
        statement = f"The twin's HPL rate is right within {percent(MARGIN, 0)}: {rate.words}, {rate.nodes} nodes"
        about = {"answer": point.answer, "primary": point is largest[rate.network]}
        n_of = f"{study.twin.evidence} {study.unit}"  # the twin itself has no scatter
        judged = value(study.dataset, statement, "error", error, point.blocks, n_of=n_of, **about)
        statements.append(judged)
    return statements


def table(study: Study) -> exhibit.Table:
    """The errors at the held-out points."""
    rows = []
    for point in study.held_out:
        rate, ends = point.predicted, (100 * point.error, 100 * point.low, 100 * point.high)
        simulated, error = estimate(rate.rate, rate.low, rate.high), estimate(*ends, _tenths)
        cells = rate.words, str(rate.nodes), number(point.measured), str(point.blocks), simulated
        rows.append((*cells, f"{error} %", point.answer))
    measured = study.twin.evidence.capitalize()
    columns = f"Network; Nodes; {measured}; {study.unit.capitalize()}s; Predicted (range); Error (95 %); Answer"
    caption = f"HPL on several nodes, held out [Gflop/s]; the error with its {T_INTERVAL.replace('block', study.unit)}"
    return exhibit.Table("twin-held-out", columns.split("; "), "lrrrrrl", rows, caption)


def _tenths(value: float | None) -> str:
    return fixed(value, 1)


def text(study: Study) -> str:
    """The prediction for a terminal: the answer, every held-out point, every what-if."""
    errors = table(study)
    rows = [("what if", "nodes", "Gflop/s (range)", "against the network as it is")]
    for rate in study.what_if:
        gain = "" if rate.network == rate.fitted else _signed(study.gain(rate))
        rows.append((rate.words, str(rate.nodes), estimate(rate.rate, rate.low, rate.high), gain))
    lines = [accuracy(study).replace("**", ""), "", "HPL on several nodes, held out [Gflop/s]"]
    lines += [*_aligned([[column.lower() for column in errors.columns], *errors.rows]), ""]
    if study.twin.faster:
        asked = gains_table(study)
        lines += [asked.caption, *_aligned([asked.columns, *asked.rows])]
    else:
        lines += [
            "What if (range: every fitted number at its worse or better end)",
            *_aligned(rows),
        ]
    return "\n".join(lines).replace("\u00a0", " ")


def gains(study: Study) -> list[Statement]:
    """HPL's simulated gain [1] on each hypothetical network, on the most nodes, with the range that the fitted
    numbers allow. The largest gain for each fitted network is primary."""
    statements = []
    most = max((rate.nodes for rate in study.what_if), default=0)
    changed = [rate for rate in study.what_if if rate.nodes == most and rate.network != rate.fitted]
    largest = {rate.fitted: rate for rate in sorted(changed, key=study.gain)}
    # The fitted network that gains most comes first.
    for rate in sorted(changed, key=lambda rate: -study.gain(largest[rate.fitted])):
        kind, on = "range of the fitted numbers", counted(most, "node")
        made = value(
            study.dataset,
            f"{rate.words}: what HPL's rate gains on {on}",
            "gain",
            study.gain_range(rate),
            1,
            kind,
            n_of="simulation",
            primary=rate is largest[rate.fitted],
        )
        gain, low, high = map(_signed, (made.estimate, *(made.interval or ())))
        sentence = (
            f"**{rate.words}**: HPL's rate on {on} changes by {gain} ({kind} {low} to {high})."
        )
        statements.append(replace(made, sentence=sentence))
    return statements


def gains_table(study: Study) -> exhibit.Table:
    """HPL's rate on each measured or hypothetical network, and its change against the measured one, by nodes."""
    nodes, rows = sorted({rate.nodes for rate in study.what_if}), []
    by_network: dict[str, dict[int, Rate]] = {}
    for rate in study.what_if:
        by_network.setdefault(rate.network, {})[rate.nodes] = rate
    for name, rates in by_network.items():
        last = rates[max(rates)]
        cells = [_signed(study.gain(rates[n])) if n in rates else UNKNOWN for n in nodes]
        cells = ["" for _ in nodes] if name == last.fitted else cells
        rows.append((last.words, *cells, estimate(last.rate, last.low, last.high)))
    columns = ["Network", *(counted(n, "node") for n in nodes), f"Gflop/s on {nodes[-1]} (range)"]
    caption = "HPL's rate against the network as it is, simulated (range: every fitted number at its worse or better end)"
    return exhibit.Table("twin-gains", columns, "l" + "r" * (len(nodes) + 1), rows, caption)


def _signed(change: float) -> str:
    return f"{'+' if change > 0 else ''}{percent(change)}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
        for row in rows
    ]


def figure(study: Study) -> Figure:
    """HPL's rate a node [Gflop/s] over nodes, a panel a network: as run, predicted with its range, and what if."""
    networks = list(dict.fromkeys(point.predicted.network for point in study.held_out))
    looks = [style.look(name) for name in ("gige", "10gige", "unshaped", "infiniband")]
    with style.styled():
        drawn, panels = drawing.new_figures(3.6, len(networks))
        for axes, network in zip(panels, networks):
            points = [point for point in study.held_out if point.predicted.network == network]
            nodes = [point.predicted.nodes for point in points]
            rates = [point.measured / point.predicted.nodes for point in points]
            axes.plot(nodes, rates, "x", color=style.INK, label=f"{study.twin.evidence}, held out")
            _simulated(axes, looks[0], [point.predicted for point in points], "twin", 1.0)
            others = [rate for rate in study.what_if if rate.fitted == network]
            for rank, name in enumerate(dict.fromkeys(rate.network for rate in others)):
                rates = [rate for rate in others if rate.network == name]
                label = "twin" if name == network else rates[0].words.partition(_WHAT_IF)[2]
                _simulated(axes, looks[rank % len(looks)], rates, label, 1 + 0.04 * rank)
            every = sorted({*nodes, *(rate.nodes for rate in others)})
            drawing.doubling_axis(axes, drawing.thin_ticks(every, 1.9))
            axes.set_title(points[0].predicted.words)
        panels[0].set_ylabel("HPL's rate a node [Gflop/s]")
        drawing.legend_below(drawn, panels, 2)
    return drawn


def _simulated(axes, look: style.Look, rates: Sequence[Rate], label: str, aside: float) -> None:
    nodes = np.array([rate.nodes for rate in rates])
    value, low, high = np.array([(rate.rate, rate.low, rate.high) for rate in rates]).T / nodes
    marks = {"color": look.color, "mfc": "white", "linestyle": "none", "label": label}
    ends = [value - low, high - value]
    axes.errorbar(nodes * aside, value, ends, fmt=look.marker, capsize=3, **marks)
