"""The testbed of ns-3: many senders to one receiver, simulated packet by packet, with ns-3's own TCP.

It has the links, the switch and the timers of an emulated testbed, and slows them down alike, so that a campaign's trials
can be compared one by one. Its TCP finds losses by acknowledgements and timeouts alone.
"""

import math
import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence

from runners import build, executables
from runners.description_rules import COUNT, NAME, NOT_NEGATIVE, POSITIVE, WHOLE, Rule, one_of
from runners.record import Command, FalloffError, Transcript, Trial
from runners.testbeds import lease, programs

PROGRAM = "incast_ns3"
STANDS_FOR = {"incast": PROGRAM}
IS_HERE = True
NEEDS_ROOT = False

# The settings of a point that this testbed reads. It has no shared memory and no pauses, and finds losses in one way.
POINT: Mapping[str, Rule] = {
    "interconnect": NAME,
    "congestion_control": one_of(("cubic", "reno", "dctcp")),
    "dilation": POSITIVE,
    "buffer_bytes": COUNT,
    "buffer_alpha": NOT_NEGATIVE,
    "flow_control": one_of(("none", "pause")),
    "mark_bytes": WHOLE,
    "rto_min_s": POSITIVE,
    "loss_recovery": one_of(("rack", "acks")),
}
_ROOT = executables.HOME / "build" / "packets"


def unavailable(description: Mapping[str, Any]) -> List[str]:
    """One line, with the remedy, for each reason why ns-3 cannot run here."""
    try:
        executables.find(PROGRAM, description.get("tools", {}))
    except FalloffError as error:
        return [f"{error}; {build.NS3_REMEDY}"]
    return []


@contextmanager
def open_testbed(
    description: Mapping[str, Any], interconnects: Mapping[str, Any]
) -> Iterator["Packets"]:
    """A working folder for the simulations, removed on leaving; SIGTERM and SIGHUP become
    SystemExit. `interconnects` have a `rate_bit_s` each.

    Raises FalloffError if ns-3's program is missing.
    """
    if reasons := unavailable(description):
        raise FalloffError("the testbed of ns-3 cannot run here: " + "; ".join(reasons))
    _ROOT.parent.mkdir(parents=True, exist_ok=True)
    with lease.signals_exit(), lease.held(shutil.rmtree, _ROOT) as folder:
        yield Packets(folder, description, interconnects)


@dataclass(frozen=True)
class Packets:
    """The open testbed; every simulation has its own folder in `folder`."""

    folder: Path
    description: Mapping[str, Any]
    interconnects: Mapping[str, Any]

    evidence = "simulated"

    @property
    def name(self) -> str:
        """The testbed's name in its description."""
        return self.description["name"]

    def load(self, trial: Trial) -> float:
        """The share of this machine that a trial takes [1]: one processor."""
        return 1 / (os.cpu_count() or 1)

    def run(self, trial: Trial, commands: Sequence[Command]) -> Transcript:
        """Simulate the receiver's command; the senders' need none. Several threads may call it."""
        found, point = programs.Found(), trial.point
        with found.faults():
            (fetch,) = (command for command in commands if not command.background)
            if fetch.argv[:2] != ("incast", "fetch"):
                raise FalloffError(f"ns-3 here simulates incast, not {fetch.argv[0]}")
            argv = [*self._switch(point), *self._exchange(fetch)]
            found.requested = {"simulated": " ".join(argv[1:])}
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            limit = fetch.timeout_s
            started = programs.start("incast", argv, folder, {"LC_ALL": "C"}, most_cpu_s=limit)
            execution = programs.finish(started, programs.BUSY * limit)
            found.ran.append(programs.Ran(fetch, execution, math.nan))
            found.effective = dict(found.requested)
            shutil.rmtree(folder)
        return found.transcript(self, trial)

    def _switch(self, point: Mapping[str, Any]) -> List[str]:
        """The program, and the words for links, switch and TCP."""
        if point.get("buffer_alpha") or point.get("flow_control", "none") != "none":
            raise FalloffError("ns-3 here has neither a shared memory nor pauses")
        described = self.description["node"]["dilation"]
        dilation = point.get("dilation", described)
        rate = self.interconnects[point["interconnect"]]["rate_bit_s"] * described / dilation
        delay = self.description["switch"]["delay_s"] * dilation / described
        words = [rate, delay, point["buffer_bytes"], point.get("mark_bytes", 0)]
        words += [point["rto_min_s"] * dilation, point["congestion_control"]]
        program = Path(executables.find(PROGRAM, self.description.get("tools", {})))
        return [str(program.absolute()), *map(str, words)]

    def _exchange(self, fetch: Command) -> List[str]:
        """The words for senders, bytes, blocks and seconds."""
        _, _, _, size, blocks, seconds, addresses = fetch.argv
        return [str(len(addresses.split(","))), size, blocks, seconds]

    def provenance(self) -> Dict[str, Any]:
        """The simulator."""
        return {"simulator": "ns-3"}
