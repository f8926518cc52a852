"""What if the network or its price were others? HPL on the paper's cases, predicted at once.

The prediction is HPL's analytic model, times how far it is off where the paper's cluster was simulated: the logarithm
of that factor is interpolated between the simulated networks, with the inverse squares of their distances as weights,
so that it is exact on these (D. Shepard, A two-dimensional interpolation function for irregularly-spaced data, ACM
National Conference 1968, p. 517-524, https://doi.org/10.1145/800186.810616). Distances are in the logarithms of
bandwidth and latency.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from html import escape

import numpy as np
import panel as pn
import xarray as xr
from bokeh.models import Div, Legend, Range1d, Span
from bokeh.plotting import figure

from analysis import paths, prices, store, style
from analysis.attributes import short_names, testbed
from analysis.derive import at_only_level, points
from analysis.efficiency import efficiency, rpeak
from analysis.experiments.payoff import lasting_from
from analysis.explorer.pieces import asset
from analysis.explorer.plot import FRAME, LEGEND, MARKERS, QUIET, dress
from analysis.hpl_predictors import analytic_share
from analysis.wording import counted, number, percent
from runners.record import FalloffError

CASES = ("hpl_paper-smith", "hpl_beyond-smith")  # of the same node, up to 36 nodes and beyond
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
    `node_price` [USD] is a node's without its network.
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
    """Your network against another, over (nodes).

    `yours` and `other` are the efficiencies [1] of the nodes' theoretical peak, `ratio` [1] is what a Gflop/s of HPL costs
    on yours over what it costs on the other, `premium` [1] what a node costs more. `pays_from` is the node count from
    which on yours is cheaper, infinite where it is not even at the largest.
    """

    yours: xr.DataArray
    other: xr.DataArray
    ratio: xr.DataArray
    premium: float
    pays_from: float


@cache
def basis() -> Basis:
    """The stored cases of the paper's cluster; raises FalloffError when they are not there."""
    for name in CASES:
        if not (paths.REFERENCE / name).is_dir():
            raise FalloffError(
                f"what if needs the reference campaign {name}: it comes with Falloff in data/reference"
            )
    cases = [at_only_level(points(store.read(paths.REFERENCE / name)), "block") for name in CASES]
    settings = ["N", "NB", "P", "Q", "known_rate"]
    columns = [
        xr.Dataset({name: case[name].max(set(case[name].dims) - {"nodes"}) for name in settings})
        for case in cases
    ]
    # Both have the paper's largest case.
    by_nodes = (
        xr.concat(columns, "nodes", coords="minimal").drop_duplicates("nodes").sortby("nodes")
    )
    simulated = xr.concat(
        [efficiency(case) for case in cases],
        "nodes",
        coords="minimal",
        compat="override",
        join="outer",
    )
    listed = prices.read()
    priced = {price.of for price in listed}
    names = short_names(cases[1])
    networks = {
        name: Network(
            about["bandwidth"]["value"],
            about["latency"]["value"],
            prices.total(listed, name) if name in priced else np.nan,
        )
        for name, about in testbed(cases[0])["network"].items()
        if name in cases[1].interconnect
    }
    return Basis(
        settings=by_nodes[["N", "NB", "P", "Q"]],
        dgemm=by_nodes.known_rate,
        peak=rpeak(cases[0]),
        simulated=simulated.drop_duplicates("nodes").sortby("nodes"),
        networks=networks,
        names={name: names[name] for name in networks},
        node_price=prices.total(listed, prices.NODE),
    )


def predict(basis: Basis, yours: Network, other: Network) -> Answer:
    """Both networks between the paper's nodes."""
    mine, theirs = _efficiency(basis, yours), _efficiency(basis, other)
    premium = (basis.node_price + yours.price) / (basis.node_price + other.price) - 1
    ratio = (1 + premium) * theirs / mine
    return Answer(mine, theirs, ratio, premium, float(lasting_from(-np.log(ratio))))


@cache
def largest_error() -> float:
    """By how much [1] the efficiency of a simulated network is off at most when it is predicted from the others."""
    known, errors = basis(), []
    for name, network in known.networks.items():
        others = replace(known, simulated=known.simulated.drop_sel(interconnect=name))
        error = _efficiency(others, network) - known.simulated.sel(interconnect=name, drop=True)
        errors.append(float(np.abs(error).max()))
    return max(errors)


