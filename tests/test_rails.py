"""Two links a node on this machine, for real: which of them carries the bytes, by each way of using both."""

import pytest
import users

import experiment
from analysis import paths
from runners import hpl
from runners.build import TRIAL_DECK
from runners.record import Command, Trial, mismatch
from runners.testbeds import network, settings
from runners.testbeds.emulated import open_testbed

DESCRIPTION = {**experiment.read_testbed("rails"), "nodes": 2}
INTERCONNECTS = experiment.read_toml(paths.INTERCONNECTS, "interconnects")

lacking = users.lacking(DESCRIPTION)
pytestmark = pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))
knows_seeds = settings.is_known("fib_multipath_hash_seed")


@pytest.fixture(scope="module")
def cluster():
    """Two nodes with two links each."""
    with open_testbed(DESCRIPTION, INTERCONNECTS) as testbed:
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


@pytest.mark.parametrize(
    ("way", "streams", "least", "most"),
    [
        ("one_link", 4, 0, 0.001),
        ("ecmp_layer34", 16, 0.01, 0.5),  # that all take one link happens once in 30 000 times
        (
            "ecmp_layer34",
            1,
            0,
            0.01,
        ),  # a flow is never split; iperf3's control connection may take the other
        ("mptcp", 1, 0.1, 0.5),  # real subflows
        ("bond_balance_rr", 1, 0.4, 0.5),  # frames leave in turn
        ("one_link", 1, 0, 0.001),  # without the bond again
    ],
)
def test_the_lesser_link_carries_its_share(cluster, way, streams, least, most):
    """Of the bytes of one transfer by so many connections."""
    needed = {"bond_balance_rr": ["channel_bond"], "mptcp": ["mptcp.so"]}
    users.require(*needed.get(way, ()))
    if way == "mptcp" and not network.MPTCP.exists():
        assert "no MPTCP" in run(cluster, *transfer(1), aggregation=way).fault
    else:
        assert least <= min(shares(run(cluster, *transfer(streams), aggregation=way))) <= most


def test_a_hash_of_addresses_keeps_a_peer_on_one_link(cluster):
    """Eight connections to one peer take one link; which one is drawn anew in every block where the kernel lets it."""
    blocks = range(1, 9)
    trials = (run(cluster, *transfer(8), block=n, aggregation="ecmp_layer2") for n in blocks)
    used = [shares(trial) for trial in trials]
    assert all(max(both) > 0.99 for both in used)
    assert len({both[0] > 0.5 for both in used}) == 2 or not knows_seeds


HPL = {**TRIAL_DECK, "nodes": 2, "N": 1024, "NB": 64, "Q": 2, "timeout_s": 60}


@pytest.mark.parametrize(("way", "least"), [("mpi_striping", 0.1), ("mptcp", 0.02)])
def test_hpl_crosses_both_links(cluster, way, least):
    """Real HPL with a process on each node, striped by MPI or MPTCP."""
    commands = hpl.commands(HPL)
    users.require("mpirun", *(command.argv[0] for command in commands))
    if way == "mptcp" and not network.MPTCP.exists():
        pytest.skip("the kernel has no MPTCP")
    transcript = run(cluster, *commands, **HPL, aggregation=way)
    assert "PASSED" in transcript.executions[-1].stdout, transcript
    lesser = min(sum(transcript.counters[f"bytes_sent_rail_{rail}"]) for rail in (1, 2))
    assert lesser / sum(transcript.counters["bytes_sent"]) > least


def test_two_processes_a_node_share_it(cluster):
    """Ranks 0 and 1 are on node 1, ranks 2 and 3 on node 2, and both nodes are counted as two."""
    told = Command(
        ("bash", "-c", "echo $OMPI_COMM_WORLD_RANK $HOSTNAME"), ranks=4, ranks_per_node=2
    )
    transcript = run(cluster, told)
    assert sorted(transcript.executions[0].stdout.splitlines()) == ["0 n1", "1 n1", "2 n2", "3 n2"]
    assert transcript.requested["nodes"] == transcript.effective["nodes"] == 2
