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
SIDESTEP = 0.06  # of a doubling, between two networks
LOWEST = 60.0  # % of Rpeak at which the axis begins, or below
FIGURES = {"beyond": ("hpl_beyond",)}


@dataclass(frozen=True)
class Expansion:
    """The fall of a network's efficiency from the fewest nodes to the most that were simulated."""

    from_nodes: int
    to_nodes: int
    fall: Judgement


@dataclass(frozen=True)
class Beyond:
    """A simulated campaign beyond the paper's cluster.

    `efficiency` is HPL's rate over Rpeak, over (interconnect, nodes), NaN where a case is missing. `margin` [1] counts as
    no change. `expansions`, by interconnect, are of the networks with two cases. `gains`, by the pair of PAIRS, are the
    ratios of HPL's rates on both networks, over (nodes). The model has no scatter.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    efficiency: xr.DataArray
    margin: float
    expansions: dict[str, Expansion]
    gains: dict[tuple[str, str], xr.DataArray]


def analyse(hpl_beyond: xr.Dataset) -> Beyond:
    """Derive efficiencies, expansions and gains; raises FalloffError when there is no HPL trial or there are several blocks."""
    derived = at_only_level(points(hpl_beyond), "block")
    margin, networks = designs.read(hpl_beyond).margin, derived.interconnect.values.tolist()
    reached = efficiency(derived).transpose("interconnect", ...)
    expansions = {name: _expansion(reached.sel(interconnect=name), margin) for name in networks}
    return Beyond(
        dataset=hpl_beyond,
        points=derived,
        efficiency=reached,
        margin=margin,
        expansions={name: expansion for name, expansion in expansions.items() if expansion},
        gains={
            pair: np.exp(log_ratios(derived, *pair)) for pair in PAIRS if {*pair} <= {*networks}
        },
    )


def _expansion(reached: xr.DataArray, margin: float) -> Expansion | None:
    simulated = reached.dropna("nodes").sortby("nodes")
    if simulated.size < 2 or simulated.nodes[0] != reached.nodes.min():
        return None
    fall = judge([float(np.log(simulated[-1] / simulated[0]))], margin, "simulated")
    first, *_, last = simulated.nodes.values.tolist()
    return Expansion(first, last, fall)


def finding(study: Beyond) -> str:
    """Where the efficiency stays as it is, and what faster networks gain, in plain English (Markdown)."""
    if not study.expansions:
        return "**What more nodes do to the efficiency cannot be said**: no network has two cases."
    names, margin = short_names(study.dataset), percent(study.margin, 0)
    is_flat = {name: one.fall.answer == FLAT for name, one in study.expansions.items()}
    parts = [
        f"the efficiency {what} on {_networks(study, [name for name in is_flat if is_flat[name] == flat])}"
        for flat, what in (
            (True, f"stays within {margin}"),
            (False, f"changes by more than {margin}"),
        )
        if flat in is_flat.values()
    ]
    start = next(iter(study.expansions.values())).from_nodes
    words = [
        f"**On more than {counted(start, 'node')} {'; '.join(parts)}** (simulated evidence, without scatter)."
    ]
    falls = {name: one.fall.fall for name, one in study.expansions.items()}
    most = max(falls, key=falls.get)
    if falls[most] > 0:
        words.append(f"{names[most]} loses most, {percent(falls[most])}.")
    modelled = testbed(study.dataset)["network"]
    for (network, reference), ratio in study.gains.items():
        rates = (100 * (ratio - 1)).dropna("nodes").values
        bandwidth, latency = (
            modelled[network][name]["value"] / modelled[reference][name]["value"]
            for name in ("bandwidth", "latency")
        )
        if len(rates):
            its_latency = "" if latency == 1 else f" and {latency:.2g} times its latency"
            on_par = ""
            if max(abs(rates)) < 100 * study.margin:
                on_par = (
                    f"**{names[reference]} is on par with {names[network]}**, within {margin}: "
                )
            words.append(
                f"{on_par}HPL's rate is {between((rates.min(), rates.max()), 1)} % higher on {names[network]} than on "
                f"{names[reference]}, with {bandwidth:.2g} times its bandwidth{its_latency}."
            )
    return " ".join(words)


def _networks(study: Beyond, networks: list[str]) -> str:
    """Such as "GigE and 10GE (up to 256 nodes)" or "all 3 networks (up to 256 nodes, 25GE up to 144 nodes)"."""
    names = short_names(study.dataset)
    everywhere = len(networks) == study.efficiency.sizes["interconnect"]
    reached: dict[int, list[str]] = {}
    for name in networks:
        reached.setdefault(study.expansions[name].to_nodes, []).append(names[name])
    most = max(reached)
    ends = [f"up to {counted(most, 'node')}"] + [
        f"{listed(reached[end])} up to {counted(end, 'node')}"
        for end in sorted(reached, reverse=True)
        if end != most
    ]
    which = f"all {len(networks)} networks" if everywhere else listed([names[n] for n in networks])
    return f"{which} ({', '.join(ends)})"


def findings(study: Beyond) -> Iterator[Finding]:
    """The fall of each network's efficiency to the most nodes; planned for are those that the design compares."""
    planned = designs.read(study.dataset).pair
    source, names = origin("hpl_beyond", study.dataset), short_names(study.dataset)
    for network, expansion in study.expansions.items():
        span = f"from {expansion.from_nodes} to {expansion.to_nodes} nodes"
        statement = f"{names[network]} loses efficiency {span}"
        yield of_fall(source, statement, expansion.fall, primary=network in planned)


def figures(study: Beyond) -> dict[str, Exhibit]:
    """Efficiency over nodes."""
    orders, names = study.points.N.max("interconnect"), short_names(study.dataset)
    sizes = f" (N = {int(orders.min())} to {int(orders.max())})" if orders.notnull().any() else ""
    reasons = study.points.reason.to_series()
    missing = ", ".join(
        f"{names[case['interconnect']]} on {case['nodes']} nodes ({case['reason']})"
        for case in reasons[reasons != ""].reset_index().to_dict("records")
    )
    return {
        "beyond": Exhibit(
            "beyond",
            over_nodes(study),
            f"HPL's efficiency on larger clusters of the paper's nodes; the matrix grows with them{sizes}",
            Basis("simulated"),
            "Simulated efficiency over nodes, a series for each network",
            "Networks stand side by side at each node count."
            + (f" Missing: {missing}." if missing else ""),
            rests_on=FIGURES["beyond"],
        )
    }


def over_nodes(study: Beyond) -> Figure:
    """Efficiency [% of Rpeak] over nodes, a series for each network."""
    names = short_names(study.dataset)
    with style.styled():
        figure, axes = drawing.new_figure(3.5)
        middle = (study.efficiency.sizes["interconnect"] - 1) / 2
        for place, cases in enumerate(study.efficiency):
            look = style.look(cases.interconnect.item())
            marks = {"color": look.color, "markersize": 6, "mec": "white", "mew": 0.6}
            label = names[cases.interconnect.item()]
            nodes = cases.nodes * 2 ** (SIDESTEP * (place - middle))
            axes.plot(nodes, 100 * cases, look.marker, **marks, label=label)
        drawing.node_axis(axes, study.efficiency.nodes.values)
        axes.set_ylim(bottom=min(LOWEST, axes.get_ylim()[0]))
        axes.set_ylabel("efficiency [% of Rpeak]")
        drawing.legend_below(figure, axes, 3)
        return figure
