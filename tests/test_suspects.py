"""Suspects: planted slow nodes, ports and paths are named and nobody else, in synthetic and in
emulated campaigns.
"""

import json
import re
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from calibration import tournaments
from executed import executed, stated, words
from shown import failed
from synthetic import of_plan

from analysis import experiment, planning, running
from analysis.dataset import store
from analysis.descriptions import testbeds
from analysis.statistics import outliers
from analysis.statistics.calibration import load, table
from analysis.watch.suspects import COMPUTE, PATH, QUANTITIES, RECEIVE, SEND, compare, largest
from runners.records.record import FalloffError
from runners.testbeds import emulated
from runners.tools import suspects

LOSS = np.log1p(-0.03)
LEVEL, TOLERANCE, SMALLEST = 0.05, 0.01, 0.03


def campaign(blocks=5, noise=0.002, seed=1, nodes=(), ports=(), paths=(), hosts=None, loss=LOSS):
    """A campaign of 16 nodes whose `nodes` (DGEMM), `ports` (sending) and `paths` (numbers from 0)
    are slower.
    """
    random = np.random.default_rng(seed)
    plan = planning.plan_campaign("suspects", preset="full", blocks=blocks)
    names = ",".join(f"n{number}" for number in range(1, 17))

    def readings(point, block):
        dgemm, stream = random.normal(0, noise, (2, 16))
        bandwidth = random.normal(0, noise, (16, 16))
        latency = random.normal(0, noise, (16, 16))
        dgemm[list(nodes)] += loss
        bandwidth[list(ports)] += loss
        for path in paths:
            bandwidth[path] += loss
        return {
            "dgemm_rate": 85e-3 * np.exp(dgemm),
            "stream_rate": 1e10 * np.exp(stream),
            "pair_bandwidth": 12e6 * np.exp(bandwidth),
            "pair_latency": 1e-4 * np.exp(latency + latency.T),
            "hosts": hosts(block) if hosts else names,
        }

    return of_plan(plan, readings)


def run(dataset):
    """The notebook on a campaign."""
    return executed("53", suspects=dataset)


def accused(study):
    """Who is slower: quantity and the nodes' names."""
    return {
        (quantity, *(study.hosts[node] for node in family.members[index]))
        for network in study.networks
        for quantity, family in network.families.items()
        for index in family.found.slower
    }


def test_each_fault_is_told_from_the_others():
    """A slow node, a slow port and a slow path: each is named for what it is, and nobody for
    another's fault.
    """
    made = run(campaign(nodes=[10], ports=[4], paths=[(6, 9)]))
    study = made.names["compared"]
    assert accused(study) == {(COMPUTE, "n11"), (SEND, "n5"), (PATH, "n7", "n10")}
    text = words(made)
    assert "**Node n11 is slow**: it computes " in text
    assert "**The link or the switch port of node n5 is slow**: it sends" in text
    assert "**The path from n7 to n10 is slow**" in text
    for family in study.networks[0].families.values():
        for index in family.found.slower:
            assert TOLERANCE < family.found.low[index] < 0.03 < family.found.high[index]
    rows = made.names["rows"]
    assert [row[1] for row in rows] == [heading for heading, _ in QUANTITIES.values()]
    assert len(made.statements) == len(QUANTITIES)
    losses = made.names["losses"]["gige"]
    for subject, who in (
        ("The planted slow node is found: DGEMM of a node", "n11"),
        ("The planted slow link is found: bandwidth that a node sends", "n5"),
    ):
        one = stated(made, subject)
        assert one.words == "yes" and one.primary and one.reason == f"the slowest is {who}"
        assert one.estimate == pytest.approx(0.03, abs=0.003)
        assert one.estimate == losses.loc[who, subject.partition(": ")[2]]
    # Of the planted link only what it sends is slow here, and a path is.
    assert stated(made, "The planted slow link is found: bandwidth that a node rec").words == "no"
    assert stated(made, "Slower than the others: bandwidth of a path").words == "yes"


