"""TCP over long paths: which socket buffer fills them, and does the congestion control matter?"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import xarray as xr
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import attributes, drawing, published, style
from analysis.capacity import travelled
from analysis.derive import over_factors
from analysis.exhibit import Basis, Exhibit, Table
from analysis.experiments import long_repeats as repeat_series
from analysis.experiments.long_repeats import LongRepeats
from analysis.findings import (
    T_INTERVAL,
    Finding,
    of_control,
    of_estimate,
    origin,
    without_reading,
)
from analysis.fitting.adequacy import follows
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.statistics.intervals import average, rates
from analysis.models import bandwidth_delay
from analysis.statistics import design as designs
from analysis.statistics.judgement import Control, judge_control
from analysis.attributes import short_names
from analysis.wire import wire_limit
from analysis.wording import (
    UNKNOWN,
    between,
    byte_range,
    byte_size,
    counted,
    duration,
    exact,
    fixed,
    number,
    percent,
    percent_range,
)
from runners.record import FalloffError

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {
    "long_path": ("long_path",),
}

MODEL = "bandwidth_delay"
MBIT, GBIT, KIB, MS = 1e6, 1e9, 1024, 1e-3
FULL = 0.97  # of the goodput with the largest buffer: from there on a path counts as full
UNSCALED = 65536  # B: the largest window of TCP without window scaling (RFC 7323)
MISSES = "the model misses its data"
SAME = {"holds": "the same", "violated": "different", "undecided": "open"}


@dataclass(frozen=True)
class Curve:
    """Goodput over the socket buffer on one path, with one congestion control, in one direction.

    `goodput` [bit/s] is over (block, window_bytes). `rate` [bit/s on the wire], `wire_limit` [bit/s] and `round_trip`
    [s] are of the path's description; `measured_round_trip` [s] is what the sending kernel saw with the smallest
    buffer, which fills no queue: the median over the blocks, NaN where it is not known.
    `fitted` is the bandwidth-delay model of every block and `knee` its (estimate, low, high) [B of buffer asked for],
    a 95 % t interval over the blocks; where the data do not carry it, `fitted` is None, and `refused` says why.
    `follows` says whether the model follows its data: else the knee is not quoted.
    """

    path: str
    congestion_control: str
    direction: str
    goodput: xr.DataArray
    rate: float
    wire_limit: float
    round_trip: float
    measured_round_trip: float
    fitted: BlockFit | None = None
    knee: tuple[float, float, float] = (np.nan, np.nan, np.nan)
    refused: str = ""
    follows: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from the other curves."""
        return self.path, self.congestion_control, self.direction

    @property
    def product(self) -> float:
        """The window [B] that theory asks for: the wire limit times the round trip of the description."""
        return bandwidth_delay.knee(self.wire_limit, self.round_trip)

    @property
    def shares(self) -> xr.Dataset:
        """Harmonic means of goodput / wire limit [1] over (window_bytes), with 95 % t intervals."""
        return rates(self.goodput / self.wire_limit)

    @property
    def full_between(self) -> tuple[float, float]:
        """The largest buffer [B] that does not fill the path, and the next one, from which on all fill it.

        NaN where no buffer leaves it unfilled, and both without a goodput.
        """
        means = self.shares["mean"].dropna("window_bytes")
        buffers = means.window_bytes.values
        if not len(buffers):
            return np.nan, np.nan
        short = np.flatnonzero(means.values < FULL * means.values[-1])
        if not len(short):
            return np.nan, float(buffers[0])
        return float(buffers[short[-1]]), float(buffers[short[-1] + 1])


@dataclass(frozen=True)
class Contrast:
    """A congestion control against the design's control at the largest buffer, on a path in a direction.

    `agreement` is of the geometric-mean ratio of their goodputs in the same blocks.
    """

    path: str
    direction: str
    congestion_control: str
    agreement: Control


