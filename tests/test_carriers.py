"""The programs that carry frames, for real: a shared wire, a delay line, and a bond of two wires."""

import random
import re
import socket
import subprocess
import threading

import pytest
from undisturbed import alone
from wired import DESCRIPTION, FRAME_S, RATE, best, build, needs_network, passed, run, sockets

from runners.testbeds import emulated, netns
from runners.testbeds.graph import address

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
NETWORKS = {
    "one": {**WIRED, "hubs": {"wire": [1, 2, 3]}},
    "mesh": {**MESH, "switches": {"core": 1500}},
    "routed": {**MESH, "routers": {"core": 1500}},
    "two": {**BONDED, "hubs": {"a": [1, 2], "b": [1, 2]}},
    "switched": {**BONDED, "switches": {"core-a": 1500, "core-b": 1500}, "hubs": NEAR_AND_FAR},
    "long": {"mtu": 1500, "rate_bit_s": 50e6, "links": [{"from": 1, "to": 2, "delay_s": 0.02}]},
    "long routed": {"mtu": 1500, "rate_bit_s": 50e6, "routers": {"hop": 9000}, "links": TO_HOP},
}


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """The programs, built from their sources."""
    return build(tmp_path_factory.mktemp("built"), "shared_wire", "channel_bond", "delay_line")


@pytest.fixture(scope="module")
def testbed(tools):
    """The testbed with all of these networks."""
    description = {**DESCRIPTION, "cpu": {"baseline_s": 0.02}, "tools": tools}
    with emulated.open_testbed(description, NETWORKS) as opened:
        yield opened


@alone
@needs_network
def test_all_senders_and_both_ways_have_one_wire_together(testbed):
    """One sender, two, and two nodes to each other: never faster than the wire, and nearly as fast."""
    with sockets(testbed, "one") as opened:
        for flows in ([(1, 3)], [(1, 3), (2, 3)], [(1, 2), (2, 1)]):
            wire_s = 60 * FRAME_S
            assert 1 <= best(opened, flows, 60 // len(flows), below=1.15 * wire_s) / wire_s < 1.15
        _, senders = passed(opened, [(1, 3), (2, 3)], 40)
        assert 15 <= senders[:40].count(1) <= 25  # stations take turns


@alone
@needs_network
def test_each_frame_takes_its_own_time(testbed):
    """A single frame too, and small ones, which fill 84 bytes on the wire: no burst passes in no time."""
    with sockets(testbed, "one") as opened:
        assert 1 <= best(opened, [(1, 3)], 1, below=2 * FRAME_S) / FRAME_S < 2
        assert best(opened, [(1, 3)], 100, payload=4) >= 100 * 84 * 8 / RATE


@alone
@needs_network
@pytest.mark.parametrize("path", ["mesh", "routed"])
def test_what_lies_between_two_wires_stores_and_forwards(testbed, path):
    """A frame over both takes its time twice, several overlap, and counters show which way they took."""
    with sockets(testbed, path) as opened:
        assert (
            best(opened, [(1, 2)], 1, below=2 * FRAME_S) < 2 * FRAME_S <= best(opened, [(1, 3)], 1)
        )
        assert 21 <= best(opened, [(1, 3)], 20, below=30 * FRAME_S) / FRAME_S < 30
    echoes = ["ping", "-c", "10", "-i", "0.02", "-s", "1000", "-q"]
    left, right, core = run(testbed, path, *echoes, "{node2}").counters["bytes_through"]
    assert left > 20_000 and max(right, core) < 1000
    assert min(run(testbed, path, *echoes, "{node3}").counters["bytes_through"]) > 20_000


@needs_network
@pytest.mark.parametrize("path", ["two", "switched"])
def test_frames_use_both_bonded_wires_alike_and_arrive_once(testbed, path):
    """What the wires, and the switches, carried of 40 frames each way differs by less than a tenth."""
    with sockets(testbed, path) as opened:
        before = testbed.net.byte_counts()
        passed(opened, [(1, 2), (2, 1)], 40)
        carried = testbed.net.bytes_between(before, testbed.net.byte_counts())["bytes_through"]
        assert min(carried) > 40 * 1500 and max(carried) / min(carried) < 1.1
        opened[2].settimeout(0.05)
        with pytest.raises(TimeoutError):
            opened[2].recvfrom(2048)


@needs_network
@pytest.mark.parametrize("path", ["long", "long routed"])
def test_a_round_trip_takes_both_delays_and_little_more(testbed, path):
    """Never less than twice the delay of one way; the best of five not half as much again, however busy it is."""
    output = run(testbed, path, *"ping -c 5 -i 0.05 -q {node2}".split()).executions[0].stdout
    assert 40 <= float(re.search(r"= ([\d.]+)/", output)[1]) < 60


@needs_network
@pytest.mark.parametrize("path", ["two", "long"])
def test_data_arrive_whole(testbed, path):
    """A quarter of a megabyte by TCP, be frames late or overtaken: what is received is what was sent."""
    data = random.Random(5).randbytes(250_000)
    run(testbed, path, "true")  # it configures the path
    with netns.entered(testbed.net.space("n2")):
        server = socket.create_server((address(2), 5302))
    with netns.entered(testbed.net.space("n1")):
        client = socket.socket()
    with server, client:
        client.settimeout(5)
        client.connect((address(2), 5302))
        sender = threading.Thread(
            target=lambda: (client.sendall(data), client.shutdown(socket.SHUT_WR))
        )
        with server.accept()[0] as peer:
            peer.settimeout(5)
            sender.start()
            received = b"".join(iter(lambda: peer.recv(65536), b""))
            sender.join()
    assert received == data


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("shared_wire", []),
        ("shared_wire", ["fast", "n", "a", "n", "b"]),
        ("shared_wire", ["0", "n", "a", "n", "b"]),
        ("channel_bond", ["net", "bond", "wire"]),
        ("channel_bond", ["net", "bond", *"abcdefghi"]),
        ("delay_line", ["a", "b", "c", "d"]),
        ("delay_line", ["a", "b", "c", "d", "-1"]),
        ("delay_line", ["a", "b", "c", "d", "nan"]),
    ],
)
def test_words_that_mean_nothing_are_refused(tools, program, words):
    """Exit code 2 and the usage, before any interface is made."""
    done = subprocess.run([tools[program], *words], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("usage:")
