"""Campaign descriptions become the trials they mean, the same ones every time, on what a testbed
has.
"""

import math
import re
from collections import Counter

import pytest
from campaigns import CAMPAIGN, INTERCONNECTS, TESTBED, small_plan
from hypothesis import given
from hypothesis import strategies as st

from analysis.descriptions import testbeds
from analysis.descriptions.adaptation import for_testbed, problem
from analysis.descriptions.campaigns import checked
from analysis.descriptions.resolution import resolve, with_blocks
from runners.records.plan import plan_from_json, plan_to_json
from runners.records.record import FalloffError


@given(seed=st.integers(0, 10**9), blocks=st.integers(1, 5))
def test_a_block_is_one_trial_of_every_point(seed, blocks):
    """Whatever the seed, each block holds each of the six points exactly once; grouped, levels
    follow each other.
    """
    plan = small_plan(seed=seed, stopping={"blocks": blocks})
    grouped = small_plan(seed=seed, stopping={"blocks": blocks}, grouped_by="nodes")
    assert len(plan.blocks) == blocks
    for block in (*plan.blocks, *grouped.blocks):
        assert [t.role for t in block] == ["point"] * 6
        counts = Counter((t.point["interconnect"], t.point["nodes"]) for t in block)
        assert set(counts.values()) == {1} and len(counts) == 6
    for block in grouped.blocks:
        nodes = [trial.point["nodes"] for trial in block]
        assert nodes[::2] == nodes[1::2]


def test_the_order_of_trials_is_drawn_anew_in_each_block():
    """With groups too: of the groups, and within them."""
    for changes in ({}, {"grouped_by": "nodes"}):
        blocks = small_plan(stopping={"blocks": 8}, **changes).blocks
        for factor in ("nodes", "interconnect"):
            assert len({tuple(t.point[factor] for t in block) for block in blocks}) > 1


STATEMENTS = [
    {"networks": ["gige", "10gige"], "from": 1, "to": 4, "expected": "falls off"},
    {"networks": ["10gige", "gige"], "from": 2, "to": 4, "expected": "flat"},
]
SEQUENTIAL = {
    "design": {"margin": 0.05, "negative_control": 1, "primary": STATEMENTS},
    "stopping": {"blocks": 6, "looks": [2, 4, 6], "one_sided": 0.02},
    "presets": {},
}


def test_what_can_end_a_campaign_is_part_of_its_digest():
    """Without looks more blocks follow the first ones; another look, level or number of blocks is
    another campaign.
    """
    longer = with_blocks(small_plan(), checked(CAMPAIGN), 8)
    assert longer.digest == small_plan().digest and len(longer.blocks) == 8
    assert longer.blocks[:3] == small_plan().blocks
    plan = small_plan(**SEQUENTIAL)
    assert plan_from_json(plan_to_json(plan)) == plan
    assert plan.stopping.looks == (2, 4, 6)
    assert (plan.design["looks"], plan.design["one_sided"]) == ([2, 4, 6], 0.02)
    digests = {plan.digest, with_blocks(plan, checked({**CAMPAIGN, **SEQUENTIAL}), 6).digest}
    for change in ({"looks": [2, 6]}, {"one_sided": 0.05}, {"blocks": 8}):
        stopping = {**SEQUENTIAL["stopping"], **change}
        digests.add(small_plan(**{**SEQUENTIAL, "stopping": stopping}).digest)
    assert len(digests) == 5


def test_what_changes_the_trials_changes_the_digest():
    """Seed, settings, levels, margin, testbed and links; names and sources may be given at any
    time.
    """
    digest, gige = small_plan().digest, INTERCONNECTS["gige"]
    for change in (
        {"seed": 8},
        {"settings": {"say": "3.6", "seconds": "0"}},
        {"factors": {"interconnect": ["gige", "10gige"], "nodes": [1, 2]}},
        {"design": {**CAMPAIGN["design"], "margin": 0.1}},
    ):
        assert small_plan(**change).digest != digest
    faster = {**INTERCONNECTS, "gige": {"rate_bit_s": 2e9}}
    renamed = {**INTERCONNECTS, "gige": {**gige, "name": "Gigabit", "source": "elsewhere"}}
    campaign = checked(CAMPAIGN)
    assert resolve(campaign, TESTBED, faster).digest != digest
    assert resolve(campaign, TESTBED.changed(nodes=8), INTERCONNECTS).digest != digest
    assert resolve(campaign, TESTBED, renamed).digest == digest


