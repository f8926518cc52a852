"""TCP over long paths: which socket buffer fills them, does the congestion control matter, and is goodput the same again?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import xarray as xr
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.attributes import interconnects, settings, short_names
from analysis.capacity import travelled
from analysis.derive import over_factors
from analysis.exhibit import Basis, Exhibit
from analysis.findings import (
    T_INTERVAL,
    Finding,
    evidence_of,
    of_control,
    of_estimate,
    origin,
    without_reading,
)
from analysis.fitting.adequacy import follows
from analysis.fitting.block_fit import BlockFit, fit_blocks
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
    percent,
    percent_range,
)
from runners.record import FalloffError

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {"long_path": ("long_path",), "long_path_repeats": ("long_repeats",)}
MAIN_PATH = "long_5ms"  # the path of the summary and of a quick run
MISSES = "the model misses its data"
SPREAD = 0.6  # of a row, for the repeats in it
MCKAY = "95 % modified McKay interval over the transfers"
PLACE = ("path", "congestion_control", "direction")


@dataclass(frozen=True)
class Curve:
    """Goodput over the socket buffer on one path, with one congestion control, in one direction.

    `goodput` [bit/s] is over (block, window_bytes). `wire_limit` [bit/s] and `round_trip` [s] are of the path's
    description.
    `fitted` is the bandwidth-delay model of every block and `knee` its (estimate, low, high) [B of buffer asked for],
    a 95 % t interval over the blocks; where the data do not carry it, `fitted` is None, and `refused` says why.
    `follows` says whether the model follows its data: else the knee is not quoted.
    """

    path: str
    congestion_control: str
    direction: str
    goodput: xr.DataArray
    wire_limit: float
    round_trip: float
    fitted: BlockFit | None = None
    knee: tuple[float, float, float] = (np.nan, np.nan, np.nan)
    refused: str = ""
    follows: bool = False

    @property
    def product(self) -> float:
        """The window [B] that theory asks for: the wire limit times the round trip of the description."""
        return bandwidth_delay.knee(self.wire_limit, self.round_trip)


@dataclass(frozen=True)
class Series:
    """Repeats of a transfer on a path with one congestion control in one direction, judged; `wire_limit` [bit/s]."""

    path: str
    congestion_control: str
    direction: str
    wire_limit: float
    judged: Reproducibility


@dataclass(frozen=True)
class Repeats:
    """The campaign of repeats and its series; `margin` is the largest variation [1] that counts as reproducible."""

    dataset: xr.Dataset
    margin: float
    series: tuple[Series, ...]

    @property
    def blocks(self) -> int:
        """How often every transfer was run, those without a reading too."""
        return max(one.judged.sample.n + one.judged.sample.missing for one in self.series)

    @property
    def buffer(self) -> int:
        """The socket buffer asked for [B]."""
        return settings(self.dataset)["window_bytes"]


@dataclass(frozen=True)
class LongPath:
    """The campaign's dataset and all that follows from it, and the study of repeats where there are data for one.

    `points` is over (block, *factors): `goodput` [bit/s]; buffers that no trial got, such as larger ones than the machine
    grants, are left out. `contrasts` judge, by (control, path, direction), whether another congestion control has the
    same goodput at the largest buffer as the design's `control` in the same blocks.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    margin: float
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
        margin=design.margin,
        control=design.control,
        curves=tuple(_curve(long_path, points, *place) for place in _places(points)),
        contrasts=_contrasts(points, design),
        repeats=None if long_repeats is None else repeats_of(long_repeats),
    )


def repeats_of(dataset: xr.Dataset) -> Repeats:
    """Judge every series of repeats; raises FalloffError when there is no iperf3 trial."""
    points = over_factors(dataset, runner="iperf3", goodput=dataset.goodput)
    margin = designs.read(dataset).margin

    def series(*place: str) -> Series:
        values = points.goodput.sel(dict(zip(PLACE, place))).values
        limit = _described(dataset, place[0], place[2])["wire_limit"]
        return Series(*place, limit, judge_repeats(values, margin))

    return Repeats(dataset, margin, tuple(series(*place) for place in _places(points)))


def _places(points: xr.Dataset) -> Iterator[tuple[str, str, str]]:
    """Every path, congestion control and direction."""
    return product(*(points[name].values.tolist() for name in PLACE))


def _described(dataset: xr.Dataset, path: str, direction: str) -> dict[str, float]:
    """Wire limit [bit/s] and round trip [s] of a path in a direction."""
    table = interconnects(dataset)[path]
    way = travelled(table, settings(dataset), direction)
    return {"wire_limit": wire_limit(way.rate, table["mtu"]), "round_trip": way.round_trip}


