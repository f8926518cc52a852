"""Paths on this machine, for real: what each carries, refuses and counts, and the programs that
carry frames.
"""

import json
import re

import pytest
from token_programs import compiled
from undisturbed import alone, repeated
from wired import (
    FRAME_S,
    ON_PATHS,
    PATHS,
    RATE,
    best,
    build,
    needs_network,
    passed,
    run,
    sockets,
    text,
)

from runners.records.record import Command, FalloffError, Trial, judge, mismatch
from runners.testbeds import emulated, netns
from runners.tools import token_exchange

pytestmark = needs_network

SLOW = {**PATHS["crossover"], "rate_bit_s": 50e6}
TO_SWITCH = [{"from": 1, "to": "core"}, {"from": 2, "to": "core", "rate_back_bit_s": 20e6}]
WIRED = {"mtu": 1500, "rate_bit_s": RATE}
MESH = {**WIRED, "hubs": {"left": [1, 2, "core"], "right": [3, "core"]}}
BONDED = {**WIRED, "bonded": True}
NEAR_AND_FAR = {
    "near_a": [1, "core-a"],
    "far_a": [2, "core-a"],
    "near_b": [1, "core-b"],
    "far_b": [2, "core-b"],
}
TO_HOP = [{"from": 1, "to": "hop", "delay_s": 0.02}, {"from": 2, "to": "hop"}]
SHARED = [
    {"from": [1, 2], "to": "near", "rate_bit_s": 10 * RATE},
    {"from": [3, 4], "to": "far", "rate_bit_s": 10 * RATE},
    {"from": "near", "to": "far", "rate_bit_s": 2 * RATE},
]
NETWORKS = {
    **PATHS,
    "slow": SLOW,
    "bounded": {**PATHS["switch"], "links": TO_SWITCH},
    "one": {**WIRED, "hubs": {"wire": [1, 2, 3]}},
    "mesh": {**MESH, "switches": {"core": 1500}},
    "routed": {**MESH, "routers": {"core": 1500}},
    "two": {**BONDED, "hubs": {"a": [1, 2], "b": [1, 2]}},
    "switched": {**BONDED, "switches": {"core-a": 1500, "core-b": 1500}, "hubs": NEAR_AND_FAR},
    "long": {**SLOW, "links": [{"from": 1, "to": 2, "delay_s": 0.02}]},
    "long routed": {**SLOW, "routers": {"hop": 9000}, "links": TO_HOP},
    "shared": {"mtu": 1500, "switches": {"near": 1500, "far": 1500}, "links": SHARED},
}


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """The programs, built from their sources."""
    folder = tmp_path_factory.mktemp("built")
    carriers = build(folder, "shared_wire", "channel_bond", "delay_line")
    return {**carriers, "token": str(compiled("token", "cc", folder))}


@pytest.fixture(scope="module")
def testbed(tools):
    """The testbed with the published paths and those that are slow enough for a busy machine."""
    with emulated.open_testbed({**ON_PATHS, "tools": tools}, NETWORKS) as opened:
        yield opened


def ping(testbed, path, size, sender=1, receiver=2, **point):
    """What ping says of one echo that no router may cut in pieces, carrying `size` bytes."""
    argv = ("ping", "-M", "do", "-c", "1", "-W", "0.3", "-s", str(size), f"{{node{receiver}}}")
    (execution,) = run(testbed, Command(argv, node=sender), path=path, **point).executions
    return execution.stdout + execution.stderr


def answered(testbed, path, size, said, **point):
    """Whether ping says so: of one echo, or of a later one where another machine had ours while it
    was waited for.
    """
    told = repeated(lambda: ping(testbed, path, size, **point), lambda told: re.search(said, told))
    return re.search(said, told[-1])


CARRIED, LOST = "1 received", "0 received"


@pytest.mark.parametrize(
    ("path", "largest"), [("crossover", 8972), ("router", 8972), ("switch_8996", 8954)]
)
def test_a_path_carries_its_largest_echo_and_no_larger_one(testbed, path, largest):
    """Both ways; ICMP has 8 bytes, IP 20: 8954 is a frame of 8996 bytes, the limit of the path so
    named.
    """
    assert answered(testbed, path, largest, CARRIED, mtu=9000)
    assert answered(testbed, path, largest, CARRIED, sender=2, receiver=1, mtu=9000)
    assert LOST in ping(testbed, path, largest + 1, mtu=9000)


def test_a_switch_drops_in_silence_a_sender_and_a_router_do_not(testbed):
    """Nobody tells of the frame that the switch drops; the sender's own kernel and the router tell
    what is too large.
    """
    silent = ping(testbed, "switch_8996", 8955, mtu=9000)
    assert LOST in silent and "rror" not in silent and "oo long" not in silent
    assert "message too long" in ping(testbed, "switch_8996", 8955, mtu=8982)
    assert answered(testbed, "router_1500", 1472, "ttl=63", mtu=9000)
    assert answered(testbed, "router_1500", 1473, r"Frag needed.*mtu = 1500", mtu=9000)


