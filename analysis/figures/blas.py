"""The published figure of HPL with two BLAS libraries: rates, and the factor between them."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.studies.blas import CLAIMED_FACTOR, Blas

NAMES = {"openblas": "OpenBLAS", "reference": "reference BLAS"}


def draw(study: Blas) -> dict[str, Figure]:
    """The campaign's figure by name: blas."""
    return {"blas": blas_over_order(study)}


def blas_over_order(study: Blas) -> Figure:
    """Rate [Gflop/s] with either library, and the factor between their rates, of every block over N."""
    with style.styled():
        figure, (left, right) = drawing.new_figures(3.0, columns=2)
        _rates(left, study)
        _factors(right, study)
        for axes in (left, right):
            drawing.doubling_axis(axes, study.factors.N.values, "order of the matrix, N")
        drawing.legend_below(figure, left, 2)
        return figure


def _rates(axes: Axes, study: Blas) -> None:
    rate = study.points.rate.squeeze(["interconnect", "nodes"], drop=True)
    for blas in (study.fast, study.slow):
        drawing.runs(axes, blas, rate.N.values, rate.sel(blas=blas), NAMES.get(blas, blas))
        drawing.intervals(axes, blas, rate.N.values, rate.sel(blas=blas), "rate")
    axes.set(ylabel="HPL rate [Gflop/s]", ylim=(0, None))


def _factors(axes: Axes, study: Blas) -> None:
    axes.axhline(CLAIMED_FACTOR, color=style.INK, linewidth=0.8)
    axes.text(0.02, CLAIMED_FACTOR, "doubled", va="bottom", transform=axes.get_yaxis_transform())
    drawing.runs(axes, study.fast, study.log_ratio.N.values, np.exp(study.log_ratio), "")
    for N in study.factors.N.values:
        at = study.factors.sel(N=N)
        drawing.interval(axes, study.fast, N, *(float(at[end]) for end in ("ratio", "low", "high")))
    fast, slow = (NAMES.get(blas, blas) for blas in (study.fast, study.slow))
    axes.set(ylabel=f"{fast} / {slow}  [1]", ylim=(0, None))
