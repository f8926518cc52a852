"""The doctor's checklist from canned answers: what agrees, differs or is missing, with the remedy; who is asked what, in
which groups, and what a launcher makes of it."""

import copy
import json
import stat
import sys
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners import dgemm, doctor
from runners.doctor import DIFFERS, HERE, MISSING, UNKNOWN
from runners.record import Execution, Transcript
from runners.testbeds import cluster, remote

HOSTS = ("node01", "node02", "node03")
NETWORK = {"subnet": "10.1.0.0/24", "mtu": 9000, "rate_bit_s": 1e9, "rdma": "mlx5_0:1"}
XHPL = {"path": "/opt/hpl/xhpl", "digest": "0a6fef7ab9f3"}
NODE = {
    "kernel": "5.14.0-427",
    "system": "Rocky Linux 9.4",
    "python": "3.9.18",
    "cpu_model": "AMD EPYC 7543",
    "processors": 64,
    "tcp": "congestion_control cubic",
    "governor": "performance",
    "memory_bytes": 270e9,
    "available_bytes": 260e9,
    "networks": {
        "gige": {"interface": "eth0", "mtu": 9000, "rate_bit_s": 10**9, "rdma_state": "4: ACTIVE"},
    },
    "tools": {"xhpl": XHPL},
}
DESCRIPTION = {"ranks_per_node": 32, "threads": 2, "memory_bytes": 256e9}


def nodes(**others):
    """Three nodes alike, but for what `others` say of some: changed facts by host."""
    facts = {host: copy.deepcopy(NODE) for host in HOSTS}
    for host, changed in others.items():
        facts[host].update(changed)
    return facts


def network(**changed):
    """A node's networks with other values of its only one."""
    return {"networks": {"gige": {**NODE["networks"]["gige"], **changed}}}


def marks(lines):
    """The marks of lines, in order."""
    return [line.mark for line in lines]


def test_nodes_that_are_well():
    """Everything that is checked is `here`, with its value."""
    facts = nodes()
    lines = [
        *doctor.reached(facts),
        *doctor.alike(facts),
        *doctor.sizes(DESCRIPTION, facts),
        *doctor.network("gige", NETWORK, facts),
        doctor.tool("xhpl", facts),
    ]
    assert set(marks(lines)) == {HERE}
    said = "\n".join(map(str, lines))
    for value in (
        "3 of 3 nodes",
        "5.14.0-427",
        "EPYC 7543",
        "performance",
        "MTU: 9000",
        "1 Gbit/s",
        "/opt/hpl/xhpl",
    ):
        assert value in said
    assert str(lines[0]).startswith("  here     3 of 3")


def test_who_does_not_answer_is_named_with_the_reason():
    """Hosts with the same reason share a line; an old Python is one of its own; the rest go on."""
    gone = {"error": "Connection refused"}
    facts = {**nodes(), "node04": gone, "node05": gone, "node06": {"python": "3.6.8"}}
    count, lost, old = doctor.reached(facts)
    assert count.text == "3 of 6 nodes answer"
    assert lost.mark == old.mark == MISSING
    assert "node04, node05: Connection refused" in lost.text
    assert "node06" in old.text and "3.6.8" in old.text and "`python`" in old.text
    assert set(doctor.whole(facts)) == set(HOSTS)


@pytest.mark.parametrize("fact", ["kernel", "system", "python", "cpu_model", "processors", "tcp"])
def test_a_node_of_another_kind_is_named(fact):
    """The odd one comes first, then what the others have; all else is still `here`."""
    lines = doctor.alike(nodes(node02={fact: "another"}))
    (odd,) = [line for line in lines if line.mark == DIFFERS]
    assert "another on node02; " in odd.text and "on node01, node03" in odd.text
    assert marks(lines).count(HERE) == len(lines) - 1