def iperf3(testbed, path, sender=1, receiver=2, omit="0", **point):
    """Goodput [bit/s] of a second by iperf3 after `omit` seconds, its report, and the
    transcript.
    """
    server = ("iperf3", "--server", "--one-off")
    client = ("iperf3", "--client", f"{{node{receiver}}}", "--json", "--time", "1", "--omit", omit)
    listens = Command(server, node=receiver, background=True, listens=5201)
    transcript = run(testbed, listens, Command(client, node=sender), path=path, **point)
    end = json.loads(transcript.executions[-1].stdout)["end"]
    return end["sum_received"]["bits_per_second"], end, transcript


@alone
@pytest.mark.parametrize(("mtu", "control"), [(1500, "reno"), (9000, "cubic")])
def test_a_link_carries_what_its_wire_does(testbed, mtu, control):
    """TCP with timestamps has 52 bytes of headers in the MTU, Ethernet 38 beyond it; each trial has
    its own control.
    """

    def share() -> float:
        asked = {"mtu": mtu, "congestion_control": control}
        goodput, end, transcript = iperf3(testbed, "slow", omit="1", **asked)
        assert mismatch(transcript.requested, transcript.effective) == []
        assert end["sender_tcp_congestion"] == end["receiver_tcp_congestion"] == control
        return goodput / (50e6 * (mtu - 52) / (mtu + 38))

    assert 0.97 <= repeated(share, lambda share: 0.97 <= share <= 1.005)[-1] <= 1.005


@alone
def test_rates_are_by_direction(testbed):
    """What comes to node 2 passes its slow way back from the switch; what it sends itself is not
    slowed down.
    """

    def back() -> float:
        return iperf3(testbed, "bounded", sender=2, receiver=1)[0]

    slow, _, _ = iperf3(testbed, "bounded")
    assert slow < 20e6 < repeated(back, lambda fast: fast > 20e6)[-1]


def test_a_window_beyond_the_machines_limit_is_a_mismatch(testbed):
    """The kernel cuts it down without a word; the trial says so."""
    limit = testbed.provenance()["largest_window_bytes"]
    for window, complaints in ((limit, 0), (limit + 1, 1)):
        transcript = run(testbed, "true", path="slow", window_bytes=window)
        found = mismatch(transcript.requested, transcript.effective)
        assert [complaint.split()[0] for complaint in found] == ["window_bytes"] * complaints


@alone
def test_receive_work_is_the_receivers(testbed):
    """Without a program of its own, node 2 answers pings in the threads that receive for it, and is
    charged.
    """
    threads = testbed.use("crossover").threads
    if not threads or not all(threads.values()):
        pytest.skip("this kernel receives in nobody's name: no threaded NAPI")

    def share() -> float:
        flood = "ping -f -c 500 -q {node2}".split()
        counters = run(testbed, *flood, path="crossover").counters
        parts = ("network_cpu_time", "baseline_cpu_time", "unattributed_cpu_time")
        known = sum(counters["cpu_time"]) + sum(counters[part] for part in parts)
        assert known == pytest.approx(counters["host_cpu_time"]) and known >= 0
        return counters["cpu_time"][1] / counters["cpu_time"][0]

    assert repeated(share, lambda share: share > 0.2)[-1] > 0.2


def test_a_path_that_nobody_described_or_that_is_no_graph_is_refused(testbed):
    """As the trial's fault, with those that there are; or before anything is made, by its name."""
    strange = Trial("t", "point", "none", 1, 1, {"path": "tin cans"})
    fault = testbed.run(strange, [Command(("true",))]).fault
    assert "'tin cans' is unknown; there are crossover" in fault
    broken = {"broken": {"name": "a broken one", "links": [{"from": 1, "to": "nowhere"}]}}
    with pytest.raises(FalloffError, match="path a broken one: .* nowhere"):
        with emulated.open_testbed(ON_PATHS, broken):
            pass


