"""HPL over two links: planted gains come back, their growth is judged, and a run on one link is shown as such."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_paths import without
from synthetic_rails import GAINS, LESSER, LINKS, hpl_campaign, micro_campaign

import experiment
from analysis import rails, style, wording
from analysis.facts import link_bonding as facts
from analysis.figures import link_bonding as figures
from analysis.publish import to_html
from analysis.rails import NAMES
from analysis.studies import link_bonding
from runners import hpl
from runners.record import FalloffError

FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"


@cache
def planted_study():
    """The study of both campaigns as they are planted."""
    return link_bonding.analyse(hpl_campaign(), micro_campaign())


@cache
def planted_facts():
    """What may be quoted from it."""
    return facts.collect(planted_study())


def section(known):
    """The section's Markdown, hard spaces as spaces."""
    template = wording.templates().get_template("link_bonding.md.j2")
    return template.render(link_bonding=known, statements=8).replace("\u00a0", " ")


def finding(known):
    return wording.finding("link_bonding", known).replace("\u00a0", " ")


def way_of(known, key, ranks=1):
    return next(way for way in known["ways"] if (way["key"], way["ranks_per_node"]) == (key, ranks))


def alike(gain):
    """The same gain on every node count that uses a network, by every way."""
    return {way: {n: gain if way != "one_link" and n > 1 else 0.0 for n in (1, 2, 4, 8)} for way in GAINS}


def test_planted_gains_come_back():
    """Without noise each gain is the planted one, whatever the block's own speed."""
    known = facts.collect(link_bonding.analyse(hpl_campaign(blocks=2, noise=0, block_effect=0.2)))
    for way in known["ways"]:
        for point in way["points"]:
            assert point["gain"] == pytest.approx(GAINS[way["key"]][point["nodes"]], abs=1e-9)


def test_intervals_hold_the_planted_gains():
    """Of the noisy gains' 95 % intervals, nearly all hold the truth."""
    held = [
        point["interval"][0] <= GAINS[way["key"]][point["nodes"]] <= point["interval"][1]
        for way in planted_facts()["ways"]
        for point in way["points"]
    ]
    assert np.mean(held) > 0.85


def test_growth_is_judged():
    """A gain that grows is told from one that stays, and the rise is the ratio of both ends' rates."""
    growth = way_of(planted_facts(), "mpi_striping")["growth"]
    assert growth["kind"] == "grows" and growth["interval"][0] < 1.3 / 1.07 - 1 < growth["interval"][1]
    level = facts.collect(link_bonding.analyse(hpl_campaign(gains=alike(0.1), noise=0.005)))
    assert {way["growth"]["kind"] for way in level["ways"]} == {"does not grow"}
    noisy = facts.collect(link_bonding.analyse(hpl_campaign(blocks=3, gains=alike(0.1), noise=0.1)))
    assert "undecided" in {way["growth"]["kind"] for way in noisy["ways"]}


def test_one_node_is_the_negative_control():
    """Without a network there is no gain; where there is one all the same it is shown."""
    assert {way["control"]["kind"] for way in planted_facts()["ways"]} == {"none"}
    gains = {way: {**GAINS[way], 1: 0.2 if way == "mptcp" else 0.0} for way in GAINS}
    wrong = facts.collect(link_bonding.analyse(hpl_campaign(gains=gains)))
    assert way_of(wrong, "mptcp")["control"]["kind"] == "some"


def test_todays_run_stands_beside_the_reference():
    """A shorter run made anew: each of its gains and goodputs with the reference's; without one nothing is said."""
    short = {"blocks": 1, "preset": "quick"}
    study = link_bonding.analyse(hpl_campaign(), micro_campaign(), hpl_campaign(**short), micro_campaign(**short))
    known = facts.collect(study)
    assert [(it["name"], it["nodes"]) for it in known["today"]["gains"]] == [
        (NAMES[way], nodes) for way in ("ecmp_layer34", "mpi_striping") for nodes in (2, 4)
    ]
    assert all(it["now"] == pytest.approx(it["then"], abs=0.05) for it in known["today"]["gains"])
    assert {it["streams"] for it in known["today"]["links"]} == {1, 8}
    assert "Today's run" in section(known) and "Today's run" not in section(planted_facts())