def _efficiency(basis: Basis, network: Network) -> xr.DataArray:
    """The analytic model's efficiency [1], corrected by that of the simulated networks, over (nodes)."""
    known = [basis.networks[name] for name in basis.simulated.interconnect.values.tolist()]
    off = np.log(
        basis.simulated
        / _analytic(basis, known).assign_coords(interconnect=basis.simulated.interconnect)
    )
    distances = [
        np.log(network.bandwidth / one.bandwidth) ** 2 + np.log(network.latency / one.latency) ** 2
        for one in known
    ]
    weights = xr.DataArray(1 / np.maximum(distances, SAME), {"interconnect": off.interconnect})
    correction = off.weighted(weights).mean("interconnect")  # over those that were simulated
    return _analytic(basis, [network]).isel(interconnect=0, drop=True) * np.exp(correction)


def _analytic(basis: Basis, networks: list[Network]) -> xr.DataArray:
    """The analytic model's efficiency [1] over (interconnect, nodes)."""
    columns = {
        "alpha": [[one.latency] for one in networks],
        "beta": [[1 / one.bandwidth] for one in networks],
    }
    links = xr.Dataset(
        {name: (("interconnect", "draw"), values) for name, values in columns.items()},
        {"interconnect": np.arange(len(networks))},
    )
    share = analytic_share(basis.settings, links, basis.dgemm.expand_dims("draw")).isel(draw=0)
    return share * 1e9 * basis.dgemm / (basis.dgemm.nodes * basis.peak)


