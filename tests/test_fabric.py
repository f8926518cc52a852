"""The fabric that was asked for is the fabric that was used."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.record import FalloffError
from runners.testbeds import fabric


def interface(*addresses, sent=0, received=0, lower=None, mtu=1500):
    """An interface as node_state.py tells of it."""
    return {
        "addresses": list(addresses),
        "mtu": mtu,
        "lower": lower,
        "sent": sent,
        "received": received,
    }


def state(rdma=None, **interfaces):
    """A node's state."""
    return {"hostname": "n1", "interfaces": interfaces, "rdma": rdma or {}}


def port(sent, link_layer="InfiniBand"):
    """An RDMA port that sent so much and received nothing."""
    return {"sent": sent, "received": 0, "link_layer": link_layer}


def two_networks(gige, management):
    """A node that has sent so much on either network."""
    return state(
        lo=interface(sent=9e9),
        eth0=interface("192.0.2.1/24", sent=management),
        eth1=interface("10.1.0.1/24", sent=gige),
    )


GIGE = {"subnet": "10.1.0.0/24"}
AT_ETH1 = fabric.Place("eth1", "10.1.0.1")


def test_a_node_is_found_by_subnet_or_interface():
    """Its interface and its address there, of several."""
    node = state(
        eth0=interface("192.0.2.1/24", "2001:db8::1/64"),
        eth1=interface("198.51.100.1/24", "10.1.0.1/24"),
        ib0=interface(),
    )
    assert fabric.place(node, GIGE) == AT_ETH1
    assert fabric.place(node, {"interface": "eth0"}) == fabric.Place("eth0", "192.0.2.1")
    assert fabric.place(node, {"subnet": "2001:db8::/32"}) == fabric.Place("eth0", "2001:db8::1")


@pytest.mark.parametrize(
    "network", [{"subnet": "10.2.0.0/24"}, {"interface": "ib0"}, {"interface": "eth9"}]
)
def test_a_node_off_the_network_is_named(network):
    """With what was looked for."""
    with pytest.raises(
        FalloffError, match=f"n1 has no address on .*{next(iter(network.values()))}"
    ):
        fabric.place(state(eth1=interface("10.1.0.1/24"), ib0=interface()), network)


def test_bytes_are_those_between_two_moments():
    """Of the network that was asked for, and apart from it; the loopback belongs to no network."""
    found = fabric.carried(two_networks(5, 7), two_networks(105, 27), GIGE, AT_ETH1)
    assert found == {"sent": 100, "received": 0, "elsewhere": 20}


def test_rdma_is_counted_by_its_port():
    """It bypasses the interface; an InfiniBand port counts what its IP interface sends, one of Ethernet does not."""
    network, at = {"subnet": "10.1.0.0/24", "rdma": "mlx5_0:1"}, fabric.Place("ib0", "10.1.0.1")
    for link_layer, sent in (("InfiniBand", 1000), ("Ethernet", 1050)):
        before, after = (
            state({"mlx5_0:1": port(total, link_layer)}, ib0=interface("10.1.0.1/24", sent=by_ip))
            for total, by_ip in ((0, 0), (1000, 50))
        )
        assert fabric.carried(before, after, network, at)["sent"] == sent


def test_a_port_that_is_not_there_is_no_zero():
    """Its bytes are unknown, so that nothing can be said."""
    with pytest.raises(FalloffError, match="mlx5_9:1; there are mlx5_0:1"):
        node = state({"mlx5_0:1": port(0)}, eth1=interface("10.1.0.1/24"))
        fabric.carried(node, node, {**GIGE, "rdma": "mlx5_9:1"}, AT_ETH1)


@pytest.mark.parametrize("asked", ["eth1", "eth1.5"])
def test_a_vlan_and_what_is_below_it_are_not_two_networks(asked):
    """What one sends the other counts too, and so do members of a bond, which have no address."""
    before, after = (
        state(**{
            "eth1": interface("192.0.2.1/24", sent=sent),
            "eth1.5": interface("10.1.0.1/24", sent=sent, lower="eth1"),
            "slave": interface(sent=sent),
        })
        for sent in (0, 1000)
    )  # fmt: skip
    found = fabric.carried(before, after, {"interface": asked}, fabric.Place(asked, "10.1.0.1"))
    assert found == {"sent": 1000, "received": 0, "elsewhere": 0}


MB = 1_000_000


@pytest.mark.parametrize(
    ("sent", "elsewhere", "verdict"),
    [
        (100 * MB, 0.2 * MB, "gige"),  # with what ssh and monitoring send besides
        (0, 100 * MB, "2e+08"),  # all of it elsewhere
        (100 * MB, 10 * MB, "2e+07"),  # more than one in twenty
        (0.01 * MB, 0.3 * MB, "None"),  # a barrier's bytes are lost among those of ssh
    ],
)
def test_the_network_that_carried_the_bytes_is_named(sent, elsewhere, verdict):
    """Or, in words, how much went elsewhere."""
    used = str(fabric.used("gige", [{"sent": sent, "received": sent, "elsewhere": elsewhere}] * 2))
    assert used.endswith(verdict)


@given(st.floats(0, 1e12), st.floats(0, 1e12), st.integers(1, 100))
def test_more_bytes_elsewhere_never_make_it_the_network(sent, elsewhere, nodes):
    """What is invalid stays so with more bytes on other networks, and most bytes elsewhere are never valid."""

    def used(bytes_elsewhere):
        return fabric.used("gige", [{"sent": sent, "elsewhere": bytes_elsewhere}] * nodes)

    assert used(elsewhere) in ("gige", None) or used(2 * elsewhere + 1) not in ("gige", None)
    assert not (elsewhere > max(sent, 2 * MB) and used(elsewhere) == "gige")
