"""Count the messages of any MPI program: run it with payload.so loaded into its ranks, and read their table."""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

from runners import payload
from runners.record import FalloffError

_LAUNCHERS = ("mpirun", "mpiexec", "orterun")
_BAR = 40  # characters of the longest bar
_UNITS = ("B", "KiB", "MiB", "GiB")


def run(argv: Sequence[str], library: Path) -> Tuple[int, str]:
    """Run a command line with `library` (payload.so) loaded into the program: its exit code, and its
    payload table as it was printed, empty without one.

    Open MPI's mpirun is told to hand the library to all ranks, also on other hosts; of any other launcher
    it is taken that the ranks inherit its environment, as with srun and MPICH. Rank 0 writes its table
    below the working folder, which its host has to share.
    Raises FalloffError when the program cannot be started, or nothing can be written here.
    """
    if set(" :") & set(str(library)):
        raise FalloffError(
            f"LD_PRELOAD cannot name {library}: move this installation to a path without ' ' and ':'"
        )
    try:
        with tempfile.TemporaryDirectory(prefix=".falloff-", dir=Path.cwd()) as folder:
            table = Path(folder) / "payload.txt"
            exit_code = _executed(*_with_library(argv, library, table))
            printed = table.read_text(encoding="utf-8").strip() if table.exists() else ""
    except OSError as error:
        raise FalloffError(
            f"cannot write to {Path.cwd()}: {error.strerror}; run it where you may"
        ) from None
    return exit_code, printed


def histogram(table: payload.Table) -> str:
    """A table's messages and bytes by class of sizes, all calls together, with a bar for each share of bytes."""
    messages, sizes = (reading.value for reading in payload.readings(table))
    used = [index for index, count in enumerate(messages) if count] or [0]
    total, longest = max(sum(sizes), 1), max(*sizes, 1)
    lines = ["size of message         messages                 bytes  share of bytes"]
    for index in range(used[0], used[-1] + 1):
        least, unit = payload.LEAST[index], 0
        while least >= 1024:
            least, unit = least // 1024, unit + 1
        size = f"{least} {_UNITS[unit]}"
        share = f"{100 * sizes[index] / total:5.1f} %  {'#' * round(_BAR * sizes[index] / longest)}"
        lines.append(f"from {size:<10} {messages[index]:>15} {sizes[index]:>21}  {share}".rstrip())
    lines.append(f"all             {sum(messages):>15} {sum(sizes):>21}")
    return "\n".join(lines)


def _with_library(
    argv: Sequence[str], library: Path, table: Path
) -> Tuple[List[str], Dict[str, str]]:
    """The command line and the environment with which the ranks load `library` and write to `table`."""
    preload = ":".join(filter(None, (str(library), os.environ.get("LD_PRELOAD"))))
    variables = {"LD_PRELOAD": preload, "FALLOFF_PAYLOAD": str(table)}
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
