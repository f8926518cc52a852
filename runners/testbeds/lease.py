"""A testbed's own folder for its state, and what becomes of it when its owner is gone."""

import fcntl
import secrets
import signal
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Callable, Iterator, Optional


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
        folder.mkdir()
        lock = _lock(folder / "lock")
    try:
        yield folder
    finally:
        with _turn(root), lock:
            demolish(folder)


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
def sigterm_exits() -> Iterator[None]:
    """Make SIGTERM a SystemExit, so that what is held is let go; Python lets only the main thread do so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
