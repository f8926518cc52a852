"""The published figures of HPL over the order of the matrix: shares with their limits, and ratios."""

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.contrasts import log_ratios
from analysis.inference.over_blocks import ratios
from analysis.studies.scaling import short_names
from analysis.studies.size import Curve, Size, settings

BEYOND = 2.0  # the limit for N to infinity is drawn at so many times the largest N


def draw(study: Size) -> dict[str, Figure]:
    """The campaign's figures by name: size and size_ratio."""
    return {"size": share_over_order(study), "size_ratio": ratio_over_order(study)}


def share_over_order(study: Size) -> Figure:
    """Share of the known rate [%] of every block over N, the fitted model's band, and its limit for N to infinity."""
    with style.styled():
        figure, axes = drawing.new_figure(3.6)
        alone = study.points.squeeze("nodes")
        fitted = {curve.interconnect: curve for curve in study.curves if curve.blocks}
        limit = BEYOND * alone.N.values.max()
        for interconnect, sidestep, short in drawing.series(alone):
            x = alone.N.values * 2 ** (0.06 * sidestep)
            share = 100 * alone.share.sel(interconnect=interconnect)
            drawing.runs(axes, interconnect, x, share, short)
            drawing.intervals(axes, interconnect, x, share, "ratio")
            if interconnect in fitted:
                _model(axes, study, fitted[interconnect], limit * 2 ** (0.06 * sidestep))
        drawing.doubling_axis(axes, [*alone.N.values, limit], "order of the matrix, N")
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda N, _: f"{N:g}" if N < limit else "∞"))
        axes.set(ylabel=f"HPL rate [% of {study.points.share.attrs['of']}]", ylim=(0, None))
        axes.legend(loc="lower right")
        return figure


def ratio_over_order(study: Size) -> Figure:
    """Ratio of the primary networks' rates over N: every block, geometric mean and 95 % t interval."""
    with style.styled():
        figure, axes = drawing.new_figure(2.8)
        alone, names = study.points.squeeze("nodes"), short_names(study.dataset)
        ratio = np.exp(log_ratios(alone, study.network, study.reference))
        axes.axhline(1, color=style.INK, linewidth=0.8)
        drawing.runs(axes, study.network, alone.N.values, ratio, "one block")
        for N in study.ratios.N.values:
            at = study.ratios.sel(N=N)
            drawing.interval(axes, study.network, N, at.ratio, at.low, at.high)
        drawing.doubling_axis(axes, alone.N.values, "order of the matrix, N")
        axes.set_ylabel(f"rate on {names[study.network]}\n/ rate on {names[study.reference]}  [1]")
        return figure


def _model(axes: Axes, study: Size, curve: Curve, limit: float) -> None:
    """The fitted curve over the orders that were run, and its limit apart from them."""
    orders = np.geomspace(study.points.N.values.min(), study.points.N.values.max(), 80)
    parts = (100 * rate / study.nodes for rate in curve.blocks.band(settings(study.points, orders), "ratio"))
    drawing.band(axes, curve.interconnect, orders, *parts)
    asymptote = 100 * ratios(np.log(curve.asymptotes))
    drawing.interval(axes, curve.interconnect, limit, asymptote.ratio, asymptote.low, asymptote.high)