def test_healthy_nodes_are_cleared_or_open():
    """With little scatter a loss of 3 % is excluded for all; with much it is open, and said from
    where on it is found.
    """
    made = run(campaign(noise=0.002))
    text = words(made)
    assert "**No node, port or path is named**" in text
    assert stated(made, "The planted slow node is found").words == "no"
    assert stated(made, "Slower than the others: bandwidth of a path").words == "no"
    made = run(campaign(noise=0.05))
    text = words(made)
    assert "**No node, port or path is named**" in text
    assert stated(made, "Slower than the others: bandwidth of a path").words == "undecided"


def test_a_single_block_decides_nothing_and_no_valid_run_is_refused():
    """No interval, and no answer; without any run a reason."""
    single = run(campaign(blocks=1, nodes=[10]))
    assert {one.answer for one in single.statements} == {"undecided"} and words(single)
    assert {one.interval for one in single.statements} == {None}
    with pytest.raises(FalloffError, match="no valid run"):
        run(failed(campaign(blocks=2), "no library"))


def test_the_figure_shows_every_pair():
    """The loss of each sender towards each receiver, as it was planted."""
    made = run(campaign(ports=[4]))
    (mesh,) = made.figures["suspects_pairs"].figure.axes[0].collections
    drawn = np.asarray(mesh.get_array()).reshape(16, 16)
    apart = np.where(np.eye(16, dtype=bool), np.nan, drawn)
    assert np.nanmean(apart[4]) == pytest.approx(3, abs=0.3)
    assert np.nanmax(np.delete(apart, 4, axis=0)) < 1.5


def draw(random, kind, nodes=8, blocks=5, sd=0.004):
    """Log speeds of healthy nodes (blocks, nodes) and pairs (blocks, nodes, nodes), disturbed in
    ways that name nobody.
    """
    of_nodes, of_pairs = (random.normal(0, sd, (blocks, *[nodes] * dims)) for dims in (1, 2))
    if kind == "heavy tails":
        of_nodes, of_pairs = (
            sd * random.standard_t(3, each.shape) for each in (of_nodes, of_pairs)
        )
    elif kind == "one node jitters":
        of_nodes[:, 0] *= 4
        of_pairs[:, 0] *= 4
        of_pairs[:, :, 0] *= 4
    elif kind == "uneven within the tolerance":
        of_nodes += random.uniform(-0.004, 0.004, nodes)
        of_pairs += random.uniform(-0.004, 0.004, (nodes, nodes))
    elif kind == "a round is interrupted":
        seats = random.permutation(nodes).reshape(-1, 2)
        of_pairs[random.integers(blocks), seats[:, 0], seats[:, 1]] -= 0.2
        of_nodes[random.integers(blocks), random.integers(nodes)] -= 0.2
    return of_nodes, of_pairs


def judged(of_nodes, of_pairs):
    """The families of DGEMM, sending, receiving and paths, each member with its share of the
    campaign's level.
    """
    blocks, nodes, _ = of_pairs.shape
    sending, receiving, rest = outliers.of_pairs(of_pairs)
    alone = [(node,) for node in range(nodes)]
    pairs = list(permutations(range(nodes), 2))
    paths = rest[:, [a for a, _ in pairs], [b for _, b in pairs]]
    families = [(one, alone) for one in (outliers.of_each(of_nodes), sending, receiving)]
    families.append((paths, pairs))
    level = LEVEL / sum(len(members) for _, members in families)
    shared = outliers.level_of_family([losses for losses, _ in families], LEVEL, TOLERANCE)
    return [outliers.compare(*family, level, shared, TOLERANCE, SMALLEST) for family in families]


KINDS = "normal; heavy tails; one node jitters; uneven within the tolerance; a round is interrupted"


@pytest.mark.few(4)
@pytest.mark.parametrize("sd", [0.002, 0.02])
@pytest.mark.parametrize("kind", KINDS.split("; "))
def test_a_healthy_cluster_is_rarely_accused(kind, sd):
    """At most 5 of 100 campaigns; 17 of 200 is what chance makes of that in one of 40 such
    tests.
    """
    random = np.random.default_rng(20261123)
    campaigns = (judged(*draw(random, kind, sd=sd)) for _ in range(200))
    assert sum(any(len(family.slower) for family in found) for found in campaigns) <= 17


