"""The doctor's checklist from canned answers: what agrees, differs or is missing, with the remedy;
who is asked what.
"""

import json
import stat
import sys

import pytest

from runners.engine import doctor
from runners.engine.doctor import DIFFERS, HERE, MISSING, UNKNOWN
from runners.testbeds import cluster, remote

HOSTS = ("node01", "node02", "node03", "node04")
NETWORK = {
    "name": "GigE",
    "subnet": "10.1.0.0/24",
    "mtu": 9000,
    "rate_bit_s": 1e9,
    "rdma": "mlx5_0:1",
}
DESCRIPTION = {
    **{"name": "mine", "kind": "cluster", "launcher": "ssh", "networks": {"gige": NETWORK}},
    **{"ranks_per_node": 32, "threads": 2, "memory_bytes": 256e9},
    "rpeak": {"value": 2e12, "source": "stated"},
}
XHPL = {"path": "/opt/hpl/xhpl", "digest": "0a6fef7ab9f3"}
ETH0 = {"mtu": 9000, "lower": None, "sent": 0, "received": 0}
STATE = {
    "kernel": "5.14.0-427",
    "system": "Rocky Linux 9.4",
    "python": "3.9.18",
    "cpu_model": "AMD EPYC 7543",
    "processors": 64,
    "tcp": {"congestion_control": "cubic", "rmem": "4096 131072 6291456", "wmem": None},
    "governor": "performance",
    "memory_bytes": 270e9,
    "link_bit_s": {"eth0": 10**9},
    "rdma_state": {"mlx5_0:1": "4: ACTIVE"},
}


@pytest.fixture
def asked(monkeypatch):
    """The questions that were asked, as (script, hosts, arguments)."""
    monkeypatch.setattr(cluster, "unavailable", lambda _: [])
    monkeypatch.setattr(cluster, "find_mpirun", lambda *_: "/opt/openmpi/bin/mpirun")
    return []


@pytest.fixture
def checked(asked, monkeypatch):
    """`checked(node02={...})`: all lines but those that are `here`, where nodes are alike but for
    what is changed of some.

    `taken` there are ports, `unreached` why visits to the node fail, and `cut_off` why those from
    it do.
    """

    def state(host, tools, changed):
        if "error" in changed or set(changed) == {"python"}:
            return changed
        eth0 = {**ETH0, "addresses": [f"10.1.0.{int(host[4:])}/24"], **changed.get("eth0", {})}
        there = {**dict.fromkeys(tools, XHPL), **changed.get("tools", {})}
        own = {"hostname": host, "interfaces": {"eth0": eth0}}
        return {**STATE, **own, **changed, "tools": there}

    def meeting(host, hosts, ports, changed):
        of_host = changed.get(host, {})
        reasons = {
            other: changed.get(other, {}).get("unreached", of_host.get("cut_off", ""))
            for other in hosts
            if other != host
        }
        others = {other: {"ports": dict.fromkeys(ports, why)} for other, why in reasons.items()}
        return {"gige": {"taken": of_host.get("taken", []), "others": others}}

    def lines(hosts=HOSTS, **changed):
        def ask(there, script, arguments=(), limit_s=30.0):
            asked.append((script.stem, there["hosts"], list(arguments)))
            if script.stem == "node_reach":
                return {
                    host: meeting(host, there["hosts"], arguments[2:], changed)
                    for host in there["hosts"]
                }
            tools = json.loads(arguments[0])
            return {host: state(host, tools, changed.get(host, {})) for host in there["hosts"]}

        monkeypatch.setattr(remote, "ask", ask)
        return list(doctor.lines({**DESCRIPTION, "hosts": list(hosts)}))

    return lines


def test_nodes_that_are_well(checked):
    """Everything that is checked is `here`, with its value."""
    lines = checked()
    assert {line.mark for line in lines} == {HERE}
    said = "\n".join(map(str, lines))
    assert said.startswith("  here     4 of 4 nodes answer")
    values = (
        "5.14.0-427",
        "performance",
        "MTU: 9000",
        "1 Gbit/s",
        "/opt/hpl/xhpl",
        "5201",
        "wmem unknown",
    )
    assert all(value in said for value in values)


