"""HPL on one node with two BLAS libraries: how much faster is the tuned one, and is that the doubling of a blog?"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.derive import at_only_level, points
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import T_INTERVAL, Finding, known, of_estimate, of_fall, origin
from analysis.statistics.intervals import rates, ratios
from analysis.statistics import design as designs
from analysis.statistics.judgement import FALLS_OFF, FLAT, Judgement, judge
from analysis.wording import between, counted, number

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {
    "blas": ("hpl_blas",),
}

CLAIMED_FACTOR = 2.0  # the blog's "doubled"
NAMES = {"openblas": "OpenBLAS", "reference": "reference BLAS"}


@dataclass(frozen=True)
class Blas:
    """The campaign's dataset and all that follows from it.

    `slow` and `fast` are the levels of the factor blas that are compared. `log_ratio` is
    log(rate with the fast library / rate with the slow one) over (block, N). `factors` is over (N): `ratio`
    (geometric mean) with its 95 % t interval `low`, `high` and `blocks`; `rates` over (blas, N) holds those of the
    rate [Gflop/s], with the harmonic `mean`. `claim` judges, at the largest N, whether the slow library's rate
    falls below the fast one's by more than 1 - 1 / CLAIMED_FACTOR: it `falls off` where the factor is
    beyond the claimed one with 95 % one-sided confidence, and is `flat` where it is below.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    slow: str
    fast: str
    log_ratio: xr.DataArray
    factors: xr.Dataset
    rates: xr.Dataset
    claim: Judgement

    @property
    def names(self) -> tuple[str, str]:
        """The names of the fast and of the slow library."""
        return NAMES.get(self.fast, self.fast), NAMES.get(self.slow, self.slow)


def analyse(hpl_blas: xr.Dataset) -> Blas:
    """Derive points, factors, rates and the claim.

    Raises FalloffError when there is no HPL trial, or there are several interconnects or node counts.
    """
    derived = points(hpl_blas)
    slow, fast = designs.read(hpl_blas).pair
    rate = at_only_level(derived, "interconnect", "nodes").rate
    log_rate = np.log(rate)
    log_ratio = log_rate.sel(blas=fast, drop=True) - log_rate.sel(blas=slow, drop=True)
    largest = log_ratio.sel(N=log_ratio.N.max())
    return Blas(
        dataset=hpl_blas,
        points=derived,
        slow=slow,
        fast=fast,
        log_ratio=log_ratio.rename("log_ratio"),
        factors=ratios(log_ratio),
        rates=rates(rate),
        claim=judge(-largest.values, 1 - 1 / CLAIMED_FACTOR, derived.evidence.item()),
    )


def bound(study: Blas) -> float | None:
    """The one-sided 95 % bound on the factor: the upper one where it is below the claimed one, else the lower one."""
    if study.claim.interval is None:
        return None
    low, high = study.claim.interval
    return 1 / (1 - (high if study.claim.answer == FLAT else low))


def finding(study: Blas) -> str:
    """How much faster HPL is with the fast library at the largest N, in plain English (Markdown)."""
    fast, slow = study.names
    most = study.factors.sel(N=study.factors.N.max())
    basis = f"{counted(int(most.blocks), 'block')}, {study.claim.evidence} evidence"
    if not most.blocks:
        return f"**How much faster HPL is with {fast} cannot be said**: no block has both runs of the largest matrix."
    if study.claim.answer not in (FALLS_OFF, FLAT):
        said = f"**Whether {fast} at least doubles HPL's rate over the {slow} is open** ({basis})."
    else:
        more = study.claim.answer == FALLS_OFF
        said = (
            f"**With {fast} HPL is {number(float(most.ratio))} times as fast as with the {slow} on one node** "
            f"(95 % interval {between((float(most.low), float(most.high)), 2)}, {basis}). "
            f"That is {'more' if more else 'less'} than the doubling that a blog reports of another library: "
            f"{'above' if more else 'below'} {number(bound(study))} with 95 % confidence."
        )
    return f"{said} {study.dataset.attrs.get('caveat', '')}".strip()


