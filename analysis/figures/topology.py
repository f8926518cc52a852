"""The published figures of the network designs: slowdown over cost and nodes, and the simulator's time over nodes."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.inference.averages import mean_over
from analysis.studies.design_choices import Choice
from analysis.studies.flow_slowdown import RUNNER
from analysis.studies.scaling import short_names
from analysis.studies.topology import Topology, in_words

FILLED = "in_order"  # the placement whose marks are filled; those of others are open
COLUMNS = 3
APART = 0.09  # of a doubling of nodes, between the marks of two patterns or networks


def draw(study: Topology) -> dict[str, Figure]:
    """The figures by name: topology_growth, and where slowdowns are known topology and topology_nodes."""
    drawn = {"topology_growth": cpu_time_over_nodes(study)}
    if study.choices:
        drawn |= {"topology": cost_and_slowdown(study), "topology_nodes": slowdown_over_nodes(study)}
    return drawn


def cost_and_slowdown(study: Topology) -> Figure:
    """Slowdown over cost [USD a node], a panel for each pattern; steps are the least slowdown for the cost."""
    with style.styled():
        names = short_names(study.dataset)
        patterns = list(dict.fromkeys(choice.pattern for choice in study.choices))
        rows = -(-len(patterns) // COLUMNS)
        figure = Figure(figsize=(style.WIDTH, 1.4 + 1.9 * rows))
        grid = figure.subplots(rows, COLUMNS, squeeze=False, sharex=True, sharey=True)
        panels = grid.ravel()[: len(patterns)]
        for unused in grid.ravel()[len(patterns) :]:
            unused.remove()
        for axes, pattern in zip(panels, patterns):
            _choices(axes, [choice for choice in study.choices if choice.pattern == pattern], names)
            axes.set_title(in_words(pattern), loc="left")
        for axes in panels[-COLUMNS:]:
            axes.tick_params(labelbottom=True)
            axes.set_xlabel("cost [USD a node]")
        _slowdown_axes(grid[:, 0])
        drawing.legend_below(figure, panels, 3)
        return figure


def slowdown_over_nodes(study: Topology) -> Figure:
    """Geometric mean slowdown of every network over the nodes: a column a pattern, a row a placement."""
    with style.styled():
        names, slowdown = short_names(study.dataset), mean_over(study.slowdowns.makespan, "run", "ratio")
        shape = slowdown.sizes["placement"], slowdown.sizes["pattern"]
        figure = Figure(figsize=(style.WIDTH, 1.6 + 1.6 * shape[0]))
        grid = figure.subplots(*shape, squeeze=False, sharex=True, sharey=True)
        for row, placement in zip(grid, slowdown.placement.values):
            for axes, pattern in zip(row, slowdown.pattern.values):
                _curves(axes, slowdown.sel(pattern=pattern, placement=placement), names)
                axes.set_title(f"{in_words(pattern)},\n{in_words(placement)}", loc="left")
        for axes in grid[-1]:
            drawing.node_axis(axes, drawing.apart(slowdown.nodes.values, 4))
        _slowdown_axes(grid[:, 0])
        drawing.legend_below(figure, grid.ravel(), 3)
        return figure


def cpu_time_over_nodes(study: Topology) -> Figure:
    """CPU time [s] of every simulation over its nodes, by pattern, with a line that is linear in the nodes."""
    with style.styled():
        figure, axes = drawing.new_figure(3.0)
        trials = study.dataset.isel(trial=np.flatnonzero(study.dataset.runner == RUNNER))
        for number, growth in enumerate(study.growth):
            look = style.look(growth.pattern)
            own = trials.isel(trial=np.flatnonzero(trials.pattern == growth.pattern))
            places = own.nodes * 2.0 ** (APART * (number - (len(study.growth) - 1) / 2))
            appearance = {"color": look.color, "mfc": "none", "mew": 0.7, "label": in_words(growth.pattern)}
            axes.plot(places, own.simulator_cpu_time, look.marker, **appearance)
        nodes = np.unique(trials.nodes.values)
        linear = float(trials.simulator_cpu_time.min()) * nodes / nodes[0]
        axes.plot(nodes, linear, color=style.FAINT, label="linear in the nodes", gid=drawing.COMPUTED)
        axes.set(yscale="log", ylabel="CPU time of the simulation [s]")
        drawing.node_axis(axes, nodes)
        drawing.log_ticks(axes.yaxis)
        drawing.legend_below(figure, axes, 3)
        return figure


def _choices(axes: Axes, choices: list[Choice], names: dict) -> None:
    """Each choice's mark, and the least slowdown that so much buys with each placement, in steps from one efficient
    choice to the next."""
    for placement in dict.fromkeys(choice.placement for choice in choices):
        own = [choice for choice in choices if choice.placement == placement]
        front = [(choice.cost_per_node, choice.slowdown) for choice in own if choice.efficient]
        line = "-" if placement == FILLED else ":"
        appearance = {"marker": "o", "markersize": 11, "mfc": "none", "color": style.FAINT, "zorder": 1}
        label = f"efficient, {in_words(placement)}"
        axes.plot(*zip(*front), line, **appearance, drawstyle="steps-post", label=label)
        for choice in own:
            look = style.look(choice.interconnect)
            face = look.color if placement == FILLED else "none"
            label = names[choice.interconnect] if placement == FILLED else None
            axes.plot(choice.cost_per_node, choice.slowdown, look.marker, color=look.color, mfc=face, label=label)


def _curves(axes: Axes, slowdown: xr.DataArray, names: dict) -> None:
    """The slowdown of every network, over (interconnect, nodes)."""
    for number, name in enumerate(slowdown.interconnect.values):
        look, values = style.look(name), slowdown.sel(interconnect=name)
        places = values.nodes * 2.0 ** (APART * (number - (slowdown.sizes["interconnect"] - 1) / 2))
        axes.plot(places, values, look.marker, color=look.color, mfc="none", label=names[name])


def _slowdown_axes(first: np.ndarray) -> None:
    """A logarithmic axis of slowdowns, of the first axes of each row, which share it with the others."""
    for axes in first:
        axes.set(yscale="log", ylabel="slowdown [1]")
        drawing.log_ticks(axes.yaxis)
