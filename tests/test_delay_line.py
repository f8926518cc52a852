"""The delay line: it delays both ways, passes data on as they are, and counts what it carries and drops."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import users

from runners.record import Command, Trial
from runners.testbeds import emulated, programs

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTION = tomllib.loads((ROOT / "data/testbeds/paths.toml").read_text())
LONG = {"name": "long", "mtu": 1500, "rate_bit_s": 50e6, "links": [{"from": 1, "to": 2, "delay_s": 0.02}]}
TO_HOP = [{"from": 1, "to": "hop", "delay_s": 0.02}, {"from": 2, "to": "hop"}]
LONG_ROUTED = {**LONG, "routers": {"hop": 9000}, "links": TO_HOP}

lacking = users.lacking(DESCRIPTION) + ([] if shutil.which("cc") else ["no C compiler: apt-get install gcc"])
lacking += [] if Path("/dev/net/tun").exists() else ["the kernel has no TAP interfaces: modprobe tun"]
needs_network = pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The delay line, built from its source with all warnings as errors."""
    if not shutil.which("cc"):
        pytest.skip("no C compiler: apt-get install gcc")
    built = tmp_path_factory.mktemp("built") / "delay_line"
    source = ROOT / "runners/src/delay_line.c"
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", str(source), "-o", str(built)], check=True)
    return built


@pytest.fixture(scope="module")
def testbed(program):
    """The testbed with a long path of two nodes, and one behind a router."""
    description = {**DESCRIPTION, "cpu": {"baseline_s": 0.02}, "tools": {"delay_line": str(program)}}
    with emulated.open_testbed(description, {"long": LONG, "routed": LONG_ROUTED}) as opened:
        yield opened


def run(testbed, *commands, path="long"):
    """A trial of these commands on a path."""
    transcript = testbed.run(Trial("t", "point", "none", 1, 1, {"path": path}), commands)
    assert transcript.fault == "" and [done.exit_code for done in transcript.executions] == [0] * len(commands)
    return transcript


@needs_network
@pytest.mark.parametrize("path", ["long", "routed"])
def test_a_round_trip_takes_both_delays_and_little_more(testbed, path):
    """Never less than twice the delay of one way; the best of five not half as much again, however busy it is."""
    pings = Command(("ping", "-c", "5", "-i", "0.05", "-q", "{node2}"))
    best = float(re.search(r"= ([\d.]+)/", run(testbed, pings, path=path).executions[0].stdout)[1])
    assert 40 <= best < 60


_SERVER = """
import hashlib, socket
with socket.create_server(("", 5301)) as server, server.accept()[0] as peer:
    digest, length = hashlib.sha256(), 0
    while block := peer.recv(65536):
        digest.update(block)
        length += len(block)
    peer.sendall(f"{length} {digest.hexdigest()}".encode())
"""
_CLIENT = """
import hashlib, random, socket, sys
data = random.Random(5).randbytes(2_000_000)
with socket.create_connection((sys.argv[1], 5301)) as peer:
    peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)
    assert peer.recv(200).decode() == f"{len(data)} {hashlib.sha256(data).hexdigest()}"
"""


@needs_network
def test_data_arrive_whole(testbed):
    """Two megabytes by TCP: what is received is what was sent, and no frame was dropped on the line."""
    server = Command(("python3", "-c", _SERVER), node=2, background=True, listens=5301)
    transcript = run(testbed, server, Command(("python3", "-c", _CLIENT, "{node2}")))
    assert transcript.counters["frames_dropped_on_lines"] == 0
    assert transcript.counters["bytes_received"][1] > 2_000_000


@needs_network
def test_it_counts_what_it_carries_and_ends_when_told(testbed):
    """Ten echoes are at least ten frames each way, and none is dropped."""
    run(testbed, Command(("ping", "-c", "10", "-i", "0.01", "-q", "{node2}")))
    (line,) = testbed.net.lines
    there, back, *dropped = map(int, re.findall(r"\d+", programs.end(line).stdout))
    assert there >= 10 and back >= 10 and dropped == [0, 0]


@pytest.mark.parametrize("delay", [[], ["soon"], ["-1"], ["nan"], ["0.1", "0.2"]])
def test_it_refuses_what_is_no_delay(program, delay):
    """Exit code 2 and the usage, before any interface is made."""
    done = subprocess.run([program, "a", "b", "c", "d", *delay], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("usage:")


def test_it_says_which_namespace_is_missing(program, tmp_path):
    """The path that leads nowhere is in the message."""
    nowhere = str(tmp_path / "net")
    done = subprocess.run([program, nowhere, "a", nowhere, "b", "0.1"], capture_output=True, text=True)
    assert done.returncode == 1 and nowhere in done.stderr
