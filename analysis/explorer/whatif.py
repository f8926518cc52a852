"""What if the network or its price were different? HPL on the paper's cases, predicted at once.

The prediction is the law of HPL's own messages, corrected by a factor: how far the law is off where
the paper's cluster was simulated. The logarithm of that factor is interpolated between the
simulated networks, with the inverse squares of their distances as weights, so that it is exact on
these (D. Shepard, A two-dimensional interpolation function for irregularly-spaced data, ACM
National Conference 1968, p. 517-524, https://doi.org/10.1145/800186.810616). Distances are in the
logarithms of bandwidth and latency.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from html import escape
from typing import NamedTuple

import numpy as np
import panel as pn
import xarray as xr
from bokeh.models import Div, Range1d, Span
from bokeh.plotting import figure

from analysis import paths, prices, store, style
from analysis.attributes import short_names, testbed
from analysis.derive import at_only_level, points
from analysis.efficiency import efficiency, rpeak
from analysis.explorer.pieces import asset
from analysis.explorer.plot import FRAME, MARKERS, QUIET, dress
from analysis.models import hpl
from analysis.payoff import lasting_from
from analysis.quoting import as_written
from analysis.wording import counted, number, percent

# Both with the same node: up to 36 nodes, and beyond.
CASES = ("hpl_paper-smith", "hpl_beyond-smith")
SAME = 1e-12  # a squared distance below which two networks are the same
SLOW, FAST = "gige", "10gige"  # the first selection: the paper's two networks
LEAST_SPREAD = 0.1  # least range of the costs' ratio: a narrower axis would show noise
LARGEST = 36  # nodes, of the paper
PANELS = 60  # of a case; the correction makes up for the steps of HPL that so few panels miss
TICKS = [2, 4, 8, 16, 36, 72, 144, 256]


class Network(NamedTuple):
    """A network as a node sees it: payload bandwidth [B/s], latency [s], and its price per node
    [USD, or NaN]."""

    bandwidth: float
    latency: float
    price: float
    short: str = "your network"


class Basis(NamedTuple):
    """The paper's cases: HPL's N, NB, P, Q and `known_rate` [Gflop/s] of all nodes together over
    (nodes), and the simulated `efficiency` [1] over (interconnect, nodes); a node's `peak` [flop/s]
    and `price` [USD, without network]; and the simulated networks by name."""

    cases: xr.Dataset
    peak: float
    price: float
    networks: dict[str, Network]


@cache
def basis() -> Basis:
    """The stored cases of the paper's cluster; raises FalloffError if they are missing."""
    runs = [at_only_level(points(store.read(paths.REFERENCE / name)), "block") for name in CASES]
    columns = []
    for run in runs:
        settings = run[["N", "NB", "P", "Q", "known_rate"]]
        settings = settings.max("interconnect") if "interconnect" in settings.dims else settings
        columns.append(settings.assign(efficiency=efficiency(run)))
    cases = xr.concat(columns, "nodes", coords="minimal", compat="override", join="outer")
    # Both campaigns contain the paper's largest case.
    cases = cases.drop_duplicates("nodes").sortby("nodes")
    listed, short = prices.read(), short_names(runs[1])
    known = {
        name: Network(
            about["bandwidth"]["value"],
            about["latency"]["value"],
            prices.total(listed, name) or np.nan,
            as_written(short[name]),
        )
        for name, about in testbed(runs[0])["network"].items()
        if name in runs[1].interconnect
    }
    return Basis(cases, rpeak(runs[0]), prices.total(listed, prices.NODE), known)


def predict(basis: Basis, yours: Network, other: Network) -> xr.Dataset:
    """Compare both networks at the paper's node counts: the efficiencies [1] `yours` and `other`
    over (nodes), the `ratio` [1] of the cost of a Gflop/s of HPL on yours to that on the other, the
    extra cost of a node (`premium` [1]), and `pays_from`, the node count from which on yours is
    cheaper, infinite if it is not even at the largest."""
    mine, theirs = predicted(basis, yours), predicted(basis, other)
    premium = (basis.price + yours.price) / (basis.price + other.price) - 1
    ratio = (1 + premium) * theirs / mine
    both = {"yours": mine, "other": theirs, "ratio": ratio}
    return xr.Dataset({**both, "premium": premium, "pays_from": lasting_from(-np.log(ratio))})


