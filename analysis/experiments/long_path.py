"""TCP over long paths: which socket buffer fills them, does the congestion control matter, and is goodput the same again?"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import xarray as xr
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import capacity, drawing, style
from analysis.attributes import interconnects, settings, short_names
from analysis.derive import over_factors
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import (
    T_INTERVAL,
    Finding,
    evidence_of,
    of_control,
    of_estimate,
    origin,
    resting_on,
    without_reading,
)
from analysis.fitting.block_fit import Attempt, attempt
from analysis.models import bandwidth_delay
from analysis.statistics import design as designs
from analysis.statistics.intervals import average
from analysis.statistics.judgement import Control, judge_control
from analysis.statistics.repeats import Reproducibility, judge_repeats
from analysis.wire import wire_limit
from analysis.wording import (
    between,
    byte_range,
    byte_size,
    counted,
    fixed,
    listed,
    paragraphs,
    percent,
    percent_range,
)

MBIT = 1e6  # bit/s
# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {"long_path": ("long_path",)}
PLANNED = "long_5ms", "forward"  # path and direction of the summary and of a quick run
MCKAY = "95 % modified McKay interval over the transfers"
PLACE = ("path", "congestion_control", "direction")


@dataclass(frozen=True)
class Curve:
    """Goodput over the socket buffer on one path, with one congestion control, in one direction.

    `goodput` [bit/s] is over (block, window_bytes). `wire_limit` [bit/s] is of the path's description, and `product`
    the window [B] that theory asks for, the wire limit times the round trip. `model` is the bandwidth-delay model of
    every block, and `knee` its (estimate, low, high) [B of buffer asked for], a 95 % t interval over the blocks.
    """

    path: str
    congestion_control: str
    direction: str
    goodput: xr.DataArray
    wire_limit: float
    product: float
    model: Attempt
    knee: tuple[float, ...]


@dataclass(frozen=True)
class Series:
    """Repeats of a transfer on a path with one congestion control in one direction, judged."""

    path: str
    congestion_control: str
    direction: str
    judged: Reproducibility


@dataclass(frozen=True)
class Repeats:
    """The campaign of repeats and its series; `margin` is the largest variation [1] that counts as reproducible."""

    dataset: xr.Dataset
    margin: float
    series: tuple[Series, ...]


@dataclass(frozen=True)
class LongPath:
    """The campaign's dataset and all that follows from it, and the study of repeats where there are data for one.

    `points` is over (block, *factors): `goodput` [bit/s]; buffers that no trial got, such as larger ones than the machine
    grants, are left out. `contrasts` judge, by (control, path, direction), whether another congestion control has the
    same goodput at the largest buffer as the design's `control` in the same blocks.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    control: str
    curves: tuple[Curve, ...]
    contrasts: dict[tuple[str, str, str], Control]
    repeats: Repeats | None = None

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return self.points.sizes["block"]

    @property
    def largest_window(self) -> int:
        """The largest buffer asked for [B]."""
        return int(self.points.window_bytes.max())


def analyse(long_path: xr.Dataset, long_repeats: xr.Dataset | None = None) -> LongPath:
    """Derive curves and contrasts of the campaign, and judge the campaign of repeats.

    Raises FalloffError when one of them holds no iperf3 trial.
    """
    points = over_factors(long_path, runner="iperf3", goodput=long_path.goodput)
    points = points.sortby("window_bytes")
    measured = points.goodput.notnull().any([dim for dim in points.dims if dim != "window_bytes"])
    points = points.sel(window_bytes=measured) if measured.any() else points
    design = designs.read(long_path)
    return LongPath(
        dataset=long_path,
        points=points,
        control=design.control,
        curves=tuple(_curve(long_path, points, *place) for place in _places(points)),
        contrasts=_contrasts(points, design),
        repeats=None if long_repeats is None else repeats_of(long_repeats),
    )


