"""The doctor's checklist from canned answers: what agrees, differs or is missing, with the remedy; who is asked what."""

import copy
import json
import stat
import sys

import pytest

from runners import doctor
from runners.doctor import DIFFERS, HERE, MISSING, UNKNOWN
from runners.testbeds import cluster, remote

HOSTS = ("node01", "node02", "node03")
NETWORK = {"subnet": "10.1.0.0/24", "mtu": 9000, "rate_bit_s": 1e9, "rdma": "mlx5_0:1"}
XHPL = {"path": "/opt/hpl/xhpl", "digest": "0a6fef7ab9f3"}
PORT = {"interface": "eth0", "mtu": 9000, "rate_bit_s": 10**9, "rdma_state": "4: ACTIVE"}
NODE = {
    "kernel": "5.14.0-427",
    "system": "Rocky Linux 9.4",
    "python": "3.9.18",
    "cpu_model": "AMD EPYC 7543",
    "processors": 64,
    "tcp": "congestion_control cubic",
    "governor": "performance",
    "memory_bytes": 270e9,
    "networks": {"gige": PORT},
    "tools": {"xhpl": XHPL},
}
DESCRIPTION = {"ranks_per_node": 32, "threads": 2, "memory_bytes": 256e9}


def nodes(**others):
    """Three nodes alike, but for what `others` say of some: changed facts by host."""
    facts = {host: copy.deepcopy(NODE) for host in HOSTS}
    for host, changed in others.items():
        facts.setdefault(host, {}).update(changed)
    return facts


def checked(facts):
    """The lines on these facts that need no further question."""
    whole = doctor.whole(facts)
    return [
        *doctor.reached(facts),
        *doctor.alike(whole),
        *doctor.sizes(DESCRIPTION, whole),
        *doctor.network("gige", NETWORK, whole),
        doctor.tool("xhpl", whole),
    ]


def test_nodes_that_are_well():
    """Everything that is checked is `here`, with its value."""
    lines = [*checked(nodes()), *doctor.ports([meeting()])]
    assert {line.mark for line in lines} == {HERE}
    said = "\n".join(map(str, lines))
    assert said.startswith("  here     3 of 3 nodes answer")
    for value in ("5.14.0-427", "performance", "MTU: 9000", "1 Gbit/s", "/opt/hpl/xhpl", "5201"):
        assert value in said


def port(**changed):
    """A node's networks with other values of its only one."""
    return {"networks": {"gige": {**PORT, **changed}}}


@pytest.mark.parametrize(
    ("changed", "mark", "said"),
    [
        ({"kernel": "another"}, DIFFERS, "kernel: another on node02; 5.14.0-427 on node01, node03"),
        ({"tcp": "another"}, DIFFERS, "TCP: another on node02; "),
        ({"governor": "powersave"}, DIFFERS, "powersave on node02: `cpupower"),
        ({"processors": 8}, DIFFERS, "node02: too few processors for 32 ranks of 2 threads"),
        ({"memory_bytes": 1e9}, DIFFERS, "node02: less memory than 2.56e+11 bytes"),
        (port(mtu=1500), DIFFERS, "9000 is expected, 1500 on node02"),
        (port(rate_bit_s=10**8), DIFFERS, "1 Gbit/s is expected, 0.1 Gbit/s on node02"),
        (port(rdma_state="1: DOWN"), MISSING, "mlx5_0:1 on node02 is 1: DOWN"),
        (port(rdma_state=None), MISSING, "mlx5_0:1 on node02 is not there"),
        ({"networks": {"gige": None}}, MISSING, "node02 has no address on 10.1.0.0/24"),
        ({"tools": {"xhpl": None}}, MISSING, "xhpl on node02: install it"),
        ({"tools": {"xhpl": {**XHPL, "digest": "b"}}}, DIFFERS, "SHA-256 b on node02; "),
    ],
)
def test_a_node_that_is_not_as_the_others_is_named(changed, mark, said):
    """With what it has, what the others have or what is expected, and the remedy."""
    faults = [line for line in checked(nodes(node02=changed)) if line.mark != HERE]
    assert [line.mark for line in faults if said in line.text] == [mark]


@pytest.mark.parametrize(
    ("governors", "mark"),
    [
        ((None, None, None), UNKNOWN),
        (("powersave", "powersave", "powersave"), DIFFERS),
        ((None, "ondemand", None), DIFFERS),
    ],
)
def test_a_clock_that_follows_the_load_is_named(governors, mark):
    """Also when all nodes agree on it; a kernel that tells no governor is no fault."""
    facts = nodes(**{host: {"governor": name} for host, name in zip(HOSTS, governors)})
    line = doctor.alike(facts)[-1]
    assert line.mark == mark and ("cpupower" in line.text) == (mark == DIFFERS)


def test_who_does_not_answer_is_named_with_the_reason():
    """Hosts with the same reason share a line; an old Python is one of its own; the rest go on."""
    gone = {"error": "Connection refused"}
    facts = {**nodes(), "node04": gone, "node05": gone, "node06": {"python": "3.6.8"}}
    count, lost, old = doctor.reached(facts)
    assert count.text == "3 of 6 nodes answer" and lost.mark == old.mark == MISSING
    assert "node04, node05: Connection refused" in lost.text
    assert "node06" in old.text and "3.6.8" in old.text and "`python`" in old.text
    assert set(doctor.whole(facts)) == set(HOSTS)


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("someone@node04: Permission denied (publickey).", "ssh-copy-id"),
        ("Host key verification failed.", "by hand"),
        ("ssh: Could not resolve hostname node04: Name or service not known", "`hosts`"),
        ("ERROR: Unable to locate a modulefile for 'openmpi/9'", "`modules`"),
        ("no answer within 60 s", "see whether it is up"),
    ],
)
def test_the_remedy_is_for_the_reason(reason, remedy):
    """What ssh says decides what is to be done."""
    (line,) = doctor.reached({"node04": {"error": reason}})
    assert line.mark == MISSING and reason in line.text and remedy in line.text


