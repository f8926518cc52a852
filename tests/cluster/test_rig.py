"""The emulated nodes themselves: they are separate machines to real daemons, and nothing of them stays behind."""

import signal
import subprocess
import sys
from pathlib import Path

import nodes
from waiting import until, until_none

ALL = ["n1", "n2", "n3", "n4"]


def test_nodes_are_machines_of_their_own(cluster):
    """Each has its own hostname, interfaces and processes, and files in /tmp that no other node sees."""
    for node in cluster.compute:
        said = node.run(["sh", "-c", "touch /tmp/$(hostname); hostname; echo /tmp/n*; ls /sys/class/net"]).stdout
        assert said.split() == [node.name, f"/tmp/{node.name}", "eth0", "eth1", "lo"]
        assert node.run(["cat", "/proc/1/cmdline"]).stdout == "sleep\0infinity\0"
    assert not Path("/tmp/n1").exists()


def test_nodes_share_one_folder(cluster):
    """What one writes there, the others and this machine read: a cluster's shared file system."""
    cluster.compute[0].run(["sh", "-c", f"echo here > {cluster.shared}/note"])
    assert cluster.head.run(["cat", f"{cluster.shared}/note"]).stdout == "here\n"
    assert (cluster.shared / "note").read_text() == "here\n"


def test_nodes_reach_each_other_on_both_networks(cluster):
    """By name on the first, by address on the second."""
    for to in ("n1", "10.81.1.1"):
        assert " 0% packet loss" in cluster.head.run(["ping", "-c", "1", "-W", "2", to]).stdout


def test_an_unplugged_node_is_not_reached(cluster):
    """Nobody answers meanwhile, and everybody afterwards."""
    ping = ["ping", "-c", "1", "-W", "1", "n2"]
    with cluster.unplugged(cluster.compute[1]):
        assert cluster.head.run(ping).returncode != 0
    until(lambda: cluster.head.run(ping).returncode == 0, "n2 is reached again")


def test_sshd_lets_the_key_in(cluster, ssh_config):
    """A login without a password or a question, on every node and between them."""
    for node in ALL:
        said = cluster.head.run(["ssh", "-F", str(ssh_config), "-o", "BatchMode=yes", node, "hostname"])
        assert (said.stdout, said.stderr) == (f"{node}\n", "")
    onwards = ["ssh", "-F", str(ssh_config), "n1", "ssh", "-F", str(ssh_config), "n2", "hostname"]
    assert cluster.head.run(onwards).stdout == "n2\n"


def test_sshd_is_strict(cluster, ssh_config):
    """Without the key nobody gets in, and a server that is not among the known hosts is not believed."""
    ask = ["ssh", "-F", str(ssh_config), "-o", "BatchMode=yes"]
    refused = cluster.head.run([*ask, "-o", "PubkeyAuthentication=no", "n1", "hostname"])
    assert refused.returncode == 255 and "Permission denied" in refused.stderr
    unknown = cluster.head.run([*ask, "-o", "UserKnownHostsFile=/dev/null", "n1", "hostname"])
    assert unknown.returncode == 255 and "Host key verification failed" in unknown.stderr


def test_mpirun_starts_ranks_by_ssh(cluster, ssh_config):
    """Open MPI's own way over ssh, with the same configuration."""
    over = ["--mca", "plm_rsh_args", f"-F {ssh_config}", "--mca", "btl_tcp_if_include", "10.81.0.0/24"]
    hosts = ["--mca", "oob_tcp_if_include", "10.81.0.0/24", "--bind-to", "none", "--host", ",".join(ALL)]
    words = ["mpirun", "--allow-run-as-root", *over, *hosts, "hostname"]
    assert sorted(cluster.head.run(words).stdout.split()) == ALL


def test_slurm_runs_a_job(real_slurm):
    """A batch job has all nodes, starts ranks on each by mpirun and by srun, and ends with its own exit code."""
    folder = real_slurm.nodes.shared / "job"
    job = real_slurm.submit(folder, "mpirun --bind-to none -np 4 hostname\nsrun --mpi=pmix -n 4 hostname\nexit 3")
    assert real_slurm.await_end(job) == "FAILED"
    assert sorted((folder / "out").read_text().split()) == sorted(ALL * 2)
    assert "ExitCode=3:0" in real_slurm.ask("scontrol", "show", "job", job)


def test_slurm_cancels_a_job_and_all_its_ranks(real_slurm):
    """Nothing of it is left on any node."""
    job = real_slurm.submit(real_slurm.nodes.shared / "endless", "exec srun sleep 4321")
    running = real_slurm.nodes.commands
    ranks = [f"{node}: /usr/bin/sleep 4321" for node in ALL]
    until(lambda: set(ranks) <= set(running()), "its ranks run")
    real_slurm.ask("scancel", job)
    until_none(running)
    until(lambda: set(real_slurm.states().values()) == {"idle"}, "all nodes are idle again")
    assert real_slurm.job_state(job) == "CANCELLED"


OWNER = """
import nodes, slurm, sshd, sys
with nodes.up(2) as up:
    sshd.serve(up)
    slurm.start(up)
    print(up.shared.parent, flush=True)
    sys.stdin.read()
"""


def test_a_killed_test_leaves_nothing():
    """Killed with kill -9, its daemons die with it, and the next one removes its folder and its namespaces."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    child = subprocess.Popen([sys.executable, "-c", OWNER], cwd=Path(__file__).parent, **pipes)
    state = Path(child.stdout.readline().strip())
    owned = lambda: [line for line in _all_commands() if str(state) in line]
    assert state.name and any("munged" in line for line in owned())
    child.send_signal(signal.SIGKILL)
    child.communicate()
    until(lambda: not owned(), "its daemons die", 5)
    with nodes.up(1):
        assert not state.exists()
    assert str(state) not in Path("/proc/self/mounts").read_text()


def _all_commands() -> list[str]:
    return subprocess.run(["ps", "-e", "-ww", "-o", "args="], capture_output=True, text=True).stdout.splitlines()
