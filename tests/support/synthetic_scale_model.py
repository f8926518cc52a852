"""Synthetic campaigns on the scale model and on its simulation, as their own files plan them, from
a known truth.
"""

import numpy as np
from synthetic import of_plan

from analysis import planning
from runners.tools.hpl import operations

SHARES = {"gige": 0.76, "10gige": 0.91, "unshaped": 0.93, "ideal": 0.95}


def run(campaign, share, blocks=3, noise=0.0, preset="full", failed=(), seed=1):
    """A campaign of data/campaigns whose points reach `share(point)` [1] of F, at their dilation.

    `noise` is the log-scale standard deviation of a run. Blocks from the plan's end on are left
    out, points in `failed`, (block, interconnect, nodes), have no reading.
    """
    plan, random = planning.plan_campaign(campaign, preset=preset), np.random.default_rng(seed)
    kind, node = plan.testbed["kind"], plan.testbed.get("node")

    def of_hpl(point, block):
        if (block, point["interconnect"], point["nodes"]) in failed:
            return {"reason": "planted fault"}
        flop_s = node["flop_s"] if node else plan.testbed["rates"]["dgemm_flop_s"]["value"]
        slower = point["dilation"] / node["dilation"] if "dilation" in point else 1
        rate = share(point) * point["nodes"] * flop_s / slower * np.exp(random.normal(0, noise))
        time = operations(point["N"]) / rate
        return {"hpl_rate": rate / 1e9, "hpl_time": time, "hpl_residual": 0.01}

    dataset = of_plan(plan, of_hpl)
    dataset["evidence"] = dataset.evidence.copy(data=np.full(dataset.sizes["trial"], kind))
    return dataset.isel(trial=dataset.block <= blocks)


def dilated_campaign(bias=None, **chance):
    """scale_model_dilation: `bias` maps a dilation to what its shares are multiplied by."""
    bias = {} if bias is None else bias

    def share(point):
        return SHARES[point["interconnect"]] * bias.get(point["dilation"], 1.0)

    return run("scale_model_dilation", share, **chance)


def scaling_campaign(off=None, **chance):
    """hpl_scaling: `off` maps (interconnect, nodes) to what the share is multiplied by."""
    off = {} if off is None else off

    def share(point):
        return share_of(point) * off.get((point["interconnect"], point["nodes"]), 1.0)

    return run("hpl_scaling", share, **chance)


def simulated_scaling():
    """hpl_agreement: one block, exactly the shares that `scaling_campaign` is planted with."""
    return run("hpl_agreement", share_of, blocks=1)


def share_of(point):
    """The planted share [1] of F: it falls by the network's loss until 8 nodes and is level from
    there on.
    """
    lost = (1 - SHARES[point["interconnect"]]) * min(np.log2(point["nodes"]), 3) / 3
    return 1 - lost
