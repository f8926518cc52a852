"""Network designs: planted slowdowns come back, the page's belief is judged, efficient choices are found."""

import dataclasses
import math
import re
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from synthetic_topology import (
    COMMUNICATION,
    EXPONENT,
    flow_campaign,
    hpl_campaign,
    slowdown,
)

import experiment
from analysis import paths
from analysis.designs import CROSSBAR
from analysis.experiments import topology, topology_prices
from analysis.experiments.topology import (
    COSTLY,
    DEPENDS,
    FREE,
    HPL,
    Judgement,
    bearable,
)
from runners.record import FalloffError

DESIGNS = experiment.read_designs(paths.DESIGNS / "nemo.toml")
NETWORKS = experiment.read_testbed("nemo")["network"]
NODES, PLACEMENTS = (120, 240, 480, 960), ("in_order", "shuffled")


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
def planted_prices():
    """The study's designs with the prices of the page."""
    return topology_prices.at_prices(planted_study())


def of(study, pattern, placement="in_order"):
    return [one for one in study.judgements if one.traffic == (pattern, placement)]


def belief(study, pattern, placement="in_order"):
    return next(
        one for one in study.beliefs if (one.pattern, one.placement) == (pattern, placement)
    )


def words(study):
    return topology.finding(study).replace("\u00a0", " ")


def shown(study):
    """All that is written of a study: the finding and every table."""
    priced = topology_prices.at_prices(study)
    tables = [topology.slowdown_table(study), topology.nodes_table(study)]
    tables += [topology_prices.designs_table(priced), topology_prices.assumed_table(priced)]
    texts = [words(study), topology_prices.finding(priced), *(table.markdown for table in tables)]
    return " ".join(texts)


def slower(name, factor):
    """The study with a design's slowdown so many times the planted one."""

    def planted(network, pattern, placement):
        own = slowdown(network, pattern, placement)
        return own * factor if network == NETWORKS[name] else own

    return topology.analyse(flow_campaign(slowdown=planted))


def test_planted_slowdowns_come_back():
    """Every run of every trial, on as many nodes as the design has room for."""
    room = dict(zip(planted_prices().costs.design, planted_prices().costs.largest_cluster))
    points = planted_study().slowdowns.stack(
        point=("interconnect", "pattern", "placement", "nodes")
    )
    for point in points.transpose("point", "run"):
        name, pattern, placement, nodes = point.point.item()
        planted = slowdown(NETWORKS[name], pattern, placement)
        np.testing.assert_allclose(point, planted if nodes <= room[name] else np.nan)


def test_judgements_are_of_the_clusters_own_size():
    """The geometric mean over the runs with their extremes."""
    noisy = topology.analyse(flow_campaign(noise=0.05))
    for one in of(noisy, "permutation"):
        at = {"interconnect": one.interconnect, "pattern": one.pattern, "placement": one.placement}
        runs = noisy.slowdowns.sel(**at, nodes=DESIGNS.cluster["nodes"])
        wanted = (stats.gmean(runs.values), float(runs.min()), float(runs.max()))
        assert (one.slowdown, one.least, one.most) == pytest.approx(wanted)
        assert one.least < one.slowdown < one.most and one.runs == runs.size
    flows = [one for one in planted_study().judgements if one.pattern != HPL]
    assert {one.nodes for one in flows} == {DESIGNS.cluster["nodes"]}


def test_the_belief_is_judged_on_the_pages_own_designs():
    """Neighbours in order and many-to-one lose nothing; a permutation loses, whatever other designs do."""
    study = planted_study()
    assert set(study.proposed) == {"cisco_dfc_2to1", "cisco_2to1", "e600_2to1", "e1200_2to1"}
    free = belief(study, "nearest_neighbour"), belief(study, "many_to_one")
    assert {one.kind for one in free} == {topology.SUPPORTED}
    for pattern in ("nearest_neighbour", "permutation", "all_to_all"):
        assert belief(study, pattern, "shuffled").kind == topology.CONTRADICTED
    assert belief(slower("cisco_7to1", 9), "many_to_one").kind == topology.SUPPORTED
    mixed = belief(slower("cisco_2to1", 9), "many_to_one")
    assert (mixed.kind, mixed.worst.interconnect) == (topology.MIXED, "cisco_2to1")
    assert mixed.worst.slowdown == pytest.approx(9)


