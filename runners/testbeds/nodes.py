"""A trial's commands on the nodes of a network: where each runs, in which surroundings, and what it used."""

import math
import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from runners.record import Command, Execution, FalloffError
from runners.testbeds import host, netns, openmpi, programs
from runners.testbeds.graph import ONE_LINK, address, name
from runners.testbeds.network import Network

_HERE = Path(__file__).resolve().parent
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Before all ordinary programs: a rank that wakes up behind another otherwise waits for the scheduler's tick, 4 ms.
REAL_TIME = ("chrt", "-f", "10")
# Runs only when nothing else wants the processor, which then does not go to sleep: waking a virtual one takes long.
_AWAKE = ("chrt", "-i", "0")
# Its argument is its owner's process: it ends when that has ended, however it did, were it before the first line.
_LOOP = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(100000):
        pass
"""


@dataclass(frozen=True)
class Surroundings:
    """What the programs of a trial run in.

    `networks` are the subnets of Open MPI, `mpi` further parameters of it; `preload` are libraries loaded into every
    program; `rank_preload`, `rank_environment` and `real_time` are of MPI ranks alone. With `pinned` a node's programs
    stay on its processor; with `awake` no processor goes to sleep meanwhile.
    """

    networks: Sequence[str] = tuple(ONE_LINK.networks)
    mpi: Mapping[str, Any] = field(default_factory=dict)
    preload: Tuple[str, ...] = ()
    rank_preload: Tuple[str, ...] = ()
    rank_environment: Mapping[str, str] = field(default_factory=dict)
    real_time: bool = False
    pinned: bool = True
    awake: bool = False


@dataclass(frozen=True)
class Ran:
    """A command that was executed, and the CPU time [s] of its program and of those that it waited for."""

    command: Command
    execution: Execution
    cpu_time: float


def execute(
    commands: Sequence[Command], net: Network, around: Surroundings, tool: Callable[[str], str], ran: List[Ran]
) -> None:
    """Run commands in order up to the first that fails, adding to `ran` in the order of their start.

    Afterwards nothing that they started is left. `tool` gives the path of a tool by its name.
    Raises FalloffError when a server does not accept connections in time, or a node is not there.
    """
    folder = net.state / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    _prepare(net, around.pinned)
    launcher = tool("mpirun") if any(command.ranks for command in commands) else ""
    environment = _environment(folder, launcher)
    servers: List[Tuple[Command, programs.Started]] = []
    loops = _keep_awake(net) if around.awake else []
    try:
        for command in commands:
            for file, text in command.files.items():
                (folder / file).write_text(text, encoding="utf-8")
            argv = _argv(command, net, tool(command.argv[0]), around)
            space = net.space(name(1 if command.ranks else command.node))
            started = programs.start(command.argv[0], argv, folder, environment, space)
            if command.background:
                servers.append((command, started))
                well = _serves(command, space, started)
            else:
                execution = programs.finish(started, command.timeout_s)
                ran.append(Ran(command, execution, started.cpu_time))
                well = execution.exit_code == 0
            if not well:
                break
    finally:
        # The last to start ends first: a client ends before its server, which would make it fail.
        for command, started in reversed(servers):
            ran.append(Ran(command, programs.end(started), started.cpu_time))
        ran.sort(key=lambda one: one.execution.start)
        for loop in loops:
            programs.end(loop)
        # A program that carries frames is where it made its last interface.
        carriers = [carrier.process.pid for carrier in net.carriers]
        netns.kill([net.space(name(node)) for node in net.graph.nodes], carriers)


def cpu_times(ran: Sequence[Ran], nodes: range) -> List[float]:
    """CPU time [s] of each node's programs; NaN on nodes with ranks, since only mpirun is waited for."""
    used = {node: 0.0 for node in nodes}
    for one in ran:
        if one.command.ranks:
            used.update({node: math.nan for node in range(1, one.command.nodes + 1)})
        else:
            used[one.command.node] += one.cpu_time
    return list(used.values())


