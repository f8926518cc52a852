"""How much contention would make Gigabit Ethernet fall lower than the contention-free model does: scenarios.

Each is a way to come to a lower efficiency, not a claim that it was so: the paper prints no value of that network.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.interpolate import PchipInterpolator

from analysis import drawing, style
from analysis.derive import at_only_level, points
from analysis.exhibit import Basis, Exhibit, Table
from analysis.experiments.sensitivity import NOTHING
from analysis.attributes import testbed
from analysis.efficiency import efficiency
from analysis.attributes import short_names
from analysis.wording import UNKNOWN, counted, fixed, listed, number, percent

TARGETS = (0.60, 0.55, 0.50)  # efficiencies at the most nodes; chosen, since the paper prints none
FEWEST = 2  # nodes of the smallest case, whose links have their full rate in every scenario
SHARED, LINK = "backplane", "bandwidth"
PANELS = {SHARED: "shared backplane", LINK: "slower links with each node"}
SIDESTEP = 0.1  # of a doubling, between two scenarios
FIGURES = {"contention": ("hpl_contention",)}


@dataclass(frozen=True)
class Sweep:
    """One mechanism's simulated efficiency [1] over (nodes, capacity), capacity [B/s] ascending.

    The capacity is that of a backplane that all links share (infinite: there is none), or of every link.
    `errors`, over the same dims, are those of interpolating an inner level from the others; NaN at the ends.
    """

    mechanism: str
    efficiency: xr.DataArray
    errors: xr.DataArray


@dataclass(frozen=True)
class Scenario:
    """One mechanism that gives the efficiency `target` at the most nodes.

    `capacity` [B/s] is what it needs there; with links, `loss` [1] is the part of its rate that every link
    loses with each node beyond FEWEST. `curve` is the efficiency [1] over (nodes). All are None where the
    sweep does not reach the target, and `reason` says so.
    """

    mechanism: str
    target: float
    capacity: float | None = None
    loss: float | None = None
    curve: xr.DataArray | None = None
    reason: str = ""


@dataclass(frozen=True)
class Contention:
    """The campaign's dataset and all that follows from it, on its one `interconnect`.

    `ideal` is the efficiency [1] over (nodes) without contention, `bandwidth` [B/s] a link's rate there.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    interconnect: str
    ideal: xr.DataArray
    bandwidth: float
    sweeps: Mapping[str, Sweep]
    scenarios: tuple[Scenario, ...]

    @property
    def most_nodes(self) -> int:
        """The node count at which the targets are set."""
        return int(self.ideal.nodes[-1])

    def scenario(self, mechanism: str, target: float) -> Scenario:
        """The scenario in which this mechanism gives this efficiency."""
        return next(it for it in self.scenarios if (it.mechanism, it.target) == (mechanism, target))

    def of_ports(self, target: float) -> float | None:
        """The backplane that gives this efficiency, as a share [1] of all links' rates together; None where none does."""
        capacity = self.scenario(SHARED, target).capacity
        return None if capacity is None else capacity / (self.bandwidth * self.most_nodes)


def analyse(dataset: xr.Dataset) -> Contention:
    """Derive sweeps and scenarios.

    Raises FalloffError when there is no HPL trial, or there are several blocks or interconnects.
    """
    derived = points(dataset)
    reached = efficiency(at_only_level(derived, "block", "interconnect"))
    interconnect = reached.interconnect.item()
    bandwidth = testbed(dataset)["network"][interconnect]["bandwidth"]["value"]
    sweeps = {
        SHARED: sweep(reached, SHARED, unlimited=np.inf),
        LINK: sweep(reached, LINK, unlimited=bandwidth),
    }
    return Contention(
        dataset=dataset,
        points=derived,
        interconnect=interconnect,
        ideal=reached.sel(vary=NOTHING, drop=True),
        bandwidth=bandwidth,
        sweeps=sweeps,
        scenarios=tuple(
            _scenario(swept, target, bandwidth) for swept in sweeps.values() for target in TARGETS
        ),
    )


