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

from analysis import drawing, exhibit, style
from analysis.attributes import factors, names_in_text, testbed
from analysis.derive import points
from analysis.experiments.scale_model import OPEN, judged_ratios
from analysis.findings import Finding, interval_in_words, of_estimate, origin
from analysis.statistics import design as designs
from analysis.statistics.judgement import FALLS_OFF, FLAT, RISES
from analysis.wording import counted, listed, percent
from runners.record import FalloffError

FIGURES = {"invariance": ("hpl_invariance",)}  # what each rests on
ONE_SIDED = 0.05  # level of a 90 % interval, as for two one-sided tests
SAME, LOWER, HIGHER = "the same", "lower", "higher"
ANSWERS = {FLAT: SAME, FALLS_OFF: LOWER, RISES: HIGHER}


@dataclass(frozen=True)
class Invariance:
    """The campaign's dataset, its points and each dilation's ratio to the described one.

    `reference` is the testbed's dilation, or the first that is compared, and `margin` [1] what counts as the same. `log_ratio` is the log of a block's
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
    """Compare each dilation with the testbed's, or else the first, within the same block.

    Raises FalloffError when there is no HPL trial, or the dilation is not varied.
    """
    derived, levels = points(hpl_invariance), factors(hpl_invariance).get("dilation", [])
    if len(levels) < 2:
        raise FalloffError(
            f"Campaign {hpl_invariance.attrs['campaign']} needs the factor dilation with two levels: there is nothing to compare."
        )
    described = testbed(hpl_invariance).get("node", {}).get("dilation")
    reference = described if described in levels else levels[0]
    margin, log_share = designs.read(hpl_invariance).margin, np.log(derived.share)
    at_reference = log_share.sel(dilation=reference, drop=True)
    log_ratio = log_share.drop_sel(dilation=reference) - at_reference
    margins = dict.fromkeys(log_ratio.interconnect.values.tolist(), margin)
    compared = judged_ratios(log_ratio, margins, derived.evidence.item(), ONE_SIDED, ANSWERS)
    return Invariance(hpl_invariance, derived, reference, margin, log_ratio, compared)


def finding(study: Invariance) -> str:
    """Whether the share of F stays the same, and where it changes most, in plain English (Markdown)."""
    compared = study.compared.dropna(subset="ratio")
    if compared.empty:
        return "**Whether the answer depends on the scale of time cannot be said**: no block has two dilations."
    margin = percent(study.margin, 0)
    same, undecided = (int((compared.answer == answer).sum()) for answer in (SAME, OPEN))
    differ = len(compared) - same - undecided
    (network, nodes, dilation), most = max(
        compared.iterrows(), key=lambda row: abs(np.log(row[1].ratio))
    )
    told = [f"{differ} {'is' if differ == 1 else 'are'} shown to differ by more"] if differ else []
    told += [f"{undecided} {'is' if undecided == 1 else 'are'} open"] if undecided else []
    where = listed([str(count) for count in study.points.nodes.values])
    basis = f"{counted(compared.blocks.max(), 'block')}, 90 % t intervals, {study.points.evidence.item()} evidence"
    interval = interval_in_words((most.low, most.high), level=0.9)
    return (
        f"**The scale of time matters by less than {margin} in {same} of {len(compared)} comparisons**, on {where} nodes"
        f"{told and f'; {listed(told)}' or ''} ({basis}). "
        f"The largest change is on {names_in_text(study.dataset)[network]} with {counted(nodes, 'node')}: HPL "
        f"reaches {percent(most.ratio)} of its efficiency if slowed down {dilation:g} instead of {study.reference:g} times"
        f"{f' ({interval})' if interval else ''}."
    )


def findings(study: Invariance) -> Iterator[Finding]:
    """Every comparison of two scales of time, as data; planned for are the most nodes at the fastest one."""
    source, names = origin("hpl_invariance", study.dataset), names_in_text(study.dataset)
    most, fastest = study.compared.reset_index().agg({"nodes": "max", "dilation": "min"})
    for (name, nodes, dilation), at in study.compared.iterrows():
        statement = (
            f"HPL is as efficient slowed {dilation:g} times as {study.reference:g}: "
            f"{names[name]}, {nodes} nodes"
        )
        about = {"answer": at.answer, "primary": bool(nodes == most and dilation == fastest)}
        estimate, kind = (at.ratio, at.low, at.high), "90 % t interval over the blocks"
        yield of_estimate(source, statement, "ratio", estimate, at.blocks, kind, **about)


def figures(study: Invariance) -> dict[str, exhibit.Exhibit]:
    """Share of F over that at the described dilation [%]: every block, means with 90 % intervals, the margin as an area."""
    names, fewest = names_in_text(study.dataset), study.points.nodes.values.min()
    with style.styled():
        figure, axes = drawing.new_figure(3.0)
        drawing.margin_around_100(axes, study.margin, "margin")
        series = study.compared.groupby(["interconnect", "nodes"], sort=False)
        for rank, ((name, n), at) in enumerate(series):
            dilations = at.index.get_level_values("dilation").values
            places = drawing.beside(dilations, rank, len(series))
            blocks = 100 * np.exp(study.log_ratio.sel(interconnect=name, nodes=n))
            means = 100 * at[["ratio", "low", "high"]]
            label = f"{names[name]}, {counted(int(n), 'node')}"
            fill = "white" if n == fewest else None
            drawing.runs_and_means(axes, name, places, blocks, means, label, fill)
        label = "time is slowed down by a factor of [1]"
        drawing.doubling_axis(axes, study.points.dilation.values, label)
        axes.set_ylabel(f"share / share at {study.reference:g} [%]")
        drawing.legend_below(figure, axes, 3)
    fewest, most = int(study.points.nodes.min()), int(study.points.nodes.max())
    return exhibit.only(
        FIGURES,
        figure,
        f"HPL at other scales of time: the share of what the nodes compute, over that at a factor of {study.reference:g}",
        exhibit.Basis.of_dataset(study.dataset, "90 % t intervals"),
        "Ratio of the share at each dilation to that at the described one, for each network and node count, with the margin",
        "Links are so many times slower than in the paper, and nodes in proportion. Small marks are single blocks. Large "
        f"marks and bars are geometric means with their intervals, open on {fewest} and filled on "
        f"{counted(most, 'node')}. The margin is shaded.",
    )
