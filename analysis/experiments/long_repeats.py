"""Does the same transfer over a long path give the same goodput again, with a buffer that fills the path?"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import attributes, drawing, style
from analysis.capacity import travelled
from analysis.derive import over_factors
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import Finding, of_estimate, origin, without_reading
from analysis.statistics.repeats import Reproducibility, judge_repeats
from analysis.statistics import design as designs
from analysis.attributes import short_names
from analysis.wire import wire_limit
from analysis.wording import (
    between,
    byte_size,
    counted,
    fixed,
    number,
    percent,
    percent_range,
)

# The campaigns, and the files of data/, that each figure rests on.
FIGURES = {
    "long_path_repeats": ("long_repeats",),
}

MBIT = 1e6
SPREAD = 0.6  # of a row, for the repeats in it
MCKAY = "95 % modified McKay interval over the transfers"
VERDICTS = {"reproducible": "yes", "not reproducible": "no", "undecided": "open"}


@dataclass(frozen=True)
class Series:
    """Repeats of a transfer on a path with one congestion control in one direction, judged; `wire_limit` [bit/s]."""

    path: str
    congestion_control: str
    direction: str
    wire_limit: float
    judged: Reproducibility


@dataclass(frozen=True)
class LongRepeats:
    """The campaign's dataset and its series; `margin` is the largest variation [1] that counts as reproducible."""

    dataset: xr.Dataset
    margin: float
    series: tuple[Series, ...]

    @property
    def evidence(self) -> str:
        """The kind of evidence."""
        return self.dataset.evidence.values.ravel()[0].item()

    @property
    def blocks(self) -> int:
        """How often every transfer was run, those without a reading too."""
        samples = [series.judged.sample for series in self.series]
        return max(sample.n + sample.missing for sample in samples)

    @property
    def buffer(self) -> int:
        """The socket buffer asked for [B]."""
        return attributes.settings(self.dataset)["window_bytes"]

    def verdicts(self, kind: str) -> int:
        """How many series have this verdict."""
        return sum(series.judged.kind == kind for series in self.series)


def analyse(long_repeats: xr.Dataset) -> LongRepeats:
    """Judge every series; raises FalloffError when there is no iperf3 trial."""
    goodput = over_factors(long_repeats, runner="iperf3", goodput=long_repeats.goodput).goodput
    paths, settings = attributes.interconnects(long_repeats), attributes.settings(long_repeats)
    margin = designs.read(long_repeats).margin

    def series(path: str, control: str, direction: str) -> Series:
        rate = travelled(paths[path], settings, direction).rate
        values = goodput.sel(path=path, congestion_control=control, direction=direction).values
        limit = wire_limit(rate, paths[path]["mtu"])
        return Series(path, control, direction, limit, judge_repeats(values, margin))

    factors = ("path", "congestion_control", "direction")
    levels = product(*(goodput[name].values.tolist() for name in factors))
    return LongRepeats(long_repeats, margin, tuple(series(*level) for level in levels))


def findings(study: LongRepeats) -> Iterator[Finding]:
    """The variation of every series with its verdict, as data."""
    source = origin("long_repeats", study.dataset)
    for series in study.series:
        judged = series.judged
        statement = (
            f"goodput is the same again on {series.path} {series.direction} "
            f"with {series.congestion_control}, within {100 * study.margin:g} %"
        )
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
        )


def finding(study: LongRepeats) -> str:
    """How many series are reproducible, the largest variation and the slowest transfer, in plain English (Markdown)."""
    again, differs = study.verdicts("reproducible"), study.verdicts("not reproducible")
    series = f"{len(study.series)} combinations of path, direction and congestion control"
    if not again and not differs:
        verdict = f"**Whether the same transfer gives the same goodput again is open** for {series}"
    elif not again:
        verdict = (
            f"**The same transfer does not give the same goodput again** for {differs} of {series}"
        )
    else:
        verdict = f"**The same transfer gives the same goodput again** for {again} of {series}"
        verdict += f", and not for {differs}" if differs else ""
    basis = f"{counted(study.blocks, 'transfer')} each, {study.evidence} evidence"
    sentences = (
        f"{verdict}, with a buffer of {byte_size(study.buffer)} ({basis}).",
        _largest_variation(study),
        _slowest(study),
        without_reading(study.dataset, "transfer"),
    )
    return " ".join(filter(None, sentences))