def test_a_violated_control_is_said():
    """A gain on one node, where no link is used, is chance or the machine's own; without one nothing is said."""
    dataset = hpl_campaign()
    alone = (dataset.nodes == 1) & (dataset.aggregation == "mptcp") & (dataset.ranks_per_node == 1)
    faster = dataset.assign(hpl_rate=dataset.hpl_rate * (1 + 0.2 * alone))
    said = section(facts.collect(link_bonding.analyse(faster)))
    assert f"1 of {len(planted_study().hpl.ways)} negative controls shows a gain" in said
    assert "negative controls show" not in section(planted_facts())


def test_a_bonded_run_on_one_link_is_shown():
    """By a hash of addresses all runs used one link: it is counted, and said on the first page."""
    point = way_of(planted_facts(), "ecmp_layer2")["points"][-1]
    assert point["on_one"] == point["runs"] == 8 and point["lesser"] == 0
    assert way_of(planted_facts(), "mptcp")["points"][-1]["on_one"] == 0
    assert "On 2 nodes, **hash of addresses used one link only** in all 8 runs" in finding(planted_facts())
    assert "used one link only" not in finding(facts.collect(link_bonding.analyse(hpl_campaign(lesser=dict.fromkeys(LESSER, 0.4)))))


def test_nodes_that_use_one_link_each_do_not_use_both():
    """Half of the nodes on either link is one link for each, though both links carry as much."""
    dataset = hpl_campaign(blocks=2)
    odd = dataset.node % 2 == 1
    total = dataset.bytes_sent_rail_1 + dataset.bytes_sent_rail_2
    split = dataset.assign(bytes_sent_rail_1=total.where(odd, 0), bytes_sent_rail_2=total.where(~odd, 0))
    lesser = rails.sent_by_lesser(split)
    assert lesser.max() == 0 and lesser.isnull().equals(dataset.nodes == 1)


@given(part=st.floats(0, 1))
def test_communication_is_amdahls(part):
    """Halving a part of the time gives the ratio from which that part is told."""
    assert facts.communication(1 / (1 - part / 2)) == pytest.approx(part, abs=1e-9)


def test_twice_the_rate_needs_nothing_but_communication():
    """A ratio of 2 is all of the time, none is none of it, and a loss is below none."""
    assert facts.communication(2.0) == 1 and facts.communication(1.0) == 0 and facts.communication(0.9) < 0


def test_a_loss_is_said_to_be_one():
    """Two links that cost something give no gain: no part of the time is told from it."""
    known = facts.collect(link_bonding.analyse(hpl_campaign(blocks=3, gains=alike(-0.1))))
    assert "**A second link costs HPL" in finding(known)
    assert all(way["points"][-1]["communication"] is None for way in known["ways"])


def test_candidates_for_the_published_gain():
    """Steady runs without a gain on two nodes rule a hash of addresses out; with one like the blog's, or scattered, they
    do not. What the blog cannot have had is no candidate."""
    kinds = {(it["key"], it["ranks_per_node"]): it for it in planted_facts()["candidates"]}
    assert set(kinds) == {(way, ranks) for way in ("ecmp_layer2", "ecmp_layer34") for ranks in (1, 2)}
    assert kinds["ecmp_layer2", 1]["kind"] == "none" and kinds["ecmp_layer2", 1]["reaches"] is False
    like = {way: {**GAINS[way], 2: 0.058 if way == "ecmp_layer34" else 0.0} for way in GAINS}
    known = facts.collect(link_bonding.analyse(hpl_campaign(gains=like)))
    assert all(it["gives"] is (it["key"] == "ecmp_layer34") for it in known["candidates"])
    assert "interval of the geometric mean of the gain of hash of ports with 1 process a node" in section(known)
    scattered = facts.collect(link_bonding.analyse(hpl_campaign(noise=0.06)))
    assert all(it["reaches"] for it in scattered["candidates"] if it["key"] == "ecmp_layer2")


def test_hashes_are_compared_with_one_process_a_node_and_two():
    """Ports against addresses, in the same blocks."""
    assert [it["ranks_per_node"] for it in planted_facts()["by_connection"]] == [1, 2]
    for found in planted_facts()["by_connection"]:
        assert found["gain"] == pytest.approx(0.04, abs=0.02) and found["kind"] == "some"
        assert found["interval"][0] < found["gain"] < found["interval"][1]


