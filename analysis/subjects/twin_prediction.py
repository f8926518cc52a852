"""Whether a simulation that was fitted to a cluster's micro-benchmarks predicts its HPL, and what
other networks would do.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import paths
from analysis.dataset import derive, store
from analysis.descriptions import campaigns
from analysis.descriptions.adaptation import problem
from analysis.descriptions.testbeds import Testbed
from analysis.evidence import verify
from analysis.quoting import quoted
from analysis.statements import drawing, exhibit, style
from analysis.statements.statement import T_INTERVAL, YES, Statement, range_answer, value
from analysis.statistics.intervals import mean_over, over_blocks
from analysis.statistics.judgement import UNDECIDED
from analysis.subjects import hpl_points
from analysis.subjects.twin import BYTES, Twin
from analysis.subjects.what_if import NOTHING, WhatIf
from analysis.wording import counted, estimate, evidence_in_words, fixed, kinds, number, percent
from runners.records.record import FalloffError

# What the shipped example was fitted to, and what `falloff twin` simulates: points that were run,
# and networks that are not there.
EXAMPLE = ("twin_tokens", "twin_load", "suspects", "twin_hpl")
SIMULATED = HELD_OUT, WHAT_IF = ("twin_held_out", "twin_what_if")
MARGIN = 0.03  # of a held-out rate, decided before the simulation
# The model as fitted, and with every number at the end that is worse or better for HPL.
VARIED = (
    "none",
    "bandwidth=low,latency=high,dgemm_flop_s=low",
    "bandwidth=high,latency=low,dgemm_flop_s=high",
)
# Between a network's name and what differs from it, as `what_if` writes them.
_DIFFERS = quoted(",") + " "


class Study(NamedTuple):
    """HPL on a twin, a row for each network and number of nodes.

    Rows have the name of the `network`, that of the `fitted` one that it is or is a change of,
    `words`, `nodes`, and the `rate` [Gflop/s] with its range, `low` and `high`, over the ends of
    the fitted numbers. `what_if` has also what the network gains on these nodes against the fitted
    one, `gain` [1], with its range, `gain_low` and `gain_high`. `held_out` has only points that
    were run and that the fit did not read: with the mean rate that was `measured` [Gflop/s] over so
    many `blocks`, and the `error` of the twin's rate [1] with its 95 % t interval, `error_low` and
    `error_high`, NaN from one block; the `answer` compares it with MARGIN. `dataset` is that of the
    simulated points held out. Repeats of a point are of this `unit`, block or run.
    """

    dataset: xr.Dataset
    twin: Twin
    held_out: pd.DataFrame
    what_if: pd.DataFrame
    unit: str


def measured(data: str) -> list[xr.Dataset]:
    """The datasets in the folder `data` that a twin was fitted to; none without a folder."""
    folders = verify.measured_folders(str(paths.ROOT / data)) if data else []
    return [store.read(Path(folder)) for folder in folders]


def held_out_points(datasets: Sequence[xr.Dataset], twin: Twin) -> xr.Dataset:
    """HPL's points on several nodes and a fitted network; raises FalloffError where there are none,
    or more is varied.
    """
    for dataset in datasets:
        points = _imported(dataset) if dataset.falloff.is_imported else _planned(dataset)
        if points is None:
            continue
        if fitted := [name for name in points.interconnect.values.tolist() if name in twin.links]:
            return points.sel(interconnect=fitted, nodes=points.nodes > 1)
    raise FalloffError(
        "no campaign has HPL on several nodes of a fitted network: "
        "add `hpl_scaling`, or give --fit-only"
    )


def _planned(dataset: xr.Dataset) -> xr.Dataset | None:
    """A campaign's HPL points; None if it has none on several nodes."""
    if not ((dataset.runner == "hpl") & (dataset.role == "point") & (dataset.nodes > 1)).any():
        return None
    if varied := sorted(set(dataset.falloff.design.factors) ^ {"interconnect", "nodes"}):
        raise FalloffError(
            f"campaign {dataset.attrs['campaign']} cannot be held out: it should vary "
            f"interconnect and nodes alone, as hpl_scaling does (differs: {', '.join(varied)})"
        )
    return derive.points(dataset)


