"""What if the network, the nodes or their prices were others? HPL on the paper's cases, predicted at once.

The prediction is HPL's analytic model, times how far it is off where the paper's cluster was simulated: the logarithm
of that factor is interpolated between the simulated networks, with the inverse squares of their distances as weights,
so that it is exact on these (D. Shepard, A two-dimensional interpolation function for irregularly-spaced data, ACM
National Conference 1968, p. 517-524, https://doi.org/10.1145/800186.810616). Distances are in the logarithms of
bandwidth and latency.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from html import escape

import numpy as np
import panel as pn
import xarray as xr
from bokeh.models import ColumnDataSource, HoverTool, Range1d, Span
from bokeh.plotting import figure

from analysis import paths, prices, store, style
from analysis.attributes import short_names, testbed
from analysis.derive import at_only_level, points
from analysis.efficiency import efficiency, rpeak
from analysis.experiments.payoff import lasting_from
from analysis.explorer.plot import FRAME, LEGEND, QUIET, Look, dress, look_of
from analysis.explorer.widgets import WIDE, one_of, select, sheet, text
from analysis.hpl_predictors import analytic_share
from analysis.wording import counted, number, percent
from runners.record import FalloffError

CASES = ("hpl_paper-smith", "hpl_beyond-smith")  # of the same node, up to 36 nodes and beyond
YOURS, OTHER = "yours", "other"
SAME = 1e-12  # a squared distance below which two networks are the same
SLOW, FAST = "gige", "10gige"  # what the page begins with: the paper's two
STEPS = 121  # of a slider on which equal ways are equal ratios
LEAST_SPREAD = 0.1  # of the costs' ratio: an axis that moved with less would show noise
LARGEST = 36  # nodes, of the paper
TICKS = [2, 4, 8, 16, 36, 72, 144, 256]


@dataclass(frozen=True)
class Network:
    """A network as a node sees it: payload's bandwidth [B/s], latency [s], and its price for a node [USD]."""

    bandwidth: float
    latency: float
    price: float


@dataclass(frozen=True)
class Basis:
    """The cases that are predicted, and what is known of them without prediction.

    `settings` holds HPL's N, NB, P and Q over (nodes), `dgemm` [Gflop/s] that of all nodes together over (nodes),
    `peak` a node's theoretical peak [flop/s]. `simulated` is the efficiency [1] over (interconnect, nodes);
    `networks` are what was simulated, with the price where there is one (else NaN), `names` their short names.
    """

    settings: xr.Dataset
    dgemm: xr.DataArray
    peak: float
    simulated: xr.DataArray
    networks: Mapping[str, Network]
    names: Mapping[str, str]
    node_price: float


@dataclass(frozen=True)
class Answer:
    """What is predicted, over (interconnect, nodes) with the interconnects YOURS and OTHER.

    `efficiency` [1] is of the nodes' theoretical peak, `cost` [USD s / Gflop] what a Gflop/s of HPL costs.
    `pays_from` is the node count from which on yours is cheaper, infinite where it is not even at the largest.
    """

    efficiency: xr.DataArray
    cost: xr.DataArray
    pays_from: float


@cache
def basis() -> Basis:
    """The stored cases of the paper's cluster; raises FalloffError when they are not there."""
    cases = []
    for name in CASES:
        if not (paths.REFERENCE / name).is_dir():
            raise FalloffError(
                f"what if needs the reference campaign {name}: it comes with Falloff in data/reference"
            )
        cases.append(at_only_level(points(store.read(paths.REFERENCE / name)), "block"))
    # Both have the paper's largest case.
    simulated = xr.concat(
        [efficiency(it) for it in cases], "nodes", coords="minimal", compat="override", join="outer"
    )
    columns = [
        it[["N", "NB", "P", "Q", "known_rate"]].max("interconnect")
        if "interconnect" in it.N.dims
        else it[["N", "NB", "P", "Q", "known_rate"]]
        for it in cases
    ]
    of_cases = (
        xr.concat(columns, "nodes", coords="minimal", compat="override", join="outer")
        .drop_duplicates("nodes")
        .sortby("nodes")
    )
    listed = prices.read()
    known = {price.of for price in listed}
    described = testbed(cases[0])["network"]
    largest = cases[1].interconnect.values.tolist()
    return Basis(
        settings=of_cases[["N", "NB", "P", "Q"]],
        dgemm=of_cases.known_rate,
        peak=rpeak(cases[0]),
        simulated=simulated.drop_duplicates("nodes").sortby("nodes"),
        networks={
            name: Network(
                described[name]["bandwidth"]["value"],
                described[name]["latency"]["value"],
                prices.total(listed, name) if name in known else np.nan,
            )
            for name in largest
        },
        names={name: short for name, short in short_names(cases[1]).items() if name in largest},
        node_price=prices.total(listed, prices.NODE),
    )


