"""TCP over long paths: the socket buffer that fills each, whether congestion control matters, and whether a transfer repeats
itself."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib import ticker
from matplotlib.figure import Figure
from scipy import stats

from analysis import capacity, drawing, exhibit, style
from analysis.attributes import interconnects, settings, short_names
from analysis.derive import over_factors
from analysis.fitting.block_fit import Attempt, attempt
from analysis.models import bandwidth_delay
from analysis.statements import Statement, estimated, judged_ratio, origin, unless_across
from analysis.statistics import design as designs
from analysis.statistics.intervals import average
from analysis.statistics.judgement import UNDECIDED, judge_control
from analysis.statistics.repeats import Reproducibility, judge_repeats, variation_interval
from analysis.wire import wire_limit
from analysis.wording import between, byte_size, fixed, percent

MBIT = 1e6  # bit/s
PLANNED = "long_5ms", "forward"  # path and direction of the summary and of a quick run
# Share of the largest goodput of the same transfer; it is the ratio of the Grid'5000 source's two maxima.
MUCH_LOWER = 2 / 3
MCKAY = "95 % modified McKay interval over the transfers"
ANSWERS = {"reproducible": "yes", "not reproducible": "no"}


class Place(NamedTuple):
    """The path and direction of a series of transfers, and their congestion control."""

    path: str
    congestion_control: str
    direction: str


def goodput(dataset: xr.Dataset) -> xr.DataArray:
    """Goodput [bit/s] over (block, *factors), buffers ascending. Buffers that no trial got, such as those larger than the
    machine grants, are left out. Raises FalloffError if there is no iperf3 trial."""
    laid_out = over_factors(dataset, runner="iperf3", goodput=dataset.goodput).goodput
    if "window_bytes" not in laid_out.dims:
        return laid_out
    laid_out = laid_out.sortby("window_bytes")
    measured = laid_out.notnull().any([dim for dim in laid_out.dims if dim != "window_bytes"])
    return laid_out.sel(window_bytes=measured) if measured.any() else laid_out


def described(dataset: xr.Dataset, goodput: xr.DataArray) -> xr.Dataset:
    """What each path's description allows, over (path, direction): `rate` on the wire and `wire_limit` of the payload
    [bit/s], `round_trip` [s], and their `product` [B], the window that theory requires."""
    paths, given = interconnects(dataset), settings(dataset)
    ends = given["sender"], given["receiver"]
    directions = goodput.direction.values.tolist()
    rows = []
    for path, direction in product(goodput.path.values.tolist(), directions):
        way = capacity.way(paths[path], *(ends if direction == "forward" else ends[::-1]))
        limit = wire_limit(way.rate, paths[path]["mtu"])
        window = bandwidth_delay.knee(limit, way.round_trip)
        rows.append((path, direction, way.rate, limit, way.round_trip, window))
    columns = ["path", "direction", "rate", "wire_limit", "round_trip", "product"]
    table = pd.DataFrame(rows, columns=columns).set_index(columns[:2]).to_xarray()
    return table.sel(path=goodput.path, direction=goodput.direction)


def by_place(values: xr.DataArray) -> Iterator[tuple[Place, xr.DataArray]]:
    """The values at each place, over the other dims."""
    for levels in product(*(values[name].values.tolist() for name in Place._fields)):
        place = Place(*levels)
        yield place, values.sel(place._asdict())


def fits(goodput: xr.DataArray) -> dict[Place, Attempt]:
    """At most a buffer in each round trip, up to a limit: fitted to every block, by place (RFC 1323, see
    `models.bandwidth_delay`)."""
    windows = goodput.window_bytes.values.astype(float)
    return {
        place: attempt(bandwidth_delay.MODEL, windows, at.transpose("block", "window_bytes").values)
        for place, at in by_place(goodput)
    }


def filling(fits: Mapping[Place, Attempt], described: xr.Dataset) -> pd.DataFrame:
    """The buffer that fills each path by the fit, a row for each place: `buffer`, `low`, `high` [B], a 95 % t interval over
    the blocks; `product` [B] and `ratio` [1] to it; `quoted`, whether the model follows the data. Unknown is NaN."""
    rows = []
    for place, model in fits.items():
        buffer = (np.nan,) * 3
        if model.fitted:
            knees = bandwidth_delay.knee(*model.fitted.by_block.T)
            buffer = tuple(map(float, average(knees, "ratio")))
        window = float(described["product"].sel(path=place.path, direction=place.direction))
        rows.append((*place, *buffer, window, buffer[0] / window, model.follows))
    columns = [*Place._fields, "buffer", "low", "high", "product", "ratio", "quoted"]
    return pd.DataFrame(rows, columns=columns).set_index(columns[:3])


def fill(
    dataset: xr.Dataset, fits: Mapping[Place, Attempt], filling: pd.DataFrame
) -> Iterator[Statement]:
    """From which buffer on does TCP fill each path? Open where the model misses the data."""
    source, names, planned = (
        origin(dataset),
        short_names(dataset),
        Place(PLANNED[0], designs.read(dataset).control, PLANNED[1]),
    )
    buffers = dataset.window_bytes.values
    tried = np.nanmin(buffers), np.nanmax(buffers)
    for place, model in fits.items():
        path, control, direction = place
        subject = f"TCP fills path {names[path]} from this buffer on: {direction}, {control}"
        ends = tuple(filling.loc[place, ["buffer", "low", "high"]])
        words = unless_across("found", ends[1:], *tried) if model.follows else UNDECIDED
        about = {"words": words, "reason": model.reason}
        about["primary"] = place == planned
        yield estimated(source, subject, "buffer", ends, model.blocks, unit="B", **about)


def filling_in_words(fits: Mapping[Place, Attempt], filling: pd.DataFrame) -> str:
    """The buffers that fill the paths as multiples of payload rate times round trip, in sentences (Markdown)."""
    ratios = filling.ratio[filling.quoted]
    if ratios.empty:
        reason = next(iter(fits.values())).reason.rstrip(".")
        return f"**From which buffer on TCP fills these paths cannot be said**: {reason}."
    sentences = [
        f"**TCP fills these paths from a socket buffer of {between((ratios.min(), ratios.max()), 2)} times payload rate × round "
        f"trip on**, {fixed(ratios.median(), 2)} in the median of {len(ratios)} combinations of path, direction and congestion "
        "control."
    ]
    if ratios.median() < 1:
        sentences.append("Less than 1 is enough where Linux grants more buffer than is asked for.")
    if others := len(filling) - len(ratios):
        sentences.append(
            f"The other {others} have no estimate: the model misses the data or has too few buffers."
        )
    return " ".join(sentences)


def controls_compared(dataset: xr.Dataset, goodput: xr.DataArray) -> Iterator[Statement]:
    """Is TCP as fast with another congestion control as with the design's, with the largest buffer in the same blocks?"""
    source, names, design = origin(dataset), short_names(dataset), designs.read(dataset)
    log = np.log(goodput.isel(window_bytes=-1))
    others = log.drop_sel(congestion_control=design.control)
    ratios = by_place(others - log.sel(congestion_control=design.control, drop=True))
    for (path, control, direction), ratio in ratios:
        subject = f"TCP is as fast with {control} as {design.control}: {names[path]}, {direction}"
        yield judged_ratio(source, subject, judge_control(ratio.values, design.margin))


