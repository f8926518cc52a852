"""From a path's table to a graph: links, addresses' routes, and what is refused."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.record import FalloffError
from runners.testbeds.topology import End, Link, graph

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
    ],
)
def test_what_is_no_path_is_refused_by_name(path, complaint):
    """Each fault in words, with the path that has it."""
    with pytest.raises(FalloffError, match=f"path planted: .*{complaint}"):
        graph({"name": "planted", **path})
