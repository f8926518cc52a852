"""The switch with a buffer, as the program that it is: what one burst loses, to the frame, and what
marks and pauses do.
"""

import re
import socket
import struct
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from wired import build, needs_network, run, text

from analysis import planning
from runners.records.record import Command, FalloffError, Trial, mismatch
from runners.testbeds import buffered, netns, programs
from runners.testbeds.emulated import open_testbed
from runners.testbeds.graph import Buffer
from runners.tools import incast

pytestmark = needs_network

LENGTH = 1000  # B of a test frame as an interface hands it over
SIZE = LENGTH + 4  # B that it takes in the buffer
SLOW = 0.5e6  # bit/s: such a frame is on the wire for 16 ms, longer than this machine is late
ADDRESS = "02:00:00:00:00:{:02x}"
IP = 0x0800


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """The switch and the program that fetches blocks, built from their sources."""
    return build(tmp_path_factory.mktemp("built"), "buffered_switch", "incast")


class Bench:
    """A switch between nodes n1, n2 ... with links of these rates [bit/s]; n1 receives."""

    def __init__(self, program: str, folder: Path, buffer: Buffer, rates):
        self.spaces = [folder / f"n{number}" for number in range(1, 1 + len(rates))]
        self.report = folder / "report"
        netns.create(*self.spaces)
        ports = [
            (space / "net", f"tap{number}", ADDRESS.format(number), rate)
            for number, (space, rate) in enumerate(zip(self.spaces, rates), start=1)
        ]
        words = buffered.words(self.report, buffer, ports)
        self.program = programs.start("switch", [program, *words], folder, {})
        self.sockets = [self._socket(space, port[1]) for space, port in zip(self.spaces, ports)]
        buffered.ask(self.program, self.report)

    def _socket(self, space: Path, interface: str) -> socket.socket:
        with netns.entered(space):
            assert programs.becomes(
                self.program, lambda: interface in Path("/proc/thread-self/net/dev").read_text()
            ), self.program.complaints
            Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1")
            netns.run([netns.batch("ip", space, [f"link set {interface} up"])])
            opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0003))
            opened.bind((interface, 0))
        opened.settimeout(1)
        return opened

    def burst(self, count: int, senders=(2,), protocol=0x88B5, payload=b"") -> None:
        """Each of these nodes sends frames to n1, all at once."""
        for _ in range(count):
            for sender in senders:
                head = _hardware(1) + _hardware(sender) + struct.pack("!H", protocol)
                self.sockets[sender - 1].send((head + payload).ljust(LENGTH, b"\0"))

    def received(self, count: int) -> list:
        """What n1 gets: this many frames."""
        frames = []
        while len(frames) < count:
            frame = self.sockets[0].recv(2048)
            if frame[:6] == _hardware(1):
                frames.append(frame)
        return frames

    def port(self) -> buffered.Port:
        """What the switch has counted for n1, when its queue is empty."""
        return self.ask().ports[0]

    def ask(self) -> buffered.Report:
        """What the switch has counted."""
        return buffered.ask(self.program, self.report)


def _hardware(node: int) -> bytes:
    return bytes.fromhex(ADDRESS.format(node).replace(":", ""))


@pytest.fixture
def bench(tools, tmp_path):
    """Make benches, which are taken down again."""
    with ExitStack() as stack:

        def make(buffer, *rates):
            folder = tmp_path / f"b{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            stack.callback(netns.release, folder)
            made = Bench(tools["buffered_switch"], folder, buffer, rates)
            stack.callback(lambda: [one.close() for one in made.sockets])
            stack.callback(programs.end, made.program)
            return made

        yield make


@pytest.mark.parametrize("held", [5, 10])
def test_a_burst_loses_what_does_not_fit(bench, held):
    """A link twice as fast as the port: when `count` frames have come in, (count - 1) / 2 have
    left, and `held` wait.
    """
    count = 31
    made = bench(Buffer(held * SIZE), SLOW, 2 * SLOW)
    made.burst(count)
    carried = held + (count - 1) // 2
    assert len(made.received(carried)) == carried
    port = made.port()
    assert (port.frames, port.drops) == (carried, count - carried)
    assert port.most_queued == held * SIZE and port.marks == port.pauses == 0


