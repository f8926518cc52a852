"""Synthetic campaigns of the further HPL experiments, from a known truth; `chance` is for `from_design`."""

import numpy as np
from synthetic import NODE_RATE, TAKEN, from_design, rate_without_noise

from analysis.models.hpl import hpl

COSTS = {
    "gige": {"alpha": 1e8, "beta": 200.0, "gamma": 1.15},
    "10gige": {"alpha": 1e8, "beta": 40.0, "gamma": 1.15},
}  # in the size campaign: flop a message, flop an element, and without unit


def size_campaign(blocks=10, costs=None, N=(896, 1280, 1792, 2560, 3584, 5056, 7168), **chance):
    """HPL over N on 4 nodes; `costs` maps an interconnect to alpha, beta and gamma in DGEMM's flop."""
    costs = COSTS if costs is None else costs
    design = {
        "compared": "interconnect",
        "margin": 0.05,
        "primary": ["gige", "10gige"],
        "control": "10gige",
        "drift_limit": 0.03,
        "factors": {"interconnect": ["gige", "10gige"], "nodes": [4], "N": list(N)},
    }

    def rate(point):
        settings = np.array([[point["N"]], [64], [1], [4]])
        return NODE_RATE * hpl(settings, **costs[point["interconnect"]]).item()

    return from_design("hpl_size", design, rate, blocks, surveyed=False, **chance)


def noise_campaign(blocks=10, amplification=None, nodes=(1, 2, 4, 8), **chance):
    """HPL over nodes beside a daemon that takes 0.9 of the share it is asked to take.

    `amplification` maps a node count to the planted log-loss of the rate over that of a node's time.
    """
    amplification = {1: 1.0, 2: 1.5, 4: 2.5, 8: 4.5} if amplification is None else amplification
    design = {
        "compared": "noise",
        "margin": 0.05,
        "primary": [0.05, 0.0],
        "control": 0.0,
        "baseline_nodes": 1,
        "drift_limit": 0.03,
        "factors": {"interconnect": ["10gige"], "nodes": list(nodes), "noise": [0.0, 0.01, 0.02, 0.05]},
    }

    def rate(point):
        left = (1 - TAKEN * point["noise"]) ** amplification[point["nodes"]]
        return left * rate_without_noise("10gige", point["nodes"], {}, max(nodes))

    return from_design("hpl_noise", design, rate, blocks, surveyed=False, **chance)


def blas_campaign(blocks=8, factor=5.0, N=(768, 1088, 1536), **chance):
    """HPL on one node; OpenBLAS is `factor` times as fast as the reference BLAS at every N."""
    design = {
        "compared": "blas",
        "margin": 0.05,
        "primary": ["reference", "openblas"],
        "control": "openblas",
        "drift_limit": 0.03,
        "factors": {
            "interconnect": ["unshaped"],
            "nodes": [1],
            "blas": ["openblas", "reference"],
            "N": list(N),
        },
    }

    def rate(point):
        return 0.9 * NODE_RATE / (factor if point["blas"] == "reference" else 1)

    return from_design("hpl_blas", design, rate, blocks, surveyed=False, **chance)
