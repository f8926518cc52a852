"""Flows over simulated networks: by hand, what holds of every network, and what is asked for and
printed.
"""

import math
from dataclasses import replace

import pytest

from analysis.descriptions import testbeds
from runners.records.record import FalloffError, Trial, judge
from runners.testbeds import simulated
from runners.tools import flows
from runners.two_level import TwoLevel

SIZE, RATE, LATENCY = 10_000_000, 110e6, 40e-6
POINT = {
    "interconnect": "under_test",
    "pattern": "permutation",
    "placement": "in_order",
    "nodes": 12,
    "runs": 3,
    "random_seed": 7,
    "flow_bytes": SIZE,
    "timeout_s": 60,
}
NODE = {"bandwidth": {"value": RATE}, "latency": {"value": LATENCY}}
FREE = TwoLevel(12, RATE, 2, 2, RATE, 2, math.inf, math.inf, LATENCY)

needs_simgrid = pytest.mark.skipif(
    bool(simulated.unavailable(testbeds.read("nemo").plain())),
    reason="SimGrid is not here: python3-simgrid",
)


def run(network=None, lines="", **point):
    """The readings by name of one simulation on a crossbar, or on a two-level network; of these
    lines of flows instead of the point's if there are any."""
    described = {**NODE, **({"tree": vars(network)} if network else {})}
    machine = {**testbeds.read("nemo").plain(), "network": {"under_test": described}}
    trial = Trial("t", "point", "flows", 1, 1, {**POINT, **point})
    commands = flows.commands(trial.point)
    if lines:
        commands = [replace(command, files={"flows.txt": lines}) for command in commands]
    with simulated.open_testbed(machine, {"under_test": {}}) as testbed:
        outcome = judge(testbed.run(trial, commands), flows.TOOL.parse)
    assert outcome.status == "ok", outcome.reason
    return outcome.readings


def after(seconds):
    """A flow's time [s] when so many seconds of sending at a node's rate precede its end."""
    return pytest.approx(seconds * SIZE / RATE + LATENCY, rel=1e-9)


@needs_simgrid
@pytest.mark.parametrize(
    ("pattern", "factor"),
    [("permutation", 1), ("all_to_all", 1), ("nearest_neighbour", 2), ("many_to_one", 11)],
)
def test_without_a_tree_only_the_nodes_links_count(pattern, factor):
    """By hand, on one switch: each flow's latency, then as many flows as share a node's link, one
    after the other.
    """
    found = run(pattern=pattern)
    assert (
        found["flow_makespan"] == [after(factor)] * 3 and found["flow_mean"] == [after(factor)] * 3
    )


@needs_simgrid
def test_an_uplink_is_shared_fairly_and_the_rest_is_used():
    """By hand, three nodes on an uplink: three flows over it have a third each; one that meets them
    at node 4 has the two thirds that are left there, and ends first."""
    network = replace(FREE, nodes=6, nodes_per_edge=3, uplinks=1)
    found = run(network, "1-4 2-5 3-6 5-4\n", nodes=6, runs=1)
    assert found["flow_makespan"] == [after(3)] and found["flow_mean"] == [after((3 * 3 + 1.5) / 4)]


@pytest.mark.few(2)
@needs_simgrid
@pytest.mark.parametrize("placement", ["in_order", "shuffled"])
@pytest.mark.parametrize(("uplink", "card"), [(0.3 * RATE, math.inf), (2 * RATE, 3 * RATE)])
def test_no_network_is_faster_than_one_without_oversubscription(uplink, card, placement):
    """A tree has all limits of the crossbar and some more; one whose uplinks carry everything has
    no more.
    """
    network = replace(
        FREE, nodes_per_edge=5, uplinks=1, uplink_bandwidth=uplink, card_bandwidth=card
    )
    crossbar = run(placement=placement)["flow_makespan"]
    slower = [
        slow / fast
        for slow, fast in zip(run(network, placement=placement)["flow_makespan"], crossbar)
    ]
    assert min(slower) >= 1 - 1e-9 and max(slower) > 1.2
    wide = replace(network, uplink_bandwidth=7 * RATE, card_bandwidth=math.inf)
    assert run(wide, placement=placement)["flow_makespan"] == pytest.approx(crossbar, rel=1e-9)


@pytest.mark.parametrize("placement", ["in_order", "shuffled"])
@pytest.mark.parametrize("pattern", flows.PATTERNS)
@pytest.mark.parametrize("nodes", [2, 3, 60])
def test_patterns_are_what_they_are_called(nodes, pattern, placement):
    """Nobody sends to itself; each node sends and receives as often as its pattern says; a run
    repeats itself.
    """
    point = {**POINT, "nodes": nodes, "pattern": pattern, "placement": placement}
    drawn = flows.pairs(point)
    assert len(drawn) == 3 and drawn == flows.pairs({**point, "interconnect": "another"})
    for pairs in drawn:
        sources, sinks = zip(*pairs)
        assert {*sources, *sinks} == set(range(1, nodes + 1)) and all(a != b for a, b in pairs)
        if pattern == "many_to_one":
            assert len(set(sinks)) == 1 and len(set(sources)) == nodes - 1
        else:
            each = 2 if pattern == "nearest_neighbour" else 1
            assert sorted(sources) == sorted(sinks) == sorted([*range(1, nodes + 1)] * each)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"pattern": "gossip"}, "pattern 'gossip' is unknown; there are nearest_neighbour"),
        ({"placement": "nearby"}, "placement 'nearby' is neither"),
        ({"nodes": 1}, "need two nodes"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(wrong, reason):
    """One line with what was asked for and what there is."""
    with pytest.raises(FalloffError, match=reason):
        flows.commands({**POINT, **wrong})