def test_two_senders_lose_the_excess_of_their_sum(bench):
    """Two links as fast as the port: it carries one of their two frames, and the buffer takes the
    rest until it is full.
    """
    count, held = 25, 8
    made = bench(Buffer(held * SIZE), SLOW, SLOW, SLOW)
    made.burst(count, senders=(2, 3))
    carried = held + count - 1
    made.received(carried)
    port = made.port()
    assert (port.frames, port.drops) == (carried, 2 * count - carried)
    assert made.port().drops == 0  # counted anew


def test_a_burst_that_fits_loses_nothing_and_takes_its_time(bench):
    """The last of `count` frames has left after all of them have been on the wire, and the delay is
    added once.
    """
    count, delay = 10, 0.3
    made = bench(Buffer(1 << 20, delay_s=delay), SLOW, 2 * SLOW)
    begin = time.monotonic()
    made.burst(count)
    made.received(count)
    on_wire = 8 * (LENGTH + 24) / SLOW
    least = on_wire / 2 + count * on_wire + delay
    assert least <= time.monotonic() - begin < least + 0.2
    assert made.port().drops == 0


def test_a_shared_memory_stops_at_its_threshold(bench):
    """With the factor 1 one busy port may hold half of the memory, with 3 three quarters of it."""
    for alpha, held in ((1, 10), (3, 15)):
        made = bench(Buffer(20 * SIZE, alpha=alpha), SLOW, 4 * SLOW)
        made.burst(40)
        made.received(held)
        assert made.port().most_queued == held * SIZE


def test_paused_senders_lose_nothing(bench):
    """Each has one frame on the wire at most when it is paused."""
    count, senders, held = 20, (2, 3, 4), 20
    made = bench(
        Buffer(held * SIZE, pause_bytes=held * SIZE // 2), SLOW, *(4 * SLOW for _ in senders)
    )
    made.burst(count, senders)
    made.received(count * len(senders))
    report = made.ask()
    assert report.ports[0].drops == 0
    assert held / 2 < report.ports[0].most_queued / SIZE <= held / 2 + len(senders)
    assert all(port.pauses > 0 and port.paused_s > 0 for port in report.ports[1:])


def test_marks_begin_at_their_threshold_and_keep_the_checksum(bench):
    """Frame number i of a burst at twice the port's rate finds i / 2 frames, rounded up; who is not
    ECN-capable gets no mark.
    """
    count, least = 20, 5
    for sort, marked in (
        (0b10, sum((number + 1) // 2 >= least for number in range(count))),
        (0b00, 0),
    ):
        made = bench(Buffer(1 << 20, mark_bytes=least * SIZE), SLOW, 2 * SLOW)
        header = bytearray(
            struct.pack("!BBHHHBBH4s4s", 0x45, sort, LENGTH - 14, 7, 0, 64, 6, 0, b"abcd", b"efgh")
        )
        header[10:12] = struct.pack("!H", _checksum(header))
        made.burst(count, protocol=IP, payload=bytes(header))
        frames = made.received(count)
        assert sum(frame[15] & 3 == 3 for frame in frames) == made.port().marks == marked
        assert all(_checksum(frame[14:34]) == 0 for frame in frames)


def _checksum(header: bytes) -> int:
    """The Internet checksum of a header (RFC 1071), 0 if it holds its own."""
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


PLAN = planning.plan_campaign("incast")
POINT = {
    **{
        "interconnect": "gige",
        "senders": 3,
        "block_bytes": 65536,
        "blocks_fetched": 3,
        "fetch_s": 5,
    },
    **{"timeout_s": 60, "buffer_bytes": 16384, "rto_min_s": 0.001, "loss_recovery": "acks"},
}


@pytest.fixture
def testbed(tools):
    """Four nodes of the model."""
    with open_testbed({**PLAN.testbed, "nodes": 4, "tools": tools}, PLAN.interconnects) as opened:
        yield opened


def test_blocks_through_the_switch(testbed):
    """All settings are found, frames are counted where they passed, and senders repeat about what
    the switch dropped.
    """
    transcript = run(testbed, *incast.commands(POINT), runner="incast", **POINT)
    wrong = mismatch(transcript.requested, transcript.effective)
    assert not [one for one in wrong if not one.startswith("switch ")]  # a busy machine may be late
    assert transcript.effective["rto_min_ms"] == 10 and transcript.effective["tcp_recovery"] == 0
    found = incast.parse(transcript)
    counters = transcript.counters
    payload = 3 * 65536 * 4  # the first block is not counted in the goodput
    assert counters["port_frames"][0] >= payload / 1448
    assert counters["port_most_queued"][0] <= 16384
    assert 0 < counters["port_drops"][0] and sum(found["retransmitted"][1:]) > 0
    assert len(found["block_time"]) == 3 and found["goodput"] < 100e6


def test_marks_replace_drops_where_both_ends_understand_them(testbed):
    """With marks from a quarter of a large buffer on nothing is dropped; the same switch without
    them drops.
    """
    asked = {**POINT, "buffer_bytes": 131072, "block_bytes": 262144}
    counted = []
    for mark in (0, 15000):
        point = {**asked, "mark_bytes": mark}
        counted.append(run(testbed, *incast.commands(point), **point).counters)
    plain, marked = counted
    assert sum(plain["port_marks"]) == 0 < marked["port_marks"][0]
    assert marked["port_drops"][0] < plain["port_drops"][0]
    assert marked["port_most_queued"][0] <= plain["port_most_queued"][0]


def test_a_networks_latency_passes_in_the_switch(tools):
    """What this machine lacks to it, slowed, beside the switch's own delay; echoes take it both
    ways.
    """
    node = {"dilation": 100, "machine_message_s": 200e-6}
    networks = {"gige": {**PLAN.interconnects["gige"], "latency_s": 50e-6}}
    described = {**PLAN.testbed, "nodes": 2, "node": node, "tools": tools}
    echo = Command(("ping", "-q", "-c", "10", "-i", "0.02", "{node2}"), node=1)
    with open_testbed(described, networks) as opened:
        transcript = run(opened, echo, interconnect="gige", buffer_bytes=65536)
    assert transcript.effective["switch_delay_s"] == pytest.approx(100 * 50e-6 - 200e-6 + 200e-6)
    fastest = float(re.search(r"= ([\d.]+)/", text(transcript))[1])  # [ms]
    assert 10 < fastest < 20


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"flow_control": "pause"}, "flow_control needs a switch"),
        ({"mark_bytes": 9}, "mark_bytes needs"),
    ],
)
def test_what_needs_a_buffer_is_refused_without(testbed, asked, said):
    """As the trial's fault, in a line."""
    point = {"interconnect": "gige", **asked}
    assert said in testbed.run(Trial("t", "point", "none", 1, 1, point), []).fault


