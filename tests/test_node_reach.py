"""Nodes that try to reach each other: real namespaces on a bridge, with everything that can be in the way."""

import json
import os
import subprocess
import sys

import pytest

from runners import tools
from runners.testbeds import netns, network
from runners.testbeds.graph import address, name, star

PROBE = tools.PROBES / "node_reach.py"
PORTS = ("5201", "50000")
PATIENCE_S = 1.0

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")


@pytest.fixture
def net(tmp_path):
    """Three nodes on a bridge, with a route to each other."""
    tcp = {"congestion_control": "cubic", "no_metrics_save": True, "slow_start_after_idle": False}
    buffers = {"rmem": [4096, 131072, 6291456], "wmem": [4096, 16384, 4194304]}
    made = network.build(tmp_path, star({"name": "three", "mtu": 1500}, 3), lambda tool: tool)
    made.configure({**tcp, **buffers}, dict.fromkeys(("tso", "gso", "gro"), True), 1500)
    yield made
    made.demolish()


def ip(space, *words):
    netns.run([netns.Invocation(space, ["ip", *words])])


def meet(net, patience_s=PATIENCE_S):
    """What each node says of its network, by its name."""
    addresses = {name(node): address(node) for node in (1, 2, 3)}
    networks = json.dumps({"gige": addresses, "elsewhere": {"n1": "192.0.2.1"}})
    words = [sys.executable, "-", networks, str(patience_s), *PORTS]
    runs = [
        subprocess.Popen([*netns.inside(space), *words], stdin=PROBE.open(), stdout=subprocess.PIPE, text=True)
        for space in map(net.space, addresses)
    ]
    said = [json.loads(run.communicate(timeout=30)[0]) for run in runs]
    assert all(set(networks) == {"gige"} for networks in said)
    return {name: networks["gige"] for name, networks in zip(addresses, said)}


def failures(met):
    """(visitor, visited, port, reason) of each visit that failed."""
    return {
        (visitor, visited, port, reason)
        for visitor, said in met.items()
        for visited, visit in said["others"].items()
        for port, reason in visit["ports"].items()
        if reason
    }


def test_all_meet(net):
    """Every node reaches the two others at every port; on one machine all clocks are the same."""
    met = meet(net, patience_s=20)
    assert failures(met) == set() and [said["taken"] for said in met.values()] == [[], [], []]
    for name, said in met.items():
        assert set(said["others"]) == {"n1", "n2", "n3"} - {name}
        for visit in said["others"].values():
            assert set(visit["ports"]) == set(PORTS)
            assert abs(visit["offset_s"]) <= visit["round_trip_s"] / 2 + 1e-5


def test_a_closed_port_is_named(net):
    """A node that refuses what comes in at one port is not reached there by anybody, and at the other it is."""
    closed = ("iif", *net.devices("n2"), "ipproto", "tcp", "dport", PORTS[0], "prohibit")
    for words in (("add", "pref", "2", "lookup", "local"), ("del", "pref", "0"), ("add", "pref", "1", *closed)):
        ip(net.space("n2"), "rule", *words)
    assert {failure[:3] for failure in failures(meet(net))} == {("n1", "n2", PORTS[0]), ("n3", "n2", PORTS[0])}


def test_a_port_of_another_program_is_named(net):
    """A server that was there before keeps its port, and the node says so."""
    script = f"import socket, time; s = socket.create_server(('', {PORTS[0]})); print(flush=True); time.sleep(60)"
    argv = [*netns.inside(net.space("n2")), sys.executable, "-c", script]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as server:
        try:
            server.stdout.readline()
            assert [said["taken"] for said in meet(net).values()] == [[], [int(PORTS[0])], []]
        finally:
            server.kill()


def test_a_switch_with_a_smaller_mtu_is_found(net):
    """Nodes that send larger frames than a port passes on connect, and then nothing arrives: that is said."""
    for node in (1, 2, 3):
        space, (device,) = net.space(name(node)), net.devices(name(node))
        ip(space, "link", "set", device, "mtu", "9000")
        netns.run([netns.Invocation(space, ["ethtool", "-K", device, "tso", "off", "gso", "off"])])
    met = meet(net)
    assert {reason for *_, reason in failures(met)} == {"full frames are lost"}
