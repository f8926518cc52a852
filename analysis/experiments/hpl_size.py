"""How does HPL's efficiency grow with its matrix on the same nodes, and does the network still
matter in the limit?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from analysis import drawing, exhibit, models, style
from analysis.attributes import short_names
from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, points
from analysis.findings import (
    Finding,
    at_place,
    interval_in_words,
    judged_in_words,
    of_control,
    of_estimate,
    origin,
    resting_on,
)
from analysis.fitting.adequacy import follows
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.quoting import quoted
from analysis.statistics import design as designs
from analysis.statistics.intervals import ratios
from analysis.statistics.judgement import Control, judge_control
from analysis.wording import counted, fixed, listed, paragraphs, percent
from runners.record import FalloffError

FIGURES = {"size": ("hpl_size",)}  # what each rests on
FEWEST = 3  # blocks needed to state an interval

# HPL's model without its bounds. In a single block, noise may well make a small cost negative. Cut off at 0, the mean
# over the blocks would be too large, and its interval would miss the truth more often than it claims.
HPL = replace(
    models.find("hpl"), bounds=dict.fromkeys(models.find("hpl").parameters, (-np.inf, np.inf))
)


@dataclass(frozen=True)
class Curve:
    """HPL's model on one interconnect, fitted over N to every block.

    It is fitted to n times the share, the rate in units of one node's known rate, so that alpha and
    beta are in flop at that rate and gamma has no unit. `asymptotes`, over (block), is 1 / gamma,
    the share for N to infinity. `blocks` and `asymptotes` are None if the data do not allow the
    fit; `refused` says why. `follows` is whether the mean curve may be drawn through the points.
    """

    interconnect: str
    blocks: BlockFit | None = None
    asymptotes: xr.DataArray | None = None
    follows: bool = False
    refused: str = ""


@dataclass(frozen=True)
class Size:
    """The campaign's dataset and all results, on its `nodes` nodes.

    `shares` is over (interconnect, N): `ratio` (geometric mean), 95 % t interval `low`, `high` and
    `blocks` of the share. `ratios` has the same over (N) for the rate on `network` over that on
    `reference`, the design's primary pair. `agreement` judges whether the ratio of their asymptotes
    is 1, so that the network costs nothing in the limit.
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

    Raises FalloffError if there is no HPL trial or there are several node counts.
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
    """The x of HPL's model at these orders: rows N, NB, P and Q, shape (4, orders)."""
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
    """The network's cost at the smallest and the largest size, and in the limit, in plain English
    (Markdown)."""
    both = study.ratios.dropna("N", subset=["ratio"])
    if not both.sizes["N"]:
        return "**How much the network costs at each size cannot be said**: no block has both networks at one size."
    names, least, most = short_names(study.dataset), both.isel(N=0), both.isel(N=-1)
    share, *ends = at_place(most)
    interval = interval_in_words(ends) if most.blocks >= FEWEST else ""
    basis = resting_on(study.dataset, int(most.blocks), interval)
    sentences = [
        f"**On {counted(study.nodes, 'node')} {names[study.network]} reaches {percent(float(least.ratio))} of "
        f"{names[study.reference]}'s rate with a matrix of order {int(least.N)}, and {percent(share)} with "
        f"order {int(most.N)}** ({basis}).",
        _levels(study),
        _limit(study),
        quoted(study.dataset.attrs.get("caveat", "")),
    ]
    return paragraphs(sentences)


def _levels(study: Size) -> str:
    """The share of each network at the smallest and at the largest size."""
    names = short_names(study.dataset)
    ends = study.shares.ratio.isel(N=[0, -1]).dropna("interconnect")
    spans = [
        f"from {percent(least)} to {percent(most)} on {names[name]}"
        for name, (least, most) in zip(ends.interconnect.values.tolist(), ends.values)
    ]
    of = study.points.share.attrs["of"]
    return f"As a share of {of}, HPL rises {listed(spans)}." if spans else ""


def _limit(study: Size) -> str:
    """Whether the network still costs anything in the limit of HPL's own model."""
    names, agreement = short_names(study.dataset), study.agreement
    for curve in study.curves:
        if reason := curve.refused or ("" if curve.follows else "it misses the points."):
            return (
                f"HPL's own model gives no limit on {names[curve.interconnect]}: {quoted(reason)}"
            )
    if agreement.kind == "undecided":
        return ""
    basis = f"ratio {fixed(agreement.ratio, 3)}, {judged_in_words(agreement, 3)}, {counted(agreement.blocks, 'block')}"
    if agreement.kind == "holds":
        within = percent(agreement.margin, 0)
        return f"By HPL's own model both tend to the same limit, within {within} ({basis})."
    slow, fast = names[study.network], names[study.reference]
    return f"By HPL's own model {slow} tends to another limit than {fast} ({basis})."


def findings(study: Size) -> Iterator[Finding]:
    """The ratio at the largest size and that of the limits, as data."""
    names, source = short_names(study.dataset), origin("hpl_size", study.dataset)
    slow, fast = names[study.network], names[study.reference]
    both = study.ratios.dropna("N", subset=["ratio"])
    if both.sizes["N"]:
        most = both.isel(N=-1)
        statement = f"{slow}'s share of {fast}'s rate with the largest matrix"
        share, blocks = at_place(most), int(most.blocks)
        yield of_estimate(source, statement, "share", share, blocks, primary=True)
    statement = f"{slow} and {fast} tend to one rate with larger matrices"
    yield of_control(source, statement, study.agreement, primary=True)


def figures(study: Size) -> dict[str, exhibit.Exhibit]:
    """Share of the known rate [%] over N: every run, means with intervals, and HPL's model if it
    follows the data."""
    with style.styled():
        figure, axes = drawing.new_figure(3.4)
        alone, names = study.points.squeeze("nodes"), short_names(study.dataset)
        for curve in study.curves:
            name, places = curve.interconnect, alone.N.values
            share = 100 * alone.share.sel(interconnect=name)
            means = 100 * study.shares.sel(interconnect=name)
            if alone.sizes["block"] < FEWEST:
                means = means.assign(low=np.nan * means.low, high=np.nan * means.high)
            drawing.runs_and_means(axes, name, places, share, means, names[name])
            if curve.follows:
                orders = np.geomspace(alone.N.min(), alone.N.max(), 40).round()
                band = curve.blocks.band(settings(alone, orders), "ratio")
                drawing.band(axes, name, orders, *(100 * rate / study.nodes for rate in band))
        drawing.doubling_axis(axes, alone.N.values, "order of the matrix, N [1]")
        axes.set(ylabel=f"HPL rate [% of {study.points.share.attrs['of']}]")
        axes.legend(loc="lower right")
    has_intervals = study.points.sizes["block"] >= FEWEST
    return exhibit.only(
        FIGURES,
        figure,
        f"HPL's rate on {counted(study.nodes, 'node')} over the order of the matrix, as a share of "
        f"{study.points.share.attrs['of']}",
        exhibit.Basis.of_dataset(
            study.dataset, "95 % t intervals" if has_intervals else "every run is drawn"
        ),
        "Share of the nodes' known rate over the order of the matrix, a series for each network",
        f"{drawing.RUNS_AND_MEANS} Curves, if any, are HPL's own model with its 95 % band.",
    )
