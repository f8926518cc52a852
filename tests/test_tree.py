"""HPL on a simulated network of two levels: the same messages as on one switch, and what lies in their way."""

import xml.etree.ElementTree as xml

import pytest
from test_simulated import needs_simgrid, simulate, trial

import experiment
from runners import placement, runner_named
from runners.record import FalloffError
from runners.testbeds import modelled, simulated, smpi

LINK = {"bandwidth": {"value": 110e6, "low": 90e6}, "latency": {"value": 40e-6}}
TABLE = {
    "nodes": 960, "node_bandwidth": 110e6, "nodes_per_edge": 4, "uplinks": 1, "uplink_bandwidth": 110e6,
    "edges_per_card": 2, "latency": 40e-6,
}  # fmt: skip
TREES = {
    "one_switch": LINK,
    "wide": {**LINK, "tree": {**TABLE, "uplink_bandwidth": 440e6}},
    "wide_cards": {**LINK, "tree": {**TABLE, "uplinks": 4, "card_bandwidth": 1e10, "core_bandwidth": 1e10}},
    "narrow": {**LINK, "tree": TABLE},
    "narrow_core": {**LINK, "tree": {**TABLE, "core_bandwidth": 50e6}},
}
GRID = {"N": 2048, "P": 2, "Q": 4, "nodes": 8, "random_seed": 3}


@pytest.fixture(scope="module")
def testbed():
    """The Smith cluster's nodes on each of the networks."""
    machine = {**experiment.read_testbed("smith"), "network": TREES}
    with simulated.open_testbed(machine, TREES) as opened:
        yield opened


@needs_simgrid
def test_messages_are_the_same_and_the_network_decides_their_time(testbed):
    """Every node sends the same bytes; without oversubscription in the same time as over one switch."""
    runs = {name: simulate(testbed, interconnect=name, **GRID) for name in TREES}
    sent = {name: transcript.counters["bytes_sent"][:8] for name, (_, transcript) in runs.items()}
    assert all(bytes_sent == sent["one_switch"] for bytes_sent in sent.values()) and min(sent["one_switch"]) > 0
    rate = {name: readings["hpl_rate"] for name, (readings, _) in runs.items()}
    assert rate["wide"] == pytest.approx(rate["one_switch"], rel=1e-3)
    assert rate["wide_cards"] == pytest.approx(rate["one_switch"], rel=1e-3)
    assert rate["narrow"] < 0.97 * rate["one_switch"] and rate["narrow_core"] < 0.9 * rate["narrow"]


@needs_simgrid
def test_a_placement_moves_ranks_to_other_nodes(testbed):
    """The same ranks send the same, now from other nodes; over one switch in the same time, on a tree in another."""
    in_order, shuffled = (
        {name: simulate(testbed, interconnect=name, placement=placed, **GRID) for name in ("one_switch", "narrow")}
        for placed in ("in_order", "shuffled")
    )
    sent = [runs["narrow"][1].counters["bytes_sent"][:8] for runs in (in_order, shuffled)]
    order = placement.order(8, "shuffled", "3")
    assert sent[0] != sent[1] == [sent[0][order.index(node)] for node in range(1, 9)]
    rate = [{name: readings["hpl_rate"] for name, (readings, _) in runs.items()} for runs in (in_order, shuffled)]
    assert rate[0]["one_switch"] == rate[1]["one_switch"] and rate[1]["narrow"] < 0.99 * rate[0]["narrow"]


@needs_simgrid
def test_an_unknown_placement_is_a_fault(testbed):
    """It is named, and nothing runs."""
    asked = trial(interconnect="narrow", placement="nearby")
    transcript = testbed.run(asked, runner_named("hpl").commands(asked.point))
    assert "placement 'nearby' is neither" in transcript.fault and not transcript.executions


def test_every_node_is_there_once_in_its_place():
    """Of 10 nodes the last edge switch has two, and the second line card one edge switch."""
    network = modelled.plain({**LINK, "tree": {**TABLE, "card_bandwidth": 1e8}})
    core = xml.fromstring(smpi.platform(10, network)).find("zone")
    zones = [[edge.get("radical") for edge in zone.findall("cluster")] for zone in core.findall("zone")]
    assert zones == [["1-4", "5-8"], ["9-10"], []]  # two line cards and the fabric
    rates = {link.get("id"): link.get("bandwidth") for link in core.iter("link")}
    uplinks, slots = ("uplink1", "uplink2", "uplink3"), ("slot1", "slot2")
    assert rates == {**dict.fromkeys(uplinks, "110000000Bps"), **dict.fromkeys(slots, "100000000Bps")}


def test_several_numbers_vary_at_once():
    """A rate of the node and both of the network, each to a number or an end of its range; a tree is none of them."""
    machine = {**experiment.read_testbed("smith"), "network": TREES}
    rates, network = modelled.model(machine, "one_switch", "latency=2e-05,bandwidth=low,dtrsm_share=0.5")
    assert (network["latency"], network["bandwidth"], rates["dtrsm_share"]) == (2e-5, 90e6, 0.5)
    described = modelled.model(machine, "one_switch")
    assert network.keys() == described[1].keys() and rates.items() - described[0].items() == {("dtrsm_share", 0.5)}
    for vary, reason in [
        ("latency=2e-05,latency=3e-05", "something twice"), ("latency=2e-05,luck=1", "'luck' is none of"),
        ("latency=2e-05,", "'' is none of"), ("none,latency=2e-05", "'none' is none of"),
    ]:  # fmt: skip
        with pytest.raises(FalloffError, match=reason):
            modelled.model(machine, "one_switch", vary)
    with pytest.raises(FalloffError, match="'tree' is none of"):
        modelled.model(machine, "narrow", "tree=1")


def test_a_varied_link_is_a_trees_link_too():
    """The node's rate and latency of the point hold on a tree, its uplinks stay."""
    machine = {**experiment.read_testbed("smith"), "network": TREES}
    _, network = modelled.model(machine, "narrow", "bandwidth=55e6,latency=2e-05")
    text = smpi.platform(8, network)
    assert 'bw="55000000Bps" lat="1e-05s"' in text and '<link id="uplink1" bandwidth="110000000Bps"' in text