def occupied(net: Network) -> int:
    """How many nodes a rank came into since the trial began."""
    return sum(bool((net.space(name(node)) / "guests").read_text()) for node in net.graph.nodes)


def _prepare(net: Network, pinned: bool) -> None:
    """Put into the state folder what the launchers look for there; nobody has come in yet."""
    for node in net.graph.nodes:
        space, known = net.space(name(node)), net.state / address(node)
        (space / "guests").write_text("")
        if pinned:
            (space / "processor").write_text(str(host.processor(node)))
        if not known.is_symlink():
            known.symlink_to(name(node))
    if not (net.state / "python").is_symlink():
        # Open MPI splits its agent's command line at spaces, which these paths cannot contain.
        (net.state / "python").symlink_to(sys.executable)
        for script in ("rsh.py", "join_node.py"):
            (net.state / script).symlink_to(_HERE / script)


def _serves(command: Command, space: Path, started: programs.Started) -> bool:
    """Whether a server is up; False when it ended by itself."""
    if not command.listens or programs.serves(started, lambda: command.listens in netns.listening(space)):
        return True
    if started.poll() is None:
        raise FalloffError(f"{started.tool} on node {command.node} does not listen on port {command.listens}")
    return False


def _argv(command: Command, net: Network, tool: str, around: Surroundings) -> List[str]:
    """The whole command line: into a node, by mpirun if there are ranks, the program."""
    nodes = net.graph.nodes
    if command.nodes > len(nodes):
        raise FalloffError(
            f"{command.argv[0]} needs node {command.nodes} of {len(nodes)}: raise `nodes` of the testbed"
        )
    libraries = around.preload + (around.rank_preload if command.ranks else ())
    variables = {"LD_PRELOAD": ":".join(libraries)} if libraries else {}
    variables.update(around.rank_environment if command.ranks else {})
    words = ["env", *(f"{key}={value}" for key, value in variables.items())] if variables else []
    words += [tool, *command.arguments(address)]
    if not command.ranks:
        place = ["taskset", "-c", str(host.processor(command.node))] if around.pinned else []
        return [*netns.inside(net.space(name(command.node))), *place, *words]
    python = [f"{net.state}/python", "-I", "-S"]  # alone: no site packages, no settings of the user's
    agent = " ".join([*python, f"{net.state}/rsh.py", str(net.state)])
    rank = [*python, f"{net.state}/join_node.py", str(net.state), *(REAL_TIME if around.real_time else ()), *words]
    addresses, each = list(map(address, nodes)), command.ranks_per_node
    mpirun = openmpi.mpirun(command.ranks, addresses, around.networks, agent, rank, each, around.mpi)
    return [*netns.inside(net.space(name(1))), *mpirun]


def _environment(folder: Path, mpirun: str) -> Dict[str, str]:
    """All that programs get of an environment, so that no setting of the user's leaks into a result.

    Open MPI reads settings from HOME too, so that is the working folder. `mpirun` may be empty.
    """
    environment = {
        "PATH": f"{os.path.dirname(mpirun)}:{_SYSTEM_PATH}" if mpirun else _SYSTEM_PATH,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LC_ALL": "C",
        "OPENBLAS_NUM_THREADS": "1",  # a second thread would take another node's processor
    }
    if "LD_LIBRARY_PATH" in os.environ:  # where a module system puts an MPI of its own
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    return environment


def _keep_awake(net: Network) -> List[programs.Started]:
    """A loop on every processor that runs when nothing else does."""
    loop, folder = [sys.executable, "-I", "-S", "-c", _LOOP, str(os.getpid())], net.state / "work"
    return [
        programs.start("loop", [*_AWAKE, "taskset", "-c", str(number), *loop], folder, {}, net.space(name(1)))
        for number in sorted(os.sched_getaffinity(0))
    ]