def predict(basis: Basis, yours: Network, other: Network, peak: float, node_price: float) -> Answer:
    """Both networks between nodes of that theoretical peak [flop/s] and price [USD] without network.

    A node's DGEMM is the same part of its peak as on the paper's nodes.
    """
    both = (yours, other)
    reached = _analytic(basis, both, peak) * np.exp(_correction(basis, both))
    reached = reached.assign_coords(interconnect=[YOURS, OTHER])
    prices_of_node = xr.DataArray(
        [node_price + it.price for it in both], {"interconnect": [YOURS, OTHER]}
    )
    cost = 1e9 * prices_of_node / (peak * reached)
    advantage = np.log(
        cost.sel(interconnect=OTHER, drop=True) / cost.sel(interconnect=YOURS, drop=True)
    )
    return Answer(reached, cost, float(lasting_from(advantage)))


@cache
def off() -> float:
    """By how much [1] the efficiency of a simulated network is off at most when it is predicted from the others."""
    known, errors = basis(), []
    for name, network in known.networks.items():
        others = replace(known, simulated=known.simulated.drop_sel(interconnect=name))
        told = _analytic(known, (network,), known.peak) * np.exp(_correction(others, (network,)))
        errors.append(
            np.abs(told.isel(interconnect=0) - known.simulated.sel(interconnect=name)).max()
        )
    return float(max(errors))


def _analytic(basis: Basis, networks: Sequence[Network], peak: float) -> xr.DataArray:
    """The analytic model's efficiency [1] over (interconnect, nodes)."""
    columns = {
        "alpha": [it.latency for it in networks],
        "beta": [1 / it.bandwidth for it in networks],
    }
    links = xr.Dataset(
        {
            name: (("interconnect", "draw"), np.array([values]).T)
            for name, values in columns.items()
        },
        {"interconnect": np.arange(len(networks))},
    )
    dgemm = (basis.dgemm * peak / basis.peak).expand_dims("draw")
    share = analytic_share(basis.settings, links, dgemm).isel(draw=0)
    return share * 1e9 * dgemm.isel(draw=0) / (dgemm.nodes * peak)


def _correction(basis: Basis, networks: Sequence[Network]) -> xr.DataArray:
    """The logarithm of simulated over analytic efficiency, interpolated, over (interconnect, nodes)."""
    names = basis.simulated.interconnect.values.tolist()
    known = [basis.networks[name] for name in names]
    factor = np.log(basis.simulated.values / _analytic(basis, known, basis.peak).values)
    there = np.isfinite(factor)
    weights = np.array([[1 / max(_distance(it, one), SAME) for one in known] for it in networks])
    total = weights @ there
    return xr.DataArray(
        weights @ np.where(there, factor, 0.0) / total,
        {"nodes": basis.simulated.nodes},
        ("interconnect", "nodes"),
    )


def _distance(one: Network, other: Network) -> float:
    return np.log(one.bandwidth / other.bandwidth) ** 2 + np.log(one.latency / other.latency) ** 2


