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
from analysis.explorer.plot import FRAME, LEGEND, QUIET, dress, look_of
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

    def __init__(self, asked: Mapping[str, str], changed: Callable[[], None]) -> None:
        self.basis, self._changed = basis(), changed
        names, known = self.basis.names, list(self.basis.networks.values())
        offered = {short: name for name, short in names.items()}
        bandwidths = [8e-9 * network.bandwidth for network in known]
        latencies = [1e6 * network.latency for network in known]
        cases = {str(n): str(n) for n in self.basis.settings.nodes.values.tolist()}
        self.preset = one_of()
        self.preset.param.update(options=offered, value=FAST, sizing_mode="stretch_width")
        self.inputs = {
            "bandwidth": _slider("Bandwidth of payload", 0.05, 200, "Gbit/s", bandwidths),
            "latency": _slider("Latency", 0.5, 200, "µs", latencies),
            "price": _price("Your network, a node [USD]"),
            "peak": _slider("A node's peak", 10, 10_000, "Gflop/s", [self.basis.peak / 1e9]),
            "node_price": _price("A node without its network [USD]"),
            "other": select("That network", offered),
            "other_price": _price("That network, a node [USD]"),
            "nodes": select("Nodes", cases),
        }
        self.said, self.tiles = text(), text()
        self._make_plots()
        other_price = self.basis.networks[SLOW].price
        start = {"peak": self.basis.peak / 1e9, "node_price": self.basis.node_price, "other": SLOW}
        self._set({**start, "other_price": other_price, "nodes": "36", **self._of_network(FAST)})
        self._start = self._values()
        self.take(asked)
        for name, widget in self.inputs.items():
            widget.param.watch(lambda event, name=name: self._moved(name), "value")
        self.preset.param.watch(lambda event: self._take_network(event.new), "value")

    def panel(self) -> pn.Column:
        """The whole page."""
        of = self.inputs
        yours = (
            text("<h2>Your network</h2>"),
            self.preset,
            of["bandwidth"],
            of["latency"],
            of["price"],
        )
        nodes = (text("<h2>Your nodes</h2>"), of["peak"], of["node_price"])
        other = (text("<h2>Against</h2>"), of["other"], of["other_price"], of["nodes"])
        question = "What if the network, the nodes or the prices were others?"
        heading = text(f'<p class="question">{question}</p>')
        shown = pn.Column(
            heading, self.said, self.tiles, *self.plots, css_classes=["shown"], **WIDE
        )
        side = pn.Column(*yours, *nodes, *other, css_classes=["side"], **WIDE)
        return pn.Column(shown, side, css_classes=["what-if"], stylesheets=[sheet()], **WIDE)

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
        return {name: _written(widget.value) for name, widget in self.inputs.items()}

    def _set(self, values: Mapping[str, str | float]) -> None:
        self._filling = True
        for name, value in values.items():
            _put(self.inputs[name], value)
        self._filling = False

    def _of_network(self, name: str) -> dict[str, float]:
        network = self.basis.networks[name]
        found = {"bandwidth": 8e-9 * network.bandwidth, "latency": 1e6 * network.latency}
        return found | ({"price": network.price} if np.isfinite(network.price) else {})

    def _take_network(self, name: str) -> None:
        self._set(self._of_network(name))
        self._update()
        self._changed()

    def _moved(self, name: str) -> None:
        if self._filling:
            return
        known = self.basis.networks[self.inputs["other"].value].price
        if name == "other" and np.isfinite(known):
            self._set({"other_price": known})
        self._update()
        self._changed()

    def _update(self) -> None:
        value = {name: widget.value or 0.0 for name, widget in self.inputs.items()}
        other = self.basis.networks[value["other"]]
        yours = Network(value["bandwidth"] * 1e9 / 8, value["latency"] * 1e-6, value["price"])
        against = Network(other.bandwidth, other.latency, value["other_price"])
        node_price = value["node_price"] or 1.0
        self.answer = predict(self.basis, yours, against, 1e9 * value["peak"], node_price)
        premium = (node_price + value["price"]) / (node_price + value["other_price"]) - 1
        name = self.basis.names[value["other"]]
        with pn.io.hold():
            self._draw(
                value["other"], at_paper=np.isclose(1e9 * value["peak"], self.basis.peak, rtol=0.04)
            )
            self.said.text = sentence(self.answer, name)
            self.tiles.text = tiles(self.answer, int(value["nodes"]), name, premium)

    def _make_plots(self) -> None:
        columns = ("x", "nodes", YOURS, OTHER, "ratio")
        self.data = ColumnDataSource({name: [] for name in columns}, name="predicted")
        self.simulated = ColumnDataSource({name: [] for name in ("x", "nodes", "y")})
        labels = ("efficiency, Rmax / Rpeak [%]", "cost of a Gflop/s, yours / other")
        self.plots = efficiency_plot, ratio = [_figure(label) for label in labels]
        yours, other = style.LOOKS[FAST], style.LOOKS[SLOW]
        for column, look, label in ((OTHER, other, "the other"), (YOURS, yours, "your network")):
            _line(efficiency_plot, column, look, label, f"@{column}{{0.0}} %", self.data)
        _line(ratio, "ratio", yours, "your network: below 1 it pays", "@ratio{0.000}", self.data)
        hollow = {"fill_color": None, "line_color": other.color, "line_width": 1.6}
        dots = efficiency_plot.scatter(
            "x", "y", source=self.simulated, size=10, legend_label="simulated", **hollow
        )
        told = [("simulated, nodes", "@nodes"), ("efficiency", "@y{0.0} %")]
        efficiency_plot.add_tools(HoverTool(renderers=[dots], tooltips=told))
        ratio.add_layout(Span(dimension="width", location=1, line_width=1.5, line_color=QUIET))
        dotted = {
            "dimension": "height",
            "line_dash": "dotted",
            "line_width": 2,
            "line_color": QUIET,
        }
        self.pays = [Span(**dotted) for _ in self.plots]
        for plot, span in zip(self.plots, self.pays):
            plot.add_layout(span)
            plot.legend.update(**{**LEGEND, "location": "bottom_left"})

    def _draw(self, other: str, at_paper: bool) -> None:
        answer, nodes = self.answer, self.answer.efficiency.nodes.values
        percents = {
            name: 100 * answer.efficiency.sel(interconnect=name).values for name in (YOURS, OTHER)
        }
        cost = {name: answer.cost.sel(interconnect=name, drop=True) for name in (YOURS, OTHER)}
        ratio = (cost[YOURS] / cost[OTHER]).values
        self.data.data = {"x": np.log2(nodes), "nodes": nodes, **percents, "ratio": ratio}
        known = 100 * self.basis.simulated.sel(interconnect=other).dropna("nodes")
        known = known if at_paper else known[:0]
        x = np.log2(known.nodes.values)
        self.simulated.data = {"x": x, "nodes": known.nodes.values, "y": known.values}
        far = max(LEAST_SPREAD, 1.2 * np.abs(ratio - 1).max())
        self.plots[1].y_range.update(start=max(0.0, 1 - far), end=1 + far)
        for span in self.pays:
            span.visible = bool(np.isfinite(answer.pays_from))
            span.location = float(np.log2(answer.pays_from)) if span.visible else 0.0


