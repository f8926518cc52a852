"""Network designs: planted slowdowns come back, and the page's belief is judged."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from synthetic_topology import COMMUNICATION, flow_campaign, hpl_campaign, slowdown

import experiment
from analysis import paths
from analysis.designs import CROSSBAR
from analysis.experiments import topology
from analysis.experiments.topology import CONTRADICTED, HPL, MIXED, SUPPORTED
from runners.record import FalloffError

DESIGNS = experiment.read_designs(paths.DESIGNS / "nemo.toml")
NETWORKS = experiment.read_testbed("nemo")["network"]
PATTERNS = ("nearest_neighbour", "permutation", "all_to_all", "many_to_one")
NODES, PLACEMENTS = (120, 240, 480, 960), ("in_order", "shuffled")


@cache
def flows():
    """The campaign of flows as it is planted."""
    return flow_campaign()


@cache
def planted_study():
    """The study of both campaigns."""
    return topology.analyse(flows(), hpl_campaign())


def of(study, pattern, placement="in_order"):
    return [one for one in study.judgements if (one.pattern, one.placement) == (pattern, placement)]


def belief(study, pattern, placement="in_order"):
    beliefs = study.beliefs.set_index(["pattern", "placement"])
    return beliefs.loc[(pattern, placement)]


def words(study):
    return topology.finding(study).replace("\u00a0", " ")


def slower(name, factor):
    """The study with a design's slowdown so many times the planted one."""

    def planted(network, pattern, placement):
        times = factor if network == NETWORKS[name] else 1
        return times * slowdown(network, pattern, placement)

    return topology.analyse(flow_campaign(slowdown=planted))


def test_planted_slowdowns_come_back():
    """Every run of every trial, on as many nodes as the design has room for; HPL by its part of communication."""
    room, slowdowns = planted_study().costs.largest_cluster, planted_study().slowdowns
    points = slowdowns.stack(point=("interconnect", "pattern", "placement", "nodes"))
    for point in points.transpose("point", "run"):
        name, pattern, placement, nodes = point.point.item()
        planted = slowdown(NETWORKS[name], pattern, placement)
        np.testing.assert_allclose(point, planted if nodes <= room[name] else np.nan)
    for placement, part in {"in_order": COMMUNICATION / 2, "shuffled": COMMUNICATION}.items():
        for one in of(planted_study(), HPL, placement):
            beyond = slowdown(NETWORKS[one.interconnect], "permutation", placement) - 1
            assert one.slowdown == pytest.approx(1 + part * beyond) and one.runs == 1


def test_judgements_are_of_the_clusters_own_size():
    """The geometric mean over the runs with their extremes; where nothing ran on so many nodes, the next fewer."""
    noisy, nodes = topology.analyse(flow_campaign(noise=0.05)), DESIGNS.cluster["nodes"]
    for one in of(noisy, "permutation"):
        at = {"interconnect": one.interconnect, "pattern": one.pattern, "placement": one.placement}
        runs = noisy.slowdowns.sel(**at, nodes=nodes).values
        ends = stats.gmean(runs), runs.min(), runs.max()
        assert (one.slowdown, one.least, one.most) == pytest.approx(ends)
        assert one.least < one.slowdown < one.most and (one.runs, one.nodes) == (runs.size, nodes)
    lost = {(CROSSBAR, *levels) for levels in product(PATTERNS, PLACEMENTS, [nodes])}
    assert {one.nodes for one in topology.analyse(flow_campaign(failed=lost)).judgements} == {240}


def test_the_belief_is_judged_on_the_pages_own_designs():
    """Neighbours in order and many-to-one lose nothing; a permutation loses, whatever other designs do."""
    study = planted_study()
    assert set(study.proposed) == {"cisco_dfc_2to1", "cisco_2to1", "e600_2to1", "e1200_2to1"}
    for pattern in ("nearest_neighbour", "many_to_one"):
        assert belief(study, pattern).kind == SUPPORTED
    for pattern in ("nearest_neighbour", "permutation", "all_to_all"):
        assert belief(study, pattern, "shuffled").kind == CONTRADICTED
    assert belief(slower("cisco_7to1", 9), "many_to_one").kind == SUPPORTED
    mixed = belief(slower("cisco_2to1", 9), "many_to_one")
    assert (mixed.kind, mixed.worst, mixed.best) == (MIXED, pytest.approx(9), pytest.approx(1))