def repeated(dataset: xr.Dataset) -> dict[Place, Reproducibility]:
    """Every series of repeated transfers, judged by the coefficient of variation of its goodput; raises FalloffError if there
    is no iperf3 trial."""
    margin = designs.read(dataset).margin
    return {at: judge_repeats(one.values, margin) for at, one in by_place(goodput(dataset))}


def repeats_itself(
    dataset: xr.Dataset, judged: Mapping[Place, Reproducibility]
) -> Iterator[Statement]:
    """Does the same transfer give the same goodput again? `judged` is from `repeated`; primary is the series that varies
    most."""
    source, names = origin(dataset), short_names(dataset)
    known = [one.variation for one in judged.values() if np.isfinite(one.variation)]
    for (path, control, direction), one in judged.items():
        yield estimated(
            source,
            f"TCP repeats its goodput: path {names[path]}, {direction}, {control}",
            "coefficient of variation",
            (one.variation, *one.interval),
            one.n,
            MCKAY,
            n_of="transfer",
            words=ANSWERS.get(one.kind, UNDECIDED),
            margin=designs.read(dataset).margin,
            primary=bool(known) and one.variation == max(known),
        )


def scattered(
    dataset: xr.Dataset, judged: Mapping[Place, Reproducibility], path: str, control: str
) -> list[Statement]:
    """The coefficient of variation of a path's goodput in each direction, and the share of all transfers that are much
    slower than the fastest of their kind, as quantities; `judged` is from `repeated`."""
    source, found = origin(dataset), []
    for direction in ("forward", "reverse"):
        if (one := judged.get(Place(path, control, direction))) is not None:
            text = f"coefficient of variation of goodput, {control}, {direction}"
            ends = variation_interval(one.variation, one.n, 0.95)
            about = {"kind": MCKAY, "n_of": "transfer"}
            about |= {"name": f"scatter_{direction}"}
            estimate = one.variation, *ends
            found.append(
                estimated(source, text, "coefficient of variation", estimate, one.n, **about)
            )
    known = [np.array(one.values) for one in judged.values() if one.values]
    if not known:
        return found
    slow = sum(int((values < MUCH_LOWER * values.max()).sum()) for values in known)
    # Clopper and Pearson, Biometrika 26, 1934, 404-413
    test = stats.binomtest(slow, sum(map(len, known)))
    text = "share of transfers below two thirds of the fastest of their kind"
    about = {"kind": "95 % Clopper-Pearson interval", "n_of": "transfer", "name": "much_slower"}
    estimate = slow / test.n, *test.proportion_ci(0.95)
    return [*found, estimated(source, text, "share", estimate, test.n, **about)]