def findings(study: Blas) -> Iterator[Finding]:
    """The claim, and the factor at the largest N, as data."""
    source, most = origin("hpl_blas", study.dataset), study.factors.sel(N=study.factors.N.max())
    doubled = f"HPL's rate with {study.slow} BLAS is less than half of that with {study.fast}"
    yield of_fall(source, doubled, study.claim)
    said = f"HPL's rate with {study.fast} over that with {study.slow} BLAS, N = {int(most.N)}"
    ends = float(most.low), float(most.high)
    blocks = int(most.blocks)
    yield of_estimate(source, said, "ratio", "1", float(most.ratio), ends, T_INTERVAL, n=blocks)


def blas_over_order(study: Blas) -> Figure:
    """Rate [Gflop/s] with either library, and the factor between their rates, of every block over N."""
    with style.styled():
        figure, (left, right) = drawing.new_figures(3.0, columns=2)
        _rates(left, study)
        _factors(right, study)
        for axes in (left, right):
            drawing.doubling_axis(axes, study.factors.N.values, "order N of the matrix [1]")
        drawing.legend_below(figure, left, 2)
        return figure


def _rates(axes: Axes, study: Blas) -> None:
    rate = study.points.rate.squeeze(["interconnect", "nodes"], drop=True)
    for blas, name in zip((study.fast, study.slow), study.names):
        drawing.runs(axes, blas, rate.N.values, rate.sel(blas=blas), name)
        drawing.intervals(axes, blas, rate.N.values, rate.sel(blas=blas), "rate")
    axes.set(ylabel="HPL rate [Gflop/s]", ylim=(0, None))


def _factors(axes: Axes, study: Blas) -> None:
    axes.axhline(CLAIMED_FACTOR, color=style.INK, linewidth=0.8)
    axes.text(0.02, CLAIMED_FACTOR, "doubled", va="bottom", transform=axes.get_yaxis_transform())
    drawing.runs(axes, study.fast, study.log_ratio.N.values, np.exp(study.log_ratio), "")
    ends = (study.factors[end].values for end in ("ratio", "low", "high"))
    drawing.interval(axes, study.fast, study.factors.N.values, *ends)
    axes.set(ylabel=f"{' / '.join(study.names)} [1]", ylim=(0, None))


def figures(study: Blas) -> dict[str, Exhibit]:
    """Rates with either library, and the factor between them."""
    return {
        "blas": Exhibit(
            "blas",
            blas_over_order(study),
            "HPL on one node with either library: rates, and the factor between them",
            _basis(study),
            "HPL rate with either BLAS library, and the factor between them, over the order of the matrix",
            "Small marks are single blocks; open marks are harmonic means of the rates and geometric means of the factors.",
            rests_on=FIGURES["blas"],
        )
    }


def factors_table(study: Blas) -> Table:
    """Rates and the factor between them by the order of the matrix."""
    fast, slow = study.names
    columns = ("N", f"{fast} [Gflop/s]", f"{slow} [Gflop/s]", "Factor [1]", "Blocks")
    caption = "HPL's rates (harmonic means) and the factor between them (geometric means), with their 95 % intervals"
    rows = [_row(study, N) for N in study.factors.N.values.tolist()]
    return Table("blas", columns, "rlllr", rows, caption, _basis(study))


def _row(study: Blas, N: int) -> tuple[str, ...]:
    factor = study.factors.sel(N=N)
    libraries = [study.rates.sel(N=N, blas=blas) for blas in (study.fast, study.slow)]
    cells = [_with_interval(at["mean"], at) for at in libraries]
    return str(N), *cells, _with_interval(factor.ratio, factor), str(int(factor.blocks))


def _with_interval(mean: xr.DataArray, at: xr.Dataset) -> str:
    low, high = float(at.low), float(at.high)
    interval = "" if np.isnan(low) else f" ({number(low)} to {number(high)})"
    return number(known(float(mean))) + interval


def _basis(study: Blas) -> Basis:
    return Basis(study.claim.evidence, study.points.sizes["block"], "95 % t intervals")
