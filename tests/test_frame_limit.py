"""The largest frame of a path: ping's words, the bisection, the table, and a switch that drops
silently.
"""

import random

import pytest
import users

from analysis.descriptions import testbeds
from analysis.descriptions.networks import network_paths
from runners.probes import frame_limit as probe
from runners.records.record import InvalidRun, Trial, judge
from runners.testbeds import emulated
from runners.tools import frame_limit

DESCRIPTION = testbeds.read("paths").plain()
lacking = users.lacking(DESCRIPTION)
HEAD = (
    "frame_limit: 10.9.0.1 to 10.9.0.2, payloads from {} to {} B, 10 requests a batch, "
    "interface MTU 9000 B"
)


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
        (
            "From 10.9.0.3 (10.9.0.3) icmp_seq=1 Frag needed and DF set (mtu = 1480)\n" + LOST,
            "router",
        ),
        ("From 10.9.0.1 icmp_seq=1 Destination Host Unreachable\n" + LOST, "unclear"),
        ("ping: sendmsg: Operation not permitted\n" + summary(3, 0), "unclear"),
        (replies(1, 2, 3, size=76) + summary(3, 3), "unclear"),
    ],
)
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
    return frame_limit.readings(text)


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
            "frame_payload": mtu - 28,
            "frame_mtu": mtu,
            "frame_bytes_largest": mtu + 14,
            "frame_fault": fault,
        }


@pytest.mark.parametrize("name", ["7", "inf", "1_0"])
def test_a_name_is_a_text(name):
    """Also one that Python would read as a number."""
    output = printed([probe.Try(40, 10, 10, "carried")]).replace("10.9.0.2", name)
    assert frame_limit.results(output)[0].settings == {"source": "10.9.0.1", "target": name}


@pytest.mark.more
@pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))
def test_a_silent_switch_is_found_exactly_from_either_end():
    """Frames of 8996 bytes pass, larger ones vanish: the limit of the published switches."""
    path = network_paths()["switch_8996"].plain()
    point = {"path": "switch_8996", "mtu": 9000, "sender": 1, "receiver": 2}
    point |= {"least_payload": 8950, "most_payload": 8956}
    with emulated.open_testbed(DESCRIPTION, {"switch_8996": path}) as testbed:
        trial = Trial("t", "point", "frame_limit", 1, 1, point)
        outcome = judge(testbed.run(trial, frame_limit.commands(point)), frame_limit.parse)
    assert outcome.status == "ok", outcome.reason
    limit = {
        "frame_payload": 8954,
        "frame_mtu": 8982,
        "frame_bytes_largest": 8996,
        "frame_fault": "silent",
    }
    back = {f"{name}_reverse": value for name, value in limit.items()}
    assert outcome.readings == limit | back
