"""Emulation against simulation at the same rates: is the scale model as fast as its own description says?

SimGrid is given exactly the rates of data/testbeds/fortinet_model.toml and the time of a message at the dilation that its
rule gives each network, and none is fitted. A network whose points agree therefore does what it is described to do.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from analysis import drawing, exhibit, style
from analysis.attributes import UNLIMITED, names_in_text
from analysis.derive import at_only_level, points
from analysis.experiments.scale_model import OPEN, judged_ratios
from analysis.findings import Finding, interval_in_words, of_estimate, origin, resting_on
from analysis.statistics.intervals import mean_over
from analysis.statistics.judgement import FALLS_OFF, FLAT, RISES
from analysis.wording import counted, fixed, percent
from runners.record import FalloffError

FIGURES = {"agreement": ("hpl_scaling", "hpl_agreement")}  # what each rests on
GOAL = 0.015  # what agreement is [1]
COMPARED = ("gige", "10gige")  # the networks that the report is about
IDEAL = "ideal"  # simulated so that messages take no time
ONE_SIDED = 0.025  # level of a 95 % interval
WITHIN, SLOWER, FASTER = "within", "slower", "faster"
ANSWERS = {FLAT: WITHIN, FALLS_OFF: SLOWER, RISES: FASTER}
HEADS = {SLOWER: "Slower than the goal", FASTER: "Faster than the goal", OPEN: "Open"}


@dataclass(frozen=True)
class Agreement:
    """Two campaigns over the same points, emulated and simulated, and how well they agree.

    `points` are the emulated ones that were simulated, too. `ratios` is the `scale_model.judged_ratios` of the share of F
    emulated over that simulated, with 95 % intervals: WITHIN the goal, SLOWER or FASTER beyond it, else OPEN.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    ratios: pd.DataFrame


def analyse(hpl_scaling: xr.Dataset, hpl_agreement: xr.Dataset) -> Agreement:
    """Compare the points that both campaigns have; `hpl_agreement` is simulated.

    Raises FalloffError when one holds no HPL trial, they have no point in common or were run with another rate of the
    nodes, or the simulated campaign has several blocks.
    """
    ran, model = points(hpl_scaling), at_only_level(points(hpl_agreement), "block")
    if not _is_same_node(ran, model):
        raise FalloffError(
            f"Campaign {ran.attrs['campaign']} ran on nodes of {_node_rate(ran):g} Gflop/s, {model.attrs['campaign']} on nodes of "
            f"{_node_rate(model):g}: give the simulated testbed the emulated one's rates, and run it again."
        )
    ran, model = xr.align(ran, model, join="inner", exclude=["block"])
    if not ran.rate.size:
        names = hpl_scaling.attrs["campaign"], hpl_agreement.attrs["campaign"]
        raise FalloffError(f"Campaigns {names[0]} and {names[1]} have no point in common.")
    log_ratio = np.log(ran.share) - np.log(model.share.reset_coords(drop=True))
    goals = dict.fromkeys(ran.interconnect.values.tolist(), GOAL)
    ratios = judged_ratios(log_ratio, goals, ran.evidence.item(), ONE_SIDED, ANSWERS)
    return Agreement(hpl_scaling, ran, ratios)


def _node_rate(points: xr.Dataset) -> float:
    return float((points.known_rate / points.nodes).max())


def _is_same_node(ran: xr.Dataset, model: xr.Dataset) -> bool:
    return bool(np.isclose(_node_rate(ran), _node_rate(model), rtol=1e-6))


def own_waiting(hpl_scaling: xr.Dataset, hpl_agreement: xr.Dataset) -> str:
    """How much of what HPL loses on unlimited links is its own waiting, a sentence (Markdown).

    "" where the campaigns have other nodes, or no case on the most nodes without a rate limit, emulated and simulated, and
    on the ideal network.
    """
    ran, model = points(hpl_scaling), points(hpl_agreement)
    most = int(ran.nodes.max())
    emulated, simulated, ideal = shares = [
        float(mean_over(each.share.reindex(interconnect=[name], nodes=[most]), ..., "ratio"))
        for each, name in ((ran, UNLIMITED), (model, UNLIMITED), (model, IDEAL))
    ]
    if not _is_same_node(ran, model) or not np.isfinite(shares).all():
        return ""
    return (
        f"**On {counted(most, 'node')} without a rate limit HPL loses {fixed(100 * (1 - emulated), 1)} points of efficiency, of "
        f"which its ranks lose {fixed(100 * (1 - ideal), 1)} by waiting for each other, whatever the network**: simulated, it reaches "
        f"{percent(ideal)} if messages take no time and {percent(simulated)} on unlimited links; emulated it reaches {percent(emulated)}."
    )


