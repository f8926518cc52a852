"""From a table to a graph: links, addresses, routes, ways of using several links, and what is refused."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.record import FalloffError
from runners.testbeds import graph as graphs
from runners.testbeds.graph import EACH_LINK, ONE_LINK, End, Link, graph, star

PATHS = tomllib.loads((Path(__file__).resolve().parent.parent / "data/paths.toml").read_text())


@pytest.mark.parametrize("path", PATHS)
def test_every_published_path_is_a_graph_in_which_all_nodes_meet(path):
    """It has a source for its numbers, an MTU, and a way from each node to each other."""
    made = graph(PATHS[path])
    assert PATHS[path]["source"] and PATHS[path]["mtu"] and PATHS[path]["short"]
    for node in made.nodes:
        assert [route.node for route in made.routes(f"n{node}")] == [other for other in made.nodes if other != node]


def test_a_list_of_nodes_is_a_link_each():
    """One line of TOML, three links of the path's own rate, both ways."""
    made = graph({"rate_bit_s": 1e9, "switches": {"core": 9000}, "links": [{"from": [1, 2, 3], "to": "core"}]})
    assert made.links == tuple(Link((f"n{node}", "core"), (1e9, 1e9)) for node in (1, 2, 3))
    assert made.places == ["n1", "n2", "n3", "core"]


def test_rates_are_by_direction():
    """The first is what `from` sends, the second what `to` sends; without any the link is not shaped."""
    (link,) = graph({"links": [{"from": 1, "to": 2, "rate_bit_s": 3e8, "rate_back_bit_s": 4e8}]}).links
    assert link.rates == (3e8, 4e8)
    assert graph({"links": [{"from": 1, "to": 2}]}).links[0].rates == (None, None)


def test_a_route_names_the_first_router():
    """Over two routers the next hop is the first; within a switch there is none."""
    links = [{"from": [1, 2], "to": "core"}, {"from": "core", "to": "near"}, {"from": "near", "to": "far"}]
    links += [{"from": 3, "to": "far"}]
    made = graph({"switches": {"core": 9000}, "routers": {"near": 9000, "far": 9000}, "links": links})
    assert [(route.node, route.via) for route in made.routes("n1")] == [(2, None), (3, "near")]
    assert [(route.node, route.via) for route in made.routes("near")] == [(1, None), (2, None), (3, "far")]


def test_a_node_passes_nothing_on():
    """Nodes 1 and 3 of a chain have no way to each other, though node 2 is joined to both."""
    made = graph({"links": [{"from": 1, "to": 2}, {"from": 2, "to": 3}]})
    assert [route.node for route in made.routes("n1")] == [2]
    assert [(route.node, route.out) for route in made.routes("n2")] == [(1, End(0, 1)), (3, End(1, 0))]
    assert [made.label(end) for end in made.ends("n2")] == ["n2 to n1", "n2 to n3"]


@given(st.integers(2, 12), st.integers(0, 3))
def test_any_chain_of_switches_is_one_network(nodes, more):
    """However many switches lie between, every node reaches every other by its only interface, over no router."""
    names = [f"s{number}" for number in range(more + 1)]
    links = [{"from": node, "to": names[node % len(names)]} for node in range(1, nodes + 1)]
    links += [{"from": one, "to": other} for one, other in zip(names, names[1:])]
    made = graph({"switches": dict.fromkeys(names, 1500), "links": links})
    for node in made.nodes:
        routes = made.routes(f"n{node}")
        assert len(routes) == nodes - 1
        assert {(route.out, route.via) for route in routes} == {(End(node - 1, 0), None)}


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ({"links": [{"from": 1, "to": "nowhere"}]}, "neither declared nor a node.* nowhere"),
        ({"links": [{"from": 1, "to": 3}]}, "neither declared nor a node counted from 1 on: n3"),
        ({"links": [{"from": 1}]}, "lacks to"),
        ({"links": [{"from": 1, "to": 2, "rate_bits": 1}]}, "unknown key of a link rate_bits"),
        ({"rate": 1, "links": [{"from": 1, "to": 2}]}, "unknown key rate"),
        ({"switches": {"core": 1500}, "links": [{"from": 1, "to": 2}]}, "no link to core"),
        ({"links": []}, "fewer than two nodes"),
        ({"links": [{"from": 1, "to": 2}, {"from": 1, "to": 2}], "bonded": "trunk"}, "bonded is 'trunk'; there are"),
    ],
)
def test_what_is_no_path_is_refused_by_name(path, complaint):
    """Each fault in words, with the path that has it."""
    with pytest.raises(FalloffError, match=f"path planted: .*{complaint}"):
        graph({"name": "planted", **path})


