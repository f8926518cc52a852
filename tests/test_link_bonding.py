"""HPL and TCP over two links: planted gains come back, their growth is judged, and the blog's gains
are drawn beside them.
"""

from functools import cache

import numpy as np
import pytest
from executed import executed, stated, words
from shown import failed
from synthetic_rails import GAINS, LINKS, hpl_campaign, micro_campaign

from analysis import planning
from runners.records.record import FalloffError
from runners.tools import hpl

FALLS = "HPL over one link falls behind two from 2 to 8 nodes"


def run(hpl=None, tcp=None):
    """The notebook on HPL's campaign, and on that of TCP if it is given."""
    given = {"link_bonding_hpl": hpl_campaign() if hpl is None else hpl}
    return executed("30", **given | ({} if tcp is None else {"link_bonding_tcp": tcp}))


@cache
def planted():
    """The notebook on both campaigns as they are planted."""
    return run(tcp=micro_campaign())


def of(**campaign):
    """The notebook on HPL's campaign alone, with other truths."""
    return run(hpl_campaign(**campaign))


def alike(gain):
    """The same gain on every node count that uses a network, by every way."""
    return {
        way: {n: gain if way != "one_link" and n > 1 else 0.0 for n in (1, 2, 4, 8)}
        for way in GAINS
    }


def growths(made):
    """The statements on how the gains grow."""
    return [one for one in made.statements if one.subject.startswith(FALLS)]


def test_planted_gains_come_back():
    """Without noise each gain is the planted one, whatever the block's speed; with noise nearly all
    intervals hold it.
    """
    exact, noisy = of(blocks=2, noise=0, block_effect=0.2).names["gains"], planted().names["gains"]
    held = []
    for way, by_nodes in GAINS.items():
        if way != "one_link":
            for nodes, gain in by_nodes.items():
                at = {"aggregation": way, "nodes": nodes}
                np.testing.assert_allclose(exact.ratio.sel(at), 1 + gain, atol=1e-9)
                ends = noisy.sel(at)
                held += ((ends.low <= 1 + gain) & (1 + gain <= ends.high)).values.tolist()
    assert np.mean(held) > 0.85


def test_the_largest_gain_is_primary():
    """MPI striping gains most on 8 nodes, with either number of processes; the statement says that
    it was picked.
    """
    largest = stated(planted(), "A second link speeds up HPL on 8 nodes (best of 8 gains)")
    assert largest.primary and largest.words == "yes" and largest.n == 8
    assert largest.estimate == pytest.approx(0.3, abs=0.02)
    assert "The largest gain is by MPI striping with" in words(planted())
    (growth,) = (one for one in growths(planted()) if one.primary)
    assert growth.subject == FALLS and growth.words == "falls off"
    low, high = growth.interval
    assert low < 1 - 1.07 / 1.3 < high


def test_growth_is_judged():
    """A gain that stays is told from one that grows, and scatter decides nothing."""
    level = of(gains=alike(0.1), noise=0.005)
    assert len(growths(level)) == 8 and {one.words for one in growths(level)} == {"flat"}
    assert "undecided" in {one.words for one in growths(of(blocks=3, gains=alike(0.1), noise=0.1))}


def test_one_node_is_the_negative_control():
    """Without a network there is no gain; where there is one all the same it is told."""
    assert "0 of 8 ways differ" in words(planted())
    gains = {way: {**GAINS[way], 1: 0.2 if way == "mptcp" else 0.0} for way in GAINS}
    assert "2 of 8 ways differ" in words(of(gains=gains, noise=0.0001))


@pytest.mark.parametrize(
    ("campaign", "answer"),
    [
        ({"noise": 0.001}, "yes"),
        ({"blocks": 3, "gains": alike(-0.1)}, "no"),
        ({"blocks": 3, "gains": alike(0.0), "noise": 0.05, "seed": 1}, "undecided"),
    ],
)
def test_the_largest_gain_is_answered_as_it_is(campaign, answer):
    """A gain, a loss, and one that may be none."""
    assert stated(of(**campaign), "A second link speeds up HPL on 8 nodes (best").answer == answer


def test_connections_get_the_planted_links():
    """Goodput in links, by way and number of connections; without that campaign nothing is said of
    them.
    """
    for way, links in LINKS.items():
        for streams, truth in links.items():
            plural = "" if streams == 1 else "s"
            subject = (
                f"{streams} TCP connection{plural} can fill this many links: "
                f"{planted().names['titles'][way]}"
            )
            assert stated(planted(), subject).estimate == pytest.approx(truth, rel=0.02)
    assert {one.campaign for one in of(blocks=2).statements} == {"link_bonding_hpl"}


def test_the_figure_shows_every_block():
    """Each gain is a mark in the panel of its processes, beside the blog's."""
    gains = 100 * np.expm1(planted().names["log_gain"])
    panels = planted().figures["link_bonding"].figure.axes
    for axes, ranks in zip(panels, gains.ranks_per_node.values, strict=True):
        drawn = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
        wanted = [*gains.sel(ranks_per_node=ranks).values.ravel(), 5.8]
        assert all(np.isclose(drawn, value, rtol=1e-6, atol=0.05).any() for value in wanted)


def test_lost_trials_leave_statements_without_numbers():
    """Nothing is judged, and nothing is made up; one block gives no answer."""
    made = run(*(failed(each, "no library") for each in (hpl_campaign(2), micro_campaign(2))))
    assert {one.estimate for one in made.statements} == {None} and "no library" in words(made)
    first = run(hpl_campaign(1), micro_campaign(1))
    assert {one.interval for one in first.statements} == {None} and words(first)
    assert {one.answer for one in first.statements} <= {"", "undecided"}


@pytest.mark.parametrize("preset", ["quick", "full", "bonding"])
def test_the_campaign_is_a_whole_design(preset):
    """The baseline and the fewest nodes are run, grids hold all processes, and a node has the same
    work with two.
    """
    plan = planning.plan_campaign("link_bonding_hpl", preset=preset)
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
        planning.plan_campaign("link_bonding_hpl", testbed)
