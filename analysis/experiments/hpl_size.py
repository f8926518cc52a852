"""How does HPL's efficiency grow with its matrix on the same nodes, and does the network still count in the limit?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, models, style
from analysis.attributes import interconnects, short_names
from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, points
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import Finding, known, of_control, origin
from analysis.fitting.adequacy import follows
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.fitting.compare import Comparison, compare
from analysis.statistics.intervals import mean_over, ratios
from analysis.models.hpl import times
from analysis.statistics import design as designs
from analysis.statistics.judgement import Control, judge_control
from analysis.wire import wire_limit
from analysis.wording import (
    UNKNOWN,
    between,
    counted,
    duration,
    duration_range,
    estimate,
    fixed,
    listed,
    percent,
    plain,
)
from runners.record import FalloffError

FIGURES = {"size": ("hpl_size",)}  # what each rests on
NEAR = 0.9  # the part of the limit whose order is asked for
EMPIRICAL = ("constant", "power_law")  # what HPL's model has to be better than
ELEMENT = 64  # bits of a matrix element
BEYOND = 2.0  # the limit for N to infinity is drawn at so many times the largest N
# Of a doubling: between two networks, and from a mean to its runs.
SIDESTEP, RUNS_ASIDE = 0.11, 0.05

# HPL's model without its bounds. In a single block, noise may well make a small cost negative; cut off at 0, the mean over
# the blocks would be too large and its interval miss the truth more often than it says.
HPL = replace(
    models.find("hpl"), bounds=dict.fromkeys(models.find("hpl").parameters, (-np.inf, np.inf))
)


@dataclass(frozen=True)
class Curve:
    """HPL's model on one interconnect, fitted over N to every block.

    It is of n times the share, the rate in units of one node's known rate, so that alpha and beta are in flop at that rate
    and gamma is without unit. Over (block), `asymptotes` is 1 / gamma, the share for N to infinity, and `orders_near` the N
    at which the curve comes near it, at the part NEAR of it. All are None where the data do not allow the fit, and
    `refused` says why. `follows` is whether the mean curve may be drawn through the points. `comparisons` sets it beside
    models that know nothing of HPL.
    """

    interconnect: str
    comparisons: tuple[Comparison, ...]
    blocks: BlockFit | None = None
    asymptotes: xr.DataArray | None = None
    orders_near: xr.DataArray | None = None
    follows: bool = False
    refused: str = ""

    @property
    def limit(self) -> xr.Dataset:
        """The limit [1]: `ratio` (geometric mean), 95 % t interval `low`, `high` and `blocks`."""
        return ratios(np.log(self.asymptotes))


@dataclass(frozen=True)
class Size:
    """The campaign's dataset and all that follows from it, on its `nodes` nodes.

    `shares` is over (interconnect, N): `ratio` (geometric mean), 95 % t interval `low`, `high` and `blocks` of the share
    (`derive.known_rate` says of what). `ratios` is over (N): `ratio` of the rates on `network` and `reference`, the design's
    primary pair (geometric mean), `low`, `high` and `blocks`. `agreement` judges whether the ratio of their asymptotes is 1:
    then the network costs nothing in the limit.
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

    @property
    def evidence(self) -> str:
        """The kind of the data."""
        return self.points.evidence.item()

    @property
    def node_rate(self) -> float:
        """What one node is known to compute [flop/s]."""
        return 1e9 * float(mean_over(self.points.known_rate / self.points.nodes, ..., "rate"))


def analyse(hpl_size: xr.Dataset) -> Size:
    """Derive points, shares, ratios and curves.

    Raises FalloffError when there is no HPL trial or there are several node counts.
    """
    derived = points(hpl_size)
    design = designs.read(hpl_size)
    network, reference = design.pair
    alone = at_only_level(derived, "nodes")
    curves = {name: _curve(alone, name) for name in alone.interconnect.values.tolist()}
    return Size(
        dataset=hpl_size,
        points=derived,
        nodes=alone.nodes.item(),
        network=network,
        reference=reference,
        shares=ratios(np.log(alone.share)),
        ratios=ratios(log_ratios(alone, network, reference)),
        curves=tuple(curves.values()),
        agreement=_agreement(curves[network], curves[reference], design.margin),
    )


def settings(derived: xr.Dataset, orders) -> np.ndarray:
    """What HPL's model takes for x at these orders: rows N, NB, P and Q, shape (4, orders)."""
    orders = np.asarray(orders, float)
    return np.array(
        [orders, *(np.full_like(orders, derived[name].max()) for name in ("NB", "P", "Q"))]
    )


