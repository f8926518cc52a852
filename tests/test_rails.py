"""Two links a node on this machine, for real: which of them carries the bytes, by each way of using both."""

import shutil
import subprocess
from pathlib import Path

import pytest
import users

import experiment
from analysis import paths
from runners import hpl
from runners.record import Command, Trial, mismatch
from runners.testbeds import network, settings
from runners.testbeds.emulated import open_testbed

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTION = {**experiment.read_testbed("rails"), "nodes": 2}
INTERCONNECTS = experiment.read_toml(paths.INTERCONNECTS, "interconnects")

lacking = users.lacking(DESCRIPTION)
pytestmark = pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))
knows_seeds = settings.is_known("fib_multipath_hash_seed")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two nodes with two links each; the library that makes TCP MPTCP is built here."""
    library = tmp_path_factory.mktemp("tools") / "mptcp.so"
    compiler = shutil.which("gcc") or pytest.skip("gcc is not here")
    source = str(ROOT / "runners/src/mptcp.c")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", source, "-o", str(library)], check=True)
    tools = {**DESCRIPTION["tools"], "mptcp.so": str(library)}
    with open_testbed({**DESCRIPTION, "tools": tools}, INTERCONNECTS) as testbed:
        yield testbed


def run(cluster, *commands, block=1, **point):
    """A trial of these commands."""
    return cluster.run(
        Trial("t", "point", "none", block, 1, {"interconnect": "gige", **point}), commands
    )


def transfer(streams):
    """8 MB from node 1 to node 2 by so many connections."""
    server = ("iperf3", "--server", "--one-off")
    client = ("iperf3", "--client", "{node2}", "--bytes", "8M", "--parallel", str(streams))
    return Command(server, node=2, background=True, listens=5201), Command(client)


def shares(transcript):
    """The parts of node 1's bytes that its links carried; the trial has to be one that got what it asked for."""
    assert transcript.fault == "" and all(it.exit_code == 0 for it in transcript.executions), (
        transcript
    )
    assert mismatch(transcript.requested, transcript.effective) == []
    first, second = (transcript.counters[f"bytes_sent_rail_{rail}"][0] for rail in (1, 2))
    assert first + second == transcript.counters["bytes_sent"][0] > 4e6
    return first / (first + second), second / (first + second)


def test_one_link_leaves_the_other_alone(cluster):
    """Any number of connections take the first link."""
    assert shares(run(cluster, *transfer(4), aggregation="one_link"))[0] > 0.999


def test_a_hash_of_addresses_keeps_a_peer_on_one_link(cluster):
    """Eight connections to one peer take one link; which one is drawn anew in every block where the kernel lets it."""
    used = [
        shares(run(cluster, *transfer(8), block=block, aggregation="ecmp_layer2"))
        for block in range(1, 9)
    ]
    assert all(max(both) > 0.99 for both in used)
    assert len({both[0] > 0.5 for both in used}) == 2 or not knows_seeds


def test_a_hash_of_ports_spreads_connections(cluster):
    """Of 16 connections some take either link: that all take one happens once in 30 000 times."""
    assert min(shares(run(cluster, *transfer(16), aggregation="ecmp_layer34"))) > 0.01


def test_one_connection_of_a_hash_of_ports_takes_one_link(cluster):
    """A flow is never split; iperf3's control connection, which may take the other, carries next to nothing."""
    assert max(shares(run(cluster, *transfer(1), aggregation="ecmp_layer34"))) > 0.99


def test_mptcp_uses_both_links_for_one_connection(cluster):
    """Real subflows: neither link carries less than a tenth."""
    if not network.MPTCP.exists():
        assert "no MPTCP" in run(cluster, *transfer(1), aggregation="mptcp").fault
    else:
        assert min(shares(run(cluster, *transfer(1), aggregation="mptcp"))) > 0.1


HPL = {
    "nodes": 2,
    "N": 1024,
    "NB": 64,
    "P": 1,
    "Q": 2,
    "PMAP": 0,
    "PFACT": 2,
    "NBMIN": 4,
    "NDIV": 2,
}
HPL |= {"RFACT": 1, "BCAST": 1, "DEPTH": 1, "SWAP": 2, "SWAP_THRESHOLD": 64, "L1": 0, "U": 0}
HPL |= {"EQUILIBRATION": 1, "ALIGNMENT": 8, "THRESHOLD": 16.0, "timeout_s": 60}


@pytest.mark.parametrize(
    ("way", "least"), [("one_link", 0), ("mpi_striping", 0.1), ("mptcp", 0.02)]
)
def test_hpl_crosses_the_links_of_its_way(cluster, way, least):
    """Real HPL with a process on each node: striped by MPI or MPTCP it is on both links, otherwise on one."""
    commands = hpl.commands(HPL)
    users.require("mpirun", *(command.argv[0] for command in commands))
    if way == "mptcp" and not network.MPTCP.exists():
        pytest.skip("the kernel has no MPTCP")
    transcript = run(cluster, *commands, **HPL, aggregation=way)
    assert "PASSED" in transcript.executions[-1].stdout, transcript
    lesser = min(sum(transcript.counters[f"bytes_sent_rail_{rail}"]) for rail in (1, 2))
    part = lesser / sum(transcript.counters["bytes_sent"])
    assert part > least if least else part < 0.001


def test_two_processes_a_node_share_it(cluster):
    """Ranks 0 and 1 are on node 1, ranks 2 and 3 on node 2, and both nodes are counted as two."""
    told = Command(
        ("bash", "-c", "echo $OMPI_COMM_WORLD_RANK $HOSTNAME"), ranks=4, ranks_per_node=2
    )
    transcript = run(cluster, told)
    assert sorted(transcript.executions[0].stdout.splitlines()) == ["0 n1", "1 n1", "2 n2", "3 n2"]
    assert transcript.requested["nodes"] == transcript.effective["nodes"] == 2


def test_a_bond_uses_both_links_for_one_connection(cluster):
    """Frames leave in turn; the next trial is without it."""
    users.require("channel_bond")
    assert min(shares(run(cluster, *transfer(1), aggregation="bond_balance_rr"))) > 0.4
    assert shares(run(cluster, *transfer(1), aggregation="one_link"))[0] > 0.999


def test_a_route_that_loses_a_link_shows(cluster):
    """A change during a trial makes the trial invalid, with the node's name."""
    second = cluster.use("gige").devices("n2")[1]
    change = f"ip route replace 10.81.0.1 dev {second} scope link src 10.81.0.2 congctl cubic"
    changed = run(cluster, Command(tuple(change.split()), node=2), aggregation="ecmp_layer34")
    (complaint,) = mismatch(changed.requested, changed.effective)
    assert "by link 1 and 2 on n1 to" in complaint and "by link 2 on n2 to" in complaint


def test_a_changed_second_link_shows(cluster):
    """The second link's settings are read back too."""
    second = cluster.use("gige").devices("n2")[1]
    changed = run(cluster, Command(("ip", "link", "set", second, "mtu", "1400"), node=2))
    (complaint,) = mismatch(changed.requested, changed.effective)
    assert complaint.startswith("mtu is ") and "1400 on n2 to switch-2" in complaint