def test_free_bytes_take_no_time_and_frames_cut_through(bench):
    """The last of a burst arrives when the wire has carried the others' bytes beyond the free ones
    and its own: one link's time, not two. A frame of free bytes alone arrives at once.
    """
    free, burst = LENGTH // 2, 10
    made = bench(Buffer(1 << 20, free_bytes=free), SLOW, SLOW)
    begun = time.monotonic()
    made.burst(burst)
    made.received(burst)
    wire_s = 8 * (LENGTH - free) * burst / SLOW
    assert time.monotonic() - begun == pytest.approx(wire_s, rel=0.1)
    small = bench(Buffer(1 << 20, free_bytes=LENGTH), SLOW, SLOW)
    begun = time.monotonic()
    small.burst(1)
    small.received(1)
    assert time.monotonic() - begun < 8 * LENGTH / SLOW / 2


def test_a_report_that_is_cut_is_refused():
    """Every line of it is needed."""
    whole = (
        "buffered_switch: 2 ports, buffer 9 alpha 0 pause 0 mark 0 delay 0.0 free 0\n1 1000 1 2 0 "
        "0 0 4 0 0.0\n"
    )
    whole += "2 1000 1 2 0 0 0 4 0 0.0\nlate 2 0.000001 0.1\nend of buffered_switch\n"
    report = buffered.read(whole)
    assert report.ports[0].most_queued == 4 and report.settings(1500)["switch"] == buffered.KEPT
    late = buffered.read(whole.replace("0.000001", "99"))
    assert "late" in late.settings(1500)["switch"]
    for cut in range(5):
        with pytest.raises(FalloffError):
            buffered.read("\n".join(whole.splitlines()[:cut]))
