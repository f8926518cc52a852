"""What if the network, the node or a price were different? The page's inputs, and the answer."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from html import escape
from math import isfinite
from typing import NamedTuple

import numpy as np
import panel as pn
import xarray as xr
from bokeh.models import Div, Range1d, Span
from bokeh.plotting import figure

from analysis import style
from analysis.explorer import cases
from analysis.explorer.cases import LARGEST, PAPER, Network, Node
from analysis.explorer.pieces import asset, notice
from analysis.explorer.plot import FRAME, MARKERS, QUIET, dress
from analysis.wording import counted, exact, listed, number, percent

SLOW, FAST = "gige", "10gige"  # the first selection: the paper's two networks
LEAST_SPREAD = 0.1  # least range of the costs' ratio: a narrower axis would show noise
TICKS = [2, 4, 8, 16, 36, 72, 144, 256]
GIB = 2**30


class Field(NamedTuple):
    """A number that a reader gives, and the range within which it is one."""

    label: str
    low: float
    high: float
    step: float


FIELDS = {
    "bandwidth": Field("Bandwidth of payload [Gbit/s]", 1e-3, 1e4, 0.5),
    "latency": Field("Latency [µs]", 1e-3, 1e6, 1),
    "price": Field("Price of its place in the network [USD]", 0, 1e7, 10),
    "other_price": Field("Price of that network, a node [USD]", 0, 1e7, 10),
    "rate": Field("DGEMM rate [Gflop/s]", 1e-3, 1e7, 10),
    "memory": Field("Memory that HPL fills [GiB]", 0.01, 1e5, 1),
    "node_price": Field("Price without network [USD]", 0, 1e8, 100),
}
CLUSTER, OTHER = "cluster", "other"  # the lists


class WhatIf:
    """The page's inputs and plots; `changed` is called when a reader changes an input. The answer is
    for the numbers and names that are `given`."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed, self._filling = changed, False
        self._clusters = cases.clusters()
        wide = {"sizing_mode": "stretch_width", "stylesheets": [asset("parts.css")]}
        look, bare = {"margin": (4, 0), **wide}, {"margin": 0, **wide}
        self.preset = pn.widgets.RadioButtonGroup(options=[], **look)
        named = {_called(name): name for name in self._clusters}
        self.inputs = {
            CLUSTER: pn.widgets.Select(label="Cluster", options=named, **look),
            OTHER: pn.widgets.Select(label="Against", **look),
        } | {
            name: pn.widgets.FloatInput(label=field.label, step=field.step, **look)
            for name, field in FIELDS.items()
        }
        self.card = Div(disable_math=True, **bare)
        self.plots = [pn.pane.Bokeh(sizing_mode="stretch_width", margin=0) for _ in range(2)]
        node, network, other = (
            Div(text=f"<h2>{head}</h2>", **bare)
            for head in ("Node", "Your network", "Other network")
        )
        of = self.inputs
        side = pn.Column(
            of[CLUSTER], node, of["rate"], of["memory"], of["node_price"],
            network, self.preset, of["bandwidth"], of["latency"], of["price"],
            other, of[OTHER], of["other_price"], **bare
        )  # fmt: skip
        main = pn.Column(self.card, *self.plots, **bare)
        self.panel = pn.Column(main, side, css_classes=["what-if"], **bare)
        self.given = self._start(PAPER)
        self._set({})
        for name, widget in self.inputs.items():
            widget.param.watch(partial(self._moved, name), "value")
        self.preset.param.watch(
            lambda event: self._react(_numbers(self._networks[event.new])), "value"
        )

    @property
    def _networks(self) -> Mapping[str, Network]:
        return self._clusters[self.given[CLUSTER]].networks

    def _start(self, cluster: str) -> dict[str, float | str]:
        """A cluster's own numbers: the paper's two networks, else the fastest against the slowest.
        What is not known of it is the paper's."""
        networks, node = self._clusters[cluster].networks, cases.basis().node
        by_speed = sorted(networks, key=lambda one: networks[one].bandwidth)
        slow = SLOW if SLOW in networks else by_speed[0]
        fast = FAST if FAST in networks else by_speed[-1]
        return {
            CLUSTER: cluster,
            "rate": self._clusters[cluster].rate / 1e9,
            "memory": round(node.memory / GIB, 2),
            "node_price": node.price,
            "price": 0.0,
            **_numbers(networks[fast]),
            OTHER: slow,
            "other_price": _numbers(networks[slow]).get("price", 0.0),
        }

    def address(self) -> list[tuple[str, str]]:
        """The page's part of its address: the cluster, and what differs from its own numbers."""
        start = self._start(self.given[CLUSTER]) | {CLUSTER: PAPER}
        return [(name, str(value)) for name, value in self.given.items() if value != start[name]]

    def take(self, asked: Mapping[str, str]) -> None:
        """Show the inputs of an address."""
        self.given = self._start(PAPER)
        self._set({name: asked[name] for name in self.inputs if name in asked})

    def _moved(self, name: str, event) -> None:
        """React to a changed input; another network comes with its price, where that is known."""
        price = {}
        if name == OTHER:
            price = {"other_price": _numbers(self._networks[event.new]).get("price")}
        self._react({name: event.new, **{one: at for one, at in price.items() if at is not None}})

    def _react(self, values: Mapping[str, float | str | None]) -> None:
        if not self._filling:
            self._set(values)
            self._changed()

    def _set(self, values: Mapping[str, str | float | None]) -> None:
        """Take these values and show the answer. What is no value is refused with a sentence, and the
        answer is for the last one that is."""
        given, refused = dict(self.given), []
        if values.get(CLUSTER) in self._clusters:
            given = self._start(values[CLUSTER])
        networks = self._clusters[given[CLUSTER]].networks
        lists = {CLUSTER: self._clusters, OTHER: networks}
        for name, value in values.items():
            if name in FIELDS:
                number_, refusal = _read(FIELDS[name], value)
                if not refusal:
                    given[name] = number_
                else:
                    refused.append(f"{refusal} The answer is for {exact(given[name])}.")
            elif value in lists[name]:
                given[name] = value
            else:
                what = "cluster" if name == CLUSTER else "network"
                refused.append(f"{value} is no {what} here: {listed(list(lists[name]), 'or')}.")
        self.given = given
        self._show(refused)

    def _show(self, refused: Iterable[str]) -> None:
        given, networks = self.given, self._networks
        self._filling = True
        names = {network.short: name for name, network in networks.items()}
        if self.preset.options != names:
            fast = max(networks, key=lambda one: networks[one].bandwidth)
            self.preset.param.update(options=names, value=FAST if FAST in networks else fast)
            self.inputs[OTHER].param.update(options=names, value=given[OTHER])
        for name, value in given.items():
            self.inputs[name].value = value
        self._filling = False
        node = Node(1e9 * given["rate"], GIB * given["memory"], given["node_price"])
        yours = Network(given["bandwidth"] * 1e9 / 8, given["latency"] * 1e-6, given["price"])
        other = networks[given[OTHER]]._replace(price=given["other_price"])
        answer = cases.predict(cases.basis(), yours, other, node)
        said = "".join(notice(one) for one in refused)
        self.card.text = said + card(answer, other.short)
        self.plots[0].object, self.plots[1].object = draw(answer, other.short)