def test_published_stands_beside():
    """The blog's gains and their growth are its own numbers, as published evidence."""
    assert [round(g["gain"], 3) for g in planted_facts()["published"]["gains"]] == [0.058, 0.134]
    assert planted_facts()["published"]["growth"] == pytest.approx(0.0715, abs=1e-3)
    assert "published evidence" in section(planted_facts()) and "emulated evidence" in section(planted_facts())


def test_connections_get_the_planted_links():
    """Goodput in links, by way and number of connections."""
    for way in planted_facts()["micro"]["ways"]:
        for point in way["points"]:
            assert point["links"] == pytest.approx(LINKS[way["key"]][point["streams"]], rel=0.02)
            assert (point["on_one"] == point["runs"]) == (LINKS[way["key"]][point["streams"]] == 1)


def test_the_growths_are_corrected_for_each_other():
    """Each way's growth is a statement of the campaign; its p grows and is shown, whatever else is in the report."""
    ways = planted_study().hpl.ways
    assert all(way.growth.p <= way.growth.p_holm for way in ways)
    assert max(way.growth.p_holm / way.growth.p for way in ways if way.growth.p > 1e-12) > 1
    assert "Holm's correction over the ways of this campaign" in section(planted_facts())


@pytest.mark.parametrize("campaign", [{"blocks": 2}, {"blocks": 1, "preset": "quick"}], ids=str)
def test_the_section_makes_no_number_up(campaign, tmp_path):
    """However few the data, text, tables and figures are whole."""
    study = link_bonding.analyse(hpl_campaign(**campaign), micro_campaign(**campaign))
    markdown = section(facts.collect(study))
    assert not any(word in markdown for word in ("nan", "None", "inf "))
    style.save_all(figures.draw(study), tmp_path / "figures")
    assert to_html(FRONT + markdown, tmp_path).count("<img") == 2


def test_lost_runs_cost_their_blocks():
    """A way without any run on the most nodes has no gain there and is not the best; what is left is told."""
    lost = without(hpl_campaign(blocks=2), aggregation="mpi_striping", nodes=8)
    known = facts.collect(link_bonding.analyse(lost))
    assert way_of(known, "mpi_striping")["points"][-1]["gain"] is None and known["best"]["key"] == "mptcp"
    assert "gave no reading" in section(known) and "nan" not in section(known)
    nothing = facts.collect(link_bonding.analyse(without(hpl_campaign(blocks=1), nodes=8)))
    assert nothing["best"] is None and "cannot be told" in finding(nothing)


def test_figures_show_every_run():
    """Each rate, each block's gain and each goodput is a mark."""
    study = planted_study()
    drawn = figures.draw(study)
    gains = 100 * np.expm1(study.hpl.ways[0].log_gain.values.ravel())
    for name, wanted in {
        "link_bonding": [*(100 * study.hpl.points.share).values.ravel(), *gains],
        "link_bonding_micro": (study.micro.points.goodput / study.micro.wire_limit).values.ravel(),
    }.items():
        shown = np.concatenate([np.asarray(line.get_ydata(), float) for axes in drawn[name].axes for line in axes.lines])
        assert all(np.isclose(shown, value).any() for value in wanted)


def test_no_hpl_trial_is_refused():
    """TCP's campaign is not HPL's."""
    with pytest.raises(FalloffError, match="no HPL trial"):
        link_bonding.analyse(micro_campaign(blocks=1))


@pytest.mark.parametrize("preset", ["quick", "full", "bonding"])
def test_the_campaign_is_a_whole_design(preset):
    """The baseline and the fewest nodes are run, grids hold all processes, and a node has the same work with two."""
    plan = experiment.plan_campaign("link_hpl", preset=preset)
    factors = plan.design["factors"]
    assert plan.design["baseline"] in factors["aggregation"] and plan.design["fewest_nodes"] in factors["nodes"]
    assert plan.testbed["rails"] == 2
    for trial in plan.blocks[0]:
        point = trial.point
        assert point["P"] * point["Q"] == point["nodes"] * point["ranks_per_node"] and point["N"] % point["NB"] == 0
        (solver,) = hpl.commands(point)
        assert (solver.ranks, solver.nodes) == (point["P"] * point["Q"], point["nodes"])


def test_two_links_are_refused_on_a_testbed_of_one():
    """Neither the simulation nor the emulation with one link may run the campaign as if nothing were asked."""
    for testbed in ("emulated", "smith"):
        with pytest.raises(FalloffError, match="needs two links a node"):
            experiment.plan_campaign("link_hpl", testbed)