def sweep(efficiency: xr.DataArray, mechanism: str, unlimited: float) -> Sweep:
    """The levels `<mechanism>=<B/s>` of dim vary; the one without contention has the capacity `unlimited`."""
    named = {NOTHING: unlimited}
    for level in efficiency.vary.values.tolist():
        name, _, capacity = level.partition("=")
        if name == mechanism:
            named[level] = float(capacity)
    chosen = efficiency.sel(vary=list(named)).rename(vary="capacity")
    levels = chosen.assign_coords(capacity=list(named.values())).sortby("capacity")
    return Sweep(mechanism, levels.transpose("nodes", "capacity"), _errors(levels))


def interpolated(efficiency: xr.DataArray) -> PchipInterpolator:
    """Run time in units of that at Rpeak, 1 / efficiency, over 1 / capacity [s/B].

    `efficiency` is over (capacity). Where the capacity binds, the time is nearly linear in its inverse; the
    interpolation keeps the order of the levels (Fritsch and Butland 1984, as in scipy). It does not
    extrapolate: outside of the levels it is NaN.
    """
    levels = efficiency.dropna("capacity").sortby("capacity", ascending=False)
    return PchipInterpolator(1 / levels.capacity.values, 1 / levels.values, extrapolate=False)


def _errors(efficiency: xr.DataArray) -> xr.DataArray:
    errors = xr.full_like(efficiency, np.nan)
    for nodes in efficiency.nodes.values:
        levels = efficiency.sel(nodes=nodes).dropna("capacity")
        for level in levels.capacity.values[1:-1]:
            without = interpolated(levels.drop_sel(capacity=level))(1 / level).item()
            errors.loc[{"nodes": nodes, "capacity": level}] = 1 / without - levels.sel(
                capacity=level
            )
    return errors


def _scenario(sweep: Sweep, target: float, bandwidth: float) -> Scenario:
    most = sweep.efficiency.isel(nodes=-1).dropna("capacity")
    if most.sizes["capacity"] < 2 or not most.min() <= target <= most.max():
        return Scenario(sweep.mechanism, target, reason=_outside(most))
    inverse = float(interpolated(most).solve(1 / target).min())
    if sweep.mechanism == SHARED:
        curve = _curve(sweep.efficiency, lambda nodes: inverse)
        return Scenario(SHARED, target, 1 / inverse, curve=curve)
    kept = (1 / (inverse * bandwidth)) ** (1 / (most.nodes.item() - FEWEST))
    curve = _curve(sweep.efficiency, lambda nodes: kept ** (FEWEST - nodes) / bandwidth)
    return Scenario(LINK, target, 1 / inverse, loss=1 - kept, curve=curve)


def _outside(levels: xr.DataArray) -> str:
    if levels.sizes["capacity"] < 2:
        return "fewer than two levels were simulated"
    ends = f"{100 * levels.min().item():.1f} to {100 * levels.max().item():.1f} %"
    return f"outside of the simulated levels, which give {ends}"


def _curve(efficiency: xr.DataArray, inverse: Callable[[int], float]) -> xr.DataArray:
    """Efficiency over (nodes) where 1 / capacity [s/B] is a function of the nodes."""
    nodes = efficiency.nodes.values
    values = [1 / interpolated(efficiency.sel(nodes=n))(inverse(n)).item() for n in nodes]
    return xr.DataArray(values, {"nodes": nodes}, ("nodes",))


def finding(study: Contention) -> str:
    """What backplane would give each target, in plain English (Markdown); empty where none is reached."""
    reached = [target for target in TARGETS if study.of_ports(target) is not None]
    if not reached:
        return ""
    network = short_names(study.dataset)[study.interconnect]
    targets = listed([fixed(100 * target, 0) for target in reached], "or")
    shares = listed([fixed(100 * study.of_ports(target), 0) for target in reached], "or")
    return (
        f"{network} would end at {targets} % on {counted(study.most_nodes, 'node')} if the switch carried only {shares} % of its "
        f"ports' rate; the paper prints no value of {network}."
    )


