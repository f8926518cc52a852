"""Network designs: planted slowdowns come back, the source's belief is judged, efficient choices are found."""

import dataclasses
import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from synthetic_topology import COMMUNICATION, EXPONENT, flow_campaign, hpl_campaign, slowdown

import experiment
from analysis import paths, style, wording
from analysis.designs import CROSSBAR
from analysis.facts import topology as facts
from analysis.figures import topology as figures
from analysis.publish import to_html, to_pdf
from analysis.studies import topology
from analysis.studies.design_choices import choices
from analysis.studies.flow_slowdown import COSTLY, DEPENDS, FREE, Judgement, bearable
from runners.record import FalloffError

DESIGNS = experiment.read_designs(paths.DESIGNS / "nemo.toml")
NETWORKS = experiment.read_testbed("nemo")["network"]
NODES, PLACEMENTS = (120, 240, 480, 960), ("in_order", "shuffled")
FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"


@cache
def planted_flows():
    """The campaign of flows as it is planted."""
    return flow_campaign()


@cache
def planted_hpl():
    """The campaign of HPL as it is planted."""
    return hpl_campaign()


@cache
def planted_study():
    """The study of both campaigns."""
    return topology.analyse(planted_flows(), planted_hpl())


@cache
def planted_facts():
    """What may be quoted from it."""
    return facts.collect(planted_study())


def section(known):
    """The section's Markdown, hard spaces as spaces."""
    return wording.templates().get_template("topology.md.j2").render(topology=known).replace("\u00a0", " ")


def of(study, pattern, placement="in_order"):
    return [it for it in study.judgements if (it.pattern, it.placement) == (pattern, placement)]


def belief(study, pattern, placement="in_order"):
    return next(it for it in study.beliefs if (it.pattern, it.placement) == (pattern, placement))


def dearer(name, factor):
    """The study with a design's slowdown so many times the planted one."""

    def planted(network, pattern, placement):
        own = slowdown(network, pattern, placement)
        return own * factor if network == NETWORKS[name] else own

    return topology.analyse(flow_campaign(slowdown=planted))


def test_planted_slowdowns_come_back():
    """Every run of every trial, on as many nodes as the design has room for."""
    room = dict(zip(planted_study().costs.design, planted_study().costs.largest_cluster))
    points = planted_study().slowdowns.makespan.stack(point=("interconnect", "pattern", "placement", "nodes"))
    for point in points.transpose("point", "run"):
        name, pattern, placement, nodes = point.point.item()
        planted = slowdown(NETWORKS[name], pattern, placement)
        np.testing.assert_allclose(point, planted if nodes <= room[name] else np.nan)


def test_judgements_are_of_the_clusters_own_size():
    """The geometric mean over the runs with their extremes, and the mean flow's own slowdown."""
    noisy = topology.analyse(flow_campaign(noise=0.05))
    for it in of(noisy, "permutation"):
        runs = noisy.slowdowns.makespan.sel(
            interconnect=it.interconnect, pattern=it.pattern, placement=it.placement, nodes=DESIGNS.cluster["nodes"]
        )
        wanted = (stats.gmean(runs.values), float(runs.min()), float(runs.max()))
        assert (it.slowdown, it.least, it.most) == pytest.approx(wanted)
        assert it.least < it.slowdown < it.most and it.runs == runs.size and it.mean_flow < it.slowdown
    assert {it.nodes for it in planted_study().judgements if it.pattern != topology.HPL} == {DESIGNS.cluster["nodes"]}


def test_the_belief_is_judged_on_the_sources_own_designs():
    """Neighbours in order and many-to-one lose nothing; a permutation loses, whatever others than its designs do."""
    study = planted_study()
    assert set(study.proposed) == {"cisco_dfc_2to1", "cisco_2to1", "e600_2to1", "e1200_2to1"}
    assert belief(study, "nearest_neighbour").kind == belief(study, "many_to_one").kind == topology.SUPPORTED
    for pattern in ("nearest_neighbour", "permutation", "all_to_all"):
        assert belief(study, pattern, "shuffled").kind == topology.CONTRADICTED
    assert belief(dearer("cisco_7to1", 9), "many_to_one").kind == topology.SUPPORTED
    mixed = belief(dearer("cisco_2to1", 9), "many_to_one")
    assert (mixed.kind, mixed.worst.interconnect, mixed.worst.slowdown) == (topology.MIXED, "cisco_2to1", pytest.approx(9))


