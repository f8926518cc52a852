"""Network designs: planted slowdowns come back, and the page's belief is judged."""

import re
from functools import cache
from itertools import product

import numpy as np
import pytest
from executed import executed, words
from scipy import stats
from synthetic_oversubscription import COMMUNICATION, flow_campaign, hpl_campaign, slowdown

from analysis import paths
from analysis.descriptions import testbeds
from analysis.descriptions.switch_designs import CROSSBAR
from runners.records.record import FalloffError

NETWORKS = testbeds.read("nemo").plain()["network"]
NODES = 480  # of the cluster
PLACEMENTS = ("in_order", "shuffled")
HPL = "hpl"


def notebook(flows):
    """The notebook on this campaign of flows alone, at its margin of 5 %."""
    return executed("60", oversubscription=flows)


@cache
def shown():
    """The notebook on both campaigns."""
    return executed("60", oversubscription=flow_campaign(), oversubscription_hpl=hpl_campaign())


def belief(run, pattern, placement="in order"):
    """What is believed of a kind of traffic."""
    return run.names["beliefs"].set_index(["pattern", "placement"]).loc[(pattern, placement)]


def slower(name, factor):
    """With a design's slowdown so many times the planted one."""

    def times_planted(network, pattern, placement):
        times = factor if network == NETWORKS[name] else 1
        return times * slowdown(network, pattern, placement)

    return notebook(flow_campaign(slowdown=times_planted))


def test_planted_slowdowns_come_back():
    """Of every kind of traffic on every design; HPL by its part of communication."""
    for one in shown().names["judged"].itertuples():
        network, place = NETWORKS[one.interconnect], one.placement.replace(" ", "_")
        expected = slowdown(network, one.pattern, place)
        if one.pattern == HPL:
            part = COMMUNICATION / (1 if place == "shuffled" else 2)
            expected = 1 + part * (slowdown(network, "permutation", place) - 1)
        assert one.slowdown == pytest.approx(expected)
        assert one.pattern == HPL or one.nodes == NODES


def test_judgements_are_of_the_clusters_own_size():
    """The geometric mean over the runs with their extremes; where nothing ran on so many nodes, the
    next fewer.
    """
    flows = flow_campaign(noise=0.05)
    noisy = notebook(flows).names
    is_there = (noisy["judged"].pattern == "permutation") & (
        noisy["judged"].placement == "in order"
    )
    one = noisy["judged"][is_there].iloc[0]
    levels = ["interconnect", "pattern", "placement", "nodes"]
    runs = noisy["table"].set_index(levels).slowdown.sort_index()
    runs = runs.loc[(one.interconnect, one.pattern, "in order", NODES)].values
    assert (one.slowdown, one.least, one.most) == pytest.approx(
        (stats.gmean(runs), runs.min(), runs.max())
    )
    assert one.least < one.slowdown < one.most and one.runs == runs.size
    patterns = ("nearest_neighbour", "permutation", "all_to_all", "many_to_one")
    lost = {(CROSSBAR, *levels) for levels in product(patterns, PLACEMENTS, [NODES])}
    assert set(notebook(flow_campaign(failed=lost)).names["judged"].nodes) == {240}
    every = {(*levels, n) for *levels, _ in lost for n in (120, 240, 480, 960)}
    nothing = executed("60", oversubscription=flow_campaign(failed=every))
    assert nothing.statements == () and words(nothing)


def test_the_belief_is_judged_on_the_pages_own_designs():
    """Neighbours in order and many-to-one lose nothing; a permutation loses, whatever other designs
    do.
    """
    run = shown()
    assert set(run.names["proposals"]) == {
        "cisco_dfc_2to1",
        "cisco_2to1",
        "e600_2to1",
        "e1200_2to1",
    }
    for pattern in ("nearest_neighbour", "many_to_one"):
        assert belief(run, pattern).answer == "yes"
    assert belief(run, "all_to_all", "shuffled").answer == "no"
    assert belief(slower("cisco_7to1", 9), "many_to_one").answer == "yes"
    mixed = belief(slower("cisco_2to1", 9), "many_to_one")
    assert (mixed.answer, mixed.slowdown, mixed.best) == (
        "undecided",
        pytest.approx(9),
        pytest.approx(1),
    )
    # A slowdown of at most 1 / 0.95, which is 1.053, counts as none.
    for factor, answer in ((1.05, "yes"), (1.055, "no"), (0.9, "yes")):
        flows = flow_campaign(slowdown=lambda network, *_: factor if "tree" in network else 1)
        assert set(notebook(flows).names["beliefs"].answer) == {answer}


def test_at_the_break_even_price_a_budget_buys_as_much_either_way():
    """So many nodes more, each so much slower; and a program in such traffic for its bearable part
    loses the margin.
    """
    prices = re.search(r"costs less than (\d+) to (\d+) USD", words(shown())).groups()
    for price, slower in zip(map(float, prices), (1.10, 1.05)):
        assert 1 / price == pytest.approx(1 / (slower * (price - 250)))
    part = shown().names["share"]
    assert 1 - part + part * 2.0 == pytest.approx(1 / (1 - 0.05))
    assert f"less than about {100 * part:.0f} % of its time" in words(shown())
    free = executed(
        "60", oversubscription=flow_campaign(), oversubscription_hpl=hpl_campaign(communication=0)
    )
    assert "USD" not in words(free)  # there is no loss to win back


def test_the_statements_follow_the_data():
    """Each kind of traffic is answered by its worst slowdown; HPL's are primary, and absent where
    it did not run.
    """
    answers = {one.subject.partition(": ")[2]: one for one in shown().statements}
    assert answers["neighbours, in order, 480 nodes"].words == "yes"
    random = answers["random pairs, in order, 480 nodes"]
    assert random.words == "no" and random.estimate == pytest.approx(2)
    primary = [one for one in shown().statements if one.primary]
    assert [one.estimate for one in primary] == pytest.approx([1.05, 1.10])
    assert [one.answer for one in primary] == ["yes", "no"]  # up to 1 / 0.95 counts as none
    # With these slowdowns of HPL the 250 USD saved buy more only of cheap nodes: 250 * 1.1 / 0.1.
    assert "costs less than 2750 to 5250 USD" in words(shown())
    assert set(shown().figures) == {"topology"}
    assert "HPL takes" not in words(notebook(flow_campaign()))


def test_a_campaign_without_crossbar_or_designs_is_refused(monkeypatch, tmp_path):
    """There is nothing to compare with, or no price: a line says what is wanted."""
    flows = flow_campaign()
    others = flows.isel(trial=np.flatnonzero(flows.interconnect != CROSSBAR))
    design = flows.attrs["design"].replace('"crossbar", "cisco', '"cisco')
    with pytest.raises(FalloffError, match="no network 'crossbar'"):
        notebook(others.assign_attrs(design=design))
    monkeypatch.setattr(paths, "DESIGNS", tmp_path)
    with pytest.raises(FalloffError, match="nemo"):
        notebook(flows)
