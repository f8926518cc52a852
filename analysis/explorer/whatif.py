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
from functools import cache, partial
from html import escape

import numpy as np
import panel as pn
import xarray as xr
from bokeh.models import Div, Range1d, Span
from bokeh.plotting import figure

from analysis import paths, prices, store, style
from analysis.attributes import short_names, testbed
from analysis.derive import at_only_level, points
from analysis.efficiency import efficiency, rpeak
from analysis.experiments.payoff import lasting_from
from analysis.explorer.pieces import asset
from analysis.explorer.plot import FRAME, MARKERS, QUIET, dress
from analysis.hpl_predictors import analytic_share
from analysis.wording import counted, number, percent
from runners.record import FalloffError

CASES = ("hpl_paper-smith", "hpl_beyond-smith")  # of the same node, up to 36 nodes and beyond
SAME = 1e-12  # a squared distance below which two networks are the same
SLOW, FAST = "gige", "10gige"  # what the page begins with: the paper's two
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

    `cases` holds HPL's N, NB, P, Q and `known_rate` [Gflop/s] of all nodes together over (nodes), and the simulated
    `efficiency` [1] over (interconnect, nodes). `peak` [flop/s] and `node_price` [USD, without network] are a node's.
    `networks` are what was simulated, with the price where there is one (else NaN), `names` their short names.
    """

    cases: xr.Dataset
    peak: float
    node_price: float
    networks: Mapping[str, Network]
    names: Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    """Your network against another, over (nodes).

    `yours` and `other` are efficiencies [1], `ratio` [1] is what a Gflop/s of HPL costs on yours over what it costs on
    the other, `premium` [1] what a node costs more. `pays_from` is the node count from which on yours is cheaper,
    infinite where it is not even at the largest.
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
    runs = [at_only_level(points(store.read(paths.REFERENCE / name)), "block") for name in CASES]
    columns = []
    for run in runs:
        settings = run[["N", "NB", "P", "Q", "known_rate"]]
        settings = settings.max("interconnect") if "interconnect" in settings.dims else settings
        columns.append(settings.assign(efficiency=efficiency(run)))
    cases = xr.concat(columns, "nodes", coords="minimal", compat="override", join="outer")
    listed, names = prices.read(), short_names(runs[1])
    priced = {price.of for price in listed}
    networks = {
        name: Network(
            about["bandwidth"]["value"],
            about["latency"]["value"],
            prices.total(listed, name) if name in priced else np.nan,
        )
        for name, about in testbed(runs[0])["network"].items()
        if name in runs[1].interconnect
    }
    return Basis(
        cases=cases.drop_duplicates("nodes").sortby("nodes"),  # both have the paper's largest case
        peak=rpeak(runs[0]),
        node_price=prices.total(listed, prices.NODE),
        networks=networks,
        names={name: names[name] for name in networks},
    )


def predict(basis: Basis, yours: Network, other: Network) -> Answer:
    """Both networks between the paper's nodes."""
    mine, theirs = predicted(basis, yours), predicted(basis, other)
    premium = (basis.node_price + yours.price) / (basis.node_price + other.price) - 1
    ratio = (1 + premium) * theirs / mine
    return Answer(mine, theirs, ratio, premium, float(lasting_from(-np.log(ratio))))


def predicted(basis: Basis, network: Network) -> xr.DataArray:
    """The analytic model's efficiency [1], corrected by that of the simulated networks, over (nodes)."""
    simulated = basis.cases.efficiency
    known = [basis.networks[name] for name in simulated.interconnect.values.tolist()]
    model = _analytic(basis, [*known, network])
    correction = np.log(simulated / model[:-1].assign_coords(interconnect=simulated.interconnect))
    distances = [
        np.log(network.bandwidth / one.bandwidth) ** 2 + np.log(network.latency / one.latency) ** 2
        for one in known
    ]
    weights = xr.DataArray(1 / np.maximum(distances, SAME), dims="interconnect")
    correction = correction.weighted(weights).mean("interconnect")  # of those that were simulated
    return model[-1].drop_vars("interconnect") * np.exp(correction)


