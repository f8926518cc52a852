"""Run a trial's commands on the nodes of a network: where each runs, in which environment, and what
it used."""

import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runners import pace
from runners.records.record import Command, Description, FalloffError
from runners.testbeds import host, netns, programs
from runners.testbeds.graph import Way, address, name
from runners.testbeds.network import PRIORITY, Network
from runners.testbeds.programs import ExecutedCommand

_RANK = Path(__file__).resolve().parent / "rank.py"
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Runs only if nothing else wants the processor, to keep it awake: waking a virtual processor takes
# long.
_AWAKE = ("chrt", "-i", "0")
# Its argument is its owner's process id. It ends when the owner has ended, in any way and even
# before its first line.
_LOOP = """
import os, sys
try:  # a kernel that shares processors out by session gives an idle one as much as a busy one
    with open("/proc/self/autogroup", "w") as share:
        share.write("19")
except OSError:
    pass
while os.getppid() == int(sys.argv[1]):
    for _ in range(100000):
        pass
"""

_MPI = {
    # TCP between nodes, even if Open MPI would find a faster transport on the one real machine.
    "pml": "ob1",
    "btl": "tcp,self",
    "plm": "rsh",
    "plm_rsh_no_tree_spawn": "1",
    # Waiting ranks must not occupy the processor that they share with other nodes.
    "mpi_yield_when_idle": "1",
    # Open MPI looks at its sockets only every 10 ms unless it counts peers that it has connected
    # to, and a rank that was connected to does not always.
    "mpi_event_tick_rate": "1",
}


@dataclass(frozen=True)
class Surroundings:
    """The environment of a trial's programs: the testbed's description, the way of using links, and
    what paces MPI ranks.

    `pacing` are variables for pace.so or pace_program.so. If it is empty, ranks are not paced, and
    a node's programs stay on its processor. With `real_time` ranks go before all other programs.
    `mpi` are parameters of Open MPI.
    """

    description: Description
    way: Way
    pacing: Mapping[str, str]
    real_time: bool
    mpi: Mapping[str, object]


def execute(
    commands: Sequence[Command], net: Network, around: Surroundings, ran: list[ExecutedCommand]
) -> float:
    """Run commands as `programs.run` does; afterwards nothing that they started is left. Returns
    the CPU time [s] of the loops that kept processors awake.

    Raises FalloffError as `programs.run` does, or if a node does not exist.
    """
    folder = net.state / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    _prepare(net, around)
    launcher = net.tool("mpirun") if any(command.ranks for command in commands) else ""
    environment = _environment(folder, launcher)

    def start(command: Command) -> programs.RunningProgram:
        for file, text in command.files.items():
            (folder / file).write_text(text, encoding="utf-8")
        argv = _argv(command, net, around)
        return programs.start(command.argv[0], argv, folder, environment, _space(command, net))

    def listens(command: Command, _: programs.RunningProgram) -> bool:
        return command.listens in netns.listening(_space(command, net))

    keep_awake = around.description.get("node", {}).get("keep_awake", False)
    loops = _keep_awake(net) if keep_awake else []
    try:
        programs.run(commands, start, listens, ran)
    finally:
        for loop in loops:
            programs.end(loop)
        # A program that carries frames is in the namespace of its last interface.
        carriers = [carrier.process.pid for carrier in net.carriers]
        netns.kill([net.space(name(node)) for node in net.graph.nodes], carriers)
    return sum(loop.cpu_time for loop in loops)


def cpu_times(ran: Sequence[ExecutedCommand], nodes: range) -> list[float]:
    """CPU time [s] of each node's programs; NaN on nodes with ranks, because only mpirun is waited
    for."""
    used = dict.fromkeys(nodes, 0.0)
    for program in ran:
        if program.command.ranks:
            used.update(dict.fromkeys(range(1, program.command.nodes + 1), math.nan))
        else:
            used[program.command.node] += program.cpu_time
    return list(used.values())


def occupied(net: Network) -> int:
    """The number of nodes with a rank since the trial began."""
    return sum(bool((net.space(name(node)) / "guests").read_text()) for node in net.graph.nodes)


def rank_times(net: Network) -> list[tuple[float, float]]:
    """How long each rank since the trial began was kept waiting for a processor, and its CPU time
    [s]; NaN where it or the kernel did not say."""
    times = []
    for space in map(net.space, map(name, net.graph.nodes)):
        ranks = len((space / "guests").read_text().split())
        seconds = list(map(float, (space / "times").read_text().split()))
        ended = list(zip(seconds[::2], seconds[1::2]))
        times += ended + [(math.nan, math.nan)] * (ranks - len(ended))
    return times


