"""The testbed on a user's cluster: its command lines, whose bytes count, and with an ssh that goes
nowhere all of it.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from local_ssh import LocalSsh
from undisturbed import within

from runners.probes import node_state
from runners.records.record import Command, FalloffError, Trial, judge
from runners.testbeds import cluster, remote
from runners.testbeds.cluster import Place

HOSTS = ["n1", "n2", "n3"]
TRIAL = Trial("t", "point", "any", 1, 1, {"interconnect": "gige"})
GIGE = {"subnet": "10.1.0.0/24"}

# Command lines: a cluster on paper, whose programs are in /opt.
XHPL = Command(("xhpl",), ranks=4, ranks_per_node=2)
PAPER = {"ranks_per_node": 2, "threads": 8, "binding": ["--bind-to", "numa"], "networks": {}}


def words_of(command, launcher="ssh", modules=(), network=GIGE, **description):
    """The command line on such a cluster."""
    testbed = cluster.OnCluster(
        {**PAPER, "launcher": launcher, "hosts": HOSTS, "modules": list(modules), **description},
        {"gige": network},
        "/tmp/folder",
        "/opt/mpirun",
        places={f"n{n}": {"gige": Place("eth1", f"10.1.0.{n}")} for n in (1, 2, 3)},
        paths={tool: f"/opt/{tool}" for tool in ("xhpl", "iperf3")},
    )
    return testbed.argv(command, HOSTS, "gige")


def after(option, words):
    """The words that follow each occurrence of an option."""
    return [word for previous, word in zip(words, words[1:]) if previous == option]


def parameters(words):
    """Open MPI's parameters in a command line."""
    pairs = zip(words, words[1:], words[2:])
    return {name: value for option, name, value in pairs if option == "--mca"}


def test_mpirun_is_started_here_over_the_hosts():
    """Under a guard, by its path, with so many slots on the first hosts as there are processes on
    each.
    """
    words = words_of(XHPL)
    assert words[1].endswith("guard.py") and "/opt/mpirun" in words and words[-1] == "/opt/xhpl"
    assert after("--host", words) == ["n1:2,n2:2"] and after("-np", words) == ["4"]
    assert after("--wdir", words) == ["/tmp/folder"] and "--report-bindings" in words
    assert parameters(words)["oob_tcp_keepalive_time"] == "30"  # a lost host is noticed
    assert parameters(words)["plm_rsh_agent"] == " ".join(remote.ssh({}))
    in_job = parameters(words_of(XHPL, "slurm"))
    assert not [name for name in in_job if name.startswith("plm")]  # mpirun asks Slurm by itself
    binding = ["--map-by", "ppr:1:numa", "--bind-to", "numa"]  # mpirun takes one policy
    assert after("--map-by", words_of(XHPL, binding=binding)) == ["ppr:1:numa"]
    for each, threads in ((1, 16), (2, 8), (32, 1)):  # all programs use the same cores
        words = words_of(replace(XHPL, ranks=each, ranks_per_node=each))
        assert f"OMP_NUM_THREADS={threads}" in after("-x", words)
        assert after("--bind-to", words) == (["numa"] if each == 2 else ["none"])
    with_modules = words_of(XHPL, modules=("openmpi/4",))
    assert with_modules[with_modules.index("1") :][:3] == ["1", "openmpi/4", "/opt/mpirun"]
    assert {"PATH", "LD_LIBRARY_PATH"} <= set(after("-x", with_modules))


def test_the_transport_is_pinned():
    """TCP on the network that was asked for, or the network's own words."""
    pinned = parameters(words_of(XHPL))
    assert pinned["pml"] == "ob1" and "tcp" in pinned["btl"]
    assert pinned["btl_tcp_if_include"] == "10.1.0.0/24"
    own = {**GIGE, "mpi": ["--mca", "pml", "ucx"], "environment": {"UCX_TLS": "rc"}}
    words = words_of(XHPL, network=own)
    assert parameters(words)["pml"] == "ucx" and "btl" not in parameters(words)
    assert "UCX_TLS=rc" in after("-x", words)


