"""The payload of an MPI program: messages and bytes that its ranks send, by call and size of message.

The table is printed by runners/src/payload.h when a program that is linked or preloaded with
runners/src/payload.c ends, and by the simulated HPL; payload.c says what is counted.
"""

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from runners.parsing import only_read
from runners.record import FalloffError, Reading, Result, Runner, Transcript, Unreadable

# Least bytes of each class of sizes: nothing, then from each power of two up to the next; the last is open.
LEAST = (0, *(2**power for power in range(32)))

_TITLE = "Payload: messages that all ranks sent, by call and size"
_HEAD = re.compile(r"call +from B +to B +messages +bytes$")
_ROW = re.compile(r"(MPI_\w+) +(\d{1,18}) +(\d{1,18}|more) +(\d{1,18}) +(\d{1,18})$", re.ASCII)
_END = "end of payload"

_LAUNCHERS = ("mpirun", "mpiexec", "orterun")


@dataclass(frozen=True)
class Sent:
    """One line of a table: what the ranks sent together by one call in messages of one class of sizes.

    `least` and `most` are the class's sizes [B]; `most` is None in the last class.
    """

    call: str
    least: int
    most: Optional[int]
    messages: int
    bytes: int


Table = Tuple[Sent, ...]


def tables(text: str) -> List[Table]:
    """Every payload table in an output, in its order; empty when there is none."""
    lines = [line.strip() for line in text.splitlines()]
    return [_table(lines[start + 1 :]) for start, line in enumerate(lines) if line == _TITLE]


def readings(table: Table) -> List[Reading]:
    """payload_messages and payload_bytes, each a list over the classes of LEAST with all calls together."""
    by_class = [[sent for sent in table if sent.least == least] for least in LEAST]
    messages = [sum(sent.messages for sent in sents) for sents in by_class]
    sizes = [sum(sent.bytes for sent in sents) for sents in by_class]
    return [Reading("payload_messages", messages, "1"), Reading("payload_bytes", sizes, "B")]


def parse(transcript: Transcript) -> List[Reading]:
    """The `readings` of the one table in the output; raises Unreadable as `tables`, or when there are more."""
    found = tables(transcript.executions[-1].stdout)
    if len(found) != 1:
        raise Unreadable(f"{len(found)} payload tables where one was expected")
    return readings(found[0])


def results(text: str) -> List[Result]:
    """A result for every line of every table: its messages and bytes, by number of the table, call and sizes [B]."""
    listed = []
    for number, table in enumerate(tables(text), start=1):
        for sent in table:
            messages = Reading("payload_messages", sent.messages, "1")
            sizes = {"least_bytes": sent.least, "most_bytes": sent.most}
            settings = {"table": number, "call": sent.call, **sizes}
            listed.append(Result((messages, Reading("payload_bytes", sent.bytes, "B")), settings))
    if not listed:
        raise Unreadable("there is no payload table with a message in it")
    return listed


def _table(lines: Sequence[str]) -> Table:
    """The table that begins with these lines, after its title."""
    if _END not in lines:
        raise Unreadable("the payload table is cut off: its last line is missing")
    head, *rows = lines[: lines.index(_END)] or [""]
    if not _HEAD.match(head):
        raise Unreadable("the payload table lacks its line of headings")
    table = tuple(map(_sent, rows))
    if len({(sent.call, sent.least) for sent in table}) < len(table):
        raise Unreadable("the payload table has two lines for the same call and sizes")
    return table


def _sent(line: str) -> Sent:
    """A line of a table; raises Unreadable when it is none or its numbers contradict each other."""
    row = _ROW.match(line)
    if not row:
        raise Unreadable(f"the payload table has a line that is not its own: {line[:60]!r}")
    least, messages, size = int(row[2]), int(row[4]), int(row[5])
    most = None if least == LEAST[-1] else max(2 * least - 1, 0)
    if least not in LEAST or row[3] != ("more" if most is None else str(most)):
        raise Unreadable(f"the payload table has no sizes from {row[2]} to {row[3]}")
    if not messages or size < messages * least or (most is not None and size > messages * most):
        raise Unreadable(f"{messages} messages of {row[2]} to {row[3]} bytes are not {size} bytes")
    return Sent(row[1], least, most, messages, size)


RUNNER = Runner("payload", only_read("payload", " --print"), parse, results)


def run(argv: Sequence[str], library: Path, variable: str = "FALLOFF_PAYLOAD") -> Tuple[int, str]:
    """Run a command line with `library` (payload.so) loaded into the program: its exit code, and its
    payload table as it was printed, empty without one. Another library prints to the file that `variable` names.

    Open MPI's mpirun is told to hand the library to all ranks, also on other hosts; of any other launcher
    it is taken that the ranks inherit its environment, as with srun and MPICH. Rank 0 writes its table
    below the working folder, which its host has to share.
    """
    if set(" :") & set(str(library)):
        raise FalloffError(f"LD_PRELOAD cannot name {library}: it needs a path without ' ' and ':'")
    try:
        with tempfile.TemporaryDirectory(prefix=".falloff-", dir=Path.cwd()) as folder:
            table = Path(folder) / "payload.txt"
            exit_code = _executed(*_with_library(argv, library, variable, table))
            printed = table.read_text(encoding="utf-8").strip() if table.exists() else ""
    except OSError as error:
        raise FalloffError(f"cannot write to {Path.cwd()}: {error.strerror}") from None
    return exit_code, printed


def _with_library(
    argv: Sequence[str], library: Path, variable: str, table: Path
) -> Tuple[List[str], Dict[str, str]]:
    """The command line and the environment with which the ranks load `library` and write to `table`."""
    preload = ":".join(filter(None, (str(library), os.environ.get("LD_PRELOAD"))))
    variables = {"LD_PRELOAD": preload, variable: str(table)}
    if not _is_open_mpi(argv[0]):
        return list(argv), {**os.environ, **variables}
    exports = [word for name in variables for word in ("-x", f"{name}={variables[name]}")]
    return [argv[0], *exports, *argv[1:]], dict(os.environ)


def _is_open_mpi(launcher: str) -> bool:
    if not Path(launcher).name.startswith(_LAUNCHERS):
        return False  # who knows what it would do with --version
    asked = [launcher, "--version"]
    try:
        version = subprocess.run(asked, capture_output=True, text=True, errors="replace").stdout
    except OSError:  # told when it is run
        return False
    return "Open MPI" in version


def _executed(command: Sequence[str], environment: Dict[str, str]) -> int:
    """Its exit code, or as a shell gives it 128 and the number of the signal that ended it."""
    try:
        code = subprocess.run(command, env=environment).returncode
    except OSError as error:
        raise FalloffError(f"cannot run {command[0]}: {error.strerror}") from None
    return code if code >= 0 else 128 - code