def meeting(hosts=HOSTS, **reasons):
    """All hosts visit all others on one network; visits to (or with `of_` from) a host fail for a reason."""
    met = {}
    for host in hosts:
        of_host = reasons.get(f"of_{host}", "")
        others = {
            other: {"ports": {"5201": reasons.get(other, of_host)}}
            for other in hosts
            if other != host
        }
        met[host] = {"gige": {"taken": [], "others": others}}
    return met


def test_a_closed_port_is_named_where_it_is_closed():
    """With the remedy for the reason; a cut cable fails both ways, and only the node behind it is named."""
    (line,) = doctor.ports([meeting(node02="no answer")])
    assert line.mark == MISSING and "port 5201 of node02: no answer" in line.text
    assert "firewall" in line.text
    (line,) = doctor.ports([meeting(node02="full frames are lost")])
    assert "MTU" in line.text and "firewall" not in line.text
    cut = meeting((*HOSTS, "node04"), node03="no answer", of_node03="no answer")
    (line,) = doctor.ports([cut])
    assert "of node03: no answer" in line.text and "node01" not in line.text


def test_a_port_of_another_program_is_no_firewall():
    """It is named once, and the visits that failed there are its; who did not answer is unknown."""
    met = meeting(node02="the connection was closed")
    met["node02"]["gige"]["taken"] = [5201]
    taken, unknown = sorted(doctor.ports([met, {"node09": {"error": "no route"}}]), key=str)
    assert taken.mark == MISSING and "port 5201 of node02 is another program's" in taken.text
    assert unknown.mark == UNKNOWN and "node09" in unknown.text and "no route" in unknown.text


MANY = tuple(f"node{number:02}" for number in range(1, 21))


def described(**others):
    """A cluster by ssh, as it is when its description is complete."""
    networks = {"gige": {"name": "GigE", "subnet": "10.1.0.0/24", "mtu": 1500, "rate_bit_s": 1e9}}
    named = {"name": "mine", "kind": "cluster", "launcher": "ssh"}
    return {**named, "hosts": list(MANY), "networks": networks, **others}


@pytest.fixture
def asked(monkeypatch):
    """The questions that were asked, as (script, hosts, arguments); all hosts but node03 answer as if all is well."""
    questions = []

    def ask(there, script, arguments=(), limit_s=30.0):
        questions.append((script.stem, there["hosts"], list(arguments)))
        return {
            host: answer(script.stem, host, arguments, there["hosts"]) for host in there["hosts"]
        }

    def answer(script, host, arguments, hosts):
        if host == "node03":
            return {"error": "no route"}
        if script == "node_state":
            addresses = [f"10.1.0.{int(host[4:])}/24"]
            eth0 = {"addresses": addresses, "mtu": 1500, "lower": None, "sent": 0, "received": 0}
            return {
                **NODE,
                "hostname": host,
                "tcp": {"congestion_control": "cubic", "rmem": "4096 131072 6291456", "wmem": None},
                "interfaces": {"eth0": eth0},
                "link_bit_s": {"eth0": 10**9},
                "rdma_state": {},
                "tools": dict.fromkeys(json.loads(arguments[0]), XHPL),
            }
        ports = {"ports": dict.fromkeys(arguments[2:], "")}
        others = {other: ports for other in hosts if other != host}
        return {"gige": {"taken": [], "others": others}}

    monkeypatch.setattr(remote, "ask", ask)
    monkeypatch.setattr(cluster, "unavailable", lambda _: [])
    monkeypatch.setattr(cluster, "find_mpirun", lambda *_: "/opt/openmpi/bin/mpirun")
    return questions


def test_nodes_meet_in_groups_that_share_the_first(asked):
    """Groups are small enough for all to be asked at once; a lost node is named once and asked no more."""
    lines = list(doctor.lines(described()))
    met = [(hosts, json.loads(words[0])) for script, hosts, words in asked if "reach" in script]
    assert len(met) == 2 and set(MANY) - {"node03"} == {host for hosts, _ in met for host in hosts}
    for hosts, networks in met:
        assert hosts[0] == MANY[0] and len(hosts) <= 16 and set(networks["gige"]) == set(hosts)
    assert met[1][1]["gige"]["node20"] == "10.1.0.20"
    assert lines[0].text == "19 of 20 nodes answer"
    (lost,) = [line for line in lines if line.mark not in (HERE, UNKNOWN)]
    assert lost.mark == MISSING and lost.text.startswith("node03: no route")


def test_outside_of_an_allocation_one_is_asked_for(tmp_path, monkeypatch, capfd):
    """The same command then runs in it, and its exit code is the doctor's."""
    salloc = tmp_path / "salloc"
    salloc.write_text('#!/bin/sh\necho "$@"\nexit 7\n')
    salloc.chmod(salloc.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr(sys, "argv", ["falloff", "doctor", "--testbed", "mine"])
    asked = {"partition": "batch", "time_limit_s": 3600, "options": ["--constraint=milan"]}
    assert doctor.report(described(launcher="slurm", nodes=4, slurm=asked)) == 7
    words = capfd.readouterr().out.split()
    assert words[-5:] == [sys.executable, "falloff", "doctor", "--testbed", "mine"]
    assert {"--nodes=4", "--exclusive", "--partition=batch", "--constraint=milan"} < set(words)