def _largest_variation(study: LongRepeats) -> str:
    varying = [one.judged for one in study.series if np.isfinite(one.judged.sample.variation)]
    if not varying:
        return ""
    worst = max(varying, key=lambda judged: judged.sample.variation)
    low, high = worst.interval
    ends = f"95 % interval {percent_range((low, high))}" if np.isfinite(high) else "no upper end"
    return (
        f"The largest coefficient of variation is {percent(worst.sample.variation)} ({ends}); "
        f"up to {percent(study.margin, 0)} counts as the same."
    )


def _slowest(study: LongRepeats) -> str:
    """A rare slow state shows in the least value, and hardly in the variation."""
    samples = [series.judged.sample for series in study.series if series.judged.sample.n]
    if not samples:
        return ""
    least = min(sample.minimum / sample.median for sample in samples)
    return f"The slowest transfer reached {percent(least, 0)} of the median of its series."


def figures(study: LongRepeats) -> dict[str, Exhibit]:
    """Every repeat."""
    return {
        "long_path_repeats": Exhibit(
            "long_path_repeats",
            all_repeats(study),
            f"The same transfer again and again, with a buffer of {byte_size(study.buffer)}",
            _basis(study, "every transfer is drawn"),
            "Goodput as a share of the wire limit of every transfer, a row for each direction and congestion control",
            "In each row from the slowest (above) to the fastest; the bar is the median.",
            rests_on=FIGURES["long_path_repeats"],
        )
    }


def all_repeats(study: LongRepeats) -> Figure:
    """Every goodput as a share of the wire limit [%], a row for each series, sorted, with the median."""
    with style.styled():
        figure, axes = drawing.new_figure(1.2 + 0.4 * len(study.series))
        for row, series in enumerate(study.series):
            look, sample = style.look(series.congestion_control), series.judged.sample
            shares = 100 * np.array(sample.values) / series.wire_limit
            places = row + SPREAD * (np.linspace(0, 1, len(shares)) - 0.5)
            axes.plot(
                shares,
                places,
                look.marker,
                color=look.color,
                alpha=0.45,
                mew=0,
                label=series.congestion_control,
            )
            median = 100 * sample.median / series.wire_limit
            axes.plot(median, row, "|", color=style.INK, markersize=14, mew=1.5, label="median")
        drawing.rows(
            axes,
            [f"{_place(study, series)}, {series.congestion_control}" for series in study.series],
        )
        axes.set_xlabel("goodput / wire limit [%]")
        drawing.legend_below(figure, axes, 4)
        return figure


def _place(study: LongRepeats, series: Series) -> str:
    """Direction, with the path where there are several."""
    if len({one.path for one in study.series}) == 1:
        return series.direction
    return f"{short_names(study.dataset)[series.path]}, {series.direction}"


def repeats_table(study: LongRepeats) -> Table:
    """The sample of every series, with the verdict on its variation."""
    columns = (
        "Direction",
        "Control",
        "Transfers",
        "Median [Mbit/s]",
        "Lowest to highest [Mbit/s]",
        "Variation (95 % interval) [%]",
        "The same again?",
    )
    caption = (
        f"Repeats with a buffer of {byte_size(study.buffer)}. Variation is the coefficient of variation, with the modified "
        "McKay interval, which takes the values for normal. The same again: the whole interval lies below "
        f"{percent(study.margin, 0)}."
    )
    rows = [_row(study, series) for series in study.series]
    basis = _basis(study, "95 % intervals")
    return Table("long-path-repeats", columns, "llrrrrl", rows, caption, basis)


def _row(study: LongRepeats, series: Series) -> tuple[str, ...]:
    sample, (low, high) = series.judged.sample, series.judged.interval
    interval = f" ({between((100 * low, 100 * high), 2)})" if np.isfinite(high) else ""
    return (
        _place(study, series),
        series.congestion_control,
        str(sample.n),
        _mbit(sample.median),
        f"{_mbit(sample.minimum)} to {_mbit(sample.maximum)}",
        f"{fixed(_known(100 * sample.variation), 2)}{interval}",
        VERDICTS[series.judged.kind],
    )


def _basis(study: LongRepeats, intervals: str) -> Basis:
    return Basis(study.evidence, study.blocks, intervals)


def _mbit(bit_s: float) -> str:
    return number(_known(bit_s / MBIT))


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
