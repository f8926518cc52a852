"""The simulated testbed: HPL's own code on a modelled cluster, by SimGrid's SMPI, and flows of data
alone.

HPL and our DGEMM loop run unchanged, with all of their messages. Their computation is replaced by
time from a model of the node (runners/src/simulated.h). The network is a fluid model: links have a
rate and a latency and are shared fairly; there is no loss, no incast and no protocol.
"""

import math
import os
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from runners import build, executables, placement
from runners.parsing import SIMULATED
from runners.records.description_rules import NAME, WHOLE, Rule, one_of
from runners.records.record import Command, Description, Execution, FalloffError, Transcript, Trial
from runners.testbeds import lease, netns, programs, smpi

_ROOT = executables.HOME / "build" / "simulated"
_CLOCK = "noclock.so"

# How messages above the eager limit are sent. By `put` they keep Open MPI's order over TCP
# (runners/src/rendezvous.h); else each starts when both its ends are ready, whatever else is sent.
RENDEZVOUS = ("put", "independent")

# The settings of a point that this testbed reads.
POINT: Mapping[str, Rule] = {
    **dict.fromkeys(("interconnect", "vary", "placement"), NAME),
    "random_seed": WHOLE,
    "rendezvous": one_of(RENDEZVOUS),
}

IS_HERE = True
NEEDS_ROOT = False

# The simulated program that stands for each tool.
STANDS_FOR = {
    "xhpl": "xhpl_simulated",
    "xhpl_payload": "xhpl_simulated",
    "dgemm": "dgemm_simulated",
    "exchange": "exchange_simulated",
    "flows": "flows",
    "xhpl_recorded": "xhpl_recorded",
    "replay": "replay_recorded",
}

_LEAST_EAGER = 128  # bytes: an announcement has 64

# The interpreter named in the flows' script: SimGrid's package is for Debian's own Python.
_IMPORT = ("/usr/bin/python3", "-c", "import simgrid")

_RANK = re.compile(r"^ *\d+ +(\d+\.\d{6}) +(\d+) +(\d+)$", re.M)


def unavailable(description: Description) -> list[str]:
    """One line, with the remedy, for each reason why the simulation cannot run here."""
    if not shutil.which("smpirun"):
        return [build.SIMGRID_REMEDY]
    try:
        for program in sorted({*STANDS_FOR.values(), _CLOCK}):
            executables.find(program, description.get("tools", {}))
        if "flows" in description.get("runners", ()):
            subprocess.run(_IMPORT, check=True, capture_output=True)
    except FalloffError as error:
        return [str(error)]
    except (OSError, subprocess.CalledProcessError):
        return ["SimGrid's Python module is missing: `apt-get install python3-simgrid`"]
    return []


@contextmanager
def open_testbed(description: Description, interconnects: Description) -> Iterator["Simulated"]:
    """A working folder for the simulator, removed on leaving; SIGTERM and SIGHUP become SystemExit.

    Remains after kill -9 are removed automatically, including a running simulator. `description` is
    a file of data/testbeds. Raises FalloffError if SimGrid is missing, or a requested network is
    not described.
    """
    if reasons := unavailable(description):
        raise FalloffError("the simulated testbed cannot run here: " + "; ".join(reasons))
    if unknown := set(interconnects).difference(description["network"]):
        names = ", ".join(sorted(unknown))
        raise FalloffError(f"testbed {description['name']} describes no network {names}")
    _ROOT.parent.mkdir(parents=True, exist_ok=True)
    with lease.signals_exit(), lease.held(_demolish, _ROOT) as folder:
        yield Simulated(folder, description)


def _demolish(folder: Path) -> None:
    """Kill every process that works in a folder or below, such as smpirun and its simulator, and
    remove the folder.

    It repeats until neither is left: when a campaign is interrupted, the threads of its other
    simulations still start processes and remove their own files here. Raises FalloffError if a
    process does not die.
    """
    while folder.exists():
        netns.kill_all(lambda: working_in(folder))
        shutil.rmtree(folder, ignore_errors=True)
    netns.kill_all(lambda: working_in(folder))


def working_in(folder: Path) -> list[int]:
    """The ids of the processes that work in a folder or below."""
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile, or belongs to another user
            place = Path(os.readlink(process / "cwd").removesuffix(" (deleted)"))
            if folder in (place, *place.parents):
                processes.append(int(process.name))
    return processes