def test_other_programs_run_on_their_host_under_a_guard():
    """With the addresses of nodes on the network that was asked for, and the port that is waited
    for.
    """
    argv = ("iperf3", "--server", "--bind", "{node2}")
    words = words_of(Command(argv, node=2, background=True, listens=5201), "slurm")
    assert "--nodelist=n2" in words
    guard = "python3 /tmp/folder/guard.py 60 /tmp/folder 5201"
    there = " ".join(words[words.index("--") + 1 :])
    assert there == f"{guard} /opt/iperf3 --server --bind 10.1.0.2"


def state(times=1, ports=None, **interfaces):
    """A node's state as node_state.py tells of it: interfaces with addresses, what they sent so
    often, and what is below them; RDMA ports with what they sent and their link layer."""
    keys, below = ("addresses", "sent", "lower"), (None,)
    told = {name: dict(zip(keys, (*its, *below))) for name, its in interfaces.items()}
    rdma = {
        name: {"sent": sent, "link_layer": layer} for name, (sent, layer) in (ports or {}).items()
    }
    for counted in (*told.values(), *rdma.values()):
        counted.update(sent=times * counted["sent"], received=0, mtu=1500)
    return {"hostname": "n1", "interfaces": told, "rdma": rdma}


IP = ["10.1.0.1/24"]
OTHER = ["192.0.2.1/24"]


def test_a_node_is_found_by_subnet_or_interface():
    """Its interface and its address there, of several; off the network it is named, with what was
    looked for.
    """
    node = state(
        eth0=([*OTHER, "2001:db8::1/64"], 0), eth1=(["198.51.100.1/24", *IP], 0), ib0=([], 0)
    )
    assert cluster.place(node, GIGE) == Place("eth1", "10.1.0.1")
    assert cluster.place(node, {"interface": "eth0"}) == Place("eth0", "192.0.2.1")
    assert cluster.place(node, {"subnet": "2001:db8::/32"}) == Place("eth0", "2001:db8::1")
    for key, value in (("subnet", "10.2.0.0/24"), ("interface", "ib0"), ("interface", "eth9")):
        with pytest.raises(FalloffError, match=f"n1 has no address on {key} {value}"):
            cluster.place(node, {key: value})


RDMA = {**GIGE, "rdma": "mlx5_0:1"}
# What one sends the other counts too; a member of a bond has no address.
VLAN = {"eth1": (OTHER, 1000), "eth1.5": (IP, 1000, "eth1"), "member": ([], 1000)}


@pytest.mark.parametrize(
    ("network", "at", "interfaces", "layer", "sent", "elsewhere"),
    [
        (GIGE, "eth1", {"lo": ([], 9e9), "eth0": (OTHER, 20), "eth1": (IP, 100)}, "", 100, 20),
        (GIGE, "eth1", VLAN, "", 1000, 0),
        (GIGE, "eth1.5", VLAN, "", 1000, 0),
        (RDMA, "ib0", {"ib0": (IP, 50)}, "InfiniBand", 1000, 0),
        (RDMA, "ib0", {"ib0": (IP, 50)}, "Ethernet", 1050, 0),
    ],
)
def test_bytes_are_those_of_the_network_that_was_asked_for(
    network, at, interfaces, layer, sent, elsewhere
):
    """Between two moments; the loopback belongs to no network, and a VLAN and what is below it are
    not two. RDMA bypasses the interface, but an InfiniBand port counts what its IP
    interface sends."""
    ports = {"mlx5_0:1": (1000, layer)} if layer else {}
    before, then = (state(times, ports, **interfaces) for times in (1, 2))
    found = cluster.carried(before, then, network, Place(at, "10.1.0.1"))
    assert found == {"sent": sent, "received": 0, "elsewhere": elsewhere}


def test_the_bytes_of_a_port_that_is_not_there_are_unknown():
    """And no zero."""
    node = state(1, {"mlx5_9:1": (0, "Ethernet")}, ib0=(IP, 0))
    with pytest.raises(FalloffError, match="mlx5_0:1; there are mlx5_9:1"):
        cluster.carried(node, node, RDMA, Place("ib0", "10.1.0.1"))