@pytest.mark.parametrize(
    ("changed", "mark", "said"),
    [
        (
            {"kernel": "another"},
            DIFFERS,
            "kernel: another on node02; 5.14.0-427 on node01, node03, node04",
        ),
        ({"tcp": {"rmem": "another"}}, DIFFERS, "TCP: rmem another on node02; "),
        ({"governor": "powersave"}, DIFFERS, "powersave on node02: `cpupower"),
        ({"processors": 8}, DIFFERS, "node02: too few processors for 32 ranks of 2 threads"),
        ({"memory_bytes": 1e9}, DIFFERS, "node02: less memory than 2.56e+11 bytes"),
        ({"eth0": {"mtu": 1500}}, DIFFERS, "9000 is expected, 1500 on node02"),
        ({"link_bit_s": {"eth0": 10**8}}, DIFFERS, "1 Gbit/s is expected, 0.1 Gbit/s on node02"),
        ({"rdma_state": {"mlx5_0:1": "1: DOWN"}}, MISSING, "mlx5_0:1 on node02 is 1: DOWN"),
        ({"rdma_state": {}}, MISSING, "mlx5_0:1 on node02 is not there"),
        ({"eth0": {"addresses": []}}, MISSING, "node02 has no address on 10.1.0.0/24"),
        ({"tools": {"xhpl": None}}, MISSING, "xhpl on node02: install it"),
        ({"tools": {"xhpl": {**XHPL, "digest": "b"}}}, DIFFERS, "SHA-256 b on node02; "),
        (
            {"unreached": "no answer"},
            MISSING,
            "port 5201 of node02: no answer; open it in the firewall",
        ),
        (
            {"unreached": "full frames are lost"},
            MISSING,
            "port 5201 of node02: full frames are lost; a switch",
        ),
        # A cut cable fails both ways, and only the node behind it is named.
        (
            {"unreached": "no answer", "cut_off": "no answer"},
            MISSING,
            "port 5201 of node02: no answer",
        ),
        # Visits that fail where another program listens are its, and no firewall's.
        (
            {"unreached": "closed", "taken": [5201, 50505]},
            MISSING,
            "port 5201 of node02 is another program's",
        ),
    ],
)
def test_a_node_that_is_not_as_the_others_is_named(checked, changed, mark, said):
    """With what it has, what the others have or what is expected, and the remedy; and no other node
    is.
    """
    faults = [line for line in checked(node02=changed) if line.mark != HERE]
    assert (
        [line.mark for line in faults if said in line.text]
        == [mark]
        == list({one.mark for one in faults})
    )
    assert all("of node01" not in line.text for line in faults)


@pytest.mark.parametrize(
    ("governors", "mark"),
    [
        ((None,) * 4, UNKNOWN),
        (("powersave",) * 4, DIFFERS),
        ((None, "ondemand", None, None), DIFFERS),
    ],
)
def test_a_clock_that_follows_the_load_is_named(checked, governors, mark):
    """Also when all nodes agree on it; a kernel that tells no governor is no fault."""
    lines = checked(**{host: {"governor": name} for host, name in zip(HOSTS, governors)})
    (line,) = [line for line in lines if line.text.startswith("CPU governor")]
    assert line.mark == mark and ("cpupower" in line.text) == (mark == DIFFERS)


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("someone@node04: Permission denied (publickey).", "ssh-copy-id"),
        ("ERROR: Unable to locate a modulefile for 'openmpi/9'", "`modules`"),
        ("no answer within 60 s", "see whether it is up"),
    ],
)
def test_who_does_not_answer_is_named_with_the_reason(checked, reason, remedy):
    """Hosts with the same reason share a line, with the remedy for it; an old Python is one of its
    own; the rest go on.
    """
    gone = {"error": reason}
    count, lost, old, *rest = checked(node02={"python": "3.6.8"}, node03=gone, node04=gone)
    assert count.text == "1 of 4 nodes answer" and lost.mark == old.mark == MISSING
    assert f"node03, node04: {reason}" in lost.text and remedy in lost.text
    assert "node02" in old.text and "3.6.8" in old.text and "`python`" in old.text
    assert {line.mark for line in rest} == {HERE}


def test_nodes_meet_in_groups_that_share_the_first(checked, asked):
    """Groups are small enough for all to be asked at once; a lost node is named once and asked no
    more.
    """
    many = tuple(f"node{number:02}" for number in range(1, 21))
    lines = checked(many, node03={"error": "no route"})
    met = [(hosts, json.loads(words[0])) for script, hosts, words in asked if "reach" in script]
    assert len(met) == 2 and set(many) - {"node03"} == {host for hosts, _ in met for host in hosts}
    for hosts, networks in met:
        assert hosts[0] == many[0] and len(hosts) <= 16 and set(networks["gige"]) == set(hosts)
    assert met[1][1]["gige"]["node20"] == "10.1.0.20"
    (lost,) = [line for line in lines if line.mark != HERE]
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
    assert doctor.report({**DESCRIPTION, "launcher": "slurm", "nodes": 4, "slurm": asked}) == 7
    words = capfd.readouterr().out.split()
    assert words[-5:] == [sys.executable, "falloff", "doctor", "--testbed", "mine"]
    assert {"--nodes=4", "--exclusive", "--partition=batch", "--constraint=milan"} < set(words)
