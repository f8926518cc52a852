"""The emulated testbed on this machine, for real: namespaces, tc, cgroups, Open MPI."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from owner import FOREVER
from undisturbed import alone, repeated

from runners import hpl, iperf3
from runners.record import Command, FalloffError, Trial, judge, mismatch
from runners.testbeds import cgroup, quota
from runners.testbeds.emulated import open_testbed, unavailable

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTION = tomllib.loads((ROOT / "data/testbeds/emulated.toml").read_text())
INTERCONNECTS = tomllib.loads((ROOT / "data/interconnects.toml").read_text())
SMALL = {**DESCRIPTION, "nodes": 2}

GIGE_GOODPUT = 1e9 * (1500 - 52) / (1500 + 38)

lacking = unavailable(DESCRIPTION)
pytestmark = pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))


@pytest.fixture(scope="module")
def cluster():
    """Eight nodes."""
    with open_testbed(DESCRIPTION, INTERCONNECTS) as testbed:
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


def processes(state: Path) -> set[int]:
    return cgroup.processes(cgroup.find(), quota.group(state))


def traces(state: Path) -> list[str]:
    """What is left of a testbed: folder, mounts, cgroups and processes."""
    hierarchy = cgroup.find()
    folders = [state, *hierarchy.folders(quota.group(state))]
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(state) in line]
    return [*map(str, filter(Path.exists, folders)), *mounts, *map(str, processes(state))]


def test_ranks_are_on_their_nodes(cluster):
    """Rank r runs on node r + 1, each with the hostname of its own."""
    said = text(run(cluster, Command(("bash", "-c", "echo $OMPI_COMM_WORLD_RANK $HOSTNAME"), ranks=8)))
    assert sorted(said.splitlines()) == [f"{rank} n{rank + 1}" for rank in range(8)]


def test_every_node_reaches_the_next(cluster):
    """One echo over every link, both ends' interfaces counting it."""
    for node in range(1, 9):
        other = node % 8 + 1
        transcript = run(cluster, Command(("ping", "-c", "1", f"{{node{other}}}"), node=node, in_quota=False))
        assert " 0% packet loss" in text(transcript)
        for counter in ("bytes_sent", "bytes_received"):
            assert all(transcript.counters[counter][n - 1] >= 98 for n in (node, other))


@alone
def test_gige_carries_what_ethernet_carries(cluster):
    """Never above the wire limit, and at least 90 % of it when the host is not busy."""
    point = {"interconnect": "gige", "sender": 1, "receiver": 2, "in_quota": False, "duration_s": 1}

    def share() -> float:
        transcript = run(cluster, *iperf3.commands(point), **point)
        assert [execution.exit_code for execution in transcript.executions] == [0, 0]
        return iperf3.parse(transcript)[0].value / GIGE_GOODPUT

    assert 0.9 <= max(repeated(share, lambda share: share >= 0.9)) <= 1.005


def test_connections_use_the_pinned_congestion_control(cluster):
    """What the kernel's sockets really use, on both sides, not what a setting says."""
    point = {"interconnect": "unshaped", "sender": 3, "receiver": 4, "in_quota": False, "duration_s": 1}
    end = json.loads(run(cluster, *iperf3.commands(point), **point).executions[-1].stdout)["end"]
    assert (end["sender_tcp_congestion"], end["receiver_tcp_congestion"]) == ("cubic", "cubic")


HPL = {"nodes": 2, "N": 512, "NB": 64, "P": 1, "Q": 2, "PMAP": 0, "PFACT": 2, "NBMIN": 4, "NDIV": 2}
HPL |= {"RFACT": 1, "BCAST": 1, "DEPTH": 1, "SWAP": 2, "SWAP_THRESHOLD": 64, "L1": 0, "U": 0}
HPL |= {"EQUILIBRATION": 1, "ALIGNMENT": 8, "THRESHOLD": 16.0, "timeout_s": 60, "interconnect": "gige"}


def run_hpl(cluster, point):
    """A trial of HPL; skipped where a tool that it starts is missing."""
    commands = hpl.commands(point)
    for remedy in cluster.missing([command.argv[0] for command in commands]):
        pytest.skip(remedy)
    return run(cluster, *commands, **point)


def test_hpl_crosses_the_links(cluster):
    """Real HPL on two nodes: its panels are in the bytes of both interfaces, and of no others."""
    point = HPL
    transcript = run_hpl(cluster, point)
    assert "PASSED" in text(transcript)
    assert mismatch(transcript.requested, transcript.effective) == []
    assert transcript.effective["nodes"] == 2
    panels = 8 * point["N"] ** 2 / 2 / 2  # the lower triangle in B, half of it from each node
    assert min(transcript.counters["bytes_sent"][:2]) > panels / 2
    assert max(transcript.counters["bytes_sent"][2:]) < 5000


