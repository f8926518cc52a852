"""Is the scale model's answer the same at another scale of time?

A dilation says how many times slower than in the paper time runs: a node's F, the links' rates and the shaper's times,
beside what the smaller matrices ask for. What the machine itself takes for a message does not scale. If it counted, the
share of F would rise with the dilation, since a message's own time is then a smaller part of the run.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.attributes import short_names, testbed
from analysis.derive import points
from analysis.exhibit import Basis, Exhibit
from analysis.experiments.scale_model import OPEN, judged_ratios
from analysis.findings import Finding, of_estimate, origin
from analysis.statistics import design as designs
from analysis.statistics.judgement import FALLS_OFF, FLAT, RISES
from analysis.wording import between, counted, listed, percent
from runners.record import FalloffError

FIGURES = {"invariance": ("hpl_invariance",)}  # what each rests on
ONE_SIDED = 0.05  # level of a 90 % interval, as for two one-sided tests
SAME, LOWER, HIGHER = "the same", "lower", "higher"
ANSWERS = {FLAT: SAME, FALLS_OFF: LOWER, RISES: HIGHER}
# Of a doubling: between two series, and from a mean to its blocks.
SIDESTEP, RUNS_ASIDE = 0.12, 0.04


@dataclass(frozen=True)
class Invariance:
    """The campaign's dataset, its points and each dilation's ratio to the described one.

    `reference` is the testbed's dilation and `margin` [1] what counts as the same. `log_ratio` is the log of a block's
    share of F over that at the reference, over (block, interconnect, nodes, dilation without the reference). `compared`
    is its `scale_model.judged_ratios` with 90 % intervals: SAME inside the margin, LOWER or HIGHER beyond, else OPEN.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    reference: float
    margin: float
    log_ratio: xr.DataArray
    compared: pd.DataFrame


def analyse(hpl_invariance: xr.Dataset) -> Invariance:
    """Compare each dilation with the testbed's within the same block.

    Raises FalloffError when there is no HPL trial, the dilation is not varied, or the testbed's is not among its levels.
    """
    derived = points(hpl_invariance)
    reference = testbed(hpl_invariance).get("node", {}).get("dilation")
    if "dilation" not in derived.dims or reference not in derived.dilation.values:
        raise FalloffError(
            f"Campaign {hpl_invariance.attrs['campaign']} needs the factor dilation with the testbed's own, {reference}, "
            "among its levels."
        )
    margin, log_share = designs.read(hpl_invariance).margin, np.log(derived.share)
    log_ratio = log_share.drop_sel(dilation=reference) - log_share.sel(
        dilation=reference, drop=True
    )
    margins = dict.fromkeys(log_ratio.interconnect.values.tolist(), margin)
    compared = judged_ratios(log_ratio, margins, derived.evidence.item(), ONE_SIDED, ANSWERS)
    return Invariance(hpl_invariance, derived, reference, margin, log_ratio, compared)


def finding(study: Invariance) -> str:
    """Whether the share of F stays the same, and where not, in plain English (Markdown)."""
    compared = study.compared.dropna(subset="ratio")
    if not (whole := len(compared)):
        return "**Whether the answer depends on the scale of time cannot be said**: no block has two dilations."
    margin, evidence = percent(study.margin, 0), study.points.evidence.item()
    blocks = counted(compared.blocks.max(), "block")
    basis = f"({blocks}, 90 % t intervals, {evidence} evidence)"
    same, undecided = (int((compared.answer == answer).sum()) for answer in (SAME, OPEN))
    differ = whole - same - undecided
    changed = compared[(compared.high < 1) | (compared.low > 1)]
    place, most = max(compared.iterrows(), key=lambda row: abs(np.log(row[1].ratio)))
    head, told = f"matters by less than {margin}", [f"{same} are shown to be within {margin}"]
    if differ:
        head = f"matters by more than {margin}"
        told.append(f"{differ} to differ by more")
    elif undecided:
        head = f"matters by at most {percent(abs(most.ratio - 1))}"
    if undecided:
        told.append(f"{undecided} {'is' if undecided == 1 else 'are'} open")
    where = listed([str(nodes) for nodes in study.points.nodes.values])
    sentences = [
        f"**The scale of time {head}**: of {whole} comparisons, on {where} nodes, {listed(told)} {basis}."
    ]
    if len(changed):
        sentences.append(f"In {len(changed)} of them the efficiency does change.")
        network, nodes, dilation = place
        sentences.append(
            f"The largest change is on {short_names(study.dataset)[network]} with {counted(nodes, 'node')}: HPL "
            f"reaches {percent(most.ratio)} of its efficiency if slowed down {dilation:g} instead of {study.reference:g} times "
            f"(90 % interval {between((100 * most.low, 100 * most.high), 1)} %)."
        )
    return " ".join(sentences)