@pytest.mark.parametrize(
    ("governors", "mark"),
    [
        ((None, None, None), UNKNOWN),
        (("performance", "performance", "performance"), HERE),
        (("powersave", "powersave", "powersave"), DIFFERS),
        ((None, "ondemand", None), DIFFERS),
    ],
)
def test_a_clock_that_follows_the_load_is_named(governors, mark):
    """Also when all nodes agree on it; a kernel that tells no governor is no fault."""
    facts = nodes(**{host: {"governor": name} for host, name in zip(HOSTS, governors)})
    line = doctor.alike(facts)[-1]
    assert line.mark == mark and ("cpupower" in line.text) == (mark == DIFFERS)


@pytest.mark.parametrize(
    ("changed", "mark", "said"),
    [
        ({"mtu": 1500}, DIFFERS, "9000 is expected, 1500 on node02"),
        ({"rate_bit_s": 10**8}, DIFFERS, "1 Gbit/s is expected, 0.1 Gbit/s on node02"),
        ({"rdma_state": "1: DOWN"}, MISSING, "mlx5_0:1 on node02 is 1: DOWN"),
        ({"rdma_state": None}, MISSING, "mlx5_0:1 on node02 is not there"),
    ],
)
def test_a_network_that_is_not_as_described(changed, mark, said):
    """MTU, negotiated rate and RDMA port of one node, in a line of its own."""
    lines = doctor.network("gige", NETWORK, nodes(node02=network(**changed)))
    (fault,) = [line for line in lines if line.mark != HERE]
    assert fault.mark == mark and said in fault.text


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("someone@node04: Permission denied (publickey).", "ssh-copy-id"),
        ("Host key verification failed.", "by hand"),
        ("ssh: Could not resolve hostname node04: Name or service not known", "`hosts`"),
        ("modules openmpi/9: Unable to locate a modulefile", "`modules`"),
        ("no answer within 60 s", "see whether it is up"),
    ],
)
def test_the_remedy_is_for_the_reason(reason, remedy):
    """What ssh says decides what is to be done."""
    (line,) = doctor.reached({"node04": {"error": reason}})
    assert line.mark == MISSING and reason in line.text and remedy in line.text


def visit(reason="", port=5201):
    """One node's word on another."""
    return {"ports": {str(port): reason}}


def meeting(hosts=HOSTS, **reasons):
    """All hosts visit all others on one network; visits to (or with `of_` from) a host fail for a reason."""
    met = {}
    for host in hosts:
        of_host = reasons.get(f"of_{host}", "")
        others = {other: visit(reasons.get(other, of_host)) for other in hosts if other != host}
        met[host] = {"gige": {"taken": [], "others": others}}
    return met


def test_nodes_that_reach_each_other():
    """One line with the networks and ports."""
    (line,) = doctor.ports([meeting()])
    assert line.mark == HERE and "gige" in line.text and "5201" in line.text


def test_a_closed_port_is_named_where_it_is_closed():
    """Who is not reached is named, and the remedy is for the reason."""
    (line,) = doctor.ports([meeting(node02="no answer")])
    assert (
        line.mark == MISSING
        and "port 5201 of node02: no answer" in line.text
        and "firewall" in line.text
    )
    (line,) = doctor.ports([meeting(node02="full frames are lost")])
    assert "MTU" in line.text and "firewall" not in line.text


def test_a_node_that_reaches_nobody_is_named_and_not_the_others():
    """A cut cable fails both ways: the node behind it is the one that most do not reach."""
    hosts = (*HOSTS, "node04")
    (line,) = doctor.ports([meeting(hosts, node03="no answer", of_node03="no answer")])
    assert "of node03: no answer" in line.text and "node01" not in line.text


def test_a_port_of_another_program_is_no_firewall():
    """It is named once, and the visits that failed there are its."""
    met = meeting(node02="the connection was closed")
    met["node02"]["gige"]["taken"] = [5201]
    (line,) = doctor.ports([met])
    assert line.mark == MISSING and "port 5201 of node02 is another program's" in line.text