@dataclass(frozen=True)
class LongPath:
    """The campaign's dataset and all that follows from it, and the study of repeats where there are data for one.
    `today` is of a shorter run of it, made anew.

    `points` is over (block, *factors): `goodput` [bit/s] and `round_trip` [s], the sending kernel's mean;
    buffers that no trial got, such as larger ones than the machine grants, are left out.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    margin: float
    control: str
    curves: tuple[Curve, ...]
    contrasts: tuple[Contrast, ...]
    repeats: LongRepeats | None = None
    today: "LongPath | None" = None

    @property
    def evidence(self) -> str:
        """The kind of evidence."""
        return self.dataset.evidence.values.ravel()[0].item()

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return self.points.sizes["block"]

    @property
    def largest_window(self) -> int:
        """The largest buffer asked for [B]."""
        return int(self.points.window_bytes.max())

    @property
    def others(self) -> tuple[str, ...]:
        """The congestion controls that are set against the design's."""
        controls = self.points.congestion_control.values.tolist()
        return tuple(control for control in controls if control != self.control)


def analyse(
    long_path: xr.Dataset, long_repeats: xr.Dataset | None = None, today: xr.Dataset | None = None
) -> LongPath:
    """Derive curves and contrasts of the campaign and of today's run of it, and judge the campaign of repeats.

    Raises FalloffError when one of them holds no iperf3 trial.
    """
    points = over_factors(
        long_path, runner="iperf3", goodput=long_path.goodput, round_trip=long_path.rtt_mean
    )
    points = _measured(points.sortby("window_bytes"))
    design = designs.read(long_path)
    return LongPath(
        dataset=long_path,
        points=points,
        margin=design.margin,
        control=design.control,
        curves=tuple(_curve(long_path, points, *levels) for levels in _combinations(points)),
        contrasts=_contrasts(points, design),
        repeats=None if long_repeats is None else repeat_series.analyse(long_repeats),
        today=None if today is None else analyse(today),
    )


def _combinations(points: xr.Dataset) -> Iterator[tuple[str, str, str]]:
    """Every path, congestion control and direction."""
    factors = ("path", "congestion_control", "direction")
    return product(*(points[name].values.tolist() for name in factors))


def _measured(points: xr.Dataset) -> xr.Dataset:
    """The points at buffers with a goodput; all where there is none at all."""
    others = [name for name in points.goodput.dims if name != "window_bytes"]
    measured = points.goodput.notnull().any(others)
    return points.sel(window_bytes=measured) if measured.any() else points


def _described(dataset: xr.Dataset, path: str, direction: str) -> dict[str, float]:
    """Rate [bit/s on the wire], wire limit [bit/s] and round trip [s] of a path in a direction."""
    table = attributes.interconnects(dataset)[path]
    way = travelled(table, attributes.settings(dataset), direction)
    limit = wire_limit(way.rate, table["mtu"])
    return {"rate": way.rate, "wire_limit": limit, "round_trip": way.round_trip}


def _curve(dataset, points, path: str, congestion_control: str, direction: str) -> Curve:
    at = points.sel(path=path, congestion_control=congestion_control, direction=direction)
    goodput = at.goodput.transpose("block", "window_bytes")
    window = goodput.window_bytes.values.astype(float)
    values = {
        "path": path,
        "congestion_control": congestion_control,
        "direction": direction,
        "goodput": goodput,
        "measured_round_trip": float(at.round_trip.isel(window_bytes=0).median()),
        **_described(dataset, path, direction),
    }
    try:
        fitted = fit_blocks(bandwidth_delay.MODEL, window, goodput.values)
    except FalloffError as error:
        return Curve(**values, refused=str(error))
    line, *_ = fitted.band(window, "cost")  # arithmetic, as are the means that it is held against
    is_close = follows(goodput.values, line, len(bandwidth_delay.MODEL.parameters))
    return Curve(
        **values,
        fitted=fitted,
        knee=average(bandwidth_delay.knee(*fitted.by_block.T), "ratio"),
        follows=is_close,
    )


