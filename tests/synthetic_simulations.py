"""Synthetic simulated campaigns, from a known truth: one block, no scatter, and what the simulation took."""

import json

import numpy as np
from synthetic import INTERCONNECTS, NODE_RATE, from_design

RPEAK = 44.8  # Gflop/s of a node of the modelled cluster
NETWORKS = {
    "gige": (110e6, 40e-6),
    "gige_bonded": (220e6, 40e-6),
    "10gige": (1200e6, 6e-6),
    "ddr_infiniband": (1440e6, 2e-6),
}  # B/s, s
SHORTS = {"gige": "GigE", "gige_bonded": "2 × GigE", "10gige": "10GE", "ddr_infiniband": "DDR IB"}
REACHED = {"gige": 0.66, "gige_bonded": 0.73, "10gige": 0.79, "ddr_infiniband": 0.80}  # on 36 nodes
LARGEST = 256


def simulated(name, design, rate, testbed, failed=()):
    """One block of a design whose points have a `rate` [Gflop/s], as a simulation gives it: without scatter."""
    common = {"margin": 0.05, "primary": ["gige", "10gige"], "control": "10gige"}
    dataset = from_design(
        name,
        common | design,
        rate,
        blocks=1,
        noise=0,
        block_effect=0,
        surveyed=False,
        failed=failed,
    )
    networks = {
        network: {"bandwidth": {"value": bandwidth}, "latency": {"value": latency}}
        for network, (bandwidth, latency) in NETWORKS.items()
    }
    known = {
        network: {"name": short, "short": short, "mtu": 1500} for network, short in SHORTS.items()
    }
    dataset["evidence"] = dataset.evidence.copy(data=np.full(dataset.sizes["trial"], "simulated"))
    return dataset.assign_attrs(
        interconnects=json.dumps(INTERCONNECTS | known),
        testbed_settings=json.dumps(
            {
                "name": testbed,
                "kind": "simulated",
                "nodes": LARGEST,
                "rpeak": {"value": 1e9 * RPEAK},
                "rates": {"dgemm_flop_s": {"value": 1e9 * NODE_RATE}},
                "network": networks,
            }
        ),
    )


def beyond_campaign(kept=None, networks=tuple(NETWORKS), **chance):
    """Efficiency over 36 to 256 nodes; `kept` maps a network to the part of REACHED that is left on 256."""
    kept = {"gige": 0.90} if kept is None else kept
    nodes = [36, 72, 144, LARGEST]
    design = {"baseline_nodes": 36, "factors": {"interconnect": list(networks), "nodes": nodes}}

    def rate(point):
        n, network = point["nodes"], point["interconnect"]
        part = kept.get(network, 1.0) ** (np.log(n / 36) / np.log(LARGEST / 36))
        return n * RPEAK * REACHED[network] * part

    return simulated("hpl_beyond", design, rate, "smith", **chance)
