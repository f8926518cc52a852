"""The emulated testbed without root: it is up in a process that is root of a user namespace of its own.

A user namespace takes in no process of several threads, as a notebook's is, and only from within can its network
namespaces be entered. So another process (inside.py) has the testbed there and is told here, over a socket, what to
do. All that it made ends with it, and it ends when nobody holds the other end of the socket any more.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import IO, Any, Dict, Iterator, List, Mapping, Sequence

from runners.record import Command, FalloffError, Transcript, Trial
from runners.testbeds import cgroup, delegated

_ROOT = Path(__file__).resolve().parent.parent.parent
_NAMESPACES = ("--user", "--map-root-user", "--net", "--mount", "--ipc", "--pid")
_UNSHARE = ["unshare", *_NAMESPACES, "--fork", "--kill-child", "--mount-proc"]
_PATIENCE_S = 30.0


@dataclass(frozen=True)
class Inside:
    """The process in the user namespace: it answers over `connection`, and complains in a file."""

    connection: Connection
    complaints: IO[bytes]

    def answer(self, method: str, *arguments: Any) -> Any:
        """What it answers; raises the FalloffError that it met there, or one that says why it has ended."""
        try:
            self.connection.send((method, arguments))
            answer = self.connection.recv()
        except (EOFError, ConnectionError):
            self.complaints.seek(0)
            said = self.complaints.read().decode(errors="replace").strip().splitlines() or ["it was killed"]
            raise FalloffError(
                f"the testbed's user namespace has ended: {said[-1]}. Where only root may make one, run it with sudo"
            ) from None
        if isinstance(answer, FalloffError):
            raise answer
        return answer


@dataclass(frozen=True)
class Rootless:
    """The testbed while it is up, as `Emulated` is for root."""

    inside: Inside
    description: Mapping[str, Any]

    evidence = "emulated"
    at_once = 1  # its nodes share one machine, and one trial must not disturb another

    @property
    def name(self) -> str:
        """The testbed's name, as its description gives it."""
        return self.description["name"]

    @property
    def nodes(self) -> int:
        """How many nodes are up."""
        return self.description["nodes"]

    def run(self, trial: Trial, commands: Sequence[Command]) -> Transcript:
        """What `Emulated.run` does; raises FalloffError when the process inside has ended."""
        return self.inside.answer("run", trial, commands)

    def provenance(self) -> Dict[str, Any]:
        """What `Emulated.provenance` tells, and whose root it was."""
        return {"root": "of a user namespace", **self.inside.answer("provenance")}


def unavailable(description: Mapping[str, Any]) -> List[str]:
    """One line, with the remedy, for each reason why this cannot be had here."""
    try:
        with _started() as inside:
            return inside.answer("unavailable", description)
    except FalloffError as error:
        return [str(error)]


@contextmanager
def open_testbed(description: Mapping[str, Any], interconnects: Mapping[str, Any]) -> Iterator[Rootless]:
    """Have the testbed until this is left, whatever happens; raises FalloffError when it cannot be had."""
    if "share" in description["cpu"]:
        hierarchy = cgroup.find()
        if hierarchy.version == 2:
            delegated.settle(hierarchy.cpu)
    with _started() as inside:
        inside.answer("open", description, interconnects)
        yield Rootless(inside, description)


@contextmanager
def _started() -> Iterator[Inside]:
    """The process inside, until it has ended."""
    ours, theirs = Pipe()
    module = [sys.executable, "-m", "runners.testbeds.inside", str(theirs.fileno()), os.getcwd()]
    with tempfile.TemporaryFile() as complaints, ours:
        with theirs:
            process = subprocess.Popen(
                [*_UNSHARE, *module],
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the owner
            )
        try:
            yield Inside(ours, complaints)
        finally:
            ours.close()
            _await(process)


def _await(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
