"""Campaign descriptions become the trials they mean, the same ones every time."""

import copy
from collections import Counter

import pytest
from campaigns import CAMPAIGN, INTERCONNECTS, TESTBED, small_plan
from hypothesis import given
from hypothesis import strategies as st

from runners.description import for_testbed
from runners.plan import plan_from_json, plan_to_json, resolve, with_blocks
from runners.record import FalloffError


@given(seed=st.integers(0, 10**9), blocks=st.integers(1, 5))
def test_a_block_is_one_trial_of_every_point(seed, blocks):
    """Whatever the seed, each block holds each of the six points exactly once."""
    plan = small_plan(seed=seed, stopping={"blocks": blocks})
    assert len(plan.blocks) == blocks
    for block in plan.blocks:
        assert [t.role for t in block] == ["point"] * 6
        counts = Counter((t.point["interconnect"], t.point["nodes"]) for t in block)
        assert set(counts.values()) == {1} and len(counts) == 6


def test_without_looks_more_blocks_keep_the_digest_and_the_first_blocks():
    """A campaign can be extended: what is there stays valid."""
    plan = small_plan()
    longer = with_blocks(plan, CAMPAIGN, 8)
    assert longer.digest == plan.digest
    assert longer.blocks[:3] == plan.blocks and len(longer.blocks) == 8


STATEMENTS = [
    {"networks": ["gige", "10gige"], "from": 1, "to": 4, "expected": "falls off"},
    {"networks": ["10gige", "gige"], "from": 2, "to": 4, "expected": "flat"},
]
SEQUENTIAL = {
    "design": {"margin": 0.05, "negative_control": 1, "primary": STATEMENTS},
    "stopping": {"blocks": 6, "looks": [2, 4, 6], "one_sided": 0.02},
    "presets": {
        "quick": {"blocks": 2, "looks": [2], "one_sided": 0.04, "factors": {"nodes": [2, 4]}}
    },
}


def test_looks_are_part_of_the_plan_and_of_its_digest():
    """Another look, level or number of blocks is another campaign: none goes on after its end was seen."""
    plan = small_plan(**SEQUENTIAL)
    assert (
        plan.stopping.looks == (2, 4, 6)
        and plan.design["looks"] == [2, 4, 6]
        and plan.design["one_sided"] == 0.02
    )
    assert plan_from_json(plan_to_json(plan)) == plan
    digests = {plan.digest, with_blocks(plan, {**CAMPAIGN, **SEQUENTIAL}, 6).digest}
    for change in ({"looks": [2, 6]}, {"one_sided": 0.05}, {"blocks": 8}):
        digests.add(
            small_plan(**{**SEQUENTIAL, "stopping": {**SEQUENTIAL["stopping"], **change}}).digest
        )
    assert len(digests) == 5


@pytest.mark.parametrize(
    ("design", "stopping", "said"),
    [
        ({"primary": [{"networks": ["gige"], "from": 1, "to": 4}]}, {}, "needs two networks"),
        (
            {"primary": [{"networks": ["gige", "10gige"], "from": 4, "to": 1}]},
            {},
            "fewer nodes in 'from'",
        ),
        ({"primary": [{"networks": ["gige", "10gige"], "to": 4}]}, {}, "lacks 'from'"),
        (
            {"primary": [{**STATEMENTS[0], "expected": "fals off"}]},
            {},
            "there are falls off, flat, rises",
        ),
        ({}, {"looks": [4, 2]}, "looks that ascend"),
        ({}, {"looks": [1, 2]}, "looks that ascend from 2"),
        ({}, {"looks": [2, 9]}, "to its 6 blocks"),
        ({}, {"one_sided": 0.5}, "stopping.one_sided = 0.5 must be"),
        ({}, {"precision": 0.02}, "stopping.precision is unknown; there are blocks, "),
    ],
)
def test_a_slip_in_statements_and_looks_is_named(design, stopping, said):
    """What would be tested otherwise than it was meant is refused."""
    changed = {
        "design": {**SEQUENTIAL["design"], **design},
        "stopping": {**SEQUENTIAL["stopping"], **stopping},
        "presets": {},
    }
    with pytest.raises(FalloffError) as refusal:
        small_plan(**changed)
    assert said in str(refusal.value)


