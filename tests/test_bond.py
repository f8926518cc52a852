"""Channel bonding: frames leave over two wires in turn, and what is sent arrives whole and once."""

import random
import socket
import subprocess
import threading

import pytest
from undisturbed import alone
from wired import FRAME_S, RATE, best, build, needs_network, passed, sockets, opened_testbed

from analysis.capacity import limits, way
from analysis.paths import PATHS
from experiment import read_toml
from runners.record import FalloffError
from runners.testbeds import netns
from runners.testbeds.graph import address, graph

TWO = {"name": "two wires", "mtu": 1500, "rate_bit_s": RATE, "bonded": True, "hubs": {"a": [1, 2], "b": [1, 2]}}
SWITCHED = {
    **TWO,
    "switches": {"core-a": 1500, "core-b": 1500},
    "hubs": {"near_a": [1, "core-a"], "far_a": [2, "core-a"], "near_b": [1, "core-b"], "far_b": [2, "core-b"]},
}
KNOWN_PATHS = read_toml(PATHS, "paths")


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """The shared wire and the bond, built from their sources."""
    return build(tmp_path_factory.mktemp("built"), "shared_wire", "channel_bond")


@pytest.fixture(scope="module")
def testbed(tools):
    """The testbed with two nodes on two wires, and with a switch in each."""
    with opened_testbed(tools, {"two": TWO, "switched": SWITCHED}) as opened:
        yield opened


@needs_network
@pytest.mark.parametrize("path", ["two", "switched"])
def test_frames_use_both_wires_alike(testbed, path):
    """What the wires, and the switches, carried of 40 frames each way differs by less than a tenth."""
    with sockets(testbed, path) as opened:
        before = testbed.net.byte_counts()
        passed(opened, [(1, 2), (2, 1)], 40)
        carried = testbed.net.bytes_between(before, testbed.net.byte_counts())["bytes_through"]
        assert min(carried) > 40 * 1500 and max(carried) / min(carried) < 1.1


@alone
@needs_network
def test_two_wires_carry_more_than_one_and_no_more_than_two(testbed):
    """60 frames take at least the time of 30, and less than three quarters of the time of 60."""
    with sockets(testbed, "two") as opened:
        one_wire_s = 60 * FRAME_S
        assert 0.5 <= best(opened, [(1, 2)], 60, below=0.75 * one_wire_s) / one_wire_s < 0.75


@needs_network
def test_a_frame_arrives_once(testbed):
    """Not by the bond and by its wire: after as many as were sent there is no other."""
    with sockets(testbed, "two") as opened:
        passed(opened, [(1, 2)], 20)
        opened[2].settimeout(0.05)
        with pytest.raises(TimeoutError):
            opened[2].recvfrom(2048)


@needs_network
def test_data_arrive_whole(testbed):
    """A quarter of a megabyte by TCP, whose frames overtake each other: what is received is what was sent."""
    data = random.Random(5).randbytes(250_000)
    with sockets(testbed, "two"):  # nothing but the path
        spaces = [testbed.net.space(f"n{node}") for node in (1, 2)]
        with netns.entered(spaces[1]):
            server = socket.create_server((address(2), 5302))
        with netns.entered(spaces[0]):
            client = socket.socket()
        with server, client:
            client.settimeout(5)
            client.connect((address(2), 5302))
            sender = threading.Thread(target=lambda: (client.sendall(data), client.shutdown(socket.SHUT_WR)))
            with server.accept()[0] as peer:
                peer.settimeout(5)
                sender.start()
                received = b"".join(iter(lambda: peer.recv(65536), b""))
                sender.join()
    assert received == data


@pytest.mark.parametrize("words", [[], ["net", "bond", "wire"], ["net", "bond", *"abcdefghi"]])
def test_it_refuses_what_is_no_bond(tools, words):
    """Exit code 2 and the usage, before any interface is made."""
    done = subprocess.run([tools["channel_bond"], *words], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("usage:")


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"hubs": {"a": [1, 2, 3], "b": [1, 2]}}, "there is a single link to bond at n3"),
        ({"hubs": {"a": [1, 2, "hop"], "b": [1, 2]}, "routers": {"hop": 1500}}, "cannot use the router hop"),
    ],
)
def test_what_cannot_be_bonded_is_refused(wrong, complaint):
    """Each fault in words, with the path that has it."""
    with pytest.raises(FalloffError, match=f"path planted: .*{complaint}"):
        graph({**TWO, "name": "planted", **wrong})


@pytest.mark.parametrize("rate", ["10m", "100m"])
def test_bonded_wires_are_as_fast_as_both_together(rate):
    """A flow has the rates of its two wires together; where all share them, two flows have no more than that."""
    for kind in ("bonded", "bonded_shared", "bonded_switch"):
        path = KNOWN_PATHS[f"{kind}_{rate}"]
        assert way(path, 1, 8).rate == 2 * path["rate_bit_s"]
    shared, single = KNOWN_PATHS[f"bonded_shared_{rate}"], KNOWN_PATHS[f"shared_wire_{rate}"]
    flows = [(1, 8), (2, 9)]
    assert limits(shared, flows).shared == 2 * limits(single, flows).shared