@pytest.mark.parametrize(
    ("sent", "elsewhere", "verdict"),
    [
        (100e6, 0.2e6, "gige"),  # with what ssh and monitoring send besides
        (0, 100e6, "2e+08"),  # all of it elsewhere
        (100e6, 10e6, "2e+07"),  # more than one in twenty
        (0.01e6, 0.3e6, "None"),  # a barrier's bytes are lost among those of ssh
    ],
)
def test_the_network_that_carried_the_bytes_is_named(sent, elsewhere, verdict):
    """Or, in words, how much went elsewhere."""
    assert str(cluster.used("gige", [{"sent": sent, "elsewhere": elsewhere}] * 2)).endswith(verdict)


# Three hosts that are all this machine.
@pytest.fixture
def ssh(tmp_path, monkeypatch):
    """An ssh to this machine by any name."""
    return LocalSsh(tmp_path / "bin", monkeypatch)


@pytest.fixture
def description(tmp_path):
    """Three hosts, on the network of this machine's first interface with an address."""
    addressed = [row for row in node_state.interfaces().items() if row[1]["addresses"]]
    if not addressed:
        pytest.skip("this machine has no address")
    name, its = addressed[0]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return {
        "name": "mine",
        "kind": "cluster",
        "launcher": "ssh",
        "hosts": HOSTS,
        "nodes": 3,
        "python": sys.executable,
        "scratch": str(scratch),
        "networks": {"gige": {"interface": name, "mtu": its["mtu"]}},
    }


@pytest.fixture
def opened(ssh, description):
    """The testbed, open."""
    with cluster.open_testbed(description, description["networks"]) as testbed:
        testbed.require(["cat", "echo", "pwd", "python3", "sleep", "true"])
        yield testbed


def outcome(transcript):
    """What the engine makes of it."""
    return judge(transcript, lambda transcript: {})


def test_programs_run_on_their_nodes_and_settings_are_read_back(opened, description):
    """Each in the cluster's folder with its files, and the addresses of the nodes in its words."""
    address, text = opened.places["n2"]["gige"].address, "two\nlines 'here'\n"
    transcript = opened.run(
        TRIAL,
        [
            Command(("echo", "{node2}", "two words"), node=3),
            Command(("pwd",)),
            Command(("cat", "HPL.dat"), node=2, files={"HPL.dat": text}),
        ],
    )
    outputs = [execution.stdout for execution in transcript.executions]
    assert outputs == [f"{address} two words\n", f"{opened.folder}\n", text]
    assert "n3" in transcript.executions[0].argv
    assert outcome(transcript).status == "ok" and transcript.evidence == "measured"
    assert transcript.requested == {"mtu": description["networks"]["gige"]["mtu"]}
    assert set(transcript.effective) == {"mtu", "congestion_control", "rmem", "wmem"}


def test_another_mtu_than_stated_is_invalid(ssh, description):
    """A run on other settings than the description's must not be used; no folder is left."""
    description["networks"]["gige"]["mtu"] += 1
    with cluster.open_testbed(description, description["networks"]) as testbed:
        testbed.require(["true"])
        assert outcome(testbed.run(TRIAL, [Command(("true",))])).status == "invalid"
    assert not list(Path(description["scratch"]).iterdir())


def test_a_server_is_up_before_its_client_and_gone_after_the_trial(opened):
    """The client connects at once; afterwards the port is free again, also for the next trial."""
    serve = (
        "import socket, time; time.sleep(0.3); s = socket.create_server(('', 47311)); "
        "time.sleep(60)"
    )
    connect = "import socket; socket.create_connection(('127.0.0.1', 47311)); print('connected')"
    commands = [
        Command(("python3", "-c", serve), node=2, background=True, listens=47311),
        Command(("python3", "-c", connect), node=1),
    ]
    for _ in range(2):
        transcript = opened.run(TRIAL, commands)
        assert outcome(transcript).status == "ok", transcript
        assert [execution.exit_code for execution in transcript.executions] == [0, 0]