@pytest.mark.parametrize(("margins", "kind"), [((0.99, 0.99), FREE), ((1.01, 1.5), COSTLY), ((0.5, 1.5), DEPENDS)])
def test_a_network_costs_nothing_within_the_margin_in_every_run(margins, kind):
    """The limit is 1 / (1 - margin); what one run exceeds and another does not depends on the run."""
    slowdowns = 1 + np.resize(margins, 8) * (1 / 0.95 - 1)

    def planted(network, pattern, placement):
        return 1.0 if "tree" not in network else slowdowns

    assert {it.kind for it in of(topology.analyse(flow_campaign(slowdown=planted)), "all_to_all")} == {kind}


@given(slower=st.floats(1, 100), margin=st.floats(0.01, 0.5))
def test_a_program_bears_its_part_of_slow_traffic(slower, margin):
    """With that part of its time slowed down, a program takes as much longer as the margin allows, if at all."""
    part = bearable(slower, margin)
    assert 0 < part <= 1 and 1 - part + part * slower <= (1 + 1e-9) / (1 - margin)
    assert part == 1 or math.isclose(1 - part + part * slower, 1 / (1 - margin))


def test_hpl_is_judged_by_its_rates():
    """The whole program's slowdown, in both placements, on the nodes that were run."""
    for placement, part in {"in_order": COMMUNICATION / 2, "shuffled": COMMUNICATION}.items():
        for it in of(planted_study(), topology.HPL, placement):
            planted = 1 + part * (slowdown(NETWORKS[it.interconnect], "permutation", placement) - 1)
            assert it.slowdown == pytest.approx(planted) and it.runs == 1
    assert "HPL's slowdown is of the whole program" in section(planted_facts())
    alone = section(facts.collect(topology.analyse(planted_flows())))
    assert "| HPL |" not in alone and "HPL's slowdown" not in alone


places = st.tuples(st.integers(1, 9), st.integers(2, 9))


@given(drawn=st.lists(places, min_size=1, max_size=8))
def test_efficient_choices_are_the_pareto_front(drawn):
    """A choice is efficient exactly if no other is at least as good in both and better in one."""
    names = [f"n{number}" for number in range(len(drawn))]
    judged = [
        Judgement(name, "p", "in_order", 8, slower, slower, slower, slower, 1, COSTLY, 1.0)
        for name, (_, slower) in zip(names, drawn)
    ]
    found = choices(judged, {**{name: cost for name, (cost, _) in zip(names, drawn)}, "whole": 10}, "whole")
    assert len(found) == len(drawn) + 1 and next(it for it in found if it.interconnect == "whole").efficient
    for it in found:
        beaten = any(
            other.cost_per_node <= it.cost_per_node
            and other.slowdown <= it.slowdown
            and (other.cost_per_node, other.slowdown) != (it.cost_per_node, it.slowdown)
            for other in found
        )
        assert it.efficient is not beaten


def test_the_crossbar_costs_what_the_source_says_more():
    """On top of the cheapest of its own designs; with other prices both move."""
    own = planted_study().costs.set_index("design").loc[list(planted_study().proposed)]
    extra = DESIGNS.cluster["unsubscribed_extra"]
    assert planted_study().crossbar_cost == pytest.approx((own.cost.min() + extra) / DESIGNS.cluster["nodes"])
    typed = topology.analyse(planted_flows(), prices={"cisco_6509e": 200e3})
    moved = typed.costs.set_index("design").cost - planted_study().costs.set_index("design").cost
    assert moved["cisco_2to1"] == pytest.approx(200e3 - 94e3) and moved["e600_2to1"] == 0
    assert typed.crossbar_cost > planted_study().crossbar_cost
    with pytest.raises(FalloffError, match="prices: cisco"):
        topology.analyse(planted_flows(), prices={"cisco": 1.0})


def test_what_has_no_known_price_is_no_choice(monkeypatch):
    """Without the source's figure the network without oversubscription is not among the choices, nor in the text."""
    unpriced = dataclasses.replace(DESIGNS, cluster={**DESIGNS.cluster, "unsubscribed_extra": math.nan})
    monkeypatch.setattr(topology, "_designs", lambda dataset: unpriced)
    study = topology.analyse(planted_flows())
    assert CROSSBAR not in {it.interconnect for it in study.choices} and of(study, "permutation")
    said = section(facts.collect(study))
    assert "nan" not in said and "None" not in said and "a node more" not in said


def test_growth_has_the_planted_exponents():
    """By pattern; what is above 1 is said to grow worse than linearly, and the start of the simulator hides it."""
    for it in planted_study().growth:
        assert it.exponent == pytest.approx(EXPONENT[it.pattern]) and it.last == pytest.approx(EXPONENT[it.pattern])
    said = section(planted_facts())
    assert "Worse than linearly with the nodes grow permutation, all to all." in said
    for it in topology.analyse(flow_campaign(start=0.2)).growth:
        assert it.exponent < it.last < EXPONENT[it.pattern]


