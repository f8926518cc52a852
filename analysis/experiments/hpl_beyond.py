"""What the model of the paper's cluster foretells of more nodes and of other networks, and what simulating that takes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis import drawing, style
from analysis.contrasts import log_ratios
from analysis.derive import at_only_level, over_factors, points
from analysis.exhibit import Basis, Exhibit, Table
from analysis.findings import Finding, known, of_fall, origin
from analysis.statistics import design as designs
from analysis.statistics.judgement import judge
from analysis.attributes import testbed
from analysis.efficiency import efficiency
from analysis.attributes import short_names
from analysis.wording import UNKNOWN, between, counted, fixed, listed, percent

# What is asked of the networks: which gains over which.
PAIRS = (("ddr_infiniband", "10gige"), ("gige_bonded", "gige"))
BUNCH = 0.05  # networks that come so close to the best one have a panel of their own
FIGURES = {"beyond": ("hpl_beyond",)}


@dataclass(frozen=True)
class Expansion:
    """Whether a network's efficiency on `from_nodes` applies on `to_nodes`, the most that were simulated.

    `change` is relative; `applies` where it is inside the margin m, from -m to 1 / (1 - m) - 1. Both are
    None, and `to_nodes` too, where there is no larger case or none at the start.
    """

    interconnect: str
    from_nodes: int
    to_nodes: int | None
    change: float | None
    applies: bool | None


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
    no change. `effort`, over (interconnect, nodes), is what simulating each case took: `cpu_time` [s], `memory` [B] and the
    `messages` of all its processes. There is one value a case: the model has no scatter.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    efficiency: xr.DataArray
    margin: float
    expansions: tuple[Expansion, ...]
    gains: tuple[Gain, ...]
    effort: xr.Dataset

    @property
    def nodes(self) -> list[int]:
        """The node counts, ascending."""
        return self.efficiency.nodes.values.tolist()


def analyse(hpl_beyond: xr.Dataset) -> Beyond:
    """Derive efficiencies, expansions and gains; raises FalloffError when there is no HPL trial or there are several blocks."""
    derived = at_only_level(points(hpl_beyond), "block")
    margin = designs.read(hpl_beyond).margin
    reached = efficiency(derived)
    networks = set(derived.interconnect.values)
    return Beyond(
        dataset=hpl_beyond,
        points=derived,
        efficiency=reached,
        margin=margin,
        expansions=tuple(
            _expansion(of_network, margin) for of_network in reached.transpose("interconnect", ...)
        ),
        gains=tuple(_gain(derived, *pair) for pair in PAIRS if set(pair) <= networks),
        effort=_effort(hpl_beyond),
    )


def _expansion(reached: xr.DataArray, margin: float) -> Expansion:
    start, simulated = int(reached.nodes.min()), reached.dropna("nodes")
    to_nodes = int(simulated.nodes.max()) if simulated.size else start
    if start not in simulated.nodes or to_nodes == start:
        return Expansion(reached.interconnect.item(), start, None, None, None)
    ratio = float(reached.sel(nodes=to_nodes) / reached.sel(nodes=start))
    applies = abs(math.log(ratio)) <= -math.log1p(-margin)
    return Expansion(reached.interconnect.item(), start, to_nodes, ratio - 1, applies)


def _gain(derived: xr.Dataset, network: str, reference: str) -> Gain:
    modelled = testbed(derived)["network"]
    bandwidth, latency = (
        modelled[network][name]["value"] / modelled[reference][name]["value"]
        for name in ("bandwidth", "latency")
    )
    return Gain(
        network, reference, bandwidth, latency, np.expm1(log_ratios(derived, network, reference))
    )


def _effort(dataset: xr.Dataset) -> xr.Dataset:
    """What the simulations that ran took; NaN where that was not recorded."""
    ran = (dataset.status == "ok") & (dataset.simulator_cpu_time > 0)
    columns = {
        "cpu_time": dataset.simulator_cpu_time,
        "memory": dataset.simulator_memory,
        "messages": dataset.payload_messages.sum("size", min_count=1),
    }
    laid_out = over_factors(
        dataset, **{name: values.where(ran) for name, values in columns.items()}
    )
    return laid_out.isel(block=0, drop=True)


def finding(study: Beyond) -> str:
    """Where the efficiency stays as it is, and what faster networks gain, in plain English (Markdown)."""
    told = [expansion for expansion in study.expansions if expansion.applies is not None]
    if not told:
        return "**What more nodes do to the efficiency cannot be said**: no network has two cases."
    holds = [expansion for expansion in told if expansion.applies]
    fails = [expansion for expansion in told if not expansion.applies]
    margin, sentences = percent(study.margin, 0), []
    if holds:
        sentences.append(f"the efficiency stays within {margin} on {_networks(study, holds)}")
    if fails:
        sentences.append(f"it changes by more than {margin} on {_networks(study, fails)}")
    head = f"**On more than {counted(study.nodes[0], 'node')} {'; '.join(sentences)}** (simulated evidence, without scatter)."
    most = min(told, key=lambda expansion: expansion.change)
    name = short_names(study.dataset)[most.interconnect]
    loss = f"{name} loses most, {percent(-most.change)}." if most.change < 0 else ""
    return " ".join(filter(None, [head, loss, *_gains_in_words(study)]))


def _networks(study: Beyond, expansions: list[Expansion]) -> str:
    """Such as "GigE and 10GE (up to 256 nodes), 25GE (up to 144 nodes)", or "all 6 networks (up to 256 or 144 nodes)"."""
    ends = sorted({expansion.to_nodes for expansion in expansions}, reverse=True)
    if len(expansions) == len(study.expansions):
        return f"all {len(expansions)} networks (up to {listed([str(end) for end in ends], 'or')} nodes)"
    names, groups = short_names(study.dataset), []
    for end in ends:
        group = [
            names[expansion.interconnect] for expansion in expansions if expansion.to_nodes == end
        ]
        groups.append(f"{listed(group)} (up to {counted(end, 'node')})")
    return ", ".join(groups)


def _gains_in_words(study: Beyond) -> Iterator[str]:
    """What each pair's faster network gains, with the ratio of the numbers that the model has of both."""
    names = short_names(study.dataset)
    for gain in study.gains:
        simulated = 100 * gain.rate.dropna("nodes").values
        if not len(simulated):
            continue
        latency = "" if gain.latency == 1 else f" and {gain.latency:.2g} times the latency"
        yield (
            f"{names[gain.network]}, with {gain.bandwidth:.2g} times the bandwidth{latency} of {names[gain.reference]}, "
            f"gains {_span(simulated.min(), simulated.max(), 1)} % in HPL."
        )


