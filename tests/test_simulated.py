"""The simulated testbed: real HPL code on a modelled cluster, the same every time, as its model
says; two-level networks.
"""

import math
import random
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from dataclasses import replace
from pathlib import Path

import pytest
from test_hpl import DECK
from undisturbed import within

from analysis import experiment, planning
from analysis.dataset.derive import broadcast_bytes
from analysis.descriptions import testbeds
from runners import executables, placement
from runners.records.journal import Folder
from runners.records.record import FalloffError, Trial, judge
from runners.testbeds import simulated, smpi
from runners.tools import tool_named
from runners.two_level import TwoLevel, from_table

SMITH = testbeds.read("smith").plain()
LINK = {"bandwidth": {"value": 110e6, "low": 90e6}, "latency": {"value": 40e-6}}
TABLE = {
    "nodes": 960,
    "node_bandwidth": 110e6,
    "nodes_per_edge": 4,
    "uplinks": 1,
    "uplink_bandwidth": 110e6,
    "edges_per_card": 2,
    "latency": 40e-6,
}
CARDS = {"uplinks": 4, "card_bandwidth": 1e10, "core_bandwidth": 1e10}
TREES = {
    "one_switch": LINK,
    "wide": {**LINK, "tree": {**TABLE, "uplink_bandwidth": 440e6}},
    "wide_cards": {**LINK, "tree": {**TABLE, **CARDS}},
    "narrow": {**LINK, "tree": TABLE},
    "narrow_core": {**LINK, "tree": {**TABLE, "core_bandwidth": 50e6}},
}
WITH_TREES = {**SMITH, "network": {**SMITH["network"], **TREES}}
NETWORKS = {"gige": {}, "10gige": {}, "unshaped": {}}
GRID = {"N": 2048, "P": 2, "Q": 4, "nodes": 8, "random_seed": 3}
SMALL = {**DECK, **GRID, "NB": 128, "Q": 2, "nodes": 4, "THRESHOLD": -1.0, "timeout_s": 60}

needs_simgrid = pytest.mark.skipif(
    not shutil.which("smpirun") or not shutil.which("xhpl_simulated", path=str(executables.BUILT)),
    reason="SimGrid is not here: libsimgrid-dev",
)


@pytest.fixture(scope="module")
def testbed():
    """The Smith cluster's nodes on its networks and on trees of switches."""
    with simulated.open_testbed(WITH_TREES, {**NETWORKS, **TREES}) as opened:
        yield opened


def trial(runner="hpl", **point):
    """A trial of the small problem, on GigE unless the point says otherwise."""
    return Trial("t", "point", runner, 1, 1, {**SMALL, "interconnect": "gige", **point})


def simulate(testbed, runner="hpl", **point):
    """The readings of one simulated trial by name, and its transcript."""
    asked = trial(runner, **point)
    transcript = testbed.run(asked, tool_named(runner).commands(asked.point))
    outcome = judge(transcript, tool_named(runner).parse)
    assert outcome.status == "ok", (outcome.reason, transcript.executions[-1].stderr[-500:])
    return outcome.readings, transcript


@needs_simgrid
def test_a_simulation_repeats_itself_with_all_messages(testbed):
    """Every panel crosses the network, and but for what the simulation itself took nothing of this
    machine shows.
    """
    once, transcript = simulate(testbed)
    assert transcript.evidence == "simulated" and "hpl_residual" not in once
    sent = [sent for sent in transcript.counters["bytes_sent"] if sent == sent]
    assert len(sent) == 4 and len(transcript.counters["bytes_sent"]) == SMITH["nodes"]
    assert sum(sent) > broadcast_bytes(SMALL["N"], SMALL["Q"])
    assert once.pop("simulator_cpu_time") > 0 and 1e6 < once.pop("simulator_memory") < 1e9
    assert once.items() <= simulate(testbed)[0].items() and once["hpl_rate"] > 0


@needs_simgrid
def test_it_runs_below_a_path_with_blanks(testbed, tmp_path, monkeypatch):
    """Where programs, libraries and the simulation's own folder are in a clone of such a path."""
    clone = tmp_path / "a blank é"
    clone.mkdir()
    names = ("xhpl_simulated", "noclock.so")
    programs = {name: shutil.copy(executables.find(name, {}), clone) for name in names}
    monkeypatch.setattr(simulated, "_ROOT", clone / "simulated")
    with simulated.open_testbed({**WITH_TREES, "tools": programs}, NETWORKS) as opened:
        assert simulate(opened)[0]["hpl_rate"] == simulate(testbed)[0]["hpl_rate"]


