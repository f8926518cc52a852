"""Synthetic campaigns of flows and of HPL over network designs: the shipped plans with made-up
readings.
"""

from dataclasses import replace

import numpy as np
from synthetic import of_plan

from analysis import planning
from analysis.descriptions.switch_designs import CROSSBAR
from runners.two_level import from_table

NODE_RATE = 35.0  # Gflop/s of HPL on a node
COMMUNICATION = 0.1  # of HPL's time on the crossbar


def slowdown(network, pattern, placement):
    """What is planted: an oversubscribed edge slows down all but many-to-one, and neighbours only
    when shuffled.
    """
    in_order = (pattern, placement) == ("nearest_neighbour", "in_order")
    if "tree" not in network or pattern == "many_to_one" or in_order:
        return 1.0
    return from_table(network["tree"]).edge_oversubscription


def flow_campaign(noise=0.0, seed=1, preset="full", failed=(), slowdown=slowdown):
    """Flows that take a second each on the crossbar and `slowdown(network, pattern, placement)`
    elsewhere.

    `noise`, on the log scale, is of the runs on other networks than the crossbar, in the random
    permutation. `failed` holds (interconnect, pattern, placement, nodes) of trials without a
    reading.
    """
    plan = planning.plan_campaign("oversubscription", preset=preset)
    chance = np.random.default_rng(seed)

    def readings(point, block):
        name, pattern, placement, nodes = (
            point[key] for key in ("interconnect", "pattern", "placement", "nodes")
        )
        if (name, pattern, placement, nodes) in failed:
            return {}
        planted = slowdown(plan.testbed["network"][name], pattern, placement)
        scatter = noise if pattern == "permutation" and name != CROSSBAR else 0.0
        makespan = planted * np.exp(chance.normal(0, scatter, point["runs"]))
        return {"flow_makespan": makespan, "flow_mean": (1 + makespan) / 2}

    return _simulated(of_plan(plan, readings))


def hpl_campaign(preset="full", communication=COMMUNICATION):
    """HPL of which a part `communication` is slowed down as a permutation is, in order half as
    much.
    """
    plan = planning.plan_campaign("oversubscription_hpl", preset=preset)

    def readings(point, block):
        network, placement = plan.testbed["network"][point["interconnect"]], point["placement"]
        slower = slowdown(network, "permutation", placement) - 1
        part = communication * (1 if placement == "shuffled" else 0.5)
        return {"hpl_rate": point["nodes"] * NODE_RATE / (1 + part * slower)}

    alone = tuple(tuple(trial for trial in block if trial.runner == "hpl") for block in plan.blocks)
    return _simulated(of_plan(replace(plan, blocks=alone), readings))


def _simulated(dataset):
    kinds = np.full(dataset.sizes["trial"], "simulated")
    return dataset.assign_coords(evidence=dataset.evidence.copy(data=kinds))
