"""A testbed's own folder for its state, and its removal when the owner is gone.

A process beside the owner, the undertaker, sleeps until the owner ends, and then removes what is
left. It reads from a pipe whose other end only the owner holds; the kernel closes it even after
kill -9.
"""

import fcntl
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Callable

from runners.records.record import FalloffError

_CODE = Path(__file__).resolve().parent.parent.parent
_PATIENCE_S = 20.0
_PAUSE_S = 0.05


@contextmanager
def held(demolish: Callable[[Path], None], root: Path) -> Iterator[Path]:
    """A fresh folder under `root`, whose name tags everything that its owner makes.

    The owner holds a lock that the kernel drops however the owner ends. `demolish(folder)` removes
    everything that a testbed made, including the folder. It is called on leaving, and on entering
    for each folder whose owner is gone.
    """
    root.mkdir(exist_ok=True)
    with _turn(root):
        for left in filter(Path.is_dir, root.iterdir()):
            with suppress(BlockingIOError), _lock(left / "lock"):  # its owner lives
                demolish(left)
        folder = root / secrets.token_hex(4)
        undertaker = _undertaker(demolish, folder)
        folder.mkdir()
        lock = _lock(folder / "lock")
    try:
        yield folder
    finally:
        with _turn(root), lock:
            _remove(demolish, folder)
        undertaker.communicate()


def _remove(demolish: Callable[[Path], None], folder: Path) -> None:
    """Demolish repeatedly until the folder is gone: a program or a trial's thread that has just
    started may add to it, or remove its own part."""
    deadline = time.monotonic() + _PATIENCE_S
    while folder.exists():
        try:
            demolish(folder)
        except (FalloffError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)


def _undertaker(demolish: Callable[[Path], None], folder: Path) -> "subprocess.Popen[bytes]":
    """The process that demolishes a folder if this process ends without doing so."""
    return subprocess.Popen(
        [sys.executable, "-m", __name__, demolish.__module__, demolish.__name__, str(folder)],
        cwd=_CODE,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,  # the owner's standard output ends with the owner
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # signals from the owner's terminal do not reach it
    )


def _turn(root: Path) -> IO[str]:
    """Take turns: a folder that is being made or removed must not look abandoned."""
    return _lock(root / "turn", 0)


def _lock(path: Path, how: int = fcntl.LOCK_NB) -> IO[str]:
    """The file, locked until it is closed; raises BlockingIOError if another process holds the
    lock."""
    file = open(path, "w", encoding="utf-8")
    fcntl.flock(file, fcntl.LOCK_EX | how)
    return file


@contextmanager
def signals_exit() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, so that everything held is released. Python allows
    this only in the main thread.

    A signal that is ignored, as under `nohup`, stays ignored.
    """
    heeded = {}
    if threading.current_thread() is threading.main_thread():
        previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
        heeded = {key: value for key, value in previous.items() if value != signal.SIG_IGN}
    for number in heeded:
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        for number, handler in heeded.items():
            signal.signal(number, handler)


def main(module: str, name: str, folder: Path) -> None:
    """Be the undertaker of a folder: wait until standard input ends."""
    demolish = getattr(import_module(module), name)
    sys.stdin.buffer.read()
    with suppress(FalloffError, OSError):  # for example no lock, because the owner has removed it
        # The kernel may release its lock later than the pipe.
        with _turn(folder.parent), _lock(folder / "lock", 0):
            _remove(demolish, folder)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
