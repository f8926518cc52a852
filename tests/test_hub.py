"""A hub's shared wire: what all senders and both ways have together, what a frame takes, and which way it goes."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from undisturbed import alone
from wired import FRAME_S, RATE, best, build, needs_network, passed, run, sockets, opened_testbed

from analysis.capacity import limits, way
from analysis.paths import PATHS
from experiment import read_toml
from runners.record import FalloffError
from runners.testbeds.graph import graph

ONE = {"name": "one wire", "mtu": 1500, "rate_bit_s": RATE, "hubs": {"wire": [1, 2, 3]}}
MESH = {
    "name": "two wires",
    "mtu": 1500,
    "rate_bit_s": RATE,
    "switches": {"core": 1500},
    "hubs": {"left": [1, 2, "core"], "right": [3, "core"]},
}
ROUTED = {**MESH, "switches": {}, "routers": {"core": 1500}}
KNOWN_PATHS = read_toml(PATHS, "paths")


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """The shared wire, built from its source."""
    return build(tmp_path_factory.mktemp("built"), "shared_wire")


@pytest.fixture(scope="module")
def testbed(tools):
    """The testbed with one wire, and with two that a switch or a router joins."""
    with opened_testbed(tools, {"one": ONE, "mesh": MESH, "routed": ROUTED}) as opened:
        yield opened


@alone
@needs_network
def test_all_senders_and_both_ways_have_one_wire_together(testbed):
    """One sender, two, and two nodes to each other: never faster than the wire, and nearly as fast."""
    with sockets(testbed, "one") as opened:
        for flows in ([(1, 3)], [(1, 3), (2, 3)], [(1, 2), (2, 1)]):
            wire_s = 60 * FRAME_S
            assert 1 <= best(opened, flows, 60 // len(flows), below=1.15 * wire_s) / wire_s < 1.15


@needs_network
def test_stations_take_turns(testbed):
    """Of two that have frames waiting, neither gets ahead: half of the first half is from each."""
    with sockets(testbed, "one") as opened:
        _, senders = passed(opened, [(1, 3), (2, 3)], 40)
        assert 15 <= senders[:40].count(1) <= 25


@alone
@needs_network
def test_each_frame_takes_its_own_time(testbed):
    """A single frame too, and small ones, which fill 84 bytes on the wire: no burst passes in no time."""
    with sockets(testbed, "one") as opened:
        assert 1 <= best(opened, [(1, 3)], 1, below=2 * FRAME_S) / FRAME_S < 2
        assert best(opened, [(1, 3)], 100, payload=4) >= 100 * 84 * 8 / RATE


@alone
@needs_network
@pytest.mark.parametrize("path", ["mesh", "routed"])
def test_what_lies_between_two_wires_stores_and_forwards(testbed, path):
    """A frame over both takes its time twice; several overlap, one on each wire."""
    with sockets(testbed, path) as opened:
        assert best(opened, [(1, 2)], 1, below=2 * FRAME_S) < 2 * FRAME_S <= best(opened, [(1, 3)], 1)
        assert 21 <= best(opened, [(1, 3)], 20, below=30 * FRAME_S) / FRAME_S < 30


@needs_network
@pytest.mark.parametrize("path", ["mesh", "routed"])
def test_counters_show_which_way_frames_took(testbed, path):
    """Ten echoes of 1000 bytes each way: on the near wire only, or on both and through what joins them."""
    echoes = ["ping", "-c", "10", "-i", "0.02", "-s", "1000", "-q"]
    left, right, core = run(testbed, path, *echoes, "{node2}").counters["bytes_through"]
    assert left > 20_000 and max(right, core) < 1000
    counters = run(testbed, path, *echoes, "{node3}").counters
    assert min(counters["bytes_through"]) > 20_000
    assert counters["bytes_sent"][1] < 1000 < 10_000 < counters["bytes_sent"][0]


@pytest.mark.parametrize("words", [[], ["10e6", "n", "a"], ["fast", "n", "a", "n", "b"], ["0", "n", "a", "n", "b"]])
def test_it_refuses_what_is_no_wire(tools, words):
    """Exit code 2 and the usage, before any interface is made."""
    done = subprocess.run([tools["shared_wire"], *words], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("usage:")


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"hubs": {"wire": [1, 2], "other": ["wire", 3]}}, "a hub or a link starts at the hub wire"),
        ({"hubs": {"wire": [1, 2]}, "links": [{"from": 3, "to": "wire"}]}, "a link leads to the hub wire"),
        ({"hubs": {"wire": [1, 2]}, "rate_bit_s": 0}, "no rate_bit_s for the hub wire"),
        ({"hubs": {"wire": [1, "core"]}}, "neither declared nor a node counted from 1 on: core"),
    ],
)
def test_hubs_that_join_nothing_are_refused(wrong, complaint):
    """Each fault in words, with the path that has it."""
    with pytest.raises(FalloffError, match=f"path planted: .*{complaint}"):
        graph({"name": "planted", "rate_bit_s": RATE, **wrong})


@given(st.integers(2, 14))
def test_a_hub_is_no_place_and_all_on_it_are_neighbours(nodes):
    """Every node has one end and reaches each other without a router; the hub has neither ends nor a namespace."""
    made = graph({"rate_bit_s": RATE, "hubs": {"wire": list(range(1, nodes + 1))}})
    assert made.places == [f"n{node}" for node in range(1, nodes + 1)]
    assert len(made.all_ends()) == len(made.stations("wire")) == nodes
    assert all(route.via is None for node in made.places for route in made.routes(node))


def test_a_hub_limits_flows_as_a_shared_link_does():
    """Both ways of two pairs have no more together than one flow on one wire, and no common limit on one each."""
    four = [(1, 8), (8, 1), (2, 9), (9, 2)]
    shared, local = KNOWN_PATHS["shared_wire_10m"], KNOWN_PATHS["local_wire_10m"]
    assert limits(shared, four).shared == limits(shared, four[:1]).shared
    assert limits(shared, four).own == limits(local, four).shared == float("inf")
    assert limits(local, four[:2]).shared == limits(shared, four).shared


@pytest.mark.parametrize("kind", ["remote_switch", "remote_router"])
@pytest.mark.parametrize("rate", ["10m", "100m"])
def test_a_remote_way_passes_two_wires(kind, rate):
    """From a pair's producer to its consumer over what joins them; locally there is one wire and nothing else."""
    assert [hop.end for hop in way(KNOWN_PATHS[f"{kind}_{rate}"], 1, 8).hops] == ["wire_1", "core", "wire_7", 8]
    assert [hop.end for hop in way(KNOWN_PATHS[f"local_wire_{rate}"], 1, 8).hops] == ["wire_1", 8]