def _imported(dataset: xr.Dataset) -> xr.Dataset | None:
    """Imported HPL points over (block, interconnect, nodes) with `ranks_per_node`, those of one
    grid at each number of nodes; None if the numbers of nodes are not known."""
    results = hpl_points.results_if_any(dataset)
    if results is None or results.points.nodes.attrs["long_name"] != "nodes":
        return None
    points = results.points
    ranks = points.P * points.Q / points.nodes
    whole = (ranks % 1 == 0) | ranks.isnull()
    if not whole.all():
        odd = points.where(~whole).to_dataframe().dropna(subset="P").reset_index().iloc[0]
        raise FalloffError(
            f"HPL ran on {odd.P:g} x {odd.Q:g} processes and {odd.nodes:g} nodes: of such a job "
            "the twin cannot place the processes. Import without it, or say `--set nodes=N`"
        )
    return points.assign(ranks_per_node=ranks)


def simulations(
    machine: Testbed, points: xr.Dataset, asked: WhatIf
) -> Iterator[campaigns.Campaign]:
    """The campaigns to simulate on a twin: the held-out points, then the fitted networks beside
    those that are `asked` for, by default twice the bandwidth, half the latency, and switches on
    two levels.

    Networks by name are asked of the numbers of nodes that were run, others of the most and of
    twice as many. HPL's settings are those of the shipped example where the run recorded none.
    """
    networks = points.interconnect.values.tolist()
    if asked == NOTHING:
        others = WhatIf(twice="bandwidth", half="latency").names(machine, networks)
        others += [f"{network}_tree" for network in networks]
    else:
        others = asked.names(machine, networks)
    shape = points[["N", "P", "Q", "NB", "ranks_per_node"]].max(["block", "interconnect"])
    ran, block = points.falloff.settings, int(shape.NB.max())
    sizes = {str(n): _as_run(shape.sel(nodes=n)) for n in points.nodes.values.tolist()}
    most = int(points.nodes.max())
    largest, ranks = sizes[str(most)], sizes[str(most)]["ranks_per_node"]
    larger = problem(2 * most, ranks, BYTES * largest["N"] ** 2 / most, block)
    most_nodes = {str(most): largest, str(2 * most): larger | {"ranks_per_node": ranks}}
    for name, between, levels in (
        (HELD_OUT, networks, sizes),
        (WHAT_IF, [*dict.fromkeys([*networks, *others])], sizes if asked.networks else most_nodes),
    ):
        example = campaigns.read(name)
        settings = {key: ran.get(key, value) for key, value in example.settings.items()}
        nodes = [int(count) for count in levels]
        yield example.changed(
            title="HPL on a calibrated twin",
            testbed=machine.name,
            factors={**example.factors, "interconnect": between, "nodes": nodes},
            levels={"nodes": levels},
            settings={**settings, "NB": block},
        )


def _as_run(shape: xr.Dataset) -> dict[str, int]:
    """HPL's order and grid as it ran with this number of processes a node; the squarest grid where
    networks had several."""
    ran = {name: int(shape[name]) for name in ("N", "P", "Q", "ranks_per_node")}
    if ran["P"] * ran["Q"] != int(shape.nodes) * ran["ranks_per_node"]:
        ran |= problem(int(shape.nodes), ran["ranks_per_node"], BYTES, 1) | {"N": ran["N"]}
    return ran


def predict(twin: Twin, points: xr.Dataset, held_out: xr.Dataset, what_if: xr.Dataset) -> Study:
    """Compare the simulated campaigns with the points held out; raises FalloffError where a
    simulation failed.
    """
    rates = _rates(held_out, twin)
    ran = points.rate.sel(interconnect=rates.interconnect, nodes=rates.nodes)
    means, ratio = mean_over(ran, "block", "rate"), over_blocks(rates.rate / ran, "ratio")
    errors = rates.assign(
        measured=means,
        blocks=ratio.blocks,
        error=rates.rate / means - 1,
        error_low=ratio.low - 1,
        error_high=ratio.high - 1,
    )
    rows = _rows(errors).dropna(subset="measured")
    ends = zip(rows.error_low, rows.error_high)
    rows["answer"] = [range_answer(interval, -MARGIN, MARGIN) for interval in ends]
    rates = _rates(what_if, twin)
    as_is = rates.sel(interconnect=rates.fitted.values).assign_coords(rates.coords)
    gain = (rates / as_is - 1).to_dataarray()
    gains = rates.assign(
        gain=gain[0], gain_low=gain.min("variable"), gain_high=gain.max("variable")
    )
    return Study(held_out, twin, rows, _rows(gains), hpl_points.unit(points))


