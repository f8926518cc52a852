"""What Ethernet, the testbed's links and the shipped paths can carry."""

import numpy as np
import pytest
from synthetic import campaign

from analysis.dataset.capacity import between, limits, way
from analysis.dataset.wire import message_wire_bytes, packet_limit, tcp_payload, wire_limit
from analysis.descriptions.networks import network_paths
from analysis.descriptions.toml_tables import plain
from analysis.subjects.hpl_scaling import networks

KNOWN_PATHS = plain(network_paths())


def test_what_ethernet_leaves():
    """TCP with timestamps, the usual number of the smallest packets, and messages in full frames
    and a rest.
    """
    assert tcp_payload(1500) == 1448
    assert wire_limit(1e9, 1500) == pytest.approx(941.5e6, rel=1e-4)
    assert wire_limit(1e9, 9000) == pytest.approx(990.0e6, rel=1e-3)
    assert int(packet_limit(1e9, 60)) == 1488095
    assert message_wire_bytes(8192, 1500, 40) == 8192 + 6 * (40 + 38)
    assert message_wire_bytes(1461, 1500, 40) == 1461 + 2 * 78


def test_the_way_is_the_slowest_link_and_all_delays():
    """Through a bridge of 3 Gbit/s between ports of 10, and back along the asymmetric path."""
    bridged = way(KNOWN_PATHS["two_switches_3g"], 1, 5)
    assert (bridged.rate, len(bridged.hops)) == (3e9, 3)
    assert way(KNOWN_PATHS["two_switches_3g"], 1, 2).rate == 10e9
    assert way(KNOWN_PATHS["asymmetric"], 2, 1).rate == 470e6
    assert way(KNOWN_PATHS["long_20ms"], 1, 2).round_trip == pytest.approx(0.04)
    assert way(KNOWN_PATHS["crossover_unshaped"], 1, 2).rate == np.inf
    # Four receivers of 1 Gbit/s behind a bridge of 3 have 4 by their own links and 3 by the bridge.
    found = limits(KNOWN_PATHS["fanout_3g"], [(1, node) for node in (2, 3, 4, 5)])
    assert found.own / found.shared == pytest.approx(4 / 3)


def test_what_lies_between_nodes_is_on_any_of_the_shortest_ways():
    """One wire, two with what joins them, and both of two bonded ones; nothing between nodes on one
    cable.
    """
    assert between(KNOWN_PATHS["local_wire_10m"], 1, 8) == {"wire_1"}
    assert between(KNOWN_PATHS["remote_router_10m"], 1, 8) == {"wire_1", "core", "wire_7"}
    assert between(KNOWN_PATHS["bonded_10m"], 2, 9) == {"wire_2a", "wire_2b"}
    assert len(between(KNOWN_PATHS["bonded_switch_10m"], 1, 8)) == 6
    assert between(KNOWN_PATHS["crossover"], 1, 2) == set()
    # Nodes pass nothing on.
    chain = {"mtu": 1500, "links": [{"from": 1, "to": 2}, {"from": 2, "to": 3}]}
    with pytest.raises(ValueError, match="no way leads from 1 to 3"):
        way(chain, 1, 3)


def test_a_network_is_link_bound_when_all_of_its_links_are():
    """One slow link makes it host-bound, one that was not measured says nothing; no limit is the
    host's.
    """
    dataset = campaign(blocks=1)
    table = networks(dataset)
    assert table.limit.to_dict() == {
        "gige": "link-bound", "10gige": "link-bound", "unshaped": "host-bound"
    }  # fmt: skip
    assert table.goodput["10gige"] == pytest.approx(9.2e9) and np.isnan(table.wire_limit.unshaped)
    of_link = (dataset.interconnect == "10gige") & (dataset.sender == 3)
    for goodput, limit in ((9.0e9, "host-bound"), (np.nan, "link-bound")):
        changed = dataset.assign(goodput=dataset.goodput.where(~of_link, goodput))
        assert networks(changed).limit["10gige"] == limit
    assert networks(dataset.isel(trial=dataset.role != "survey")).empty