@needs_simgrid
def test_the_rate_follows_the_model(testbed):
    """A node's rate, bandwidth or latency: what is worse is slower."""

    def rate(vary):
        return simulate(testbed, vary=vary)[0]["hpl_rate"]

    usual = rate("none")
    assert rate("bandwidth=55e6") < rate("bandwidth=low") < usual
    assert rate("latency=1e-3") < usual < rate("latency=1e-6,bandwidth=1e9")
    assert 0.5 < rate("strided_s=high") / usual < 1


def test_what_is_varied_changes_and_nothing_else():
    """A rate of the node and both of the network, each to a number or an end of its range."""
    rates, network = smpi.model(WITH_TREES, "one_switch")
    vary = "latency=2e-05,bandwidth=low,dtrsm_share=0.5"
    changed, varied = smpi.model(WITH_TREES, "one_switch", vary)
    assert varied == {**network, "latency": 2e-5, "bandwidth": 90e6}
    assert changed == {**rates, "dtrsm_share": 0.5}
    assert smpi.model(SMITH, "gige", "dtrsm_share=low")[0]["dtrsm_share"] == 0.4


@pytest.mark.parametrize(
    ("vary", "reason"),
    [
        ("luck=high", "'luck' is none of"),
        ("tree=1", "'tree' is none of"),
        ("latency=much", "neither a number"),
        ("latency=2e-05,latency=3e-05", "something twice"),
    ],
)
def test_a_variation_that_means_nothing_is_refused(vary, reason):
    """The words of the point are in the refusal."""
    with pytest.raises(FalloffError, match=f"{vary}.*{reason}"):
        smpi.model(WITH_TREES, "narrow", vary)


@needs_simgrid
def test_dgemm_is_the_models_own(testbed):
    """The rate of every node is the asymptotic one, less what short dimensions cost."""
    rates, _ = simulate(testbed, "dgemm", K=128, duration_s=1.0, nodes=3)
    model, _ = smpi.model(SMITH, "gige")
    order = 2048  # of the matrix that dgemm updates
    short = (1 + model["dgemm_k_half"] / 128) * (1 + model["dgemm_mn_half"] / order)
    expected = model["dgemm_flop_s"] / short / 1e9
    assert rates["dgemm_rate"] == pytest.approx([expected] * 3, rel=1e-5)


@needs_simgrid
def test_messages_are_the_same_and_the_network_decides_their_time(testbed):
    """Every node sends the same bytes; without oversubscription in the same time as over one
    switch.
    """
    runs = {name: simulate(testbed, interconnect=name, **GRID) for name in TREES}
    sent = {name: transcript.counters["bytes_sent"][:8] for name, (_, transcript) in runs.items()}
    assert min(sent["one_switch"]) > 0 and set(map(tuple, sent.values())) == {tuple(sent["wide"])}
    rate = {name: readings["hpl_rate"] for name, (readings, _) in runs.items()}
    assert [rate["wide"], rate["wide_cards"]] == pytest.approx([rate["one_switch"]] * 2, rel=1e-3)
    assert rate["narrow_core"] / 0.9 < rate["narrow"] < 0.97 * rate["one_switch"]


@needs_simgrid
def test_a_placement_moves_ranks_to_other_nodes(testbed):
    """The same ranks send the same, now from other nodes; over one switch in the same time, on a
    tree in another.
    """

    def placed(network, order):
        readings, transcript = simulate(testbed, interconnect=network, placement=order, **GRID)
        return readings["hpl_rate"], transcript.counters["bytes_sent"][:8]

    rate, sent = placed("narrow", "in_order")
    shuffled_rate, shuffled = placed("narrow", "shuffled")
    order = placement.order(8, "shuffled", "3")
    assert sent != shuffled == [sent[order.index(node)] for node in range(1, 9)]
    assert shuffled_rate < 0.99 * rate
    assert placed("one_switch", "in_order")[0] == placed("one_switch", "shuffled")[0]


