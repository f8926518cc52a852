"""Network designs: planted slowdowns come back, and the page's belief is judged."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import stats
from shown import words
from synthetic_topology import COMMUNICATION, flow_campaign, hpl_campaign, slowdown

import experiment
from analysis import paths
from analysis.descriptions.switch_designs import CROSSBAR
from analysis.experiments import topology
from analysis.experiments.topology import CONTRADICTED, HPL, MIXED, SUPPORTED
from runners.record import FalloffError

NETWORKS = experiment.read_testbed("nemo")["network"]
NODES = 480  # of the cluster
PLACEMENTS = ("in_order", "shuffled")


@cache
def planted_study():
    """The study of both campaigns."""
    return topology.analyse(flow_campaign(), hpl_campaign())


def of(study, pattern, placement="in_order"):
    """The judged rows of a kind of traffic."""
    judged = study.judged
    return judged[(judged.pattern == pattern) & (judged.placement == placement)]


def belief(study, pattern, placement="in_order"):
    return study.beliefs.set_index(["pattern", "placement"]).loc[(pattern, placement)]


def slower(name, factor):
    """The study with a design's slowdown so many times the planted one."""

    def planted(network, pattern, placement):
        times = factor if network == NETWORKS[name] else 1
        return times * slowdown(network, pattern, placement)

    return topology.analyse(flow_campaign(slowdown=planted))


def test_planted_slowdowns_come_back():
    """Of every kind of traffic on every design; HPL by its part of communication."""
    for one in planted_study().judged.itertuples():
        network, place = NETWORKS[one.interconnect], one.placement
        expected = slowdown(network, one.pattern, place)
        if one.pattern == HPL:
            part = COMMUNICATION / (1 if place == "shuffled" else 2)
            expected = 1 + part * (slowdown(network, "permutation", place) - 1)
        assert one.slowdown == pytest.approx(expected)
        assert one.pattern == HPL or one.nodes == NODES


def test_judgements_are_of_the_clusters_own_size():
    """The geometric mean over the runs with their extremes; where nothing ran on so many nodes, the next fewer."""
    noisy = topology.analyse(flow_campaign(noise=0.05))
    one = of(noisy, "permutation").iloc[0]
    at = {"interconnect": one.interconnect, "pattern": one.pattern, "placement": one.placement}
    runs = noisy.slowdowns.sel(**at, nodes=NODES).values
    assert (one.slowdown, one.least, one.most) == pytest.approx(
        (stats.gmean(runs), runs.min(), runs.max())
    )
    assert one.least < one.slowdown < one.most and one.runs == runs.size
    patterns = ("nearest_neighbour", "permutation", "all_to_all", "many_to_one")
    lost = {(CROSSBAR, *levels) for levels in product(patterns, PLACEMENTS, [NODES])}
    assert set(topology.analyse(flow_campaign(failed=lost)).judged.nodes) == {240}
    one_lost = topology.analyse(
        flow_campaign(failed={("e600_2to1", "permutation", "in_order", NODES)})
    )
    assert belief(one_lost, "permutation").designs == 3
    every = {(*levels, n) for *levels, _ in lost for n in (120, 240, 480, 960)}
    assert "cannot be told" in words(topology, topology.analyse(flow_campaign(failed=every)))


def test_the_belief_is_judged_on_the_pages_own_designs():
    """Neighbours in order and many-to-one lose nothing; a permutation loses, whatever other designs do."""
    study = planted_study()
    assert set(study.proposed) == {"cisco_dfc_2to1", "cisco_2to1", "e600_2to1", "e1200_2to1"}
    for pattern in ("nearest_neighbour", "many_to_one"):
        assert belief(study, pattern).kind == SUPPORTED
    assert belief(study, "all_to_all", "shuffled").kind == CONTRADICTED
    assert belief(slower("cisco_7to1", 9), "many_to_one").kind == SUPPORTED
    mixed = belief(slower("cisco_2to1", 9), "many_to_one")
    assert (mixed.kind, mixed.worst, mixed.best) == (MIXED, pytest.approx(9), pytest.approx(1))
    # A slowdown of at most 1 / 0.95, which is 1.053, counts as none.
    for factor, kind in ((1.05, SUPPORTED), (1.055, CONTRADICTED), (0.9, SUPPORTED)):
        planted = flow_campaign(slowdown=lambda network, *_: factor if "tree" in network else 1)
        assert set(topology.analyse(planted).beliefs.kind) == {kind}


def test_at_the_break_even_price_a_budget_buys_as_much_either_way():
    """So many nodes more, each so much slower; and a program in such traffic for its bearable part loses the margin."""
    price, part = topology.break_even(1.1, 250), topology.bearable(2.0, 0.05)
    assert 1 / price == pytest.approx(1 / (1.1 * (price - 250)))
    assert topology.break_even(1.0, 250) == math.inf
    assert 1 - part + part * 2.0 == pytest.approx(1 / (1 - 0.05))


def test_the_finding_follows_the_data():
    """Each answer names its traffic with the slowdowns, a placement only where the other differs."""
    said = words(topology, planted_study())
    assert (
        "2:1, traffic between neighbours (shuffled), between random pairs and from all to all"
        in said
    )
    assert "takes 2.00 times as long** (simulated evidence" in said
    assert "HPL takes 1.05 to 1.10 times as long" in said and "1 of Nemo's 4 designs" in said
    assert "between neighbours (in order) and from many to one loses no more than 5 %" in said
    # With these slowdowns of HPL the 250 USD saved buy more only of cheap nodes: 250 * 1.1 / 0.1.
    assert "costs less than 2750 to 5250 USD" in said
    assert "HPL" not in words(topology, topology.analyse(flow_campaign()))
    assert "depends on the design or the draw" in words(topology, slower("cisco_2to1", 9))


def test_a_campaign_without_crossbar_or_designs_is_refused(monkeypatch, tmp_path):
    """There is nothing to compare with, or no price: a line says what is wanted."""
    flows = flow_campaign()
    others = flows.isel(trial=np.flatnonzero(flows.interconnect != CROSSBAR))
    design = flows.attrs["design"].replace('"crossbar", "cisco', '"cisco')
    with pytest.raises(FalloffError, match="no network 'crossbar'"):
        topology.analyse(others.assign_attrs(design=design))
    monkeypatch.setattr(paths, "DESIGNS", tmp_path)
    with pytest.raises(FalloffError, match="no design file 'nemo'"):
        topology.analyse(flows)
