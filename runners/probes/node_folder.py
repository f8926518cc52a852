#!/usr/bin/env python3
"""Make a folder on a node. When the caller is gone, end the programs that still run in it and
remove it.

usage: node_folder SILENCE FOLDER

The caller counts as gone when standard input ends, or is silent for SILENCE seconds.
"""

import json
import os
import platform
import select
import shutil
import signal
import stat
import sys
from contextlib import suppress
from pathlib import Path


def main(silence_s: float, folder: Path) -> None:
    """Hold the folder; raises FileExistsError if it belongs to another user."""
    for number in (signal.SIGTERM, signal.SIGHUP):  # a cancelled job, a lost connection
        signal.signal(number, lambda *_: sys.exit(0))
    # Several nodes may share a file system. Each leaves a mark, and the last one to leave removes
    # everything.
    mark = folder / f".held-by-{platform.node()}-{os.getpid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise FileExistsError(f"{folder} is not ours")
    mark.touch()
    print(json.dumps({"folder": str(folder)}), flush=True)
    try:
        while select.select([sys.stdin], [], [], silence_s)[0] and os.read(sys.stdin.fileno(), 64):
            pass
    finally:
        mark.unlink(missing_ok=True)
        if not list(folder.glob(f".held-by-{platform.node()}-*")):
            end_in(folder)
        if not list(folder.glob(".held-by-*")):
            shutil.rmtree(folder, ignore_errors=True)


def end_in(folder: Path) -> None:
    """Kill our processes on this node that work in the folder, such as ranks that wait for a lost
    node. Processes of a terminal, in which a person may be looking around, are spared."""
    there = str(folder.resolve())
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            terminal = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()[4]
            if os.readlink(process / "cwd") == there and terminal == "0":
                os.kill(int(process.name), signal.SIGKILL)


if __name__ == "__main__":
    main(float(sys.argv[1]), Path(sys.argv[2]))
