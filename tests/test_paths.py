"""Paths on this machine, for real: what each carries, refuses and counts."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import users
from undisturbed import alone, repeated

from runners.record import Command, FalloffError, Trial, mismatch
from runners.testbeds import emulated

ROOT = Path(__file__).resolve().parent.parent
DESCRIPTION = tomllib.loads((ROOT / "data/testbeds/paths.toml").read_text())
DESCRIPTION["cpu"] = {"baseline_s": 0.02}
PATHS = tomllib.loads((ROOT / "data/paths.toml").read_text())
SLOW = {**PATHS["crossover"], "rate_bit_s": 50e6}
TO_SWITCH = [{"from": 1, "to": "core"}, {"from": 2, "to": "core", "rate_back_bit_s": 20e6}]
BOUNDED = {**PATHS["switch"], "links": TO_SWITCH}

lacking = users.lacking(DESCRIPTION)
pytestmark = pytest.mark.skipif(bool(lacking), reason="; ".join(lacking))


@pytest.fixture(scope="module")
def testbed():
    """The testbed with the published paths and two that are slow enough for a busy machine."""
    with emulated.open_testbed(DESCRIPTION, {**PATHS, "slow": SLOW, "bounded": BOUNDED}) as opened:
        yield opened


def run(testbed, path, *commands, **point):
    """A trial of these commands on a path."""
    transcript = testbed.run(Trial("t", "point", "none", 1, 1, {"path": path, **point}), commands)
    assert transcript.fault == ""
    return transcript


def ping(testbed, path, size, sender=1, receiver=2, **point):
    """What ping says of one echo that no router may cut in pieces, carrying `size` bytes."""
    argv = ("ping", "-M", "do", "-c", "1", "-W", "0.3", "-s", str(size), f"{{node{receiver}}}")
    (execution,) = run(testbed, path, Command(argv, node=sender), **point).executions
    return execution.stdout + execution.stderr


def answered(testbed, path, size, said, **point):
    """Whether ping says so: of one echo, or of a later one where another machine had ours while it was waited for."""
    told = repeated(lambda: ping(testbed, path, size, **point), lambda told: re.search(said, told))
    return re.search(said, told[-1])


CARRIED, LOST = "1 received", "0 received"


@pytest.mark.parametrize(
    ("path", "largest"),
    [("crossover", 8972), ("switch", 8972), ("router", 8972), ("switch_8996", 8954)],
)
def test_a_path_carries_its_largest_echo_and_no_larger_one(testbed, path, largest):
    """Both ways; ICMP has 8 bytes, IP 20: 8954 is a frame of 8996 bytes, the limit of the path so named."""
    assert answered(testbed, path, largest, CARRIED, mtu=9000)
    assert answered(testbed, path, largest, CARRIED, sender=2, receiver=1, mtu=9000)
    assert LOST in ping(testbed, path, largest + 1, mtu=9000)


def test_a_switch_drops_in_silence_and_a_sender_does_not(testbed):
    """Nobody tells of the frame that the switch drops; the sender's own kernel tells of what exceeds its MTU."""
    silent = ping(testbed, "switch_8996", 8955, mtu=9000)
    assert LOST in silent and "rror" not in silent and "oo long" not in silent
    assert "message too long" in ping(testbed, "switch_8996", 8955, mtu=8982)


def test_a_router_counts_down_and_says_what_is_too_large(testbed):
    """A hop less to live, and ICMP's message with the MTU of the link behind."""
    assert answered(testbed, "router_1500", 1472, "ttl=63", mtu=9000)
    assert answered(testbed, "router_1500", 1473, r"Frag needed.*mtu = 1500", mtu=9000)
    assert answered(testbed, "switch", 1472, "ttl=64")


def iperf3(testbed, path, sender=1, receiver=2, omit="0", **point):
    """Goodput [bit/s] of a second by iperf3 after `omit` seconds, its report, and the transcript."""
    server = Command(
        ("iperf3", "--server", "--one-off"), node=receiver, background=True, listens=5201
    )
    address = f"{{node{receiver}}}"
    client = Command(
        ("iperf3", "--client", address, "--json", "--time", "1", "--omit", omit), node=sender
    )
    transcript = run(testbed, path, server, client, **point)
    report = json.loads(transcript.executions[-1].stdout)
    return report["end"]["sum_received"]["bits_per_second"], report, transcript


