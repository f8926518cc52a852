"""The page of what-if: sliders, efficiency and cost over nodes, and where a network stops paying."""

import numpy as np
import panel as pn
from bokeh.models import ColumnDataSource, HoverTool, Range1d, Span
from bokeh.plotting import figure

from analysis import style
from analysis.explorer import whatif, whatif_text
from analysis.explorer.marks import Mark, mark
from analysis.explorer.plot import CLEAR
from analysis.explorer.whatif import OTHER, YOURS, Answer, Network
from analysis.explorer.widgets import nearest, price, select, sheet, slider, text

SLOW, FAST = "gige", "10gige"  # what the page begins with: the paper's two
LEAST_SPREAD = 0.1  # of the costs' ratio: an axis that moved with less would show noise
TICKS = [2, 4, 8, 16, 36, 72, 144, 256]


class WhatIf:
    """The page's widgets and plots; `answer` is what they say."""

    def __init__(self) -> None:
        self.basis = whatif.basis()
        names, known = self.basis.names, self.basis.networks.values()
        self.preset = pn.widgets.RadioButtonGroup(
            options={names[name]: name for name in names},
            value=FAST,
            stylesheets=[sheet()],
            margin=(4, 0),
            sizing_mode="stretch_width",
        )
        self.bandwidth = slider("Bandwidth of payload", 0.05, 200, "Gbit/s", [8e-9 * it.bandwidth for it in known])
        self.latency = slider("Latency", 0.5, 200, "µs", [1e6 * it.latency for it in known])
        self.peak = slider("Node's theoretical peak", 10, 10_000, "Gflop/s", [self.basis.peak / 1e9])
        self.node_price = price("A node without its network [USD]", self.basis.node_price)
        self.price = price("Your network, a node [USD]", self.basis.networks[FAST].price)
        self.other = select("Against")
        self.other.param.update(options={names[name]: name for name in names}, value=SLOW)
        self.other_price = price("That network, a node [USD]", self.basis.networks[SLOW].price)
        self.nodes = select("Nodes")
        cases = self.basis.settings.nodes.values.tolist()
        self.nodes.param.update(options={str(n): n for n in cases}, value=36)
        self.said, self.tiles = text(), text()
        self._plots()
        self._filling = True
        nearest(self.peak, self.basis.peak / 1e9)
        self._take(FAST)
        self._filling = False
        for widget in (
            self.bandwidth,
            self.latency,
            self.peak,
            self.node_price,
            self.price,
            self.other_price,
            self.nodes,
        ):
            widget.param.watch(lambda _event: self._update(), "value")
        self.preset.param.watch(lambda event: self._preset(event.new), "value")
        self.other.param.watch(lambda event: self._against(event.new), "value")
        self._update()

    def panel(self) -> pn.Column:
        """The whole page."""
        sliders = pn.Column(
            text("<h2>Your network</h2>"),
            self.preset,
            self.bandwidth,
            self.latency,
            self.price,
            text("<h2>Your nodes</h2>"),
            self.peak,
            self.node_price,
            text("<h2>Against</h2>"),
            self.other,
            self.other_price,
            self.nodes,
            css_classes=["side"],
            sizing_mode="stretch_width",
            margin=0,
        )
        heading = text('<p class="question">What if the network, the nodes or the prices were others?</p>')
        shown = pn.Column(
            heading,
            self.said,
            self.tiles,
            self.efficiency,
            self.ratio,
            css_classes=["shown"],
            sizing_mode="stretch_width",
            margin=0,
        )
        return pn.Column(
            shown,
            sliders,
            css_classes=["what-if"],
            sizing_mode="stretch_width",
            margin=0,
            stylesheets=[sheet("whatif.css")],
        )

    def _plots(self) -> None:
        columns = ("x", "nodes", "yours", "other", "ratio")
        self.data = ColumnDataSource({name: [] for name in columns})
        self.simulated = ColumnDataSource(
            {name: [] for name in ("x", "nodes", "y", "color", "dark", "marker", "name")}
        )
        look = {name: mark(style.LOOKS[name], name) for name in (SLOW, FAST)}
        self.efficiency, self.ratio = (
            self._figure(label) for label in ("efficiency, Rmax / Rpeak [%]", "cost of a Gflop/s, yours / other")
        )
        self.pays = [
            Span(dimension="height", line_dash="dotted", line_width=2, location=0, visible=False) for _ in range(2)
        ]
        for label, its, name in (("the other", look[SLOW], OTHER), ("your network", look[FAST], YOURS)):
            self._line(self.efficiency, name, its, label, f"@{name}{{0.0}} %")
        self._line(self.ratio, "ratio", look[FAST], "your network: below 1 it pays", "@ratio{0.000}")
        self.ratio.add_layout(Span(dimension="width", location=1, line_width=1.5))
        for plot, span in zip((self.efficiency, self.ratio), self.pays):
            plot.add_layout(span)
            plot.legend.orientation, plot.legend.location = "horizontal", "bottom_left"
        dots = self.efficiency.scatter(
            "x",
            "y",
            source=self.simulated,
            marker="marker",
            size=9,
            fill_color=None,
            line_color="color",
            line_width=1.6,
            legend_label="simulated",
        )
        self.efficiency.add_tools(
            HoverTool(
                renderers=[dots], tooltips=[("simulated", "@name"), ("nodes", "@nodes"), ("efficiency", "@y{0.0} %")]
            )
        )

    def _line(self, plot: figure, column: str, look: Mark, label: str, value: str) -> None:
        line = plot.line(
            "x", column, source=self.data, color=look.color, line_dash=look.dash, line_width=2.5, legend_label=label
        )
        dots = plot.scatter(
            "x", column, source=self.data, color=look.color, marker=look.marker, size=7, legend_label=label
        )
        line.tags = dots.tags = [look.color, look.dark]
        plot.add_tools(HoverTool(renderers=[dots], tooltips=[("nodes", "@nodes"), (label, value)]))

    def _figure(self, label: str) -> figure:
        plot = figure(
            height=310,
            sizing_mode="stretch_width",
            tools="pan,box_zoom,reset",
            active_drag=None,
            toolbar_location=None,
            x_axis_label="nodes",
            y_axis_label=label,
            y_range=Range1d(0, 100),
            min_border_right=18,
            **CLEAR,
        )
        plot.xaxis.ticker = [float(np.log2(n)) for n in TICKS]
        plot.xaxis.major_label_overrides = {float(np.log2(n)): str(n) for n in TICKS}
        plot.xgrid.visible = False
        return plot

    def _preset(self, name: str) -> None:
        self._filling = True
        self._take(name)
        self._filling = False
        self._update()

    def _take(self, name: str) -> None:
        network = self.basis.networks[name]
        nearest(self.bandwidth, 8e-9 * network.bandwidth)
        nearest(self.latency, 1e6 * network.latency)
        if np.isfinite(network.price):
            self.price.value = network.price

    def _against(self, name: str) -> None:
        known = self.basis.networks[name].price
        self._filling = True
        if np.isfinite(known):
            self.other_price.value = known
        self._filling = False
        self._update()

    def yours(self) -> Network:
        """The network of the sliders."""
        return Network(self.bandwidth.value * 1e9 / 8, self.latency.value * 1e-6, self.price.value or 0.0)

    def _update(self) -> None:
        if self._filling:
            return
        other = self.basis.networks[self.other.value]
        against = Network(other.bandwidth, other.latency, self.other_price.value or 0.0)
        self.answer = whatif.predict(
            self.basis, self.yours(), against, 1e9 * self.peak.value, self.node_price.value or 1.0
        )
        with pn.io.hold():
            self._draw(self.answer)
            self.said.text = whatif_text.sentence(self.answer, self.basis.names[self.other.value])
            self.tiles.text = whatif_text.tiles(
                self.answer, self.nodes.value, self.basis.names[self.other.value], self._premium()
            )

    def _draw(self, answer: Answer) -> None:
        nodes = answer.efficiency.nodes.values
        percents = {name: 100 * answer.efficiency.sel(interconnect=name).values for name in (YOURS, OTHER)}
        ratio = (
            answer.cost.sel(interconnect=YOURS, drop=True) / answer.cost.sel(interconnect=OTHER, drop=True)
        ).values
        self.data.data = {"x": np.log2(nodes), "nodes": nodes, **percents, "ratio": ratio}
        known = 100 * self.basis.simulated.sel(interconnect=self.other.value).dropna("nodes")
        at_paper = np.isclose(self.peak.value, self.basis.peak / 1e9, rtol=0.04)
        look, count = mark(style.LOOKS[self.other.value], self.other.value), known.size if at_paper else 0
        self.simulated.data = {
            "x": np.log2(known.nodes.values)[:count],
            "nodes": known.nodes.values[:count],
            "y": known.values[:count],
            "color": [look.color] * count,
            "dark": [look.dark] * count,
            "marker": [look.marker] * count,
            "name": [self.basis.names[self.other.value]] * count,
        }
        far = max(LEAST_SPREAD, 1.2 * np.abs(ratio - 1).max())
        self.ratio.y_range.update(start=max(0.0, 1 - far), end=1 + far)
        for span in self.pays:
            span.visible = bool(np.isfinite(answer.pays_from))
            span.location = float(np.log2(answer.pays_from)) if span.visible else 0.0

    def _premium(self) -> float:
        """What a node costs more with your network [1]."""
        node, yours, other = (it.value or 0.0 for it in (self.node_price, self.price, self.other_price))
        return (node + yours) / ((node + other) or 1.0) - 1