def findings(study: Beyond) -> Iterator[Finding]:
    """The fall of each network's efficiency to the most nodes that were simulated."""
    source, names = origin("hpl_beyond", study.dataset), short_names(study.dataset)
    for expansion in study.expansions:
        if expansion.change is not None:
            fall = judge([math.log1p(expansion.change)], study.margin, source["evidence"])
            span = f"from {expansion.from_nodes} to {expansion.to_nodes} nodes"
            yield of_fall(
                source, f"the efficiency on {names[expansion.interconnect]} falls {span}", fall
            )


def over_nodes(study: Beyond) -> Figure:
    """Efficiency [% of Rpeak] over nodes; the networks near the best one on the right, the others on the left."""
    names, best = short_names(study.dataset), study.efficiency.max("interconnect")
    groups = {"slower networks": [], "fastest networks, enlarged": []}
    others, bunch = groups.values()
    for network in study.efficiency.interconnect.values.tolist():
        near = (study.efficiency.sel(interconnect=network) > best - BUNCH).any()
        (bunch if near else others).append(network)
    groups = {title: networks for title, networks in groups.items() if networks}
    with style.styled():
        figure, panels = drawing.new_figures(3.5, max(len(groups), 1))
        for axes, (title, networks) in zip(panels, groups.items()):
            for network in networks:
                _marks(axes, network, study.efficiency.sel(interconnect=network), names[network])
            axes.set_title(title)
        for axes in panels:
            drawing.node_axis(axes, study.nodes)
        panels[0].set_ylabel("efficiency [% of Rpeak]")
        drawing.legend_below(figure, panels, 3)
        return figure