@pytest.mark.few(4)
@pytest.mark.parametrize("nodes", [16, 64, 128, 1000])
@pytest.mark.parametrize("spread", [0.003, 0.01, 0.02])
def test_nodes_that_differ_accuse_nobody(nodes, spread):
    """Of 100 healthy campaigns at most 5 accuse (11 by chance); a node that loses 5 sd of the
    spread, or 5 %, is found.
    """
    random = np.random.default_rng(nodes)
    alone, wrong, named = [(node,) for node in range(nodes)], 0, 0
    loss = np.log1p(-max(0.05, 5 * spread))
    for _ in range(100):
        speeds = random.normal(0, 0.002, (5, nodes)) + random.normal(0, spread, nodes)
        slow = speeds.copy()
        slow[:, 3] += loss - slow[:, 3].mean()
        for values in (speeds, slow):
            losses = outliers.of_each(values)
            shared = outliers.level_of_family([losses], LEVEL, TOLERANCE)
            limits = LEVEL / (5 * nodes), shared, TOLERANCE, SMALLEST
            accused = set(outliers.compare(losses, alone, *limits).slower.tolist())
            wrong += values is speeds and bool(accused)
            named += values is slow and 3 in accused
    assert wrong <= 11 and named >= 85


def test_several_slow_nodes_do_not_hide_each_other():
    """A rack of 4 of 16 nodes; and a node of a faster kind among the others hides nobody."""
    random, alone = np.random.default_rng(2), [(node,) for node in range(16)]
    speeds = random.normal(0, 0.002, (5, 16)) + random.normal(0, 0.003, 16)
    speeds[:, :4] -= 0.05
    speeds[:, 9] += 0.3
    limits = LEVEL / 80, LEVEL, TOLERANCE, SMALLEST
    found = outliers.compare(outliers.of_each(speeds), alone, *limits)
    assert set(found.slower.tolist()) == {0, 1, 2, 3} and 0 < found.reach < 0.05


def test_the_paths_of_a_node_are_told_together_and_named_on_the_terminal():
    """Four slow paths of one node are one line; the statement names it, and is printed though no
    path was planned for.
    """
    made = run(campaign(paths=[(6, 1), (6, 9), (6, 12), (14, 6)], loss=np.log1p(-0.06)))
    text = words(made)
    assert "**4 paths of node n7 are slow**: " in text and "The path from" not in text
    statement = stated(made, "Slower than the others: bandwidth of a path")
    assert statement.primary and "4 paths of n7" in str(statement)
    assert ": the slowest is n" in str(stated(made, "The planted slow node"))
    made = run(campaign(nodes=[2, 4], loss=np.log1p(-0.06)))
    assert {"n3", "n5"} <= set(re.findall(r"n\d+", str(stated(made, "The planted slow node"))))


@pytest.mark.parametrize("fault", [COMPUTE, SEND, RECEIVE, PATH])
def test_a_loss_of_3_percent_is_found(fault):
    """In at least 90 of 100 campaigns with a scatter of 0.4 %, and the loss that 'found from' names
    in most.
    """
    random, named, at_limit = np.random.default_rng(5), 0, 0
    place = {COMPUTE: 0, SEND: 1, RECEIVE: 2, PATH: 3}[fault]
    where = {
        COMPUTE: (0, np.s_[:, 2]),
        SEND: (1, np.s_[:, 2]),
        RECEIVE: (1, np.s_[:, :, 2]),
        PATH: (1, np.s_[:, 2, 5]),
    }
    member = 2 if fault != PATH else 2 * 7 + 4  # of (2, 5) in a row of 7 partners
    for _ in range(100):
        healthy = draw(random, "normal")
        limit = np.log1p(-judged(*healthy)[place].finds_from)
        for loss in (LOSS, limit):
            planted = [speeds.copy() for speeds in healthy]
            which, cells = where[fault]
            planted[which][cells] += loss
            is_named = member in judged(*planted)[place].slower
            named += loss == LOSS and is_named
            at_limit += loss == limit and is_named
    assert named >= 90 and at_limit >= 80