def test_all_faults_are_named_at_once():
    """A file with several faults, or a campaign and a testbed that do not fit, is refused with all
    of them.
    """
    factors = {"interconnect": ["gige", "myrinet"], "nodes": [1, 64]}
    for changes, parts in (
        ({"stopping": {"blocks": 0, "patience": 3}}, ("blocks", "patience")),
        ({"factors": factors, "levels": {}, "design": {}}, ("myrinet", "64 nodes", "gige, 10gige")),
    ):
        with pytest.raises(FalloffError) as refusal:
            small_plan(**changes)
        assert all(part in str(refusal.value) for part in parts)


@pytest.mark.parametrize(
    ("design", "fault"),
    [
        ({"primary": ["gige"]}, "two levels"),
        ({"primary": ["gige", "10gige", "gige"]}, "two levels"),
        ({"primary": ["gige", "myrinet"]}, "'myrinet' must be among gige, 10gige"),
        ({"primary": ["gige", "10gige"], "control": "none"}, "control = 'none'"),
        ({"baseline": {"nodes": 3}}, "baseline = 3"),
        ({"baseline": "fast"}, "baseline = 'fast'"),
        ({"changes": {"fast": {"interconnect": "myrinet"}}}, "changes = 'myrinet'"),
        ({"baseline_nodes": 64}, "baseline_nodes = 64"),
        ({"negative_control": 64}, "negative_control = 64"),
        ({"compared": "nodes", "primary": ["gige", "10gige"]}, "'gige' must be among"),
    ],
)
def test_a_design_speaks_of_the_campaigns_own_levels(design, fault):
    """What no trial can have is refused before the first one; every shipped design passes."""
    with pytest.raises(FalloffError, match=re.escape(fault)):
        small_plan(design=design)
    with pytest.raises(FalloffError, match=r"presets\.short\.design"):
        small_plan(presets={"short": {"design": design}})


def stated(**changes):
    """A change of the first statement."""
    return {**SEQUENTIAL, "design": {"margin": 0.05, "primary": [{**STATEMENTS[0], **changes}]}}


def stopped(**changes):
    """A change of the stopping rule."""
    return {**SEQUENTIAL, "stopping": {**SEQUENTIAL["stopping"], **changes}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (stated(networks=["gige"]), "design.primary[1].networks = ['gige'] must be two"),
        (stated(**{"from": 4, "to": 1}), "design.primary[1]: from = 4"),
        (stated(expected="fals off"), "design.primary[1].expected = 'fals off'"),
        (stopped(looks=[4, 2]), "looks that ascend"),
        (stopped(looks=[1, 2]), "looks that ascend from 2"),
        (stopped(looks=[2, 9]), "stopping.looks = [2, 9]"),
        (stopped(one_sided=0.5), "stopping.one_sided = 0.5 must be"),
        ({"factors": {"interconnect": ["gige"], "nodes": []}}, "a list of distinct levels"),
        ({"factors": {"interconnect": ["gige"], "nodes": [1, 1]}}, "a list of distinct levels"),
        ({"factors": {"interconnect": ["gige"], "nodes": 4}}, "a list of distinct levels"),
        ({"levels": {"node": {"1": {"N": 100}}}}, "levels.node is there, but 'node' is no factor"),
        ({"levels": {"nodes": {"1": {}, "02": {}, "4": {}}}}, "does not say what 2 entails"),
        ({"levels": {"nodes interconnect": {}}}, "does not say what 1 gige entails"),
        ({"grouped_by": "node"}, "grouped_by = 'node' is no factor"),
        ({"warm_up": [{"interconnect": "gige", "nodes": 3}]}, "warm_up: no point is like"),
    ],
)
def test_a_slip_is_named(change, said):
    """What would leave out points or settings without a word, or test otherwise than was meant, is
    refused.
    """
    with pytest.raises(FalloffError) as refusal:
        small_plan(**change)
    assert said in str(refusal.value)


def test_two_factors_together_entail_settings():
    """A table named after two factors speaks of their combinations."""
    factors = {"interconnect": ["gige"], "nodes": [2, 4], "grid": ["row", "square"]}
    both = {"2 row": {"P": 1}, "2 square": {"P": 1}, "4 row": {"P": 1}, "4 square": {"P": 2}}
    plan = small_plan(factors=factors, levels={"nodes grid": both}, design={})
    points = [trial.point for trial in plan.blocks[0]]
    assert {f"{p['nodes']} {p['grid']}": {"P": p["P"]} for p in points} == both


