"""Networks on paper: from a table to a graph, what is refused, and the arithmetic of a shaper."""

import pytest

from analysis.descriptions.networks import Path, network_paths
from analysis.descriptions.toml_tables import parse, plain
from runners.records.record import FalloffError
from runners.testbeds import graph as graphs
from runners.testbeds.graph import EACH_LINK, ONE_LINK, End, Link, graph, star
from runners.testbeds.settings import Shaper, agreed, routes_text

PATHS = plain(network_paths())
GIGE = {"name": "GigE", "rate_bit_s": 1e9, "mtu": 1500}


@pytest.mark.parametrize("path", PATHS)
def test_every_published_path_is_a_graph_in_which_all_nodes_meet(path):
    """It has a source for its numbers, an MTU, and a way from each node to each other."""
    made = graph(PATHS[path])
    assert PATHS[path]["source"] and PATHS[path]["mtu"] and PATHS[path]["short"]
    for node in made.nodes:
        others = [other for other in made.nodes if other != node]
        assert [route.node for route in made.routes(f"n{node}")] == others


def test_links_have_the_paths_rate_or_their_own_by_direction():
    """A list of nodes is a link each; without any rate a link is not shaped."""
    links = [{"from": [1, 2], "to": "core"}]
    made = graph({"rate_bit_s": 1e9, "switches": {"core": 9000}, "links": links})
    assert made.links == tuple(Link((f"n{node}", "core"), (1e9, 1e9)) for node in (1, 2))
    assert made.places == ["n1", "n2", "core"]
    two_ways = {"from": 1, "to": 2, "rate_bit_s": 3e8, "rate_back_bit_s": 4e8}
    for link, rates in ((two_ways, (3e8, 4e8)), ({"from": 1, "to": 2}, (None, None))):
        assert graph({"links": [link]}).links[0].rates == rates


def test_a_route_names_the_first_router():
    """Over two routers the next hop is the first; within a switch there is none."""
    links = [{"from": [1, 2], "to": "core"}, {"from": "core", "to": "near"}]
    links += [{"from": "near", "to": "far"}, {"from": 3, "to": "far"}]
    routers = {"near": 9000, "far": 9000}
    made = graph({"switches": {"core": 9000}, "routers": routers, "links": links})
    routes = {
        start: [(route.node, route.via) for route in made.routes(start)] for start in ("n1", "near")
    }
    assert routes == {
        "n1": [(2, None), (3, "near")],
        "near": [(1, None), (2, None), (3, "far")],
    }


def test_a_node_passes_nothing_on():
    """Nodes 1 and 3 of a chain have no way to each other, though node 2 is joined to both."""
    made = graph({"links": [{"from": 1, "to": 2}, {"from": 2, "to": 3}]})
    assert [route.node for route in made.routes("n1")] == [2]
    routes = [(route.node, route.out) for route in made.routes("n2")]
    assert routes == [(1, End(0, 1)), (3, End(1, 0))]
    assert [made.label(end) for end in made.ends("n2")] == ["n2 to n1", "n2 to n3"]


ONE_WIRE = {"rate_bit_s": 1e7, "hubs": {"wire": [1, 2]}}
BONDED = {"rate_bit_s": 1e7, "bonded": True}


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ({"links": [{"from": 1, "to": "nowhere"}]}, "neither declared nor a node.* nowhere"),
        ({"links": [{"from": 1, "to": 3}]}, "neither declared nor a node counted from 1 on: n3"),
        ({"switches": {"core": 1500}, "links": [{"from": 1, "to": 2}]}, "no link to core"),
        ({"links": [{"from": 1}]}, "a link lacks to"),
        ({"links": []}, "fewer than two nodes"),
        ({**ONE_WIRE, "links": [{"from": 3, "to": "wire"}]}, "a link to the hub wire"),
        ({**ONE_WIRE, "rate_bit_s": 0}, "no rate_bit_s for the hub wire"),
        ({**BONDED, "hubs": {"a": [1, 2, 3], "b": [1, 2]}}, "a single link to bond at n3"),
        (
            {**BONDED, "hubs": {"a": [1, 2, "hop"], "b": [1, 2]}, "routers": {"hop": 1500}},
            "cannot use the router hop",
        ),
    ],
)
def test_what_is_no_path_is_refused_by_name(path, complaint):
    """Each fault in words, with the path that has it."""
    with pytest.raises(FalloffError, match=f"path planted: .*{complaint}"):
        graph({"name": "planted", **path})


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ({"links": [{"from": 1}]}, r"links\[1\].to is missing"),
        ({"links": [{"from": 1, "to": 2, "rate_bits": 1}]}, r"links\[1\].rate_bits is unknown"),
        ({"rate": 1, "links": [{"from": 1, "to": 2}]}, "rate is unknown"),
    ],
)
def test_keys_of_a_path_are_checked_where_its_file_is_read(path, complaint):
    """Each that lacks or that nothing reads, with the path that has it."""
    with pytest.raises(FalloffError, match=f"planted.{complaint}"):
        parse(dict[str, Path], {"planted": {**PATHS["switch"], **path}}, "paths.toml")


