"""TCP over long paths: which socket buffer fills them, does congestion control matter, and is
goodput reproducible?"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib import ticker

from analysis import capacity, drawing, exhibit, style
from analysis.attributes import interconnects, settings, short_names
from analysis.derive import over_factors
from analysis.findings import (
    Finding,
    evidence_of,
    interval_in_words,
    judged_in_words,
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
)

MBIT = 1e6  # bit/s
# The campaigns and files of data/ behind each figure.
FIGURES = {"long_path": ("long_path",)}
PLANNED = "long_5ms", "forward"  # path and direction of the summary and of a quick run
MCKAY = "95 % modified McKay interval over the transfers"


class Place(NamedTuple):
    """The path and direction of a series of transfers."""

    path: str
    congestion_control: str
    direction: str


@dataclass(frozen=True)
class Curve:
    """Goodput over the socket buffer at one place.

    `goodput` [bit/s] is over (block, window_bytes). `wire_limit` [bit/s] is that of the path's
    description. `product` is the window [B] that theory requires, the wire limit times the round
    trip. `model` is the bandwidth-delay model of every block, and `knee` its (estimate, low, high)
    [B of buffer asked for], a 95 % t interval over the blocks.
    """

    goodput: xr.DataArray
    wire_limit: float
    product: float
    model: Attempt
    knee: tuple[float, ...]


@dataclass(frozen=True)
class Repeats:
    """The campaign of repeats, judged for each place; `margin` is the largest variation [1] that
    counts as reproducible."""

    dataset: xr.Dataset
    margin: float
    judged: dict[Place, Reproducibility]


@dataclass(frozen=True)
class LongPath:
    """The campaign's dataset and all results, and the study of repeats if there are data for it.

    `points` is over (block, *factors): `goodput` [bit/s]. Buffers that no trial got, such as those
    larger than the machine grants, are left out. `contrasts` judge whether a congestion control
    other than the design's, `control`, has the same goodput at the largest buffer in the same
    blocks.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    control: str
    curves: dict[Place, Curve]
    contrasts: dict[Place, Control]
    repeats: Repeats | None = None

    @property
    def largest_window(self) -> int:
        """The largest buffer asked for [B]."""
        return int(self.points.window_bytes.max())


def analyse(long_path: xr.Dataset, long_repeats: xr.Dataset | None = None) -> LongPath:
    """Derive curves and contrasts of the campaign, and judge the campaign of repeats.

    Raises FalloffError if one of them holds no iperf3 trial.
    """
    points = over_factors(long_path, runner="iperf3", goodput=long_path.goodput)
    points = points.sortby("window_bytes")
    measured = points.goodput.notnull().any([dim for dim in points.dims if dim != "window_bytes"])
    points = points.sel(window_bytes=measured) if measured.any() else points
    design, log = designs.read(long_path), np.log(points.goodput.isel(window_bytes=-1))
    others = log.drop_sel(congestion_control=design.control)
    ratios = _by_place(others - log.sel(congestion_control=design.control, drop=True))
    return LongPath(
        dataset=long_path,
        points=points,
        control=design.control,
        curves={place: _curve(long_path, at, place) for place, at in _by_place(points.goodput)},
        contrasts={at: judge_control(ratio.values, design.margin) for at, ratio in ratios},
        repeats=None if long_repeats is None else repeats_of(long_repeats),
    )


def repeats_of(dataset: xr.Dataset) -> Repeats:
    """Judge every series of repeats; raises FalloffError if there is no iperf3 trial."""
    points = over_factors(dataset, runner="iperf3", goodput=dataset.goodput)
    margin = designs.read(dataset).margin
    places = _by_place(points.goodput)
    return Repeats(dataset, margin, {at: judge_repeats(one.values, margin) for at, one in places})


def _by_place(values: xr.DataArray) -> Iterator[tuple[Place, xr.DataArray]]:
    """The values at each place."""
    for levels in product(*(values[name].values.tolist() for name in Place._fields)):
        place = Place(*levels)
        yield place, values.sel(place._asdict())


def _curve(dataset: xr.Dataset, goodput: xr.DataArray, place: Place) -> Curve:
    table, way = interconnects(dataset)[place.path], _way(dataset, place.path, place.direction)
    limit, goodput = wire_limit(way.rate, table["mtu"]), goodput.transpose("block", "window_bytes")
    windows, knee = goodput.window_bytes.values.astype(float), (np.nan,) * 3
    model = attempt(bandwidth_delay.MODEL, windows, goodput.values)
    if model.fitted:
        knees = bandwidth_delay.knee(*model.fitted.by_block.T)
        knee = tuple(map(float, average(knees, "ratio")))
    asked = bandwidth_delay.knee(limit, way.round_trip)
    return Curve(goodput, limit, asked, model, knee)