ON_CLUSTER = {
    "name": "small",
    "title": "A small campaign",
    "runner": "hpl",
    "seed": 7,
    "factors": {"interconnect": ["gige", "10gige", "unshaped"], "nodes": [1, 2, 4, 8]},
    "levels": {"nodes": {str(n): {"P": 1, "Q": n, "N": 64 * n} for n in (1, 2, 4, 8)}},
    "settings": {"NB": 64},
    "survey": [{"runner": "ping", "links": [[1, 2], [2, 3], [8, 1]]}],
    "warm_up": [{"interconnect": "gige", "nodes": 2}, {"interconnect": "gige", "nodes": 8}],
    "design": {"primary": ["gige", "10gige"], "control": "unshaped", "baseline_nodes": 2},
    "stopping": {"blocks": 1},
}
NETWORKS = {"gige": {"rate_bit_s": 1e9}, "10gige": {"rate_bit_s": 1e10}}
OTHERS = {"roce": {"rate_bit_s": 1e11}, "tcp": {"rate_bit_s": 2.5e10}, "unknown": {}}


def cluster(networks=NETWORKS):
    """A cluster of four nodes."""
    found = {name: {"interface": f"eth-{name}", **network} for name, network in networks.items()}
    described = {"launcher": "slurm", "nodes": 4, "networks": found}
    return testbeds.checked({"name": "mine", "kind": "cluster", **described}).complete()


def test_no_trial_needs_what_a_cluster_lacks():
    """Neither nodes nor networks, in no role; and all that is there takes part."""
    mine = cluster()
    trials = resolve(for_testbed(checked(ON_CLUSTER), mine), mine, NETWORKS).trials()
    assert {trial.role for trial in trials} == {"survey", "warm_up", "point"}
    assert {trial.point["interconnect"] for trial in trials} == set(NETWORKS)
    assert max(trial.point.get("nodes", 1) for trial in trials) == 4
    surveyed = [trial.point for trial in trials if trial.role == "survey"]
    assert {(point["sender"], point["receiver"]) for point in surveyed} == {(1, 2), (2, 3)}
    with pytest.raises(FalloffError, match="testbed local has no interconnect gige or 10gige"):
        resolve(checked(CAMPAIGN), TESTBED.changed(interconnects=["myrinet"]), INTERCONNECTS)


def test_what_is_compared_is_there():
    """The campaign's own networks up to the nodes that are there; else the slowest against the
    fastest.
    """
    own = for_testbed(checked(ON_CLUSTER), cluster()).design
    assert own.primary == ["gige", "10gige"] and own.control == "10gige"
    assert for_testbed(checked(ON_CLUSTER), cluster(OTHERS)).design.primary == ["tcp", "roce"]
    statements = [
        {"networks": ["gige", "10gige"], "from": 2, "to": 8, "expected": "falls off"},
        {"networks": ["10gige", "unshaped"], "from": 2, "to": 8, "expected": "flat"},
        {"networks": ["gige", "10gige"], "from": 8, "to": 16, "expected": "flat"},
    ]
    design = {"margin": 0.05, "primary": statements, "baseline_nodes": 2}

    def primary(networks):
        described = for_testbed(checked({**ON_CLUSTER, "design": design}), cluster(networks))
        return [one.plain() for one in described.design.primary]

    assert primary(NETWORKS) == [{**statements[0], "to": 4}]
    assert primary(OTHERS) == [{**statements[0], "networks": ["tcp", "roce"], "to": 4}]
    assert primary({"roce": {"rate_bit_s": 1e11}}) == []


@given(st.integers(1, 200), st.integers(1, 64), st.floats(1e6, 1e12), st.integers(16, 512))
def test_a_problem_fits(nodes, each, filled, block):
    """The grid has just the processes, no more rows than columns; the matrix fits, and one more
    block would not.
    """
    found = problem(nodes, each, filled, block)
    assert found["P"] * found["Q"] == nodes * each and found["P"] <= found["Q"]
    assert found["N"] % block == 0
    assert 8 * found["N"] ** 2 <= nodes * filled < 8 * (found["N"] + block) ** 2
    rows = range(found["P"] + 1, math.isqrt(nodes * each) + 1)
    assert not any(nodes * each % number == 0 for number in rows)
