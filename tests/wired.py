"""Frames between emulated nodes, for tests: the programs that carry them, and datagrams whose way is timed."""

import shutil
import socket
import subprocess
import time
import tomllib
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import users
from undisturbed import repeated

from runners.record import Command, Trial
from runners.testbeds import netns
from runners.testbeds.graph import address

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTION = tomllib.loads((ROOT / "data/testbeds/paths.toml").read_text())

lacking = users.lacking(DESCRIPTION) + (
    [] if shutil.which("cc") else ["no C compiler: apt-get install gcc"]
)
lacking += (
    [] if Path("/dev/net/tun").exists() else ["the kernel has no TAP interfaces: modprobe tun"]
)
needs_network = pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))

RATE = 10e6
PAYLOAD = 1472  # of a datagram that fills a frame of MTU 1500
FRAME_S = 1538 * 8 / RATE  # how long that is on the wire


def build(folder: Path, *names: str) -> dict[str, str]:
    """Programs of runners/src by name, built with all warnings as errors."""
    if not shutil.which("cc"):
        pytest.skip("no C compiler: apt-get install gcc")
    for name in names:
        source = str(ROOT / f"runners/src/{name}.c")
        subprocess.run(
            ["cc", "-O2", "-Wall", "-Wextra", "-Werror", source, "-o", str(folder / name)],
            check=True,
        )
    return {name: str(folder / name) for name in names}


def run(testbed, path, *argv):
    """A trial of one command on node 1 of a path."""
    transcript = testbed.run(Trial("t", "point", "none", 1, 1, {"path": path}), [Command(argv)])
    assert transcript.fault == "" and [done.exit_code for done in transcript.executions] == [0]
    return transcript


@contextmanager
def sockets(testbed, path):
    """A UDP socket on each node of a path, by number, every one of which knows where the others are."""
    run(testbed, path, "true")  # it configures the path
    with ExitStack() as stack:
        opened = {}
        for node in testbed.net.graph.nodes:
            with netns.entered(testbed.net.space(f"n{node}")):
                opened[node] = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            opened[node].bind((address(node), 5301))
            opened[node].settimeout(3)
        for node, other in ((node, other) for node in opened for other in opened if node != other):
            passed(opened, [(node, other)], 1, 4)
        yield opened


def passed(opened, flows, count, payload=PAYLOAD) -> tuple[float, list[int]]:
    """Send `count` datagrams over each of `flows` (from, to) at once: seconds until all are there, and their senders.

    The senders are in the order of arrival, each flow's receiver asked for all of its own in turn.
    """
    begun = time.monotonic()
    for _ in range(count):
        for source, target in flows:
            opened[source].sendto(bytes(payload), (address(target), 5301))
    receivers = [target for _ in range(count) for _, target in flows]
    senders = [opened[target].recvfrom(2048)[1][0] for target in receivers]
    return time.monotonic() - begun, [int(sender.rpartition(".")[2]) for sender in senders]


def best(opened, flows, count, payload=PAYLOAD, below=float("inf")) -> float:
    """The shortest of three such times or more, until one is `below` that [s]: nothing else can make it shorter."""
    return min(
        repeated(
            lambda: passed(opened, flows, count, payload)[0],
            lambda seconds: seconds < below,
            at_least=3,
        )
    )
