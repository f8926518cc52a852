"""A trial's commands on a cluster: MPI programs by mpirun from here, all others on their node; each under
runners/probes/guard.py, so that it ends with this program, with its connection and with its trial."""

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, List, Mapping, Sequence, Tuple

from runners import tools
from runners.probes.guard import LISTENS
from runners.record import Command, Execution, FalloffError
from runners.testbeds import heartbeat, programs, remote
from runners.testbeds.cluster_hosts import Hosts

GUARD = tools.PROBES / "guard.py"

# A guard asks a program to end before it kills it, and ssh takes a while to notice a host that is gone.
_SECONDS_TO_END = 25.0
_SECONDS_TO_SERVE = 30.0
_SILENCE = f"{heartbeat.SILENCE_S:g}"
# Open MPI's own daemons notice a lost connection after 8 minutes by default; this makes it one.
_KEEPALIVE = {"oob_tcp_keepalive_time": "30", "oob_tcp_keepalive_intvl": "10", "oob_tcp_keepalive_probes": "3"}


@dataclass(frozen=True)
class Site:
    """Where a trial runs: those of the `hosts` that take part, node 1 first, with their addresses on the `network`,
    one of the `description`; `mpirun` is its path on this machine."""

    hosts: Hosts
    names: Tuple[str, ...]
    addresses: Tuple[str, ...]
    description: Mapping[str, Any]
    network: Mapping[str, Any]
    mpirun: str


@dataclass(frozen=True)
class _Guarded:
    """A program that runs for as long as its guard's `line` is open and `heart` beats there."""

    started: programs.Started
    line: IO[bytes]
    heart: heartbeat.Heartbeat

    def stop(self) -> None:
        """Have the guard end the program, and wait for that."""
        self.heart.close(self.line)
        if self.started.wait(_SECONDS_TO_END) is None:
            self.started.signal(signal.SIGKILL)


def execute(commands: Sequence[Command], site: Site, scratch: Path, executions: List[Execution]) -> None:
    """Run commands in order up to the first that fails, adding to `executions` in the order of their start.

    Afterwards nothing that they started is left, also after an interruption. Their files have to be in the site's
    folder already; `scratch` is one on this machine. Raises FalloffError when a server does not accept connections in
    time.
    """
    with tempfile.TemporaryDirectory(dir=scratch) as folder, heartbeat.beating() as heart:
        running: List[_Guarded] = []
        try:
            for command in commands:
                running.append(_start(command, site, Path(folder), heart))
                if command.background:
                    well = _serves(command, running[-1].started)
                else:
                    executions.append(programs.finish(running[-1].started, command.timeout_s, running[-1].stop))
                    running.pop().stop()
                    well = executions[-1].exit_code == 0
                if not well:
                    break
        finally:
            # The last to start ends first: a client ends before its server, which would make it fail.
            for guarded in reversed(running):
                guarded.stop()
                executions.append(programs.end(guarded.started))
            executions.sort(key=lambda execution: execution.start)


def argv(command: Command, site: Site) -> List[str]:
    """The whole command line on this machine."""
    program = [*site.hosts.words(command.argv[0]), *command.arguments(lambda node: site.addresses[node - 1])]
    cluster = site.hosts.cluster
    if command.ranks:
        launched = remote.with_modules(cluster.modules, [*_mpirun(command, site), *program])
        return [sys.executable, str(GUARD), _SILENCE, ".", "0", *launched]
    guard = [cluster.python, f"{site.hosts.folder}/{GUARD.name}", _SILENCE, site.hosts.folder, str(command.listens)]
    return remote.argv(cluster, site.names[command.node - 1], [*guard, *program])


def find_mpirun(cluster: remote.Cluster, configured: Mapping[str, str]) -> str:
    """The path of mpirun on this machine, that of the cluster's modules unless one is configured.

    Raises FalloffError with the remedy when there is none.
    """
    if "mpirun" in configured or not cluster.modules:
        return tools.find("mpirun", configured)
    ask = remote.with_modules(cluster.modules, ["bash", "-c", "type -P mpirun"])
    said = subprocess.run(ask, capture_output=True, text=True).stdout.split()
    if not said:
        raise FalloffError(f"the modules {', '.join(cluster.modules)} bring no mpirun here: correct `modules`")
    return said[-1]


def _mpirun(command: Command, site: Site) -> List[str]:
    """mpirun by its path: it then finds its own daemons on the hosts in the same place."""
    each, usual = command.ranks_per_node, site.description.get("ranks_per_node", 1)
    hosts = [f"{host}:{each}" for host in site.names[: command.nodes]]
    # All programs use the same cores of a node, however many processes share them.
    threads = max(site.description.get("threads", 1) * usual // each, 1)
    binding = list(site.description.get("binding", ())) if each == usual else ["--bind-to", "none"]
    mapping = [] if "--map-by" in binding else ["--map-by", "slot"]
    variables = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, **site.network.get("environment", {})}
    exported = [f"{name}={value}" for name, value in variables.items()]
    exported += ["PATH", "LD_LIBRARY_PATH"] if site.hosts.cluster.modules else []
    return [
        site.mpirun,
        *_parameters(_KEEPALIVE),
        *_agent(site.hosts.cluster),
        *_transport(site.network),
        *mapping,
        *binding,
        "--report-bindings",  # which rank is on which node and core: on standard error, and so in the transcript
        *(word for variable in exported for word in ("-x", variable)),
        *("--wdir", site.hosts.folder, "--host", ",".join(hosts), "-np", str(command.ranks)),
    ]


def _agent(cluster: remote.Cluster) -> List[str]:
    """How mpirun starts its daemons: in an allocation it asks Slurm by itself."""
    if cluster.launcher == "slurm":
        return []
    # From here to every host, never from host to host, where nobody's keys need to be.
    agent = {"plm": "rsh", "plm_rsh_agent": " ".join(remote.ssh(cluster)), "plm_rsh_no_tree_spawn": "1"}
    return _parameters(agent)


def _transport(network: Mapping[str, Any]) -> List[str]:
    """The network's own words, else TCP on its subnet or interface, whatever faster one Open MPI would find."""
    if "mpi" in network:
        return list(network["mpi"])
    where = network.get("subnet", network.get("interface"))
    return _parameters({"pml": "ob1", "btl": "self,vader,tcp", "btl_tcp_if_include": where})


def _parameters(values: Mapping[str, str]) -> List[str]:
    return [word for name, value in values.items() for word in ("--mca", name, value)]


def _start(command: Command, site: Site, folder: Path, heart: heartbeat.Heartbeat) -> _Guarded:
    reader, writer = os.pipe()
    try:
        started = programs.start(command.argv[0], argv(command, site), folder, os.environ, stdin=reader)
    except BaseException:
        os.close(writer)
        raise
    finally:
        os.close(reader)
    line = os.fdopen(writer, "wb")
    heart.keep(line)
    return _Guarded(started, line, heart)


def _serves(command: Command, started: programs.Started) -> bool:
    """Whether a server is up; False when it ended by itself."""
    if not command.listens or programs.serves(
        started, lambda: LISTENS in started.complaints.read_text(errors="replace"), _SECONDS_TO_SERVE
    ):
        return True
    if started.poll() is None:
        raise FalloffError(f"{started.tool} on node {command.node} does not listen on port {command.listens}")
    return False