def test_lost_trials_are_left_out():
    """A design without its run at the cluster's size is not judged in that pattern; without a crossbar's, none is."""
    nodes = DESIGNS.cluster["nodes"]
    lost = {("e600_2to1", "permutation", "in_order", nodes), (CROSSBAR, "all_to_all", "shuffled", nodes)}
    study = topology.analyse(flow_campaign(failed=lost))
    judged = {it.interconnect for it in of(study, "permutation")}
    assert judged == set(DESIGNS.designs) - {"e600_2to1"}
    assert belief(study, "permutation").designs == 3 and not of(study, "all_to_all", "shuffled")
    assert len(of(study, "all_to_all")) == len(DESIGNS.designs)


def test_on_lost_sizes_the_next_smaller_cluster_is_judged():
    """Where nothing ran on as many nodes as the cluster has."""
    lost = {(CROSSBAR, *levels) for levels in product(EXPONENT, PLACEMENTS, [480])}
    assert {it.nodes for it in topology.analyse(flow_campaign(failed=lost)).judgements} == {240}


@pytest.mark.parametrize("campaigns", ["quick", "lost", "full"])
def test_the_section_makes_no_number_up(campaigns, tmp_path):
    """However few the data, text, tables and figures are whole."""
    lost = {(CROSSBAR, *levels) for levels in product(EXPONENT, PLACEMENTS, NODES)}
    study = {
        "quick": lambda: topology.analyse(flow_campaign(preset="quick"), hpl_campaign(preset="quick")),
        "lost": lambda: topology.analyse(flow_campaign(failed=lost)),
        "full": planted_study,
    }[campaigns]()
    markdown = section(facts.collect(study))
    assert not any(word in markdown for word in ("nan", "None", "inf "))
    assert ("cannot be told" in markdown) is (campaigns == "lost")
    style.save_all(figures.draw(study), tmp_path / "figures")
    page = to_html(FRONT + markdown, tmp_path)
    assert page.count("<img") == len(figures.draw(study)) and page.count("<caption") == page.count("<table")


def test_the_section_becomes_a_document(tmp_path):
    """Tables of eight networks and all figures are set in the PDF, too."""
    style.save_all(figures.draw(planted_study()), tmp_path / "figures")
    assert to_pdf(FRONT + section(planted_facts()), tmp_path, 0).startswith(b"%PDF-")


def test_the_finding_follows_the_data():
    """Each kind of verdict names its traffic with the slowdowns, a placement only where the other differs."""
    said = wording.finding("topology", planted_facts()).replace("\u00a0", " ")
    supported, contradicted = said.split("**contradicted**")
    assert "nearest neighbour in order (1.00), many to one (1.00)" in supported
    assert "nearest neighbour shuffled (2.00), permutation (2.00), all to all (2.00)" in contradicted
    assert "about 250 USD a node more" in said and "simulated evidence" in said
    nothing = wording.finding("topology", {**planted_facts(), "said": []})
    assert "cannot be told" in nothing


def test_the_figure_has_every_choice():
    """Each choice is a mark at its cost and slowdown, in the panel of its pattern."""
    panels = {axes.get_title(loc="left"): axes for axes in figures.draw(planted_study())["topology"].axes}
    for it in planted_study().choices:
        marks = [line.get_xydata() for line in panels[topology.in_words(it.pattern)].lines]
        assert any(np.isclose(places, (it.cost_per_node, it.slowdown)).all(axis=1).any() for places in marks)


def test_other_campaigns_are_refused():
    """Without flows or a network to compare with there is nothing to analyse."""
    with pytest.raises(FalloffError, match="holds no flows trial"):
        topology.analyse(planted_hpl())
    others = planted_flows().isel(trial=np.flatnonzero(planted_flows().interconnect != CROSSBAR))
    design = planted_flows().attrs["design"].replace('"crossbar", "cisco', '"cisco')
    with pytest.raises(FalloffError, match="no network 'crossbar'"):
        topology.analyse(others.assign_attrs(design=design))


def test_a_design_file_that_is_gone_is_named(monkeypatch, tmp_path):
    """The dataset has no prices of its own: without the file there is a line that says which one it wants."""
    flows, hpl = planted_flows(), planted_hpl()
    monkeypatch.setattr(paths, "DESIGNS", tmp_path)
    with pytest.raises(FalloffError, match="nemo.toml, which cannot be read"):
        topology.analyse(flows, hpl)


def test_the_finding_says_on_how_many_designs_hpl_ran():
    """HPL runs on fewer designs than flows do; without HPL nothing is said of it."""
    (designs,) = {it.designs for it in planted_study().beliefs if it.pattern == topology.HPL}
    said = wording.finding("topology", planted_facts()).replace("\u00a0", " ")
    assert f"HPL's of {designs} design" in said
    assert "HPL" not in wording.finding("topology", facts.collect(topology.analyse(planted_flows())))
