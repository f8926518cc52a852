"""Synthetic tokens, HPL and a simulated surface that agree with each other, from known latencies and bandwidths."""

from itertools import product

import numpy as np
from synthetic import INTERCONNECTS, NODE_RATE, assembled, from_design
from synthetic_simulations import simulated

from analysis.models import hpl
from runners.token_exchange import LEVELS

ALPHA = {"gige": 60e-6, "10gige": 40e-6, "unshaped": 30e-6}  # s
BETA = {"gige": 8e-9, "10gige": 3e-9, "unshaped": 2e-9}  # s/B
SIZES = [4, 4096, 65536, 524288, 4194304]  # B
NODES = [1, 2, 4, 8]
LATENCIES, BANDWIDTHS = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3), (5e7, 1e8, 2e8, 4e8, 8e8)  # s, B/s
PER_SECOND, PER_SECOND_A_BYTE = (
    200.0,
    2e7,
)  # of a model's latency and 1 / bandwidth: what they add to its time of 1


def tokens(
    blocks=3, runs=4, noise=0.0, block_effect=0.0, networks=tuple(INTERCONNECTS), seed=1, failed=()
):
    """Exchanges of one pair whose time one way is ALPHA + BETA size; `failed` holds (block, network, size).

    `noise` and `block_effect` are log-scale standard deviations of a run and of a block.
    """
    chance, trials = np.random.default_rng(seed), []
    for block in range(1, blocks + 1):
        effect = chance.normal(0, block_effect)
        for network, size in product(networks, SIZES):
            time = ALPHA.get(network, 0) + BETA.get(network, 1e-9) * size
            written = size / (2 * time) * np.exp(effect + chance.normal(0, noise, (1, runs)))
            lost = (block, network, size) in failed
            state = (
                {"status": "failed", "reason": "planted fault"}
                if lost
                else {"status": "ok", "reason": ""}
            )
            point = {"interconnect": network, "token_bytes": size, "pairs": 1}
            round_trips = np.repeat((size / written)[..., None], len(LEVELS), axis=2)
            reading = {"token_throughput": written, "token_round_trip": round_trips}
            read = {
                name: np.full_like(values, np.nan) if lost else values
                for name, values in reading.items()
            }
            trials.append(
                {
                    "role": "point",
                    "runner": "token_exchange",
                    "block": block,
                    **state,
                    **point,
                    **read,
                }
            )
    design = {"factors": {"interconnect": list(networks), "token_bytes": SIZES}}
    testbed = {"name": "scale_model", "kind": "emulated", "nodes": 8}
    known = {name: INTERCONNECTS.get(name, {}) for name in networks}
    return assembled("token_nodes", trials, design, known, testbed, {"window_s": 1.0, "runs": runs})


def analytic_share(interconnect, n):
    """HPL's share of the known rate by its analytic model at ALPHA and BETA, with the matrix of `from_design` on n nodes."""
    return _share(interconnect, n, hpl.times)


def share_by_blocks(interconnect, n):
    """As `analytic_share`, with whole blocks counted."""
    return _share(interconnect, n, hpl.times_by_blocks)


def _share(interconnect, n, counts):
    order = int(48 * np.sqrt(n)) * 64
    messages, elements, flops = counts(np.array([[order], [64], [1], [n]], float))
    sending = (n > 1) * (ALPHA[interconnect] * messages + 8 * BETA[interconnect] * elements)
    rate = hpl.operations(order) / (1e9 * sending + flops / NODE_RATE)
    return float(rate[0] / (n * NODE_RATE))


def modelled_share(n, latency, bandwidth):
    """HPL's share of the known rate in the simulated surface: what messages take grows with the other nodes."""
    return 0.9 / (1 + (n - 1) * (PER_SECOND * latency + PER_SECOND_A_BYTE / bandwidth))


def emulated(share=analytic_share, blocks=6, noise=0.0, **chance):
    """HPL with a `share` of the known rate by network and node count."""
    design = {
        "margin": 0.05,
        "primary": ["gige", "10gige"],
        "control": "unshaped",
        "baseline_nodes": 2,
        "factors": {"interconnect": list(INTERCONNECTS), "nodes": NODES},
    }

    def rate(point):
        return NODE_RATE * point["nodes"] * share(point["interconnect"], point["nodes"])

    return from_design("hpl_scaling", design, rate, blocks, noise, surveyed=False, **chance)


def as_modelled(interconnect, n):
    """The share that the surface has at ALPHA and BETA."""
    return modelled_share(n, ALPHA[interconnect], 1 / BETA[interconnect])


def surface_campaign(share=modelled_share, latencies=LATENCIES, bandwidths=BANDWIDTHS, **chance):
    """A simulation at every combination of latency and bandwidth, whose HPL has that share of the known rate."""
    vary = [
        f"latency={latency:g},bandwidth={bandwidth:g}"
        for latency, bandwidth in product(latencies, bandwidths)
    ]
    design = {"factors": {"interconnect": ["gige"], "nodes": NODES, "vary": vary}}

    def rate(point):
        latency, bandwidth = (float(part.partition("=")[2]) for part in point["vary"].split(","))
        return NODE_RATE * point["nodes"] * share(point["nodes"], latency, bandwidth)

    return simulated("hpl_surface", design, rate, "scale_model_simulated", **chance)