def _contrasts(points: xr.Dataset, design: designs.Design) -> tuple[Contrast, ...]:
    log = np.log(points.goodput.isel(window_bytes=-1))
    others = log.drop_sel(congestion_control=design.control)
    ratios = others - log.sel(congestion_control=design.control, drop=True)
    places = ["path", "direction", "congestion_control"]
    ratios = ratios.stack(place=places).transpose("place", "block")
    return tuple(
        Contrast(*place, judge_control(blocks, design.margin))
        for place, blocks in zip(ratios.place.values.tolist(), ratios.values)
    )


def findings(study: LongPath) -> Iterator[Finding]:
    """The buffer that fills each path, and each congestion control against the design's, as data."""
    source = origin("long_path", study.dataset)
    for curve in study.curves:
        blocks = 0 if curve.fitted is None else curve.fitted.blocks
        statement = (
            f"the buffer that fills {curve.path} {curve.direction} with {curve.congestion_control}"
        )
        reason = curve.refused or ("" if curve.follows else MISSES)
        estimate, *ends = curve.knee
        further = {"n": blocks, "reason": reason}
        yield of_estimate(source, statement, "buffer", "B", estimate, ends, T_INTERVAL, **further)
    for contrast in study.contrasts:
        place = f"{contrast.path} {contrast.direction}"
        controls = f"goodput with {contrast.congestion_control} over that with {study.control}"
        yield of_control(source, f"{controls}: {place}", contrast.agreement)


def finding(study: LongPath) -> str:
    """Which buffer fills a path and what congestion control changes, in plain English (Markdown)."""
    paragraphs = (
        (
            _of_buffers(study),
            _of_small_buffer(study),
            without_reading(study.dataset),
            _of_today(study),
        ),
        (_of_control(study, control) for control in study.others),
    )
    joined = (" ".join(filter(None, sentences)) for sentences in paragraphs)
    return "\n\n".join(filter(None, joined))


def _of_buffers(study: LongPath) -> str:
    quoted = [curve for curve in study.curves if curve.follows]
    basis = f"{counted(study.blocks, 'block')}, {study.evidence} evidence"
    if not quoted:
        reason = next((curve.refused for curve in study.curves if curve.refused), MISSES)
        return f"**From which buffer on TCP fills these paths cannot be said** ({basis}): {reason}"
    ratios = [curve.knee[0] / curve.product for curve in quoted]
    best = min(quoted, key=lambda curve: np.nan_to_num(curve.knee[2] / curve.knee[1], nan=np.inf))
    estimate, low, high = best.knee
    interval = "" if np.isnan(low) else f" (95 % t interval {byte_range((low, high))})"
    sentences = (
        f"**TCP fills these paths from a socket buffer of {fixed(np.median(ratios), 2)} times rate × round trip on** ({basis}).",
        _range(ratios),
        f"With {best.congestion_control} ({best.direction}) {_path(study, best)} is full from {byte_size(estimate)} on{interval}.",
        f"Its rate × round trip is {byte_size(best.product)}.",
        _of_the_rest(len(study.curves) - len(quoted)),
    )
    return " ".join(filter(None, sentences))


def _range(ratios: list[float]) -> str:
    if len(ratios) == 1:
        return ""
    return (
        f"That is the median of {counted(len(ratios), 'combination')} of path, direction and congestion control, which range "
        f"from {between((min(ratios), max(ratios)), 2)}."
    )


def _of_the_rest(count: int) -> str:
    if not count:
        return ""
    return (
        f"The other {count} have no estimate: the model misses the data or has too few buffers. The tables give the two "
        "tried buffers between which these paths fill."
    )


def _path(study: LongPath, curve: Curve) -> str:
    return f'the path "{short_names(study.dataset)[curve.path]}"'


def _of_small_buffer(study: LongPath) -> str:
    """What the largest unscaled window reaches where the round trip is longest."""
    curves = [curve for curve in study.curves if curve.congestion_control == study.control]
    longest = max(curves, key=lambda curve: curve.round_trip)
    if UNSCALED not in longest.goodput.window_bytes.values:
        return ""
    share = longest.shares.sel(window_bytes=UNSCALED)
    if not share["mean"] < FULL:
        return ""
    low, high = float(share.low), float(share.high)
    interval = "" if np.isnan(low) else f" (95 % interval {percent_range((low, high))})"
    return (
        f"With a buffer of {byte_size(UNSCALED)} TCP reaches {percent(float(share['mean']))}{interval} of the limit of "
        f"{_path(study, longest)}, {longest.direction}."
    )


