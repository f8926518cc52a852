"""HPL over the order of the matrix on the same nodes: HPL's own model of its time, and the rate to which it tends."""

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, models, style
from analysis.attributes import names_in_text
from analysis.contrasts import log_ratios
from analysis.fitting.adequacy import follows
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.quoting import quoted
from analysis.statements import (
    Statement,
    at_place,
    estimated,
    judged_in_words,
    judged_ratio,
    origin,
)
from analysis.statistics import design as designs
from analysis.statistics.intervals import ratios
from analysis.statistics.judgement import judge_control
from analysis.wording import counted, fixed, listed, percent
from runners.record import FalloffError

# HPL's model without its bounds. In a single block, noise may well make a small cost negative. Cut off at 0, the mean
# over the blocks would be too large, and its interval would miss the truth more often than it claims.
HPL = replace(
    models.find("hpl"), bounds=dict.fromkeys(models.find("hpl").parameters, (-np.inf, np.inf))
)


@dataclass(frozen=True)
class Curve:
    """HPL's model on one network, fitted over N to every block.

    It is fitted to n times the share, the rate in units of one node's known rate, so that alpha and
    beta are in flop at that rate and gamma has no unit. `limits`, over (block), is 1 / gamma,
    the share for N to infinity. `fitted` and `limits` are None if the data do not allow the
    fit; `refused` says why. `follows` is whether the mean curve may be drawn through the points.
    """

    fitted: BlockFit | None = None
    limits: xr.DataArray | None = None
    follows: bool = False
    refused: str = ""


def curves(points: xr.Dataset) -> dict[str, Curve]:
    """HPL's model fitted to each network; `points` is from `derive.points`, over (block, interconnect, N), at one number of
    nodes."""
    return {name: _curve(points, name) for name in points.interconnect.values.tolist()}


def _curve(points: xr.Dataset, network: str) -> Curve:
    share = points.share.sel(interconnect=network).transpose("block", "N")
    orders, rate = settings(points, share.N), points.nodes.item() * share.values
    try:
        fitted = fit_blocks(HPL, orders, rate)
    except FalloffError as error:
        return Curve(refused=str(error))
    gamma = fitted.by_block[:, HPL.parameters.index("gamma")]
    if unlimited := int((gamma <= 0).sum()):
        reason = f"The fitted rate has no limit in {unlimited} of {fitted.blocks} blocks; run larger matrices."
        return Curve(refused=reason)
    mean_curve, *_ = fitted.band(orders, "ratio")
    whole = share.block[share.notnull().all("N")].values
    return Curve(
        fitted,
        xr.DataArray(1 / gamma, {"block": whole}),
        follows(rate, mean_curve, len(HPL.parameters)),
    )


def settings(points: xr.Dataset, orders) -> np.ndarray:
    """The x of HPL's model at these orders: rows N, NB, P and Q, shape (4, orders)."""
    orders = np.asarray(orders, float)
    return np.array(
        [orders, *(np.full_like(orders, points[name].max()) for name in ("NB", "P", "Q"))]
    )


def at_largest_order(points: xr.Dataset) -> list[Statement]:
    """The share of the faster planned network's rate that the slower one reaches with the largest matrix; empty where no
    block has both. `points` is as for `curves`."""
    (slow, fast), names = designs.read(points).pair, names_in_text(points)
    ratio = ratios(log_ratios(points, slow, fast))
    both = ratio.dropna("N", subset=["ratio"])
    if not both.sizes["N"]:
        return []
    least, most = both.isel(N=0), both.isel(N=-1)
    subject = f"{names[slow]}'s share of {names[fast]}'s rate with the largest matrix"
    one = estimated(
        origin(points), subject, "share", at_place(most), int(most.blocks), primary=True
    )
    sentence = (
        f"**On {counted(int(points.nodes), 'node')} {names[slow]} reaches {percent(float(least.ratio))} of {names[fast]}'s rate with "
        f"a matrix of order {int(least.N)}, and {one.value} with order {int(most.N)}** ({one.basis}, "
        f"{one.evidence} evidence)."
    )
    return [replace(one, sentence=sentence)]


def same_limit(points: xr.Dataset, fitted: dict[str, Curve]) -> Statement:
    """Do both planned networks tend to one rate with larger matrices, by HPL's own model, within the campaign's margin?

    `points` and `fitted` are as of `curves`.
    """
    design, names = designs.read(points), names_in_text(points)
    slow, fast = (fitted[name].limits for name in design.pair)
    compared = [] if slow is None or fast is None else np.log(slow / fast).values
    control = judge_control(compared, design.margin)
    two = " and ".join(names[name] for name in design.pair)
    subject = f"{two} tend to one rate with larger matrices"
    one = judged_ratio(origin(points), subject, control, primary=True)
    reasons = [
        f"On {names[name]}, HPL's own model gives no limit: {quoted(curve.refused or 'it misses the points.')}"
        for name, curve in fitted.items()
        if curve.refused or not curve.follows
    ]
    basis = f"ratio {fixed(control.ratio, 3)}, {judged_in_words(control, 3)}, {counted(control.blocks, 'block')}"
    if reasons or control.kind == "undecided":
        sentence = (
            f"Whether {two} tend to one rate with larger matrices is open. {''.join(reasons[:1])}"
        )
    elif control.kind == "holds":
        sentence = f"By HPL's own model both tend to the same limit, within {percent(control.margin, 0)} ({basis})."
    else:
        sentence = f"By HPL's own model {two} tend to different limits ({basis})."
    return replace(one, sentence=sentence.strip())


def levels(points: xr.Dataset) -> str:
    """Each network's share of the nodes' rate with the smallest and the largest matrix, in a sentence; empty where no
    network has both. `points` is as for `curves`."""
    names, ends = names_in_text(points), ratios(np.log(points.share)).ratio.isel(N=[0, -1])
    ends = ends.transpose("interconnect", "N").dropna("interconnect")
    spans = [
        f"from {percent(least)} to {percent(most)} on {names[name]}"
        for name, (least, most) in zip(ends.interconnect.values.tolist(), ends.values)
    ]
    return f"As a share of {points.share.attrs['of']}, HPL rises {listed(spans)}." if spans else ""


def over_orders(points: xr.Dataset, fitted: dict[str, Curve]) -> Figure:
    """Share of the nodes' rate [%] over N: every run, geometric means with 95 % t intervals, and HPL's model with its band
    where it follows the data. The arguments are as of `curves`."""
    names, share = names_in_text(points), 100 * points.share
    means, orders = ratios(np.log(share)), points.N.values
    smooth = np.geomspace(orders.min(), orders.max(), 40).round()
    with style.styled():
        figure, axes = drawing.new_figure(3.4)
        for name, curve in fitted.items():
            at = {"interconnect": name}
            drawing.runs_and_means(axes, name, orders, share.sel(at), means.sel(at), names[name])
            if curve.follows:
                band = curve.fitted.band(settings(points, smooth), "ratio")
                drawing.band(
                    axes, name, smooth, *(100 * rate / points.nodes.item() for rate in band)
                )
        drawing.doubling_axis(axes, orders, "order of the matrix, N [1]")
        axes.set_ylabel(f"HPL rate [% of {points.share.attrs['of']}]")
        axes.legend(loc="lower right")
    return figure
