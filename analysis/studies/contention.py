"""How much contention would give an efficiency that the contention-free model does not reach: scenarios."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.interpolate import PchipInterpolator

from analysis.derive import at_only_level, points
from analysis.studies.efficiency import PLATEAU, efficiency, testbed
from analysis.studies.sensitivity import NOTHING

TARGETS = (0.60, 0.55, 0.50)  # efficiencies at the most nodes; chosen, since the paper prints none
FEWEST = 2  # nodes of the smallest case, whose links have their full rate in every scenario
SHARED, LINK = "backplane", "bandwidth"


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
    `slopes` maps each target to the efficiency [1] that would have to be lost with each node beyond PLATEAU;
    NaN without a case beyond it.
    """

    dataset: xr.Dataset
    points: xr.Dataset
    interconnect: str
    ideal: xr.DataArray
    bandwidth: float
    sweeps: Mapping[str, Sweep]
    scenarios: tuple[Scenario, ...]
    slopes: Mapping[float, float]

    def scenario(self, mechanism: str, target: float) -> Scenario:
        """The scenario in which this mechanism gives this efficiency."""
        return next(it for it in self.scenarios if (it.mechanism, it.target) == (mechanism, target))


def analyse(dataset: xr.Dataset) -> Contention:
    """Derive sweeps and scenarios.

    Raises FalloffError when there is no HPL trial, or there are several blocks or interconnects.
    """
    derived = points(dataset)
    found = efficiency(at_only_level(derived, "block", "interconnect"))
    interconnect = found.interconnect.item()
    bandwidth = testbed(dataset)["network"][interconnect]["bandwidth"]["value"]
    sweeps = {
        SHARED: sweep(found, SHARED, unlimited=np.inf),
        LINK: sweep(found, LINK, unlimited=bandwidth),
    }
    ideal = found.sel(vary=NOTHING, drop=True)
    return Contention(
        dataset=dataset,
        points=derived,
        interconnect=interconnect,
        ideal=ideal,
        bandwidth=bandwidth,
        sweeps=sweeps,
        scenarios=tuple(_scenario(it, target, bandwidth) for it in sweeps.values() for target in TARGETS),
        slopes={target: _slope(ideal, target) for target in TARGETS},
    )


def _slope(ideal: xr.DataArray, target: float) -> float:
    beyond = ideal.nodes.values[-1] - PLATEAU
    return (ideal.values[-1] - target) / beyond if beyond > 0 else np.nan


def sweep(efficiency: xr.DataArray, mechanism: str, unlimited: float) -> Sweep:
    """The levels `<mechanism>=<B/s>` of dim vary; the one without contention has the capacity `unlimited`."""
    named = {NOTHING: unlimited}
    for level in efficiency.vary.values.tolist():
        name, _, capacity = level.partition("=")
        if name == mechanism:
            named[level] = float(capacity)
    chosen = efficiency.sel(vary=list(named)).rename(vary="capacity")
    found = chosen.assign_coords(capacity=list(named.values())).sortby("capacity")
    return Sweep(mechanism, found.transpose("nodes", "capacity"), _errors(found))


def interpolated(efficiency: xr.DataArray) -> PchipInterpolator:
    """Run time in units of that at Rpeak, 1 / efficiency, over 1 / capacity [s/B].

    `efficiency` is over (capacity). Where the capacity binds, the time is nearly linear in its inverse; the
    interpolation keeps the order of the levels (Fritsch and Butland 1984, as in scipy). It does not
    extrapolate: outside of the levels it is NaN.
    """
    known = efficiency.dropna("capacity").sortby("capacity", ascending=False)
    return PchipInterpolator(1 / known.capacity.values, 1 / known.values, extrapolate=False)


def _errors(efficiency: xr.DataArray) -> xr.DataArray:
    errors = xr.full_like(efficiency, np.nan)
    for nodes in efficiency.nodes.values:
        known = efficiency.sel(nodes=nodes).dropna("capacity")
        for level in known.capacity.values[1:-1]:
            without = interpolated(known.drop_sel(capacity=level))(1 / level).item()
            errors.loc[{"nodes": nodes, "capacity": level}] = 1 / without - known.sel(capacity=level)
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


def _curve(efficiency: xr.DataArray, inverse) -> xr.DataArray:
    """Efficiency over (nodes) where 1 / capacity [s/B] is a function of the nodes."""
    values = [1 / interpolated(efficiency.sel(nodes=n))(inverse(n)).item() for n in efficiency.nodes.values]
    return xr.DataArray(values, {"nodes": efficiency.nodes.values}, ("nodes",))
