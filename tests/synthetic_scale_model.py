"""Synthetic campaigns on the scale model and on its simulation, as their own files plan them, from a known truth."""

import numpy as np
from synthetic import of_plan

import experiment
from analysis.models.hpl import operations

TIMERS = {"hpl_rfact_time": 0.05, "hpl_mxswp_time": 0.02, "hpl_update_time": 0.9, "hpl_laswp_time": 0.1, "hpl_ptrsv_time": 0.01}
SHARES = {"gige": 0.76, "10gige": 0.91, "unshaped": 0.93}


def run(campaign, share, testbed=None, blocks=3, noise=0.0, preset="full", failed=(), seed=1, timers=TIMERS, readings=None):
    """A campaign of data/campaigns whose points reach `share(point)` [1] of F, at their dilation.

    `noise` is the log-scale standard deviation of a run. Blocks from the plan's end on are left out, points in
    `failed`, (block, interconnect, nodes), have no reading, and `timers` are parts of HPL's time. `readings(point)` are
    those of another tool than HPL.
    """
    plan = experiment.plan_campaign(campaign, testbed, preset)
    random = np.random.default_rng(seed)
    simulated = plan.testbed["kind"] == "simulated"
    if readings is not None:
        dataset = of_plan(plan, lambda point, block: readings(point))
        return dataset.isel(trial=dataset.block <= blocks)
    flop_s = plan.testbed["rates"]["dgemm_flop_s"]["value"] if simulated else plan.testbed["node"]["flop_s"]

    def of_hpl(point, block):
        if (block, point["interconnect"], point["nodes"]) in failed:
            return {"reason": "planted fault"}
        slower = 1 if simulated else point.get("dilation", plan.testbed["node"]["dilation"]) / plan.testbed["node"]["dilation"]
        rate = share(point) * point["nodes"] * flop_s / slower * np.exp(random.normal(0, noise))
        time = operations(point["N"]) / rate
        return {"hpl_rate": rate / 1e9, "hpl_time": time, "hpl_residual": 0.01} | {
            name: part * time for name, part in timers.items()
        }

    dataset = of_plan(plan, of_hpl)
    kind = "simulated" if simulated else "emulated"
    dataset["evidence"] = dataset.evidence.copy(data=np.full(dataset.sizes["trial"], kind))
    return dataset.isel(trial=dataset.block <= blocks)


def dilated_campaign(shares=None, bias=None, **chance):
    """hpl_invariance: `bias` maps a dilation to what its shares are multiplied by, `shares` a network to its share."""
    shares, bias = SHARES if shares is None else shares, {} if bias is None else bias
    return run("hpl_invariance", lambda at: shares[at["interconnect"]] * bias.get(at["dilation"], 1.0), **chance)


def scaling_campaign(off=None, **chance):
    """hpl_scaling: `off` maps (interconnect, nodes) to what the share is multiplied by."""
    off = {} if off is None else off
    return run("hpl_scaling", lambda at: share_of(at) * off.get((at["interconnect"], at["nodes"]), 1.0), **chance)


def simulated_scaling(**chance):
    """hpl_agreement: one block, exactly the shares that `scaling_campaign` is planted with."""
    return run("hpl_agreement", share_of, blocks=1, **chance)


def share_of(point):
    """The planted share [1] of F: it falls by the network's loss until 8 nodes and is level from there on."""
    lost = (1 - SHARES[point["interconnect"]]) * min(np.log2(point["nodes"]), 3) / 3
    return 1 - lost
