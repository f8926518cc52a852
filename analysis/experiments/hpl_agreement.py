"""Emulation against simulation at the same rates: is the scale model as fast as its own description says?

SimGrid is given exactly the rates of data/testbeds/scale_model.toml, and none is fitted. A network whose points agree
therefore does what it is described to do.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.attributes import short_names, testbed
from analysis.derive import at_only_level, points
from analysis.exhibit import Basis, Exhibit
from analysis.experiments.scale_model import OPEN, judged_ratios
from analysis.findings import T_INTERVAL, Finding, of_estimate, origin
from analysis.statistics.judgement import FALLS_OFF, FLAT, RISES
from analysis.wording import between, counted, fixed, listed, micro, paragraphs, percent
from runners.record import FalloffError

FIGURES = {"agreement": ("hpl_scaling", "hpl_agreement")}  # what each rests on
# What agreement is [1]: the slower the network, the less the emulation's own microseconds count.
GOALS = {"gige": 0.02}
GOAL = 0.03  # of every other network
COMPARED = ("gige", "10gige")  # the networks that the report is about
UNLIMITED, IDEAL = (
    "unshaped",
    "ideal",
)  # without a rate limit; simulated so that messages take no time
ONE_SIDED = 0.025  # level of a 95 % interval
WITHIN, SLOWER, FASTER = "within", "slower", "faster"
ANSWERS = {FLAT: WITHIN, FALLS_OFF: SLOWER, RISES: FASTER}


@dataclass(frozen=True)
class Agreement:
    """Two campaigns over the same points, emulated and simulated, and how well they agree.

    `points` are the emulated ones that were simulated, too. `ratios` is the `scale_model.judged_ratios` of the share of F
    emulated over that simulated, with 95 % intervals and its network's goal: WITHIN, SLOWER or FASTER beyond, else OPEN.
    `waiting` is in words what HPL loses where messages take no time, "" without such runs.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    ratios: pd.DataFrame
    waiting: str


def analyse(hpl_scaling: xr.Dataset, hpl_agreement: xr.Dataset) -> Agreement:
    """Compare the points that both campaigns have; `hpl_agreement` is simulated.

    Raises FalloffError when one holds no HPL trial, they have no point in common or were run with another rate of the
    nodes, or the simulated campaign has several blocks.
    """
    ran, model = points(hpl_scaling), at_only_level(points(hpl_agreement), "block")
    rates = [float((each.known_rate / each.nodes).max()) for each in (ran, model)]
    if not np.isclose(*rates, rtol=1e-6):
        raise FalloffError(
            f"Campaign {ran.attrs['campaign']} ran on nodes of {rates[0]:g} Gflop/s, {model.attrs['campaign']} on nodes of "
            f"{rates[1]:g}: give the simulated testbed the emulated one's rates, and run it again."
        )
    ran, model = xr.align(ran, model, join="inner", exclude=["block"])
    if not ran.rate.size:
        names = hpl_scaling.attrs["campaign"], hpl_agreement.attrs["campaign"]
        raise FalloffError(f"Campaigns {names[0]} and {names[1]} have no point in common.")
    log_ratio = np.log(ran.share) - np.log(model.share.reset_coords(drop=True))
    goals = {name: GOALS.get(name, GOAL) for name in ran.interconnect.values.tolist()}
    ratios = judged_ratios(log_ratio, goals, ran.evidence.item(), ONE_SIDED, ANSWERS)
    return Agreement(hpl_scaling, ran, ratios, own_waiting(hpl_scaling, hpl_agreement))


def own_waiting(hpl_scaling: xr.Dataset, hpl_agreement: xr.Dataset) -> str:
    """How much of what HPL loses on unlimited links is its own waiting, a sentence (Markdown).

    "" where the campaigns have other nodes, or no case on the most nodes without a rate limit, emulated and simulated, and
    on the ideal network.
    """
    ran, model = points(hpl_scaling), points(hpl_agreement)
    most = int(ran.nodes.max())
    is_there = all(
        name in each.interconnect and most in each.nodes
        for each, name in ((ran, UNLIMITED), (model, UNLIMITED), (model, IDEAL))
    )
    rates = [float((each.known_rate / each.nodes).max()) for each in (ran, model)]
    if not is_there or not np.isclose(*rates, rtol=1e-6):
        return ""
    cases = ((ran, UNLIMITED), (model, UNLIMITED), (model, IDEAL))
    emulated, simulated, ideal = (
        float(np.exp(np.log(each.share.sel(interconnect=name, nodes=most)).mean()))
        for each, name in cases
    )
    if not np.isfinite([emulated, simulated, ideal]).all():
        return ""
    latency = testbed(hpl_agreement)["network"][UNLIMITED]["latency"]
    return (
        f"**On {counted(most, 'node')} without a rate limit HPL loses {fixed(100 * (1 - emulated), 1)} points of "
        f"efficiency, of which {fixed(100 * (1 - ideal), 1)} are its own waiting**: simulated, it reaches {percent(ideal)} if "
        f"messages take no time, and {percent(simulated)} if they take as long as on this machine "
        f"({micro(latency['value'])} with 1 pair of nodes, {micro(latency['high'])} with {most // 2} pairs at once); "
        f"emulated it reaches {percent(emulated)}."
    )


