"""Stand-ins for Slurm's commands in a folder on PATH, each of which prints what the real one of 22.05.8 does."""

import shlex
from pathlib import Path


def command(folder: Path, name: str, prints: str = "", complains: str = "", code: int = 0) -> None:
    """Put a command there; the words and the time format that it was last called with are in NAME.called."""
    called = shlex.quote(str(folder / f"{name}.called"))
    script = (
        f'#!/bin/sh\nprintf "%s\\n" "$SLURM_TIME_FORMAT" "$@" > {called}\n'
        f"printf %s {shlex.quote(prints)}\nprintf %s {shlex.quote(complains)} >&2\nexit {code}\n"
    )
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)


def queue(folder: Path, state: str, reason: str = "None") -> None:
    """A squeue that knows a job of this state."""
    command(folder, "squeue", f"{state}|{reason}|0:12|5:00\n")


def called(folder: Path, name: str) -> list[str]:
    """The time format in the environment of the last call, and its words."""
    return (folder / f"{name}.called").read_text().splitlines()
