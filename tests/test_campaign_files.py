"""What every shipped campaign promises: HPL's problems, TCP's paths, on the tools that are built
here.
"""

from functools import cache

import pytest
from marks import the_rest_is_long

from analysis import paths, planning
from analysis.descriptions import campaigns
from analysis.statistics import design
from runners.records.plan import WITHOUT_MESSAGES
from runners.testbeds.graph import graph
from runners.tools import tool_named

NAMES = sorted(file.stem for file in paths.CAMPAIGNS.glob("*.toml"))
# Their orders are the paper's, which are no multiples of the blocks.
SIMULATED = (
    "hpl_paper_simulated",
    "hpl_paper_rdma",
    "scale_model_chain",
    "hpl_paper_sensitivity",
    "hpl_larger",
    "hpl_agreement",
    "oversubscription_hpl",
)
HPL = [
    name
    for name in NAMES
    if name.startswith(("hpl_", "scale_model_"))
    or name in ("oversubscription_hpl", "switch_buffers_hpl")
]


@cache
def plan_of(name, preset="full"):
    """A campaign on the testbed that it is for."""
    return planning.plan_campaign(name, preset=preset)


def points(name):
    """The points of a campaign's first block."""
    return [trial.point for trial in plan_of(name).blocks[0] if trial.role == "point"]


# Reading 15 recordings takes ten seconds; `program_replay` has the same tool and three.
RECORDED = {"replay_others", "program_others_replayed", "program_others_openmpi"}


@pytest.mark.parametrize("name", the_rest_is_long(NAMES, {*NAMES} - RECORDED))
def test_resolves_to_commands_for_its_testbed(name):
    """Every trial of every preset becomes commands, none of which needs a node too many."""
    presets = campaigns.read(name).presets
    assert {"quick", "full"} <= set(presets)
    for preset in presets:
        plan = plan_of(name, preset)
        for trial in plan.trials():
            commands = tool_named(trial.runner).commands(trial.point)
            assert max(command.nodes for command in commands) <= plan.testbed["nodes"]


@pytest.mark.parametrize("name", HPL)
def test_hpl_compares_levels_that_it_has_on_whole_grids(name):
    """P x Q is the number of nodes, N a multiple of NB unless it is the paper's; contrast and
    control are levels.
    """
    for point in points(name):
        assert point["P"] * point["Q"] == point["nodes"]
        assert point["N"] % point["NB"] == 0 or name in SIMULATED
    rules, factors = design.design_from(plan_of(name).design), plan_of(name).design["factors"]
    levels, nodes = factors[rules.compared if rules.primary else "nodes"], factors["nodes"]
    compared = {level for it in rules.primary for level in (it.of, it.against)}
    assert compared <= {WITHOUT_MESSAGES, *levels}
    assert {node for it in rules.primary for node in (it.start, it.end)} <= set(nodes)
    assert rules.control is None or rules.control in levels


def test_the_hpl_campaigns_run_the_same_hpl():
    """One algorithm on the scale model, emulated and simulated, so that a number of one campaign
    means the same in another.
    """
    algorithm = "NB PMAP PFACT NBMIN NDIV RFACT BCAST DEPTH SWAP L1 U".split()
    models = ("scale_model", "fortinet_model")
    there = [name for name in HPL if plan_of(name).testbed["name"].startswith(models)]
    assert {"hpl_scaling", "hpl_paper_emulated", "scale_model_dilation", "hpl_agreement"} <= set(
        there
    )
    assert len({tuple(points(name)[0][key] for key in algorithm) for name in there}) == 1
    for point in points("hpl_scaling"):  # the paper's orders over 64: as the root of the nodes
        assert abs(point["N"] / (665 * point["nodes"] ** 0.5) - 1) < 0.05


def test_tcp_runs_between_nodes_of_its_path():
    """iperf3 drops fractions of seconds; the nodes are on every path; and no host has a larger MTU
    than a silent switch lets pass: TCP would stall there. Only frame_size_limit looks for that."""
    found = {name: [point for point in points(name) if "path" in point] for name in NAMES}
    assert sum(map(bool, found.values())) > 5
    for name, on_paths in found.items():
        interconnects = plan_of(name).interconnects if on_paths else {}
        for point in on_paths:
            times = [point.get("duration_s", 0), point.get("omit_s", 0)]
            assert all(isinstance(seconds, int) for seconds in times), name
            path = interconnects[point["path"]]
            assert _ends(point) <= set(graph(path).nodes), name
            least = min(path.get("switches", {}).values(), default=float("inf"))
            assert name == "frame_size_limit" or point.get("mtu", 0) <= least, name


def _ends(point):
    """The nodes that a point names: a sender and its receiver, or the pairs that exchange
    tokens.
    """
    if "producers" in point:
        return {int(node) for role in ("producers", "consumers") for node in point[role].split(",")}
    return {point["sender"], point.get("receiver", point["sender"])}
