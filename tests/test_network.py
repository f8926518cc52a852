"""What every emulated network promises, be it a star, rails, a routed or a long path, a hub or a
bond: for real.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from undisturbed import within
from wired import EMULATED, INTERCONNECTS, ON_PATHS, RATE, ROOT, build, needs_network, run, text

from analysis import planning, running
from runners.records.record import Command, FalloffError, mismatch
from runners.testbeds import lease, netns, network
from runners.testbeds.emulated import open_testbed
from runners.testbeds.graph import address

pytestmark = needs_network

THREE = {**EMULATED, "nodes": 3}
LINE = [{"from": 1, "to": 2, "delay_s": 0.002}, {"from": 3, "to": 2}]


@dataclass(frozen=True)
class Kind:
    """A kind of network: its testbed, the table of it, and which devices what node 1 sends to node
    2 passes.
    """

    description: dict
    table: dict
    passed: list = field(default_factory=list)

    @property
    def point(self) -> dict:
        """What a trial asks for."""
        is_star = "links" not in self.table and "hubs" not in self.table
        return {"interconnect" if is_star else "path": "it"}


SLOW = {"mtu": 1500, "rate_bit_s": RATE}
ROUTED = {"routers": {"hop": 9000}, "links": [{"from": [1, 2, 3], "to": "hop"}]}
TWO_WIRES = {"a": [1, 2, 3], "b": [1, 2, 3]}
KINDS = {
    "star": Kind(THREE, {**INTERCONNECTS["gige"], "largest_packet_bytes": 3100}, [True]),
    "rails": Kind({**THREE, "rails": 2}, INTERCONNECTS["10gige"], [True, False]),
    "routed": Kind(ON_PATHS, {"mtu": 1500, "rate_bit_s": 1e9, **ROUTED}, [True]),
    "long": Kind(ON_PATHS, {**SLOW, "links": LINE}),
    "hub": Kind(ON_PATHS, {**SLOW, "hubs": {"wire": [1, 2, 3]}}, [True]),
    "bonded": Kind(ON_PATHS, {**SLOW, "bonded": True, "hubs": TWO_WIRES}, [True, True]),
}


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """The programs that carry frames, built from their sources."""
    return build(tmp_path_factory.mktemp("built"), "delay_line", "shared_wire", "channel_bond")


@pytest.fixture(scope="module", params=KINDS)
def kind(request, tools):
    """Each kind of network in turn, with its programs."""
    chosen = KINDS[request.param]
    return replace(chosen, description={**chosen.description, "tools": tools})


@pytest.fixture(scope="module")
def testbed(kind):
    """The testbed that has it."""
    with open_testbed(kind.description, {"it": kind.table}) as opened:
        yield opened


def echoes(testbed, kind, node, other, size=56, count=1):
    """What was counted of echoes between two nodes, none of which was lost in one of three runs.

    On a machine that ran other tests meanwhile one echo of thousands was lost.
    """
    words = f"ping -q -c {count} -i 0.01 -W 2 -s {size} {{node{other}}}".split()
    for _ in range(3):
        transcript = run(testbed, Command(tuple(words), node=node), **kind.point)
        if " 0% packet loss" in text(transcript):
            break
    assert " 0% packet loss" in text(transcript)
    return transcript.counters


@pytest.mark.few(2)
def test_what_was_asked_for_is_found(testbed, kind):
    """Every setting of every end, for each of two MTUs in turn."""
    for mtu in (1500, 1400):
        transcript = run(testbed, "true", **kind.point, mtu=mtu)
        assert mismatch(transcript.requested, transcript.effective) == []
        assert transcript.effective["mtu"] == mtu
        assert transcript.effective["congestion_control"] == "cubic"
        assert {"tbf_rate_bit_s", "gro", "tcp_rmem", "routes"} <= set(transcript.requested)


def test_nodes_of_a_star_know_each_other_for_good(testbed, kind):
    """Whom a node has to ask for counts among the neighbours of the whole machine, which are
    limited.
    """
    shown = Command(("ip", "neigh", "show", "nud", "permanent"))
    known = text(run(testbed, shown, **kind.point))
    is_star = testbed.use("it").graph.is_star
    assert [f"{address(n)} " in known for n in (1, 2, 3)] == [False, is_star, is_star]


CHANGES = {
    "mtu": "ip link set {device} mtu 1300",
    "tbf_rate_bit_s": "tc qdisc replace dev {device} root tbf rate 5mbit burst 10k limit 1mb",
    "congestion_control": "ip route replace {other} dev {out} congctl reno",
    "routes": "ip route replace {other} dev lo congctl cubic",
    "tcp_no_metrics_save": "sysctl -w net.ipv4.tcp_no_metrics_save=0",
    "largest_packet_bytes": "ip link set {device} gso_max_size 9000",
}


@pytest.mark.few(2)
def test_a_change_behind_its_back_is_named_and_mended(testbed, kind):
    """A command that changes an end on node 2 makes its trial a mismatch that says where; the next
    is right again.
    """
    net = testbed.use("it")
    end = net.graph.ends("n2")[0]
    places = {"device": net.device(end), "out": net.outlet(end), "other": address(1)}
    for setting, change in CHANGES.items():
        if setting == "largest_packet_bytes" and setting not in kind.table:
            continue  # nobody asked for it here
        words = change.format(**places).split()
        changed = run(testbed, Command(tuple(words), node=2), **kind.point)
        text(changed)
        (complaint,) = mismatch(changed.requested, changed.effective)
        assert complaint.startswith(f"{setting} is ") and " on n2" in complaint
    after = run(testbed, "true", **kind.point)
    assert mismatch(after.requested, after.effective) == []


@pytest.mark.few(2)
def test_bytes_prove_the_way(testbed, kind):
    """Twenty large echoes from node 1 to node 2: what they pass counts them, and what they do not
    pass does not. All that are joined reach each other; in a line node 2 passes nothing on."""
    for node, other in [(2, 3)] if kind.table.get("links") == LINE else [(2, 3), (3, 1)]:
        counters = echoes(testbed, kind, node, other)
        for counter in ("bytes_sent", "bytes_received"):
            assert all(counters[counter][number - 1] >= 98 for number in (node, other))
    counters = echoes(testbed, kind, 1, 2, size=1400, count=20)
    least = 20 * 1400
    assert min(counters["bytes_sent"][:2]) > least and counters["bytes_sent"][2] < 2000
    assert [through > least for through in counters["bytes_through"]] == kind.passed
    rails = [counters[key] for key in sorted(counters) if key.startswith("bytes_sent_rail_")]
    if testbed.net.graph.rails == 1:
        assert rails == []
        return
    assert [sum(both) for both in zip(*rails)] == counters["bytes_sent"]
    share = rails[0][0] / counters["bytes_sent"][0]
    assert 0.4 < share < 0.6 if testbed.net.graph.bonded else share == 1


def is_gone(state: Path, namespaces: set[int]) -> bool:
    """Whether nothing is left of a network: folder, mounts, and processes in its namespaces."""
    mounts = Path("/proc/self/mounts").read_text()
    return not state.exists() and str(state) not in mounts and not namespaces & in_use()


def inodes(state: Path) -> set[int]:
    """The network namespaces of a state folder that somebody made."""
    return {os.stat(space / "net").st_ino for space in netns.with_namespaces(state)}


def in_use() -> set[int]:
    """The network namespaces of all processes."""
    used = set()
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        with suppress(OSError):  # it has just ended
            used.add(os.stat(link).st_ino)
    return used


@pytest.fixture
def owner(kind, tmp_path):
    """A process that owns such a network and is inside a trial, and the network's state folder."""
    (tmp_path / "description.json").write_text(
        json.dumps([kind.description, {"it": kind.table}, kind.point])
    )
    process = subprocess.Popen(
        [sys.executable, ROOT / "tests/support/owner.py", tmp_path], cwd=ROOT
    )
    told, ranks = tmp_path / "state", 2 if "interconnect" in kind.point else 1
    assert within(30, told.exists)
    state = Path(told.read_text())
    assert within(30, lambda: len(list(state.glob("work/running.*"))) == ranks)
    yield process, state
    process.kill()
    process.wait()