def order_of_part(part, alpha, beta, gamma, NB, P, Q):
    """The order N at which HPL's model reaches this part of its limit P Q / gamma; 0 where it always does.

    With messages, elements and flops counted as in `models.hpl`, rate = part P Q / gamma is a quadratic equation in N after
    division by N; its larger root is where the curve stays above.
    """
    messages, elements, flops = (count.item() for count in times(np.array([[1.0], [NB], [P], [Q]])))
    scale = part * 2 / (3 * flops * gamma)
    linear = 3 / 2 - scale * beta * elements
    discriminant = linear**2 + 8 / 3 * (1 - part) * scale * alpha * messages
    root = np.sqrt(np.maximum(discriminant, 0)) - linear
    return np.where(discriminant >= 0, np.maximum(root, 0) / (4 / 3 * (1 - part)), 0.0)


def _curve(alone: xr.Dataset, interconnect: str) -> Curve:
    share = alone.share.sel(interconnect=interconnect).transpose("block", "N")
    orders, rate = settings(alone, share.N), alone.nodes.item() * share.values
    comparisons = (
        *compare([HPL], orders, rate),
        *compare(map(models.find, EMPIRICAL), share.N, rate),
    )
    try:
        fitted = fit_blocks(HPL, orders, rate)
    except FalloffError as error:
        return Curve(interconnect, comparisons, refused=str(error))
    alpha, beta, gamma = fitted.by_block.T
    unlimited = int((gamma <= 0).sum())
    if unlimited:
        reason = f"The fitted rate has no limit in {unlimited} of {fitted.blocks} blocks; run larger matrices."
        return Curve(interconnect, comparisons, refused=reason)
    block = {"block": share.block[share.notnull().all("N")].values}
    mean_curve, *_ = fitted.band(orders, "ratio")
    return Curve(
        interconnect,
        comparisons,
        fitted,
        asymptotes=xr.DataArray(1 / gamma, block),
        orders_near=xr.DataArray(order_of_part(NEAR, alpha, beta, gamma, *orders[1:, 0]), block),
        follows=follows(rate, mean_curve, len(HPL.parameters)),
    )


def _agreement(network: Curve, reference: Curve, margin: float) -> Control:
    if network.asymptotes is None or reference.asymptotes is None:
        return judge_control([], margin)
    return judge_control(np.log(network.asymptotes / reference.asymptotes).values, margin)


def share_over_order(study: Size) -> Figure:
    """Share of the known rate [%] over N: every run, means with intervals, HPL's model where it follows, and its limit."""
    with style.styled():
        figure, axes = drawing.new_figure(3.4)
        alone = study.points.squeeze("nodes")
        drawn = {curve.interconnect: curve for curve in study.curves if curve.follows}
        limit = BEYOND * alone.N.values.max()
        for interconnect, sidestep, short in drawing.series(alone):
            aside = 2 ** (SIDESTEP * sidestep)
            share = 100 * alone.share.sel(interconnect=interconnect)
            drawing.runs(axes, interconnect, alone.N.values * aside / 2**RUNS_ASIDE, share, short)
            drawing.intervals(axes, interconnect, alone.N.values * aside, share, "ratio")
            if interconnect in drawn:
                _model(axes, study, drawn[interconnect], limit * aside)
        ticks = [*alone.N.values, limit] if drawn else alone.N.values
        drawing.doubling_axis(axes, ticks, "order of the matrix, N [1]")
        axes.xaxis.set_major_formatter(
            ticker.FuncFormatter(lambda N, _: f"{N:g}" if N < limit else "∞")
        )
        axes.set(ylabel=f"HPL rate [% of {study.points.share.attrs['of']}]")
        axes.legend(loc="lower right")
        return figure


def _model(axes: Axes, study: Size, curve: Curve, limit: float) -> None:
    """The fitted curve over the orders that were run, and its limit apart from them."""
    orders = np.geomspace(study.points.N.values.min(), study.points.N.values.max(), 80)
    band = curve.blocks.band(settings(study.points, orders), "ratio")
    drawing.band(axes, curve.interconnect, orders, *(100 * rate / study.nodes for rate in band))
    ends = (100 * curve.limit[end] for end in ("ratio", "low", "high"))
    drawing.interval(axes, curve.interconnect, limit, *ends)