def noises(**shares):
    """Answers of node_noise.py with that share of each of two processors lost."""
    each = {"least_s": 1e-3, "median_s": 1e-3, "most_s": 5e-3}
    return {
        host: {"processors": [{**each, "noise_share": share}] * 2} for host, share in shares.items()
    }


def test_a_noisy_node_is_named():
    """The worst first, with the longest interruption."""
    (line,) = doctor.noise(noises(node01=0.001, node02=0.05, node03=0.02))
    assert (
        line.mark == DIFFERS and "node02, node03, most 5.00% of node02, up to 4.0 ms" in line.text
    )
    assert "node01" not in line.text
    (line,) = doctor.noise(noises(node01=0.001, node02=0.002))
    assert line.mark == HERE


@given(st.lists(st.floats(0.98, 1.02), min_size=1, max_size=20), st.floats(0.1, 0.9))
def test_a_slow_node_is_named_whatever_the_unit(rates, factor):
    """Nodes within the scatter are alike; one far below them is named, and nobody else."""
    alike = {f"node{number}": 800 * rate for number, rate in enumerate(rates)}
    assert doctor.speeds("DGEMM", alike, "Gflop/s").mark == HERE
    several = {**alike, "another": 800.0}
    line = doctor.speeds("DGEMM", {**several, "slow": 800 * factor}, "Gflop/s")
    assert line.mark == DIFFERS and ": slow " in line.text
    assert not [host for host in several if f"{host} " in line.text]


MANY = tuple(f"node{number:02}" for number in range(1, 21))
FACTS = {
    "system": "Debian GNU/Linux 12",
    "python": "3.11.2",
    "processors": 4,
    "memory_bytes": 64e9,
    "available_bytes": 63e9,
    "link_bit_s": {"eth0": 10**9},
    "rdma_state": {},
}
NOISE = {"processors": [{"least_s": 1e-3, "median_s": 1e-3, "most_s": 2e-3, "noise_share": 0.0}]}


def described(**others):
    """A cluster by ssh, as it is when its description is complete."""
    networks = {"gige": {"name": "GigE", "subnet": "10.1.0.0/24", "mtu": 1500, "rate_bit_s": 1e9}}
    named = {"name": "mine", "kind": "cluster", "launcher": "ssh"}
    return {**named, "hosts": list(MANY), "networks": networks, **others}


def state(host):
    """What node_state.py prints on a host."""
    address = f"10.1.0.{int(host[4:])}/24"
    return {
        "hostname": host,
        "kernel": "6.1.0",
        "cpu_model": "AMD EPYC",
        "governor": None,
        "tcp": {"congestion_control": "cubic", "rmem": "4096 131072 6291456", "wmem": None},
        "interfaces": {
            "eth0": {"addresses": [address], "mtu": 1500, "lower": None, "sent": 0, "received": 0}
        },
    }


@pytest.fixture
def asked(monkeypatch):
    """The questions that were asked, as (script, hosts, modules, arguments); hosts answer what they would if all is
    well, without dgemm."""
    questions = []

    def ask(there, script, arguments=(), limit_s=30.0):
        questions.append((script.stem, there.hosts, there.modules, list(arguments)))
        return {host: answer(script.stem, host, arguments, there.hosts) for host in there.hosts}

    def answer(script, host, arguments, hosts):
        if script == "node_state":
            found = {name: XHPL for name in json.loads(arguments[0])}
            return {**state(host), **FACTS, "tools": {**found, "dgemm": None}}
        if script == "node_noise":
            return NOISE
        others = {
            other: {"ports": {port: "" for port in arguments[2:]}}
            for other in hosts
            if other != host
        }
        return {"gige": {"taken": [], "others": others}}

    monkeypatch.setattr(remote, "ask", ask)
    monkeypatch.setattr(cluster, "unavailable", lambda _: [])
    monkeypatch.setattr(cluster, "find_mpirun", lambda *_: "/opt/openmpi/bin/mpirun")
    return questions


