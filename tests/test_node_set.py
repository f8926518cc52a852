"""Settings of a node are put back, whatever ends who asked for them."""

import json
import os
import signal
import subprocess
import sys

import pytest

from runners import tools
from runners.testbeds import netns

SCRIPT = tools.PROBES / "node_set.py"


@pytest.fixture
def node(tmp_path):
    """A network namespace with a loopback interface, for its own settings."""
    if os.geteuid():
        pytest.skip("making a namespace needs root")
    space = tmp_path / "node"
    netns.create(space)
    yield space
    netns.release(tmp_path)


def start(node, silence=60, **settings):
    """The script on the node, which holds these settings as long as its input is open and not silent."""
    pipe = subprocess.PIPE
    argv = [*netns.inside(node), sys.executable, str(SCRIPT), str(silence), json.dumps(settings)]
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def said(node, *argv):
    """What a command prints on the node."""
    return netns.run([netns.Invocation(node, argv)])[0].split()


def found(node):
    """The MTU and two of TCP's defaults."""
    rmem, control = (f"/proc/sys/net/ipv4/tcp_{name}" for name in ("rmem", "congestion_control"))
    return int(said(node, "ip", "link", "show", "lo")[4]), said(node, "cat", rmem), said(node, "cat", control)


WANTED = {"mtu": {"lo": 9000}, "rmem": "4096 65536 1000000", "congestion_control": "reno"}


@pytest.mark.parametrize("way", ["input ends", "silence", signal.SIGTERM, signal.SIGHUP])
def test_settings_hold_until_the_end_and_are_put_back(node, way):
    """What was changed is told with its earlier values."""
    before = found(node)
    running = start(node, silence=8 if way == "silence" else 60, **WANTED)
    told = json.loads(running.stdout.readline())
    assert found(node) == (9000, ["4096", "65536", "1000000"], ["reno"]) != before
    assert told == {"mtu": {"lo": before[0]}, "rmem": " ".join(before[1]), "congestion_control": before[2][0]}
    if way == "input ends":
        running.stdin.close()
    elif way != "silence":
        running.send_signal(way)
    assert running.wait(10) == 0
    assert found(node) == before


def test_what_is_so_already_is_left_alone(node):
    """An interface that is given its own MTU may stop for seconds."""
    (mtu, rmem, _) = found(node)
    running = start(node, mtu={"lo": mtu}, rmem=" ".join(rmem))
    assert json.loads(running.stdout.readline()) == {}
    running.stdin.close()
    assert running.wait(10) == 0


@pytest.mark.parametrize("refused", [{"congestion_control": "no_such"}, {"mtu": {"lo": 9000, "none": 1500}}])
def test_a_refusal_undoes_what_was_done(node, refused):
    """With a reason on standard error, and no answer."""
    before = found(node)
    running = start(node, **{**WANTED, **refused})
    out, complaint = running.communicate(timeout=10)
    assert running.returncode and not out and "Error" in complaint
    assert found(node) == before