def _rates(dataset: xr.Dataset, twin: Twin) -> xr.Dataset:
    """HPL's simulated `rate`, `low` and `high` over (interconnect, nodes), with `fitted` and
    `words` of each network.
    """
    points, names = derive.points(dataset), dataset.falloff.names
    points = points.squeeze("block", drop=True).sel(vary=list(VARIED))
    failed = points.where(points.rate.isnull(), drop=True)[["reason"]]
    for (network, nodes), rows in failed.to_dataframe().dropna().groupby(["interconnect", "nodes"]):
        reason = next(filter(None, rows.reason), "no result")
        raise FalloffError(f"HPL on {nodes} nodes of {network} was not simulated: {reason}")
    networks = points.interconnect.values.tolist()
    fitted = [max(filter(network.startswith, twin.links), key=len) for network in networks]
    # More bandwidth may let messages meet that did not: an end is not always the worse one.
    rates = {"low": points.rate.min("vary"), "high": points.rate.max("vary")}
    return xr.Dataset({"rate": points.rate.sel(vary="none", drop=True), **rates}).assign_coords(
        fitted=("interconnect", fitted),
        words=("interconnect", [names[network] for network in networks]),
    )


def _rows(table: xr.Dataset) -> pd.DataFrame:
    rows = table.to_dataframe(["interconnect", "nodes"]).reset_index()
    return rows.rename(columns={"interconnect": "network"})


def accuracy(study: Study) -> str:
    """How well the twin predicts what was held out (Markdown)."""
    held_out = study.held_out
    if held_out.empty:
        return "**Whether the twin predicts HPL cannot be said**: no point was held out."
    answers = held_out.answer.tolist()
    worst = held_out.loc[held_out.error.abs().idxmax()]
    at = f"{worst.words}, {counted(worst.nodes, 'node')}"
    both = kinds(study.dataset.falloff.evidence, study.twin.evidence)
    within = f"{answers.count(YES)} of {counted(len(answers), 'held-out point')}"
    still_open = f", {answers.count(UNDECIDED)} are open" if UNDECIDED in answers else ""
    return (
        f"**The twin predicts HPL within {percent(MARGIN, 0)} at {within}**{still_open}. "
        f"Its largest error is {_signed(worst.error)} "
        f"({at}; {counted(worst.blocks, study.unit)}, {evidence_in_words(both)})."
    )


def is_right(study: Study) -> list[Statement]:
    """Is HPL's rate on the twin right within MARGIN, at each point held out? Primary is the largest
    error on each network.
    """
    largest = study.held_out.error.abs().groupby(study.held_out.network).transform("max")
    return [
        value(
            study.dataset,
            f"The twin's HPL rate is right within {percent(MARGIN, 0)}: "
            f"{at.words}, {at.nodes} nodes",
            "error",
            (at.error, at.error_low, at.error_high),
            at.blocks,
            n_of=f"{study.twin.evidence} {study.unit}",  # the twin itself has no scatter
            answer=at.answer,
            primary=abs(at.error) == largest[at.Index],
            evidence=kinds(study.dataset.falloff.evidence, study.twin.evidence),
        )
        for at in study.held_out.itertuples()
    ]


def table(study: Study) -> exhibit.Table:
    """The errors at the held-out points."""
    rows = []
    for at in study.held_out.itertuples():
        errors = (100 * at.error, 100 * at.error_low, 100 * at.error_high)
        error = estimate(*errors, lambda percents: fixed(percents, 1))
        run = at.words, str(at.nodes), number(at.measured), str(at.blocks)
        rows.append((*run, estimate(at.rate, at.low, at.high), f"{error} %", at.answer))
    measured = study.twin.evidence.capitalize(), f"{study.unit.capitalize()}s"
    columns = "Network", "Nodes", *measured, "Predicted (range)", "Error (95 %)", "Answer"
    interval = T_INTERVAL.replace("block", study.unit)
    caption = f"HPL on several nodes, held out [Gflop/s]; the error with its {interval}"
    return exhibit.Table("twin-held-out", columns, "lrrrrrl", rows, caption)


