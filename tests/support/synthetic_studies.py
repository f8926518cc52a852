"""Synthetic campaigns of the further HPL experiments, from a known truth; `chance` is for
`from_design`.
"""

import numpy as np
from synthetic import DAEMONS, NODE_RATE, TAKEN, from_design, rate_without_noise

from analysis.laws.models.hpl import hpl

COSTS = {
    "gige": {"alpha": 1.4e6, "beta": 25.0, "gamma": 1.15},
    "10gige": {"alpha": 1.4e6, "beta": 5.0, "gamma": 1.15},
}  # in the size campaign: flop a message, flop a byte, and without unit
GRID = {"NB": 24, "P": 2, "Q": 2}


def size_campaign(blocks=10, costs=None, N=(896, 1280, 1792, 2560, 3584, 5056, 7168), **chance):
    """HPL over N on 4 nodes; `costs` maps an interconnect to alpha, beta and gamma in flop of a
    node.
    """
    costs = COSTS if costs is None else costs
    design = {
        "compared": "interconnect",
        "margin": 0.05,
        "primary": ["gige", "10gige"],
        "control": "10gige",
        "factors": {"interconnect": ["gige", "10gige"], "nodes": [4], "N": list(N)},
    }

    def rate(point):
        settings = np.array([[point["N"]], *([value] for value in GRID.values())])
        return NODE_RATE * hpl(settings, **costs[point["interconnect"]]).item()

    return from_design("hpl_size", design, rate, blocks, surveyed=False, **GRID, **chance)


AMPLIFICATION = {2: 1.0, 4: 1.5, 8: 2.5, 16: 4.5}
RARITY = {10: 2.0, 100: 1.0, 1000: 0.5}  # how many times AMPLIFICATION, by pauses a second


def noise_campaign(blocks=10, amplification=None, rarity=None, nodes=(2, 4, 8, 16), **chance):
    """HPL over nodes beside a daemon that takes 0.9 of the share it is asked to take.

    The planted log-loss of the rate over that of one node's computing is `amplification` by nodes
    times `rarity` by the daemon's pauses a second.
    """
    amplification = AMPLIFICATION if amplification is None else amplification
    rarity = RARITY if rarity is None else rarity
    design = {
        "compared": "daemon",
        "margin": 0.05,
        "primary": ["5 % at 100 Hz", "none"],
        "control": "none",
        "baseline_nodes": 2,
        "factors": {"interconnect": ["10gige"], "nodes": list(nodes), "daemon": list(DAEMONS)},
    }

    def rate(point):
        share, frequency = DAEMONS[point["daemon"]]
        left = (1 + TAKEN * share) ** (-amplification[point["nodes"]] * rarity.get(frequency, 0))
        return left * rate_without_noise("10gige", point["nodes"], {}, max(nodes))

    return from_design("hpl_noise", design, rate, blocks, surveyed=False, **chance)


def blas_campaign(blocks=8, factor=5.0, N=(768, 1088, 1536), **chance):
    """HPL on one node; OpenBLAS is `factor` times as fast as the reference BLAS at every N."""
    design = {
        "compared": "blas",
        "margin": 0.05,
        "primary": ["reference", "openblas"],
        "control": "openblas",
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
