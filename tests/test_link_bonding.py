"""HPL and TCP over two links: planted gains come back, their growth is judged, and so is the blog's gain."""

from functools import cache

import numpy as np
import pytest
from shown import words
from synthetic_rails import GAINS, LINKS, hpl_campaign, micro_campaign

import experiment
from analysis.experiments import link_bonding
from runners.record import FalloffError
from runners.tools import hpl


@cache
def planted():
    """The study of both campaigns as they are planted."""
    return link_bonding.analyse(hpl_campaign(), micro_campaign())


def of(**campaign):
    """The study of HPL's campaign alone, with other truths."""
    return link_bonding.analyse(hpl_campaign(**campaign))


def way_of(study, aggregation, ranks=1):
    return next(
        way for way in study.ways if (way.aggregation, way.ranks_per_node) == (aggregation, ranks)
    )


def alike(gain):
    """The same gain on every node count that uses a network, by every way."""
    return {
        way: {n: gain if way != "one_link" and n > 1 else 0.0 for n in (1, 2, 4, 8)}
        for way in GAINS
    }


def test_planted_gains_come_back():
    """Without noise each gain is the planted one, whatever the block's speed; with noise nearly all intervals hold it."""
    held = []
    for exact, noisy in zip(of(blocks=2, noise=0, block_effect=0.2).ways, planted().ways):
        for nodes, gain in GAINS[exact.aggregation].items():
            assert exact.gain(nodes)[0] == pytest.approx(gain, abs=1e-9)
            _, low, high = noisy.gain(nodes)
            held.append(low <= gain <= high)
    assert np.mean(held) > 0.85


def test_growth_is_judged():
    """A gain that grows is told from one that stays."""
    growth = way_of(planted(), "mpi_striping").growth
    low, high = growth.interval
    assert growth.answer == "falls off" and low < 1 - 1.07 / 1.3 < high
    level = of(gains=alike(0.1), noise=0.005)
    assert {way.growth.answer for way in level.ways} == {"flat"}
    assert "does not grow with the nodes" in words(link_bonding, level)
    noisy = of(blocks=3, gains=alike(0.1), noise=0.1)
    assert "undecided" in {way.growth.answer for way in noisy.ways}


def test_one_node_is_the_negative_control():
    """Without a network there is no gain; where there is one all the same the finding says so."""
    assert {way.control.kind for way in planted().ways} == {"holds"}
    gains = {way: {**GAINS[way], 1: 0.2 if way == "mptcp" else 0.0} for way in GAINS}
    wrong = of(gains=gains, noise=0.0001)
    assert way_of(wrong, "mptcp").control.kind == "violated"
    assert "by up to 20.0 %, 2 of 8 ways beyond margin" in words(link_bonding, wrong)


@pytest.mark.parametrize(
    ("campaign", "says", "not_said"),
    [
        ({"noise": 0.001}, "**A second link gives HPL", "is open"),
        ({"blocks": 3, "gains": alike(-0.1)}, "**A second link costs HPL", "does not double"),
        (
            {"blocks": 3, "gains": alike(0.0), "noise": 0.05, "seed": 1},
            "**Whether a second link gives HPL anything on 8 nodes is open**",
            "does not double",
        ),
    ],
)
def test_the_largest_gain_is_said_as_it_is(campaign, says, not_said):
    """A gain, a loss, and one that may be none."""
    text = words(link_bonding, of(**campaign))
    assert says in text and not_said not in text


def test_communication_is_amdahls():
    """Halving a quarter of the time gives the ratio from which that quarter is told; a loss is below none."""
    assert link_bonding.communication(1 / (1 - 0.25 / 2) - 1) == pytest.approx(0.25)
    assert link_bonding.communication(-0.1) < 0


def test_the_blogs_gains_stand_beside_the_largest_here():
    """Which of its two are reached is for the reader, and for the claims."""
    assert link_bonding.published_gains().round(3).to_dict() == {2: 0.058, 4: 0.134}
    text = words(link_bonding, of(gains=alike(0.05), noise=1e-6, block_effect=0))
    assert "give at most 5.0 % on 2 nodes and 5.0 % on 4 nodes" in text


def test_connections_get_the_planted_links():
    """Goodput in links, by way and number of connections."""
    for way, links in LINKS.items():
        found = planted().micro.links["mean"].sel(aggregation=way, streams=list(links))
        np.testing.assert_allclose(found, list(links.values()), rtol=0.02)
    assert "1 TCP connection carries this many links' rate: 1.00 by hash of ad" in words(
        link_bonding, planted()
    )


@pytest.mark.parametrize("preset", ["quick", "full", "bonding"])
def test_the_campaign_is_a_whole_design(preset):
    """The baseline and the fewest nodes are run, grids hold all processes, and a node has the same work with two."""
    plan = experiment.plan_campaign("link_hpl", preset=preset)
    factors = plan.design["factors"]
    assert plan.design["baseline"] in factors["aggregation"]
    assert plan.design["fewest_nodes"] in factors["nodes"] and plan.testbed["rails"] == 2
    for trial in plan.blocks[0]:
        point = trial.point
        assert point["P"] * point["Q"] == point["nodes"] * point["ranks_per_node"]
        assert point["N"] % point["NB"] == 0
        (solver,) = hpl.commands(point)
        assert (solver.ranks, solver.nodes) == (point["P"] * point["Q"], point["nodes"])


@pytest.mark.parametrize("testbed", ["emulated", "smith"])
def test_two_links_are_refused_on_a_testbed_of_one(testbed):
    """It may not run the campaign as if nothing were asked."""
    with pytest.raises(FalloffError, match="needs two links a node"):
        experiment.plan_campaign("link_hpl", testbed)
