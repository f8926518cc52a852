"""What the model of the paper's cluster foretells of more nodes and of other networks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.attributes import short_names, testbed
from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, points
from analysis.efficiency import efficiency
from analysis.exhibit import Basis, Exhibit
from analysis.findings import Finding, of_fall, origin
from analysis.statistics import design as designs
from analysis.statistics.judgement import FLAT, Judgement, judge
from analysis.wording import between, counted, listed, percent

# The networks whose gains over another are asked for.
PAIRS = (("ddr_infiniband", "10gige"), ("gige_bonded", "gige"))
BUNCH = 0.05  # networks that come so close to the best one have a panel of their own
FIGURES = {"beyond": ("hpl_beyond",)}


@dataclass(frozen=True)
class Expansion:
    """The fall of a network's efficiency from the fewest nodes to the most that were simulated."""

    interconnect: str
    from_nodes: int
    to_nodes: int
    fall: Judgement


@dataclass(frozen=True)
class Gain:
    """What one network gains over another: `rate` is the ratio of HPL's rates less one, over (nodes).

    `bandwidth` and `latency` are the ratios of the model's parameters.
    """

    network: str
    reference: str
    bandwidth: float
    latency: float
    rate: xr.DataArray


@dataclass(frozen=True)
class Beyond:
    """A simulated campaign beyond the paper's cluster.

    `efficiency` is HPL's rate over Rpeak, over (interconnect, nodes), NaN where a case is missing. `margin` [1] counts as
    no change. `expansions` are of the networks with two cases. The model has no scatter.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    efficiency: xr.DataArray
    margin: float
    expansions: tuple[Expansion, ...]
    gains: tuple[Gain, ...]


def analyse(hpl_beyond: xr.Dataset) -> Beyond:
    """Derive efficiencies, expansions and gains; raises FalloffError when there is no HPL trial or there are several blocks."""
    derived = at_only_level(points(hpl_beyond), "block")
    margin = designs.read(hpl_beyond).margin
    reached = efficiency(derived).transpose("interconnect", ...)
    expansions = (_expansion(of_network, margin) for of_network in reached)
    networks = set(derived.interconnect.values)
    return Beyond(
        dataset=hpl_beyond,
        points=derived,
        efficiency=reached,
        margin=margin,
        expansions=tuple(filter(None, expansions)),
        gains=tuple(_gain(derived, *pair) for pair in PAIRS if set(pair) <= networks),
    )


def _expansion(reached: xr.DataArray, margin: float) -> Expansion | None:
    simulated = reached.dropna("nodes").sortby("nodes")
    if simulated.size < 2 or simulated.nodes[0] != reached.nodes.min():
        return None
    fall = judge([float(np.log(simulated[-1] / simulated[0]))], margin, "simulated")
    first, *_, last = simulated.nodes.values.tolist()
    return Expansion(reached.interconnect.item(), first, last, fall)


def _gain(derived: xr.Dataset, network: str, reference: str) -> Gain:
    modelled = testbed(derived)["network"]
    bandwidth, latency = (
        modelled[network][name]["value"] / modelled[reference][name]["value"]
        for name in ("bandwidth", "latency")
    )
    rate = np.expm1(log_ratios(derived, network, reference))
    return Gain(network, reference, bandwidth, latency, rate)


def finding(study: Beyond) -> str:
    """Where the efficiency stays as it is, and what faster networks gain, in plain English (Markdown)."""
    if not study.expansions:
        return "**What more nodes do to the efficiency cannot be said**: no network has two cases."
    names, margin = short_names(study.dataset), percent(study.margin, 0)
    start, sentences = study.expansions[0].from_nodes, []
    flat = [one for one in study.expansions if one.fall.answer == FLAT]
    others = [one for one in study.expansions if one.fall.answer != FLAT]
    for alike, what in (
        (flat, f"stays within {margin}"),
        (others, f"changes by more than {margin}"),
    ):
        if alike:
            sentences.append(f"the efficiency {what} on {_networks(study, alike)}")
    words = [
        f"**On more than {counted(start, 'node')} {'; '.join(sentences)}** (simulated evidence, without scatter)."
    ]
    most = max(study.expansions, key=lambda expansion: expansion.fall.fall)
    if most.fall.fall > 0:
        words.append(f"{names[most.interconnect]} loses most, {percent(most.fall.fall)}.")
    for gain in study.gains:
        rates = 100 * gain.rate.dropna("nodes").values
        if len(rates):
            latency = "" if gain.latency == 1 else f" and {gain.latency:.2g} times its latency"
            words.append(
                f"In HPL {names[gain.network]} gains {between((rates.min(), rates.max()), 1)} % on {names[gain.reference]}, "
                f"with {gain.bandwidth:.2g} times its bandwidth{latency}."
            )
    return " ".join(words)


def _networks(study: Beyond, expansions: list[Expansion]) -> str:
    """Such as "GigE and 10GE (up to 256 nodes)" or "all 6 networks (up to 256 or 144 nodes)"."""
    names = [short_names(study.dataset)[expansion.interconnect] for expansion in expansions]
    everywhere = len(expansions) == study.efficiency.sizes["interconnect"]
    ends = sorted({expansion.to_nodes for expansion in expansions}, reverse=True)
    which = f"all {len(names)} networks" if everywhere else listed(names)
    return f"{which} (up to {listed(list(map(str, ends)), 'or')} nodes)"


def findings(study: Beyond) -> Iterator[Finding]:
    """The fall of each network's efficiency to the most nodes; planned for are those that the design compares."""
    planned = designs.read(study.dataset).pair
    source, names = origin("hpl_beyond", study.dataset), short_names(study.dataset)
    for expansion in study.expansions:
        span = f"from {expansion.from_nodes} to {expansion.to_nodes} nodes"
        statement = f"{names[expansion.interconnect]} loses efficiency {span}"
        is_planned = expansion.interconnect in planned
        yield of_fall(source, statement, expansion.fall, primary=is_planned)