@needs_simgrid
def test_ranks_of_a_node_share_its_rate_and_leave_its_link_alone(testbed):
    """On a network without cost 4 ranks on 2 nodes compute like 4 nodes of half the rate; on one
    node no network matters; every node's bytes are counted together."""
    half = {"vary": "dgemm_flop_s=19.835e9,node_byte_s=5e9"}
    free = {"interconnect": "unshaped"}
    shared, transcript = simulate(testbed, nodes=2, ranks_per_node=2, **free)
    apart, of_four = simulate(testbed, **half, **free)
    # Messages inside a node are copied, which takes a little.
    assert 0.95 < shared["hpl_rate"] / apart["hpl_rate"] < 1
    a, b, c, d = of_four.counters["bytes_sent"][:4]
    assert transcript.counters["bytes_sent"][:2] == [a + b, c + d]
    one, slow = (
        simulate(testbed, nodes=1, ranks_per_node=4, interconnect=name)[0]["hpl_rate"]
        for name in ("gige", "unshaped")
    )
    assert one == pytest.approx(slow, rel=1e-6)
    assert one > simulate(testbed, vary="dgemm_flop_s=9.9175e9,node_byte_s=2.5e9")[0]["hpl_rate"]


@needs_simgrid
@pytest.mark.parametrize(
    ("runner", "point", "fault"),
    [
        ("ping", {"sender": 1, "receiver": 2, "count": 3}, "ping cannot be simulated"),
        ("hpl", {"placement": "nearby"}, "placement 'nearby' is neither"),
    ],
)
def test_what_cannot_be_simulated_is_a_fault(testbed, runner, point, fault):
    """It is named, and nothing runs."""
    asked = trial(runner, **point)
    transcript = testbed.run(asked, tool_named(runner).commands(asked.point))
    assert fault in transcript.fault and not transcript.executions


def test_a_trees_nodes_are_there_once():
    """Of 10 nodes the last edge switch has two, and the second line card one edge switch."""
    _, network = smpi.model(WITH_TREES, "narrow", "bandwidth=55e6")
    tree = {**network["tree"], "card_bandwidth": 1e8}
    core = xml.fromstring(smpi.platform(10, {**network, "tree": tree})).find("zone")
    zones = [
        [edge.get("radical") for edge in zone.findall("cluster")] for zone in core.findall("zone")
    ]
    assert zones == [["1-4", "5-8"], ["9-10"], []]  # two line cards and the fabric
    assert {edge.get("bw") for edge in core.iter("cluster")} == {"55000000Bps"}
    rates = {link.get("id"): link.get("bandwidth") for link in core.iter("link")}
    uplinks = dict.fromkeys(("uplink1", "uplink2", "uplink3"), "110000000Bps")
    assert rates == {**uplinks, **dict.fromkeys(("slot1", "slot2"), "100000000Bps")}


# Twelve nodes of rate 10, three on each of four switches; 1.5:1 at the edge, 1.25:1 at a card.
TWO_LEVELS = TwoLevel(
    nodes=12,
    node_bandwidth=10.0,
    nodes_per_edge=3,
    uplinks=2,
    uplink_bandwidth=10.0,
    edges_per_card=2,
    card_bandwidth=32.0,
    core_bandwidth=math.inf,
    latency=1e-5,
)


@pytest.mark.parametrize(
    ("changes", "edge", "core", "bisection"),
    [
        ({}, 1.5, 1.25, 32),
        ({"uplinks": 1}, 3, 1, 20),
        ({"uplink_bandwidth": 40.0, "card_bandwidth": math.inf}, 1, 1, 60),
        (
            {"core_bandwidth": 50.0},
            1.5,
            1.6,
            25,
        ),  # asked for 80; one half then sends 25 to the other
        # The tenth is alone on its switch, whose card never blocks.
        ({"nodes": 10}, 1.5, 1.25, (32 + 20 + 10) / 2),
        ({"nodes": 2}, 1, 1, 10),
    ],
)
def test_two_levels_by_hand(changes, edge, core, bisection):
    """With all switches and cards full, what bisection lacks is the oversubscription of the edge
    times the core's.
    """
    network = replace(TWO_LEVELS, **changes)
    assert (network.edge_oversubscription, network.core_oversubscription) == (edge, core)
    assert network.bisection == pytest.approx(bisection)
    if network.nodes == 12:
        assert bisection == pytest.approx(12 * 10 / 2 / edge / core)


def test_a_table_of_two_levels():
    """Edge switches are spread over the cards that are there, or more: five take sixty as twelve
    each, a sixth is needed for 280. A field that is missing or unknown is named; what bounds the
    core may be left out."""
    table = {**vars(TWO_LEVELS), "edges_per_card": 48, "cards": 5}
    few, many = (from_table({**table, "nodes": 3 * edges}) for edges in (60, 280))
    assert [(made.edges_per_card, made.cards) for made in (few, many)] == [(12, 5), (47, 6)]
    with pytest.raises(FalloffError, match="spine"):
        from_table({**table, "spine": 2})
    with pytest.raises(FalloffError, match="uplinks"):
        from_table({name: value for name, value in table.items() if name != "uplinks"})
    unbounded = {name: value for name, value in table.items() if name != "card_bandwidth"}
    assert from_table(unbounded).card_bandwidth == math.inf


