"""Programs and scripts on the hosts of a cluster, by ssh and by srun: they answer, and they end with who asked."""

import json
import sys
from pathlib import Path

import pytest
import session
from nodes import ROOT
from waiting import until, until_none

from runners.testbeds import remote
from runners.tools import PROBES

HOSTS = ("n1", "n2", "n3", "n4")
ASK = """
import json, sys
from pathlib import Path
from runners.testbeds import remote
hosts = remote.Cluster("ssh", tuple(sys.argv[3:]), ssh_config=sys.argv[1])
print(json.dumps(remote.ask(hosts, Path(sys.argv[2]))))
"""


@pytest.fixture(scope="module")
def by_ssh(ssh_config):
    """All compute nodes."""
    return remote.Cluster("ssh", HOSTS, ssh_config=str(ssh_config))


def ask(cluster, by_ssh, *hosts):
    """What hosts answer to node_state, asked from the head."""
    argv = [sys.executable, "-c", ASK, by_ssh.ssh_config, str(PROBES / "node_state.py"), *hosts]
    done = cluster.head.run(
        argv, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def begin(cluster, by_ssh, script, *arguments):
    """A script of runners/probes on n1, started from the head; its standard input stays open."""
    file = PROBES / f"{script}.py"
    begun = session.start(cluster, cluster.head, remote.script_argv(by_ssh, "n1", file, arguments))
    begun.process.stdin.write(file.read_text())
    begun.process.stdin.flush()
    return begun


def test_every_host_answers_for_itself(cluster, by_ssh):
    """Its own name, addresses and MTU, in one round."""
    said = ask(cluster, by_ssh, *HOSTS)
    assert [said[host]["hostname"] for host in HOSTS] == list(HOSTS)
    assert said["n3"]["interfaces"]["eth1"]["addresses"] == ["10.81.1.3/24"]
    assert {
        interface["mtu"] for host in HOSTS for interface in said[host]["interfaces"].values()
    } == {1500, 65536}


def test_hosts_that_do_not_answer_are_named(cluster, by_ssh):
    """A host without a name, one without a server: each has its reason, and the others answer all the same."""
    cluster.compute[3].run(["sh", "-c", "kill $(ps -C sshd -o pid=)"])
    try:
        said = ask(cluster, by_ssh, "n1", "nowhere", "n4")
    finally:
        config = Path(by_ssh.ssh_config).with_name("sshd_config")
        cluster.compute[3].run(["/usr/sbin/sshd", "-f", str(config)])
    assert said["n1"]["hostname"] == "n1"
    assert "Connection refused" in said["n4"]["error"] and "nowhere" in said["nowhere"]["error"]


@pytest.mark.parametrize("ending", ["INT", "KILL", "closed input"])
def test_a_guarded_program_ends_with_who_started_it(cluster, by_ssh, ending):
    """Whether ssh is interrupted, is killed or closes its input: the program and its own children end on the node."""
    begun = begin(
        cluster, by_ssh, "guard", "600", "/tmp", "0", "sh", "-c", "sleep 1357 & sleep 2468"
    )
    running = cluster.compute[0].commands
    until(lambda: {"sleep 1357", "sleep 2468"} <= set(running()), "the program runs")
    if ending == "closed input":
        begun.process.stdin.close()
    else:
        begun.signal(ending)
    until_none(running)
    begun.process.wait(10)


def test_a_guarded_program_ends_after_the_connection_was_lost(cluster, by_ssh):
    """A cable is pulled: ssh notices and ends, and with the cable back the node learns of it."""
    lost = cluster.compute[0]
    begun = begin(cluster, by_ssh, "guard", "600", "/tmp", "0", "sleep", "1357")
    until(lambda: "sleep 1357" in lost.commands(), "the program runs")
    with cluster.unplugged(lost):
        begun.process.wait(60)
        assert "sleep 1357" in lost.commands()
    until_none(lost.commands, 120)


def test_scripts_run_in_a_job_by_srun(cluster, real_slurm):
    """Inside an allocation srun does what ssh does elsewhere, on the host that is named."""
    folder = cluster.shared / "steps"
    folder.mkdir()
    hosts = remote.Cluster("slurm", HOSTS)
    file = PROBES / "node_state.py"
    words = [remote.script_argv(hosts, host, file) for host in ("n3", "n1")]
    (folder / "words.json").write_text(json.dumps(words))
    script = """
import json, subprocess, sys
for words in json.load(open("words.json")):
    print(subprocess.run(words, stdin=open(sys.argv[1]), stdout=subprocess.PIPE, text=True).stdout, end="")
"""
    (folder / "steps.py").write_text(script)
    assert (
        real_slurm.await_end(real_slurm.submit(folder, f"python3 steps.py {file}")) == "COMPLETED"
    )
    said = (folder / "out").read_text().splitlines()
    assert [json.loads(line)["hostname"] for line in said] == ["n3", "n1"]
