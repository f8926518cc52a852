"""Synthetic campaigns over paths from a known truth: the shipped campaigns' own plans with made-up
readings.
"""

import numpy as np
import xarray as xr
from synthetic import of_plan

from analysis import planning
from analysis.dataset.capacity import limits, way
from analysis.dataset.wire import wire_limit
from runners.tools import fanout


def long_path_campaign(
    blocks=10,
    window_share=1.0,
    noise=0.02,
    block_effect=0.01,
    seed=1,
    preset="full",
    slow=None,
    campaign="long_path",
):
    """Goodput = min(wire limit, window_share x window / round trip), with noise on the log scale.

    `slow` is (probability, factor) of a slow state; it concerns whole trials. `campaign` may be
    long_path_repeats too.
    """
    plan = planning.plan_campaign(campaign, "paths", preset, blocks)
    random = np.random.default_rng(seed)
    effects = np.exp(random.normal(0, block_effect, blocks + 1))

    def readings(point, block):
        path = plan.interconnects[point["path"]]
        start, end = (1, 2) if point["direction"] == "forward" else (2, 1)
        travelled = way(path, start, end)
        in_flight = 8 * window_share * point["window_bytes"] / travelled.round_trip
        value = min(wire_limit(travelled.rate, path["mtu"]), in_flight) * effects[block]
        value *= np.exp(random.normal(0, noise))
        if slow and random.random() < slow[0]:
            value *= slow[1]
        return {"goodput": value, "rtt_mean": travelled.round_trip}

    return of_plan(plan, readings)


def fan_out_campaign(blocks=8, capacities=None, noise=0.01, seed=1, preset="full"):
    """Aggregate = the least of what the links allow and of `capacities`, extra ones by name.

    `cpu` [bit/s] is of the shared node; `stream` of each stream of a flow. Flows share evenly;
    `noise` is of a trial, and of each flow in it, on the log scale.
    """
    plan = planning.plan_campaign("fan_out", "paths", preset, blocks)
    random, capacities = np.random.default_rng(seed), capacities or {}

    def readings(point, block):
        far = fanout.nodes(point)
        pairs = [(1, node) if point["direction"] == "forward" else (node, 1) for node in far]
        allowed = limits(plan.interconnects[point["path"]], pairs)
        least = min(
            allowed.own,
            allowed.shared,
            capacities.get("cpu", np.inf),
            capacities.get("stream", np.inf) * point["streams"] * len(far),
        )
        rates = (
            least / len(far) * np.exp(random.normal(0, noise) + random.normal(0, noise, len(far)))
        )
        flows = np.full(8, np.nan)
        flows[np.array(far) - 1] = rates
        return {
            "flow_goodput": flows,
            "aggregate_goodput": rates.sum(),
            "fairness": rates.sum() ** 2 / len(far) / (rates**2).sum(),
            "cpu_time": np.full(8, 1.5),
            "wall_time": 3.0,
        }

    return of_plan(plan, readings)


def without(dataset, **point):
    """The dataset with the readings of the trials at this point gone, as after a failure."""
    gone = xr.ones_like(dataset.block, dtype=bool)
    for name, level in point.items():
        gone &= dataset[name] == level
    numbers = [name for name in dataset.data_vars if dataset[name].dtype.kind == "f"]
    lost = dataset.assign({name: dataset[name].where(~gone) for name in numbers})
    return lost.assign(
        status=xr.where(gone, "failed", dataset.status),
        reason=xr.where(gone, "planted fault", dataset.reason),
    )