@alone
@pytest.mark.parametrize("mtu", [1500, 9000])
def test_a_link_carries_what_its_wire_does(testbed, mtu):
    """TCP with timestamps has 52 bytes of headers in the MTU, Ethernet 38 beyond it."""

    def share() -> float:
        goodput, _, transcript = iperf3(testbed, "slow", omit="1", mtu=mtu)
        assert mismatch(transcript.requested, transcript.effective) == []
        return goodput / (50e6 * (mtu - 52) / (mtu + 38))

    assert 0.97 <= repeated(share, lambda share: 0.97 <= share <= 1.005)[-1] <= 1.005


@alone
def test_rates_are_by_direction(testbed):
    """What comes to node 2 passes its slow way back from the switch; what it sends itself is not slowed down."""
    slow, _, _ = iperf3(testbed, "bounded")
    fast = repeated(
        lambda: iperf3(testbed, "bounded", sender=2, receiver=1)[0], lambda fast: fast > 20e6
    )[-1]
    assert slow < 20e6 < fast


def test_a_trial_has_its_congestion_control_and_mtu(testbed):
    """The kernel's sockets use what the trial asks for, and the next trial has its own again."""
    _, report, transcript = iperf3(testbed, "slow", mtu=4000, congestion_control="reno")
    assert (
        report["end"]["sender_tcp_congestion"] == report["end"]["receiver_tcp_congestion"] == "reno"
    )
    assert (
        transcript.effective["mtu"] == 4000 and transcript.effective["congestion_control"] == "reno"
    )
    after = run(testbed, "slow", Command(("true",)))
    assert after.effective["congestion_control"] == "cubic" and after.effective["mtu"] == 1500


def test_a_window_beyond_the_machines_limit_is_a_mismatch(testbed):
    """The kernel cuts it down without a word; the trial says so."""
    limit = testbed.provenance()["largest_window_bytes"]
    assert mismatch(*requested_and_effective(testbed, window_bytes=limit)) == []
    assert mismatch(*requested_and_effective(testbed, window_bytes=limit + 1))[0].startswith(
        "window_bytes is"
    )


def requested_and_effective(testbed, **point):
    transcript = run(testbed, "slow", Command(("true",)), **point)
    return transcript.requested, transcript.effective


@alone
def test_receive_work_is_the_receivers(testbed):
    """Without a program of its own, node 2 answers pings in the threads that receive for it, and is charged."""
    threads = testbed.use("crossover").threads
    if not threads or not all(threads.values()):
        pytest.skip("this kernel receives in nobody's name: no threaded NAPI")
    flood = Command(("ping", "-f", "-c", "500", "-q", "{node2}"))

    def share() -> float:
        counters = run(testbed, "crossover", flood).counters
        assert counters["host_cpu_time"] >= 0
        parts = (
            sum(counters["cpu_time"]) + counters["network_cpu_time"] + counters["baseline_cpu_time"]
        )
        assert parts + counters["unattributed_cpu_time"] == pytest.approx(counters["host_cpu_time"])
        return counters["cpu_time"][1] / counters["cpu_time"][0]

    assert repeated(share, lambda share: share > 0.2)[-1] > 0.2


def test_a_path_that_nobody_described_or_that_is_no_graph_is_refused(testbed):
    """As the trial's fault, with those that there are; or before anything is made, by its name."""
    strange = Trial("t", "point", "none", 1, 1, {"path": "tin cans"})
    fault = testbed.run(strange, [Command(("true",))]).fault
    assert "'tin cans' is unknown; there are crossover" in fault
    broken = {"broken": {"name": "a broken one", "links": [{"from": 1, "to": "nowhere"}]}}
    with pytest.raises(FalloffError, match="path a broken one: .* nowhere"):
        with emulated.open_testbed(DESCRIPTION, broken):
            pass
