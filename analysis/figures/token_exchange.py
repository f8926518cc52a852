"""The published figures of the token exchanges: throughput over size and pairs, claims, whole samples."""

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.inference.over_blocks import rates
from analysis.studies.scaling import short_names
from analysis.studies.token_claims import Claim
from analysis.studies.token_exchange import TokenExchange
from analysis.studies.token_latency import Latency
from analysis.studies.token_pairs import Pairs
from analysis.studies.token_points import Place

MB = 1e6  # bytes


def draw(study: TokenExchange) -> dict[str, Figure]:
    """The campaign's figures by name: token_exchange, token_pairs, token_claims and token_samples."""
    return {
        "token_exchange": over_size(study),
        "token_pairs": over_pairs(study),
        "token_claims": claims(study.claims),
        "token_samples": samples(study),
    }


def over_size(study: TokenExchange) -> Figure:
    """Throughput of all pairs [MB/s] over the token's size, for one pair and for the most, at each rate."""
    with style.styled():
        levels = dict.fromkeys([int(study.points.pairs[0]), study.most_pairs])
        columns = _rates(study)
        figure = Figure(figsize=(style.WIDTH, 1.4 + 2.0 * len(levels)))
        grid = figure.subplots(len(levels), len(columns), squeeze=False, sharex=True)
        models = {it.place.path: it for it in study.latencies if it.fitted}
        for row, pairs in zip(grid, levels):
            for axes, (rate, places) in zip(row, columns.items()):
                for place in places:
                    model = models.get(place.path) if pairs == 1 else None
                    _over_size(axes, place, study.points.runs.sel(path=place.path, pairs=pairs), model)
                axes.set_yscale("log")
                axes.set_title(f"{_pairs(pairs)}, {rate / 1e6:g} Mbit/s", loc="left")
        for axes in grid[-1]:
            drawing.doubling_axis(axes, study.points.token_bytes.values, "token [B]")
        figure.supylabel("throughput [MB/s]", fontsize=style.RULES["axes.labelsize"])
        drawing.legend_below(figure, grid.ravel(), 3)
        return figure


def over_pairs(study: TokenExchange) -> Figure:
    """System throughput [MB/s] of the largest token over pairs, with the wires' limits and the best model."""
    with style.styled():
        columns = _rates(study)
        figure, panels = drawing.new_figures(3.4, len(columns))
        contention = {it.place.path: it for it in study.contention}
        for axes, (rate, places) in zip(panels, columns.items()):
            for place in places:
                _over_pairs(axes, place, contention[place.path], study)
            axes.set(title=f"{rate / 1e6:g} Mbit/s", xlabel="pairs", ylim=(0, None))
            axes.set_xticks(study.points.pairs.values)
        panels[0].set_ylabel("throughput of all pairs [MB/s]")
        drawing.legend_below(figure, panels, 3)
        return figure


def claims(judged: tuple[Claim, ...]) -> Figure:
    """Each claim's ratio with its 95 % interval, the range that supports it, and its verdict."""
    with style.styled():
        figure, axes = drawing.new_figure(1.2 + 0.5 * len(judged))
        for row, claim in enumerate(judged):
            axes.barh(row, claim.at_most - claim.at_least, 0.7, claim.at_least, color=style.MARGIN)
            axes.text(1.02, row, claim.kind, weight="bold", va="center", transform=axes.get_yaxis_transform())
            ends = [[claim.ratio - claim.interval_95[0]], [claim.interval_95[1] - claim.ratio]]
            axes.errorbar(claim.ratio, row, xerr=ends, fmt="o", color=style.INK, capsize=3,
                          label="mean, 95 % interval")  # fmt: skip
            axes.plot(claim.of_bests, row, "x", color=style.INK, label="of the best runs")
        drawing.rows(axes, [_words(claim) for claim in judged])
        axes.set(xlabel="ratio of throughputs [1]", xlim=(0, None))
        drawing.legend_below(figure, axes, 2)
        return figure


def samples(study: TokenExchange) -> Figure:
    """Every run of the most pairs and the largest token as a share of the wires [%], with median and best."""
    with style.styled():
        names = short_names(study.dataset)
        figure, axes = drawing.new_figure(1.2 + 0.26 * len(study.samples))
        for row, sample in enumerate(study.samples):
            look = style.look(sample.place.topology)
            shares = 100 * np.array(sample.runs.values) / sample.limit
            axes.plot(shares, np.full(len(shares), row), look.marker, color=look.color, alpha=0.45, mew=0)
            marks = {"median": (sample.runs.median, "|"), "best": (sample.runs.maximum, "x")}
            for label, (value, mark) in marks.items():
                axes.plot(100 * value / sample.limit, row, mark, color=style.INK, markersize=9, label=label)
        drawing.rows(axes, [names[it.place.path] for it in study.samples])
        axes.set(xlabel="throughput / what the wires carry [%]", xlim=(0, None))
        drawing.legend_below(figure, axes, 2)
        return figure


def _over_size(axes: Axes, place: Place, runs: xr.DataArray, model: Latency | None) -> None:
    """One path: every run over the token's size, and the model of one pair where it is one."""
    sizes = runs.token_bytes.values
    drawing.runs(axes, place.topology, sizes, runs / MB, place.topology.replace("_", " "))
    if model:
        dense = np.geomspace(sizes.min(), sizes.max(), 80)
        drawing.band(axes, place.topology, dense, *(curve / MB for curve in model.throughput(dense)))


def _over_pairs(axes: Axes, place: Place, found: Pairs, study: TokenExchange) -> None:
    """One path: runs, means with intervals, the model of the least AICc if there is one, the wires' limit."""
    pairs = found.throughput.pairs.values
    drawing.runs(axes, place.topology, pairs, found.throughput / MB, place.topology.replace("_", " "))
    means = rates(found.throughput / MB)
    for n in pairs:
        at = means.sel(pairs=n)
        drawing.interval(axes, place.topology, n, float(at["mean"]), float(at.low), float(at.high))
    look, dense = style.look(place.topology), np.linspace(pairs.min(), pairs.max(), 100)
    first = found.comparisons[0]
    if first.aicc is not None:
        axes.plot(dense, first.pooled.predict(dense) / MB, linestyle=look.line, color=look.color, gid=drawing.MODEL)
    limit = study.points.limit.sel(path=place.path, token_bytes=study.largest_token)
    wires = {"color": style.FAINT, "linewidth": 0.9, "label": "what the wires carry", "gid": drawing.BOUND}
    axes.plot(pairs, limit / MB, ":", **wires)


def _rates(study: TokenExchange) -> Mapping[float, list[Place]]:
    """The paths of each rate [bit/s], slow before fast."""
    rates = sorted({place.rate for place in study.places})
    return {rate: [place for place in study.places if place.rate == rate] for rate in rates}


def _words(claim: Claim) -> str:
    """A claim on two lines, with its rate."""
    return claim.about.replace(": ", ":\n") + ("" if claim.rate is None else f", {claim.rate / 1e6:g} Mbit/s")


def _pairs(count: int) -> str:
    return f"{count} pair{'' if count == 1 else 's'}"
