"""Trials on the emulated testbed of this machine, for real: what runs where, over which link, what
is counted and left.
"""

import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import users
from owner import FOREVER
from undisturbed import alone, repeated
from wired import EMULATED, INTERCONNECTS, ROOT, needs_network, text
from wired import run as on_network

from runners.build import TRIAL_DECK
from runners.records.record import Command, Trial, mismatch
from runners.testbeds import netns, network, settings
from runners.testbeds.emulated import open_testbed
from runners.tools import hpl, iperf3

pytestmark = needs_network

GIGE_GOODPUT = 1e9 * (1500 - 52) / (1500 + 38)


@pytest.fixture(scope="module")
def cluster():
    """Eight nodes, this interpreter being one of their tools: a shim on PATH would use CPU time
    too.
    """
    with open_testbed({**EMULATED, "tools": {"python3": sys.executable}}, INTERCONNECTS) as testbed:
        yield testbed


@pytest.fixture(scope="module")
def rails():
    """Two nodes with two links each."""
    with open_testbed({**EMULATED, "nodes": 2, "rails": 2}, INTERCONNECTS) as testbed:
        yield testbed


def run(testbed, *commands, **point):
    """A trial on Gigabit Ethernet."""
    return on_network(testbed, *commands, **{"interconnect": "gige", **point})


def running(cluster) -> set[int]:
    """The processes on its nodes."""
    return netns.processes([cluster.net.space(f"n{node}") for node in cluster.net.graph.nodes])


@pytest.mark.parametrize(("ranks", "each"), [(8, 1), (4, 2)])
def test_ranks_are_on_their_nodes(cluster, ranks, each):
    """Rank r runs on node r + 1, or two on each, with the hostname of its own; the nodes are
    counted.
    """
    script = "echo $OMPI_COMM_WORLD_RANK $HOSTNAME"
    asked = Command(("bash", "-c", script), ranks=ranks, ranks_per_node=each)
    transcript = run(cluster, asked)
    wanted = [f"{rank} n{rank // each + 1}" for rank in range(ranks)]
    assert sorted(text(transcript).splitlines()) == wanted
    assert transcript.requested["nodes"] == transcript.effective["nodes"] == ranks / each


@alone
def test_gige_carries_what_ethernet_carries(cluster):
    """Never above the wire limit, at least 90 % of it when the host is not busy."""
    point = {"interconnect": "gige", "sender": 1, "receiver": 2, "duration_s": 1}

    def share() -> float:
        transcript = run(cluster, *iperf3.commands(point), **point)
        return iperf3.parse(transcript)["goodput"] / GIGE_GOODPUT

    assert 0.9 <= max(repeated(share, lambda share: share >= 0.9)) <= 1.005


def spin(**where) -> Command:
    """A program that wants a whole core for a second and prints what it got, in s."""
    code = (
        "from time import *; end = monotonic() + 1\nwhile monotonic() < end: "
        "pass\nprint(process_time())"
    )
    return Command(("python3", "-I", "-S", "-c", code), **where)


@alone
def test_cpu_time_is_the_nodes_own(cluster):
    """A spinning node is charged what its program took, again in the next trial; the others use
    nothing.
    """
    for _ in range(2):
        transcript = run(cluster, spin(node=3))
        used = transcript.counters["cpu_time"]
        assert sum(used) == used[2] == pytest.approx(float(text(transcript)), abs=0.1)


def test_a_killed_servers_cpu_time_counts_and_that_of_ranks_is_not_known(cluster):
    """A server that spins until the trial ends is charged; of ranks nobody knows."""
    server = replace(spin(node=2), background=True)
    used = run(cluster, server, Command(("sleep", "0.5"))).counters["cpu_time"]
    assert used[1] > 0.1 > max(used[0], *used[2:])
    used = run(cluster, Command(("true",), ranks=2)).counters["cpu_time"]
    assert [math.isnan(value) for value in used] == [True, True] + [False] * 6


@pytest.mark.parametrize("where", [{"node": 2}, {"ranks": 2}])
def test_a_nodes_programs_stay_on_one_processor(cluster, where):
    """Those of a rank and of a plain command alike."""
    command = Command(("grep", "Cpus_allowed_list", "/proc/self/status"), **where)
    lines = text(run(cluster, command)).splitlines()
    assert lines and all(re.fullmatch(r"Cpus_allowed_list:\s+\d+", line) for line in lines)


def test_timeout_kills_everything(cluster):
    """mpirun, its daemons, the ranks and what left their session are gone, and the trial says
    so.
    """
    transcript = run(cluster, Command(FOREVER, ranks=2, timeout_s=2))
    (execution,) = transcript.executions
    assert (execution.timed_out, execution.exit_code) == (True, None)
    assert transcript.effective["nodes"] == 2, "the ranks never ran"
    assert running(cluster) == set()


def test_a_server_ends_with_its_trial(cluster):
    """That it was ended is no failure; one that fails by itself keeps its exit code, and its client
    does not start.
    """
    server = Command(("iperf3", "--server"), node=2, background=True, listens=5201)
    served, _ = run(cluster, server, Command(("true",))).executions
    assert (served.tool, served.exit_code) == ("iperf3", 0)
    assert running(cluster) == set()
    broken = Command(("iperf3", "--no-such-option"), background=True, listens=5201)
    (execution,) = run(cluster, broken, Command(("true",))).executions
    assert execution.exit_code == 1


