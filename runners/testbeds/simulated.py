"""The simulated testbed: HPL's own code on a modelled cluster, by SimGrid's SMPI.

HPL and our DGEMM loop run as they are, with all of their messages; what they would compute is charged as
time by a model of the node (runners/src/simulated.h). The network is a fluid model: links have a rate and a
latency and are shared fairly; there is no loss, no incast and no protocol.
"""

import re
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence

from runners import build_simulated, tools
from runners.record import Command, Execution, FalloffError, Transcript, Trial
from runners.testbeds import smpi

# Which simulated program stands for which tool.
_STANDS_FOR = {"xhpl": "xhpl_simulated", "dgemm": "dgemm_simulated"}

_RANK = re.compile(r"^ *\d+ +(\d+\.\d{6}) +(\d+) +(\d+)$", re.M)
_TABLE = re.compile(r"^Simulated: what each rank did.*?^end of simulated$", re.M | re.S)


def unavailable(description: Mapping[str, Any]) -> List[str]:
    """One line, with the remedy, for each reason why the simulation cannot run here."""
    return [] if shutil.which("smpirun") else [build_simulated.REMEDY]


@contextmanager
def open_testbed(description: Mapping[str, Any], interconnects: Mapping[str, Any]) -> Iterator["Simulated"]:
    """A scratch folder for the simulator, removed on leaving.

    `description` is a file of data/testbeds. Raises FalloffError when SimGrid is not here, or a network that
    is asked for is not described.
    """
    reasons = unavailable(description)
    if reasons:
        raise FalloffError("the simulated testbed cannot run here: " + "; ".join(reasons))
    unknown = [name for name in interconnects if name not in description["network"]]
    if unknown:
        raise FalloffError(f"testbed {description['name']} describes no network {', '.join(unknown)}")
    with tempfile.TemporaryDirectory(prefix="falloff-simulated-") as folder:
        yield Simulated(Path(folder), description)


@dataclass(frozen=True)
class Simulated:
    """The testbed while it is open: `folder` is the simulator's working folder."""

    folder: Path
    description: Mapping[str, Any]

    evidence = "simulated"

    @property
    def name(self) -> str:
        """The testbed's name, as its description gives it."""
        return self.description["name"]

    def run(self, trial: Trial, commands: Sequence[Command]) -> Transcript:
        """Simulate the commands in order, up to the first that fails.

        Counters are what each rank of the last one sent, `bytes_sent` [B], on its node.
        """
        executions: List[Execution] = []
        fault = ""
        try:
            network = plain(self.description["network"][trial.point["interconnect"]])
            for command in commands:
                executions.append(self._simulate(command, network))
                if executions[-1].exit_code != 0:
                    break
        except (FalloffError, OSError) as error:
            fault = str(error)
        counters = _counters(executions[-1].stdout, self.description["nodes"]) if executions else {}
        return Transcript(
            trial, self.name, self.evidence, tuple(executions), {}, {}, counters, fault
        )

    def provenance(self) -> Dict[str, Any]:
        """The simulator's version, and the rates and networks of the model."""
        version = subprocess.run(["smpirun", "--version"], capture_output=True, text=True).stdout
        return {
            "simulator": (version.strip().splitlines() or [""])[0],
            "rates": plain(self.description["rates"]),
            "networks": {name: plain(network) for name, network in self.description["network"].items()},
        }

    def _simulate(self, command: Command, network: Mapping[str, float]) -> Execution:
        tool = command.argv[0]
        if tool not in _STANDS_FOR or not command.ranks:
            raise FalloffError(f"{tool} cannot be simulated; there are {', '.join(_STANDS_FOR)}")
        program = tools.find(_STANDS_FOR[tool], self.description.get("tools", {}))
        clock = Path(tools.find("noclock.so", {}))
        files = {
            **command.files,
            "platform.xml": smpi.platform(command.ranks, network),
            "hosts": smpi.hosts(command.ranks),
            "rates.txt": "".join(f"{name} {value:g}\n" for name, value in plain(self.description["rates"]).items()),
        }
        for name, text in files.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        argv = smpi.smpirun(command.ranks, clock.absolute(), [str(Path(program).absolute()), *command.argv[1:]])
        return _execute(tool, argv, self.folder, command.timeout_s)


def plain(described: Mapping[str, Any]) -> Dict[str, float]:
    """The numbers of a table whose entries are {value, source ...}."""
    return {name: entry["value"] for name, entry in described.items()}


def _execute(tool: str, argv: Sequence[str], folder: Path, limit_s: float) -> Execution:
    start, begin = time.time(), time.monotonic()
    process = subprocess.Popen(
        argv,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    timed_out = False
    try:
        stdout, stderr = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        _end(process)
        stdout, stderr = process.communicate()
    except BaseException:
        _end(process)
        raise
    wall = time.monotonic() - begin
    code = None if timed_out else process.returncode
    return Execution(tool, tuple(argv), stdout, stderr, code, start, wall, timed_out)


def _end(process: "subprocess.Popen[str]") -> None:
    """End smpirun, a shell script, and the simulator that it started: the session is theirs alone."""
    subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)
    process.wait()


def _counters(stdout: str, nodes: int) -> Dict[str, List[float]]:
    """Bytes that each node sent, by the shim's closing table; NaN on nodes without a rank, empty without a table."""
    table = _TABLE.search(stdout)
    if not table:
        return {}
    sent = [float(row[2]) for row in _RANK.findall(table[0])]
    return {"bytes_sent": sent + [float("nan")] * (nodes - len(sent))}