@needs_simgrid
def test_a_simulation_beyond_its_limit_is_ended(testbed):
    """It is of processor time, which a busy machine does not change. The simulator itself is gone,
    not only the script that started it."""
    asked = trial(N=400000)
    commands = tool_named("hpl").commands(asked.point)
    commands = [replace(command, timeout_s=0.3) for command in commands]
    (execution,) = testbed.run(asked, commands).executions
    assert execution.timed_out and execution.exit_code is None
    assert not simulated.working_in(testbed.folder)


# Runs the plan that lies in a folder, several trials at once. It imports no analysis, to be there
# soon.
OWNER = """
import signal, sys
from pathlib import Path
from runners.engine import campaign
from runners.records.journal import Folder
from runners.testbeds import simulated
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore Ctrl-C
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and nohup's SIGHUP
folder = Path(sys.argv[1])
simulated._ROOT = folder / "simulated"
plan = Folder(folder / "c").plan()
with simulated.open_testbed(plan.testbed, plan.interconnects) as testbed:
    simulated.Simulated.load = lambda self, trial: 1 / 3
    campaign.run(plan, testbed, Folder(folder / "c"))
"""


def begun(folder: Path) -> subprocess.Popen:
    """A campaign of simulations in a folder, which is simulating."""
    argv = [sys.executable, "-c", OWNER, str(folder)]
    owner = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    assert within(30, lambda: simulated.working_in(folder) or owner.poll() is not None)
    assert owner.poll() is None
    return owner


def left(folder: Path) -> list[str]:
    """What is left of the simulations in a folder."""
    files = [entry.name for entry in (folder / "simulated").iterdir() if entry.name != "turn"]
    return [*map(str, simulated.working_in(folder)), *files]


@needs_simgrid
def test_nothing_outlives_an_interruption(tmp_path):
    """Whatever the threads are at, and behind kill -9 what is left goes by itself."""
    plan = planning.plan_campaign("hpl_paper_sensitivity", "smith", "full")
    Folder(tmp_path / "c").create_or_check(plan)
    chance = random.Random(5)
    twice = [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)] * 2
    for number, code in [*twice, (signal.SIGHUP, 129)]:
        owner = begun(tmp_path)
        time.sleep(chance.uniform(0, 1.0))
        owner.send_signal(number)
        complaints = owner.communicate(timeout=30)[1]
        assert "FileNotFoundError" not in complaints and "OSError" not in complaints
        assert owner.returncode == code, complaints
        assert left(tmp_path) == []
    owner = begun(tmp_path)
    owner.kill()
    owner.communicate()
    assert within(20, lambda: not left(tmp_path))


def test_what_lacks_is_named(monkeypatch):
    """A network that the testbed does not describe; without SimGrid the package that brings it."""
    with monkeypatch.context() as patch:
        patch.setattr(simulated, "unavailable", lambda description: [])
        with pytest.raises(FalloffError, match="smith describes no network myrinet"):
            with simulated.open_testbed(SMITH, {"myrinet": {}}):
                pass
    monkeypatch.setenv("PATH", "")
    assert "apt-get install libsimgrid-dev" in simulated.unavailable(SMITH)[0]


def test_every_rate_has_a_source_and_a_range():
    """Nothing of the model is unsaid: value inside its range, unit, and where it is from or that it
    is assumed.
    """
    described = [*SMITH["rates"].values()]
    described += [entry for network in SMITH["network"].values() for entry in network.values()]
    assert len(described) > 10
    for entry in described:
        assert entry["low"] <= entry["value"] <= entry["high"]
        assert entry["unit"] and entry["source"]


@needs_simgrid
def test_the_stored_runs_are_the_present_models(testbed):
    """The paper's smallest case, simulated again, has the rate that the shipped campaign has, to
    the digit.
    """
    stored = experiment.stored("hpl_paper_simulated", "smith")
    asked = (stored.nodes == 2) & (stored.interconnect == "10gige") & (stored.runner == "hpl")
    (wanted,) = stored.hpl_rate.values[asked]
    trials = planning.plan_campaign("hpl_paper_simulated", "smith", "full").trials()
    points = [trial.point for trial in trials if trial.runner == "hpl"]
    point = next(p for p in points if (p["nodes"], p["interconnect"]) == (2, "10gige"))
    assert simulate(testbed, **point)[0]["hpl_rate"] == wanted