@pytest.mark.parametrize(
    ("factor", "kind"), [(1.05, SUPPORTED), (1.055, CONTRADICTED), (0.9, SUPPORTED)]
)
def test_the_margin_divides_what_costs_something(factor, kind):
    """A slowdown of at most 1 / 0.95, which is 1.053, counts as none."""
    study = topology.analyse(
        flow_campaign(slowdown=lambda network, *_: factor if "tree" in network else 1)
    )
    assert set(study.beliefs.kind) == {kind}


@given(slow=st.floats(1.01, 3), saved=st.floats(1, 1000), margin=st.floats(0.01, 0.2))
def test_at_the_break_even_price_a_budget_buys_as_much_either_way(slow, saved, margin):
    """So many nodes more, each so much slower; and a program in such traffic for its bearable part loses the margin."""
    price = topology.break_even(slow, saved)
    assert 1 / price == pytest.approx(1 / (slow * (price - saved)))
    assert topology.break_even(1.0, saved) == math.inf
    part = topology.bearable(slow, margin)
    assert part == 1 or 1 - part + part * slow == pytest.approx(1 / (1 - margin))


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
    assert belief(study, "permutation").designs == 3
    assert not of(study, "all_to_all", "shuffled")
    assert len(of(study, "all_to_all")) == len(DESIGNS.designs)
    every = {(CROSSBAR, *levels) for levels in product(PATTERNS, PLACEMENTS, NODES)}
    assert "cannot be told" in words(topology.analyse(flow_campaign(failed=every)))


def test_the_finding_follows_the_data():
    """Each answer names its traffic with the slowdowns, a placement only where the other differs."""
    said = words(planted_study())
    assert (
        "2:1, traffic between neighbours (shuffled), between random pairs and from all to all"
        in said
    )
    assert "takes 2.00 times as long** (simulated evidence" in said
    assert "HPL takes 1.05 to 1.10 times as long" in said and "1 of the page's 4 designs" in said
    assert "between neighbours (in order) and from many to one loses no more than 5 %" in said
    # With these slowdowns of HPL the 250 USD saved buy more only of cheap nodes: 250 * 1.1 / 0.1.
    assert "costs less than 2750 to 5250 USD" in said
    assert "HPL" not in words(topology.analyse(flows()))
    assert "depends on the design or the draw" in words(slower("cisco_2to1", 9))


def test_the_figure_has_every_slowdown():
    """A mark for each oversubscription of each kind of traffic."""
    (axes,) = topology.figures(planted_study())["topology"].figure.axes
    marks = np.concatenate([np.reshape(line.get_xdata(), -1) for line in axes.lines])
    for one in planted_study().judgements:
        assert np.isclose(marks, one.slowdown).any()


def test_without_a_network_to_compare_with_there_is_nothing_to_analyse():
    """A campaign without the crossbar is refused."""
    others = flows().isel(trial=np.flatnonzero(flows().interconnect != CROSSBAR))
    design = flows().attrs["design"].replace('"crossbar", "cisco', '"cisco')
    with pytest.raises(FalloffError, match="no network 'crossbar'"):
        topology.analyse(others.assign_attrs(design=design))


def test_a_design_file_that_is_gone_is_named(monkeypatch, tmp_path):
    """The dataset has no prices of its own: without the file there is a line that says which one it wants."""
    campaign = flows()
    monkeypatch.setattr(paths, "DESIGNS", tmp_path)
    with pytest.raises(FalloffError, match="nemo.toml"):
        topology.analyse(campaign)
