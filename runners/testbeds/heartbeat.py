"""Tells programs on other hosts, through their standard input, that whoever started them is still there.

When a cable is cut, nothing tells a host that waits for the other side's next word, not even later when the cable is
back and the other side has given up meanwhile. So words come regularly, and a program ends when none has come for long.
"""

import os
import threading
from contextlib import contextmanager, suppress
from typing import IO, Iterator, Set

# Longer than ssh takes to notice that a host is gone and than any pause of a busy machine.
SILENCE_S = 60.0
_EVERY_S = 5.0


class Heartbeat:
    """Lines of programs that run; all methods may be called by several threads."""

    def __init__(self) -> None:
        self._lines: Set[IO[bytes]] = set()
        self._lock = threading.Lock()

    def keep(self, line: IO[bytes]) -> None:
        """Say a word on this line from now on."""
        os.set_blocking(line.fileno(), False)  # who does not read must not keep the others waiting
        with self._lock:
            self._lines.add(line)

    def close(self, line: IO[bytes]) -> None:
        """Close a line, whether it was kept or not: its program is to end now."""
        with self._lock:
            self._lines.discard(line)
        with suppress(OSError):  # a word that could not be said any more
            line.close()

    def beat(self) -> None:
        """Say a word on all lines."""
        with self._lock:
            for line in self._lines:
                with suppress(OSError):  # who has ended, or does not read
                    os.write(line.fileno(), b"\n")


@contextmanager
def beating() -> Iterator[Heartbeat]:
    """A heartbeat that beats until the block is left."""
    heart, over = Heartbeat(), threading.Event()

    def live() -> None:
        while not over.wait(_EVERY_S):
            heart.beat()

    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    try:
        yield heart
    finally:
        over.set()
        thread.join()
