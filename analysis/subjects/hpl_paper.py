"""The cases of a paper at two scales: where a network's fall over nodes ends, and how far the scales are apart.

The paper printed one line, 80 % of Rpeak, and no point of its curves. In the scale model HPL's rate is known as a share of
F, what the nodes compute together; simulated at the paper's size it is known as that share, and as a share of Rpeak.
"""

from dataclasses import replace

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.attributes import names_in_text
from analysis.contrasts import log_ratios
from analysis.efficiency import efficiency
from analysis.statements import Statement, fall
from analysis.statistics import design as designs
from analysis.statistics.intervals import ratios
from analysis.statistics.judgement import FLAT, judge
from analysis.wording import counted, fixed, listed, percent

TICKS = (2, 8, 16, 24, 30, 36)  # nodes
SIDESTEP = 0.4  # nodes, by which single runs stand left of their mean


def end_of_fall(log_ratio: xr.DataArray, margin: float, evidence: str) -> int | None:
    """The least node count against which every later case is flat; None where the last but one already is not.

    `log_ratio` is over (block, nodes); cases without a value are left out. The node counts are tested from the most
    downwards, up to the first that fails: a fixed sequence, so that no level needs a correction. "All later cases are
    flat" holds when each of their 90 % intervals lies inside the margin.
    """
    cases = log_ratio.dropna("nodes", how="all").transpose("nodes", "block")
    values, end = cases.values, None
    for at in range(len(values) - 2, -1, -1):
        later = [judge(case - values[at], margin, evidence) for case in values[at + 1 :]]
        if any(judgement.answer != FLAT for judgement in later):
            break
        end = int(cases.nodes.values[at])
    return end


def end_of_planned_fall(points: xr.Dataset) -> int | None:
    """Where the fall of a campaign's planned pair of networks ends [nodes], by `end_of_fall`; `points` is from
    `derive.points`."""
    design, evidence = designs.read(points), points.evidence.item()
    return end_of_fall(log_ratios(points, *design.pair), design.margin, evidence)


def fall_to_its_end(points: xr.Dataset) -> Statement:
    """Does the planned network fall against the other, from the fewest nodes to where its fall ends, or to the most if that
    is open? `points` is from `derive.points`; raises FalloffError if a network was not run."""
    design, names = designs.read(points), names_in_text(points)
    (network, reference), end = design.pair, end_of_planned_fall(points)
    compared = log_ratios(points, network, reference).dropna("nodes", how="all").nodes.values
    first, last = int(points.nodes.min()), int(max(compared, default=points.nodes.values.max()))
    if end == first:
        where = f" Every case up to {last} nodes is within {percent(design.margin, 0)} of that on {counted(first, 'node')}."
    elif end:
        where = f" It ends there: every later case is within {percent(design.margin, 0)} of that on {counted(end, 'node')}."
    else:
        where = " Where its fall ends is open."
    one = fall(points, network, reference, (first, end or last), design.margin, primary=True)
    subject = f"{points.evidence.item().capitalize()}, {names[network]} loses rate against {names[reference]} from {first} nodes to where its fall ends"
    return replace(one, subject=subject, sentence=f"{one.sentence}{where}")


def beside_printed(simulated: xr.Dataset, line: float) -> str:
    """What the paper prints of both networks, the `line` [% of Rpeak] for the faster one, and how far the simulation stays
    from it, in a few sentences. `simulated` is from `derive.points`, at a single block."""
    (slow, fast), names = designs.read(simulated).pair, names_in_text(simulated)
    off = float(abs(100 * efficiency(simulated).sel(interconnect=fast) - line).max())
    printed = f"The paper prints one number, {percent(line / 100, 0)} on {names[fast]}, and says of {names[slow]} only that it drops off."
    if np.isnan(off):
        return printed
    return (
        f"{printed} Simulated, {names[fast]} stays within {fixed(off, 1)} points of that number: its smallest case is calibrated to "
        "it, the others are predicted."
    )


def apart(emulated: xr.Dataset, simulated: xr.Dataset) -> str:
    """How far HPL's shares of the nodes' rate differ between both scales, at most, in a sentence; empty where no case is in
    both.

    Both are from `derive.points`, `simulated` at a single block.
    """
    shares, names = ratios(np.log(emulated.share)).ratio, names_in_text(emulated)
    model = simulated.share.reset_coords(drop=True).reindex_like(shares)
    most = abs(shares - model).max("nodes").dropna("interconnect")
    points = [
        f"{fixed(100 * float(one), 1)} points on {names[one.interconnect.item()]}" for one in most
    ]
    if not points:
        return ""
    return f"As shares of the nodes' rate, {emulated.evidence.item()} and simulated rates differ by at most {listed(points)}."


def both_scales(
    emulated: xr.Dataset, simulated: xr.Dataset, line: float, today: xr.Dataset | None = None
) -> Figure:
    """HPL's efficiency [%] over nodes: emulated, every run and means with 95 % t intervals; simulated at the paper's size,
    beside the `line` that the paper prints [% of Rpeak], with the cases of a run of `today`.

    All are from `derive.points`, `simulated` and `today` at a single block.
    """
    names, nodes, reached = names_in_text(emulated), emulated.nodes.values, efficiency(simulated)
    means = 100 * ratios(np.log(emulated.share))
    with style.styled():
        figure, panels = drawing.new_figures(3.4, 2, sharey=True)
        for name in emulated.interconnect.values.tolist():
            at = means.sel(interconnect=name)
            drawing.runs(
                panels[0], name, nodes - SIDESTEP, 100 * emulated.share.sel(interconnect=name)
            )
            ends = (at[end].values for end in ("ratio", "low", "high"))
            drawing.interval(panels[0], name, nodes, *ends, names[name])
        for name in reached.interconnect.values.tolist():
            look, cases = style.look(name), 100 * reached.sel(interconnect=name)
            mark = {"marker": look.marker, "color": look.color, "ls": "none", "mfc": "white"}
            panels[1].plot(cases.nodes, cases, **mark)
            if today is not None and name in today.interconnect:
                now = 100 * efficiency(today).sel(interconnect=name)
                panels[1].plot(now.nodes, now, **drawing.TODAY)
        panels[0].set_ylabel(f"{emulated.evidence.item()} [% of {emulated.share.attrs['of']}]")
        panels[1].set_ylabel("simulated [% of Rpeak]")
        look = {"color": style.INK, "linewidth": 0.9, "linestyle": "-.", "zorder": 1}
        panels[1].axhline(line, label=f"published: {line:g} % of Rpeak", **look)
        for axes in panels:
            axes.set_xticks([n for n in TICKS if n in nodes])
            axes.set_xlabel("nodes")
        drawing.legend_below(figure, panels, 3)
    return figure