def figures(study: Beyond) -> dict[str, Exhibit]:
    """Efficiency over nodes."""
    orders, names = study.points.N.max("interconnect"), short_names(study.dataset)
    sizes = f" (N = {int(orders.min())} to {int(orders.max())})" if orders.notnull().any() else ""
    reasons = study.points.reason.to_series()
    missing = ", ".join(
        f"{names[case['interconnect']]} on {case['nodes']} nodes ({case['reason']})"
        for case in reasons[reasons != ""].reset_index().to_dict("records")
    )
    marks = f"Each panel has its own scale. On the right are the networks within {100 * BUNCH:g} points of the best."
    return {
        "beyond": Exhibit(
            "beyond",
            over_nodes(study),
            f"HPL's efficiency on larger clusters of the paper's nodes; the matrix grows with them{sizes}",
            Basis("simulated"),
            "Simulated efficiency over nodes, the slower networks on the left and the fast ones on the right",
            marks + (f" Missing: {missing}." if missing else ""),
            rests_on=FIGURES["beyond"],
        )
    }


def over_nodes(study: Beyond) -> Figure:
    """Efficiency [% of Rpeak] over nodes; the networks near the best one on the right, the others on the left."""
    names, best = short_names(study.dataset), study.efficiency.max("interconnect")
    near = (study.efficiency > best - BUNCH).any("nodes")
    groups = {
        "slower networks": study.efficiency[~near],
        "fastest networks, enlarged": study.efficiency[near],
    }
    groups = {title: networks for title, networks in groups.items() if len(networks)}
    with style.styled():
        figure, panels = drawing.new_figures(3.5, len(groups))
        for axes, (title, networks) in zip(panels, groups.items()):
            for cases in networks:
                look = style.look(cases.interconnect.item())
                marks = {"color": look.color, "markersize": 6, "mec": "white", "mew": 0.6}
                label = names[cases.interconnect.item()]
                axes.plot(cases.nodes, 100 * cases, look.marker, **marks, label=label)
            axes.set_title(title)
            drawing.node_axis(axes, study.efficiency.nodes.values)
        panels[0].set_ylabel("efficiency [% of Rpeak]")
        drawing.legend_below(figure, panels, 3)
        return figure