def repeats_of(dataset: xr.Dataset) -> Repeats:
    """Judge every series of repeats; raises FalloffError when there is no iperf3 trial."""
    points = over_factors(dataset, runner="iperf3", goodput=dataset.goodput)
    margin = designs.read(dataset).margin
    series = (
        Series(*place, judge_repeats(points.goodput.sel(dict(zip(PLACE, place))).values, margin))
        for place in _places(points)
    )
    return Repeats(dataset, margin, tuple(series))


def _places(points: xr.Dataset) -> Iterator[tuple[str, str, str]]:
    """Every path, congestion control and direction."""
    return product(*(points[name].values.tolist() for name in PLACE))


def _curve(dataset: xr.Dataset, points: xr.Dataset, *place: str) -> Curve:
    path, _, direction = place
    table, given = interconnects(dataset)[path], settings(dataset)
    ends = (given["sender"], given["receiver"])[:: 1 if direction == "forward" else -1]
    way = capacity.way(table, *ends)
    limit = wire_limit(way.rate, table["mtu"])
    goodput = points.sel(dict(zip(PLACE, place))).goodput.transpose("block", "window_bytes")
    model = attempt(
        bandwidth_delay.MODEL, goodput.window_bytes.values.astype(float), goodput.values
    )
    knee = (np.nan,) * 3
    if model.fitted:
        knees = bandwidth_delay.knee(*model.fitted.by_block.T)
        knee = tuple(map(float, average(knees, "ratio")))
    asked = bandwidth_delay.knee(limit, way.round_trip)
    return Curve(*place, goodput, limit, asked, model, knee)


def _contrasts(points: xr.Dataset, design: designs.Design) -> dict[tuple[str, str, str], Control]:
    log = np.log(points.goodput.isel(window_bytes=-1))
    others = log.drop_sel(congestion_control=design.control)
    ratios = others - log.sel(congestion_control=design.control, drop=True)
    ratios = ratios.stack(place=["congestion_control", "path", "direction"])
    return {
        place: judge_control(ratios.sel(place=place).values, design.margin)
        for place in ratios.place.values.tolist()
    }


def findings(study: LongPath) -> Iterator[Finding]:
    """The buffer that fills each path, each congestion control against the design's, and each variation, as data.

    Planned for are the buffer of the design's own path, on the way there, and whether its goodput is the same again.
    """
    source, names = origin("long_path", study.dataset), short_names(study.dataset)
    for curve in study.curves:
        statement = f"TCP fills path {names[curve.path]} from this buffer on: {curve.direction}, {curve.congestion_control}"
        place, (buffer, *ends) = (curve.path, curve.direction), curve.knee
        further = {
            "n": curve.model.blocks,
            "answer": "found" if curve.model.follows else "",
            "reason": curve.model.reason,
            "primary": place == PLANNED and curve.congestion_control == study.control,
        }
        yield of_estimate(source, statement, "buffer", "B", buffer, ends, T_INTERVAL, **further)
    for (control, path, direction), agreement in study.contrasts.items():
        statement = f"TCP is as fast with {control} as {study.control}: {names[path]}, {direction}"
        yield of_control(source, statement, agreement)
    if study.repeats is None:
        return
    source = origin("long_path", study.repeats.dataset)
    for series in study.repeats.series:
        judged, control = series.judged, series.congestion_control
        yield of_estimate(
            source,
            f"TCP repeats its goodput without other traffic: path {names[series.path]}, {series.direction}, {control}",
            "coefficient of variation",
            "1",
            judged.variation,
            judged.interval,
            MCKAY,
            n=judged.n,
            n_of="transfer",
            answer=judged.kind,
            primary=control == study.control and series.direction == "forward",
        )