@dataclass(frozen=True)
class Simulated:
    """The open testbed: every simulation has its own folder in `folder`."""

    folder: Path
    description: Description

    evidence = "simulated"

    def load(self, trial: Trial) -> float:
        """The share of this machine that a trial takes [1]: one processor, because no simulation
        disturbs another."""
        return 1 / (os.cpu_count() or 1)

    def run(self, trial: Trial, commands: Sequence[Command]) -> Transcript:
        """Simulate the commands in order, up to the first that fails. Several threads may call it.

        The ranks of an MPI program fill one node after the other, which are placed as the point's
        `placement` says, and share its rates. Counters are the
        bytes that the ranks of the last program sent, `bytes_sent` [B], by node.
        """
        state, point = programs.TrialState(), trial.point
        with state.faults():
            vary = point.get("vary", "none")
            rates, network = smpi.model(self.description, point["interconnect"], vary)
            network["rendezvous"] = point.get("rendezvous", "independent")
            placed = point.get("placement", "in_order"), str(point.get("random_seed"))
            for command in commands:
                ranks = command.ranks_per_node
                nodes = placement.order(-(-command.ranks // ranks), *placed)
                order = [node for node in nodes for _ in range(ranks)][: command.ranks]
                execution = self._simulate(command, smpi.of_rank(rates, ranks), network, order)
                state.ran.append(programs.ExecutedCommand(command, execution, math.nan))
                state.counters = _counters(execution.stdout, self.description["nodes"], order)
                if execution.exit_code != 0:
                    break
        return state.transcript(self, trial)

    def provenance(self) -> dict:
        """The simulator's version."""
        version = subprocess.run(["smpirun", "--version"], capture_output=True, text=True).stdout
        return {"simulator": (version.strip().splitlines() or [""])[0]}

    def _tool(self, name: str) -> str:
        return str(Path(executables.find(name, self.description.get("tools", {}))).absolute())

    def _simulate(
        self,
        command: Command,
        rates: Mapping[str, float],
        network: Description,
        order: Sequence[int],
    ) -> Execution:
        tool = command.argv[0]
        if tool not in STANDS_FOR or not command.ranks:
            raise FalloffError(f"{tool} cannot be simulated; there are {', '.join(STANDS_FOR)}")
        argv = [self._tool(STANDS_FOR[tool]), *command.argv[1:]]
        inside = rates["core_byte_s"] if command.ranks_per_node > 1 else None
        put = network["rendezvous"] == "put"
        files = {**command.files, "platform.xml": smpi.platform(len(set(order)), network, inside)}
        if tool != "flows":
            eager = network["eager_bytes"]
            if tool == "replay":
                rates_there = [repr(float(value)) for value in (network["bandwidth"], eager)]
                argv = [*smpi.as_open_mpi(command.ranks), argv[0], *rates_there, *argv[2:]]
            argv = smpi.FREE_TESTS * put + argv
            shape = network.get("by_size", ()), eager
            argv = smpi.smpirun(command.ranks, argv, f"./{_CLOCK}", *shape)
            files["hosts"] = smpi.hosts(order)
            files["rates.txt"] = "".join(f"{name} {value!r}\n" for name, value in rates.items())
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        # smpirun and the dynamic linker split paths at blanks, so paths are relative to the folder
        # in which everything runs.
        (folder / _CLOCK).symlink_to(self._tool(_CLOCK))
        environment = {"PATH": os.environ["PATH"], "TMPDIR": ".", "LC_ALL": "C"}
        # Use the simulation's clock; the processor's belongs to this machine.
        if tool == "xhpl_recorded":
            environment["FALLOFF_RECORD_CLOCK"] = "wall"
        if put:
            environment["FALLOFF_PUT"] = _put(network["eager_bytes"], network["latency"])
        try:
            limit = command.timeout_s
            started = programs.start(tool, argv, folder, environment, most_cpu_s=limit)
            return programs.finish(started, programs.BUSY * limit)
        finally:
            _demolish(folder)


def _put(eager_bytes: float, latency: float) -> str:
    """What FALLOFF_PUT says, in bytes and seconds; raises FalloffError where announcements would
    not be eager themselves."""
    if eager_bytes < _LEAST_EAGER:
        raise FalloffError(
            f"rendezvous put needs eager_bytes of at least {_LEAST_EAGER}, not {eager_bytes:g}"
        )
    return f"{float(eager_bytes)!r} {float(latency)!r}"


def _counters(stdout: str, nodes: int, order: Sequence[int]) -> dict[str, list[float]]:
    """Bytes that each node sent, from the shim's closing table and the node of each rank in it; NaN
    on nodes without a rank, empty without a table."""
    table = SIMULATED.search(stdout)
    if not table:
        return {}
    sent: dict[int, float] = defaultdict(float)
    for node, (*_, sent_bytes) in zip(order, _RANK.findall(table[0])):
        sent[node] += float(sent_bytes)
    return {"bytes_sent": [sent.get(node, math.nan) for node in range(1, nodes + 1)]}
