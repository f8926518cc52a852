"""How does HPL's efficiency grow with its matrix on the same nodes, and does the network still count in the limit?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, models, style
from analysis.attributes import short_names
from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, points
from analysis.exhibit import Basis, Exhibit
from analysis.findings import T_INTERVAL, Finding, of_control, of_estimate, origin
from analysis.fitting.adequacy import follows
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.statistics import design as designs
from analysis.statistics.intervals import ratios
from analysis.statistics.judgement import Control, judge_control
from analysis.wording import between, counted, fixed, listed, percent, percent_range, plain
from runners.record import FalloffError

FIGURES = {"size": ("hpl_size",)}  # what each rests on
# Of a doubling: between two networks, and from a mean to its runs.
SIDESTEP, RUNS_ASIDE = 0.11, 0.05
FEWEST = 3  # blocks with which an interval is told

# HPL's model without its bounds. In a single block, noise may well make a small cost negative; cut off at 0, the mean
# over the blocks would be too large and its interval miss the truth more often than it says.
HPL = replace(
    models.find("hpl"), bounds=dict.fromkeys(models.find("hpl").parameters, (-np.inf, np.inf))
)


@dataclass(frozen=True)
class Curve:
    """HPL's model on one interconnect, fitted over N to every block.

    It is of n times the share, the rate in units of one node's known rate, so that alpha and beta are in flop at that
    rate and gamma is without unit. `asymptotes`, over (block), is 1 / gamma, the share for N to infinity. `blocks` and
    `asymptotes` are None where the data do not allow the fit, and `refused` says why. `follows` is whether the mean
    curve may be drawn through the points.
    """

    interconnect: str
    blocks: BlockFit | None = None
    asymptotes: xr.DataArray | None = None
    follows: bool = False
    refused: str = ""


@dataclass(frozen=True)
class Size:
    """The campaign's dataset and all that follows from it, on its `nodes` nodes.

    `shares` is over (interconnect, N): `ratio` (geometric mean), 95 % t interval `low`, `high` and `blocks` of the
    share. `ratios` is the same over (N) of the rate on `network` over that on `reference`, the design's primary pair.
    `agreement` judges whether the ratio of their asymptotes is 1: then the network costs nothing in the limit.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    nodes: int
    network: str
    reference: str
    shares: xr.Dataset
    ratios: xr.Dataset
    curves: tuple[Curve, ...]
    agreement: Control


def analyse(hpl_size: xr.Dataset) -> Size:
    """Derive points, shares, ratios and curves.

    Raises FalloffError when there is no HPL trial or there are several node counts.
    """
    derived, design = points(hpl_size), designs.read(hpl_size)
    network, reference = design.pair
    alone = at_only_level(derived, "nodes")
    curves = {name: _curve(alone, name) for name in alone.interconnect.values.tolist()}
    slow, fast = (curves[name].asymptotes for name in design.pair)
    compared = [] if slow is None or fast is None else np.log(slow / fast).values
    return Size(
        dataset=hpl_size,
        points=derived,
        nodes=alone.nodes.item(),
        network=network,
        reference=reference,
        shares=ratios(np.log(alone.share)),
        ratios=ratios(log_ratios(alone, network, reference)),
        curves=tuple(curves.values()),
        agreement=judge_control(compared, design.margin),
    )


def settings(derived: xr.Dataset, orders) -> np.ndarray:
    """What HPL's model takes for x at these orders: rows N, NB, P and Q, shape (4, orders)."""
    orders = np.asarray(orders, float)
    return np.array(
        [orders, *(np.full_like(orders, derived[name].max()) for name in ("NB", "P", "Q"))]
    )


def _curve(alone: xr.Dataset, interconnect: str) -> Curve:
    share = alone.share.sel(interconnect=interconnect).transpose("block", "N")
    orders, rate = settings(alone, share.N), alone.nodes.item() * share.values
    try:
        fitted = fit_blocks(HPL, orders, rate)
    except FalloffError as error:
        return Curve(interconnect, refused=str(error))
    gamma = fitted.by_block[:, HPL.parameters.index("gamma")]
    if unlimited := int((gamma <= 0).sum()):
        reason = f"The fitted rate has no limit in {unlimited} of {fitted.blocks} blocks; run larger matrices."
        return Curve(interconnect, refused=reason)
    mean_curve, *_ = fitted.band(orders, "ratio")
    return Curve(
        interconnect,
        fitted,
        asymptotes=xr.DataArray(1 / gamma, {"block": share.block[share.notnull().all("N")].values}),
        follows=follows(rate, mean_curve, len(HPL.parameters)),
    )


def finding(study: Size) -> str:
    """How much the network costs at the smallest and the largest size, and in the limit, in plain English (Markdown)."""
    both = study.ratios.dropna("N", subset=["ratio"])
    if not both.sizes["N"]:
        return "**How much the network costs at each size cannot be said**: no block has both networks at one size."
    names = short_names(study.dataset)
    least, most, evidence = both.isel(N=0), both.isel(N=-1), study.points.evidence.item()
    ends, interval = (float(most.low), float(most.high)), ""
    if np.isfinite(ends[0]) and most.blocks >= FEWEST:
        interval = f"95 % interval {percent_range(ends)}, "
    sentences = [
        f"**On {counted(study.nodes, 'node')} {names[study.network]} reaches {percent(float(least.ratio))} of "
        f"{names[study.reference]}'s rate with a matrix of order {int(least.N)}, and {percent(float(most.ratio))} with "
        f"order {int(most.N)}** ({interval}{counted(int(most.blocks), 'block')}, {evidence} evidence).",
        _levels(study),
        _limit(study),
        plain(study.dataset.attrs.get("caveat", "")),
    ]
    return " ".join(filter(None, sentences))