def finding(study: LongPath) -> str:
    """Which buffer fills a path, what congestion control changes, and whether goodput is the same again (Markdown)."""
    controls = study.points.congestion_control.values.tolist()
    return paragraphs(
        (*_of_buffers(study), without_reading(study.dataset)),
        (_of_control(study, control) for control in controls if control != study.control),
        _of_repeats(study.repeats) if study.repeats else (),
    )


def _of_buffers(study: LongPath) -> Iterator[str]:
    quoted = [curve for curve in study.curves if curve.model.follows]
    basis = resting_on(study.dataset, study.blocks)
    if not quoted:
        refused = [curve.model.refused for curve in study.curves if curve.model.refused]
        reason = refused[0] if refused else study.curves[0].model.reason
        yield f"**From which buffer on TCP fills these paths cannot be said** ({basis}): {reason}"
        return
    ratios = [curve.knee[0] / curve.product for curve in quoted]
    planned = [curve for curve in quoted if (curve.path, curve.direction) == PLANNED]
    shown = (planned or quoted)[0]
    buffer, low, high = shown.knee
    interval = "" if np.isnan(low) else f" (95 % t interval {byte_range((low, high))})"
    yield f"**TCP fills these paths from a socket buffer of {fixed(np.median(ratios), 2)} times rate × round trip on** ({basis})."
    if len(ratios) > 1:
        yield (
            f"That is the median of {len(ratios)} combinations of path, direction and congestion control, from "
            f"{between((min(ratios), max(ratios)), 2)}."
        )
    if np.median(ratios) < 1:
        yield "Less than 1 is enough where Linux grants more buffer than is asked for."
    yield (
        f'The path "{short_names(study.dataset)[shown.path]}", {shown.direction} with {shown.congestion_control}, is full from '
        f"{byte_size(buffer)} on{interval}. Its rate × round trip is {byte_size(shown.product)}."
    )
    if others := len(study.curves) - len(quoted):
        yield f"The other {others} have no estimate: the model misses the data or has too few buffers."


def _of_control(study: LongPath, control: str) -> str:
    """How often a congestion control reaches the design's goodput with the largest buffer, and how far apart they are."""
    compared = [one for place, one in study.contrasts.items() if place[0] == control]
    agreements = [agreement for agreement in compared if agreement.ratio is not None]
    same = sum(agreement.kind == "holds" for agreement in agreements)
    if not agreements:
        return f"No block has both {control} and {study.control}."
    furthest = max(agreements, key=lambda agreement: abs(np.log(agreement.ratio)))
    ends = f" (90 % interval {between(furthest.interval, 3)})" if furthest.interval else ""
    return (
        f"**With {control} TCP reaches the same goodput as with {study.control} on {same} of {len(compared)} paths and "
        f"directions**, with a buffer of {byte_size(study.largest_window)} and within {percent(furthest.margin, 0)}. "
        f"The ratio furthest from 1 is {fixed(furthest.ratio, 3)}{ends}."
    )


def _of_repeats(study: Repeats) -> Iterator[str]:
    """How many series are reproducible, the largest variation and the slowest transfer."""
    kinds = [series.judged.kind for series in study.series]
    again, differs = kinds.count("reproducible"), kinds.count("not reproducible")
    names = short_names(study.dataset)
    on = listed([names[path] for path in dict.fromkeys(one.path for one in study.series)])
    series = (
        f'{len(study.series)} combinations of direction and congestion control on the path "{on}"'
    )
    transfers = max(one.judged.n + one.judged.missing for one in study.series)
    buffer = f"buffer {byte_size(settings(study.dataset)['window_bytes'])}"
    basis = f"no other traffic, {buffer}, {counted(transfers, 'transfer')} each, {evidence_of(study.dataset)} evidence"
    if again:
        others = f", and not for {differs}" if differs else ""
        yield f"**The same transfer gives the same goodput again** for {again} of {series}{others} ({basis})."
    elif differs:
        yield f"**The same transfer does not give the same goodput again** for {differs} of {series} ({basis})."
    else:
        yield f"**Whether the same transfer gives the same goodput again is open** for {series} ({basis})."
    varying = [one.judged for one in study.series if np.isfinite(one.judged.variation)]
    if varying:
        worst = max(varying, key=lambda judged: judged.variation)
        is_bounded = np.isfinite(worst.interval[1])
        ends = f"95 % interval {percent_range(worst.interval)}" if is_bounded else "no upper end"
        # A rare slow state shows in the least value, and hardly in the variation.
        least = min(one.values[0] / np.median(one.values) for one in varying)
        yield (
            f"The largest coefficient of variation is {percent(worst.variation)} ({ends}). Up to {percent(study.margin, 0)} "
            f"counts as the same. The slowest transfer reached {percent(least, 0)} of the median of its series."
        )
    yield without_reading(study.dataset, "transfer")