def finding(study: Agreement) -> str:
    """How many points agree, which do not, and the largest difference, in plain English (Markdown)."""
    known = study.ratios.dropna(subset="ratio")
    if not (count := len(known)):
        return "**Whether emulation and simulation agree cannot be said**: no point has both."
    names, within = names_in_text(study.dataset), int((known.answer == WITHIN).sum())
    head = "**Whether the emulated cluster is as fast as it is described is partly open**"
    if within == count:
        head = "**The emulated cluster and its simulation agree**"
    elif known.answer.isin((SLOWER, FASTER)).any():
        head = "**The emulated cluster is not everywhere as fast as it is described**"
    sentences = [
        f"{head}: {within} of {counted(count, 'point')} agree within {percent(GOAL)} with a simulation at the same rates."
    ]
    for answer, beginning in HEADS.items():
        places = [
            f"{names[name]} on {counted(nodes, 'node')}"
            for name, nodes in known.index[known.answer == answer]
        ]
        if places:
            sentences.append(f"{beginning}: {'; '.join(places)}.")
    (network, nodes), worst = max(known.iterrows(), key=lambda row: abs(np.log(row[1].ratio)))
    off = worst.ratio - 1
    interval = interval_in_words((worst.low, worst.high), of="of emulated over simulated")
    sentences.append(
        f"The largest difference is {percent(abs(off))}: emulated, HPL on {names[network]} with {counted(nodes, 'node')} is "
        f"{'slower' if off < 0 else 'faster'} than simulated ({resting_on(study.dataset, worst.blocks, interval)})."
    )
    return " ".join(sentences)


def findings(study: Agreement) -> Iterator[Finding]:
    """Every point's ratio, as data; planned for are COMPARED on the most nodes."""
    most = max(nodes for _, nodes in study.ratios.index)
    source, names = origin("hpl_agreement", study.dataset), names_in_text(study.dataset)
    for (name, nodes), at in study.ratios.iterrows():
        within = f"within {100 * at.margin:g} %"
        statement = f"HPL is as simulated {within}: {names[name]}, {nodes} nodes"
        estimate, is_planned = (at.ratio, at.low, at.high), nodes == most and name in COMPARED
        about = {"answer": at.answer, "primary": is_planned}
        yield of_estimate(source, statement, "ratio", estimate, at.blocks, **about)


def figures(study: Agreement) -> dict[str, exhibit.Exhibit]:
    """Emulated over simulated rate [%] over nodes with its interval and the goal as an area, a panel a network."""
    names = names_in_text(study.dataset)
    with style.styled():
        figure, panels = drawing.new_figures(2.8, study.points.sizes["interconnect"], sharey=True)
        for axes, name in zip(panels, study.points.interconnect.values):
            at = study.ratios.loc[name]
            nodes = at.index.values
            drawing.margin_around_100(axes, GOAL, "goal")
            means = (100 * at[end].values for end in ("ratio", "low", "high"))
            drawing.interval(axes, name, nodes, *means)
            drawing.doubling_axis(axes, drawing.apart(nodes, 1.9))
            axes.margins(x=0.1)
            axes.set_title(names[name])
        panels[0].set_ylabel("emulated / simulated rate [%]")
    return exhibit.only(
        FIGURES,
        figure,
        "HPL's emulated rate over its simulated rate at the same speeds of nodes and links",
        exhibit.Basis.of_dataset(study.dataset, "95 % t intervals"),
        "Emulated over simulated rate over nodes, a panel for each network, with the goal",
        f"Marks are geometric means with their intervals. The goal of {100 * GOAL:g} % is shaded.",
    )