def _levels(study: Size) -> str:
    """From where to where each network's share goes."""
    names, of = short_names(study.dataset), f" of {study.points.share.attrs['of']}"
    ends = study.shares.ratio.isel(N=[0, -1]).dropna("interconnect")
    spans = [
        f"from {percent(least)} to {percent(most)}{'' if place else of} on {names[name]}"
        for place, (name, (least, most)) in enumerate(zip(ends.interconnect.values, ends.values))
    ]
    return f"HPL rises {listed(spans)}." if spans else ""


def _limit(study: Size) -> str:
    """Whether the network still costs anything in the limit of HPL's own model."""
    names, agreement = short_names(study.dataset), study.agreement
    refused = [curve for curve in study.curves if curve.refused]
    missed = [curve for curve in study.curves if not curve.refused and not curve.follows]
    if refused:
        return f"HPL's own model gives no limit on {names[refused[0].interconnect]}: {plain(refused[0].refused)}"
    if missed:
        where = listed([names[curve.interconnect] for curve in missed])
        return f"HPL's own model misses the points on {where}, so that no limit is given."
    blocks = counted(agreement.blocks, "block")
    if agreement.kind == "undecided":
        return ""
    basis = (
        f"(ratio {fixed(agreement.ratio, 3)}, {100 * agreement.confidence:g} % interval "
        f"{between(agreement.interval, 3)}, {blocks})"
    )
    if agreement.kind == "holds":
        within = percent(agreement.margin, 0)
        return f"By HPL's own model both tend to the same limit, within {within} {basis}."
    slow, fast = names[study.network], names[study.reference]
    return f"By HPL's own model {slow} tends to another limit than {fast} {basis}."


def findings(study: Size) -> Iterator[Finding]:
    """The ratio at the largest size and that of the limits, as data."""
    names, source = short_names(study.dataset), origin("hpl_size", study.dataset)
    slow, fast = names[study.network], names[study.reference]
    both = study.ratios.dropna("N", subset=["ratio"])
    if both.sizes["N"]:
        most = both.isel(N=-1)
        statement = f"{slow} reaches this part of {fast}'s rate, largest matrix"
        share, *ends = (float(most[end]) for end in ("ratio", "low", "high"))
        further = {"n": int(most.blocks), "primary": True}
        yield of_estimate(source, statement, "share", "1", share, ends, T_INTERVAL, **further)
    statement = f"{slow} and {fast} tend to one rate with larger matrices"
    yield replace(of_control(source, statement, study.agreement), primary=True)


def figures(study: Size) -> dict[str, Exhibit]:
    """Shares over the order of the matrix."""
    curves, means, evidence = "", "", study.points.evidence.item()
    blocks = None if evidence == "simulated" else study.points.sizes["block"]
    basis = Basis(evidence, blocks, "95 % t intervals" if blocks else "")
    if study.points.sizes["block"] >= FEWEST:
        means = " Open marks and bars are geometric means with their intervals."
    if any(curve.follows for curve in study.curves):
        curves = " Curves are HPL's own model, fitted to each block, with its 95 % band, where there are blocks enough."
    return {
        "size": Exhibit(
            "size",
            share_over_order(study),
            f"HPL's rate on {counted(study.nodes, 'node')} over the order of the matrix, as a share of "
            f"{study.points.share.attrs['of']}",
            basis,
            "Share of the nodes' known rate over the order of the matrix, a series for each network",
            f"Small marks are single runs.{means}{curves}",
            rests_on=FIGURES["size"],
        )
    }


def share_over_order(study: Size) -> Figure:
    """Share of the known rate [%] over N: every run, means with intervals, and HPL's model where it follows."""
    with style.styled():
        figure, axes = drawing.new_figure(3.4)
        alone = study.points.squeeze("nodes")
        drawn = {curve.interconnect: curve.blocks for curve in study.curves if curve.follows}
        for interconnect, sidestep, short in drawing.series(alone):
            places = alone.N.values * 2 ** (SIDESTEP * sidestep)
            share = 100 * alone.share.sel(interconnect=interconnect)
            drawing.runs(axes, interconnect, places / 2**RUNS_ASIDE, share, short)
            if study.points.sizes["block"] >= FEWEST:
                drawing.intervals(axes, interconnect, places, share, "ratio")
            if interconnect in drawn:
                orders = np.geomspace(alone.N.min(), alone.N.max(), 80)
                band = drawn[interconnect].band(settings(alone, orders), "ratio")
                drawing.band(
                    axes, interconnect, orders, *(100 * rate / study.nodes for rate in band)
                )
        drawing.doubling_axis(axes, alone.N.values, "order of the matrix, N [1]")
        axes.set(ylabel=f"HPL rate [% of {study.points.share.attrs['of']}]")
        axes.legend(loc="lower right")
        return figure