def predicted(basis: Basis, network: Network) -> xr.DataArray:
    """The efficiency [1] by the law of HPL's messages, corrected from the simulated networks, over
    (nodes)."""
    simulated = basis.cases.efficiency
    known = [basis.networks[name] for name in simulated.interconnect.values.tolist()]
    bandwidth, latency = np.array([each[:2] for each in (*known, network)]).T
    cases = basis.cases
    x = np.array([cases[name].values for name in ("N", "NB", "P", "Q")], float)
    of_a_flop = (cases.nodes / (1e9 * cases.known_rate)).values
    costs = latency[:, None], 1 / bandwidth[:, None], of_a_flop
    time = xr.DataArray(hpl.longest(hpl.counts(x, PANELS), *costs), dims=("interconnect", "nodes"))
    model = 1 / time * hpl.operations(cases.N) / (cases.nodes * basis.peak)
    correction = np.log(simulated / model[:-1].assign_coords(interconnect=simulated.interconnect))
    distances = (
        np.log(bandwidth[:-1] / bandwidth[-1]) ** 2 + np.log(latency[:-1] / latency[-1]) ** 2
    )
    weights = xr.DataArray(1 / np.maximum(distances, SAME), dims="interconnect")
    correction = correction.weighted(weights).mean("interconnect")  # over the simulated networks
    return model[-1] * np.exp(correction)


@cache
def largest_error() -> float:
    """The largest error [1] in the efficiency of a simulated network when it is predicted from the
    others."""
    known, errors = basis(), []
    for name, network in known.networks.items():
        others = known._replace(cases=known.cases.drop_sel(interconnect=name))
        truth = known.cases.efficiency.sel(interconnect=name, drop=True)
        errors.append(float(np.abs(predicted(others, network) - truth).max()))
    return max(errors)


class WhatIf:
    """The page's inputs and plots; `changed` is called when a reader changes an input."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._known, self._changed, self._filling = basis().networks, changed, False
        names = {network.short: name for name, network in self._known.items()}
        priced = {
            short: name for short, name in names.items() if np.isfinite(self._known[name].price)
        }
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
        """The page's part of its address: everything that differs from the start."""
        return [item for item in self._values().items() if item[1] != self._start[item[0]]]

    def take(self, asked: Mapping[str, str]) -> None:
        """Show the inputs of an address."""
        self._set({**self._start, **{name: asked[name] for name in asked if name in self.inputs}})

    def _values(self) -> dict[str, str]:
        return {name: str(widget.value) for name, widget in self.inputs.items()}

    def _preset(self, name: str) -> dict[str, float]:
        """The inputs of a known network; the price stays if that of the network is unknown."""
        bandwidth, latency, price, _ = self._known[name]
        values = {"bandwidth": 8e-9 * bandwidth, "latency": 1e6 * latency, "price": price}
        return {name: value for name, value in values.items() if np.isfinite(value)}

    def _moved(self, values: Mapping[str, float]) -> None:
        """React to a changed input, or to the choice of a known network."""
        if not self._filling:
            self._set(values)
            self._changed()

    def _set(self, values: Mapping[str, str | float]) -> None:
        """Set the inputs and update the answer. An input that rejects its value stays as it is."""
        self._filling = True
        for name, value in values.items():
            with suppress(ValueError):
                if name != "other":
                    self.inputs[name].value = round(float(value), 6)
                elif value in self.inputs[name].options.values():
                    self.inputs[name].value = value
        self._filling = False
        bandwidth, latency, price, other = (widget.value for widget in self.inputs.values())
        least = 1e-3  # Gbit/s or µs, the value of an empty field
        yours = Network(
            max(bandwidth or 0, least) * 1e9 / 8, max(latency or 0, least) * 1e-6, price or 0
        )
        other = self._known[other]
        answer = predict(basis(), yours, other)
        self.card.text = card(answer, other.short)
        self.plots[0].object, self.plots[1].object = draw(answer, other.short)


