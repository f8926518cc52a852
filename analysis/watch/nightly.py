"""A night's session: what is most worth measuring of a cluster in a few minutes.

`suspects` in part, so that each node computes, reads its memory and meets some others; tokens of
one size between all nodes at once, which cross every switch; and HPL on all nodes. Each is a
campaign of its own, and `falloff history` reads them together.
"""

import math
from collections.abc import Mapping
from typing import Any

from analysis.descriptions import campaigns
from analysis.descriptions.adaptation import problem
from analysis.descriptions.campaigns import Campaign
from analysis.descriptions.testbeds import Cluster, EmulatedTestbed, Testbed
from runners.records.record import FalloffError

SESSION = "nightly"  # what `falloff run` calls it
TESTBED = "suspect_model"
MINUTES = 5.0
_SHARES = {"suspects": 0.6, "nightly_tokens": 0.1, "nightly_hpl": 0.3}  # of the minutes
_START_S = 6.0  # of a trial: starting its ranks, choosing DGEMM's order
_FEWEST_ROUNDS, _MOST_ROUNDS = 5, 20
_EFFICIENCY = 0.5  # of HPL, for the time that it takes
_CORE_FLOP_S = 4e9  # of a core of which nothing is known
_MEMORY = 2**29  # bytes of a node that a matrix takes at most where its memory is unknown


def campaigns_of(testbed: Testbed, minutes: float = MINUTES) -> list[Campaign]:
    """The campaigns of a session on all nodes of `testbed`, which together take about `minutes`.

    A matrix and a number of rounds follow from the testbed and the minutes alone, so that all
    nights measure the same. Raises FalloffError where the nodes are too few or the minutes too
    short.
    """
    nodes = testbed.nodes or 0
    if nodes < 4 or not isinstance(testbed, (Cluster, EmulatedTestbed)):
        raise FalloffError(
            f"testbed {testbed.name}: a night's session needs real or emulated nodes, at least 4"
        )
    seconds = {name: 60 * minutes * share for name, share in _SHARES.items()}
    suspects, tokens, hpl = (_on_one_network(campaigns.read(name), testbed) for name in _SHARES)
    return [
        _in_part(campaigns.for_preset(suspects, SESSION), seconds["suspects"], minutes),
        tokens.changed(settings={**tokens.settings, **_pairs(nodes)}),
        _sized(hpl, testbed, seconds["nightly_hpl"]),
    ]


def _on_one_network(campaign: Campaign, testbed: Testbed) -> Campaign:
    """The campaign on the fastest network of a cluster; elsewhere on its own."""
    if not isinstance(testbed, Cluster):
        return campaign
    network = max(testbed.networks, key=lambda name: testbed.networks[name].rate_bit_s or 0)
    return campaign.changed(factors={**campaign.factors, "interconnect": [network]})


def _in_part(suspects: Campaign, seconds: float, minutes: float) -> Campaign:
    """`suspects` with as many random rounds as its seconds allow."""
    settings: dict[str, Any] = {**suspects.settings}
    blocks = suspects.stopping.blocks or 1
    a_round = settings["latency_s"] + settings["bandwidth_s"]
    fixed = _START_S + 2 * settings["node_s"]
    rounds = int((seconds / blocks - fixed) / a_round)
    if rounds < _FEWEST_ROUNDS:
        least = blocks * (fixed + _FEWEST_ROUNDS * a_round) / _SHARES["suspects"] / 60
        raise FalloffError(
            f"--minutes {minutes:g} is too short for a session: give it at least {math.ceil(least)}"
        )
    return suspects.changed(settings={**settings, "rounds": min(rounds, _MOST_ROUNDS)})


def _pairs(nodes: int) -> Mapping[str, int | str]:
    """The settings of a token exchange of each node of the first half with one of the second; the
    last of an odd number rests."""
    half = nodes // 2
    ends = [",".join(map(str, range(1 + first, 1 + first + half))) for first in (0, half)]
    return {"pairs": half, "producers": ends[0], "consumers": ends[1]}


def _sized(hpl: Campaign, testbed: Cluster | EmulatedTestbed, seconds: float) -> Campaign:
    """HPL with an order that takes its share of the seconds at half of the nodes' rate, from 2/3
    N^3 operations.
    """
    nodes, ranks_per_node = testbed.nodes or 0, 1
    if isinstance(testbed, Cluster):
        ranks_per_node = testbed.ranks_per_node
    block = int(testbed.settings.get("NB", hpl.settings["NB"]))
    share = max(seconds / (hpl.stopping.blocks or 1) - _START_S, 1.0)
    operations = _EFFICIENCY * nodes * _flop_s(testbed) * share
    by_time = 8 * (1.5 * operations) ** (2 / 3) / nodes
    grid = problem(nodes, ranks_per_node, min(by_time, _memory(testbed)), block)
    order = max(grid.pop("N"), block)
    return hpl.changed(
        factors={**hpl.factors, "nodes": [nodes], "N": [order]},
        levels={"nodes": {str(nodes): grid}},
    )


def _flop_s(testbed: Cluster | EmulatedTestbed) -> float:
    """The rate of a node [flop/s], as it runs: slowed down where time is."""
    if isinstance(testbed, EmulatedTestbed):
        return testbed.node.flop_s or _CORE_FLOP_S
    cores = testbed.ranks_per_node * testbed.threads
    peak = testbed.rpeak.resolved() or {}
    return peak.get("value") or cores * _CORE_FLOP_S


def _memory(testbed: Cluster | EmulatedTestbed) -> float:
    """The bytes of a node that a matrix may take."""
    if isinstance(testbed, Cluster) and testbed.memory_bytes:
        return testbed.memory_bytes * (testbed.matrix_share or 0.5)
    return _MEMORY
