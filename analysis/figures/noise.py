"""The published figures of HPL beside a daemon: what is lost over nodes, and how the nodes' losses add up."""

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.studies.noise import Level, Noise

SIDESTEP = 0.07  # of a doubling, between two levels


def draw(study: Noise) -> dict[str, Figure]:
    """The campaign's figures by name: noise and amplification."""
    return {"noise": loss_over_nodes(study), "amplification": amplification_over_nodes(study)}


def loss_over_nodes(study: Noise) -> Figure:
    """Loss of the rate [%] in every block over nodes, with mean, 95 % t interval and fitted curve."""
    with style.styled():
        figure, axes = drawing.new_figure(3.6)
        axes.axhline(0, color=style.INK, linewidth=0.8)
        for series, sidestep, level in _series(study):
            nodes = level.losses.nodes.values
            x = nodes * 2**sidestep
            drawing.runs(axes, series, x, -100 * np.expm1(level.log_ratio), _label(level))
            for place, n in zip(x, nodes):
                at = level.losses.sel(nodes=n)
                ends = (100 * (1 - float(at[end])) for end in ("ratio", "high", "low"))
                drawing.interval(axes, series, place, *ends)
            if level.curve:
                along = np.geomspace(nodes.min(), nodes.max(), 80)
                ratio, low, high = level.curve.band(along, "ratio")
                drawing.band(axes, series, along, *(100 * (1 - end) for end in (ratio, high, low)))
        drawing.node_axis(axes, study.points.nodes.values)
        axes.set_ylabel("loss of the HPL rate to the daemon [%]")
        drawing.legend_below(figure, axes, 3)
        return figure


def amplification_over_nodes(study: Noise) -> Figure:
    """Log-loss of the rate over that of a node's time, with Fieller's 95 % intervals, over nodes.

    It lies at 1 where HPL loses what a node loses, and at n where the losses of n nodes add up.
    """
    with style.styled():
        figure, axes = drawing.new_figure(3.2)
        counts = study.points.nodes.values
        along = np.geomspace(counts.min(), counts.max(), 80)
        axes.plot(along, along, color=style.FAINT, linewidth=1, label="n: all nodes' losses", gid=drawing.COMPUTED)
        axes.axhline(1, color=style.INK, linewidth=0.8, label="1: one node's loss")
        for series, sidestep, level in _series(study):
            look = style.look(series)
            axes.plot([], [], look.marker, color=look.color, mfc="white", label=_label(level))
            for n in counts:
                at = level.losses.sel(nodes=n)
                ends = (at.amplification, at.amplification_low, at.amplification_high)
                drawing.interval(axes, series, n * 2**sidestep, *map(float, ends))
        drawing.node_axis(axes, counts)
        # Intervals of a loss that can hardly be told from 0 have no end that a figure could show.
        axes.set(ylabel="amplification [1]", ylim=(-0.25 * counts.max(), 1.5 * counts.max()))
        drawing.legend_below(figure, axes, 3)
        return figure


def _series(study: Noise) -> Iterator[tuple[str, float, Level]]:
    """Each level's series, its place beside the others [doublings] and the level, in ascending order."""
    middle = (len(study.levels) - 1) / 2
    for rank, level in enumerate(study.levels):
        yield f"noise {rank + 1}", SIDESTEP * (rank - middle), level


def _label(level: Level) -> str:
    return f"{100 * level.noise:g} % asked for"