def test_a_program_beyond_its_limit_is_ended_on_its_node(opened):
    """And is told from one that failed."""
    (execution,) = opened.run(TRIAL, [Command(("sleep", "621.5"), timeout_s=1)]).executions
    assert execution.timed_out and execution.exit_code is None and not asleep()


def test_a_tool_that_is_missing_names_its_remedy(opened):
    """All that is missing is told before a campaign begins."""
    remedy = r"no-such-tool is no program on n1, n2, n3.*\[tools\].*\nneither"
    with pytest.raises(FalloffError, match=remedy):
        opened.require(["true", "fanout", "no-such-tool", "neither"])


def test_with_a_node_lost_the_rest_goes_on(opened, ssh):
    """What needs no more nodes than are left runs; the rest is unavailable, and the node named."""
    ssh.lose("n2")
    two = opened.run(TRIAL, [Command(("echo", "here"), node=2)])
    three = outcome(opened.run(TRIAL, [Command(("echo", "here"), node=3)]))
    assert outcome(two).status == "ok" and "n3" in two.executions[0].argv
    assert three.status == "unavailable" and "n2 is lost" in three.reason
    told = json.loads(json.dumps(opened.provenance()))
    assert {host: node["node"] for host, node in told["nodes"].items()} == {"n1": 1, "n3": 3}
    assert told["nodes"]["n1"]["networks"]["gige"]["address"] and list(told["lost"]) == ["n2"]


def test_a_node_lost_during_a_trial_is_named(opened, ssh):
    """The trial is no measurement, though its program ended well."""
    (ssh.folder / "lose").write_text(f"#!/bin/sh\ntouch {ssh.folder}/n1.down\n")
    (ssh.folder / "lose").chmod(0o755)
    opened.require(["lose"])
    failed = outcome(opened.run(TRIAL, [Command(("lose",))]))
    assert failed.status == "fault" and "n1 is lost" in failed.reason


def test_a_node_that_was_gone_meanwhile_is_lost(opened):
    """It answers again, but what was put there went with the connection."""
    shutil.rmtree(opened.folder)
    failed = outcome(opened.run(TRIAL, [Command(("true",))]))
    assert failed.status == "unavailable" and "connection that kept it was lost" in failed.reason


def test_a_host_off_the_network_is_told_at_once(ssh, description):
    """It would fail every trial; so is that no host answers."""
    description["networks"]["gige"] = {"subnet": "203.0.113.0/30"}
    with pytest.raises(FalloffError, match="no address on subnet 203.0.113.0/30"):
        with cluster.open_testbed(description, description["networks"]):
            pass
    for host in HOSTS:
        ssh.lose(host)
    with pytest.raises(FalloffError, match="n3 is lost: ssh: connect to host n3"):
        with cluster.open_testbed(description, description["networks"]):
            pass


KILLED = """\
import json, sys
from runners.records.record import Command, Trial
from runners.testbeds import cluster
description = json.loads(sys.argv[1])
with cluster.open_testbed(description, description["networks"]) as testbed:
    testbed.require(["sleep"])
    trial = Trial("t", "point", "any", 1, 1, {"interconnect": "gige"})
    asleep = ("sleep", "621.5")
    background = Command(asleep, node=2, background=True)
    testbed.run(trial, [background, Command(asleep, ranks=2, timeout_s=600)])
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_outlives_the_program(ssh, description, how):
    """Interrupted or killed in a trial, it leaves no program and no folder on any host."""
    argv = [sys.executable, "-c", KILLED, json.dumps(description)]
    complaints = ssh.folder / "complaints"
    with complaints.open("w") as errors:
        running = subprocess.Popen(argv, stderr=errors)
    try:
        assert within(120, lambda: len(asleep()) >= 3), complaints.read_text()
    finally:
        os.kill(running.pid, how)
        running.wait(60)
    scratch = Path(description["scratch"])
    assert within(120, lambda: not asleep() and not list(scratch.iterdir())), asleep()


def asleep() -> list[str]:
    """The programs of a trial that run."""
    listing = subprocess.run(["pgrep", "-f", "sleep 621[.]5"], capture_output=True, text=True)
    return listing.stdout.split()
