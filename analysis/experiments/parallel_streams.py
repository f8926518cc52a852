"""Parallel TCP streams between two nodes: does their aggregate goodput fall off with their
number?"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis import drawing, exhibit, style
from analysis.attributes import interconnects, short_names
from analysis.derive import over_factors
from analysis.findings import Finding, evidence_of, of_fall, origin, resting_on
from analysis.statistics import design as designs
from analysis.statistics.intervals import rates
from analysis.statistics.judgement import FALLS_OFF, FLAT, Judgement, judge
from analysis.wire import wire_limit
from analysis.wording import counted, number, percent, percent_range

GBIT = 1e9
DOES = {FALLS_OFF: "falls off", FLAT: "stays flat"}
# The campaigns behind each figure.
FIGURES = {"parallel_streams": ("parallel_streams",)}


@dataclass(frozen=True)
class Streams:
    """The campaign's dataset and its results.

    `goodput` [bit/s] is over (interconnect, streams, block), `means` its harmonic means with 95 % t
    intervals. `limits` are the wire limits [bit/s] of the networks that have one. `falls` judges,
    for each network, the fall from the fewest to the most streams.
    """

    dataset: xr.Dataset
    goodput: xr.DataArray
    means: xr.Dataset
    limits: dict[str, float]
    falls: dict[str, Judgement]

    @property
    def ends(self) -> tuple[int, int]:
        """The fewest and the most streams."""
        streams = self.goodput.streams.values.tolist()
        return min(streams), max(streams)


def analyse(parallel_streams: xr.Dataset) -> Streams:
    """Derive means and falls; raises FalloffError if the campaign holds no iperf3 trial."""
    points = over_factors(parallel_streams, runner="iperf3", goodput=parallel_streams.goodput)
    points = points.transpose(..., "block")
    by_streams = np.log(points.goodput).sortby("streams")
    growth = by_streams.isel(streams=-1) - by_streams.isel(streams=0)
    margin, evidence = designs.read(parallel_streams).margin, evidence_of(parallel_streams)
    return Streams(
        dataset=parallel_streams,
        goodput=points.goodput,
        means=rates(points.goodput),
        limits={
            name: wire_limit(described["rate_bit_s"], described["mtu"])
            for name, described in interconnects(parallel_streams).items()
            if "rate_bit_s" in described
        },
        falls={
            name: judge(growth.sel(interconnect=name).values, margin, evidence)
            for name in points.interconnect.values.tolist()
        },
    )


def finding(study: Streams) -> str:
    """How each network's goodput changes with many streams, in plain English (Markdown)."""
    sentences = [_of_network(study, name) for name in study.limits if name in study.falls]
    return f"{' '.join(sentences)} ({resting_on(study.dataset, study.goodput.sizes['block'])})"


def _of_network(study: Streams, network: str) -> str:
    fall, name, (few, many) = study.falls[network], short_names(study.dataset)[network], study.ends
    if fall.answer not in DOES:
        reason = f" {fall.reason}" if fall.fall is None else ""
        return f"**Whether {name} falls off with streams is open.**{reason}"
    sums = study.means["mean"].sel(interconnect=network, streams=[few, many]).values / GBIT
    low, high = fall.interval
    ends = percent_range((-high, -low), 2)
    return (
        f"**{name} {DOES[fall.answer]}** from {counted(few, 'stream')} to {many}: the sum of all goes from {number(sums[0])} to "
        f"{number(sums[1])} Gbit/s, a change of {percent(-fall.fall, 2)} ({100 * fall.confidence:g} % interval {ends})."
    )


def findings(study: Streams) -> Iterator[Finding]:
    """The fall of each network, as data."""
    source, names = origin("parallel_streams", study.dataset), short_names(study.dataset)
    few, many = study.ends
    for name, fall in study.falls.items():
        statement = f"TCP's fall from {few} stream to {many} on {names[name]}, all streams together"
        yield of_fall(source, statement, fall, primary=name in study.limits)


def figures(study: Streams) -> dict[str, exhibit.Exhibit]:
    """Goodput / wire limit [%] over streams."""
    names, streams = short_names(study.dataset), study.goodput.streams.values
    with style.styled():
        figure, axes = drawing.new_figure(2.3)
        for rank, (name, limit) in enumerate(study.limits.items()):
            places = drawing.beside(streams, rank, len(study.limits))
            runs = 100 * study.goodput.sel(interconnect=name) / limit
            means = 100 * study.means.sel(interconnect=name) / limit
            drawing.runs_and_means(axes, name, places, runs, means, names[name])
        drawing.doubling_axis(axes, streams, "streams")
        axes.set_ylim(0, 110)
        axes.set_ylabel("sum of all streams /\nwire limit [%]")
        drawing.legend_below(figure, axes, 3)
    return exhibit.only(
        FIGURES,
        figure,
        "The sum of parallel TCP streams between two nodes, as a share of what the wire can carry",
        exhibit.Basis.of_dataset(study.dataset, "95 % t intervals"),
        "Share of the wire limit over the number of streams, a series for each network with a rate limit",
        "Small marks are single runs, open marks harmonic means.",
    )