def draw(answer: xr.Dataset, name: str) -> tuple[figure, figure]:
    """Both efficiencies, and the cost of a Gflop/s, over the nodes."""
    far = max(LEAST_SPREAD, 1.2 * float(np.abs(answer.ratio - 1).max()))
    reached = _figure("efficiency, Rmax / Rpeak [%]", 0, 100)
    cost = _figure("cost of a Gflop/s, yours / other", max(0, 1 - far), 1 + far)
    x = np.log2(answer.nodes.values)
    for drawn, y, series, network in (
        (reached, 100 * answer.other, name, SLOW),
        (reached, 100 * answer.yours, "your network", FAST),
        (cost, answer.ratio, "your network: below 1 it pays", FAST),
    ):
        looks = {"color": style.LOOKS[network].color, "legend_label": series}
        drawn.line(x, y.values, line_width=2.5, **looks)
        drawn.scatter(x, y.values, marker=MARKERS[style.LOOKS[network].marker], size=7, **looks)
    cost.add_layout(Span(dimension="width", location=1, line_color=QUIET))
    if np.isfinite(answer.pays_from):
        where = {"dimension": "height", "location": float(np.log2(answer.pays_from))}
        for drawn in (reached, cost):
            drawn.add_layout(Span(**where, line_dash="dotted", line_width=2, line_color=QUIET))
    return reached, cost


def _figure(label: str, low: float, high: float) -> figure:
    size = {"sizing_mode": "stretch_width", "height": 310, "y_range": Range1d(low, high)}
    drawn = figure(x_axis_label="nodes", y_axis_label=label, **size, **FRAME)
    dress(drawn, {float(np.log2(n)): str(n) for n in TICKS})
    return drawn


def card(answer: xr.Dataset, other: str) -> str:
    """The node count from which on the network `other` no longer pays, its possible error, and the
    main numbers."""
    first, last = (counted(int(answer.nodes[end]), "node") for end in (0, -1))
    cost = f"your network costs {{}} than {other} for each Gflop/s of HPL"
    if not np.isfinite(answer.pays_from):
        sentence = f"{other} pays at every size up to {last}: {cost.format('more')}."
    elif answer.pays_from == answer.nodes[0]:
        sentence = f"Your network pays at every size from {first} on: {cost.format('less')}."
    else:
        at = counted(int(answer.pays_from), "node")
        sentence = f"{other} stops paying at {at}: from there on {cost.format('less')}."
    mine, theirs = (percent(answer[one].sel(nodes=LARGEST).item()) for one in ("yours", "other"))
    premium = answer.premium.item()
    price = f"{percent(abs(premium))} {'more' if premium > 0 else 'less'}"
    numbers = (
        f"On {counted(LARGEST, 'node')} HPL reaches {mine} of peak on your network and {theirs} on {other}; "
        f"a node costs {price}."
    )
    note = (
        "Predicted on the white paper's cases, whose matrix grows with the nodes: the law of HPL's own messages, corrected to "
        "agree with the simulation where a network was simulated. It has no scatter, so no interval; one simulated "
        f"network predicted from the others is at most {number(100 * largest_error(), 2)} percentage points off. "
        "Prices of 2005 to 2009 have their sources in data/prices.toml."
    )
    return (
        '<p class="question">What if the network or its price were others?</p>'
        f'<div class="card" data-pays="{answer.pays_from.item():g}"><span class="sentence">{escape(sentence)}</span> '
        f'<span class="chip">predicted</span><p class="numbers">{escape(numbers)}</p>'
        f'<div class="note">{escape(note)}</div></div>'
    )