@pytest.mark.parametrize(
    ("margins", "kind"), [((0.99, 0.99), FREE), ((1.01, 1.5), COSTLY), ((0.5, 1.5), DEPENDS)]
)
def test_a_network_costs_nothing_within_the_margin_in_every_run(margins, kind):
    """The limit is 1 / (1 - margin); what one run exceeds and another does not depends on the run."""
    slowdowns = 1 + np.resize(margins, 8) * (1 / 0.95 - 1)

    def planted(network, pattern, placement):
        return 1.0 if "tree" not in network else slowdowns

    study = topology.analyse(flow_campaign(slowdown=planted))
    assert {one.kind for one in of(study, "all_to_all")} == {kind}


@given(slow=st.floats(1, 100), margin=st.floats(0.01, 0.5))
def test_a_program_bears_its_part_of_slow_traffic(slow, margin):
    """With that part of its time slowed down, a program takes as much longer as the margin allows, if at all."""
    part = bearable(slow, margin)
    assert 0 < part <= 1 and 1 - part + part * slow <= (1 + 1e-9) / (1 - margin)
    assert part == 1 or math.isclose(1 - part + part * slow, 1 / (1 - margin))


def test_hpl_is_judged_by_its_rates():
    """The whole program's slowdown, in both placements, on the nodes that were run."""
    for placement, part in {"in_order": COMMUNICATION / 2, "shuffled": COMMUNICATION}.items():
        for one in of(planted_study(), HPL, placement):
            planted = 1 + part * (
                slowdown(NETWORKS[one.interconnect], "permutation", placement) - 1
            )
            assert one.slowdown == pytest.approx(planted) and one.runs == 1


@given(drawn=st.lists(st.tuples(st.integers(1, 9), st.integers(2, 9)), min_size=1, max_size=8))
def test_efficient_choices_are_the_pareto_front(drawn):
    """A choice is efficient exactly if no other is at least as good in both and better in one."""
    names = [f"n{number}" for number in range(len(drawn))]
    judged = [
        Judgement(name, "p", "in_order", 8, slow, slow, slow, 1, COSTLY, 1.0)
        for name, (_, slow) in zip(names, drawn)
    ]
    costs = {name: cost for name, (cost, _) in zip(names, drawn)}
    chosen = topology_prices.choices(judged, {**costs, CROSSBAR: 10})
    assert len(chosen) == len(drawn) + 1
    assert next(one for one in chosen if one.interconnect == CROSSBAR).efficient
    for one in chosen:
        place = one.cost_per_node, one.slowdown
        others = [(other.cost_per_node, other.slowdown) for other in chosen]
        beaten = any(o[0] <= place[0] and o[1] <= place[1] and o != place for o in others)
        assert one.efficient is not beaten


def test_the_crossbar_costs_what_the_page_adds():
    """On top of the cheapest of its own designs; with other prices both move."""
    flows = topology.analyse(planted_flows())
    own = planted_prices().costs.set_index("design").loc[list(planted_study().proposed)]
    extra, nodes = DESIGNS.cluster["unsubscribed_extra"], DESIGNS.cluster["nodes"]
    assert planted_prices().crossbar_cost == pytest.approx((own.cost.min() + extra) / nodes)
    typed = topology_prices.at_prices(flows, {"cisco_6509e": 200e3})
    moved = typed.costs.set_index("design").cost - planted_prices().costs.set_index("design").cost
    assert moved["cisco_2to1"] == pytest.approx(200e3 - 94e3) and moved["e600_2to1"] == 0
    assert typed.crossbar_cost > planted_prices().crossbar_cost
    with pytest.raises(FalloffError, match="prices: cisco"):
        topology_prices.at_prices(flows, {"cisco": 1.0})


@given(slow=st.floats(1.01, 3), saved=st.floats(1, 1000))
def test_at_the_break_even_price_a_budget_buys_as_much_either_way(slow, saved):
    """So many nodes more, each so much slower; a network that loses nothing is always the better buy."""
    price = topology_prices.break_even(slow, saved)
    assert 1 / price == pytest.approx(1 / (slow * (price - saved)))
    assert topology_prices.break_even(1.0, saved) == math.inf


def test_what_has_no_known_price_is_no_choice(monkeypatch):
    """Without the page's figure the network without oversubscription is not among the choices, nor in the text."""
    unpriced = dataclasses.replace(
        DESIGNS, cluster={**DESIGNS.cluster, "unsubscribed_extra": math.nan}
    )
    monkeypatch.setattr(topology, "_designs", lambda dataset: unpriced)
    study = topology.analyse(planted_flows(), planted_hpl())
    priced = topology_prices.at_prices(study)
    assert CROSSBAR not in {one.interconnect for one in priced.choices} and of(study, "permutation")
    assert topology_prices.finding(priced) == "" and not re.search(r"\b(nan|None)\b", shown(study))