def finding(study: Size) -> str:
    """How much the network costs at the smallest and the largest size, and in the limit, in plain English (Markdown)."""
    both = study.ratios.sel(N=study.ratios.ratio.notnull())
    if not both.sizes["N"]:
        return "**How much the network costs at each size cannot be said**: no block has both networks at one size."
    names = short_names(study.dataset)
    slow, fast = names[study.network], names[study.reference]
    least, most = both.isel(N=0), both.isel(N=-1)
    interval = "" if np.isnan(most.low) else f"95 % interval {_ratio_interval(most)}, "
    basis = f"({interval}{counted(int(most.blocks), 'block')}, {study.evidence} evidence)"
    said = [
        f"**On {counted(study.nodes, 'node')}, {slow} reaches {percent(float(most.ratio))} of {fast}'s rate with a matrix of "
        f"order {int(most.N)}** {basis}, and {percent(float(least.ratio))} with one of order {int(least.N)}.",
        _levels(study),
        _limit(study),
        _foretold(study),
        plain(study.dataset.attrs.get("caveat", "")),
    ]
    return " ".join(filter(None, said))


def _ratio_interval(at: xr.Dataset) -> str:
    return f"{between((100 * float(at.low), 100 * float(at.high)), 1)} %"


def _levels(study: Size) -> str:
    """From where to where each network's share goes."""
    names, first = short_names(study.dataset), f" of {study.points.share.attrs['of']}"
    spans = []
    for name in study.shares.interconnect.values.tolist():
        least, most = study.shares.ratio.sel(interconnect=name).values[[0, -1]]
        if np.isfinite(least) and np.isfinite(most):
            end = f"{percent(most)}{'' if spans else first}"
            spans.append(f"from {percent(least)} to {end} on {names[name]}")
    return f"HPL rises {listed(spans)}." if spans else ""


def _limit(study: Size) -> str:
    """Whether the network still costs anything in the limit of HPL's own model."""
    names, agreement = short_names(study.dataset), study.agreement
    slow, fast = names[study.network], names[study.reference]
    refused = [curve for curve in study.curves if curve.refused]
    missed = [curve for curve in study.curves if not curve.refused and not curve.follows]
    if refused:
        return f"HPL's own model gives no limit on {names[refused[0].interconnect]}: {plain(refused[0].refused)}"
    if missed:
        where = listed([names[curve.interconnect] for curve in missed])
        return f"HPL's own model misses the points on {where}, so that no limit is given."
    if agreement.kind == "undecided":
        return f"Whether both tend to the same limit is open ({counted(agreement.blocks, 'block')} with a whole curve on both)."
    level, interval = 100 * agreement.confidence, between(agreement.interval, 3)
    basis = f"ratio {fixed(agreement.ratio, 3)}, {level:g} % interval {interval}, {counted(agreement.blocks, 'block')}"
    if agreement.kind == "holds":
        return f"By HPL's own model both tend to the same limit, within {percent(agreement.margin, 0)} ({basis})."
    return f"By HPL's own model {slow} tends to another limit than {fast} ({basis})."


def _foretold(study: Size) -> str:
    """Whether HPL's own model predicts the largest size from the smaller ones."""
    margin = designs.read(study.dataset).margin
    models_of = [it for curve in study.curves for it in curve.comparisons if it.model is HPL]
    ends = [it.held_out.interval if it.held_out else (np.nan, np.nan) for it in models_of]
    within = percent(margin, 0)
    if all(-margin <= low and high <= margin for low, high in ends):
        return f"The smaller sizes predict the largest within {within}, by HPL's own model."
    if any(low > margin or high < -margin for low, high in ends):
        return f"The smaller sizes do not predict the largest within {within}, even by HPL's own model."
    return f"Whether the smaller sizes predict the largest within {within} is open."


def findings(study: Size) -> Iterator[Finding]:
    """The ratio of the limits, as data."""
    names = short_names(study.dataset)
    statement = f"HPL's limit on {names[study.network]} over that on {names[study.reference]}, {study.nodes} nodes"
    yield of_control(origin("hpl_size", study.dataset), statement, study.agreement)


def figures(study: Size) -> dict[str, Exhibit]:
    """Shares over the order of the matrix."""
    drawn = any(curve.follows for curve in study.curves)
    curves = (
        " Curves are HPL's own model, fitted to each block, with its 95 % band; the marks at infinity are its limits."
        if drawn
        else ""
    )
    return {
        "size": Exhibit(
            "size",
            share_over_order(study),
            f"HPL's rate on {counted(study.nodes, 'node')} over the order of the matrix, as a share of "
            f"{study.points.share.attrs['of']}",
            _basis(study),
            "Share of the nodes' known rate over the order of the matrix, a series for each network",
            "Small marks are single runs; open marks and bars are geometric means with their intervals; a point with one valid run "
            f"has no mean.{curves}",
            rests_on=FIGURES["size"],
        )
    }