def _way(dataset: xr.Dataset, path: str, direction: str) -> capacity.Way:
    """The path's description of one direction."""
    given = settings(dataset)
    ends = (given["sender"], given["receiver"])[:: 1 if direction == "forward" else -1]
    return capacity.way(interconnects(dataset)[path], *ends)


def findings(study: LongPath) -> Iterator[Finding]:
    """The buffer that fills each path, each congestion control against the design's, and each
    variation, as data.

    Primary are the forward buffer of the design's own path, and whether its goodput is
    reproducible.
    """
    source, names = origin("long_path", study.dataset), short_names(study.dataset)
    for (path, control, direction), curve in study.curves.items():
        statement = f"TCP fills path {names[path]} from this buffer on: {direction}, {control}"
        about = {"answer": "found" if curve.model.follows else "", "reason": curve.model.reason}
        about["primary"] = (path, direction) == PLANNED and control == study.control
        blocks = curve.model.blocks
        yield of_estimate(source, statement, "buffer", curve.knee, blocks, unit="B", **about)
    for (path, control, direction), agreement in study.contrasts.items():
        statement = f"TCP is as fast with {control} as {study.control}: {names[path]}, {direction}"
        yield of_control(source, statement, agreement)
    if study.repeats is None:
        return
    source = origin("long_path", study.repeats.dataset)
    worst = max(one.variation for one in study.repeats.judged.values())
    for (path, control, direction), judged in study.repeats.judged.items():
        yield of_estimate(
            source,
            f"TCP repeats its goodput: path {names[path]}, {direction}, {control}",
            "coefficient of variation",
            (judged.variation, *judged.interval),
            judged.n,
            MCKAY,
            n_of="transfer",
            answer=judged.kind,
            primary=judged.variation == worst,
        )


def finding(study: LongPath) -> str:
    """Which buffer fills a path, what congestion control changes, and whether goodput is
    reproducible (Markdown)."""
    controls = study.points.congestion_control.values.tolist()
    return paragraphs(
        (*_of_buffers(study), without_reading(study.dataset)),
        (_of_control(study, control) for control in controls if control != study.control),
        _of_repeats(study.repeats) if study.repeats else (),
    )


def _of_buffers(study: LongPath) -> Iterator[str]:
    quoted = {place: curve for place, curve in study.curves.items() if curve.model.follows}
    basis = resting_on(study.dataset, study.points.sizes["block"])
    if not quoted:
        reason = next(iter(study.curves.values())).model.reason
        yield f"**From which buffer on TCP fills these paths cannot be said** ({basis}): {reason}"
        return
    ratios = [curve.knee[0] / curve.product for curve in quoted.values()]
    ends = between((min(ratios), max(ratios)), 2)
    yield (
        f"**TCP fills these paths from a socket buffer of {ends} times payload rate × round trip on**, "
        f"{fixed(np.median(ratios), 2)} in the median of {len(ratios)} combinations of path, direction and congestion control ({basis})."
    )
    if np.median(ratios) < 1:
        yield "Less than 1 is enough where Linux grants more buffer than is asked for."
    planned = Place(PLANNED[0], study.control, PLANNED[1])
    if planned in quoted:
        shown, name = quoted[planned], short_names(study.dataset)[planned.path]
        buffer, *ends = shown.knee
        interval = f" (95 % interval {byte_range(ends)})" if np.isfinite(ends).all() else ""
        yield (
            f'The path "{name}", {planned.direction} with {study.control}, is full from {byte_size(buffer)} on{interval}, by the fit. Its payload rate × '
            f"round trip is {byte_size(shown.product)}."
        )
    if others := len(study.curves) - len(quoted):
        yield f"The other {others} have no estimate: the model misses the data or has too few buffers."


def _of_control(study: LongPath, control: str) -> str:
    """How often a congestion control reaches the design's goodput with the largest buffer, and the
    largest difference."""
    compared = [
        agreement
        for place, agreement in study.contrasts.items()
        if place.congestion_control == control and agreement.ratio is not None
    ]
    if not compared:
        return f"No block has both {control} and {study.control}."
    same = sum(agreement.kind == "holds" for agreement in compared)
    furthest = max(compared, key=lambda agreement: abs(np.log(agreement.ratio)))
    interval = judged_in_words(furthest, 3)
    return (
        f"**With {control} TCP reaches the same goodput as with {study.control} on {same} of {len(compared)} paths and "
        f"directions**, with a buffer of {byte_size(study.largest_window)} and within {percent(furthest.margin, 0)}. "
        f"The ratio furthest from 1 is {fixed(furthest.ratio, 3)}{interval and f' ({interval})'}."
    )