class WhatIf:
    """The page's sliders, prices and plots; `changed` is called when a reader moved one, `answer` is what they say."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.basis, self._changed, self._filling = basis(), changed, False
        networks = self.basis.networks
        offered = {short: name for name, short in self.basis.names.items()}
        bandwidths = [8e-9 * network.bandwidth for network in networks.values()]
        latencies = [1e6 * network.latency for network in networks.values()]
        self.preset = one_of(offered, sizing_mode="stretch_width")
        self.preset.value = FAST
        self.inputs = {
            "bandwidth": _slider("Bandwidth of payload", 0.05, 200, "Gbit/s", bandwidths),
            "latency": _slider("Latency", 0.5, 200, "µs", latencies),
            "price": _price("Your network, a node [USD]"),
            "peak": _slider(
                "A node's theoretical peak", 10, 10_000, "Gflop/s", [self.basis.peak / 1e9]
            ),
            "node_price": _price("A node without its network [USD]"),
            "other": select("That network", offered),
            "other_price": _price("That network, a node [USD]"),
        }
        self.said = text()
        self._make_plots()
        nodes = {"peak": self.basis.peak / 1e9, "node_price": self.basis.node_price}
        other = {"other": SLOW, "other_price": networks[SLOW].price}
        self._set({**nodes, **other, **self._of_network(FAST)})
        self._start = self._values()
        for name, widget in self.inputs.items():
            widget.param.watch(lambda event, name=name: self._moved(name), "value")
        self.preset.param.watch(lambda event: self._moved(event.new), "value")

    def panel(self) -> pn.Column:
        """The whole page."""
        of = list(self.inputs.values())
        yours = (text("<h2>Your network</h2>"), self.preset, *of[:3])
        side = (*yours, text("<h2>Your nodes</h2>"), *of[3:5], text("<h2>Against</h2>"), *of[5:])
        question = "What if the network, the nodes or the prices were others?"
        shown = (text(f'<p class="question">{question}</p>'), self.said, *self.plots)
        parts = (pn.Column(*shown, **WIDE), pn.Column(*side, **WIDE))
        return pn.Column(*parts, css_classes=["what-if"], stylesheets=[sheet()], **WIDE)

    def address(self) -> list[tuple[str, str]]:
        """The page's part of its address: all that differs from the start."""
        return [
            (name, value) for name, value in self._values().items() if value != self._start[name]
        ]

    def take(self, asked: Mapping[str, str]) -> None:
        """Show what an address asks for."""
        self._set({**self._start, **{name: asked[name] for name in asked if name in self.inputs}})
        self._update()

    def _values(self) -> dict[str, str]:
        values = {name: widget.value or 0.0 for name, widget in self.inputs.items()}
        return {
            name: value if name == "other" else f"{value:.6g}" for name, value in values.items()
        }

    def _set(self, values: Mapping[str, str | float]) -> None:
        """Give inputs values, a slider the nearest stop by ratio; what one cannot take leaves it as it is."""
        self._filling = True
        for name, value in values.items():
            widget = self.inputs[name]
            with suppress(ValueError):
                if name != "other":
                    value = max(float(value), 0.0)
                if isinstance(widget, pn.widgets.DiscreteSlider):
                    stops = np.array(list(widget.options.values()))
                    value = float(stops[np.abs(np.log(stops / max(value, stops[0]))).argmin()])
                widget.value = value
        self._filling = False

    def _of_network(self, name: str) -> dict[str, float]:
        network = self.basis.networks[name]
        found = {"bandwidth": 8e-9 * network.bandwidth, "latency": 1e6 * network.latency}
        return found | ({"price": network.price} if np.isfinite(network.price) else {})

    def _moved(self, name: str) -> None:
        """An input was moved, or a network was chosen that is known."""
        if self._filling:
            return
        if name in self.basis.networks:
            self._set(self._of_network(name))
        price = self.basis.networks[self.inputs["other"].value].price
        if name == "other" and np.isfinite(price):
            self._set({"other_price": price})
        self._update()
        self._changed()

    def _update(self) -> None:
        value = {name: widget.value or 0.0 for name, widget in self.inputs.items()}
        other, peak = self.basis.networks[value["other"]], 1e9 * value["peak"]
        yours = Network(value["bandwidth"] * 1e9 / 8, value["latency"] * 1e-6, value["price"])
        against = Network(other.bandwidth, other.latency, value["other_price"])
        node_price = value["node_price"] or 1.0
        self.answer = predict(self.basis, yours, against, peak, node_price)
        premium = (node_price + yours.price) / (node_price + against.price) - 1
        with pn.io.hold():
            known = self.basis.simulated.sel(interconnect=value["other"]).dropna("nodes")
            self._draw(known if np.isclose(peak, self.basis.peak, rtol=0.04) else known[:0])
            name = self.basis.names[value["other"]]
            self.said.text = sentence(self.answer, name) + tiles(self.answer, name, premium)

    def _make_plots(self) -> None:
        columns = ("x", "nodes", YOURS, OTHER, "ratio")
        self.data = ColumnDataSource({name: [] for name in columns}, name="predicted")
        self.simulated = ColumnDataSource({name: [] for name in ("x", "nodes", "y")})
        labels = ("efficiency, Rmax / Rpeak [%]", "cost of a Gflop/s, yours / other")
        self.plots = reached, ratio = [_figure(label) for label in labels]
        yours, other = style.LOOKS[FAST], style.LOOKS[SLOW]
        _line(reached, self.data, OTHER, look_of(other, "the other"), f"@{OTHER}{{0.0}} %")
        _line(reached, self.data, YOURS, look_of(yours, "your network"), f"@{YOURS}{{0.0}} %")
        _line(
            ratio,
            self.data,
            "ratio",
            look_of(yours, "your network: below 1 it pays"),
            "@ratio{0.000}",
        )
        hollow = {"size": 10, "fill_color": None, "line_color": other.color, "line_width": 1.6}
        dots = reached.scatter("x", "y", source=self.simulated, legend_label="simulated", **hollow)
        told = [("simulated, nodes", "@nodes"), ("efficiency", "@y{0.0} %")]
        reached.add_tools(HoverTool(renderers=[dots], tooltips=told))
        ratio.add_layout(Span(dimension="width", location=1, line_width=1.5, line_color=QUIET))
        looks = {"line_dash": "dotted", "line_width": 2, "line_color": QUIET}
        self.pays = [Span(dimension="height", **looks) for _ in self.plots]
        for plot, span in zip(self.plots, self.pays):
            plot.add_layout(span)
            plot.legend.update(location="bottom_left", orientation="horizontal", **LEGEND)

    def _draw(self, known: xr.DataArray) -> None:
        answer, nodes = self.answer, self.answer.efficiency.nodes.values
        reached = answer.efficiency.transpose("interconnect", "nodes").values
        yours, other = answer.cost.transpose("interconnect", "nodes").values
        columns = {YOURS: 100 * reached[0], OTHER: 100 * reached[1], "ratio": yours / other}
        self.data.data = {"x": np.log2(nodes), "nodes": nodes, **columns}
        at = known.nodes.values
        self.simulated.data = {"x": np.log2(at), "nodes": at, "y": 100 * known.values}
        far = max(LEAST_SPREAD, 1.2 * np.abs(yours / other - 1).max())
        self.plots[1].y_range.update(start=max(0.0, 1 - far), end=1 + far)
        for span in self.pays:
            span.visible = bool(np.isfinite(answer.pays_from))
            span.location = float(np.log2(answer.pays_from)) if span.visible else 0.0


