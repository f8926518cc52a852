"""Trials on the emulated testbed of this machine, for real: what runs where, what is counted, and what is left."""

import json
import math
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import users
from owner import FOREVER
from undisturbed import alone, repeated

from runners import hpl, iperf3
from runners.build import TRIAL_DECK
from runners.record import Command, Trial, mismatch
from runners.testbeds import netns
from runners.testbeds.emulated import open_testbed

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTION = tomllib.loads((ROOT / "data/testbeds/emulated.toml").read_text())
INTERCONNECTS = tomllib.loads((ROOT / "data/interconnects.toml").read_text())

GIGE_GOODPUT = 1e9 * (1500 - 52) / (1500 + 38)

lacking = users.lacking(DESCRIPTION)
pytestmark = pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))


@pytest.fixture(scope="module")
def cluster():
    """Eight nodes, this interpreter being one of their tools: a shim on PATH would use CPU time too."""
    with open_testbed(
        {**DESCRIPTION, "tools": {"python3": sys.executable}}, INTERCONNECTS
    ) as testbed:
        yield testbed


def run(testbed, *commands, **point):
    """A trial of these commands."""
    point = {"interconnect": "gige", **point}
    return testbed.run(Trial("t", "point", "none", 1, 1, point), commands)


def text(transcript) -> str:
    """What the only command printed, when all went well."""
    (execution,) = transcript.executions
    assert (transcript.fault, execution.exit_code) == ("", 0), execution.stderr
    return execution.stdout


def running(cluster) -> set[int]:
    """The processes on its nodes."""
    return netns.processes([cluster.net.space(f"n{node}") for node in cluster.net.graph.nodes])


def test_ranks_are_on_their_nodes(cluster):
    """Rank r runs on node r + 1, each with the hostname of its own."""
    script = "echo $OMPI_COMM_WORLD_RANK $HOSTNAME"
    output = text(run(cluster, Command(("bash", "-c", script), ranks=8)))
    assert sorted(output.splitlines()) == [f"{rank} n{rank + 1}" for rank in range(8)]


@alone
def test_gige_carries_what_ethernet_carries(cluster):
    """Never above the wire limit, at least 90 % of it when the host is not busy, by the pinned congestion control."""
    point = {"interconnect": "gige", "sender": 1, "receiver": 2, "duration_s": 1}

    def share() -> float:
        transcript = run(cluster, *iperf3.commands(point), **point)
        end = json.loads(transcript.executions[-1].stdout)["end"]
        assert (end["sender_tcp_congestion"], end["receiver_tcp_congestion"]) == ("cubic", "cubic")
        return iperf3.parse(transcript)[0].value / GIGE_GOODPUT

    assert 0.9 <= max(repeated(share, lambda share: share >= 0.9)) <= 1.005


HPL = {**TRIAL_DECK, "nodes": 2, "N": 512, "NB": 64, "Q": 2, "timeout_s": 60}


def test_hpl_crosses_the_links(cluster):
    """Real HPL on two nodes: its panels are in the bytes of both interfaces, and of no others."""
    users.require("mpirun", "xhpl")
    transcript = run(cluster, *hpl.commands(HPL), **HPL)
    assert "PASSED" in text(transcript)
    assert mismatch(transcript.requested, transcript.effective) == []
    assert transcript.effective["nodes"] == 2
    panels = 8 * HPL["N"] ** 2 / 2 / 2  # the lower triangle in B, half of it from each node
    assert min(transcript.counters["bytes_sent"][:2]) > panels / 2
    assert max(transcript.counters["bytes_sent"][2:]) < 5000


def spin(**where) -> Command:
    """A program that wants a whole core for a second and prints what it got, in s."""
    code = "from time import *; end = monotonic() + 1\nwhile monotonic() < end: pass\nprint(process_time())"
    return Command(("python3", "-I", "-S", "-c", code), **where)


@alone
def test_cpu_time_is_the_nodes_own(cluster):
    """A spinning node is charged what its program took, again in the next trial; the others use nothing."""
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
    """mpirun, its daemons, the ranks and what left their session are gone, and the trial says so."""
    transcript = run(cluster, Command(FOREVER, ranks=2, timeout_s=2))
    (execution,) = transcript.executions
    assert (execution.timed_out, execution.exit_code) == (True, None)
    assert transcript.effective["nodes"] == 2, "the ranks never ran"
    assert running(cluster) == set()


def test_a_server_ends_with_its_trial(cluster):
    """That it was ended is no failure; one that fails by itself keeps its exit code, and its client does not start."""
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


def test_too_few_nodes_is_a_fault_with_the_remedy(cluster):
    """A ninth node of eight."""
    assert "raise `nodes`" in run(cluster, Command(("true",), ranks=9)).fault


def test_system_tools_are_found_on_a_users_path():
    """Debian's users have no /usr/sbin on theirs."""
    code = "from runners.testbeds import emulated as e; print(e.unavailable({'tcp': {'congestion_control': 'cubic'}}))"
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "are missing" not in done.stdout