def slowest(judged: Mapping[Place, Reproducibility]) -> str:
    """The slowest transfer as a share of the median of its series, in a sentence; empty without a reading. A rare slow state
    shows in it, but hardly in the variation."""
    shares = [one.values[0] / np.median(one.values) for one in judged.values() if one.values]
    if not shares:
        return ""
    return f"The slowest transfer reached {percent(min(shares), 0)} of the median of its series."


def goodput_over_buffer(
    dataset: xr.Dataset, goodput: xr.DataArray, described: xr.Dataset
) -> Figure:
    """Goodput over the wire limit [%] over buffer over product [1], a series for each path: forward, with the design's
    congestion control. The grey line is theory: a buffer in each round trip, up to the wire limit."""
    names, at = short_names(dataset), {"direction": PLANNED[1]}
    shown = goodput.sel(congestion_control=designs.read(dataset).control, **at)
    with style.styled():
        figure, axes = drawing.new_figure(3.2)
        for path in shown.path.values.tolist():
            allowed = described.sel(path=path, **at)
            buffers = shown.window_bytes.values / float(allowed["product"])
            shares = 100 * shown.sel(path=path) / float(allowed.wire_limit)
            drawing.runs(axes, path, buffers, shares, names[path])
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
    return figure


def paths_table(dataset: xr.Dataset, described: xr.Dataset) -> exhibit.Table:
    """The settings of each path: rates, round trip, and the forward buffer that theory requires."""
    rows, names = [], short_names(dataset)
    for path in described.path.values.tolist():
        both = described.sel(path=path)
        forward = both.sel(direction="forward")
        rates = dict.fromkeys(f"{rate / MBIT:g}" for rate in both.rate.values)
        trip = f"{1e3 * float(forward.round_trip):g}"
        rows.append((names[path], " and ".join(rates), trip, byte_size(float(forward["product"]))))
    columns = ("Path", "Rate [Mbit/s]", "Round trip [ms]", "Payload rate × round trip")
    caption = "What was set on each path; two rates are forward and reverse."
    return exhibit.Table("long-path-paths", columns, "lrrr", rows, caption)