WAYS = ("one_link", "ecmp_layer2", "ecmp_layer34", "bond_8023ad", "bond_balance_rr", "mptcp", "mpi_striping")
GIGE = {"name": "GigE", "rate_bit_s": 1e9, "mtu": 1500}


@given(st.integers(2, 40), st.integers(1, 3))
def test_a_star_is_a_switch_for_every_rail(nodes, rails):
    """Each node has a link to each, at the interconnect's rate, and reaches every other by whichever rail it begins."""
    made = graph(star(GIGE, nodes, rails))
    assert len(made.switches) == rails == made.rails and len(made.links) == nodes * rails
    assert {link.rates for link in made.links} == {(1e9, 1e9)}
    for rail, end in enumerate(made.ends("n1")):
        routes = made.routes("n1", end)
        assert [route.node for route in routes] == list(range(2, nodes + 1))
        assert {made.peer(route.out) for route in routes} == {list(made.switches)[rail]}


def test_graphs_that_differ_in_rates_alone_have_one_shape():
    """So that a network need not be built again for another interconnect; a hub's rate is its program's."""
    slow, fast = (graph(star({**GIGE, "rate_bit_s": rate, "mtu": mtu}, 4)) for rate, mtu in ((1e8, 1500), (1e9, 9000)))
    assert slow != fast and slow.shape == fast.shape != graph(star(GIGE, 5)).shape
    assert graph(star(GIGE, 4, 2)).shape != graph(star(GIGE, 4, 2, "802.3ad")).shape
    hubs = [graph({"hubs": {"wire": [1, 2]}, "rate_bit_s": rate}) for rate in (1e7, 1e8)]
    assert hubs[0].shape != hubs[1].shape


def test_links_bonded_by_lacp_end_at_one_switch():
    """Its partner has to be one device; those bonded round robin stay on two switches, as a Beowulf's."""
    lacp, in_turn = (graph(star(GIGE, 3, 2, bond)) for bond in ("802.3ad", "balance-rr"))
    assert {lacp.peer(end) for end in lacp.ends("n2")} == {"switch"} and len(lacp.ends("n2")) == 2
    assert len({in_turn.peer(end) for end in in_turn.ends("n2")}) == 2
    assert len({lacp.label(end) for end in lacp.all_ends()}) == len(lacp.all_ends())


@pytest.mark.parametrize("name", WAYS)
def test_every_way_needs_its_links(name):
    """Each is known; all but one link are refused where a node has one, with the remedy."""
    point = {"aggregation": name}
    assert graphs.way(point, 2).routes
    if name == "one_link":
        assert graphs.way({}, 1) == graphs.way(point, 1) == ONE_LINK
    else:
        with pytest.raises(FalloffError, match="needs two links a node"):
            graphs.way(point, 1)


def test_an_unknown_way_is_refused():
    """The message lists those that there are."""
    with pytest.raises(FalloffError, match="one_link, ecmp_layer2"):
        graphs.way({"aggregation": "trunk"}, 2)


def test_addresses_of_subnets_differ_in_their_subnet():
    """A node keeps its number in every subnet; Open MPI gets all of them only where it stripes."""
    assert [graphs.address(3, number) for number in (1, 2)] == ["10.81.0.3", "10.81.1.3"]
    assert ONE_LINK.networks == ["10.81.0.0/24"]
    assert graphs.way({"aggregation": "mpi_striping"}, 2).networks == ["10.81.0.0/24", "10.81.1.0/24"]
    assert graphs.way({"aggregation": "mptcp"}, 2).routes == EACH_LINK