def finding(study: Agreement) -> str:
    """How many points agree, which do not, the largest difference, and HPL's own waiting, in plain English (Markdown)."""
    known = study.ratios.dropna(subset="ratio")
    if not (count := len(known)):
        return "**Whether emulation and simulation agree cannot be said**: no point has both."
    names, answers = _names(study), known.answer
    within = int((answers == WITHIN).sum())
    if within == count:
        head = "**The emulated cluster is as fast as it is described**"
    elif answers.isin((SLOWER, FASTER)).any():
        head = "**The emulated cluster is not everywhere as fast as it is described**"
    else:
        head = "**Whether the emulated cluster is as fast as it is described is partly open**"
    sentences = [
        f"{head}: {within} of {counted(count, 'point')} agree with a simulation at the same rates, within {_goals(study)}."
    ]
    heads = {SLOWER: "Slower than the goal", FASTER: "Faster than the goal", OPEN: "Open"}
    for answer, beginning in heads.items():
        places = [
            f"{names[name]} on {', '.join(map(str, nodes))} nodes"
            for name, nodes in known[answers == answer]
            .reset_index()
            .groupby("interconnect", sort=False)
            .nodes
        ]
        if places:
            sentences.append(f"{beginning}: {'; '.join(places)}.")
    (network, nodes), worst = max(known.iterrows(), key=lambda row: abs(np.log(row[1].ratio)))
    off, name = worst.ratio - 1, names[network]
    interval = ""
    if np.isfinite(worst.low):
        ends = between((100 * worst.low, 100 * worst.high), 1)
        interval = f"95 % interval of emulated over simulated {ends} %, "
    sentences.append(
        f"The largest difference is {percent(abs(off))}: emulated, HPL on {name} with {counted(nodes, 'node')} is "
        f"{'slower' if off < 0 else 'faster'} than simulated "
        f"({interval}{counted(worst.blocks, 'block')}, {study.points.evidence.item()} evidence)."
    )
    return paragraphs(sentences, [study.waiting])


def _names(study: Agreement) -> dict[str, str]:
    """The networks as a sentence names them."""
    return short_names(study.dataset) | {UNLIMITED: "unlimited links"}


def _goals(study: Agreement) -> str:
    """Such as "2 % on GigE, 3 % on 10GE and unlimited links"."""
    names = _names(study)
    goals = study.ratios.margin.groupby("interconnect", sort=False).first()
    return ", ".join(
        f"{percent(goal, 0)} on {listed([names[name] for name in networks.index])}"
        for goal, networks in goals.groupby(goals)
    )


def findings(study: Agreement) -> Iterator[Finding]:
    """Every point's ratio, as data; planned for are COMPARED on the most nodes."""
    most = max(nodes for _, nodes in study.ratios.index)
    source, names = origin("hpl_agreement", study.dataset), _names(study)
    for (name, nodes), at in study.ratios.iterrows():
        within = f"within {100 * at.margin:g} %"
        statement = f"HPL is as simulated {within}: {names[name]}, {nodes} nodes"
        ends, is_planned = (at.low, at.high), nodes == most and name in COMPARED
        further = {"n": at.blocks, "answer": at.answer, "primary": is_planned}
        yield of_estimate(source, statement, "ratio", "1", at.ratio, ends, T_INTERVAL, **further)


def figures(study: Agreement) -> dict[str, Exhibit]:
    """The ratio of emulated and simulated rates over nodes."""
    return {
        "agreement": Exhibit(
            "agreement",
            ratios_over_nodes(study),
            "HPL's emulated rate over its simulated rate at the same speeds of nodes and links",
            Basis(study.points.evidence.item(), study.points.sizes["block"], "95 % t intervals"),
            "Emulated over simulated rate over nodes, a panel for each network, with the goal",
            "Marks are geometric means with their intervals. The goal of each network is shaded. The control has no rate limit.",
            rests_on=FIGURES["agreement"],
        )
    }


def ratios_over_nodes(study: Agreement) -> Figure:
    """Emulated over simulated rate [%] over nodes with its interval and the goal as an area, a panel a network."""
    names = short_names(study.dataset)
    with style.styled():
        figure, panels = drawing.new_figures(2.8, study.points.sizes["interconnect"])
        for axes, name in zip(panels, study.points.interconnect.values):
            axes.sharey(panels[0])
            at = study.ratios.loc[name]
            goal, nodes = 100 * at.margin.iloc[0], at.index.values
            axes.axhspan(100 - goal, 1e4 / (100 - goal), color=style.MARGIN, zorder=0, label="goal")
            axes.axhline(100, color=style.INK, linewidth=0.8)
            means = (100 * at[end].values for end in ("ratio", "low", "high"))
            drawing.interval(axes, name, nodes, *means)
            drawing.node_axis(axes, drawing.apart(nodes, 1.9))
            axes.margins(x=0.1)
            axes.set_title(f"{names[name]}, goal {goal:g} %")
            axes.tick_params(labelleft=axes is panels[0])
        panels[0].set_ylabel("emulated / simulated rate [%]")
        return figure