def _of_repeats(study: Repeats) -> Iterator[str]:
    """How many series are reproducible, the largest variation and the slowest transfer."""
    judged, names = [*study.judged.values()], short_names(study.dataset)
    kinds = [one.kind for one in judged]
    again, differs = kinds.count("reproducible"), kinds.count("not reproducible")
    on = listed([names[path] for path in dict.fromkeys(place.path for place in study.judged)])
    series = f'{len(kinds)} combinations of direction and congestion control on the path "{on}"'
    transfers = max(one.n + one.missing for one in judged)
    buffer = f"buffer {byte_size(settings(study.dataset)['window_bytes'])}"
    basis = f"no other traffic, {buffer}, {counted(transfers, 'transfer')} each, {evidence_of(study.dataset)} evidence"
    if again:
        others = f", and not for {differs}" if differs else ""
        yield f"**The same transfer's goodput varies by less than {percent(study.margin, 0)}** for {again} of {series}{others} ({basis})."
    elif differs:
        yield f"**The same transfer does not give the same goodput again** for {differs} of {series} ({basis})."
    else:
        yield f"**Whether the same transfer gives the same goodput again is open** for {series} ({basis})."
    varying = [one for one in judged if np.isfinite(one.variation)]
    if varying:
        worst = max(varying, key=lambda one: one.variation)
        interval = interval_in_words(worst.interval) or "no upper end"
        # A rare slow state shows in the smallest value, but hardly in the variation.
        least = min(one.values[0] / np.median(one.values) for one in varying)
        yield (
            f"The largest coefficient of variation is {percent(worst.variation)} ({interval}). Up to {percent(study.margin, 0)} "
            f"counts as the same. The slowest transfer reached {percent(least, 0)} of the median of its series."
        )
    yield without_reading(study.dataset, "transfer")


def figures(study: LongPath) -> dict[str, exhibit.Exhibit]:
    """Goodput / wire limit [%] over buffer / product [1], one series per path: forward, with the
    design's congestion control."""
    names = short_names(study.dataset)
    with style.styled():
        figure, axes = drawing.new_figure(3.2)
        for place, curve in study.curves.items():
            if place[1:] == (study.control, PLANNED[1]):
                buffers = curve.goodput.window_bytes.values / curve.product
                shares = 100 * curve.goodput / curve.wire_limit
                drawing.runs(axes, place.path, buffers, shares, names[place.path])
        # Theory: one buffer per round trip, up to the wire limit.
        axes.set_xscale("log")
        along = np.geomspace(*axes.get_xlim(), 200)
        line = {"color": style.FAINT, "linewidth": 1, "zorder": 1, "label": "theory"}
        axes.plot(along, 100 * np.minimum(along, 1), **line)
        axes.set(xlim=along[[0, -1]], ylim=(0, 110))
        axes.xaxis.set_major_locator(ticker.LogLocator())
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.set_xlabel("buffer / (payload rate × round trip) [1]")
        axes.set_ylabel("goodput / wire limit [%]")
        drawing.legend_below(figure, axes, 3)
    return exhibit.only(
        FIGURES,
        figure,
        f"TCP's goodput over the socket buffer, both as shares of what the path allows: {study.control}, forward",
        exhibit.Basis.of_dataset(study.dataset, "every run is drawn"),
        "Goodput as a share of the wire limit over the socket buffer as a multiple of payload rate times round trip",
        "The grey line is theory: one buffer in each round trip, up to the wire limit. The way back and other congestion "
        "controls look alike.",
    )


def paths_table(study: LongPath) -> exhibit.Table:
    """The settings of each path: rates, round trip, and the forward buffer that theory requires."""
    rows, names = [], short_names(study.dataset)
    for path in study.points.path.values.tolist():
        there, back = (_way(study.dataset, path, way) for way in ("forward", "reverse"))
        rates = dict.fromkeys(f"{way.rate / MBIT:g}" for way in (there, back))
        product = study.curves[path, study.control, "forward"].product
        row = names[path], " and ".join(rates), f"{1e3 * there.round_trip:g}", byte_size(product)
        rows.append(row)
    columns = ("Path", "Rate [Mbit/s]", "Round trip [ms]", "Payload rate × round trip")
    caption = "What was set on each path; two rates are forward and reverse."
    return exhibit.Table("long-path-paths", columns, "lrrr", rows, caption)