@cache
def largest_error() -> float:
    """By how much [1] the efficiency of a simulated network is off at most when it is predicted from the others."""
    known, errors = basis(), []
    for name, network in known.networks.items():
        others = replace(known, cases=known.cases.drop_sel(interconnect=name))
        truth = known.cases.efficiency.sel(interconnect=name, drop=True)
        errors.append(float(np.abs(predicted(others, network) - truth).max()))
    return max(errors)


def _analytic(basis: Basis, networks: list[Network]) -> xr.DataArray:
    """The analytic model's efficiency [1] over (interconnect, nodes)."""
    alpha = [[network.latency] for network in networks]
    beta = [[1 / network.bandwidth] for network in networks]
    dims, rate = ("interconnect", "draw"), basis.cases.known_rate
    links = xr.Dataset(
        {"alpha": (dims, alpha), "beta": (dims, beta)}, {"interconnect": range(len(alpha))}
    )
    share = analytic_share(basis.cases, links, rate.expand_dims("draw")).isel(draw=0)
    return share * 1e9 * rate / (rate.nodes * basis.peak)


class WhatIf:
    """The page's inputs and plots; `changed` is called when a reader changed one."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.basis, self._changed, self._filling = basis(), changed, False
        names = {short: name for name, short in self.basis.names.items()}
        priced = {short: name for short, name in names.items() if "price" in self._preset(name)}
        wide = {"sizing_mode": "stretch_width", "stylesheets": [asset("parts.css")]}
        look, bare = {"margin": (4, 0), **wide}, {"margin": 0, **wide}
        self.preset = pn.widgets.RadioButtonGroup(options=names, value=FAST, **look)
        field = partial(pn.widgets.FloatInput, start=0, **look)
        self.inputs = {
            "bandwidth": field(label="Bandwidth of payload [Gbit/s]", step=0.5),
            "latency": field(label="Latency [µs]", step=1),
            "price": field(label="Price, a node [USD]", step=10),
            "other": pn.widgets.Select(label="Against", options=priced, value=SLOW, **look),
        }
        self.card = Div(disable_math=True, **bare)
        self.plots = [pn.pane.Bokeh(sizing_mode="stretch_width", margin=0) for _ in range(2)]
        side = pn.Column(self.preset, *self.inputs.values(), **bare)
        main = pn.Column(self.card, *self.plots, **bare)
        self.panel = pn.Column(main, side, css_classes=["what-if"], **bare)
        self._set(self._preset(FAST))
        self._start = self._values()
        for widget in self.inputs.values():
            widget.param.watch(lambda _event: self._moved({}), "value")
        self.preset.param.watch(lambda event: self._moved(self._preset(event.new)), "value")

    def address(self) -> list[tuple[str, str]]:
        """The page's part of its address: all that differs from the start."""
        return [item for item in self._values().items() if item[1] != self._start[item[0]]]

    def take(self, asked: Mapping[str, str]) -> None:
        """Show what an address asks for."""
        self._set({**self._start, **{name: asked[name] for name in asked if name in self.inputs}})

    def _values(self) -> dict[str, str]:
        return {name: str(widget.value) for name, widget in self.inputs.items()}

    def _preset(self, name: str) -> dict[str, float]:
        network = self.basis.networks[name]
        values = {"bandwidth": 8e-9 * network.bandwidth, "latency": 1e6 * network.latency}
        return values | ({"price": network.price} if np.isfinite(network.price) else {})

    def _moved(self, values: Mapping[str, float]) -> None:
        """An input was changed, or a network was chosen that is known."""
        if not self._filling:
            self._set(values)
            self._changed()

    def _set(self, values: Mapping[str, str | float]) -> None:
        """Give inputs values, and answer; what an input cannot take leaves it as it is."""
        self._filling = True
        for name, value in values.items():
            with suppress(ValueError):
                self.inputs[name].value = value if name == "other" else round(float(value), 6)
        self._filling = False
        value = {name: widget.value for name, widget in self.inputs.items()}
        bandwidth, latency = (max(value[name] or 0, 1e-3) for name in ("bandwidth", "latency"))
        yours = Network(bandwidth * 1e9 / 8, latency * 1e-6, value["price"] or 0)
        name = self.basis.names[value["other"]]
        answer = predict(self.basis, yours, self.basis.networks[value["other"]])
        self.card.text = card(answer, name)
        self.plots[0].object, self.plots[1].object = draw(answer, name)