def text(study: Study) -> str:
    """The prediction for a terminal: the answer, every held-out point, every what-if."""
    lines = [accuracy(study).replace("**", "")]
    for shown in (table(study), gains_table(study)):
        rows = [shown.columns, *shown.rows]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines += ["", shown.caption]
        lines += ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join(lines).replace("\u00a0", " ")


def gains(study: Study) -> list[Statement]:
    """HPL's simulated gain [1] on each hypothetical network, on the most nodes, with the range that
    the fitted numbers allow. The largest gain for each fitted network is primary."""
    rates = study.what_if
    changed = rates[(rates.nodes == rates.nodes.max()) & (rates.network != rates.fitted)]
    largest = changed.groupby("fitted").gain.transform("max")
    # The fitted network that gains most comes first.
    ordered = changed.assign(largest=largest).sort_values("largest", ascending=False, kind="stable")
    statements, kind = [], "range of the fitted numbers"
    for at in ordered.itertuples():
        on, ends = counted(at.nodes, "node"), (at.gain, at.gain_low, at.gain_high)
        gain, low, high = map(_signed, ends)
        subject = f"{at.words}: what HPL's rate gains on {on}"
        sentence = f"**{at.words}**: HPL's rate on {on} changes by {gain}"
        about = {"primary": at.gain == at.largest, "n_of": "simulation"}
        about["sentence"] = f"{sentence} ({kind} {low} to {high})."
        statements.append(value(study.dataset, subject, "gain", ends, 1, kind, **about))
    return statements


def gains_table(study: Study) -> exhibit.Table:
    """HPL's rate on each measured or hypothetical network, and its change against the measured one,
    by nodes.
    """
    nodes, rows = sorted(set(study.what_if.nodes)), []
    for network, rates in study.what_if.groupby("network", sort=False):
        last = rates.iloc[-1]
        cells = ["" if network == last.fitted else _signed(gain) for gain in rates.gain]
        rows.append((last.words, *cells, estimate(last.rate, last.low, last.high)))
    columns = ["Network", *(counted(n, "node") for n in nodes), f"Gflop/s on {nodes[-1]} (range)"]
    caption = (
        "HPL's rate against the network as it is, simulated "
        "(range: every fitted number at its worse or better end)"
    )
    return exhibit.Table("twin-gains", columns, "l" + "r" * (len(nodes) + 1), rows, caption)


def _signed(change: float) -> str:
    return f"{'+' if change > 0 else ''}{percent(change)}"


def figure(study: Study) -> Figure:
    """HPL's rate a node [Gflop/s] over nodes, a panel a network: as run, predicted with its range,
    and what if.
    """
    looks = [style.look(name) for name in ("gige", "10gige", "unshaped", "infiniband")]
    with style.styled():
        drawn, panels = drawing.new_figures(3.6, study.held_out.network.nunique())
        for axes, (network, points) in zip(panels, study.held_out.groupby("network", sort=False)):
            measured = points.measured / points.nodes
            label = f"{study.twin.evidence}, held out"
            axes.plot(points.nodes, measured, "x", color=style.INK, label=label)
            _simulated(axes, looks[0], points, "twin", 1.0)
            others = study.what_if[study.what_if.fitted == network]
            for rank, (name, rates) in enumerate(others.groupby("network", sort=False)):
                # What differs follows the network's own name.
                label = "twin" if name == network else rates.words.iloc[0].partition(_DIFFERS)[2]
                _simulated(axes, looks[rank % len(looks)], rates, label, 1 + 0.04 * rank)
            every = sorted({*points.nodes, *others.nodes})
            drawing.doubling_axis(axes, drawing.thin_ticks(every, 1.9))
            axes.set_title(points.words.iloc[0])
        panels[0].set_ylabel("HPL's rate a node [Gflop/s]")
        drawing.legend_below(drawn, [*panels], 2)
    return drawn


def _simulated(axes: Axes, look: style.Look, rates: pd.DataFrame, label: str, aside: float) -> None:
    value, low, high = (rates[name] / rates.nodes for name in ("rate", "low", "high"))
    marks: Any = {"color": look.color, "mfc": "white", "linestyle": "none", "label": label}
    ends = [value - low, high - value]
    axes.errorbar(rates.nodes * aside, value, ends, fmt=look.marker, capsize=3, **marks)