def _called(cluster: str) -> str:
    return "the paper's cluster" if cluster == PAPER else f"twin {cluster}"


def _numbers(network: Network) -> dict[str, float]:
    """The inputs of a network, with its price where that is known."""
    bandwidth, latency, price, _ = network
    values = {"bandwidth": 8e-9 * bandwidth, "latency": 1e6 * latency, "price": price}
    return {name: round(value, 6) for name, value in values.items() if np.isfinite(value)}


def _read(field: Field, value: str | float | None) -> tuple[float, str]:
    """A number, or why it is refused."""
    try:
        found = float(value if value is not None else "nothing")
    except ValueError:
        return 0.0, f"{field.label}: {value or 'nothing'} is no number."
    if field.low <= found <= field.high:
        return round(found, 6), ""
    between = f"from {exact(field.low)} to {exact(field.high)}"
    return 0.0, f"{field.label}: {exact(found) if isfinite(found) else value} is not {between}."


def draw(answer: xr.Dataset, name: str) -> tuple[figure, figure]:
    """Both efficiencies, and the cost of a Gflop/s, over the nodes."""
    far = max(LEAST_SPREAD, 1.2 * float(np.abs(answer.ratio - 1).max()))
    reached = _figure(f"HPL's rate over {answer.of} [%]", 0, 100)
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
        f"On {counted(LARGEST, 'node')} HPL reaches {mine} of {answer.of} on your network and {theirs} on {other}; "
        f"a node costs {price}."
    )
    how = (
        "corrected to agree with the simulation where a network was simulated. It has no scatter, so no interval; one "
        f"simulated network predicted from the others is at most {number(100 * cases.largest_error(), 2)} percentage points "
        "off."
    )
    if answer.of != cases.PEAK:
        how = (
            "alone, on nodes of which each is one process. It has no scatter, so no interval; on the stored twin it is at most "
            f"{percent(cases.error_on_other_nodes())} off HPL simulated there. The prices are the paper's until you change them."
        )
    note = (
        "Predicted on the white paper's numbers of nodes, with a matrix that grows with them: the law of HPL's own messages, "
        f"{how} Prices of 2005 to 2009 have their sources in data/prices.toml."
    )
    return (
        '<p class="question">What if the network, the node or a price were others?</p>'
        f'<div class="card" data-pays="{answer.pays_from.item():g}"><span class="sentence">{escape(sentence)}</span> '
        f'<span class="chip">predicted</span><p class="numbers">{escape(numbers)}</p>'
        f'<div class="note">{escape(note)}</div></div>'
    )