class WhatIf:
    """The page's sliders, price and plots; `changed` is called when a reader moved one, `answer` is what they say."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.basis, self._changed, self._filling = basis(), changed, False
        networks, names = self.basis.networks, self.basis.names
        priced = {names[name]: name for name in names if np.isfinite(networks[name].price)}
        look = {
            "sizing_mode": "stretch_width",
            "margin": (4, 0),
            "stylesheets": [asset("parts.css")],
        }
        self.preset = pn.widgets.RadioButtonGroup(
            options={short: name for name, short in names.items()}, value=FAST, **look
        )
        bandwidths = [8e-9 * network.bandwidth for network in networks.values()]
        latencies = [1e6 * network.latency for network in networks.values()]
        self.inputs = {
            "bandwidth": _slider("Bandwidth of payload", 0.05, 200, "Gbit/s", bandwidths, look),
            "latency": _slider("Latency", 0.5, 200, "µs", latencies, look),
            "price": pn.widgets.FloatInput(
                label="Its price, a node [USD]", start=0, step=10, **look
            ),
            "other": pn.widgets.Select(label="That network", options=priced, value=SLOW, **look),
        }
        self._set(self._of_network(FAST))
        self._start = self._values()
        for widget in self.inputs.values():
            widget.param.watch(lambda _event: self._moved(), "value")
        self.preset.param.watch(lambda event: self._moved(self._of_network(event.new)), "value")
        self.card = Div(
            disable_math=True,
            sizing_mode="stretch_width",
            margin=0,
            stylesheets=look["stylesheets"],
        )
        self.plots = [pn.pane.Bokeh(sizing_mode="stretch_width", margin=0) for _ in range(2)]
        bare = {**look, "margin": 0}
        self.panel = pn.Column(
            pn.Column(self.card, *self.plots, **bare),
            pn.Column(self.preset, *self.inputs.values(), **bare),
            css_classes=["what-if"], **bare,
        )  # fmt: skip

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
                value = value if name == "other" else max(float(value), 0.0)
                if isinstance(widget, pn.widgets.DiscreteSlider):
                    stops = np.array(list(widget.options.values()))
                    value = float(stops[np.abs(np.log(stops / max(value, stops[0]))).argmin()])
                widget.value = value
        self._filling = False

    def _of_network(self, name: str) -> dict[str, float]:
        network = self.basis.networks[name]
        values = {"bandwidth": 8e-9 * network.bandwidth, "latency": 1e6 * network.latency}
        return values | ({"price": network.price} if np.isfinite(network.price) else {})

    def _moved(self, values: Mapping[str, float] | None = None) -> None:
        """An input was moved, or a network was chosen that is known."""
        if not self._filling:
            self._set(values or {})
            self._update()
            self._changed()

    def _update(self) -> None:
        value = {name: widget.value or 0.0 for name, widget in self.inputs.items()}
        yours = Network(value["bandwidth"] * 1e9 / 8, value["latency"] * 1e-6, value["price"])
        other, name = self.basis.networks[value["other"]], self.basis.names[value["other"]]
        self.answer = answer = predict(self.basis, yours, other)
        simulated = self.basis.simulated.sel(interconnect=value["other"]).dropna("nodes")
        with pn.io.hold():
            self.card.text = card(answer, name)
            self.plots[0].object = _reached(answer, name, simulated)
            self.plots[1].object = _ratio(answer)


def _reached(answer: Answer, name: str, simulated: xr.DataArray) -> figure:
    drawn = _figure("efficiency, Rmax / Rpeak [%]", answer, (0.0, 100.0))
    for series, values, look in ((name, answer.other, SLOW), ("your network", answer.yours, FAST)):
        _line(drawn, 100 * values, series, style.LOOKS[look])
    looks = {
        "size": 11,
        "fill_color": None,
        "line_color": style.LOOKS[SLOW].color,
        "line_width": 1.6,
    }
    x, y = np.log2(simulated.nodes.values), 100 * simulated.values
    drawn.scatter(x, y, legend_label="simulated", **looks)
    return drawn


def _ratio(answer: Answer) -> figure:
    far = max(LEAST_SPREAD, 1.2 * float(np.abs(answer.ratio - 1).max()))
    drawn = _figure("cost of a Gflop/s, yours / other", answer, (max(0.0, 1 - far), 1 + far))
    _line(drawn, answer.ratio, "your network: below 1 it pays", style.LOOKS[FAST])
    drawn.add_layout(Span(dimension="width", location=1, line_width=1.5, line_color=QUIET))
    return drawn


def _figure(label: str, answer: Answer, ends: tuple[float, float]) -> figure:
    size = {"sizing_mode": "stretch_width", "height": 310, "y_range": Range1d(*ends)}
    drawn = figure(x_axis_label="nodes", y_axis_label=label, **size, **FRAME)
    drawn.add_layout(Legend(**LEGEND), "above")
    dress(drawn, {float(np.log2(n)): str(n) for n in TICKS})
    if np.isfinite(answer.pays_from):
        looks = {"line_dash": "dotted", "line_width": 2, "line_color": QUIET}
        drawn.add_layout(Span(dimension="height", location=np.log2(answer.pays_from), **looks))
    return drawn


def _line(drawn: figure, values: xr.DataArray, series: str, look: style.Look) -> None:
    x, looks = np.log2(values.nodes.values), {"color": look.color, "legend_label": series}
    drawn.line(x, values.values, line_width=2.5, **looks)
    drawn.scatter(x, values.values, marker=MARKERS[look.marker], size=7, **looks)


def _slider(label: str, low: float, high: float, unit: str, known: list[float], look: dict):
    """A slider from low to high in equal ratios, which also stops at the values that are known."""
    values = sorted({*np.geomspace(low, high, STEPS).tolist(), *known})
    options = {f"{number(value)} {unit}": float(value) for value in values}
    return pn.widgets.DiscreteSlider(label=label, options=options, **{**look, "margin": (8, 6)})


def card(answer: Answer, other: str) -> str:
    """The node count at which the network `other` stops paying, how far off that may be, and the main numbers."""
    first, last = (counted(int(answer.ratio.nodes[end]), "node") for end in (0, -1))
    if not np.isfinite(answer.pays_from):
        sentence = f"{other} pays at every size up to {last}: your network costs more for each Gflop/s of HPL."
    elif answer.pays_from == answer.ratio.nodes[0]:
        sentence = f"Your network pays at every size from {first} on: it costs less for each Gflop/s of HPL than {other}."
    else:
        at = counted(int(answer.pays_from), "node")
        sentence = f"{other} stops paying at {at}: from there on your network costs less for each Gflop/s of HPL."
    note = (
        "Predicted on the white paper's cases, whose matrix grows with the nodes: HPL's analytic model, corrected to "
        "agree with the simulation (open marks) where a network was simulated. It has no scatter, so no interval; one "
        f"simulated network predicted from the others is at most {number(100 * largest_error(), 2)} percentage points "
        "off. Prices of 2005 to 2009 have their sources in data/prices.toml."
    )
    mine, theirs = (float(one.sel(nodes=LARGEST)) for one in (answer.yours, answer.other))
    tiles = {
        f"of peak on your network, {counted(LARGEST, 'node')}": mine,
        f"of peak on {other}": theirs,
        "more HPL for the same nodes": mine / theirs - 1,
        "more to pay for a node": answer.premium,
    }
    parts = [
        f'<div><div class="big">{percent(value)}</div><div class="what">{escape(what)}</div></div>'
        for what, value in tiles.items()
    ]
    return (
        f'<p class="question">What if the network or its price were others?</p>'
        f'<div class="card" data-pays="{answer.pays_from:g}"><span class="sentence">{escape(sentence)}</span> '
        f'<span class="chip">predicted</span><div class="note">{escape(note)}</div></div>'
        f'<div class="tiles">{"".join(parts)}</div>'
    )
