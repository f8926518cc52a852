"""The token programs for tests: built from their sources with all warnings as errors, and started
on this machine.
"""

import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from runners import build

_LISTENING = "0A"


def compiled(name: str, compiler: str, folder: Path) -> Path:
    """The program `token` or `token_mpi`, built into a folder; skips the test where there is no
    such compiler.
    """
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}: run `make setup`")
    warnings = "LEAN=-O2 -Wall -Wextra -Werror"
    build.run_make(folder, [f"CC={compiler}", warnings, name])
    program = folder / name
    return program


class Exchange:
    """Pairs of one program on this machine, each end a process of its own, and their
    coordinator.
    """

    def __init__(self, program: Path, pairs: int) -> None:
        self._program = program
        ports = _free_ports(2 * pairs)
        self.consumers = [self._start("consume", str(port)) for port in ports[:pairs]]
        self.producers = [self._start("produce", str(port)) for port in ports[pairs:]]
        self.coordinator = None
        _await_listeners(ports)
        self._addresses = [
            f"127.0.0.1:{port},127.0.0.1:{consumer}" for consumer, port in zip(ports, ports[pairs:])
        ]

    def coordinate(
        self, size: int, runs: int, warm_up_s: float, window_s: float, stdout=subprocess.PIPE
    ) -> None:
        """Start the coordinator."""
        settings = map(str, (size, runs, warm_up_s, window_s))
        self.coordinator = self._start("coordinate", *settings, *self._addresses, stdout=stdout)

    @property
    def processes(self) -> list[subprocess.Popen]:
        """All that were started."""
        return [*self.consumers, *self.producers, *([self.coordinator] if self.coordinator else [])]

    def ended(self, limit_s: float) -> list[tuple[int, str, str]]:
        """Exit code, output and complaint of each, of which the last ends at most `limit_s` from
        now.
        """
        deadline = time.monotonic() + limit_s
        said = [
            process.communicate(timeout=max(deadline - time.monotonic(), 0.01))
            for process in self.processes
        ]
        return [(process.returncode, *texts) for process, texts in zip(self.processes, said)]

    def _start(self, *words: str, stdout=subprocess.PIPE) -> subprocess.Popen:
        return subprocess.Popen(
            [self._program, *words], stdout=stdout, stderr=subprocess.PIPE, text=True
        )


@contextmanager
def exchange(program: Path, pairs: int):
    """An Exchange whose ends listen; afterwards nothing of it runs."""
    started = Exchange(program, pairs)
    try:
        yield started
    finally:
        for process in started.processes:
            process.kill()
            process.communicate()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


def _await_listeners(ports: list[int]) -> None:
    """Until all ports are listened on; not by a call, of which an end takes only one."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        if set(ports) <= {
            int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == _LISTENING
        }:
            return
        time.sleep(0.01)
    raise TimeoutError(f"nobody listens on some of {ports}")
