"""The published figures of the paper's own cases: efficiency, its sensitivity, and contention as scenarios.

Simulated points carry no interval: the model repeats itself exactly. No line joins them: a grid between two of them
was not simulated.
"""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis import drawing, style
from analysis.studies import sensitivity
from analysis.studies.contention import LINK, SHARED, Contention
from analysis.studies.paper import Paper
from analysis.studies.scaling import Scaling, short_names
from analysis.studies.sensitivity import Sensitivity

TICKS = (2, 4, 8, 16, 36)  # nodes: the doublings of the paper's cases, up to its largest
MECHANISMS = {SHARED: "shared backplane", LINK: "slower links with each node"}


def draw(study: Paper, emulated: Scaling | None = None) -> dict[str, Figure]:
    """The figures that the data allow, by name: paper (paper_alone without emulated runs), sensitivity, contention."""
    drawn = {"paper": both_scales(study, emulated)} if emulated else {"paper_alone": cases(study)}
    if study.sensitivity:
        drawn["sensitivity"] = tornado(study.sensitivity)
    if study.contention:
        drawn["contention"] = scenarios(study.contention)
    return drawn


def both_scales(study: Paper, emulated: Scaling) -> Figure:
    """Left, the emulated share of DGEMM [%] over nodes; right, the simulated efficiency [% of Rpeak].

    Each panel has its own axes. Right, bars are the ranges over all single changes of the model's numbers.
    """
    with style.styled():
        figure, (left, right) = drawing.new_figures(3.6, 2)
        drawing.shares(left, emulated.points)
        left.set(ylabel=f"HPL rate [% of {emulated.points.share.attrs['of']}]", title=emulated.points.evidence.item())
        _cases(right, study)
        drawing.legend_below(figure, (left, right), 4)
        return figure


def cases(study: Paper) -> Figure:
    """The simulated efficiency [% of Rpeak] over nodes; bars are the ranges over all single changes of the model."""
    with style.styled():
        figure, axes = drawing.new_figure(3.6)
        _cases(axes, study)
        drawing.legend_below(figure, axes, 4)
        return figure


def tornado(study: Sensitivity) -> Figure:
    """Change of the efficiency [percentage points] at the most nodes by each number of the model."""
    names, networks = short_names(study.dataset), study.base.interconnect.values
    at_most = 100 * study.changes.isel(nodes=-1)
    ranked = sensitivity.ranked(at_most.sel(interconnect=networks[0]))
    with style.styled():
        figure, panels = drawing.new_figures(1.3 + 0.27 * len(ranked), len(networks))
        for other in panels[1:]:
            other.sharex(panels[0])
        for axes, network in zip(panels, networks):
            _bars(axes, network, at_most.sel(interconnect=network, parameter=ranked).values)
            drawing.rows(axes, [sensitivity.meaning(it) if axes is panels[0] else "" for it in ranked])
            axes.set(title=names[network], xlabel="change [percentage points]")
        ends = (("at the low end of its range", style.INK), ("at the high end", "white"))
        keys = [Patch(facecolor=fill, edgecolor=style.INK, label=label) for label, fill in ends]
        figure.legend(handles=keys, loc="outside lower center", ncols=2)
        return figure


def scenarios(study: Contention) -> Figure:
    """Efficiency [% of Rpeak] over nodes without contention, and as each mechanism would give each target."""
    with style.styled():
        figure, panels = drawing.new_figures(3.6, 2)
        panels[1].sharey(panels[0])
        for axes, (mechanism, title) in zip(panels, MECHANISMS.items()):
            _points(axes, style.look(study.interconnect), study.ideal, "no contention (simulated)")
            for number, target in enumerate(study.slopes, 1):
                curve = study.scenario(mechanism, target).curve
                if curve is not None:
                    label = f"scenario: {100 * target:g} % on {curve.nodes.values[-1]} nodes"
                    _points(axes, style.look(f"scenario {number}"), curve, label)
            drawing.node_axis(axes, study.ideal.nodes.values)
            axes.set_title(title)
        panels[0].set_ylabel("efficiency [% of Rpeak]")
        figure.suptitle("scenarios: no published value exists", fontsize=9)
        drawing.legend_below(figure, panels, 2)
        return figure


def _cases(axes: Axes, study: Paper) -> None:
    """Every simulated case, the ranges of those that were varied, and the published line."""
    for interconnect, sidestep, short in drawing.series(study.points):
        _points(axes, style.look(interconnect), study.efficiency.sel(interconnect=interconnect), short)
        if study.sensitivity:
            _ranges(axes, study.sensitivity, interconnect, 2 ** (0.06 * sidestep))
    line = 100 * study.line
    axes.axhline(line, color=style.INK, linewidth=0.9, linestyle="-.", label=f"published: {line:g} %", zorder=1)
    drawing.node_axis(axes, [n for n in TICKS if n in study.efficiency.nodes.values])
    axes.set(ylabel="efficiency [% of Rpeak]", title="simulated")


def _points(axes: Axes, look: style.Look, efficiency: xr.DataArray, label: str) -> None:
    """Efficiency [1] over (nodes) as marks [%]."""
    axes.plot(efficiency.nodes, 100 * efficiency, look.marker, color=look.color, label=label)


def _ranges(axes: Axes, study: Sensitivity, interconnect: str, sidestep: float) -> None:
    """The range over all single changes at each node count that was varied, beside its mark."""
    base = 100 * study.base.sel(interconnect=interconnect)
    extent = 100 * sensitivity.extent(study.changes.sel(interconnect=interconnect))
    color = style.look(interconnect).color
    ends = [-extent.low, extent.high]
    axes.errorbar(base.nodes * sidestep, base, ends, fmt="none", ecolor=color, elinewidth=1, capsize=3)


def _bars(axes: Axes, network: str, changes: np.ndarray) -> None:
    """One row a parameter; `changes` has shape (parameter, side): at the low end filled, at the high open."""
    color, rows = style.look(network).color, np.arange(len(changes))
    for column, fill, place in ((0, color, -0.19), (1, "white", 0.19)):
        axes.barh(rows + place, changes[:, column], 0.36, color=fill, edgecolor=color)
    axes.axvline(0, color=style.INK, linewidth=0.8)
