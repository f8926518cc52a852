"""A trial's commands on a cluster: MPI programs by mpirun from here, all others on their node.

Each runs under runners/probes/guard.py, so that it ends with this program, with its connection and with its trial.
"""

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Callable, List, Mapping, Sequence, Tuple

from runners import tools
from runners.probes.guard import LISTENS
from runners.record import Command, Execution, FalloffError
from runners.testbeds import programs, remote

GUARD = tools.PROBES / "guard.py"

# A guard asks a program to end before it kills it, and ssh takes a while to notice a host that is gone.
_SECONDS_TO_END = 25.0
_SECONDS_TO_SERVE = 30.0
# Open MPI's own daemons notice a lost connection after 8 minutes by default; this makes it one.
_KEEPALIVE = {
    "oob_tcp_keepalive_time": "30",
    "oob_tcp_keepalive_intvl": "10",
    "oob_tcp_keepalive_probes": "3",
}


@dataclass(frozen=True)
class Site:
    """Where a trial runs: the hosts `names` that take part, node 1 first, with their addresses on the `network`.

    `folder` is ours on every host, `words` gives the first words of a tool's command line there, `mpirun` is its path
    on this machine.
    """

    cluster: remote.Cluster
    names: Tuple[str, ...]
    addresses: Tuple[str, ...]
    folder: str
    description: Mapping[str, Any]
    network: Mapping[str, Any]
    mpirun: str
    words: Callable[[str], List[str]]


@dataclass(frozen=True)
class _Guarded:
    """A program that runs for as long as its guard's `line` is open and `heart` beats there."""

    started: programs.Started
    line: IO[bytes]
    heart: remote.Heartbeat

    def listens(self) -> bool:
        """Whether the guard has said that the program listens."""
        return LISTENS in self.started.complaints.read_text(errors="replace")

    def stop(self) -> None:
        """Have the guard end the program, and wait for that."""
        self.heart.close(self.line)
        if self.started.wait(_SECONDS_TO_END) is None:
            self.started.signal(signal.SIGKILL)


def execute(
    commands: Sequence[Command], site: Site, scratch: Path, executions: List[Execution]
) -> None:
    """Run commands in order up to the first that fails, adding to `executions` in the order of their start.

    Afterwards nothing that they started is left, also after an interruption. `scratch` is a folder on this machine.
    Raises FalloffError when a server does not accept connections in time.
    """
    with tempfile.TemporaryDirectory(dir=scratch) as folder, remote.beating() as heart:
        running: List[_Guarded] = []
        try:
            for command in commands:
                guarded = _start(command, site, Path(folder), heart)
                running.append(guarded)
                if command.background:
                    succeeded = programs.serves(
                        command, guarded.started, guarded.listens, _SECONDS_TO_SERVE
                    )
                else:
                    execution = programs.finish(guarded.started, command.timeout_s, guarded.stop)
                    running.pop().stop()
                    executions.append(execution)
                    succeeded = execution.exit_code == 0
                if not succeeded:
                    break
        finally:
            # The last to start ends first: a client ends before its server, which would make it fail.
            for guarded in reversed(running):
                guarded.stop()
                executions.append(programs.end(guarded.started))
            executions.sort(key=lambda execution: execution.start)


def argv(command: Command, site: Site) -> List[str]:
    """The whole command line on this machine."""
    program = site.words(command.argv[0])
    program += command.arguments(lambda node: site.addresses[node - 1])
    silence = f"{remote.SILENCE_S:g}"
    if command.ranks:
        launched = remote.with_modules(site.cluster.modules, [*_mpirun(command, site), *program])
        return [sys.executable, str(GUARD), silence, ".", "0", *launched]
    guard = [site.cluster.python, f"{site.folder}/{GUARD.name}", silence, site.folder]
    words = [*guard, str(command.listens), *program]
    return remote.argv(site.cluster, site.names[command.node - 1], words)


def find_mpirun(cluster: remote.Cluster, configured: Mapping[str, str]) -> str:
    """The path of mpirun on this machine, that of the cluster's modules unless one is configured.

    Raises FalloffError with the remedy when there is none.
    """
    if "mpirun" in configured or not cluster.modules:
        return tools.find("mpirun", configured)
    search = remote.with_modules(cluster.modules, ["bash", "-c", "type -P mpirun"])
    paths = subprocess.run(search, capture_output=True, text=True).stdout.split()
    if not paths:
        modules = ", ".join(cluster.modules)
        raise FalloffError(f"the modules {modules} bring no mpirun here: correct `modules`")
    return paths[-1]


def _mpirun(command: Command, site: Site) -> List[str]:
    """mpirun by its path: it then finds its own daemons on the hosts in the same place."""
    each, usual = command.ranks_per_node, site.description.get("ranks_per_node", 1)
    # All programs use the same cores of a node, however many processes share them.
    threads = max(site.description.get("threads", 1) * usual // each, 1)
    variables = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    variables.update(site.network.get("environment", {}))
    exported = [f"{name}={value}" for name, value in variables.items()]
    exported += ["PATH", "LD_LIBRARY_PATH"] if site.cluster.modules else []
    parameters = dict(_KEEPALIVE)
    if site.cluster.launcher != "slurm":  # in an allocation mpirun asks Slurm by itself
        # From here to every host, never from host to host, where nobody's keys need to be.
        agent = " ".join(remote.ssh(site.cluster))
        parameters.update(plm="rsh", plm_rsh_agent=agent, plm_rsh_no_tree_spawn="1")
    if "mpi" not in site.network:  # TCP there, whatever faster transport Open MPI would find
        where = site.network.get("subnet", site.network.get("interface"))
        parameters.update(pml="ob1", btl="self,vader,tcp", btl_tcp_if_include=where)
    binding = site.description.get("binding", []) if each == usual else ["--bind-to", "none"]
    hosts = ",".join(f"{host}:{each}" for host in site.names[: command.nodes])
    return [
        site.mpirun,
        *(word for name, value in parameters.items() for word in ("--mca", name, value)),
        *site.network.get("mpi", []),
        *([] if "--map-by" in binding else ["--map-by", "slot"]),
        *binding,
        "--report-bindings",  # which rank is on which node and core: on standard error, and so in the transcript
        *(word for variable in exported for word in ("-x", variable)),
        *("--wdir", site.folder, "--host", hosts, "-np", str(command.ranks)),
    ]


def _start(command: Command, site: Site, folder: Path, heart: remote.Heartbeat) -> _Guarded:
    reader, writer = os.pipe()
    line = os.fdopen(writer, "wb")
    try:
        words = argv(command, site)
        started = programs.start(command.argv[0], words, folder, os.environ, stdin=reader)
    except BaseException:
        line.close()
        raise
    finally:
        os.close(reader)
    heart.keep(line)
    return _Guarded(started, line, heart)
