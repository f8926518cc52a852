"""Emulated networks for tests: what they need, the programs that carry frames, trials, and
datagrams that are timed.
"""

import os
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import users
from undisturbed import repeated

from analysis.descriptions import testbeds
from analysis.descriptions.networks import interconnects, network_paths
from analysis.descriptions.toml_tables import plain
from runners.records.record import Command, Trial
from runners.testbeds import netns
from runners.testbeds.graph import address

ROOT = Path(__file__).resolve().parents[2]
EMULATED = testbeds.read("emulated").plain()
# Without a long look at an idle machine.
ON_PATHS = {**testbeds.read("paths").plain(), "cpu": {"baseline_s": 0.02}}
INTERCONNECTS = plain(interconnects())
PATHS = plain(network_paths())

lacking = users.lacking(EMULATED)
lacking += [] if shutil.which("cc") else ["no C compiler: apt-get install gcc"]
lacking += [] if Path("/dev/net/tun").exists() else ["no TAP interfaces: modprobe tun"]
needs_network = pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))

RATE = 10e6
PAYLOAD = 1472  # of a datagram that fills a frame of MTU 1500
FRAME_S = 1538 * 8 / RATE  # how long that is on the wire


def build(folder: Path, *names: str) -> dict[str, str]:
    """Programs of runners/src by name, built with all warnings as errors."""
    for name in names:
        source, warnings = str(ROOT / f"runners/src/{name}.c"), ("-Wall", "-Wextra", "-Werror")
        subprocess.run(["cc", "-O2", *warnings, source, "-o", str(folder / name)], check=True)
    return {name: str(folder / name) for name in names}


def run(testbed, *commands, runner="none", block=1, **point):
    """A trial of these commands, or of one plain command's words, without a fault of the
    testbed's.
    """
    if isinstance(commands[0], str):
        commands = [Command(commands)]
    transcript = testbed.run(Trial("t", "point", runner, block, 1, point), commands)
    assert transcript.fault == "", transcript
    return transcript


def text(transcript) -> str:
    """What the only command printed, which ended well."""
    (execution,) = transcript.executions
    assert execution.exit_code == 0, execution.stderr
    return execution.stdout


@contextmanager
def sockets(testbed, path):
    """A UDP socket on each node of a path, by number, every one of which knows where the others
    are.
    """
    run(testbed, "true", path=path)  # it configures the path
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
    """Send `count` datagrams over each of `flows` (from, to) at once: seconds until all are there,
    and their senders.

    The senders are in the order of arrival, each flow's receiver asked for all of its own in turn.
    What arrives is what was sent.
    """
    data, begun = os.urandom(payload), time.monotonic()
    for _ in range(count):
        for source, target in flows:
            opened[source].sendto(data, (address(target), 5301))
    receivers = [target for _ in range(count) for _, target in flows]
    arrived = [opened[target].recvfrom(2048) for target in receivers]
    seconds = time.monotonic() - begun
    assert {received for received, _ in arrived} == {data}
    return seconds, [int(sender.rpartition(".")[2]) for _, (sender, _) in arrived]


def best(opened, flows, count, payload=PAYLOAD, below=float("inf")) -> float:
    """The shortest of three such times or more, until one is `below` that [s]: nothing else can
    make it shorter.
    """
    return min(
        repeated(
            lambda: passed(opened, flows, count, payload)[0],
            lambda seconds: seconds < below,
            at_least=3,
        )
    )