@alone
def test_noise_takes_its_share_of_every_node(cluster):
    """A daemon on each node takes a fifth of the quota while HPL runs, each at times of its own."""
    point = {**HPL, "noise": 0.2, "cpu_share": DESCRIPTION["cpu"]["share"], "burst_s": 0.005}

    def shares() -> list[float]:
        transcript = run_hpl(cluster, point)
        assert mismatch(transcript.requested, transcript.effective) == []
        seeds = re.findall(r"seed (\d+)", "".join(execution.stdout for execution in transcript.executions))
        assert len(set(seeds)) == 2
        found = {reading.name: reading.value for reading in hpl.parse(transcript)}
        assert found["hpl_rate"] > 0
        times = zip(found["noise_cpu_time"], found["noise_wall_time"], strict=True)
        return [cpu / wall / point["cpu_share"] for cpu, wall in times]

    asked = pytest.approx([0.2, 0.2], rel=0.3)
    found = repeated(shares, lambda shares: shares == asked)
    assert found[-1] == asked and max(map(max, found)) < 0.2 * 1.3  # in none it takes more


def test_hpl_without_its_daemons_is_refused(cluster):
    """HPL that ran undisturbed is no measurement of the point that asked for noise."""
    solver = hpl.commands(HPL)[-1]
    point = {**HPL, "noise": 0.2, "cpu_share": 0.1, "burst_s": 0.005}
    for remedy in cluster.missing(solver.argv[:1]):
        pytest.skip(remedy)
    outcome = judge(run(cluster, solver, **point), hpl.parse)
    assert (outcome.status, outcome.readings) == ("invalid", ()) and "0 say what they took" in outcome.reason


def spin(**where) -> Command:
    """A program that wants a whole core for a second and prints what it got, in s."""
    code = "from time import *; end = monotonic() + 1\nwhile monotonic() < end: pass\nprint(process_time())"
    return Command(("python3", "-I", "-S", "-c", code), **where)


@pytest.fixture
def with_python(cluster):
    """The cluster, this interpreter being one of its tools: a shim on PATH would use CPU time too."""
    cluster.description["tools"]["python3"] = sys.executable
    yield cluster
    del cluster.description["tools"]["python3"]


@alone
def test_quota_holds_and_is_counted_for_each_trial(with_python):
    """A spinning node gets a tenth of a core, again in the next trial; the others use nothing."""

    def share() -> float:
        transcript = run(with_python, spin(node=3))
        (execution,) = transcript.executions
        used = transcript.counters["cpu_time"]
        assert sum(used) == used[2]
        return used[2] / execution.wall_s

    for _ in range(2):
        assert 0.05 < repeated(share, lambda share: share > 0.05)[-1] < 0.12


@alone
def test_outside_the_quota_a_node_is_not_limited(with_python):
    """The same program outside gets more than the quota and is not counted in it."""

    def used_s() -> float:
        transcript = run(with_python, spin(in_quota=False))
        assert sum(transcript.counters["cpu_time"]) == 0
        return float(text(transcript))

    assert repeated(used_s, lambda used_s: used_s > 0.2)[-1] > 0.2


@pytest.mark.parametrize(
    ("setting", "change"),
    [
        ("mtu", "ip link set eth0 mtu 1400"),
        ("tbf_rate_bit_s", "tc qdisc del dev eth0 root"),
        ("congestion_control", "ip route replace 10.81.0.0/24 dev eth0 congctl reno"),
        ("tso", "ethtool -K eth0 tso off"),
    ],
)
def test_changed_setting_shows_and_is_mended(cluster, setting, change):
    """A change during a trial on one node makes that trial a mismatch naming it; the next is right again."""
    changed = run(cluster, Command(tuple(change.split()), node=5, in_quota=False))
    (complaint,) = mismatch(changed.requested, changed.effective)
    assert complaint.startswith(f"{setting} is ") and re.search(r" on n5( and|,)", complaint)
    after = run(cluster, Command(("true",), in_quota=False))
    assert after.effective and mismatch(after.requested, after.effective) == []


def test_timeout_kills_everything(cluster):
    """mpirun, its daemons, the ranks and what left their session are gone, and the trial says so."""
    transcript = run(cluster, Command(FOREVER, ranks=2, timeout_s=2))
    (execution,) = transcript.executions
    assert (execution.timed_out, execution.exit_code) == (True, None)
    assert sum(used > 0 for used in transcript.counters["cpu_time"]) == 2, "the ranks never ran"
    assert processes(cluster.state) == set()


def test_server_ends_with_its_trial(cluster):
    """A server that would serve for ever is ended, which is no failure."""
    server = Command(("iperf3", "--server"), node=2, background=True, listens=5201, in_quota=False)
    served, _ = run(cluster, server, Command(("true",))).executions
    assert (served.tool, served.exit_code) == ("iperf3", 0)
    assert processes(cluster.state) == set()