def test_nodes_are_known_by_their_names():
    """A job on other nodes in another order is the same cluster; who is not in every block is left
    out and said.
    """

    def moved(block):
        numbers = list(range(1, 17)) if block < 3 else [*range(2, 16), 1, 17]
        return ",".join(f"n{number}" for number in numbers)

    made = run(campaign(hosts=moved))
    study = made.names["compared"]
    assert len(study.hosts) == 15 and study.absent == {"n16": (3, 4, 5), "n17": (1, 2)}
    assert "blocks ran without them: n16 (in 3, 4 and 5) and n17 (in 1 and 2)" in words(made)
    with pytest.raises(FalloffError, match="0 nodes in common, 4 are needed: run all blocks"):
        compare(
            campaign(hosts=lambda block: ",".join(f"b{block}n{number}" for number in range(16)))
        )
    # A node that died in the first block is in none: the testbed knows it.
    dataset = campaign(hosts=lambda block: ",".join(f"n{n}" for n in range(1, 18) if n != 2))
    described = json.loads(dataset.attrs["testbed_settings"])
    for hosts, absent in ((range(1, 20), {"n2": (1, 2, 3, 4, 5)}), (range(30, 50), {})):
        named = described | {"hosts": [f"n{number}.site" for number in hosts]}
        assert compare(dataset.assign_attrs(testbed_settings=json.dumps(named))).absent == absent
    same = compare(campaign(hosts=lambda block: ",".join(["vm"] * 16), nodes=[2]))
    assert accused(same) == {(COMPUTE, "node 3")}


def test_a_slow_link_between_switches_is_named():
    """Of four switches, all paths from the first to the third are slower; what lies between any two
    is slower anyhow.
    """
    leaf = np.arange(16) // 4
    slow = [(a, b) for a in range(4) for b in range(8, 12)]
    dataset = campaign(paths=slow)
    crosses = np.where(leaf[:, None] != leaf[None, :], 0.5, 1.0)
    dataset = dataset.assign(pair_bandwidth=dataset.pair_bandwidth * crosses)
    switches = {f"n{node + 1}": [f"leaf{leaf[node] + 1}", "spine"] for node in range(16)}
    told = {"sessions": [{"slurm": {"switches": switches}}]}
    made = run(dataset.assign_attrs(provenance=json.dumps(told)))
    assert accused(made.names["compared"]) == {(PATH, f"n{a + 1}", f"n{b + 1}") for a, b in slow}
    assert "**16 of the 16 slow paths lead from switch leaf1 to switch leaf3**" in words(made)


def test_losses_planted_in_the_emulated_campaign_are_found():
    """In the stored transcripts, whose scatter is real: the testbed's own faults, and a node and a
    path made 3 % slower.
    """
    dataset = experiment.stored("suspects", "suspect_model")
    own = accused(compare(dataset))
    assert own >= {(COMPUTE, "n11"), (SEND, "n5"), (RECEIVE, "n5")}
    assert {who for _, *names in own for who in names} == {"n5", "n11"}
    trials = dataset.pair_bandwidth
    slowed = trials.values.copy()
    slowed[:, 2] *= 0.97
    slowed[:, 7, 12] *= 0.97
    study = compare(dataset.assign(pair_bandwidth=trials.copy(data=slowed)))
    assert accused(study) - own == {(SEND, "n3"), (PATH, "n8", "n13")}


@pytest.mark.long
def test_the_emulated_cluster_is_found_out(tmp_path, monkeypatch):
    """Real MPI between 6 paced nodes: the node and the link that the testbed's description makes
    slower are named.
    """
    smaller = testbeds.read("suspect_model").changed(
        nodes=6,
        slow=testbeds.Slow(links={"2": 0.95}, nodes={"5": 0.95}),
        settings={"array_mib": 8, "latency_s": 0.02, "node_s": 0.3, "bandwidth_s": 0.3},
    )
    if reasons := emulated.unavailable(smaller.plain()):
        pytest.skip(reasons[0])
    monkeypatch.setattr(testbeds, "read", lambda name: smaller)
    plan = planning.plan_campaign("suspects", preset="full", blocks=3)
    assert plan.blocks[0][0].point["nodes"] == 6
    dataset = store.assemble(running.run_campaign(plan, out=tmp_path))
    assert set(dataset.status.values) <= {"ok", "invalid", "busy"}
    if (dataset.status == "ok").sum() < 2:
        pytest.skip("what else this machine does held the nodes up")
    study = compare(dataset)
    assert set(study.hosts) == {f"n{number}" for number in range(1, 7)}
    assert {(COMPUTE, "n5"), (SEND, "n2"), (RECEIVE, "n2")} <= accused(study)