def _of_control(study: LongPath, control: str) -> str:
    """How often a congestion control reaches the design's goodput with the largest buffer, and how far apart they are."""
    compared = [one for one in study.contrasts if one.congestion_control == control]
    agreements = [one.agreement for one in compared if one.agreement.ratio is not None]
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


def _of_today(study: LongPath) -> str:
    """The knees of today's run beside those of the reference, where the model follows both."""
    if study.today is None:
        return ""
    run = f"Today's run ({counted(study.today.blocks, 'block')})"
    stored = {curve.key: curve for curve in study.curves if curve.follows}
    both = [curve for curve in study.today.curves if curve.follows and curve.key in stored]
    sentences = [
        f"{run} finds {byte_size(curve.knee[0])} for {_path(study, curve)}, {curve.direction} with {curve.congestion_control}, "
        f"where the stored one has {byte_size(stored[curve.key].knee[0])}."
        for curve in both
    ]
    return " ".join(sentences) or f"{run} has no estimate to set beside these."


def figures(study: LongPath) -> dict[str, Exhibit]:
    """Goodput over the buffer, with every run."""
    return {
        "long_path": Exhibit(
            "long_path",
            goodput_over_buffer(study),
            "TCP's goodput over the socket buffer, both as shares of what the path allows",
            Basis(study.evidence, study.blocks, "every run is drawn"),
            "Goodput as a share of the wire limit over the socket buffer as a multiple of rate times round trip, a panel "
            "for each direction and congestion control",
            "Marks are single runs; the grey line is theory: a buffer a round trip, up to the wire limit. A path is named "
            "by its delay one way.",
            rests_on=FIGURES["long_path"],
        )
    }


def goodput_over_buffer(study: LongPath) -> Figure:
    """Goodput / wire limit [%] over buffer / product [1]: a column a direction, a row a congestion control."""
    names = short_names(study.dataset)
    controls = study.points.congestion_control.values.tolist()
    directions = study.points.direction.values.tolist()
    with style.styled():
        figure = Figure(figsize=(style.WIDTH, 1.4 + 1.9 * len(controls)))
        grid = figure.subplots(
            len(controls), len(directions), squeeze=False, sharex=True, sharey=True
        )
        for curve in study.curves:
            axes = grid[controls.index(curve.congestion_control), directions.index(curve.direction)]
            look = style.look(curve.path)
            buffers = curve.goodput.window_bytes.values / curve.product
            shares = 100 * curve.goodput.values / curve.wire_limit
            axes.plot(
                np.broadcast_to(buffers, shares.shape).ravel(),
                shares.ravel(),
                look.marker,
                color=look.color,
                alpha=0.55,
                mew=0,
                label=names[curve.path],
            )
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
    axes.plot(
        along,
        100 * np.minimum(along, 1),
        color=style.FAINT,
        linewidth=1,
        zorder=1,
        label="theory",
        gid=drawing.COMPUTED,
    )
    axes.set_xlim(ends)
    axes.set_ylim(0, 110)
    axes.xaxis.set_major_locator(ticker.LogLocator())
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(ticker.NullLocator())