# The programs that carry frames.
@alone
def test_all_on_one_wire_have_it_together(testbed):
    """One sender, two, and two nodes to each other: never faster than the wire, nearly as fast, and
    in turns. A single frame too and small ones, which fill 84 bytes on the wire: no burst passes in
    no time."""
    with sockets(testbed, "one") as opened:
        for flows in ([(1, 3)], [(1, 3), (2, 3)], [(1, 2), (2, 1)]):
            wire_s = 60 * FRAME_S
            assert 1 <= best(opened, flows, 60 // len(flows), below=1.15 * wire_s) / wire_s < 1.15
        _, senders = passed(opened, [(1, 3), (2, 3)], 40)
        assert 15 <= senders[:40].count(1) <= 25
        assert 1 <= best(opened, [(1, 3)], 1, below=2 * FRAME_S) / FRAME_S < 2
        assert best(opened, [(1, 3)], 100, payload=4) >= 100 * 84 * 8 / RATE


@alone
@pytest.mark.parametrize("path", ["mesh", "routed"])
def test_what_lies_between_two_wires_stores_and_forwards(testbed, path):
    """A frame over both takes its time twice, several overlap, and counters show which way they
    took.
    """
    with sockets(testbed, path) as opened:
        near = best(opened, [(1, 2)], 1, below=2 * FRAME_S)
        assert near < 2 * FRAME_S <= best(opened, [(1, 3)], 1)
        assert 21 <= best(opened, [(1, 3)], 20, below=30 * FRAME_S) / FRAME_S < 30
    echoes = ["ping", "-c", "10", "-i", "0.02", "-s", "1000", "-q"]
    left, right, core = run(testbed, *echoes, "{node2}", path=path).counters["bytes_through"]
    assert left > 20_000 and max(right, core) < 1000
    assert min(run(testbed, *echoes, "{node3}", path=path).counters["bytes_through"]) > 20_000


@pytest.mark.parametrize("path", ["two", "switched"])
def test_frames_use_both_bonded_wires_alike_and_arrive_once(testbed, path):
    """What the wires, and the switches, carried of 40 frames each way differs by less than a
    tenth.
    """
    with sockets(testbed, path) as opened:
        before = testbed.net.byte_counts()
        passed(opened, [(1, 2), (2, 1)], 40)
        carried = testbed.net.bytes_between(before, testbed.net.byte_counts())["bytes_through"]
        assert min(carried) > 40 * 1500 and max(carried) / min(carried) < 1.1
        opened[2].settimeout(0.05)
        with pytest.raises(TimeoutError):
            opened[2].recvfrom(2048)


@pytest.mark.parametrize("path", ["long", "long routed"])
def test_a_round_trip_takes_both_delays_and_little_more(testbed, path):
    """Never less than twice the delay of one way, the best of five not half as much again; the data
    come back whole.
    """
    output = text(run(testbed, *"ping -c 5 -i 0.05 -p c3a5 -q {node2}".split(), path=path))
    assert 40 <= float(re.search(r"= ([\d.]+)/", output)[1]) < 60 and "wrong data" not in output


# Token exchange: two pairs whose producers share one link to the other switch, 1 and 2 with 3 and
# 4.
POINT = {
    "path": "shared",
    "pairs": 2,
    "producers": "1,2",
    "consumers": "3,4",
    "token_bytes": 8192,
    "runs": 2,
    "warm_up_s": 0.2,
    "window_s": 0.5,
}


def exchanged(testbed, commands):
    """A trial's transcript and the judgement of it."""
    transcript = run(testbed, *commands, runner="token_exchange", **POINT)
    return transcript, judge(transcript, token_exchange.TOOL.parse)


@alone
def test_the_sum_of_the_pairs_stays_within_the_wire(testbed):
    """Of what they share; both pairs take part, and all that is counted was carried by their
    interfaces.
    """
    share = 2 * RATE / 8

    def takes_part(ran) -> bool:
        return (
            ran[1].status == "ok"
            and min(map(min, ran[1].readings["token_throughput"])) > 0.1 * share
        )

    commands = token_exchange.commands(POINT)
    transcript, outcome = repeated(lambda: exchanged(testbed, commands), takes_part)[-1]
    assert outcome.status == "ok", outcome.reason
    throughput, exchanges = (
        outcome.readings[f"token_{name}"] for name in ("throughput", "exchanges")
    )
    # An exchange of each pair may have been under way when the window began.
    begun = 2 * POINT["token_bytes"] / POINT["window_s"]
    for together in zip(*throughput):
        assert sum(together) - begun < share and min(together) > 0.1 * share
    for sent, own in zip(transcript.counters["bytes_sent"], exchanges):
        assert sent > sum(own) * POINT["token_bytes"]


@pytest.mark.parametrize("end", [0, 2], ids=["consumer", "producer"])
def test_an_end_killed_in_mid_run_is_a_failed_trial_with_no_orphan(testbed, tools, end):
    """The death of one end of pair 1 after half a second fails the trial, with the signal; nothing
    of it runs on.
    """
    commands = token_exchange.commands(POINT)
    killed = commands[end]
    mortal = ("timeout", "-s", "KILL", "0.5", tools["token"], *killed.argv[1:])
    commands[end] = Command(mortal, node=killed.node, background=True, listens=killed.listens)
    lost = "token: the producer of pair 1 ended before the measurement did\n"
    ran = repeated(
        lambda: exchanged(testbed, commands), lambda ran: ran[0].executions[-1].stderr == lost
    )
    transcript, outcome = ran[-1]
    assert outcome.status == "failed" and "exit code -9" in outcome.reason and not outcome.readings
    assert transcript.executions[-1].stderr == lost
    assert not netns.processes([testbed.net.space(f"n{n}") for n in testbed.net.graph.nodes])
