"""The published figures: each function takes derived data and returns a matplotlib Figure.

All points are shown, moved sideways a little where networks share a node count; lines are models.
"""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.contrasts import Contrast
from analysis.inference.averages import mean_over
from analysis.statistics.reproduction import Reproduction
from analysis.studies.efficiency import efficiency
from analysis.studies.scaling import Scaling, short_names


def draw(study: Scaling) -> dict[str, Figure]:
    """The figures that the data allow, by name: rate, share, efficiency, falls and links."""
    names = short_names(study.dataset)
    drawn = {
        "rate": rate_over_nodes(study.points),
        "share": share_over_nodes(study.points),
        "falls": falls(study.points, study.contrasts, study.today),
    }
    if efficiency(study.points).notnull().any():
        drawn["efficiency"] = efficiency_over_nodes(study.points)
    if len(study.links):
        drawn["links"] = link_goodput(study.links, names)
    return drawn


def rate_over_nodes(points: xr.Dataset) -> Figure:
    """HPL rate [Gflop/s] of every block over nodes, and the linear reference.

    `points` is from `derive.points`.
    """
    with style.styled():
        figure, axes = drawing.new_figure(3.6)
        smallest = int(points.nodes.min())
        one_node = float(mean_over(points.rate.sel(nodes=smallest), ..., "rate")) / smallest
        ends = np.array([0, float(points.nodes.max())])
        axes.plot(ends, one_node * ends, color=style.FAINT, linewidth=1, label="linear", zorder=1)
        for interconnect, sidestep, short in drawing.series(points):
            x = points.nodes.values + 0.08 * sidestep
            drawing.runs(axes, interconnect, x, points.rate.sel(interconnect=interconnect), short)
        axes.set(
            xlabel="nodes", ylabel="HPL rate [Gflop/s]", xticks=points.nodes, xlim=(0, None), ylim=(0, None)
        )
        axes.legend(loc="upper left")
        return figure


def share_over_nodes(points: xr.Dataset) -> Figure:
    """Share of the known rate [%] of every block over nodes, with block means and 95 % t intervals."""
    with style.styled():
        figure, axes = drawing.new_figure(3.6)
        drawing.shares(axes, points)
        axes.set(ylabel=f"HPL rate [% of {points.share.attrs['of']}]")
        axes.legend(loc="lower left")
        return figure


def efficiency_over_nodes(points: xr.Dataset) -> Figure:
    """Share of Rpeak [%] of every block over nodes, with block means and 95 % t intervals.

    `points` is from `derive.points`, of a testbed whose Rpeak is known.
    """
    reached = 100 * efficiency(points)
    with style.styled():
        figure, axes = drawing.new_figure(3.6)
        for interconnect, sidestep, short in drawing.series(points):
            x = points.nodes.values * 2 ** (0.035 * sidestep)
            drawing.runs(axes, interconnect, x, reached.sel(interconnect=interconnect), short)
            drawing.intervals(axes, interconnect, x, reached.sel(interconnect=interconnect), "rate")
        drawing.node_axis(axes, points.nodes.values)
        axes.set(ylabel="efficiency [% of Rpeak]", ylim=(0, None))
        axes.legend(loc="lower left")
        return figure


def falls(points: xr.Dataset, contrasts: Sequence[Contrast], today: Sequence[Reproduction] = ()) -> Figure:
    """The fall of each contrast [%]: every block, mean, the interval of its judgement, the margin and the answer.

    `today` says of some contrasts what another run has.
    """
    design = json.loads(points.attrs["design"])
    with style.styled():
        figure, axes = drawing.new_figure(1.0 + 0.75 * len(contrasts))
        margin = design["margin"]
        band = (100 * (1 - 1 / (1 - margin)), 100 * margin)
        axes.axvspan(*band, color=style.MARGIN, zorder=0, label=f"margin {100 * margin:g} %")
        axes.axvline(0, color=style.INK, linewidth=0.8)
        for row, contrast in enumerate(contrasts):
            look = style.look(contrast.network)
            blocks = -100 * np.expm1(contrast.differences.dropna("block").values)
            spread = row + 0.16 + 0.16 * np.linspace(0, 1, len(blocks))
            axes.plot(
                blocks, spread, look.marker, color=look.color, alpha=0.6, markersize=3.5, label="one block"
            )
            drawing.judgement(axes, row, contrast, look)
        rows = {contrast.what: row for row, contrast in enumerate(contrasts)}
        for found in today:
            drawing.today_mark(axes, rows[found.what], found)
        drawing.rows(axes, [_pair(points, contrast) for contrast in contrasts])
        axes.set_xlabel("fall [%]")
        drawing.legend_below(figure, axes, 3)
        return figure


def link_goodput(links: pd.DataFrame, shorts: Mapping[str, str]) -> Figure:
    """Goodput [Gbit/s] of every link of the survey.

    `links` is from `links.links`; the wire limit is a bar. `shorts` names the interconnects.
    """
    with style.styled():
        measured = list(dict.fromkeys(links.index.get_level_values("interconnect")))
        figure, axes = drawing.new_figure(0.9 + 0.4 * len(measured))
        for row, interconnect in enumerate(measured):
            look, these = style.look(interconnect), links.loc[interconnect]
            values = these.goodput.dropna() / 1e9
            axes.plot(values, np.full(len(values), row), look.marker, color=look.color, markersize=6)
            limit = these.wire_limit.iloc[0] / 1e9
            if np.isfinite(limit):
                axes.plot([limit, limit], [row - 0.3, row + 0.3], color=style.INK, label="wire limit")
        axes.set_xscale("log")
        drawing.log_ticks(axes.xaxis)
        drawing.rows(axes, [shorts[interconnect] for interconnect in measured])
        axes.set_xlabel("TCP goodput [Gbit/s]")
        drawing.legend_below(figure, axes, 3)
        return figure


def _pair(points: xr.Dataset, contrast: Contrast) -> str:
    """The contrast's two networks, its node counts and its number of blocks."""
    names = short_names(points)
    pair = f"{names[contrast.network]} / {names[contrast.reference]}"
    return f"{pair}\n{contrast.start} to {contrast.end} nodes, n = {contrast.verdict.blocks}"