def _basis(study: Size) -> Basis:
    if study.evidence == "simulated":
        return Basis("simulated")
    return Basis(study.evidence, study.points.sizes["block"], "95 % t intervals")


def shares_table(study: Size) -> Table:
    """Shares on each network, and their ratio, at every size."""
    names, networks = short_names(study.dataset), study.shares.interconnect.values.tolist()
    rows = []
    for N in study.shares.N.values.tolist():
        shares = [_of_hundred(study.shares.sel(N=N, interconnect=name)) for name in networks]
        ratio = study.ratios.sel(N=N)
        compared = estimate(ratio.ratio, ratio.low, ratio.high)
        rows.append((str(N), *shares, compared, str(int(ratio.blocks))))
    ratio = f"{names[study.network]} / {names[study.reference]} (95 % interval)"
    columns = ("N", *(f"{names[name]} [%] (95 % interval)" for name in networks), ratio, "Blocks")
    caption = f"Share of {study.points.share.attrs['of']}, and ratio of the rates: geometric means"
    align = "r" + "l" * (len(networks) + 1) + "r"
    return Table("size", columns, align, rows, caption, _basis(study))


def _of_hundred(at: xr.Dataset) -> str:
    return estimate(*(100 * at[end] for end in ("ratio", "low", "high")))


def model_table(study: Size) -> Table | None:
    """HPL's model of each network: its limit and what a message and an element cost; None where no curve follows."""
    names = short_names(study.dataset)
    rows = [
        (names[curve.interconnect], *_model_cells(study, curve))
        for curve in study.curves
        if curve.follows
    ]
    if not rows:
        return None
    columns = (
        "Network",
        "Limit [%] (95 % interval)",
        f"N at {percent(NEAR, 0)} of it",
        "A message",
        "An element",
        "On the wire",
        "Blocks",
    )
    caption = (
        "HPL's own model: the share to which it tends, the order of the matrix near that, and what a message and a matrix element "
        "cost. On the wire is one element in full frames. By chance a cost may be below zero"
    )
    return Table("size-model", columns, "lllllrr", rows, caption, _basis(study))


def _model_cells(study: Size, curve: Curve) -> tuple[str, ...]:
    near = ratios(np.log(curve.orders_near)) if (curve.orders_near > 0).all() else None
    order = UNKNOWN if near is None else estimate(near.ratio, near.low, near.high, _whole)
    return (
        _of_hundred(curve.limit),
        order,
        _cost(study, curve, "alpha"),
        _cost(study, curve, "beta"),
        duration(_element_on_wire(study.dataset, curve.interconnect)),
        str(curve.blocks.blocks),
    )


def _whole(value: float | None) -> str:
    return fixed(value, 0)


def _cost(study: Size, curve: Curve, parameter: str) -> str:
    """A cost in time, with its interval: flop of a node over its rate [flop/s] are seconds."""
    low, high = (known(end / study.node_rate) for end in curve.blocks.intervals[parameter])
    interval = "" if None in (low, high) else f" ({duration_range((low, high))})"
    return duration(curve.blocks.estimates[parameter] / study.node_rate) + interval


def _element_on_wire(dataset: xr.Dataset, interconnect: str) -> float | None:
    """The time [s] of a matrix element in full frames at the link's rate; None without a shaper."""
    link = interconnects(dataset)[interconnect]
    if "rate_bit_s" not in link:
        return None
    return ELEMENT / wire_limit(link["rate_bit_s"], link["mtu"])


def foretold_table(study: Size) -> Table:
    """What the smaller sizes predict of the largest, by each model."""
    names, most = short_names(study.dataset), int(study.points.N.max())
    rows = [
        (names[curve.interconnect], it.model.title, *_error(it))
        for curve in study.curves
        for it in curve.comparisons
    ]
    columns = ("Network", "Model", f"Error at N = {most} [%] (95 % interval)", "Blocks")
    caption = "What each model, fitted to all sizes but the largest, predicts for that one: predicted less measured rate, geometric means"
    return Table("size-foretold", columns, "lllr", rows, caption, _basis(study))


def _error(comparison: Comparison) -> tuple[str, str]:
    held_out = comparison.held_out
    if held_out is None:
        return plain(comparison.refused or comparison.held_out_refused), UNKNOWN
    error = estimate(100 * held_out.error, *(100 * end for end in held_out.interval))
    return error, str(held_out.blocks)
