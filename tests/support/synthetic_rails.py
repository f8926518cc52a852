"""Synthetic campaigns over one link and two from a known truth: the shipped campaigns' own plans
with made-up readings.
"""

import numpy as np
from synthetic import of_plan

from analysis import planning
from analysis.dataset.wire import wire_limit

# Gain over one link by way and nodes; links that so many connections fill.
GAINS = {
    "one_link": {1: 0.0, 2: 0.0, 4: 0.0, 8: 0.0},
    "ecmp_layer2": {1: 0.0, 2: 0.0, 4: 0.03, 8: 0.08},
    "ecmp_layer34": {1: 0.0, 2: 0.04, 4: 0.08, 8: 0.12},
    "mptcp": {1: 0.0, 2: 0.06, 4: 0.14, 8: 0.25},
    "mpi_striping": {1: 0.0, 2: 0.07, 4: 0.16, 8: 0.3},
}
LINKS = {
    "one_link": {1: 1.0, 2: 1.0, 8: 1.0},
    "ecmp_layer2": {1: 1.0, 2: 1.0, 8: 1.0},
    "ecmp_layer34": {1: 1.0, 2: 1.5, 8: 1.9},
    "mptcp": {1: 1.95, 2: 1.95, 8: 1.95},
}
NODE_RATE = 0.08  # Gflop/s of HPL on one node


def hpl_campaign(blocks=8, gains=GAINS, noise=0.01, block_effect=0.03, seed=3, preset="full"):
    """HPL at a rate that falls off with the nodes over one link, and gains by way and nodes (a
    fraction).

    `noise` and `block_effect` are on the log scale.
    """
    plan = planning.plan_campaign("link_bonding_hpl", "two_links", preset, blocks)
    random = np.random.default_rng(seed)
    effects = np.exp(random.normal(0, block_effect, blocks + 1))

    def readings(point, block):
        n, way = point["nodes"], point["aggregation"]
        rate = NODE_RATE * n / (1 + 0.1 * (n - 1)) * (1 + gains[way][n])
        return {"hpl_rate": rate * effects[block] * np.exp(random.normal(0, noise))}

    return of_plan(plan, readings)


def micro_campaign(blocks=6, links=LINKS, noise=0.005, seed=1, preset="full"):
    """TCP between two nodes with a goodput of so many links by way and connections."""
    plan = planning.plan_campaign("link_bonding_tcp", "rails", preset, blocks)
    random = np.random.default_rng(seed)
    link = plan.interconnects["gige"]

    def readings(point, block):
        carried = links[point["aggregation"]][point["streams"]]
        goodput = carried * wire_limit(link["rate_bit_s"], link["mtu"])
        return {"goodput": goodput * np.exp(random.normal(0, noise))}

    return of_plan(plan, readings)