@pytest.mark.few(2)
def test_nothing_stays_behind_kill_9(testbed, kind, owner):
    """Processes, mounts, threads and folder of the dead owner go by themselves; a living testbed is
    not touched.
    """
    process, state = owner
    namespaces = inodes(state)
    assert len(netns.processes(netns.with_namespaces(state))) >= 2
    process.kill()
    process.wait()
    assert within(10, lambda: is_gone(state.parent, namespaces))
    echoes(testbed, kind, 1, 2)


def undertakers(owner: int) -> list[int]:
    """The processes that wait for the end of an owner, its children."""
    children = Path(f"/proc/{owner}/task/{owner}/children").read_text().split()
    return [
        int(child)
        for child in children
        if b"runners.testbeds.lease" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


@pytest.mark.few(2)
def test_the_next_start_clears_what_both_left(testbed, kind, owner):
    """The owner was killed, and who was to clear up after it, too, as when the memory is full."""
    process, state = owner
    namespaces = inodes(state)
    (undertaker,) = undertakers(process.pid)
    os.kill(undertaker, signal.SIGKILL)
    process.kill()
    process.wait()
    assert namespaces & in_use() and state.exists()
    with open_testbed(kind.description, {"it": kind.table}) as other:
        assert within(10, lambda: is_gone(state, namespaces))
        echoes(other, kind, 1, 2)
        echoes(testbed, kind, 1, 2)
        second = other.net.state
        assert second != testbed.net.state
    assert is_gone(second, set())
    echoes(testbed, kind, 1, 2)


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, -signal.SIGINT)],
)
def test_signals_take_the_network_down(kind, owner, number, code):
    """SIGTERM, SIGHUP and Ctrl-C in the middle of a trial leave nothing, and the exit code
    tells.
    """
    process, state = owner
    namespaces = inodes(state)
    process.send_signal(number)
    assert process.wait(20) == code
    assert within(10, lambda: is_gone(state, namespaces))


