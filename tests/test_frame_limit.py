"""The largest frame of a path: ping's words, the bisection, the table, and a switch that drops silently."""

import os
import random
import shutil
import subprocess

import pytest
import recorded

from runners import frame_limit
from runners.probes import frame_limit as probe
from runners.record import Execution, InvalidRun, Transcript, Trial
from runners.testbeds import netns

HEAD = "frame_limit: 10.9.0.1 to 10.9.0.2, payloads from {} to {} B, 10 requests a batch, interface MTU 9000 B"
LINK = {"sender": 1, "receiver": 3}


def summary(sent, received, errors=""):
    """The end of an output of ping."""
    counted = f"{sent} packets transmitted, {received} received,{errors} 9% packet loss, time 9ms"
    return f"\n--- 10.9.0.2 ping statistics ---\n{counted}\n"


def replies(*sequence, size=1460):
    """Lines of replies to requests of 1452 bytes."""
    line = "{} bytes from 10.9.0.2: icmp_seq={} ttl=64 time=0.1 ms\n"
    return "".join(line.format(size, number) for number in sequence)


LOST = summary(3, 0, " +3 errors,")


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        (replies(1, 2, 3) + summary(3, 3), "carried"),
        (replies(1, 2) + summary(4, 2), "unclear"),
        (replies(1, 1, 1) + summary(3, 3), "unclear"),
        (summary(3, 0), "silent"),
        (summary(3, 0) + 3 * "ping: sendmsg: No buffer space available\n", "silent"),
        (LOST + 3 * "ping: local error: message too long, mtu=9000\n", "local"),
        (LOST + 3 * "ping: local error: Message too long, mtu=1480\n", "router"),
        ("From 10.9.0.3 (10.9.0.3) icmp_seq=1 Frag needed and DF set (mtu = 1480)\n" + LOST, "router"),
        ("From 10.9.0.1 icmp_seq=1 Destination Host Unreachable\n" + LOST, "unclear"),
        ("ping: sendmsg: Operation not permitted\n" + summary(3, 0), "unclear"),
        (replies(1, 2, 3, size=76) + summary(3, 3), "unclear"),
    ],
)  # fmt: skip
def test_what_ping_says_of_a_size(output, outcome):
    """Each word of iputils tells where the request was lost, or that nobody knows."""
    tried = probe.read(output, 1452, 9000)
    assert tried.outcome == outcome
    assert bool(tried.said) == ("ping: " in output or "From " in output or "76 bytes" in output)


def path(limit, loss, seed, requests=10, fault="silent"):
    """A simulated path: requests beyond the limit are lost, the others with a probability."""
    chance = random.Random(seed)

    def send(payload):
        back = sum(chance.random() >= loss for _ in range(requests)) if payload <= limit else 0
        outcome = "carried" if 2 * back > requests else "unclear" if back else fault
        return probe.Try(payload, requests, back, outcome)

    return send


def printed(tries, least=40, most=65507):
    """The probe's output."""
    return f"{HEAD.format(least, most)}\n{probe.table(tries)}\nend of frame_limit\n"


def values(text):
    """The readings of an output, by name."""
    return {reading.name: reading.value for reading in frame_limit.readings(text)}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", [0, 0.05, 0.2])
@pytest.mark.parametrize("mtu", [68, 69, 1500, 8982, 65534, 65535])
def test_any_limit_is_found_exactly_or_undecided(mtu, loss, seed):
    """With up to 20 % loss no limit is off by a byte."""
    tries = probe.search(path(mtu - 28, loss, seed), 40, 65507)
    assert len(tries) <= 18
    try:
        found = values(printed(tries))
    except InvalidRun as undecided:
        assert str(undecided).startswith("undecided: ") and loss > 0
    else:
        fault = "none" if mtu == 65535 else "silent"
        assert found == {
            "frame_payload": mtu - 28, "frame_mtu": mtu, "frame_bytes_largest": mtu + 14, "frame_fault": fault
        }  # fmt: skip


def test_both_directions_have_readings_of_their_own():
    """The second probe runs on the receiver; what it finds has the suffix that other tools use."""
    probes = frame_limit.commands({**LINK, "least_payload": 1400, "most_payload": 9100})
    assert [(one.node, one.argv[1]) for one in probes] == [(1, "{node3}"), (3, "{node1}")]
    texts = [recorded.text(f"frame_limit/20221126-{case}") for case in ("router", "local")]
    ran = tuple(Execution("frame_limit", (), text, "", 0, 0.0, 1.0) for text in texts)
    trial = Trial("t", "point", "frame_limit", 1, 1, {})
    transcript = Transcript(trial, "here", "emulated", ran, {}, {})
    found = {reading.name: reading.value for reading in frame_limit.parse(transcript)}
    assert (found["frame_fault"], found["frame_fault_reverse"]) == ("router", "local")
    assert found["frame_mtu_reverse"] == 1480


@pytest.fixture
def switch(tmp_path):
    """Two hosts with an MTU of 9000 on a switch with one of 8982."""
    spaces = {name: tmp_path / name for name in ("switch", "n1", "n2")}
    try:
        for space in spaces.values():
            netns.create(space)
        lines = ["link add name bridge mtu 8982 type bridge", "link set bridge up"]
        for name in ("n1", "n2"):
            lines.append(
                f"link add name {name} mtu 8982 type veth peer name eth0 mtu 9000 netns {spaces[name]}/net"
            )
            lines.append(f"link set {name} master bridge up")
        batch(spaces["switch"], lines)
        for number, name in enumerate(("n1", "n2"), start=1):
            batch(spaces[name], [f"address add 10.9.0.{number}/24 dev eth0", "link set eth0 up"])
        yield spaces
    finally:
        netns.release(tmp_path)


def batch(space, lines):
    """Commands of `ip` in a namespace."""
    netns.run([netns.Invocation(space, ["ip", "-batch", "-"], "\n".join(lines) + "\n")])


@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare", "ping"))), reason="needs root"
)
@pytest.mark.parametrize(("source", "target"), [("n1", "10.9.0.2"), ("n2", "10.9.0.1")])
def test_a_silent_switch_is_found_exactly(switch, source, target):
    """Frames of 8996 bytes pass, larger ones vanish: the limit of the published switches, from either end."""
    argv = [*netns.inside(switch[source]), probe.__file__, target, "8950", "8956", "3"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert values(done.stdout) == {
        "frame_payload": 8954, "frame_mtu": 8982, "frame_bytes_largest": 8996, "frame_fault": "silent"
    }  # fmt: skip