def _figure(label: str) -> figure:
    frame = {**FRAME, "name": "", "sizing_mode": "stretch_width", "height": 310}
    axes = {"x_axis_label": "nodes", "y_axis_label": label, "y_range": Range1d(0, 100)}
    return dress(figure(**frame, **axes), {float(np.log2(n)): str(n) for n in TICKS})


def _line(plot: figure, column: str, look: style.Look, label: str, value: str, source) -> None:
    mark = look_of(look, label)
    plot.line(
        "x",
        column,
        source=source,
        color=mark.color,
        line_dash=mark.dash,
        line_width=2.5,
        legend_label=label,
    )
    dots = plot.scatter(
        "x", column, source=source, color=mark.color, marker=mark.marker, size=7, legend_label=label
    )
    plot.add_tools(HoverTool(renderers=[dots], tooltips=[("nodes", "@nodes"), (label, value)]))


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


def _put(widget, value: str | float) -> None:
    """Give a widget a value; a slider takes the nearest stop by ratio. What it cannot take leaves it as it is."""
    if isinstance(widget, pn.widgets.Select):
        widget.value = value if value in widget.options.values() else widget.value
        return
    with suppress(ValueError):
        value = float(value)
        if isinstance(widget, pn.widgets.DiscreteSlider):
            stops = np.array(list(widget.options.values()))
            value = float(stops[np.abs(np.log(stops / max(value, stops[0]))).argmin()])
        widget.value = max(value, 0.0)


def _written(value: str | float | None) -> str:
    return value if isinstance(value, str) else f"{value or 0.0:.6g}"


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


def tiles(answer: Answer, nodes: int, other: str, premium: float) -> str:
    """Both efficiencies at a node count, the gain in HPL and what a node costs more."""
    at = answer.efficiency.sel(nodes=nodes)
    mine, theirs = (float(at.sel(interconnect=name)) for name in (YOURS, OTHER))
    said = {
        f"of peak on your network, {counted(nodes, 'node')}": mine,
        f"of peak on {other}": theirs,
        "more HPL for the same nodes": mine / theirs - 1,
        "more to pay for a node": premium,
    }
    each = (
        f'<div><div class="big">{percent(value)}</div><div class="what">{escape(what)}</div></div>'
        for what, value in said.items()
    )
    return f'<div class="tiles">{"".join(each)}</div>'
