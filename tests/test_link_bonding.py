"""HPL over two links: planted gains come back, their growth is judged, and a run on one link is shown as such."""

import re
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_paths import without
from synthetic_rails import GAINS, LESSER, LINKS, hpl_campaign, micro_campaign

import experiment
from analysis import exhibit
from analysis.experiments import link_bonding, link_micro
from runners import hpl
from runners.record import FalloffError


@cache
def planted():
    """The study of both campaigns as they are planted."""
    return link_bonding.analyse(hpl_campaign(), micro_campaign())


def of(**campaign):
    """The study of HPL's campaign alone, with other truths."""
    return link_bonding.analyse(hpl_campaign(**campaign))


def words(study):
    """The finding, hard spaces as spaces."""
    return link_bonding.finding(study).replace("\u00a0", " ")


def way_of(study, aggregation, ranks=1):
    return next(
        way
        for way in study.hpl.ways
        if (way.aggregation, way.ranks_per_node) == (aggregation, ranks)
    )


def alike(gain):
    """The same gain on every node count that uses a network, by every way."""
    return {
        way: {n: gain if way != "one_link" and n > 1 else 0.0 for n in (1, 2, 4, 8)}
        for way in GAINS
    }


def tables(study):
    """Every table's Markdown."""
    parts = [
        link_bonding.growth_table(study),
        link_bonding.gains_table(study),
        link_bonding.candidates_table(study),
        *link_bonding.today_tables(study),
    ]
    if study.micro:
        parts.append(link_micro.connections_table(study.micro))
    return "\n".join(table.markdown for table in parts).replace("\u00a0", " ")


def test_planted_gains_come_back():
    """Without noise each gain is the planted one, whatever the block's own speed."""
    for way in of(blocks=2, noise=0, block_effect=0.2).hpl.ways:
        for nodes, gain in GAINS[way.aggregation].items():
            assert way.at(nodes)[0] == pytest.approx(1 + gain)


def test_intervals_hold_the_planted_gains():
    """Of the noisy gains' 95 % intervals, nearly all hold the truth."""
    held = []
    for way in planted().hpl.ways:
        for nodes, gain in GAINS[way.aggregation].items():
            low, high = way.at(nodes)[1]
            held.append(low <= 1 + gain <= high)
    assert np.mean(held) > 0.85


def test_growth_is_judged():
    """A gain that grows is told from one that stays, and the rise is the ratio of both ends' rates."""
    growth = way_of(planted(), "mpi_striping").growth
    low, high = growth.interval
    assert growth.answer == "falls off" and low < 1 - 1.07 / 1.3 < high
    level = of(gains=alike(0.1), noise=0.005)
    assert {way.growth.answer for way in level.hpl.ways} == {"flat"}
    assert "does not grow with the nodes" in words(level)
    noisy = of(blocks=3, gains=alike(0.1), noise=0.1)
    assert "undecided" in {way.growth.answer for way in noisy.hpl.ways}


def test_the_growths_are_corrected_for_each_other():
    """Each way's growth is a statement of the campaign, so that its p grows."""
    growths = [way.growth for way in planted().hpl.ways]
    assert all(one.p <= one.p_holm for one in growths)
    assert max(one.p_holm / one.p for one in growths if one.p > 1e-12) > 1


def test_one_node_is_the_negative_control():
    """Without a network there is no gain; where there is one all the same the finding says so."""
    assert {way.control.kind for way in planted().hpl.ways} == {"holds"}
    assert "beyond margin and chance" not in words(planted())
    gains = {way: {**GAINS[way], 1: 0.2 if way == "mptcp" else 0.0} for way in GAINS}
    wrong = of(gains=gains, noise=0.0001)
    assert way_of(wrong, "mptcp").control.kind == "violated"
    assert "by up to 20.0 %" in words(wrong) and "2 of 8 of them beyond margin" in words(wrong)


def test_the_largest_gain_is_said_with_what_it_tells():
    """The way with it, Amdahl's law, and how evenly the links were used."""
    said = words(of(noise=0.001))
    assert re.search(
        r"gives HPL (29|30)\.\d % on 8 nodes by MPI striping with \d process(es)? a node", said
    )
    assert (
        "The rate does not double" in said
        and "50 % of the bytes; by the other ways 0 to 45 %" in said
    )


def test_a_loss_is_said_to_be_one():
    """Two links that cost something give no gain: nothing is told from it on waiting."""
    said = words(of(blocks=3, gains=alike(-0.1)))
    assert "**A second link costs HPL" in said and "does not double" not in said


def test_a_gain_that_may_be_none_is_open():
    """Intervals that hold 0 decide nothing, and no number stands in bold."""
    said = words(of(blocks=3, gains=alike(0.0), noise=0.05, seed=1))
    assert "**Whether a second link gives HPL anything on 8 nodes is open**" in said


@given(part=st.floats(0, 1))
def test_communication_is_amdahls(part):
    """Halving a part of the time gives the ratio from which that part is told; a loss is below none."""
    assert link_bonding.communication(1 / (1 - part / 2)) == pytest.approx(part, abs=1e-9)
    assert link_bonding.communication(0.9) < 0


