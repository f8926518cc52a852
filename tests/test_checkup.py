"""The doctor's rounds with canned answers: who is asked what, in which groups, and what a launcher makes of it."""

import json
import stat
import sys
from contextlib import contextmanager

import pytest

import checkup
from runners import dgemm
from runners.checklist import MISSING
from runners.record import Execution, Transcript
from runners.testbeds import cluster, cluster_launch, remote

HOSTS = tuple(f"node{number:02}" for number in range(1, 21))
XHPL = {"path": "/opt/xhpl", "digest": "0a6fef7ab9f3"}
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


def description(**others):
    """A cluster by ssh, as it is when its description is complete."""
    networks = {"gige": {"name": "GigE", "subnet": "10.1.0.0/24", "mtu": 1500, "rate_bit_s": 1e9}}
    named = {"name": "mine", "kind": "cluster", "launcher": "ssh"}
    return {**named, "hosts": list(HOSTS), "networks": networks, **others}


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
    monkeypatch.setattr(cluster_launch, "find_mpirun", lambda *_: "/opt/openmpi/bin/mpirun")
    return questions


def test_nodes_meet_in_groups_that_share_the_first(asked):
    """Everybody meets the first node; a group is small enough for all its nodes to be asked at once."""
    lines = list(checkup.lines(description()))
    groups = [hosts for script, hosts, *_ in asked if script == "node_reach"]
    assert len(groups) == 2 and all(group[0] == HOSTS[0] and len(group) <= 16 for group in groups)
    assert set(HOSTS) == {host for group in groups for host in group}
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
    lines = list(checkup.lines(description()))
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
    facts = {host: {"tools": {"dgemm": XHPL}} for host in HOSTS[:2]}
    line = checkup.dgemm_rates(description(ranks_per_node=2, hosts=list(facts)), facts)
    assert line.mark == "DIFFERS" and "node02 82% of the median node's 85 Gflop/s" in line.text


def under_slurm(**others):
    """A cluster under Slurm, as described."""
    asked = {
        "partition": "batch",
        "time_limit_s": 3600,
        "account": "p123",
        "options": ["--constraint=milan"],
    }
    described = description(launcher="slurm", nodes=4, slurm={**asked, **others})
    del described["hosts"]
    return described


def test_outside_of_an_allocation_one_is_asked_for(tmp_path, monkeypatch, capfd):
    """The same command then runs in it, and its exit code is the doctor's."""
    salloc = tmp_path / "salloc"
    salloc.write_text('#!/bin/sh\necho "$@"\nexit 7\n')
    salloc.chmod(salloc.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr(sys, "argv", ["falloff", "doctor", "--testbed", "mine"])
    assert checkup.report(under_slurm()) == 7
    words = capfd.readouterr().out.split()
    assert words[-5:] == [sys.executable, "falloff", "doctor", "--testbed", "mine"]
    assert {
        "--nodes=4",
        "--exclusive",
        "--partition=batch",
        "--account=p123",
        "--constraint=milan",
    } < set(words)