def test_trials_that_end_their_networks_do_not_disturb_the_end(tmp_path):
    """As on a signal while trials run side by side: a thread releases what the whole is about to
    release.
    """

    def make_and_end(state):
        with suppress(OSError, FalloffError):
            while state.exists():
                network.demolish(network.build(state, SLOW | ROUTED, str).state)

    with lease.held(network.demolish, tmp_path) as state:
        threads = [threading.Thread(target=make_and_end, args=(state,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        assert within(10, lambda: len(netns.with_namespaces(state)) > 5)
    for thread in threads:
        thread.join(20)
    assert is_gone(state, set())


def test_a_network_that_cannot_be_built_leaves_nothing(testbed, tmp_path):
    """A program that ends at once is named with its words, and the folder is gone."""
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho no wire today >&2\nexit 1\n")
    broken.chmod(0o755)
    hub = {**SLOW, "hubs": {"wire": [1, 2]}}
    before = set(testbed.state.iterdir())
    with pytest.raises(FalloffError, match="shared_wire does not start: no wire today"):
        network.build(testbed.state, hub, lambda name: str(broken))
    assert set(testbed.state.iterdir()) == before


@pytest.mark.parametrize("mode", [0, None])
def test_taps_that_cannot_be_had_are_one_line_with_the_remedy(tools, tmp_path, monkeypatch, mode):
    """Before anything runs where a path needs them, and never from the program that wanted one; a
    star needs none.
    """
    device = tmp_path / "tun"
    if mode is not None:
        device.symlink_to(device)  # cannot be opened, whoever tries
    monkeypatch.setattr(network, "TUN", str(device))
    for kind in ("long", "hub", "bonded"):
        table = KINDS[kind].table
        with pytest.raises(FalloffError, match=f"{device}.*cannot be opened.*modprobe tun") as told:
            with open_testbed(KINDS[kind].description, {"it": table}):
                pass
        assert "\n" not in str(told.value)
    with open_testbed(KINDS["star"].description, {"it": KINDS["star"].table}):
        pass


def test_a_campaign_on_paths_says_what_is_missing(tmp_path, monkeypatch):
    """The one line among its obstacles, which doctor prints, too; a campaign without delay lines
    lacks nothing.
    """
    monkeypatch.setattr(network, "TUN", str(tmp_path / "tun"))
    lacking = {
        name: [line for line in running.obstacles(planning.plan_campaign(name)) if "tun" in line]
        for name in ("long_path", "hpl_scaling")
    }
    assert len(lacking["long_path"]) == 1 and not lacking["hpl_scaling"]
