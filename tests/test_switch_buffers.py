"""HPL through buffers: only what costs more than the margin is named."""

import numpy as np
import pytest
from executed import answers, executed, words
from synthetic import of_plan

from analysis import planning


def planted_hpl(cost, noise=0.002):
    """HPL at three quarters of the nodes' rate, less the cost [1] of each setup on 36 nodes of
    GigE.
    """
    plan = planning.plan_campaign("switch_buffers_hpl", "", "full", 3)
    random = np.random.default_rng(6)
    node = plan.testbed["node"]

    def readings(point, block):
        is_costly = point["nodes"] == 36 and point["interconnect"] == "gige"
        lost = cost.get(point["setup"], 0.0) if is_costly else 0.0
        share = 0.75 * (1 - lost) * np.exp(random.normal(0, noise))
        flop_s = node["flop_s"] * node["dilation"] / point["dilation"]
        return {
            "hpl_rate": share * point["nodes"] * flop_s / 1e9,
            "bytes_sent": np.full(36, 1e12),
            "port_most_queued": np.full(36, 4554.0),
            "port_frames": np.full(36, 3000.0),
            "port_drops": np.full(36, 1000.0),
            "port_pauses": np.full(36, 1000.0),
        }

    return of_plan(plan, readings)


def test_only_a_buffer_that_costs_more_than_the_margin_is_named():
    """A tenth through two frames of GigE, nothing elsewhere; without an effect, and with much
    scatter.
    """
    made = executed("57", switch_buffers_hpl=planted_hpl({"2 frames": 0.10}))
    named = [one for one in made.statements if one.words == "yes"]
    assert [one.primary for one in named] == [True] and "a buffer of 2 frames" in named[0].subject
    assert named[0].estimate == pytest.approx(0.1, abs=0.01)
    text = words(made)
    assert "3 full frames" in text and "250000 of a million" in text  # of those that came in
    (claim,) = (one for one in made.stated if one.name == "without_congestion")
    assert claim.estimate == pytest.approx(1, abs=0.01)
    none = executed("57", switch_buffers_hpl=planted_hpl({}))
    assert {one.words for one in none.statements if one.quantity == "loss"} == {"no"}
    wide = executed("57", switch_buffers_hpl=planted_hpl({}, noise=0.1))
    assert "undecided" in answers(wide)


def planted_programs(cost, noise=0.002):
    """A transpose that takes longer by the cost [1] of each setup on GigE, and a stencil that does
    not.
    """
    plan = planning.plan_campaign("switch_buffers_programs", "", "full", 3)
    random = np.random.default_rng(7)

    def readings(point, block):
        is_costly = point["program"] == "transpose" and point["interconnect"] == "gige"
        longer = 1 / (1 - (cost.get(point["setup"], 0.0) if is_costly else 0.0))
        return {"program_time": longer * np.exp(random.normal(0, noise))}

    return of_plan(plan, readings)


def test_other_programs_are_judged_beside_hpl():
    """A transpose loses a third through 16 KiB of GigE, and nothing else loses."""
    made = executed(
        "57",
        switch_buffers_hpl=planted_hpl({}),
        switch_buffers_programs=planted_programs({"16 KiB": 0.33}),
    )
    (named,) = (one for one in made.statements if one.words == "yes")
    assert named.subject.startswith("A transpose on 8 nodes of GigE") and named.primary
    assert named.estimate == pytest.approx(0.33, abs=0.02)
    others = [one for one in made.statements if not one.subject.startswith("HPL")]
    assert len(others) == 12 and "switch_buffers_programs" in made.figures
