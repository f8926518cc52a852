"""The emulated nodes themselves: they are separate machines to real daemons, and nothing of them stays behind."""

import signal
import subprocess
import sys
from pathlib import Path

import nodes
from waiting import until

ALL = ["n1", "n2", "n3", "n4"]


def test_nodes_are_machines_of_their_own(cluster):
    """Each has its own hostname, interfaces and processes, and files in /tmp that no other node sees."""
    for node in cluster.compute:
        said = node.run(
            ["sh", "-c", "touch /tmp/$(hostname); hostname; echo /tmp/n*; ls /sys/class/net"]
        ).stdout
        assert said.split() == [node.name, f"/tmp/{node.name}", "eth0", "eth1", "lo"]
        assert node.run(["cat", "/proc/1/cmdline"]).stdout == "sleep\0infinity\0"
    assert not Path("/tmp/n1").exists()


def test_sshd_is_strict(cluster, ssh_config):
    """Without the key nobody gets in, and a server that is not among the known hosts is not believed."""
    ask = ["ssh", "-F", str(ssh_config), "-o", "BatchMode=yes"]
    refused = cluster.head.run([*ask, "-o", "PubkeyAuthentication=no", "n1", "hostname"])
    assert refused.returncode == 255 and "Permission denied" in refused.stderr
    unknown = cluster.head.run([*ask, "-o", "UserKnownHostsFile=/dev/null", "n1", "hostname"])
    assert unknown.returncode == 255 and "Host key verification failed" in unknown.stderr


def test_slurm_runs_a_job(real_slurm):
    """A batch job has all nodes, starts ranks on each by mpirun and by srun, and ends with its own exit code."""
    folder = real_slurm.nodes.shared / "job"
    job = real_slurm.submit(
        folder, "mpirun --bind-to none -np 4 hostname\nsrun --mpi=pmix -n 4 hostname\nexit 3"
    )
    assert real_slurm.await_end(job) == "FAILED"
    assert sorted((folder / "out").read_text().split()) == sorted(ALL * 2)
    assert "ExitCode=3:0" in real_slurm.ask("scontrol", "show", "job", job)


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

    def owned() -> list[str]:
        ps = subprocess.run(["ps", "-e", "-ww", "-o", "args="], capture_output=True, text=True)
        return [line for line in ps.stdout.splitlines() if str(state) in line]

    assert state.name and any("munged" in line for line in owned())
    child.send_signal(signal.SIGKILL)
    child.communicate()
    until(lambda: not owned(), "its daemons die", 5)
    with nodes.up(1):
        assert not state.exists()
    assert str(state) not in Path("/proc/self/mounts").read_text()