def test_lost_trials_are_left_out():
    """A design without its run at the cluster's size is not judged in that pattern; without a crossbar's, none is."""
    nodes = DESIGNS.cluster["nodes"]
    lost = {
        ("e600_2to1", "permutation", "in_order", nodes),
        (CROSSBAR, "all_to_all", "shuffled", nodes),
    }
    study = topology.analyse(flow_campaign(failed=lost))
    judged = {one.interconnect for one in of(study, "permutation")}
    assert judged == set(DESIGNS.designs) - {"e600_2to1"}
    assert belief(study, "permutation").designs == 3 and not of(study, "all_to_all", "shuffled")
    assert len(of(study, "all_to_all")) == len(DESIGNS.designs)


def test_on_lost_sizes_the_next_smaller_cluster_is_judged():
    """Where nothing ran on as many nodes as the cluster has."""
    lost = {(CROSSBAR, *levels) for levels in product(EXPONENT, PLACEMENTS, [480])}
    judged = topology.analyse(flow_campaign(failed=lost)).judgements
    assert {one.nodes for one in judged} == {240}


@pytest.mark.parametrize("campaigns", ["quick", "lost", "full"])
def test_nothing_is_made_up(campaigns):
    """However few the data, text, tables and figures are whole."""
    lost = {(CROSSBAR, *levels) for levels in product(EXPONENT, PLACEMENTS, NODES)}
    study = {
        "quick": lambda: topology.analyse(
            flow_campaign(preset="quick"), hpl_campaign(preset="quick")
        ),
        "lost": lambda: topology.analyse(flow_campaign(failed=lost)),
        "full": planted_study,
    }[campaigns]()
    assert not re.search(r"\b(nan|None|inf)\b", shown(study))
    assert ("cannot be told" in words(study)) is (campaigns == "lost")
    priced = topology_prices.at_prices(study)
    for exhibit in (*topology.figures(study).values(), *topology_prices.figures(priced).values()):
        assert "</svg>" in exhibit.svg()
    assert len(list(topology.findings(study))) == len(study.beliefs)


def test_the_finding_follows_the_data():
    """Each answer names its traffic with the slowdowns, a placement only where the other differs."""
    costly, free = words(planted_study()).split("HPL takes")
    assert (
        "oversubscribed 2:1, traffic between neighbours (shuffled), between random pairs" in costly
    )
    assert "takes 2.00 times as long" in costly and "simulated evidence" in costly
    assert free.startswith(" 1.05 to 1.10 times as long") and "1 of the page's 4 designs" in free
    assert "between neighbours (in order) and from many to one loses no more than 5 %" in free
    assert "HPL" not in words(topology.analyse(planted_flows()))
    mixed = words(slower("cisco_2to1", 9))
    assert "depends on the design or the draw" in mixed and "in order" in mixed


def test_the_saving_is_told_against_hpls_loss():
    """With a slowdown of 1.05 to 1.10 the 250 USD saved buy more only of cheap nodes."""
    assert planted_prices().break_even == pytest.approx((250 * 1.1 / 0.1, 250 * 1.05 / 0.05))
    assert "costs less than 2750 to 5250 USD" in topology_prices.finding(planted_prices())


def test_today_is_told_only_where_it_ran():
    """A simulation that repeats itself is said to, and one that does not by how much it is off."""
    again = flow_campaign(preset="quick")
    assert "today" not in words(planted_study()).lower()
    same = topology.analyse(planted_flows(), today=again)
    assert same.today_apart == 0 and "to the last digit" in words(same)
    other = again.assign(flow_makespan=1.01 * again.flow_makespan)
    assert "by up to 1.00 %" in words(topology.analyse(planted_flows(), today=other))


def test_the_figures_have_every_slowdown_and_every_choice():
    """A mark for each oversubscription of each kind of traffic; a mark at each choice's cost and slowdown."""
    study = planted_study()
    (axes,) = topology.figures(study)["topology"].figure.axes
    marks = np.concatenate([np.reshape(line.get_xdata(), -1) for line in axes.lines])
    for one in study.judgements:
        assert np.isclose(marks, one.slowdown).any()
    panels = topology_prices.figures(planted_prices())["topology_prices"].figure.axes
    for axes, traffic in zip(panels, topology_prices.SHOWN, strict=True):
        places = np.concatenate([line.get_xydata() for line in axes.lines])
        chosen = [
            one for one in planted_prices().choices if (one.pattern, one.placement) == traffic
        ]
        assert chosen
        for one in chosen:
            assert np.isclose(places, (one.cost_per_node, one.slowdown)).all(axis=1).any()


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
