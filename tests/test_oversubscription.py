"""Network designs: planted slowdowns come back, and the page's belief is judged."""

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from executed import executed, words
from scipy import stats
from synthetic_oversubscription import COMMUNICATION, flow_campaign, hpl_campaign, slowdown

import experiment
from analysis import paths
from analysis.descriptions.switch_designs import CROSSBAR
from analysis.statistics.judgement import CONTRADICTED, SUPPORTED, UNDECIDED
from analysis.subjects import oversubscription
from analysis.subjects.oversubscription import HPL
from runners.record import FalloffError

NETWORKS = experiment.read_testbed("nemo")["network"]
NODES = 480  # of the cluster
PLACEMENTS = ("in_order", "shuffled")


def judged(flows, hpl=None):
    """The slowdowns and beliefs of these campaigns, at their margin of 5 %."""
    traffic = oversubscription.slowdowns_of_traffic(flows)
    of_hpl = None if hpl is None else oversubscription.slowdowns_of_hpl(hpl)
    return oversubscription.judged(oversubscription.designs_of(flows), 0.05, traffic, of_hpl)


@cache
def planted():
    """Both campaigns."""
    return judged(flow_campaign(), hpl_campaign())


@cache
def shown():
    """The notebook on both campaigns."""
    return executed("60", topology=flow_campaign(), oversubscription_hpl=hpl_campaign())


def of(found, pattern, placement="in_order"):
    """The judged rows of a kind of traffic."""
    judged = found.slowdowns
    return judged[(judged.pattern == pattern) & (judged.placement == placement)]


def belief(found, pattern, placement="in_order"):
    return found.beliefs.set_index(["pattern", "placement"]).loc[(pattern, placement)]


def slower(name, factor):
    """With a design's slowdown so many times the planted one."""

    def times_planted(network, pattern, placement):
        times = factor if network == NETWORKS[name] else 1
        return times * slowdown(network, pattern, placement)

    return judged(flow_campaign(slowdown=times_planted))


def test_planted_slowdowns_come_back():
    """Of every kind of traffic on every design; HPL by its part of communication."""
    for one in planted().slowdowns.itertuples():
        network, place = NETWORKS[one.interconnect], one.placement
        expected = slowdown(network, one.pattern, place)
        if one.pattern == HPL:
            part = COMMUNICATION / (1 if place == "shuffled" else 2)
            expected = 1 + part * (slowdown(network, "permutation", place) - 1)
        assert one.slowdown == pytest.approx(expected)
        assert one.pattern == HPL or one.nodes == NODES


def test_judgements_are_of_the_clusters_own_size():
    """The geometric mean over the runs with their extremes; where nothing ran on so many nodes, the next fewer."""
    flows = flow_campaign(noise=0.05)
    noisy = judged(flows)
    one = of(noisy, "permutation").iloc[0]
    at = {"interconnect": one.interconnect, "pattern": one.pattern, "placement": one.placement}
    runs = oversubscription.slowdowns_of_traffic(flows).sel(**at, nodes=NODES).values
    assert (one.slowdown, one.least, one.most) == pytest.approx(
        (stats.gmean(runs), runs.min(), runs.max())
    )
    assert one.least < one.slowdown < one.most and one.runs == runs.size
    patterns = ("nearest_neighbour", "permutation", "all_to_all", "many_to_one")
    lost = {(CROSSBAR, *levels) for levels in product(patterns, PLACEMENTS, [NODES])}
    assert set(judged(flow_campaign(failed=lost)).slowdowns.nodes) == {240}
    one_lost = judged(flow_campaign(failed={("e600_2to1", "permutation", "in_order", NODES)}))
    assert belief(one_lost, "permutation").designs == 3
    every = {(*levels, n) for *levels, _ in lost for n in (120, 240, 480, 960)}
    nothing = executed("60", topology=flow_campaign(failed=every))
    assert nothing.statements == () and words(nothing)


def test_the_belief_is_judged_on_the_pages_own_designs():
    """Neighbours in order and many-to-one lose nothing; a permutation loses, whatever other designs do."""
    found = planted()
    designs = oversubscription.designs_of(flow_campaign())
    assert set(oversubscription.proposed(designs)) == {
        "cisco_dfc_2to1",
        "cisco_2to1",
        "e600_2to1",
        "e1200_2to1",
    }
    for pattern in ("nearest_neighbour", "many_to_one"):
        assert belief(found, pattern).kind == SUPPORTED
    assert belief(found, "all_to_all", "shuffled").kind == CONTRADICTED
    assert belief(slower("cisco_7to1", 9), "many_to_one").kind == SUPPORTED
    mixed = belief(slower("cisco_2to1", 9), "many_to_one")
    assert (mixed.kind, mixed.worst, mixed.best) == (UNDECIDED, pytest.approx(9), pytest.approx(1))
    # A slowdown of at most 1 / 0.95, which is 1.053, counts as none.
    for factor, kind in ((1.05, SUPPORTED), (1.055, CONTRADICTED), (0.9, SUPPORTED)):
        flows = flow_campaign(slowdown=lambda network, *_: factor if "tree" in network else 1)
        assert set(judged(flows).beliefs.kind) == {kind}


def test_at_the_break_even_price_a_budget_buys_as_much_either_way():
    """So many nodes more, each so much slower; and a program in such traffic for its bearable part loses the margin."""
    price, part = oversubscription.break_even(1.1, 250), oversubscription.bearable(2.0, 0.05)
    assert 1 / price == pytest.approx(1 / (1.1 * (price - 250)))
    assert oversubscription.break_even(1.0, 250) == math.inf
    assert 1 - part + part * 2.0 == pytest.approx(1 / (1 - 0.05))


def test_the_statements_follow_the_data():
    """Each kind of traffic is answered by its worst slowdown; HPL's are primary, and absent where it did not run."""
    answers = {one.subject.partition(": ")[2]: one for one in shown().statements}
    assert answers["neighbours, in order, 480 nodes"].words == SUPPORTED
    random = answers["random pairs, in order, 480 nodes"]
    assert random.words == CONTRADICTED and random.estimate == pytest.approx(2)
    primary = [one for one in shown().statements if one.primary]
    assert [one.estimate for one in primary] == pytest.approx([1.05, 1.10])
    assert [one.answer for one in primary] == ["yes", "no"]  # up to 1 / 0.95 counts as none
    # With these slowdowns of HPL the 250 USD saved buy more only of cheap nodes: 250 * 1.1 / 0.1.
    assert "costs less than 2750 to 5250 USD" in words(shown())
    assert set(shown().figures) == {"topology"}
    designs = oversubscription.designs_of(flow_campaign())
    assert oversubscription.hpl_in_words(designs, judged(flow_campaign())) == ""


def test_a_campaign_without_crossbar_or_designs_is_refused(monkeypatch, tmp_path):
    """There is nothing to compare with, or no price: a line says what is wanted."""
    flows = flow_campaign()
    others = flows.isel(trial=np.flatnonzero(flows.interconnect != CROSSBAR))
    design = flows.attrs["design"].replace('"crossbar", "cisco', '"cisco')
    with pytest.raises(FalloffError, match="no network 'crossbar'"):
        judged(others.assign_attrs(design=design))
    monkeypatch.setattr(paths, "DESIGNS", tmp_path)
    with pytest.raises(FalloffError, match="nemo"):
        oversubscription.designs_of(flows)
