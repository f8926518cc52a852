"""The scripts that a node runs for the doctor, as it runs them: their text on standard input,
nothing installed.
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from wired import EMULATED, needs_network

from runners import executables
from runners.probes import node_state
from runners.testbeds import netns, network
from runners.testbeds.graph import address, name, star


def answer(script, *words):
    """What a script prints, given to a bare interpreter on standard input."""
    argv = [sys.executable, "-I", "-S", "-", *words]
    with (executables.PROBES / script).open() as stdin:
        done = subprocess.run(argv, stdin=stdin, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_facts_of_this_machine():
    """Python, processors and memory as they are here; the first candidate that is there, with its
    digest.
    """
    candidates = {
        "python": ["/nowhere/python", sys.executable],
        "absent": ["/nowhere/xhpl", "no-such-program"],
    }
    facts = answer("node_state.py", json.dumps(candidates))
    assert facts["python"] == platform.python_version()
    assert facts["processors"] == len(os.sched_getaffinity(0))
    assert facts["memory_bytes"] > 0
    digest = hashlib.sha256(Path(sys.executable).read_bytes()).hexdigest()[:12]
    assert facts["tools"] == {"python": {"path": sys.executable, "digest": digest}, "absent": None}


def test_an_old_python_only_tells_its_version(tmp_path, monkeypatch, capsys):
    """The doctor names it; a campaign, whose probes have a folder, loses that node with the
    reason.
    """
    monkeypatch.setattr(sys, "version_info", (3, 8))
    node_state.main("{}")
    assert json.loads(capsys.readouterr().out) == {"python": platform.python_version()}
    with pytest.raises(SystemExit, match="Python 3.9 or newer is needed"):
        node_state.main("{}", str(tmp_path))


def test_links_and_ports_are_read(tmp_path, monkeypatch):
    """Rates in bit/s; a link that is down, a virtual one, and one that refuses an answer have none.
    RDMA counts words of four bytes."""
    texts = {
        "class/net/eth0/speed": "10000\n",
        "class/net/eth1/speed": "-1\n",
        "class/net/veth0/speed": "",
        "class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
        "class/infiniband/mlx5_0/ports/1/counters/port_xmit_data": "10\n",
        "class/infiniband/mlx5_0/ports/1/counters/port_rcv_data": "7\n",
        "class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand\n",
    }
    for file, text in texts.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    monkeypatch.setattr(node_state, "_SYS", tmp_path)
    facts = node_state.state({})
    assert facts["link_bit_s"] == {"eth0": 10**10, "eth1": None, "veth0": None}
    assert facts["rdma_state"] == {"mlx5_0:1": "4: ACTIVE"}
    assert facts["rdma"] == {"mlx5_0:1": {"sent": 40, "received": 28, "link_layer": "InfiniBand"}}
    assert facts["interfaces"]["lo"]["mtu"] >= 1500


# Nodes that try to reach each other: real namespaces on a bridge, with everything that can be in
# the way.
PORTS = ("5201", "50000")


@pytest.fixture
def net(tmp_path):
    """Three nodes on a bridge, with a route to each other."""
    made = network.build(tmp_path, star({"mtu": 1500}, 3), lambda tool: tool)
    made.configure(EMULATED["tcp"], dict.fromkeys(EMULATED["offloads"], False), 1500)
    yield made
    made.demolish()


def ip(space, *words):
    netns.run([netns.Invocation(space, ["ip", *words])])


def meet(net, patience_s=1.0):
    """What each node says of its network, by its name."""
    addresses = {name(node): address(node) for node in (1, 2, 3)}
    networks = json.dumps({"gige": addresses, "elsewhere": {"n1": "192.0.2.1"}})
    words = [sys.executable, "-", networks, str(patience_s), *PORTS]
    runs = []
    for node in addresses:
        argv, probe = [*netns.inside(net.space(node)), *words], executables.PROBES / "node_reach.py"
        with probe.open() as stdin:
            runs.append(subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE, text=True))
    answers = [json.loads(run.communicate(timeout=30)[0]) for run in runs]
    assert all(set(networks) == {"gige"} for networks in answers)
    return {node: networks["gige"] for node, networks in zip(addresses, answers)}


def failures(met):
    """(visitor, visited, port, reason) of each visit that failed."""
    return {
        (visitor, visited, port, reason)
        for visitor, found in met.items()
        for visited, visit in found["others"].items()
        for port, reason in visit["ports"].items()
        if reason
    }


@needs_network
def test_who_is_not_reached_is_named(net):
    """All meet at every port, until one refuses what comes in at one: nobody reaches it there, and
    at the other all do.
    """
    met = meet(net, patience_s=20)
    assert failures(met) == set() and [found["taken"] for found in met.values()] == [[], [], []]
    for node, found in met.items():
        assert set(found["others"]) == {"n1", "n2", "n3"} - {node}
        assert all(set(visit["ports"]) == set(PORTS) for visit in found["others"].values())
    closed = ("iif", *net.devices("n2"), "ipproto", "tcp", "dport", PORTS[0], "prohibit")
    ip(net.space("n2"), "rule", "add", "pref", "2", "lookup", "local")
    ip(net.space("n2"), "rule", "del", "pref", "0")
    ip(net.space("n2"), "rule", "add", "pref", "1", *closed)
    failed = {failure[:3] for failure in failures(meet(net))}
    assert failed == {("n1", "n2", PORTS[0]), ("n3", "n2", PORTS[0])}


@needs_network
def test_a_switch_with_a_smaller_mtu_is_found(net):
    """Nodes that send larger frames than a port passes on connect, and then nothing arrives: that
    is said.
    """
    for node in ("n1", "n2", "n3"):
        ip(net.space(node), "link", "set", *net.devices(node), "mtu", "9000")
    assert {reason for *_, reason in failures(meet(net))} == {"full frames are lost"}