def _prepare(net: Network, around: Surroundings) -> None:
    """Put into the state folder the files that rank.py needs; no rank has come in yet."""
    shares = around.description.get("slow", {}).get("nodes", {})
    for node in net.graph.nodes:
        space, by_address = net.space(name(node)), net.state / address(node)
        for file in ("guests", "times"):
            (space / file).write_text("")
        if str(node) in shares:
            (space / "share").write_text(repr(float(shares[str(node)])))
        if not around.pacing:
            (space / "processor").write_text(str(host.processor(node)))
        if not by_address.is_symlink():
            by_address.symlink_to(name(node))
    # Open MPI splits its agent's command line at spaces, which the state folder's path cannot
    # contain.
    _linked(net, "python", sys.executable)
    _linked(net, "rank.py", str(_RANK))


def _linked(net: Network, name: str, file: str) -> str:
    """The path of a link in the state folder to a file whose own path may contain blanks, at which
    Open MPI and the dynamic linker split."""
    link = net.state / name
    if not link.is_symlink():
        link.symlink_to(file)
    return str(link)


def _argv(command: Command, net: Network, around: Surroundings) -> list[str]:
    """The whole command line: enter a node, mpirun if there are ranks, the program."""
    nodes = len(net.graph.nodes)
    if command.nodes > nodes:
        needs = f"{command.argv[0]} needs node {command.nodes} of {nodes}"
        raise FalloffError(f"{needs}: raise `nodes` of the testbed")
    libraries = ["mptcp.so"] if around.way.is_mptcp else []
    variables: dict[str, str] = {}
    if command.ranks and around.pacing:
        libraries.append(pace.library(around.pacing))
        variables.update(around.pacing)
        if around.real_time:
            variables["PACE_REAL_TIME"] = PRIORITY
    if libraries:
        paths = [_linked(net, library, net.tool(library)) for library in libraries]
        variables["LD_PRELOAD"] = ":".join(paths)
    words = ["env", *(f"{key}={value}" for key, value in variables.items())] if variables else []
    words += [net.tool(command.argv[0]), *command.arguments(address)]
    if command.ranks:
        words = _mpirun(command, net, around, words)
    elif not around.pacing:
        words = ["taskset", "-c", str(host.processor(command.node)), *words]
    return [*netns.inside(_space(command, net)), *words]


def _space(command: Command, net: Network) -> Path:
    return net.space(name(1 if command.ranks else command.node))


def _mpirun(
    command: Command, net: Network, around: Surroundings, program: Sequence[str]
) -> list[str]:
    """mpirun for nodes that share a kernel but have no sshd.

    Nodes are listed by address, so that no resolver is asked for their names. The tool's own name
    has no path: if called by a path, mpirun sends a shell script to the agent instead of plain
    words.
    """
    ranks = command.ranks_per_node
    # No site packages, no settings of the user.
    alone = [f"{net.state}/python", "-I", "-S", f"{net.state}/rank.py"]
    parameters = {
        **_MPI,
        "plm_rsh_agent": " ".join([*alone, "agent", str(net.state)]),
        "btl_tcp_if_include": ",".join(around.way.networks),
        "oob_tcp_if_include": around.way.networks[0],  # mpirun's own messages
    }
    if ranks > 1:
        parameters["btl"] += ",vader"  # shared memory between the ranks on a node
    for key, value in around.mpi.items():
        parameters[key] = str(int(value) if isinstance(value, bool) else value)
    hosts = [f"{address(node)}:{ranks}" for node in range(1, 1 + -(-command.ranks // ranks))]
    return [
        "mpirun",
        "--allow-run-as-root",
        "--noprefix",
        *("--bind-to", "none", "--map-by", "node" if ranks == 1 else "slot"),
        *(word for key, value in parameters.items() for word in ("--mca", key, value)),
        *("--host", ",".join(hosts), "-np", str(command.ranks)),
        *(*alone, "join", str(net.state)),
        *program,
    ]


def _environment(folder: Path, mpirun: str) -> dict[str, str]:
    """The complete environment of the programs, so that no setting of the user leaks into a result.

    Open MPI also reads settings from HOME, so HOME is the working folder. `mpirun` may be empty.
    """
    environment = {
        "PATH": f"{os.path.dirname(mpirun)}:{_SYSTEM_PATH}".lstrip(":"),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LC_ALL": "C",
        "OPENBLAS_NUM_THREADS": "1",  # a second thread would take another node's processor
    }
    if "LD_LIBRARY_PATH" in os.environ:  # a module system puts its own MPI there
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    return environment


def _keep_awake(net: Network) -> list[programs.RunningProgram]:
    """A loop on every processor that runs when nothing else does."""
    loop = [sys.executable, "-I", "-S", "-c", _LOOP, str(os.getpid())]
    folder, space = net.state / "work", net.space(name(1))
    return [
        programs.start("loop", [*_AWAKE, "taskset", "-c", str(number), *loop], folder, {}, space)
        for number in sorted(os.sched_getaffinity(0))
    ]
