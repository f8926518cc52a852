"""A testbed's own folder for its state, and what becomes of it when its owner is gone.

A process beside the owner, the undertaker, sleeps until the owner ends, and then removes what it left. It reads from a
pipe whose other end only the owner has, which the kernel closes also after kill -9.
"""

import fcntl
import secrets
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Callable, Iterator, Optional

from runners.record import FalloffError

_CODE = Path(__file__).resolve().parent.parent.parent
_PATIENCE_S = 20.0
_PAUSE_S = 0.05


@contextmanager
def held(demolish: Callable[[Path], None], root: Path) -> Iterator[Path]:
    """A fresh folder under `root`, whose name serves as tag for everything its owner makes.

    The owner holds a lock that the kernel drops however it ends. `demolish(folder)` removes all
    that a testbed made, the folder included; it is called on leaving, and on entering for each
    folder whose owner is gone.
    """
    root.mkdir(exist_ok=True)
    with _turn(root):
        for left in filter(Path.is_dir, root.iterdir()):
            lock = _lock(left / "lock")
            if lock:
                with lock:
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
    """Demolish until it is gone: a program or a trial's thread that has just begun adds to it, or removes its own part."""
    deadline = time.monotonic() + _PATIENCE_S
    while folder.exists():
        try:
            demolish(folder)
        except (FalloffError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)


def _undertaker(demolish: Callable[[Path], None], folder: Path) -> "subprocess.Popen[bytes]":
    """The process that demolishes a folder when this one has ended and could not."""
    return subprocess.Popen(
        [sys.executable, "-m", __name__, demolish.__module__, demolish.__name__, str(folder)],
        cwd=_CODE,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,  # what the owner printed to ends with the owner
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # no signal of the owner's terminal is for it
    )


@contextmanager
def _turn(root: Path) -> Iterator[None]:
    """One at a time: a folder that is being made or removed must not look like an abandoned one."""
    with open(root / "turn", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _lock(path: Path) -> Optional[IO[str]]:
    """The file, locked until it is closed; None when somebody else has it."""
    file = open(path, "w", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


@contextmanager
def signals_exit() -> Iterator[None]:
    """Make SIGTERM and SIGHUP a SystemExit, so that what is held is let go; Python lets only the main thread do so.

    One that is ignored, as `nohup` has it, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.getsignal(number) for number in numbers}
    heeded = [number for number in numbers if previous[number] != signal.SIG_IGN]
    for number in heeded:
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, previous[number])


def main(module: str, name: str, folder: Path) -> None:
    """Be the undertaker of a folder: wait until standard input ends."""
    demolish = getattr(import_module(module), name)
    sys.stdin.buffer.read()
    with suppress(FalloffError, OSError):  # such as no lock, where the owner itself has removed it
        with _turn(folder.parent), open(folder / "lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel may let go of it later than of the pipe
            _remove(demolish, folder)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