def _figure(label: str) -> figure:
    size = {"sizing_mode": "stretch_width", "height": 310, "y_range": Range1d(0, 100)}
    drawn = figure(x_axis_label="nodes", y_axis_label=label, **size, **FRAME)
    return dress(drawn, {float(np.log2(n)): str(n) for n in TICKS})


def _line(plot: figure, source: ColumnDataSource, column: str, look: Look, value: str) -> None:
    looks = {"source": source, "color": look.color, "legend_label": look.series}
    plot.line("x", column, line_dash=look.dash, line_width=2.5, **looks)
    dots = plot.scatter("x", column, marker=look.marker, size=7, **looks)
    plot.add_tools(
        HoverTool(renderers=[dots], tooltips=[("nodes", "@nodes"), (look.series, value)])
    )


def _slider(
    label: str, low: float, high: float, unit: str, known: Sequence[float]
) -> pn.widgets.DiscreteSlider:
    """A slider from low to high in equal ratios, which also stops at the values that are known."""
    values = sorted({*np.geomspace(low, high, STEPS).tolist(), *known})
    options = {f"{number(value)} {unit}": float(value) for value in values}
    looks = {"sizing_mode": "stretch_width", "margin": (8, 6), "stylesheets": [sheet()]}
    return pn.widgets.DiscreteSlider(label=label, options=options, **looks)


def _price(label: str) -> pn.widgets.FloatInput:
    looks = {"sizing_mode": "stretch_width", "margin": (4, 0), "stylesheets": [sheet()]}
    return pn.widgets.FloatInput(label=label, value=0.0, start=0, step=10, **looks)


def sentence(answer: Answer, other: str) -> str:
    """The card: the node count at which the network `other` stops paying, and how far off that may be."""
    nodes = answer.efficiency.nodes.values
    first, last = (counted(int(nodes[end]), "node") for end in (0, -1))
    if not np.isfinite(answer.pays_from):
        said = f"{other} pays at every size up to {last}: your network costs more for each Gflop/s of HPL."
    elif answer.pays_from == nodes[0]:
        said = f"Your network pays at every size from {first} on: it costs less for each Gflop/s of HPL than {other}."
    else:
        at = counted(int(answer.pays_from), "node")
        said = f"{other} stops paying at {at}: from there on your network costs less for each Gflop/s of HPL."
    note = (
        "Predicted on the white paper's cases, whose matrix grows with the nodes: HPL's analytic model, corrected to "
        "agree with the simulation (open marks) where a network was simulated. It has no scatter, so no interval; "
        f"one simulated network predicted from the others is at most {number(100 * off(), 2)} percentage points off. "
        "Prices are what you type: those of the start, of 2005 to 2009, have their sources in data/prices.toml."
    )
    return (
        f'<div class="card" data-pays="{answer.pays_from:g}"><span class="sentence">{escape(said)}</span> '
        f'<span class="chip">predicted</span><div class="note">{escape(note)}</div></div>'
    )


def tiles(answer: Answer, other: str, premium: float) -> str:
    """Both efficiencies at the paper's largest node count, the gain in HPL and what a node costs more."""
    at = answer.efficiency.sel(nodes=LARGEST)
    mine, theirs = (float(at.sel(interconnect=name)) for name in (YOURS, OTHER))
    said = {
        f"of peak on your network, {counted(LARGEST, 'node')}": mine,
        f"of peak on {other}": theirs,
        "more HPL for the same nodes": mine / theirs - 1,
        "more to pay for a node": premium,
    }
    parts = [
        f'<div><div class="big">{percent(value)}</div><div class="what">{escape(what)}</div></div>'
        for what, value in said.items()
    ]
    return f'<div class="tiles">{"".join(parts)}</div>'
