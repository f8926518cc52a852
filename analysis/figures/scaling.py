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
from analysis.contrasts import Contrast, differences, log_ratios
from analysis.facts.published import smith_balance
from analysis.fitting.block_fit import BlockFit
from analysis.inference.averages import mean_over
from analysis.inference.verdict import Agreement
from analysis.studies.efficiency import efficiency
from analysis.studies.scaling import Scaling, short_names


def draw(study: Scaling) -> dict[str, Figure]:
    """The figures that the data allow, by name: rate, share, efficiency, falls, links and balance."""
    names = short_names(study.dataset)
    drawn = {
        "rate": rate_over_nodes(study.points, study.rate_curves),
        "share": share_over_nodes(study.points, study.share_curves),
        "falls": falls(study.points, study.contrasts, study.today),
    }
    if efficiency(study.points).notnull().any():
        drawn["efficiency"] = efficiency_over_nodes(study.points)
    if len(study.links):
        drawn["links"] = link_goodput(study.links, names)
    if study.balance is not None:
        published = {name: pd.Series(cases) for name, cases in smith_balance(study.dataset).items()}
        drawn["balance"] = balance_over_nodes(study.balance, published, names, study.points.evidence.item())
    return drawn


def rate_over_nodes(points: xr.Dataset, fits: Mapping[str, BlockFit]) -> Figure:
    """HPL rate [Gflop/s] of every block over nodes, the fitted curves and the linear reference.

    `points` is from `derive.points`; `fits` holds a fit of `points.rate` for each interconnect that has one.
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
            if interconnect in fits:
                drawing.curve(axes, interconnect, fits[interconnect], points.nodes, "rate", lambda n, rate: rate)
        axes.set(
            xlabel="nodes", ylabel="HPL rate [Gflop/s]", xticks=points.nodes, xlim=(0, None), ylim=(0, None)
        )
        axes.legend(loc="upper left")
        return figure


def share_over_nodes(points: xr.Dataset, fits: Mapping[str, BlockFit]) -> Figure:
    """Share of DGEMM [%] of every block over nodes, with block means, 95 % t intervals and fitted bands.

    `fits` holds a fit of n times the share for each interconnect that has one.
    """
    with style.styled():
        figure, axes = drawing.new_figure(3.6)
        drawing.shares(axes, points, fits)
        axes.set(ylabel="HPL rate / DGEMM rate of the same nodes [%]")
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


def falls(points: xr.Dataset, contrasts: Sequence[Contrast], today: Sequence[Agreement] = ()) -> Figure:
    """The fall of each contrast [%]: every block, mean, 90 and 95 % intervals, the margin and the verdict.

    `today` holds another run's agreement with each contrast: its mean and where it was expected.
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
            blocks = _falls(points, contrast, design)
            spread = row + 0.16 + 0.16 * np.linspace(0, 1, len(blocks))
            axes.plot(
                blocks, spread, look.marker, color=look.color, alpha=0.6, markersize=3.5, label="one block"
            )
            drawing.judgement(axes, row, contrast, look)
        for row, agreement in enumerate(today):
            drawing.today_mark(axes, row, agreement)
        drawing.rows(axes, [_pair(points, contrast) for contrast in contrasts])
        largest = int(points.nodes.max())
        axes.set_xlabel(f"fall from {design['baseline_nodes']} to {largest} nodes [%]")
        drawing.legend_below(figure, axes, 3)
        return figure


def link_goodput(links: pd.DataFrame, shorts: Mapping[str, str]) -> Figure:
    """Goodput [Gbit/s] of every link of the survey outside (filled) and inside (open) the CPU quota.

    `links` is from `links.links`; the wire limit is a bar. `shorts` names the interconnects.
    """
    with style.styled():
        measured = list(dict.fromkeys(links.index.get_level_values("interconnect")))
        figure, axes = drawing.new_figure(0.9 + 0.4 * len(measured))
        for row, interconnect in enumerate(measured):
            look, these = style.look(interconnect), links.loc[interconnect]
            for column, fill, place in (
                ("goodput", look.color, row - 0.12),
                ("goodput_in_quota", "none", row + 0.12),
            ):
                values = these[column].dropna() / 1e9
                axes.plot(
                    values, np.full(len(values), place), look.marker, color=look.color, mfc=fill, markersize=6
                )
            limit = these.wire_limit.iloc[0] / 1e9
            if np.isfinite(limit):
                axes.plot([limit, limit], [row - 0.3, row + 0.3], color=style.INK, label="wire limit")
        if links.goodput_in_quota.notna().any():
            for label, fill in (("outside the quota", style.INK), ("inside the quota", "none")):
                axes.plot([], [], "o", color=style.INK, mfc=fill, label=label)
        axes.set_xscale("log")
        drawing.log_ticks(axes.xaxis)
        drawing.rows(axes, [shorts[interconnect] for interconnect in measured])
        axes.set_xlabel("TCP goodput [Gbit/s]")
        drawing.legend_below(figure, axes, 3)
        return figure


def balance_over_nodes(
    shares: xr.Dataset, published: Mapping[str, pd.Series], shorts: Mapping[str, str], evidence: str
) -> Figure:
    """HPL's balance n F / (BW N) (1/P + 1/Q) [flop/B] over nodes, beside a published cluster's.

    `shares` is from `balance.balance`; `published` holds, for each interconnect, the values over node counts.
    """
    with style.styled():
        figure, axes = drawing.new_figure(3.4)
        for interconnect in shares.interconnect.values:
            look, values = style.look(interconnect), shares.bandwidth_share.sel(interconnect=interconnect)
            axes.plot(
                shares.nodes, values, look.marker, color=look.color, label=f"{shorts[interconnect]}, {evidence}"
            )
        for interconnect, values in published.items():
            look = style.look(interconnect)
            axes.plot(
                values.index,
                values,
                style.PUBLISHED_MARKERS[interconnect],
                color=look.color,
                label=f"{shorts[interconnect]}, Smith cluster",
            )
        drawing.node_axis(axes, [2**power for power in range(1, 6)])
        axes.set(yscale="log", ylabel="n F / (BW N) · (1/P + 1/Q)  [flop/B]")
        drawing.log_ticks(axes.yaxis)
        drawing.legend_below(figure, axes, 2)
        return figure


def _falls(points: xr.Dataset, contrast: Contrast, design: Mapping) -> np.ndarray:
    """The relative falls [%] of the contrast's valid blocks."""
    ratio = log_ratios(points, contrast.network, contrast.reference)
    return -100 * np.expm1(differences(ratio, design["baseline_nodes"]).dropna("block").values)


def _pair(points: xr.Dataset, contrast: Contrast) -> str:
    """The contrast's two networks and its number of blocks."""
    names = short_names(points)
    return f"{names[contrast.network]} / {names[contrast.reference]}\nn = {contrast.verdict.blocks}"
