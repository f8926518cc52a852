"""What traffic takes on each network against one without oversubscription, run by run."""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from analysis.derive import at_only_level, over_factors
from analysis.designs import CROSSBAR
from analysis.inference.averages import average
from runners.record import FalloffError

RUNNER = "flows"
FREE, COSTLY, DEPENDS = "costs nothing", "costs", "depends on the run"


@dataclass(frozen=True)
class Judgement:
    """What a network costs a pattern of traffic on `nodes` nodes, in a placement of neighbours.

    `slowdown` [1] is the geometric mean over the `runs`, `least` and `most` their extremes, `mean_flow` the slowdown of the
    average flow, NaN where there are no flows. `kind` is FREE where every run is within the margin m, which is a
    slowdown of at most 1 / (1 - m), COSTLY where none is, otherwise DEPENDS. `bearable` is the part of its time on
    the network without oversubscription that a program may spend in such traffic, and yet be slowed down by no more
    than that.
    """

    interconnect: str
    pattern: str
    placement: str
    nodes: int
    slowdown: float
    least: float
    most: float
    mean_flow: float
    runs: int
    kind: str
    bearable: float


def times(dataset: xr.Dataset) -> xr.Dataset:
    """`makespan` and `mean` [s] of the flows, over (run, interconnect, pattern, placement, nodes), nodes ascending.

    Of the only block; NaN where a trial failed. Raises FalloffError when there is no trial of flows, several blocks,
    or no network without oversubscription.
    """
    found = {"makespan": _by_run(dataset, dataset.flow_makespan), "mean": _by_run(dataset, dataset.flow_mean)}
    if CROSSBAR not in found["makespan"].interconnect:
        raise FalloffError(f"Campaign {dataset.attrs['campaign']} has no network {CROSSBAR!r} to compare with.")
    return at_only_level(xr.Dataset(found, attrs=dataset.attrs), "block").sortby("nodes")


def against_crossbar(times: xr.Dataset) -> xr.Dataset:
    """Slowdowns [1]: each time over that of the same run on the network CROSSBAR, which is left out."""
    others = [name for name in times.interconnect.values if name != CROSSBAR]
    return times.sel(interconnect=others) / times.sel(interconnect=CROSSBAR, drop=True)


def judge(slowdowns: xr.Dataset, margin: float) -> Judgement | None:
    """The judgement on one network, pattern, placement and node count; `makespan` and `mean` are over (run).

    None where no run has a result.
    """
    known = slowdowns.dropna("run", subset=["makespan"])
    if not known.sizes["run"]:
        return None
    makespan = known.makespan.values
    slowdown, least, most = (float(value) for value in (average(makespan, "ratio")[0], makespan.min(), makespan.max()))
    limit = 1 / (1 - margin)
    return Judgement(
        *(slowdowns[name].item() for name in ("interconnect", "pattern", "placement", "nodes")),
        slowdown=slowdown,
        least=least,
        most=most,
        mean_flow=float(average(known["mean"].values, "ratio")[0]),
        runs=len(makespan),
        kind=FREE if most <= limit else COSTLY if least > limit else DEPENDS,
        bearable=bearable(slowdown, margin),
    )


def bearable(slowdown: float, margin: float) -> float:
    """The part f of its time that a program may spend in traffic that is slowed down so much.

    1 - f + f s <= 1 / (1 - m) for a slowdown s and a margin m, when computing and traffic do not overlap.
    """
    beyond = slowdown - 1
    return 1.0 if beyond <= 0 else min(1.0, margin / (1 - margin) / beyond)


def _by_run(dataset: xr.Dataset, values: xr.DataArray) -> xr.DataArray:
    """Values over (trial, run) as an array over (run, block, *factors)."""
    columns = {f"at {run}": values.sel(run=run, drop=True) for run in values.run.values}
    if not columns:
        columns = {"at none": xr.full_like(dataset.wall_time, math.nan)}
    stacked = over_factors(dataset, runner=RUNNER, **columns).to_array("run")
    return stacked.assign_coords(run=np.arange(1, len(columns) + 1))
