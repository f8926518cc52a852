"""What the model of the paper's cluster predicts for more nodes and for other networks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis import drawing, exhibit, style
from analysis.attributes import short_names, testbed
from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, points
from analysis.efficiency import efficiency
from analysis.findings import Finding, of_fall, origin, without_reading
from analysis.statistics import design as designs
from analysis.statistics.judgement import FLAT, Judgement, judge
from analysis.wording import between, counted, listed, percent

# The networks whose gains are computed, each with its reference.
PAIRS = (("ddr_infiniband", "10gige"), ("gige_bonded", "gige"))
LOWEST = 60.0  # % of Rpeak at which the axis begins, unless values are lower
FIGURES = {"beyond": ("hpl_beyond",)}


@dataclass(frozen=True)
class Beyond:
    """A simulated campaign beyond the paper's cluster.

    `efficiency` is HPL's rate over Rpeak, over (interconnect, nodes), NaN where a case is missing.
    `margin` [1] counts as no change. `falls` judge, by interconnect, the fall from the fewest nodes
    to the most simulated, for networks with both. `gains`, by the pair of PAIRS, are the ratios of
    HPL's rates on both networks, over (nodes). The model has no scatter.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    efficiency: xr.DataArray
    margin: float
    falls: dict[str, Judgement]
    gains: dict[tuple[str, str], xr.DataArray]

    @property
    def fewest(self) -> int:
        """The fewest nodes."""
        return int(self.efficiency.nodes.min())

    def most(self, network: str) -> int:
        """The most nodes simulated on a network."""
        return int(self.efficiency.sel(interconnect=network).dropna("nodes").nodes.max())


def analyse(hpl_beyond: xr.Dataset) -> Beyond:
    """Derive efficiencies, falls and gains; raises FalloffError if there is no HPL trial or there
    are several blocks."""
    derived = at_only_level(points(hpl_beyond), "block").sortby("nodes")
    margin, networks = designs.read(hpl_beyond).margin, derived.interconnect.values.tolist()
    reached, falls = efficiency(derived).transpose("interconnect", "nodes"), {}
    for network, cases in zip(networks, reached.values):
        known = cases[np.isfinite(cases)]
        if len(known) > 1 and np.isfinite(cases[0]):
            falls[network] = judge([float(np.log(known[-1] / known[0]))], margin, "simulated")
    pairs = [pair for pair in PAIRS if {*pair} <= {*networks}]
    gains = {pair: np.exp(log_ratios(derived, *pair)) for pair in pairs}
    return Beyond(hpl_beyond, derived, reached, margin, falls, gains)


def finding(study: Beyond) -> str:
    """Where the efficiency stays level, and what faster networks gain, in plain English
    (Markdown)."""
    if not study.falls:
        return "**What more nodes do to the efficiency cannot be said**: no network has two cases."
    names, margin = short_names(study.dataset), percent(study.margin, 0)
    parts = []
    for flat, does in ((True, "stays within"), (False, "changes by more than")):
        networks = [name for name, fall in study.falls.items() if (fall.answer == FLAT) == flat]
        if networks:
            parts.append(f"the efficiency {does} {margin} on {_networks(study, networks)}")
    start = counted(study.fewest, "node")
    words = [f"**On more than {start} {'; '.join(parts)}** (simulated evidence, without scatter)."]
    falls = {name: fall.fall for name, fall in study.falls.items()}
    most = max(falls, key=falls.get)
    if falls[most] > 0:
        words.append(f"{names[most]} loses most, {percent(falls[most])}.")
    words += [_of_gain(study, *pair) for pair in study.gains]
    return " ".join(filter(None, [*words, without_reading(study.dataset)]))


def _networks(study: Beyond, networks: list[str]) -> str:
    """The networks with their node counts, such as "GigE and 10GE up to 256 nodes, 25GE up to 144
    nodes"."""
    names, reached = short_names(study.dataset), {}
    for network in networks:
        reached.setdefault(study.most(network), []).append(names[network])
    ends = sorted(reached.items(), reverse=True)
    return ", ".join(f"{listed(alike)} up to {counted(most, 'node')}" for most, alike in ends)


def _of_gain(study: Beyond, network: str, reference: str) -> str:
    """HPL's gain on a network over another, and the gain of the links."""
    rates = 100 * (study.gains[network, reference] - 1).dropna("nodes").values
    if not len(rates):
        return ""
    names, links = short_names(study.dataset), testbed(study.dataset)["network"]
    bandwidth, latency = (
        links[network][name]["value"] / links[reference][name]["value"]
        for name in ("bandwidth", "latency")
    )
    on_par = f"**{names[reference]} is on par with {names[network]}**, within {percent(study.margin, 0)}: "
    return (
        f"{on_par if max(abs(rates)) < 100 * study.margin else ''}HPL's rate is {between((rates.min(), rates.max()), 1)} % "
        f"higher on {names[network]} than on {names[reference]}, with {bandwidth:.2g} times its bandwidth"
        f"{'' if latency == 1 else f' and {latency:.2g} times its latency'}."
    )


def findings(study: Beyond) -> Iterator[Finding]:
    """The fall of each network's efficiency to the most nodes. The design's comparisons are
    primary."""
    planned = designs.read(study.dataset).pair
    source, names = origin("hpl_beyond", study.dataset), short_names(study.dataset)
    for network, fall in study.falls.items():
        span = f"from {study.fewest} to {study.most(network)} nodes"
        statement = f"{names[network]} loses efficiency {span}"
        yield of_fall(source, statement, fall, primary=network in planned)


def figures(study: Beyond) -> dict[str, exhibit.Exhibit]:
    """Efficiency [% of Rpeak] over nodes, a series for each network."""
    names = short_names(study.dataset)
    with style.styled():
        figure, axes = drawing.new_figure(3.5)
        for rank, cases in enumerate(study.efficiency):
            look = style.look(cases.interconnect.item())
            marks = {"color": look.color, "markersize": 6, "mec": "white", "mew": 0.6}
            nodes = drawing.beside(cases.nodes.values, rank, len(study.efficiency))
            label = names[cases.interconnect.item()]
            axes.plot(nodes, 100 * cases, look.marker, **marks, label=label)
        drawing.doubling_axis(axes, study.efficiency.nodes.values)
        axes.set_ylim(bottom=min(LOWEST, axes.get_ylim()[0]))
        axes.set_ylabel("efficiency [% of Rpeak]")
        drawing.legend_below(figure, axes, 3)
    orders = study.points.N.max("interconnect")
    sizes = f" (N = {int(orders.min())} to {int(orders.max())})" if orders.notnull().any() else ""
    return exhibit.only(
        FIGURES,
        figure,
        f"HPL's efficiency on larger clusters of the paper's nodes; the matrix grows with them{sizes}",
        exhibit.Basis("simulated"),
        "Simulated efficiency over nodes, a series for each network",
        "Networks stand side by side at each node count.",
    )