def over_nodes(study: Contention) -> Figure:
    """Efficiency [% of Rpeak] over nodes without contention, and as each mechanism would give each target."""
    with style.styled():
        figure, panels = drawing.new_figures(3.6, 2)
        panels[1].sharey(panels[0])
        for axes, (mechanism, title) in zip(panels, PANELS.items()):
            _marks(axes, study.interconnect, study.ideal, "no contention (simulated)", 0)
            for rank, target in enumerate(TARGETS, 1):
                curve = study.scenario(mechanism, target).curve
                if curve is not None:
                    label = f"scenario: {100 * target:g} % on {study.most_nodes} nodes"
                    _marks(axes, f"scenario {rank}", curve, label, rank)
            drawing.node_axis(axes, study.ideal.nodes.values)
            axes.set_title(title)
        panels[0].set_ylabel("efficiency [% of Rpeak]")
        panels[1].tick_params(labelleft=False)
        drawing.legend_below(figure, panels, 2)
        return figure


def _marks(axes: Axes, series: str, efficiency: xr.DataArray, label: str, rank: int) -> None:
    """Efficiency [1] over (nodes) as marks [%], beside those of other ranks."""
    places = efficiency.nodes * 2 ** (SIDESTEP * (rank - len(TARGETS) / 2))
    look = style.look(series)
    axes.plot(places, 100 * efficiency, look.marker, color=look.color, label=label)


def figures(study: Contention) -> dict[str, Exhibit]:
    """The scenarios over nodes."""
    network = short_names(study.dataset)[study.interconnect]
    return {
        "contention": Exhibit(
            "contention",
            over_nodes(study),
            f"HPL's efficiency on {network} without contention, and in scenarios that end at chosen efficiencies",
            Basis("simulated"),
            f"Scenarios of contention on {network}: a shared backplane on the left, slower links on the right",
            "Left the switch's ports share a backplane; right every link loses a part of its rate with each node. "
            "No published value exists. Marks of one node count stand beside each other.",
            rests_on=FIGURES["contention"],
        )
    }


def scenarios_table(study: Contention) -> Table:
    """What each mechanism needs for each target."""
    columns = (
        "Efficiency",
        "Backplane [MB/s]",
        "Of all ports' rate",
        "A link's rate [MB/s]",
        "Lost with each node",
    )
    network = short_names(study.dataset)[study.interconnect]
    caption = (
        f"Scenarios: what would give {network} these efficiencies on {counted(study.most_nodes, 'node')}, as a shared backplane "
        f"or as links of {number(study.bandwidth / 1e6)} MB/s that lose a part of their rate with each node beyond {FEWEST}. {_limits(study)}"
    )
    rows = [_row(study, target) for target in TARGETS]
    return Table("contention", columns, "rrrrr", rows, caption.strip(), Basis("simulated"))


def _row(study: Contention, target: float) -> tuple[str, ...]:
    shared, link = (study.scenario(mechanism, target) for mechanism in (SHARED, LINK))
    return (
        percent(target, 0),
        _megabytes(shared.capacity),
        percent(study.of_ports(target), 0),
        _megabytes(link.capacity),
        percent(link.loss, 2),
    )


def _megabytes(capacity: float | None) -> str:
    return UNKNOWN if capacity is None else number(capacity / 1e6)


def _limits(study: Contention) -> str:
    """How far interpolation may be off, and how far the two mechanisms are apart."""
    errors = [float(abs(swept.errors).max()) for swept in study.sweeps.values()]
    limits = []
    if any(scenario.capacity is None for scenario in study.scenarios):
        limits.append("A dash: outside of what was simulated; nothing is extrapolated.")
    if np.isfinite(errors).any():
        limits.append(
            f"Interpolation between the simulated levels is off by at most {fixed(100 * np.nanmax(errors), 1)} percentage points."
        )
    pairs = [[study.scenario(one, target).curve for one in PANELS] for target in TARGETS]
    apart = [
        float(abs(one - other).max())
        for one, other in pairs
        if one is not None and other is not None
    ]
    if np.isfinite(apart).any():
        limits.append(
            f"The two mechanisms differ by at most {fixed(100 * np.nanmax(apart), 1)} points."
        )
    return " ".join(limits)