def _curve(dataset: xr.Dataset, points: xr.Dataset, *place: str) -> Curve:
    at = points.sel(dict(zip(PLACE, place)))
    goodput = at.goodput.transpose("block", "window_bytes")
    window = goodput.window_bytes.values.astype(float)
    values = {
        **dict(zip(PLACE, place)),
        "goodput": goodput,
        **_described(dataset, place[0], place[2]),
    }
    try:
        fitted = fit_blocks(bandwidth_delay.MODEL, window, goodput.values)
    except FalloffError as error:
        return Curve(**values, refused=str(error))
    line, *_ = fitted.band(window, "cost")  # arithmetic, as are the means that it is held against
    is_close = follows(goodput.values, line, len(bandwidth_delay.MODEL.parameters))
    knee = average(bandwidth_delay.knee(*fitted.by_block.T), "ratio")
    return Curve(**values, fitted=fitted, knee=tuple(map(float, knee)), follows=is_close)


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

    Planned for are those on the design's own path, on the way there.
    """
    source, names = origin("long_path", study.dataset), short_names(study.dataset)
    planned = MAIN_PATH, "forward"
    for curve in study.curves:
        blocks = 0 if curve.fitted is None else curve.fitted.blocks
        statement = f"TCP fills path {names[curve.path]} from this buffer on: {curve.direction}, {curve.congestion_control}"
        reason = curve.refused or ("" if curve.follows else MISSES)
        buffer, *ends = curve.knee
        place = curve.path, curve.direction
        is_planned = place == planned and curve.congestion_control == study.control
        further = {"n": blocks, "reason": reason, "primary": is_planned}
        yield of_estimate(source, statement, "buffer", "B", buffer, ends, T_INTERVAL, **further)
    for (control, path, direction), agreement in study.contrasts.items():
        statement = f"TCP is as fast with {control} as {study.control}: {names[path]}, {direction}"
        found = of_control(source, statement, agreement)
        yield replace(found, primary=(path, direction) == planned)
    if study.repeats is None:
        return
    source = origin("long_path", study.repeats.dataset)
    for series in study.repeats.series:
        judged, place = series.judged, f"{names[series.path]}, {series.direction}"
        statement = f"TCP repeats its goodput: {place}, {series.congestion_control}"
        yield of_estimate(
            source,
            statement,
            "coefficient of variation",
            "1",
            judged.sample.variation,
            judged.interval,
            MCKAY,
            n=judged.sample.n,
            n_of="transfer",
            answer=judged.kind,
            primary=series.congestion_control == study.control and series.direction == "forward",
        )


def finding(study: LongPath) -> str:
    """Which buffer fills a path, what congestion control changes, and whether goodput is the same again (Markdown)."""
    controls = study.points.congestion_control.values.tolist()
    paragraphs = (
        (
            *_of_buffers(study),
            without_reading(study.dataset),
        ),
        (_of_control(study, control) for control in controls if control != study.control),
        _of_repeats(study.repeats) if study.repeats else (),
    )
    return "\n\n".join(filter(None, (" ".join(filter(None, part)) for part in paragraphs)))


def _of_buffers(study: LongPath) -> Iterator[str]:
    quoted = [curve for curve in study.curves if curve.follows]
    basis = f"{counted(study.blocks, 'block')}, {evidence_of(study.dataset)} evidence"
    if not quoted:
        reason = next((curve.refused for curve in study.curves if curve.refused), MISSES)
        yield f"**From which buffer on TCP fills these paths cannot be said** ({basis}): {reason}"
        return
    ratios = [curve.knee[0] / curve.product for curve in quoted]
    best = min(quoted, key=lambda curve: np.nan_to_num(curve.knee[2] / curve.knee[1], nan=np.inf))
    buffer, low, high = best.knee
    interval = "" if np.isnan(low) else f" (95 % t interval {byte_range((low, high))})"
    yield f"**TCP needs a socket buffer of {fixed(np.median(ratios), 2)} times rate × round trip to fill these paths** ({basis})."
    if len(ratios) > 1:
        yield (
            f"That is the median of {len(ratios)} combinations of path, direction and congestion control. They range from "
            f"{between((min(ratios), max(ratios)), 2)}."
        )
    yield (
        f"{_path(study, best).capitalize()}, {best.direction} with {best.congestion_control}, is full from {byte_size(buffer)} on{interval}. "
        f"Its rate × round trip is {byte_size(best.product)}."
    )
    if others := len(study.curves) - len(quoted):
        yield f"The other {others} have no estimate: the model misses the data or has too few buffers."


def _path(study: LongPath, curve: Curve) -> str:
    return f'the path "{short_names(study.dataset)[curve.path]}"'


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
        f"directions** (buffer {byte_size(study.largest_window)}, margin {percent(study.margin, 0)}). "
        f"The ratio furthest from 1 is {fixed(furthest.ratio, 3)}{ends}."
    )


def _of_repeats(study: Repeats) -> Iterator[str]:
    """How many series are reproducible, the largest variation and the slowest transfer."""
    kinds = [series.judged.kind for series in study.series]
    again, differs = kinds.count("reproducible"), kinds.count("not reproducible")
    series = f"{len(study.series)} combinations of path, direction and congestion control"
    evidence = evidence_of(study.dataset)
    basis = f"buffer {byte_size(study.buffer)}, {counted(study.blocks, 'transfer')} each, {evidence} evidence"
    if again:
        others = f", and not for {differs}" if differs else ""
        yield f"**The same transfer gives the same goodput again** for {again} of {series}{others} ({basis})."
    elif differs:
        yield f"**The same transfer does not give the same goodput again** for {differs} of {series} ({basis})."
    else:
        yield f"**Whether the same transfer gives the same goodput again is open** for {series} ({basis})."
    varying = [one.judged for one in study.series if np.isfinite(one.judged.sample.variation)]
    if varying:
        worst = max(varying, key=lambda judged: judged.sample.variation)
        is_bounded = np.isfinite(worst.interval[1])
        ends = f"95 % interval {percent_range(worst.interval)}" if is_bounded else "no upper end"
        # A rare slow state shows in the least value, and hardly in the variation.
        least = min(one.sample.minimum / one.sample.median for one in varying)
        yield (
            f"The largest coefficient of variation is {percent(worst.sample.variation)} ({ends}). Up to {percent(study.margin, 0)} "
            f"counts as the same. The slowest transfer reached {percent(least, 0)} of the median of its series."
        )
    yield without_reading(study.dataset, "transfer")


def figures(study: LongPath) -> dict[str, Exhibit]:
    """Goodput over the buffer, and every repeat where there are data for it; every run is drawn."""
    shown = {
        "long_path": Exhibit(
            "long_path",
            goodput_over_buffer(study),
            "TCP's goodput over the socket buffer, both as shares of what the path allows",
            Basis(evidence_of(study.dataset), study.blocks, "every run is drawn"),
            "Goodput as a share of the wire limit over the socket buffer as a multiple of rate times round trip, a panel "
            "for each direction and congestion control",
            "Marks are single runs. The grey line is theory: one buffer in each round trip, up to the wire limit. A path is "
            "named by its delay one way.",
            rests_on=FIGURES["long_path"],
        )
    }
    if study.repeats is not None:
        evidence = evidence_of(study.repeats.dataset)
        shown["long_path_repeats"] = Exhibit(
            "long_path_repeats",
            all_repeats(study.repeats),
            f"The same transfer again and again, with a buffer of {byte_size(study.repeats.buffer)}",
            Basis(evidence, study.repeats.blocks, "every transfer is drawn"),
            "Goodput as a share of the wire limit of every transfer, a row for each direction and congestion control",
            "Each row goes from the slowest transfer (above) to the fastest. The bar is the median.",
            rests_on=FIGURES["long_path_repeats"],
        )
    return shown


def goodput_over_buffer(study: LongPath) -> Figure:
    """Goodput / wire limit [%] over buffer / product [1]: a column a direction, a row a congestion control."""
    names = short_names(study.dataset)
    controls = study.points.congestion_control.values.tolist()
    directions = study.points.direction.values.tolist()
    shape = len(controls), len(directions)
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 1.4 + 1.9 * len(controls)))
        grid = figure.subplots(*shape, squeeze=False, sharex=True, sharey=True)
        for curve in study.curves:
            axes = grid[controls.index(curve.congestion_control), directions.index(curve.direction)]
            look, shares = style.look(curve.path), 100 * curve.goodput.values / curve.wire_limit
            buffers = np.broadcast_to(curve.goodput.window_bytes / curve.product, shares.shape)
            marks = {"color": look.color, "alpha": 0.55, "mew": 0, "label": names[curve.path]}
            axes.plot(buffers.ravel(), shares.ravel(), look.marker, **marks)
            axes.set_title(f"{curve.congestion_control}, {curve.direction}")
        for axes in grid.ravel():
            _theory(axes)
        for axes in grid[-1]:
            axes.set_xlabel("buffer / (rate × round trip) [1]")
        for axes in grid[:, 0]:
            axes.set_ylabel("goodput /\nwire limit [%]")
        drawing.legend_below(figure, grid.ravel(), 3)
        return figure


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


def all_repeats(study: Repeats) -> Figure:
    """Every goodput as a share of the wire limit [%], a row for each series, sorted, with the median."""
    names, rows = short_names(study.dataset), []
    with style.styled():
        figure, axes = drawing.new_figure(1.2 + 0.4 * len(study.series))
        for row, series in enumerate(study.series):
            look, sample = style.look(series.congestion_control), series.judged.sample
            shares = 100 * np.array(sample.values) / series.wire_limit
            places = row + SPREAD * (np.linspace(0, 1, len(shares)) - 0.5)
            marks = {"color": look.color, "alpha": 0.45, "mew": 0}
            axes.plot(shares, places, look.marker, label=series.congestion_control, **marks)
            median = 100 * sample.median / series.wire_limit
            axes.plot(median, row, "|", color=style.INK, markersize=14, mew=1.5, label="median")
            rows.append(f"{names[series.path]}, {series.direction}, {series.congestion_control}")
        drawing.rows(axes, rows)
        axes.set_xlabel("goodput / wire limit [%]")
        drawing.legend_below(figure, axes, 4)
        return figure