def findings(study: Invariance) -> Iterator[Finding]:
    """Every comparison of two scales of time, as data; planned for are the most nodes at the fastest one."""
    source, names = origin("hpl_invariance", study.dataset), short_names(study.dataset)
    kind, most = "90 % t interval over the blocks", int(study.points.nodes.max())
    fastest = float(study.compared.index.get_level_values("dilation").min())
    for (name, nodes, dilation), at in study.compared.iterrows():
        statement = (
            f"HPL is as efficient slowed {dilation:g} times as {study.reference:g}: "
            f"{names[name]}, {nodes} nodes"
        )
        is_planned = nodes == most and dilation == fastest
        ends = at.low, at.high
        further = {"n": at.blocks, "answer": at.answer, "primary": bool(is_planned)}
        yield of_estimate(source, statement, "ratio", "1", at.ratio, ends, kind, **further)


def figures(study: Invariance) -> dict[str, Exhibit]:
    """The efficiency's change over the dilation."""
    fewest, most = int(study.points.nodes.min()), int(study.points.nodes.max())
    return {
        "invariance": Exhibit(
            "invariance",
            ratio_over_dilation(study),
            f"HPL at other scales of time: the share of what the nodes compute, over that at a factor of {study.reference:g}",
            Basis(study.points.evidence.item(), study.points.sizes["block"], "90 % t intervals"),
            "Ratio of the share at each dilation to that at the described one, for each network and node count, with the margin",
            "Links are so many times slower than in the paper, and nodes in proportion. Small marks are single blocks. Large "
            f"marks and bars are geometric means with their intervals, open on {fewest} and filled on "
            f"{counted(most, 'node')}. The margin is shaded.",
            rests_on=FIGURES["invariance"],
        )
    }


def ratio_over_dilation(study: Invariance) -> Figure:
    """Share of F over that at the described dilation [%]: every block, means with 90 % intervals, the margin as an area."""
    names, fewest = short_names(study.dataset), study.points.nodes.values.min()
    with style.styled():
        figure, axes = drawing.new_figure(3.0)
        goal = 100 * study.margin
        axes.axhspan(100 - goal, 1e4 / (100 - goal), color=style.MARGIN, zorder=0, label="margin")
        axes.axhline(100, color=style.INK, linewidth=0.8)
        series = study.compared.groupby(["interconnect", "nodes"], sort=False)
        for rank, ((name, n), at) in enumerate(series):
            look, dilations = style.look(name), at.index.get_level_values("dilation")
            place = dilations * 2 ** (SIDESTEP * (rank - (len(series) - 1) / 2))
            blocks = 100 * np.exp(study.log_ratio.sel(interconnect=name, nodes=n))
            drawing.runs(axes, name, place / 2**RUNS_ASIDE, blocks, "")
            mean, low, high = (100 * at[end].values for end in ("ratio", "low", "high"))
            marks = {"fmt": look.marker, "color": look.color, "capsize": 3}
            marks["mfc"] = "white" if n == fewest else look.color
            label = f"{names[name]}, {counted(int(n), 'node')}"
            axes.errorbar(place, mean, [mean - low, high - mean], label=label, **marks)
        label = "time is slowed down by a factor of [1]"
        drawing.doubling_axis(axes, study.points.dilation.values, label)
        axes.set_ylabel(f"share / share at {study.reference:g} [%]")
        drawing.legend_below(figure, axes, 3)
        return figure
