"""A campaign for a user's own cluster: cut or grown to the nodes and networks that are there."""

import math

from hypothesis import given
from hypothesis import strategies as st

from runners import description
from runners.description import for_testbed
from runners.plan import resolve

CAMPAIGN = {
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


def mine(networks=NETWORKS, **further):
    """A cluster of four nodes."""
    described = {"networks": networks, "interconnects": list(networks)}
    return {"name": "mine", "kind": "cluster", "nodes": 4, **described, **further}


def plan(cluster):
    """The campaign resolved for it."""
    known = {"gige": {}, "10gige": {}, "unshaped": {}, **cluster["networks"]}
    return resolve(for_testbed(CAMPAIGN, cluster), cluster, known)


def test_no_trial_needs_what_is_not_there():
    """Neither nodes nor networks, in no role; and all that is there takes part."""
    trials = plan(mine()).trials()
    assert {trial.role for trial in trials} == {"survey", "warm_up", "point"}
    assert {trial.point["interconnect"] for trial in trials} == set(NETWORKS)
    assert max(trial.point.get("nodes", 1) for trial in trials) == 4
    surveyed = [trial.point for trial in trials if trial.role == "survey"]
    assert {(point["sender"], point["receiver"]) for point in surveyed} == {(1, 2), (2, 3)}


def test_the_contrast_is_of_networks_that_are_there():
    """The campaign's own, with the one compared with for a control; else the slowest against the fastest."""
    assert plan(mine()).design["primary"] == ["gige", "10gige"]
    assert plan(mine()).design["control"] == "10gige"
    others = {"roce": {"rate_bit_s": 1e11}, "tcp": {"rate_bit_s": 2.5e10}, "unknown": {}}
    assert plan(mine(others)).design["primary"] == ["tcp", "roce"]


def test_statements_are_on_what_is_there():
    """Those on networks that are there, up to the nodes that are; else the first on the slowest and the fastest."""
    statements = [
        {"networks": ["gige", "10gige"], "from": 2, "to": 8, "expected": "falls off"},
        {"networks": ["10gige", "unshaped"], "from": 2, "to": 8, "expected": "flat"},
        {"networks": ["gige", "10gige"], "from": 8, "to": 16, "expected": "flat"},
    ]
    campaign = {**CAMPAIGN, "design": {"margin": 0.05, "primary": statements, "baseline_nodes": 2}}

    def primary(cluster):
        return for_testbed(campaign, cluster)["design"]["primary"]

    assert primary(mine()) == [{**statements[0], "to": 4}]
    others = mine({"roce": {"rate_bit_s": 1e11}, "tcp": {"rate_bit_s": 2.5e10}})
    assert primary(others) == [{**statements[0], "networks": ["tcp", "roce"], "to": 4}]
    assert primary(mine({"roce": {"rate_bit_s": 1e11}})) == []


@given(st.integers(1, 200), st.integers(1, 64), st.floats(1e6, 1e12), st.integers(16, 512))
def test_a_problem_fits(nodes, each, filled, block):
    """The grid has just the processes, no more rows than columns; the matrix fits, and one more block would not."""
    found = description.problem(nodes, each, filled, block)
    assert found["P"] * found["Q"] == nodes * each and found["P"] <= found["Q"]
    assert found["N"] % block == 0
    assert 8 * found["N"] ** 2 <= nodes * filled < 8 * (found["N"] + block) ** 2
    assert not any(
        nodes * each % rows == 0 for rows in range(found["P"] + 1, math.isqrt(nodes * each) + 1)
    )
