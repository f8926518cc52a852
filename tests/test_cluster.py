"""The testbed on a user's cluster, with an ssh that goes nowhere: three hosts that are all this machine."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from local_ssh import LocalSsh

from runners.probes import node_state
from runners.record import Command, FalloffError, Trial, judge
from runners.testbeds import cluster

HOSTS = ["n1", "n2", "n3"]
TRIAL = Trial("t", "point", "any", 1, 1, {"interconnect": "gige"})


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
    interface, its = addressed[0]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return {
        "name": "mine", "kind": "cluster", "launcher": "ssh", "hosts": HOSTS, "nodes": 3, "python": sys.executable,
        "scratch": str(scratch), "networks": {"gige": {"interface": interface, "mtu": its["mtu"]}},
    }  # fmt: skip


@pytest.fixture
def opened(ssh, description):
    """The testbed, open."""
    with cluster.open_testbed(description, description["networks"]) as testbed:
        yield testbed


def outcome(transcript):
    """What the engine makes of it."""
    return judge(transcript, lambda transcript: [])


def test_programs_run_on_their_nodes(opened):
    """Each in the cluster's folder with its files, and the addresses of the nodes in its words."""
    address = opened.places["n2"]["gige"].address
    text = "two\nlines 'here'\n"
    commands = [
        Command(("echo", "{node2}", "two words"), node=3),
        Command(("pwd",)),
        Command(("cat", "HPL.dat"), node=2, files={"HPL.dat": text}),
    ]
    transcript = opened.run(TRIAL, commands)
    outputs = [execution.stdout for execution in transcript.executions]
    assert outputs == [f"{address} two words\n", f"{opened.folder}\n", text]
    assert "n3" in transcript.executions[0].argv
    assert outcome(transcript).status == "ok"
    assert transcript.evidence == "measured"


def test_settings_are_read_back(opened, description):
    """What the description states is asked for, and all else that decides is recorded."""
    transcript = opened.run(TRIAL, [Command(("true",), node=2)])
    assert (
        transcript.requested["mtu"]
        == transcript.effective["mtu"]
        == description["networks"]["gige"]["mtu"]
    )
    assert {"congestion_control", "rmem", "wmem"} <= set(transcript.effective) - set(
        transcript.requested
    )


def test_another_mtu_than_stated_is_invalid(ssh, description):
    """A run on other settings than the description's must not be used."""
    description["networks"]["gige"]["mtu"] += 1
    with cluster.open_testbed(description, description["networks"]) as testbed:
        assert outcome(testbed.run(TRIAL, [Command(("true",))])).status == "invalid"
    assert not list(Path(description["scratch"]).iterdir())


def test_a_server_is_up_before_its_client_and_gone_after_the_trial(opened):
    """The client connects at once; afterwards the port is free again, also for the next trial."""
    serve = "import socket, time; time.sleep(0.3); s = socket.create_server(('', 47311)); time.sleep(60)"
    connect = "import socket; socket.create_connection(('127.0.0.1', 47311)); print('connected')"
    commands = [
        Command(("python3", "-c", serve), node=2, background=True, listens=47311),
        Command(("python3", "-c", connect), node=1),
    ]
    for _ in range(2):
        transcript = opened.run(TRIAL, commands)
        assert outcome(transcript).status == "ok", transcript
        assert [execution.exit_code for execution in transcript.executions] == [0, 0]


def test_a_tool_that_is_missing_names_its_remedy(opened):
    """All that is missing is told before a campaign begins."""
    assert opened.missing(["true", "fanout"]) == []
    (remedy,) = opened.missing(["no-such-tool"])
    assert "n1, n2, n3" in remedy and "[tools]" in remedy


def test_with_a_node_lost_the_rest_goes_on(opened, ssh):
    """What needs no more nodes than are left runs; the rest is unavailable, and the node named."""
    ssh.lose("n2")
    two = opened.run(TRIAL, [Command(("echo", "here"), node=2)])
    three = opened.run(TRIAL, [Command(("echo", "here"), node=3)])
    assert outcome(two).status == "ok", outcome(two)
    assert "n3" in two.executions[0].argv
    assert outcome(three).status == "unavailable"
    assert (
        "n2 is lost" in outcome(three).reason
        and "3 nodes are needed, 2 of 3" in outcome(three).reason
    )


def test_a_node_lost_during_a_trial_is_named(opened, ssh):
    """The trial is no measurement, though its program ended well."""
    (ssh.folder / "lose").write_text(f"#!/bin/sh\ntouch {ssh.folder}/n1.down\n")
    (ssh.folder / "lose").chmod(0o755)
    failed = outcome(opened.run(TRIAL, [Command(("lose",))]))
    assert failed.status == "fault" and "n1 is lost" in failed.reason


def test_a_node_that_was_gone_meanwhile_is_lost(opened):
    """It answers again, but what was put there went with the connection."""
    shutil.rmtree(opened.folder)
    failed = outcome(opened.run(TRIAL, [Command(("true",))]))
    assert (
        failed.status == "unavailable" and "the connection that kept it was lost" in failed.reason
    )


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


def test_mpirun_starts_ranks_on_the_hosts(opened):
    """In the cluster's folder, with the description's threads, each rank's place on standard error."""
    says = ("sh", "-c", "echo $PWD $OMP_NUM_THREADS")
    transcript = opened.run(TRIAL, [Command(says, ranks=2, timeout_s=30)])
    assert outcome(transcript).status == "ok", transcript
    assert transcript.executions[0].stdout == 2 * f"{opened.folder} 1\n"


def test_provenance_tells_of_every_node(opened, ssh):
    """Its number, its interface and address on each network, its kernel; and who is lost."""
    ssh.lose("n3")
    told = json.loads(json.dumps(opened.provenance()))
    assert [told["nodes"][host]["node"] for host in ("n1", "n2")] == [1, 2]
    assert told["nodes"]["n1"]["networks"]["gige"]["address"]
    assert list(told["lost"]) == ["n3"]


KILLED = """\
import json, sys
from runners.record import Command, Trial
from runners.testbeds import cluster
description = json.loads(sys.argv[1])
with cluster.open_testbed(description, description["networks"]) as testbed:
    trial = Trial("t", "point", "any", 1, 1, {"interconnect": "gige"})
    asleep = ("sleep", "62.5")
    testbed.run(trial, [Command(asleep, node=2, background=True), Command(asleep, ranks=2, timeout_s=60)])
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_the_program(ssh, description, how):
    """Interrupted, ended or killed in a trial, it leaves no program and no folder on any host."""
    running = subprocess.Popen(
        [sys.executable, "-c", KILLED, json.dumps(description)], stderr=subprocess.DEVNULL
    )
    wait_until(lambda: len(asleep()) >= 3)
    os.kill(running.pid, how)
    running.wait(60)
    wait_until(lambda: not asleep() and not list(Path(description["scratch"]).iterdir()))


def asleep() -> list[str]:
    """The programs of a trial that run."""
    return subprocess.run(
        ["pgrep", "-f", "sleep 62[.]5"], capture_output=True, text=True
    ).stdout.split()


def wait_until(holds) -> None:
    """Fail when something does not become so within seconds."""
    deadline = time.monotonic() + 40
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