def test_what_cannot_be_compared_is_refused():
    """Too few nodes, before anything runs; a planted fault of no node."""
    point = dict(planning.plan_campaign("suspects").blocks[0][0].point)
    (command,) = suspects.commands(point)
    assert command.ranks == 16 and command.argv[0] == "suspects"
    with pytest.raises(FalloffError, match="3 nodes cannot be compared: 4 are needed"):
        suspects.commands({**point, "nodes": 3})
    testbed = testbeds.read("suspect_model").plain()
    for slow, reason in (
        ({"links": {"17": 0.97}}, "slow.links.17 = 0.97 must be of a node from 1 to 16"),
        ({"nodes": {"3": 0}}, "a share above 0"),
        ({"switches": {}}, "slow.switches is unknown"),
    ):
        with pytest.raises(FalloffError, match=reason):
            testbeds.checked({**testbed, "slow": slow})


@pytest.mark.more
def test_a_thousand_nodes_with_four_faults():
    """A slow processor, memory and two links among 1,000 nodes that meet 20 others a block: exactly
    these are named.
    """
    random, nodes, blocks = np.random.default_rng(11), 1000, 5
    slow = [17, 230]
    rates = tournaments.campaign(random, nodes, 20, blocks, 0.004, slow, 0.03)
    answers = tournaments.campaign(random, nodes, 20, blocks, 0.02, [], 0.0)
    plan = planning.plan_campaign("suspects", preset="full", blocks=blocks)
    plan = replace(plan, testbed={**plan.testbed, "nodes": nodes, "slow": {}})
    names = ",".join(f"n{number}" for number in range(1, nodes + 1))

    def readings(point, block):
        dgemm, stream = random.normal(0, 0.002, (2, nodes))
        dgemm[611] += LOSS
        stream[999] += LOSS
        return {
            "dgemm_rate": 85e-3 * np.exp(dgemm),
            "stream_rate": 1e10 * np.exp(stream),
            "pair_bandwidth": 12e6 * np.exp(rates[block - 1]),
            "pair_latency": 1e-4 * np.exp(answers[block - 1]),
            "hosts": names,
        }

    made = run(of_plan(plan, readings))
    study = made.names["compared"]
    ports = {(way, f"n{node + 1}") for way in (SEND, RECEIVE) for node in slow}
    assert accused(study) == {(COMPUTE, "n612"), ("memory", "n1000"), *ports}
    assert PATH not in study.networks[0].families
    assert "**Node n612 is slow**" in words(made)


def test_the_tournament_keeps_its_goals():
    """At most 5 % of campaigns accuse a healthy node, 99 % of the slow links are found; one cell is
    computed again.
    """
    rates = table("tournament")
    assert set(rates.nodes) == {16, 128, 1000}
    assert (rates.false_alarms <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / rates.campaigns)).all()
    assert (rates.found >= 0.99).all()
    settings = load()
    small = {**settings["tournament"], "nodes": {"16": 40}, "pair_sds": [0.004]}
    again = tournaments.simulate({**settings, "tournament": small})
    assert again.found.item() >= 0.99 and again.false_alarms.item() <= 0.15


def test_each_node_meets_another_in_each_round():
    """Rounds are as the program draws them: nobody is in two pairs of one, and no pair meets
    twice.
    """
    for nodes in (16, 17):
        met = tournaments.pairs(np.random.default_rng(1), nodes, 5)
        counts = np.bincount(met.ravel(), minlength=nodes)
        assert len({frozenset(pair) for pair in met.tolist()}) == len(met)
        assert set(counts.tolist()) <= {5, 5 - nodes % 2}


def test_a_matrix_of_many_nodes_shows_the_worst_of_each_square():
    losses = np.full((5, 5), np.nan)
    losses[0, 1], losses[1, 0], losses[4, 3], losses[4, 4] = 0.1, 0.2, 0.3, -0.1
    expected = [[0.2, np.nan, np.nan], [np.nan] * 3, [np.nan, 0.3, -0.1]]
    np.testing.assert_array_equal(largest(losses, 2), expected)
