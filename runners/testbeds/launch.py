"""A trial's commands on emulated nodes: where each runs, inside what, and in which surroundings."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, List, Sequence

from runners.record import Command, Execution, FalloffError
from runners.testbeds import links, netns, openmpi, programs
from runners.testbeds.quota import Quotas

_HERE = Path(__file__).resolve().parent
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Transport:
    """What carries the programs' messages: the subnets or interfaces of Open MPI's, and a library that is loaded into
    each program."""

    for_mpi: Sequence[str] = (links.SUBNET,)
    preload: str = ""


def prepare(state: Path, nodes: range) -> None:
    """Put into the state folder what the launchers look for there."""
    for node in nodes:
        (state / links.address(node)).symlink_to(links.name(node))
    # Open MPI splits its agent's command line at spaces, which these paths cannot contain.
    (state / "python").symlink_to(sys.executable)
    for script in ("rsh.py", "enter_quota.py"):
        (state / script).symlink_to(_HERE / script)


def execute(
    commands: Sequence[Command],
    state: Path,
    quotas: Quotas,
    tool: Callable[[str], str],
    executions: List[Execution],
    transport: Transport = Transport(),
) -> None:
    """Run commands in order up to the first that fails, adding to `executions` in the order of their start.

    Afterwards nothing that they started is left. `tool` gives the path of a tool by its name.
    Raises FalloffError when a server does not accept connections in time.
    """
    folder = state / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    launcher = tool("mpirun") if any(command.ranks for command in commands) else ""
    environment = _environment(folder, launcher)
    servers = []
    try:
        for command in commands:
            for name, text in command.files.items():
                (folder / name).write_text(text, encoding="utf-8")
            argv = _argv(command, state, tool(command.argv[0]), quotas, transport)
            started = programs.start(command.argv[0], argv, folder, environment, quotas.entrances)
            if command.background:
                servers.append(started)
                well = _serves(command, state, started)
            else:
                executions.append(programs.finish(started, command.timeout_s))
                well = executions[-1].exit_code == 0
            if not well:
                break
    finally:
        # The last to start ends first: a client ends before its server, which would make it fail.
        executions.extend(map(programs.end, reversed(servers)))
        executions.sort(key=lambda execution: execution.start)
        quotas.kill()


def _serves(command: Command, state: Path, started: programs.Started) -> bool:
    """Whether a server is up; False when it ended by itself."""
    space = state / links.name(command.node)
    if not command.listens or programs.serves(started, lambda: command.listens in netns.listening(space)):
        return True
    if started.process.poll() is None:
        raise FalloffError(f"{started.tool} on node {command.node} does not listen on port {command.listens}")
    return False


def _argv(command: Command, state: Path, tool: str, quotas: Quotas, transport: Transport) -> List[str]:
    """The whole command line: into a node, by mpirun if there are ranks, into the quota, the program."""
    if command.nodes > len(quotas.nodes):
        needed, there = command.nodes, len(quotas.nodes)
        raise FalloffError(f"{command.argv[0]} needs node {needed} of {there}: raise `nodes` of the testbed")
    python = [f"{state}/python", "-I", "-S"]  # alone: no site packages, no settings of the user's
    program = ["env", f"LD_PRELOAD={transport.preload}"] if transport.preload else []
    program += [tool, *command.arguments(links.address)]
    if command.in_quota:
        program = [*python, f"{state}/enter_quota.py", str(state), *program]
    if command.ranks:
        agent = " ".join([*python, f"{state}/rsh.py", str(state)])
        addresses = [links.address(node) for node in quotas.nodes]
        each = command.ranks_per_node
        program = openmpi.mpirun(command.ranks, addresses, transport.for_mpi, agent, program, each)
    return netns.inside(state / links.name(1 if command.ranks else command.node)) + program


def _environment(folder: Path, mpirun: str) -> Dict[str, str]:
    """All that programs get of an environment, so that no setting of the user's leaks into a result.

    Open MPI reads settings from HOME too, so that is the working folder. `mpirun` may be empty.
    """
    environment = {
        "PATH": f"{os.path.dirname(mpirun)}:{_SYSTEM_PATH}" if mpirun else _SYSTEM_PATH,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LC_ALL": "C",
        "OPENBLAS_NUM_THREADS": "1",  # a second thread would only wait for the same slice
    }
    if "LD_LIBRARY_PATH" in os.environ:  # where a module system puts an MPI of its own
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    return environment
