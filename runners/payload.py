"""The payload of an MPI program: messages and bytes that its ranks send, by call and size of
message.

The table is printed by runners/src/payload.h when a program that is linked or preloaded with
runners/src/payload.c ends, and by the simulated HPL; payload.c says what is counted.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Optional

from runners.records.record import Contradictory, Cut, FalloffError, Readings

# Least bytes of each class of sizes: nothing, then from each power of two up to the next; the last
# is open.
LEAST = (0, *(2**power for power in range(32)))

_TITLE = "Payload: messages that all ranks sent, by call and size"
_HEAD = re.compile(r"call +from B +to B +messages +bytes$")
_ROW = re.compile(r"(MPI_\w+) +(\d{1,18}) +(?:\d{1,18}|more) +(\d{1,18}) +(\d{1,18})$", re.ASCII)
_END = "end of payload"

_LAUNCHERS = ("mpirun", "mpiexec", "orterun")


# By call and least size [B] of a class: messages and bytes that the ranks sent together.
Table = dict[tuple[str, int], tuple[int, int]]


def readings(text: str) -> Readings:
    """payload_messages and payload_bytes of an output, each a list over the classes of LEAST with
    all calls together; none where it has no table. Raises Unreadable as `table` does."""
    counts = table(text)
    if counts is None:
        return {}
    by_class = [[sent for (_, size), sent in counts.items() if size == least] for least in LEAST]
    messages, sizes = ([sum(sent[of] for sent in sents) for sents in by_class] for of in (0, 1))
    return {"payload_messages": messages, "payload_bytes": sizes}


def table(text: str) -> Optional[Table]:
    """The one payload table in an output, if it has one; raises Unreadable when it is cut off."""
    lines = [line.strip() for line in text.splitlines()]
    starts = [start for start, line in enumerate(lines) if line == _TITLE]
    if not starts:
        return None
    if len(starts) > 1:
        raise Contradictory(f"{len(starts)} payload tables where one was expected")
    lines = lines[starts[0] + 1 :]
    if _END not in lines or not _HEAD.match(lines[0]):
        raise Cut("the payload table lacks its line of headings, or its last line is cut off")
    counts: Table = {}
    for line in lines[1 : lines.index(_END)]:
        row = _ROW.match(line)
        if not row or int(row[2]) not in LEAST:
            raise Contradictory(f"the payload table has a line that is not its own: {line[:60]!r}")
        call = row[1], int(row[2])
        if call in counts:
            raise Contradictory("the payload table has two lines for the same call and sizes")
        counts[call] = int(row[3]), int(row[4])
    return counts


def run(argv: Sequence[str], libraries: Mapping[str, Path]) -> tuple[int, list[str]]:
    """Run a command line with these libraries (payload.so, record.so) loaded into the program, each
    by the variable that names its file: the exit code, and what each printed. What Open MPI's
    monitoring leaves beside a file follows it.

    Open MPI's mpirun is told to hand the libraries to all ranks, also on other hosts; of any other
    launcher it is taken that the ranks inherit its environment, as with srun and MPICH. Rank 0
    writes below the working folder, which its host has to share.
    """
    for library in libraries.values():
        if set(" :") & set(str(library)):
            raise FalloffError(
                f"LD_PRELOAD cannot name {library}: it needs a path without ' ' and ':'"
            )
    try:
        with _scratch() as folder:
            files = {variable: folder / variable for variable in libraries}
            command, environment = _with_libraries(argv, list(libraries.values()), files)
            try:
                code = subprocess.run(command, env=environment).returncode
            except OSError as error:
                raise FalloffError(f"cannot run {command[0]}: {error.strerror}") from None
            printed = [_printed(file) for file in files.values()]
            # As a shell gives it: 128 and the number of the signal that ended it.
            return code if code >= 0 else 128 - code, printed
    except OSError as error:
        raise FalloffError(f"cannot write to {Path.cwd()}: {error.strerror}") from None


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder below the working folder. A process beside this one removes it when this one has
    ended, also by kill -9.
    """
    folder = tempfile.mkdtemp(prefix=".falloff-", dir=Path.cwd())
    remover = subprocess.Popen(
        ["sh", "-c", 'cat > /dev/null; rm -rf -- "$0"', folder],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield Path(folder)
    finally:
        remover.communicate()


def _printed(file: Path) -> str:
    if not file.exists():
        return ""
    files = [file, *sorted(file.parent.glob(f"{file.name}.*.prof"))]
    return "\n".join(part.read_text(encoding="utf-8").strip() for part in files)


def _with_libraries(
    argv: Sequence[str], libraries: Sequence[Path], files: Mapping[str, Path]
) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment with which the ranks load the libraries."""
    preload = ":".join(filter(None, (*map(str, libraries), os.environ.get("LD_PRELOAD"))))
    variables = {"LD_PRELOAD": preload, **{name: str(file) for name, file in files.items()}}
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