def test_nodes_meet_in_groups_that_share_the_first(asked):
    """Everybody meets the first node; a group is small enough for all its nodes to be asked at once."""
    lines = list(doctor.lines(described()))
    groups = [hosts for script, hosts, *_ in asked if script == "node_reach"]
    assert len(groups) == 2 and all(group[0] == MANY[0] and len(group) <= 16 for group in groups)
    assert set(MANY) == {host for group in groups for host in group}
    networks = [json.loads(words[0]) for script, _, _, words in asked if script == "node_reach"]
    assert [set(network["gige"]) for network in networks] == [set(group) for group in groups]
    assert networks[1]["gige"]["node20"] == "10.1.0.20"
    assert not [line for line in lines if line.mark == "DIFFERS"]


def test_a_lost_node_is_asked_no_more(asked, monkeypatch):
    """It is named once, and the others are measured without it."""
    everybody = remote.ask

    def ask(there, *words):
        return {
            **everybody(there, *words),
            **({"node03": {"error": "no route"}} if "node03" in there.hosts else {}),
        }

    monkeypatch.setattr(remote, "ask", ask)
    lines = list(doctor.lines(described()))
    (lost,) = [line for line in lines if "node03" in line.text]
    assert lost.mark == MISSING and lost.text.startswith("node03: no route")
    assert not [
        hosts
        for script, hosts, *_ in asked
        if script in ("node_reach", "node_noise") and "node03" in hosts
    ]
    assert lines[0].text == "19 of 20 nodes answer"


def test_dgemm_of_a_node_is_that_of_all_its_ranks(monkeypatch):
    """Two ranks on each of two nodes: the second node's sum is too low, and it is named."""
    rates, products = (50.0, 50.0, 50.0, 20.0), 100
    work = 2 * dgemm.ORDER**2 * 128 * products / 1e9
    rows = [f"{rank:4} {rate:.6f} {work / rate:.6f} {products}" for rank, rate in enumerate(rates)]
    said = "\n".join(
        [f"dgemm: n = {dgemm.ORDER}, k = 128, window 2 s, 4 ranks", *rows, "end of dgemm\n"]
    )

    class Opened:
        def run(self, trial, commands):
            (command,) = commands
            assert (command.ranks, command.ranks_per_node) == (4, 2)
            execution = Execution("dgemm", command.argv, said, "", 0, 0.0, 1.0)
            return Transcript(trial, "mine", "measured", (execution,), {}, {})

    @contextmanager
    def open_testbed(described, networks):
        assert described["hosts"] == ["node01", "node02"] and list(networks) == ["gige"]
        yield Opened()

    monkeypatch.setattr(cluster, "open_testbed", open_testbed)
    facts = {host: {"tools": {"dgemm": XHPL}} for host in MANY[:2]}
    line = doctor.dgemm_rates(described(ranks_per_node=2, hosts=list(facts)), facts)
    assert line.mark == "DIFFERS" and "node02 82% of the median node's 85 Gflop/s" in line.text


def under_slurm(**others):
    """A cluster under Slurm, as described."""
    asked = {
        "partition": "batch",
        "time_limit_s": 3600,
        "account": "p123",
        "options": ["--constraint=milan"],
    }
    found = described(launcher="slurm", nodes=4, slurm={**asked, **others})
    del found["hosts"]
    return found


def test_outside_of_an_allocation_one_is_asked_for(tmp_path, monkeypatch, capfd):
    """The same command then runs in it, and its exit code is the doctor's."""
    salloc = tmp_path / "salloc"
    salloc.write_text('#!/bin/sh\necho "$@"\nexit 7\n')
    salloc.chmod(salloc.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr(sys, "argv", ["falloff", "doctor", "--testbed", "mine"])
    assert doctor.report(under_slurm()) == 7
    words = capfd.readouterr().out.split()
    assert words[-5:] == [sys.executable, "falloff", "doctor", "--testbed", "mine"]
    assert {
        "--nodes=4",
        "--exclusive",
        "--partition=batch",
        "--account=p123",
        "--constraint=milan",
    } < set(words)
