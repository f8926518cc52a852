"""Models of exchanged tokens: latency and bandwidth of one pair, and what more pairs do to each other."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, models, style
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import known, origin
from analysis.fitting.adequacy import follows
from analysis.fitting.block_fit import BlockFit, fit_blocks
from analysis.fitting.compare import Comparison, compare
from analysis.statistics.intervals import rates, summary
from analysis.models import hockney
from analysis.attributes import short_names
from analysis.token_points import Place
from analysis.wording import UNKNOWN, byte_size, number, percent
from runners.record import FalloffError

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {
    "token_pairs": ("token_exchange",),
    "token_round_trips": ("token_exchange",),
}

# Curves of one pair's rate gamma and, but for the first, its part sigma of what is shared, whose capacity is
# gamma / sigma. Fair share: an exchange takes its own time and the wire's part as often as there are pairs,
# which is Amdahl's curve. Interference: every two pairs cost each other time too, which is Gunther's.
CONTENTION = {
    "proportional": "no contention",
    "shared_capacity": "shared capacity",
    "amdahl": "fair share",
    "universal_scalability": "interference",
}
# A smaller difference of AICc supports both models (Burnham and Anderson 2002, section 2.6).
DECISIVE = 2.0
SLOW = 0.99  # the quantile of the round trips that is told beside their median

MBIT, MB = 1e6, 1e6  # bit/s, bytes
SIDESTEP, ASIDE = 0.36, 0.14  # of a pair: between two paths, and of blocks left of their mean
PANELS = {
    "shared_wire": "shared by all",
    "bonded_shared": "shared by all",
    "local_wire": "each pair's own",
    "local_router": "each pair's own",
    "bonded": "each pair's own",
    "remote_switch": "two in a row",
    "remote_router": "two in a row",
    "bonded_switch": "two in a row",
}

Estimate = tuple[
    float, float, float
]  # mean, and its 95 % t interval over the blocks (NaN: not known)


@dataclass(frozen=True)
class Latency:
    """One pair on a path.

    `round_trip` [s] is over (block, token_bytes): the median of its exchanges, as what else the machine does delays
    some of them manyfold. `slowest` [s] is the quantile SLOW of the smallest token's, mean over the blocks. `more` is
    over (token_bytes): by how much a round trip is longer than on the path that the design compares with, of the same
    rate and in the same blocks, `mean`, `low`, `high` [s] and `blocks`; None on that path, and without it.
    `fitted` is Hockney's model of half a round trip in every block, on the logarithms of the times; None where the
    data do not carry it, and `refused` says why.
    """

    place: Place
    round_trip: xr.DataArray
    slowest: float
    more: xr.Dataset | None
    fitted: BlockFit | None
    refused: str = ""

    @property
    def is_line(self) -> bool:
        """Whether the time over the size follows Hockney's straight line."""
        if self.fitted is None:
            return False
        sizes = self.round_trip.token_bytes.values
        modelled, *_ = self.fitted.band(sizes, "cost", lambda size, log_time: np.exp(log_time))
        return follows(self.round_trip.values / 2, modelled, len(self.fitted.model.parameters))

    def parameter(self, name: str) -> Estimate:
        """`alpha` [s] or `beta` [s/B], mean over the blocks; NaN without a fit."""
        return self.fitted.parameter(name, "cost") if self.fitted else (np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Pairs:
    """System throughput [B/s] over (block, pairs) on a path, and the models of it, the best AICc first."""

    place: Place
    throughput: xr.DataArray
    comparisons: tuple[Comparison, ...]

    @property
    def near_best(self) -> tuple[Comparison, ...]:
        """The models within DECISIVE of the least AICc; none where a model has no AICc."""
        if None in [each.aicc for each in self.comparisons]:
            return ()
        least = self.comparisons[0].aicc
        return tuple(each for each in self.comparisons if each.aicc - least < DECISIVE)

    @property
    def supported(self) -> tuple[Comparison, ...]:
        """Those of the models near the best that the throughputs follow."""
        return tuple(each for each in self.near_best if self._follows(each))

    @property
    def only(self) -> Comparison | None:
        """The model that is supported beyond all others; None where there are several or none."""
        return self.supported[0] if len(self.near_best) == len(self.supported) == 1 else None

    def _follows(self, model: Comparison) -> bool:
        fitted = model.pooled.predict(self.throughput.pairs.values)
        return follows(self.throughput.values, fitted, len(model.model.parameters))


@dataclass(frozen=True)
class TokenModels:
    """The campaign's dataset and points, as `token_points.points` gives them, and the models on every path."""

    dataset: xr.Dataset
    points: xr.Dataset
    latencies: tuple[Latency, ...]
    contention: tuple[Pairs, ...]

    @property
    def places(self) -> tuple[Place, ...]:
        """The places of the paths."""
        return tuple(each.place for each in self.latencies)

    @property
    def names(self) -> dict[str, str]:
        """The short names of the paths."""
        return short_names(self.dataset)


def analyse(
    dataset: xr.Dataset, points: xr.Dataset, places: tuple[Place, ...], against: str
) -> TokenModels:
    """Fit latency to one pair's round trips, and contention to the throughputs of the largest token.

    `points` is from `token_points.points`; `against` is the topology that the others' round trips are compared with.
    """
    # NaN where one pair was not planned.
    alone = points.round_trip.reindex(pairs=[1]).isel(pairs=0)
    alone = alone.transpose(..., "block", "token_bytes")
    compared = {place.rate: place.path for place in places if place.topology == against}
    crowd = points.throughput.isel(token_bytes=-1)
    return TokenModels(
        dataset=dataset,
        points=points,
        latencies=tuple(_latency(place, alone, compared.get(place.rate)) for place in places),
        contention=tuple(contention(place, crowd.sel(path=place.path)) for place in places),
    )


def _latency(place: Place, alone: xr.DataArray, local: str | None) -> Latency:
    """Of round trips [s] over (quantile, path, block, token_bytes); `local` is the path that is compared with."""
    median = alone.sel(quantile=0.5)
    round_trip = median.sel(path=place.path)
    is_compared = local not in (None, place.path)
    slowest = alone.sel(quantile=SLOW, path=place.path).isel(token_bytes=0).mean("block")
    fitted, refused = None, ""
    try:
        sizes, log_time = round_trip.token_bytes.values, np.log(round_trip.values / 2)
        fitted = fit_blocks(hockney.OF_LOGARITHMS, sizes, log_time)
    except FalloffError as refusal:
        refused = str(refusal)
    return Latency(
        place=place,
        round_trip=round_trip,
        slowest=float(slowest),
        more=summary(round_trip - median.sel(path=local)) if is_compared else None,
        fitted=fitted,
        refused=refused,
    )


def contention(place: Place, throughput: xr.DataArray) -> Pairs:
    """Compare the models on throughput [B/s] over (block, pairs), pairs ascending."""
    throughput = throughput.transpose("block", "pairs")
    compared = compare(map(models.find, CONTENTION), throughput.pairs.values, throughput.values)
    return Pairs(place, throughput, compared)


def throughput_over_pairs(study: TokenModels) -> Figure:
    """System throughput [MB/s] of the largest token over pairs at the lowest rate, with the wires' limits."""
    slowest = min(place.rate for place in study.places)
    shown = [each for each in study.contention if each.place.rate == slowest]
    titles = dict.fromkeys(_panel(each.place) for each in shown)
    with style.styled():
        figure, panels = drawing.new_figures(3.8, len(titles))
        for axes, title in zip(panels, titles):
            axes.sharey(panels[0])
            together = [each for each in shown if _panel(each.place) == title]
            for rank, each in enumerate(together):
                _throughput(axes, study, each, SIDESTEP * (rank - (len(together) - 1) / 2))
            axes.set(title=title, xlabel="pairs", yscale="log")
            axes.set_xticks(study.points.pairs.values)
            axes.tick_params(labelleft=axes is panels[0])
        drawing.log_ticks(panels[0].yaxis)
        panels[0].set_ylabel("throughput of all pairs [MB/s]")
        drawing.legend_below(figure, panels, 3)
        return figure


def _panel(place: Place) -> str:
    return PANELS.get(place.topology, "other wires")


def _throughput(axes: Axes, study: TokenModels, shown: Pairs, sidestep: float) -> None:
    """One path: blocks, right of them means with intervals, and the wires' limit."""
    look, values = style.look(shown.place.topology), shown.throughput / MB
    places = values.pairs.values + sidestep
    small = {"color": look.color, "alpha": 0.45, "markersize": 3, "mew": 0}
    blocks = values.transpose("block", "pairs").values
    axes.plot(
        np.broadcast_to(places - ASIDE, blocks.shape).ravel(), blocks.ravel(), look.marker, **small
    )
    means = rates(values)
    ends = (means[end].values for end in ("mean", "low", "high"))
    drawing.interval(axes, shown.place.topology, places, *ends)
    name = study.names[shown.place.path]
    axes.plot([], [], look.marker, color=look.color, mfc="white", label=name)
    limit = study.points.limit.sel(path=shown.place.path).isel(token_bytes=-1) / MB
    wires = {"color": style.INK, "linewidth": 0.9, "gid": drawing.BOUND}
    axes.plot(values.pairs.values, limit, ":", label="what the wires carry", **wires)


def round_trips_over_size(study: TokenModels) -> Figure:
    """One pair's median round trip [ms] of every block by path, a series a token's size."""
    with style.styled():
        figure, axes = drawing.new_figure(1.2 + 0.28 * len(study.latencies))
        for row, latency in enumerate(study.latencies):
            _round_trips(axes, row, latency)
        drawing.rows(axes, [study.names[latency.place.path] for latency in study.latencies])
        axes.set_xlabel("round trip [ms]")
        if any(latency.round_trip.notnull().any() for latency in study.latencies):
            axes.set_xscale("log")
            drawing.log_ticks(axes.xaxis)
        drawing.legend_below(figure, axes, 3)
        return figure


def _round_trips(axes: Axes, row: int, latency: Latency) -> None:
    """One path: every block's round trips [ms], and means with intervals below them."""
    times = 1e3 * latency.round_trip
    means = summary(times)
    for rank, size in enumerate(times.token_bytes.values, start=1):
        look, blocks = style.look(f"nodes {rank}"), times.sel(token_bytes=size).values
        small = {"color": look.color, "alpha": 0.45, "markersize": 3, "mew": 0}
        axes.plot(blocks, np.full(len(blocks), row - 0.2), look.marker, **small)
        at = means.sel(token_bytes=size)
        ends = (float(at[end]) for end in ("mean", "low", "high"))
        label = f"token of {byte_size(int(size))}"
        drawing.interval_across(axes, look, row + 0.15, *ends, label)


def figures(study: TokenModels) -> dict[str, Exhibit]:
    """Throughput over pairs, and round trips of one pair."""
    largest = byte_size(int(study.points.token_bytes[-1]))
    return {
        "token_pairs": Exhibit(
            "token_pairs",
            throughput_over_pairs(study),
            f"Throughput of all pairs over their number, tokens of {largest}: wires that all share, each pair's own, and two "
            "in a row",
            _basis(study, "95 % t intervals of harmonic means"),
            "Throughput over the number of pairs, a panel for shared, own and remote wires",
            "Small marks are single blocks.",
            rests_on=FIGURES["token_pairs"],
        ),
        "token_round_trips": Exhibit(
            "token_round_trips",
            round_trips_over_size(study),
            "Median round trips of one pair's tokens on every path",
            _basis(study, "95 % t intervals of arithmetic means"),
            "Round trips of small and large tokens, a row for each path",
            "Small marks are single blocks.",
            rests_on=FIGURES["token_round_trips"],
        ),
    }


def contention_table(study: TokenModels) -> Table:
    """Which models of contention the throughputs over pairs support, and the parameters of the only one."""
    largest = byte_size(int(study.points.token_bytes[-1]))
    caption = (
        f"Models of contention that the throughputs of tokens of {largest} over pairs support: those within "
        f"{DECISIVE:g} of the least AICc that follow the data. One that stands alone is told with its parameters"
    )
    rows = [_contention_row(study.names[each.place.path], each) for each in study.contention]
    columns = ("Path", "Supported by the data", "γ [MB/s]", "σ [1]", "κ [1]")
    basis = _basis(study, "95 % t intervals")
    return Table("token-pairs", columns, "lllll", rows, caption, basis)


def _contention_row(name: str, pairs: Pairs) -> tuple[str, ...]:
    titles = [CONTENTION[each.model.name] for each in pairs.supported]
    none = "none follows them" if pairs.near_best else "too few points"
    scales = {"gamma": MB, "sigma": 1.0, "kappa": 1.0}
    parameters = [_parameter(pairs.only, each, scale) for each, scale in scales.items()]
    return name, " or ".join(titles) or none, *parameters


def _parameter(model: Comparison | None, name: str, scale: float) -> str:
    if model is None or name not in model.pooled.estimates:
        return UNKNOWN
    low, high = model.intervals.get(name, (np.nan, np.nan))
    return _with_ends(model.pooled.estimates[name] / scale, low / scale, high / scale)


def round_trips_table(study: TokenModels) -> Table:
    """One pair's round trips on every path, what they add to a local wire's, and Hockney's line where it holds."""
    sizes = study.points.token_bytes.values
    least, most = (byte_size(int(size)) for size in (sizes[0], sizes[-1]))
    slow = f"{percent(SLOW, 0)} of {least} [ms]"
    columns = (
        *("Path", f"{least} [ms]", slow, f"{least}, more [ms]"),
        *(f"{most} [ms]", "α [µs]", "β [ns/B]"),
    )
    caption = (
        f"Median round trips of one pair, the time within which {percent(SLOW, 0)} of the smallest tokens return, "
        "and how much longer the medians of these are than on a local wire of the same rate. Latency α and inverse "
        "bandwidth β, one way, are told where the time is a straight line over the size"
    )
    rows = [_round_trip_row(study.names[each.place.path], each) for each in study.latencies]
    basis = _basis(study, "arithmetic means with 95 % t intervals")
    return Table("token-round-trips", columns, "lllllll", rows, caption, basis)


def _round_trip_row(name: str, latency: Latency) -> tuple[str, ...]:
    times = summary(1e3 * latency.round_trip)
    more = latency.more
    scales = {"alpha": 1e6, "beta": 1e9}
    line = [
        _with_ends(*(scale * value for value in latency.parameter(parameter)))
        for parameter, scale in scales.items()
    ]
    return (
        name,
        _mean(times.isel(token_bytes=0)),
        number(known(1e3 * latency.slowest)),
        UNKNOWN if more is None else _mean(1e3 * more.isel(token_bytes=0)),
        _mean(times.isel(token_bytes=-1)),
        *(line if latency.is_line else (UNKNOWN, UNKNOWN)),
    )


def _mean(at: xr.Dataset) -> str:
    return _with_ends(*(float(at[end]) for end in ("mean", "low", "high")))


def _with_ends(mean: float, low: float, high: float) -> str:
    """Three significant digits, and the interval in parentheses where it is known."""
    interval = "" if np.isnan(low) else f" ({number(low)} to {number(high)})"
    return number(known(mean)) + interval


def _basis(study: TokenModels, intervals: str) -> Basis:
    evidence = origin("token_exchange", study.dataset)["evidence"]
    return Basis(evidence, study.points.sizes["block"], intervals)