def test_no_setting_of_the_users_leaks_in(cluster, monkeypatch):
    """Neither Open MPI's variables nor a home folder with settings; one thread on every node."""
    monkeypatch.setenv("OMPI_MCA_btl", "self")
    monkeypatch.setenv("LEAK", "leaked")
    lines = text(run(cluster, Command(("env",), ranks=2))).splitlines()
    assert lines.count("OPENBLAS_NUM_THREADS=1") == 2 and lines.count("LC_ALL=C") == 2
    assert not {"LEAK=leaked", "OMPI_MCA_btl=self", f"HOME={Path.home()}"} & set(lines)


def fault(testbed, *commands, **point):
    """The testbed's own failure in a trial."""
    point = {"interconnect": "gige", **point}
    return testbed.run(Trial("t", "point", "none", 1, 1, point), commands).fault


def test_too_few_nodes_is_a_fault_with_the_remedy(cluster):
    """A ninth node of eight."""
    assert "raise `nodes`" in fault(cluster, Command(("true",), ranks=9))


def test_system_tools_are_found_on_a_users_path():
    """Debian's users have no /usr/sbin on theirs."""
    code = (
        "from runners.testbeds import emulated as e; print(e.unavailable({'tcp': "
        "{'congestion_control': 'cubic'}}))"
    )
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "are missing" not in done.stdout


# Two links a node: which of them carries the bytes, by each way of using both.
def transfer(streams):
    """8 MB from node 1 to node 2 by so many connections."""
    server = ("iperf3", "--server", "--one-off")
    client = ("iperf3", "--client", "{node2}", "--bytes", "8M", "--parallel", str(streams))
    return Command(server, node=2, background=True, listens=5201), Command(client)


def shares(transcript):
    """The parts of node 1's bytes that its links carried; the trial has to be one that got what it
    asked for.
    """
    assert all(done.exit_code == 0 for done in transcript.executions), transcript
    assert mismatch(transcript.requested, transcript.effective) == []
    first, second = (transcript.counters[f"bytes_sent_rail_{rail}"][0] for rail in (1, 2))
    assert first + second == transcript.counters["bytes_sent"][0] > 4e6
    return first / (first + second), second / (first + second)


@pytest.mark.parametrize(
    ("way", "streams", "least", "most"),
    [
        ("one_link", 4, 0, 0.001),
        ("ecmp_layer34", 16, 0.01, 0.5),  # that all take one link happens once in 30 000 times
        ("ecmp_layer34", 1, 0, 0.01),  # a flow is never split; iperf3's control may take the other
        ("mptcp", 1, 0.1, 0.5),  # real subflows
        ("bond_balance_rr", 1, 0.4, 0.5),  # frames leave in turn
        ("one_link", 1, 0, 0.001),  # without the bond again
    ],
)
def test_the_lesser_link_carries_its_share(rails, way, streams, least, most):
    """Of the bytes of one transfer by so many connections."""
    needed = {"bond_balance_rr": ["channel_bond"], "mptcp": ["mptcp.so"]}
    users.require(*needed.get(way, ()))
    if way == "mptcp" and not network.MPTCP.exists():
        assert "no MPTCP" in fault(rails, *transfer(1), aggregation=way)
    else:
        assert least <= min(shares(run(rails, *transfer(streams), aggregation=way))) <= most


def test_a_hash_of_addresses_keeps_a_peer_on_one_link(rails):
    """Eight connections to one peer take one link; which one is drawn anew in every block where the
    kernel lets it.
    """
    blocks = range(1, 9)
    trials = (run(rails, *transfer(8), block=n, aggregation="ecmp_layer2") for n in blocks)
    used = [shares(trial) for trial in trials]
    assert all(max(both) > 0.99 for both in used)
    knows_seeds = settings.is_known("fib_multipath_hash_seed")
    assert len({both[0] > 0.5 for both in used}) == 2 or not knows_seeds


HPL = {**TRIAL_DECK, "nodes": 2, "N": 1024, "NB": 64, "Q": 2, "timeout_s": 60}


@pytest.mark.parametrize(
    ("way", "least"), [("one_link", 0), ("mpi_striping", 0.1), ("mptcp", 0.02)]
)
def test_hpl_crosses_its_links(rails, way, least):
    """Real HPL with a process on each node, over one link or both: its panels are in the bytes of
    both nodes.
    """
    if way == "mptcp" and not network.MPTCP.exists():
        pytest.skip("the kernel has no MPTCP")
    users.require("mpirun", "xhpl")
    transcript = run(rails, *hpl.commands(HPL), **HPL, aggregation=way)
    assert "PASSED" in text(transcript)
    assert mismatch(transcript.requested, transcript.effective) == []
    sent = transcript.counters["bytes_sent"]
    panels = 8 * HPL["N"] ** 2 / 2 / 2  # the lower triangle in B, half of it from each node
    lesser = min(sum(transcript.counters[f"bytes_sent_rail_{rail}"]) for rail in (1, 2))
    assert min(sent) > panels / 2 and lesser / sum(sent) >= least