def test_a_bonded_run_on_one_link_is_shown():
    """By a hash of addresses all runs used one link: it is counted and said."""
    at = way_of(planted(), "ecmp_layer2").lesser.sel(nodes=8)
    assert at.on_one == at.runs == 8 and at.median_share == 0
    assert way_of(planted(), "mptcp").lesser.on_one.sel(nodes=8) == 0
    assert "On 2 nodes it used one link in all 16 runs here" in words(planted())
    assert "it used one link" not in words(of(lesser=dict.fromkeys(LESSER, 0.4)))


def test_nodes_that_use_one_link_each_do_not_use_both():
    """Half of the nodes on either link is one link for each, though both links carry as much."""
    dataset = hpl_campaign(blocks=2)
    odd = dataset.node % 2 == 1
    total = dataset.bytes_sent_rail_1 + dataset.bytes_sent_rail_2
    split = dataset.assign(
        bytes_sent_rail_1=total.where(odd, 0), bytes_sent_rail_2=total.where(~odd, 0)
    )
    lesser = link_micro.sent_by_lesser(split)
    assert lesser.max() == 0 and lesser.isnull().equals(dataset.nodes == 1)


def test_what_may_explain_the_blogs_gain():
    """Steady runs without a gain on two nodes rule a hash of addresses out; scattered ones do not. What the blog cannot
    have had is no candidate."""
    ways = {(way.aggregation, way.ranks_per_node): way for way in planted().hpl.candidates}
    assert set(ways) == {
        (way, ranks) for way in ("ecmp_layer2", "ecmp_layer34") for ranks in (1, 2)
    }
    by_peer = ways["ecmp_layer2", 1]
    assert by_peer.on_fewest.kind == "holds" and by_peer.one_pair[1] < 1.058
    like = {way: {**GAINS[way], 2: 0.058 if way == "ecmp_layer34" else 0.0} for way in GAINS}
    assert "is possible by hash of ports with 1 process or hash of ports with 2" in words(
        of(gains=like)
    )
    assert "may reach it by hash of addresses with 1 process" in words(of(noise=0.06))


def test_published_gains_are_the_blogs():
    """12.93 over 12.22 and 24.08 over 21.24 Gflop/s."""
    assert link_bonding.published_gains().round(3).to_dict() == {2: 0.058, 4: 0.134}


def test_connections_get_the_planted_links():
    """Goodput in links and the links that were used, by way and number of connections."""
    micro = planted().micro
    for way, planted_links in LINKS.items():
        for streams, links in planted_links.items():
            at = {"aggregation": way, "streams": streams}
            assert float(micro.links["mean"].sel(at)) == pytest.approx(links, rel=0.02)
            assert bool(micro.lesser.on_one.sel(at) == micro.lesser.runs.sel(at)) is (links == 1)
    assert "1 TCP connection fills 1.00 links by hash of addresses" in words(planted())


def test_todays_run_stands_beside_the_reference():
    """A shorter run made anew: each of its gains and goodputs with the reference's; without one nothing is said."""
    short = {"blocks": 1, "preset": "quick"}
    today = hpl_campaign(**short), micro_campaign(**short)
    study = link_bonding.analyse(hpl_campaign(), micro_campaign(), *today)
    gains, goodputs = link_bonding.today_tables(study)
    assert [row[:2] for row in gains.rows] == [
        (way, nodes) for way in ("hash of ports, 1", "MPI striping, 1") for nodes in ("2", "4")
    ]
    assert {row[1] for row in goodputs.rows} == {"1", "8"}
    compared = [one for one in link_bonding.findings(study) if one.today]
    assert len(compared) == 4
    for one in compared:
        assert one.today["ratio"] - 1 == pytest.approx(one.estimate, abs=0.05)
    assert link_bonding.today_tables(planted()) == ()


def test_lost_runs_cost_their_blocks():
    """A way without any run on the most nodes has no gain there and is not the best; what was lost is said."""
    lost = link_bonding.analyse(
        without(hpl_campaign(blocks=2), aggregation="mpi_striping", nodes=8)
    )
    assert way_of(lost, "mpi_striping").at(8) == (None, None)
    assert "by MPTCP" in words(lost) and "gave no valid rate" in words(lost)
    assert not re.search(r"\b(nan|None)\b", words(lost) + tables(lost))
    nothing = link_bonding.analyse(without(hpl_campaign(blocks=1), nodes=8))
    assert "cannot be said" in words(nothing)
    assert link_bonding.figures(nothing)["gains"].svg()


def test_figures_show_every_run():
    """Each block's gain and each goodput is a mark."""
    study = planted()
    gains = [100 * np.expm1(way.log_gain.values.ravel()) for way in study.hpl.ways]
    goodputs = (study.micro.points.goodput / study.micro.wire_limit).values.ravel()
    for name, wanted in {"gains": np.concatenate(gains), "connections": goodputs}.items():
        axes = link_bonding.figures(study)[name].figure.axes
        lines = [line for panel in axes for line in panel.lines]
        shown = np.concatenate([np.asarray(line.get_ydata(), float) for line in lines])
        assert all(np.isclose(shown, value).any() for value in wanted)


def test_the_plan_names_the_ways():
    """In a reader's words."""
    body = exhibit.planned(planted().hpl.dataset, link_micro.NAMES).body
    assert "hash of addresses" in body and "ecmp" not in body


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


def test_two_links_are_refused_on_a_testbed_of_one():
    """Neither the simulation nor the emulation with one link may run the campaign as if nothing were asked."""
    for testbed in ("emulated", "smith"):
        with pytest.raises(FalloffError, match="needs two links a node"):
            experiment.plan_campaign("link_hpl", testbed)