@pytest.mark.parametrize(("nodes", "rails"), [(36, 1), (8, 3)])
def test_a_star_is_a_switch_for_every_rail(nodes, rails):
    """Each node has a link to each, at the interconnect's rate, and reaches every other by
    whichever rail it begins.
    """
    made = graph(star(GIGE, nodes, rails))
    assert len(made.switches) == rails == made.rails and len(made.links) == nodes * rails
    assert {link.rates for link in made.links} == {(1e9, 1e9)} and made.is_star == (rails == 1)
    for rail, end in enumerate(made.ends("n1")):
        routes = made.routes("n1", end)
        assert [route.node for route in routes] == list(range(2, nodes + 1))
        assert {made.peer(route.out) for route in routes} == {list(made.switches)[rail]}


def test_a_hub_is_no_place_and_all_on_it_are_neighbours():
    """Every node has one end and reaches each other without a router; the hub has no namespace."""
    made = graph({"rate_bit_s": 1e7, "hubs": {"wire": list(range(1, 15))}})
    assert made.places == [f"n{node}" for node in range(1, 15)]
    assert [made.place(end) for end in made.stations("wire")] == made.places
    assert all(route.via is None for node in made.places for route in made.routes(node))


def test_graphs_that_differ_in_rates_alone_have_one_shape():
    """So that a network need not be built again for another interconnect; a hub's rate is its
    program's.
    """
    slow = graph(star({**GIGE, "rate_bit_s": 1e8}, 4))
    fast = graph(star({**GIGE, "mtu": 9000}, 4))
    assert slow != fast and slow.shape == fast.shape != graph(star(GIGE, 5)).shape
    assert graph(star(GIGE, 4, 2)).shape != graph(star(GIGE, 4, 2, bonded=True)).shape
    assert graph(ONE_WIRE).shape != graph({**ONE_WIRE, "rate_bit_s": 1e8}).shape


def test_ways_of_using_links():
    """Each needs two links but the first; a node keeps its number in every subnet, and MPI stripes
    where asked.
    """
    assert graphs.way({}, 1) == graphs.way({"aggregation": "one_link"}, 1) == ONE_LINK
    assert graphs.way({"aggregation": "mptcp"}, 2).routes == EACH_LINK
    for aggregation, refusal in (("mptcp", "needs two links a node"), ("trunk", "is unknown")):
        with pytest.raises(FalloffError, match=f"aggregation .*{aggregation}.* {refusal}"):
            graphs.way({"aggregation": aggregation}, 1)
    assert [graphs.address(3, number) for number in (1, 2)] == ["10.81.0.3", "10.81.1.3"]
    striped = graphs.way({"aggregation": "mpi_striping"}, 2)
    assert striped.networks == [*ONE_LINK.networks, "10.81.1.0/24"]


@pytest.mark.parametrize(("rate", "mtu"), [(1e9, 1500), (12_345_678.9, 576), (1e11, 9000)])
def test_frames_are_never_faster_than_on_the_wire(rate, mtu):
    """TCP's payload is (MTU - 52) / (MTU + 38) of the rate, rounded down to bytes: 941.5 Mbit/s of
    Gigabit Ethernet.

    tc counts MTU + 14 bytes of a frame; without super-packets it adds what Ethernet adds to every
    frame itself.
    """
    wire = rate * (mtu - 52) / (mtu + 38)
    payload = Shaper(rate, mtu, True).tbf_rate_bit_s * (mtu - 52) / (mtu + 14)
    assert wire - 8 <= payload <= wire * (1 + 1e-12)
    link = Shaper(rate, mtu)
    assert 0 <= rate - link.tbf_rate_bit_s < 8 and "stab overhead 24 mpu 84 tbf " in link.qdisc


def test_a_described_burst_is_read_back_within_what_tc_shows():
    """One frame and what the wire carries in 250 us; tc shows 4650 of 4663 bytes, and a frame less
    is another.
    """
    asked = Shaper(100e6, 1500, burst_s=250e-6)
    assert asked.burst_bytes == 4663 < Shaper(100e6, 1500).burst_bytes
    assert "burst 4663 " in asked.qdisc
    assert asked.effective(100_000_000, 4650) == asked.settings()
    for rate, burst in ((100_000_000, 3125), (10_000_000, 4663)):
        assert asked.effective(rate, burst) != asked.settings()
    unshaped = Shaper(None, 1500, burst_s=250e-6)
    assert unshaped.qdisc == "noqueue"
    assert unshaped.effective("unshaped", "unshaped") == unshaped.settings()


def test_who_has_which_is_said_where_ends_disagree():
    """One end that differs turns a setting into a sentence that equals no request; so does a route
    that strays.
    """
    found = {"n1": {"mtu": 1500, "gro": True}, "port": {"mtu": 1500}, "n2": {"mtu": 9000}}
    assert agreed(found, "mtu") == "1500 on n1, port and 9000 on n2"
    assert agreed(found, "gro") is True
    alike = {"10.81.0.2": [2, 1], "10.81.0.3": [1, 2], "10.81.1.2": [2]}
    assert routes_text(alike) == "10.81.0.0/24 by link 1 and 2, 10.81.1.0/24 by link 2"
    astray = routes_text({**alike, "10.81.0.3": [2]})
    assert astray.startswith("10.81.0.0/24 by link 1 and 2 or 2,")