def test_trials_of_a_level_can_follow_each_other():
    """Node counts in random order, at each of them the networks one after another."""
    orders = set()
    for block in small_plan(grouped_by="nodes", stopping={"blocks": 8}).blocks:
        nodes = [trial.point["nodes"] for trial in block]
        assert nodes[::2] == nodes[1::2] and sorted(nodes) == [1, 1, 2, 2, 4, 4]
        orders.add((tuple(nodes), tuple(trial.point["interconnect"] for trial in block)))
    assert len({nodes for nodes, _ in orders}) > 1 and len({networks for _, networks in orders}) > 1


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 8},
        {"settings": {"say": "3.6", "seconds": "0"}},
        {"factors": {"interconnect": ["gige", "10gige"], "nodes": [1, 2]}},
        {"design": {**CAMPAIGN["design"], "margin": 0.1}},
    ],
)
def test_what_changes_the_trials_changes_the_digest(change):
    """Another seed, setting, level or margin is another campaign."""
    assert small_plan(**change).digest != small_plan().digest


def test_the_testbed_is_part_of_the_digest_and_names_and_sources_are_not():
    """A changed testbed or link does not mix with the old one; a better source may be given at any time."""
    digest, gige = small_plan().digest, INTERCONNECTS["gige"]
    faster = {**INTERCONNECTS, "gige": {"rate_bit_s": 2e9}}
    renamed = {**INTERCONNECTS, "gige": {**gige, "name": "Gigabit", "source": "elsewhere"}}
    assert resolve(CAMPAIGN, TESTBED, faster).digest != digest
    assert resolve(CAMPAIGN, {**TESTBED, "nodes": 8}, INTERCONNECTS).digest != digest
    assert resolve(CAMPAIGN, TESTBED, renamed).digest == digest


def test_all_faults_are_named_at_once():
    """A description with several faults is refused with all of them and the known names."""
    broken = copy.deepcopy(CAMPAIGN)
    broken["factors"] = {"interconnect": ["gige", "myrinet"], "nodes": [1, 64]}
    broken["stopping"] = {"blocks": 0, "patience": 3}
    with pytest.raises(FalloffError) as refusal:
        resolve(broken, TESTBED, INTERCONNECTS)
    for part in ("myrinet", "64 nodes", "blocks", "patience", "gige, 10gige"):
        assert part in str(refusal.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"factors": {"interconnect": ["gige"], "nodes": []}},
            "must be a list of distinct levels",
        ),
        (
            {"factors": {"interconnect": ["gige"], "nodes": [1, 1]}},
            "must be a list of distinct levels",
        ),
        (
            {"factors": {"interconnect": ["gige"], "nodes": 4}},
            "must be a list of distinct levels",
        ),
        ({"levels": {"node": {"1": {"N": 100}}}}, "levels.node is there, but 'node' is no factor"),
        (
            {"levels": {"nodes": {"1": {"N": 100}, "02": {"N": 140}, "4": {}}}},
            "does not say what 2 entails",
        ),
        ({"grouped_by": "node"}, "grouped_by = 'node' is no factor"),
        ({"warm_up": [{"interconnect": "gige", "nodes": 3}]}, "warm_up: no point is like"),
    ],
)
def test_a_slip_in_factors_and_levels_is_named(change, said):
    """What would otherwise leave out points or settings without a word is refused."""
    with pytest.raises(FalloffError) as refusal:
        resolve({**copy.deepcopy(CAMPAIGN), **change}, TESTBED, INTERCONNECTS)
    assert said in str(refusal.value)


def test_two_factors_together_entail_settings():
    """A table named after two factors speaks of their combinations, and has to know them all."""
    factors = {"interconnect": ["gige"], "nodes": [2, 4], "grid": ["row", "square"]}
    both = {"2 row": {"P": 1}, "2 square": {"P": 1}, "4 row": {"P": 1}, "4 square": {"P": 2}}
    plan = small_plan(factors=factors, levels={"nodes grid": both})
    points = [t.point for t in plan.blocks[0] if t.role == "point"]
    assert {(p["nodes"], p["grid"]): p["P"] for p in points} == {
        (2, "row"): 1, (2, "square"): 1, (4, "row"): 1, (4, "square"): 2
    }  # fmt: skip
    del both["4 row"]
    with pytest.raises(FalloffError, match="levels.nodes grid does not say what 4 row entails"):
        small_plan(factors=factors, levels={"nodes grid": both})


def test_a_testbed_with_fewer_networks_runs_on_those():
    """A campaign's interconnects are those that the testbed has; with none of them it is refused in words."""
    one = for_testbed(CAMPAIGN, {**TESTBED, "interconnects": ["10gige"]})
    points = resolve(one, TESTBED, INTERCONNECTS).blocks[0]
    assert {t.point["interconnect"] for t in points if t.role == "point"} == {"10gige"}
    assert CAMPAIGN["factors"]["interconnect"] == ["gige", "10gige"]
    with pytest.raises(FalloffError, match="testbed local has no interconnect gige or 10gige"):
        resolve(CAMPAIGN, {**TESTBED, "interconnects": ["myrinet"]}, INTERCONNECTS)
