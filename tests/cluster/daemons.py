"""Real daemons on emulated nodes: OpenSSH servers and a Slurm, with munge and slurmctld on the
head.

Keys are made for the test: nobody's own keys or settings are read or changed.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nodes import EMULATED, Node, Nodes
from user import until

from runners.testbeds import emulated, netns

_PACKAGES = {
    "/usr/sbin/sshd": "openssh-server",
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
    "munged": "munge",
}

_KEYGEN = ["ssh-keygen", "-q", "-t", "ed25519", "-N", ""]

_SERVER = """\
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PermitRootLogin prohibit-password
PidFile none
# The tests run as root, as whom mpirun otherwise refuses.
SetEnv OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"""

_CLIENT = """\
Host *
    IdentityFile {folder}/user
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
"""


def lacking(needed: Iterable[str] = _PACKAGES) -> list[str]:
    """Why there can be no nodes with these daemons here; empty if there can."""
    packages = sorted({_PACKAGES[daemon] for daemon in needed if not shutil.which(daemon)})
    missing = [f"daemons are missing: apt-get install {' '.join(packages)}"] if packages else []
    rights = [] if os.geteuid() == 0 else ["they need root"]
    return emulated.unavailable(EMULATED) + rights + missing


def ssh(nodes: Nodes) -> Path:
    """Start a server on every node, to end with it; the configuration file for clients, as in `ssh
    -F FILE`.

    Every node has the same host key, and it is known under their names and addresses.
    """
    folder = nodes.shared / "ssh"
    folder.mkdir()
    for key in ("host", "user"):
        subprocess.run([*_KEYGEN, "-C", key, "-f", str(folder / key)], check=True)
    names = ",".join([*(node.name for node in nodes.all), "10.81.*"])
    (folder / "known_hosts").write_text(f"{names} {(folder / 'host.pub').read_text()}")
    server, client = folder / "sshd_config", folder / "config"
    server.write_text(_SERVER.format(folder=folder))
    client.write_text(_CLIENT.format(folder=folder))
    for node in nodes.all:
        # An absolute path, because sshd starts itself anew for each connection.
        done = node.run(
            ["/usr/sbin/sshd", "-f", str(server), "-E", str(folder / f"{node.name}.log")]
        )
        assert done.returncode == 0, done.stderr
    for node in nodes.all:
        until(lambda: 22 in netns.listening(node.space), f"sshd of {node.name} listens")
    return client


# What a user of the cluster has: jobs inherit it. The tests run as root, as whom mpirun otherwise
# refuses.
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",  # all nodes share the machine's processors
}

_SLURM_CONF = """\
ClusterName=falloff
SlurmctldHost={head}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
SlurmdSpoolDir={folder}/spool/%n
SlurmdParameters=config_overrides
TmpFS=/tmp
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
TopologyPlugin=topology/tree
SchedulerParameters=bf_interval=2,sched_interval=2,batch_sched_delay=0
ReturnToService=2
SlurmdTimeout=10
KillWait=5
MinJobAge=300
NodeName={compute} CPUs=1 State=UNKNOWN
PartitionName=all Nodes={compute} Default=YES MaxTime=60 State=UP
"""


@dataclass(frozen=True)
class Slurm:
    """A Slurm that is up; `environment` is what its clients need, on the head and in jobs."""

    nodes: Nodes
    environment: dict[str, str]

    def ask(self, *argv: str) -> str:
        """What a client of Slurm's prints on the head; raises AssertionError with its complaint
        when it fails.
        """
        done = self.nodes.head.run(argv, env=self.environment)
        assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr}"
        return done.stdout.strip()

    def states(self) -> dict[str, str]:
        """The state of every compute node, by its name."""
        return dict(
            line.split() for line in self.ask("sinfo", "-h", "-N", "-o", "%N %T").splitlines()
        )

    def job_state(self, job: str) -> str:
        """The state of a job that was submitted not long ago, also after its end."""
        return self.ask("squeue", "-h", "-t", "all", "-j", job, "-o", "%T")

    def await_end(self, job: str, limit_s: float = 120) -> str:
        """Wait until a job is over and return its last state."""
        until(
            lambda: self.job_state(job) not in ("PENDING", "RUNNING", "COMPLETING"),
            f"job {job} ends",
            limit_s,
        )
        return self.job_state(job)

    def start_slurmd(self, node: Node) -> None:
        """Start the daemon of a compute node, on which it has none."""
        _daemon(node, ["slurmd", "-N", node.name], self.environment)

    def kill_slurmd(self, node: Node) -> None:
        """Kill it at once; what it has started runs on."""
        done = node.run(["sh", "-c", "kill -KILL $(ps -C slurmd -o pid=)"])
        assert done.returncode == 0, done.stderr


def slurm(nodes: Nodes) -> Slurm:
    """Start the daemons, each to end with its node, and return when all compute nodes are idle."""
    folder = nodes.shared / "slurm"
    for place in ("munge", "state", *(f"spool/{node.name}" for node in nodes.compute)):
        (folder / place).mkdir(parents=True)
    compute = ",".join(node.name for node in nodes.compute)
    (folder / "slurm.conf").write_text(
        _SLURM_CONF.format(head=nodes.head.name, folder=folder, compute=compute)
    )
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
    (folder / "topology.conf").write_text(f"SwitchName=bridge Nodes={compute}\n")
    up = Slurm(nodes, {**ENVIRONMENT, "SLURM_CONF": str(folder / "slurm.conf")})
    _munge(nodes.head, folder / "munge")
    _daemon(nodes.head, ["slurmctld"], up.environment)
    for node in nodes.compute:
        up.start_slurmd(node)
    until(lambda: set(up.states().values()) == {"idle"}, "all nodes of Slurm are idle")
    return up


def _munge(head: Node, folder: Path) -> None:
    """One munged for all: they share the file system in which its socket is."""
    folder.chmod(0o755)
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o600)
    files = {f"{name}-file": name for name in ("key", "pid", "log", "seed")} | {"socket": "socket"}
    # --force: its user is root, and its folder not the system's.
    _daemon(
        head,
        ["munged", "--force", *(f"--{name}={folder / file}" for name, file in files.items())],
        ENVIRONMENT,
    )


def _daemon(node: Node, argv: list[str], environment: dict[str, str]) -> None:
    """Start what goes into the background by itself."""
    done = node.run(argv, env=environment)
    assert done.returncode == 0, f"{argv[0]} on {node.name}: {done.stderr}"