def test_server_that_fails_ends_the_trial(cluster):
    """Its exit code is kept and the client does not start."""
    broken = Command(("iperf3", "--no-such-option"), background=True, listens=5201)
    (execution,) = run(cluster, broken, Command(("true",))).executions
    assert execution.exit_code == 1


def test_no_setting_of_the_users_leaks_in(cluster, monkeypatch):
    """Neither Open MPI's variables nor a home folder with settings; one thread on every node."""
    monkeypatch.setenv("OMPI_MCA_btl", "self")
    monkeypatch.setenv("LEAK", "leaked")
    said = text(run(cluster, Command(("env",), ranks=2))).splitlines()
    assert said.count("OPENBLAS_NUM_THREADS=1") == 2 and said.count("LC_ALL=C") == 2
    assert "LEAK=leaked" not in said and "OMPI_MCA_btl=self" not in said
    assert f"HOME={Path.home()}" not in said


def test_files_are_there_and_nothing_of_the_trial_before(cluster):
    """Each trial has a fresh folder with the files of its commands."""
    listing = Command(("ls",), files={"HPL.dat": "x"})
    assert text(run(cluster, listing)).split() == ["HPL.dat"]
    assert text(run(cluster, Command(("ls",)))).split() == []


def test_too_few_nodes_is_a_fault_with_the_remedy(cluster):
    """A ninth node of eight."""
    assert "raise `nodes`" in run(cluster, Command(("true",), ranks=9)).fault


def test_provenance_tells_every_node(cluster):
    """Driver, MTU, offloads and TCP of each node, none left out."""
    nodes = cluster.provenance()["nodes"]
    assert list(nodes) == [f"n{node}" for node in range(1, 9)]
    for node in nodes.values():
        assert (node["driver"], node["congestion_control"], node["mtu"]) == ("veth", "cubic", 1500)
        assert node["tcp_no_metrics_save"] is True and node["tcp_slow_start_after_idle"] is False


@pytest.fixture
def owner(tmp_path):
    """A process that owns a small testbed, and the testbed's state, once its two ranks run."""
    (tmp_path / "description.json").write_text(json.dumps([SMALL, INTERCONNECTS]))
    process = subprocess.Popen([sys.executable, ROOT / "tests/owner.py", tmp_path])
    deadline = time.monotonic() + 30
    started = []
    while len(started) < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
        if (tmp_path / "state").exists():
            state = Path((tmp_path / "state").read_text())
            started = list(state.glob("work/running.*"))
    yield process, state
    process.kill()
    process.wait()


def test_next_start_clears_what_kill_9_left(cluster, owner):
    """Processes, mounts, cgroups and folder of the dead owner go; a living testbed is not touched."""
    process, state = owner
    namespace = os.stat(state / "n1/net").st_ino
    process.kill()
    process.wait()
    orphans = processes(state)
    assert len(orphans) > 4
    with open_testbed(SMALL, INTERCONNECTS) as other:
        assert traces(state) == []
        assert not any(map(runs, orphans))
        assert namespace not in namespaces_in_use()
        assert " 0% packet loss" in text(run(other, Command(("ping", "-c", "1", "{node2}"))))
    assert traces(other.state) == []
    assert len(text(run(cluster, Command(("hostname",), ranks=8))).split()) == 8


def runs(process: int) -> bool:
    """Whether a process is there and more than an entry that its parent has still to collect."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def namespaces_in_use() -> set[int]:
    """The network namespaces of all processes."""
    used = set()
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            used.add(os.stat(link).st_ino)
        except OSError:
            pass  # a process that has just ended
    return used


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)])
def test_signals_take_the_testbed_down(owner, number, code):
    """SIGTERM and Ctrl-C in the middle of a trial leave nothing, and the exit code tells."""
    process, state = owner
    assert processes(state)
    process.send_signal(number)
    assert process.wait(20) == code
    assert traces(state) == []


def test_exception_takes_the_testbed_down():
    """An error of the campaign's passes through, and nothing is left."""
    with pytest.raises(ZeroDivisionError), open_testbed(SMALL, INTERCONNECTS) as testbed:
        assert traces(testbed.state)
        1 / 0
    assert traces(testbed.state) == []


def test_impossible_quota_is_refused_before_anything_is_made():
    """A slice that the kernel would refuse: one line with the remedy."""
    short = {**SMALL, "cpu": {"share": 0.05, "period_us": 10000}}
    with pytest.raises(FalloffError, match="set cpu.period_us to 20000 or more"):
        with open_testbed(short, INTERCONNECTS):
            pass


def test_unknown_congestion_control_is_refused():
    """The kernel module that would bring it is named."""
    (line,) = unavailable({**SMALL, "tcp": {**SMALL["tcp"], "congestion_control": "vegas"}})
    assert "modprobe tcp_vegas" in line