def buffers_table(study: LongPath) -> Table:
    """The buffer from which on each path is full beside the theoretical one, with the design's congestion control."""
    names = short_names(study.dataset)
    columns = (
        "Path",
        "Rate [Mbit/s]",
        "Round trip (measured) [ms]",
        "Rate × round trip [KiB]",
        "Full from (95 % interval) [KiB]",
        "Full from / product [1]",
        "Reached [%]",
    )
    rows = [
        (
            f"{names[curve.path]}, {curve.direction}",
            number(curve.rate / MBIT),
            f"{number(curve.round_trip / MS)} ({number(_known(curve.measured_round_trip / MS))})",
            number(curve.product / KIB),
            _full_from(curve),
            _ratio(curve),
            fixed(_known(100 * curve.shares["mean"].isel(window_bytes=-1)), 1),
        )
        for curve in study.curves
        if curve.congestion_control == study.control
    ]
    caption = (
        f"The socket buffer from which on a path is full, with {study.control}: the knee of the bandwidth-delay model, or the "
        "tried buffers around it where the model misses its data. The measured round trip is with the smallest buffer. "
        f"Reached: goodput with {byte_size(study.largest_window)} / wire limit."
    )
    basis = Basis(study.evidence, study.blocks, "95 % t intervals")
    return Table("long-path", columns, "lrrrrrr", rows, caption, basis)


def _full_from(curve: Curve) -> str:
    """The knee with its interval [KiB], or the tried buffers between which the path fills."""
    if curve.follows:
        estimate, low, high = (_known(value / KIB) for value in curve.knee)
        interval = "" if low is None else f" ({number(low)} to {number(high)})"
        return f"{number(estimate)}{interval}"
    unfilled, full = curve.full_between
    if np.isnan(full):
        return UNKNOWN
    return (
        f"at most {full / KIB:g}"
        if np.isnan(unfilled)
        else f"between {unfilled / KIB:g} and {full / KIB:g}"
    )


def _ratio(curve: Curve) -> str:
    return fixed(curve.knee[0] / curve.product, 2) if curve.follows else UNKNOWN


def controls_table(study: LongPath) -> Table:
    """Each other congestion control: the buffer that fills, and its goodput at the largest one against the design's."""
    names = short_names(study.dataset)
    curves = {curve.key: curve for curve in study.curves}
    columns = (
        "Path",
        "Control",
        "Full from (95 % interval) [KiB]",
        "Full from / product [1]",
        f"Goodput / that of {study.control} (90 % interval) [1]",
        "Blocks",
        "The same?",
    )
    rows = []
    for contrast in study.contrasts:
        curve = curves[contrast.path, contrast.congestion_control, contrast.direction]
        agreement = contrast.agreement
        interval = f" ({between(agreement.interval, 3)})" if agreement.interval else ""
        rows.append(
            (
                f"{names[contrast.path]}, {contrast.direction}",
                contrast.congestion_control,
                _full_from(curve),
                _ratio(curve),
                f"{fixed(agreement.ratio, 3)}{interval}",
                str(agreement.blocks),
                SAME[agreement.kind],
            )
        )
    caption = (
        f"Other congestion controls: the buffer as for {study.control}, and geometric-mean ratios of the goodputs with "
        f"{byte_size(study.largest_window)} in the same blocks. The same: the whole interval lies within "
        f"{percent(study.margin, 0)}."
    )
    basis = Basis(study.evidence, study.blocks, "t intervals")
    return Table("long-path-control", columns, "llrrrrl", rows, caption, basis)


def source() -> str:
    """What the source printed of its transfers, and what follows from its buffers (Markdown)."""
    printed = published.grid5000()
    most = {name: _gbit(entry["value"]) for name, entry in printed["maximum"].items()}
    rate, buffers = printed["backbone"]["rate"]["value"], printed["tcp"]["buffers"]["value"]
    quotes = {statement["about"]: statement["quote"] for statement in printed["statement"]}
    sentences = (
        f"The source reached at most {most['rennes_to_lyon']} from Rennes to Lyon and {most['lyon_to_rennes']} back, over a "
        f"backbone of {_gbit(rate)} (published evidence) [@gridfive].",
        f'It says: "{quotes["reproducibility"]}"',
        f"Its buffers of {byte_size(buffers)} would fill that backbone up to a round trip of {duration(8 * buffers / rate)} "
        "(computed), if the kernel granted them.",
        "Neither its round trips nor its single transfers are printed.",
    )
    return " ".join(sentences)


def _gbit(printed: float) -> str:
    return f"{exact(printed / GBIT)} Gbit/s"


def _known(value) -> float | None:
    return float(value) if np.isfinite(value) else None
