"""A synthetic token campaign over the shipped campaign's own plan and paths, from a known truth."""

import json
from functools import cache
from itertools import product

import numpy as np
from synthetic import assembled

from analysis.dataset.capacity import between, carriers
from analysis.descriptions import campaigns
from analysis.descriptions.campaigns import for_preset
from analysis.descriptions.networks import network_paths
from analysis.descriptions.toml_tables import plain
from analysis.subjects.token_points import pairs_of, token_limit
from runners.tools import token_exchange

PATHS = plain(network_paths())
CAMPAIGN = campaigns.read("token_exchange")
ALPHA = {  # s one way, of one pair
    "shared_wire": 80e-6,
    "local_wire": 80e-6,
    "local_router": 80e-6,
    "remote_switch": 120e-6,
    "remote_router": 140e-6,
    "bonded": 90e-6,
    "bonded_switch": 150e-6,
    "bonded_shared": 90e-6,
}
WIRES = {
    "bonded": 2,
    "bonded_switch": 2,
    "bonded_shared": 2,
}  # that the frames of one token take in turn
LONGER = {
    "remote_switch": 1.1,
    "remote_router": 1.2,
    "bonded_switch": 1.5,
}  # time for a byte, of the wire's own
USE = 0.95  # part of what their wires carry that several pairs reach together
SPREAD = np.linspace(
    0.8, 1.2, len(token_exchange.LEVELS)
)  # quantiles of the round trips, over their mean


def token_campaign(
    blocks=3,
    noise=0.01,
    block_effect=0.005,
    seed=1,
    preset="full",
    only=(),
    use=None,
    excess=(),
    astray=(),
):
    """Throughput of a pair = size / (2 (alpha + beta size)), and of several no more than a part of
    what wires carry.

    The paths are the preset's, or `only` these. `noise` is of a run, on the log scale. `use` maps a
    topology to that part, where it is not USE. `excess` holds (block, path, pairs, token_bytes) of
    trials whose pairs write ten times as much; on the paths `astray` tokens pass by the last places
    alone, which are switches and routers.
    """
    described = for_preset(CAMPAIGN, preset)
    factors, settings = {**described.factors}, described.settings
    design = described.design.plain()
    factors["path"] = list(only) or factors["path"]
    topology_of = {path: name for name, listed in design["topologies"].items() for path in listed}
    chance, trials = np.random.default_rng(seed), []
    for block in range(1, blocks + 1):
        effect = np.exp(chance.normal(0, block_effect))
        for levels in product(*factors.values()):
            point = dict(zip(factors, levels))
            topology = topology_of[point["path"]]
            each = effect * _of_a_pair(topology, (use or {}).get(topology, USE), **point)
            each *= 10.0 if (block, *levels) in excess else 1.0
            written = np.full((max(factors["pairs"]), settings["runs"]), np.nan)
            state = {"role": "point", "runner": "token_exchange", "block": block, "status": "ok"}
            state |= {"wall_time": 3.0, "host_cpu_time": 1.5}
            written[: point["pairs"]] = each * np.exp(chance.normal(0, noise, settings["runs"]))
            round_trip = (point["token_bytes"] / written)[..., None] * SPREAD
            sent = np.nansum(written, 1) * settings["window_s"]
            readings = {"token_throughput": written, "token_round_trip": round_trip}
            readings["bytes_through"] = _passed(point["path"], sent, astray)
            trials.append({**state, **settings, **point, **readings})
    between = {path: PATHS[path] for path in factors["path"]}
    testbed = {"name": "beowulf", "kind": "paths", "nodes": 16}
    dataset = assembled(
        "token_exchange", trials, {**design, "factors": factors}, between, testbed, settings
    )
    return dataset.assign_attrs(provenance=json.dumps({"sessions": [{"host": {"cpus": 2}}]}))


def truth(topology, rate):
    """(alpha [s], beta [s/B]) of one pair, as planted; framing takes 7 % of the wire."""
    return ALPHA[topology], 1.07 * LONGER.get(topology, 1.0) * 8 / rate / WIRES.get(topology, 1)


def _of_a_pair(topology, use, path, pairs, token_bytes):
    """Tokens that one producer writes x size [B/s], without noise."""
    alpha, beta = truth(topology, PATHS[path]["rate_bit_s"])
    alone = token_bytes / (2 * (alpha + beta * token_bytes))
    return min(alone, use * _limit(path, pairs, token_bytes) / pairs) if pairs > 1 else alone


def _passed(path, written, astray):
    """What every place passes on [B] of the tokens that each pair's producer wrote: 1.3 times both
    ways, and 1000 B.
    """
    pairs = pairs_of(CAMPAIGN.settings, np.count_nonzero(written))
    ways = [between(PATHS[path], *pair) for pair in pairs]
    wires = 2 if PATHS[path].get("bonded") else 1
    passed = [
        1000 + sum(2.6 * size / wires for size, way in zip(written, ways) if place in way)
        for place in carriers(PATHS[path])
    ]
    unused = [np.nan] * (
        max(len(carriers(PATHS[other])) for other in CAMPAIGN.factors["path"]) - len(passed)
    )
    return [*(passed[::-1] if path in astray else passed), *unused]


@cache
def _limit(path, pairs, token_bytes):
    return token_limit(PATHS[path], pairs_of(CAMPAIGN.settings, pairs), token_bytes)