def draw(answer: Answer, name: str) -> tuple[figure, figure]:
    """Both efficiencies, and what a Gflop/s costs, over the nodes."""
    far = max(LEAST_SPREAD, 1.2 * float(np.abs(answer.ratio - 1).max()))
    reached = _figure("efficiency, Rmax / Rpeak [%]", 0, 100)
    cost = _figure("cost of a Gflop/s, yours / other", max(0, 1 - far), 1 + far)
    for drawn, values, series, network in (
        (reached, 100 * answer.other, name, SLOW),
        (reached, 100 * answer.yours, "your network", FAST),
        (cost, answer.ratio, "your network: below 1 it pays", FAST),
    ):
        look, x = style.LOOKS[network], np.log2(values.nodes.values)
        looks = {"color": look.color, "legend_label": series}
        drawn.line(x, values.values, line_width=2.5, **looks)
        drawn.scatter(x, values.values, marker=MARKERS[look.marker], size=7, **looks)
    cost.add_layout(Span(dimension="width", location=1, line_width=1.5, line_color=QUIET))
    if np.isfinite(answer.pays_from):
        looks = {"line_dash": "dotted", "line_width": 2, "line_color": QUIET}
        for drawn in (reached, cost):
            drawn.add_layout(Span(dimension="height", location=np.log2(answer.pays_from), **looks))
    return reached, cost


def _figure(label: str, low: float, high: float) -> figure:
    size = {"sizing_mode": "stretch_width", "height": 310, "y_range": Range1d(low, high)}
    drawn = figure(x_axis_label="nodes", y_axis_label=label, **size, **FRAME)
    dress(drawn, {float(np.log2(n)): str(n) for n in TICKS})
    return drawn


def card(answer: Answer, other: str) -> str:
    """The node count at which the network `other` stops paying, how far off that may be, and the main numbers."""
    first, last = (counted(int(answer.ratio.nodes[end]), "node") for end in (0, -1))
    cost = f"your network costs {{}} than {other} for each Gflop/s of HPL"
    if not np.isfinite(answer.pays_from):
        sentence = f"{other} pays at every size up to {last}: {cost.format('more')}."
    elif answer.pays_from == answer.ratio.nodes[0]:
        sentence = f"Your network pays at every size from {first} on: {cost.format('less')}."
    else:
        at = counted(int(answer.pays_from), "node")
        sentence = f"{other} stops paying at {at}: from there on {cost.format('less')}."
    note = (
        "Predicted on the white paper's cases, whose matrix grows with the nodes: HPL's analytic model, corrected to "
        "agree with the simulation where a network was simulated. It has no scatter, so no interval; one simulated "
        f"network predicted from the others is at most {number(100 * largest_error(), 2)} percentage points off. "
        "Prices of 2005 to 2009 have their sources in data/prices.toml."
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
        '<p class="question">What if the network or its price were others?</p>'
        f'<div class="card" data-pays="{answer.pays_from:g}"><span class="sentence">{escape(sentence)}</span> '
        f'<span class="chip">predicted</span><div class="note">{escape(note)}</div></div>'
        f'<div class="tiles">{"".join(parts)}</div>'
    )