def _marks(axes: Axes, network: str, efficiency: xr.DataArray, label: str) -> None:
    look = style.look(network)
    appearance = {"color": look.color, "markersize": 6, "mec": "white", "mew": 0.6}
    axes.plot(efficiency.nodes, 100 * efficiency, look.marker, **appearance, label=label)


def figures(study: Beyond) -> dict[str, Exhibit]:
    """Efficiency over nodes."""
    return {
        "beyond": Exhibit(
            "beyond",
            over_nodes(study),
            "HPL's efficiency on larger clusters of the paper's nodes; the matrix grows with them",
            Basis("simulated"),
            "Simulated efficiency over nodes, the slower networks on the left and the fast ones on the right",
            f"The panels have scales of their own; on the right are the networks within {100 * BUNCH:g} points of the best.",
            rests_on=FIGURES["beyond"],
        )
    }


def efficiency_table(study: Beyond) -> Table:
    """Efficiency by network and nodes, and its change from the fewest to the most nodes."""
    names, orders = short_names(study.dataset), study.points.N.max("interconnect")
    rows = []
    for expansion in study.expansions:
        cases = 100 * study.efficiency.sel(interconnect=expansion.interconnect)
        cells = [fixed(known(case), 1) for case in cases]
        rows.append((names[expansion.interconnect], *cells, percent(expansion.change)))
    columns = ("Network", *(f"{n} nodes [%]" for n in study.nodes), "Change")
    sizes = f" N = {int(orders.min())} to {int(orders.max())}." if orders.notnull().any() else ""
    caption = (
        f"HPL's efficiency, in percent of the theoretical peak, and its change from {study.nodes[0]} nodes to the most that were "
        f"simulated.{sizes}{_missing(study, names)}"
    )
    return Table(
        "beyond", columns, "l" + "r" * (len(columns) - 1), rows, caption, Basis("simulated")
    )


def _missing(study: Beyond, names: dict[str, str]) -> str:
    """The cases that have no result, with the reason."""
    reasons = study.points.reason.to_series()
    cases = reasons[reasons != ""].reset_index().to_dict("records")
    places = [
        f"{names[case['interconnect']]} on {case['nodes']} nodes ({case['reason']})"
        for case in cases
    ]
    return f" Missing: {', '.join(places)}." if places else ""


def effort_table(study: Beyond) -> Table:
    """What simulating a case takes, by nodes."""
    columns = (
        "Nodes",
        "Grid",
        "N",
        "Networks",
        "CPU time [s]",
        "Memory [MB]",
        "Messages [million]",
    )
    settings, rows = study.points[["N", "P", "Q"]].max("interconnect"), []
    for n in study.nodes:
        at, effort = settings.sel(nodes=n), study.effort.sel(nodes=n)
        rows.append(
            (
                str(n),
                UNKNOWN if np.isnan(at.P) else f"{int(at.P)} × {int(at.Q)}",
                fixed(known(at.N), 0),
                str(int(effort.cpu_time.notnull().sum())),
                _of_networks(effort.cpu_time, 1),
                _of_networks(effort.memory, 1e6),
                _of_networks(effort.messages, 1e6),
            )
        )
    caption = (
        "What the simulation of one case took, from the least to the most of the networks, each measured once. HPL's own code runs for "
        "every process; the time goes into its messages."
    )
    return Table("beyond-effort", columns, "rlrrlll", rows, caption)


def _of_networks(values: xr.DataArray, unit: float) -> str:
    present = values.dropna("interconnect").values / unit
    return _span(present.min(), present.max(), 0) if len(present) else UNKNOWN


def _span(low: float, high: float, decimals: int) -> str:
    """Two ends, or one number where they are the same in so many decimals."""
    ends = fixed(low, decimals), fixed(high, decimals)
    return ends[0] if ends[0] == ends[1] else between((low, high), decimals)