def figures(study: LongPath) -> dict[str, Exhibit]:
    """Goodput over the buffer; every run is drawn."""
    return {
        "long_path": Exhibit(
            "long_path",
            goodput_over_buffer(study),
            f"TCP's goodput over the socket buffer, both as shares of what the path allows: {study.control}, forward",
            Basis(evidence_of(study.dataset), study.blocks, "every run is drawn"),
            "Goodput as a share of the wire limit over the socket buffer as a multiple of rate times round trip",
            "The grey line is theory: one buffer in each round trip, up to the wire limit. The way back and other congestion "
            "controls look alike.",
            rests_on=FIGURES["long_path"],
        )
    }


def goodput_over_buffer(study: LongPath) -> Figure:
    """Goodput / wire limit [%] over buffer / product [1], a series a path: forward, with the design's congestion control."""
    names = short_names(study.dataset)
    with style.styled():
        figure, axes = drawing.new_figure(3.2)
        for curve in study.curves:
            if (curve.congestion_control, curve.direction) == (study.control, PLANNED[1]):
                buffers = curve.goodput.window_bytes.values / curve.product
                shares = 100 * curve.goodput / curve.wire_limit
                drawing.runs(axes, curve.path, buffers, shares, names[curve.path])
        _theory(axes)
        axes.set_xlabel("buffer / (rate × round trip) [1]")
        axes.set_ylabel("goodput / wire limit [%]")
        drawing.legend_below(figure, axes, 3)
        return figure


def paths_table(study: LongPath) -> Table:
    """What was set on each path: rates, round trip, and the buffer that theory asks for on the way there."""
    rows, names, given = [], short_names(study.dataset), settings(study.dataset)
    for path, described in interconnects(study.dataset).items():
        if path not in study.points.path:
            continue
        ends = given["sender"], given["receiver"]
        there, back = capacity.way(described, *ends), capacity.way(described, *ends[::-1])
        rates = dict.fromkeys(f"{way.rate / MBIT:g}" for way in (there, back))
        product = bandwidth_delay.knee(wire_limit(there.rate, described["mtu"]), there.round_trip)
        row = names[path], " and ".join(rates), f"{1e3 * there.round_trip:g}", byte_size(product)
        rows.append(row)
    columns = ("Path", "Rate [Mbit/s]", "Round trip [ms]", "Rate × round trip")
    caption = "What was set on each path; two rates are forward and reverse."
    return Table("long-path-paths", columns, "lrrr", rows, caption)


def _theory(axes: Axes) -> None:
    """A buffer in each round trip, up to the wire limit; the buffer on a logarithmic axis."""
    axes.set_xscale("log")
    ends = axes.get_xlim()
    along = np.geomspace(*ends, 200)
    line = {"color": style.FAINT, "linewidth": 1, "zorder": 1, "label": "theory"}
    axes.plot(along, 100 * np.minimum(along, 1), **line)
    axes.set_xlim(ends)
    axes.set_ylim(0, 110)
    axes.xaxis.set_major_locator(ticker.LogLocator())
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(ticker.NullLocator())
