"""The bonding blog's claims: printed numbers are checked by each other, planted gains have their verdicts."""

import json
from functools import cache

import pytest
from claimed import as_evidence, judged, scaled, studies_of
from synthetic_rails import GAINS, LINKS, hpl_campaign, micro_campaign
from synthetic_smith import smith_campaign
from synthetic_studies import blas_campaign

from analysis import published

AS_PRINTED = {**GAINS, "ecmp_layer2": {1: 0.0, 2: 0.058, 4: 0.134, 8: 0.2}}


def studies(hpl, micro=None, **further):
    """The studies of HPL and of TCP over two links, and of further campaigns."""
    return studies_of({"link_hpl": hpl, "link_micro": micro, **further})


NOTHING = studies_of({})


@cache
def as_planted():
    """The studies of both campaigns as they are planted."""
    return studies(hpl_campaign(), micro_campaign())


@cache
def as_printed():
    """The studies of HPL with the blog's gains."""
    return studies(hpl_campaign(gains=AS_PRINTED, noise=0.005))


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("bonding_two_nodes", "inconsistent"),
        ("bonding_two_nodes_bonded", "consistent"),
        ("bonding_four_nodes", "consistent"),
        ("bonding_four_nodes_bonded", "consistent"),
    ],
)
def test_three_of_four_efficiencies_follow_from_their_rates(claim, verdict):
    """One peak gives them all but the first, which is one unit of its last digit off."""
    found = judged(claim, NOTHING, "published")
    assert found.verdict == verdict and "8.8" in found.reading


def test_another_printed_number_is_another_verdict(monkeypatch):
    """With 69.4 % printed nothing would be amiss; with another rate, the 60.3 % would be."""
    table = published.bonding_blog()
    table.loc[0, "rate_gflop_s"] = 12.20
    table.loc[2, "rate_gflop_s"] = 21.34
    monkeypatch.setattr(published, "bonding_blog", lambda: table)
    assert judged("bonding_two_nodes", NOTHING, "published").verdict == "consistent"
    assert judged("bonding_four_nodes", NOTHING, "published").verdict == "inconsistent"


def test_numbers_that_follow_from_others_are_no_finding():
    """Gains are computed from the printed rates, and from the efficiencies: both are named."""
    for claim, gain in (("bonding_gain_two_nodes", 1.058), ("bonding_gain_four_nodes", 1.134)):
        found = judged(claim, NOTHING, "published")
        assert found.verdict == "printed" and found.estimate == pytest.approx(gain, abs=5e-4)
        assert "the rates" in found.reading and "the efficiencies" in found.reading
    assert judged("bonding_gain_grows", NOTHING, "published").estimate == pytest.approx(
        1.134 / 1.058, abs=1e-3
    )


@pytest.mark.parametrize(
    ("claim", "planted", "blogs"),
    [
        ("bonding_gain_two_nodes", "contradicted", "supported"),
        ("bonding_gain_four_nodes", "contradicted", "supported"),
        ("bonding_gain_grows", "supported", "supported"),
        ("bonding_gain_much_greater", "undecided", "supported"),
        ("bonding_efficiency_falls", "supported", "supported"),
    ],
)
def test_planted_gains_have_their_verdicts(claim, planted, blogs):
    """Two links that give nothing on two nodes are not the blog's; its own gains are."""
    assert judged(claim, as_planted()).verdict == planted
    assert judged(claim, as_printed()).verdict == blogs
    assert judged(claim, as_printed()).n == 8


def test_gains_that_shrink_contradict_growth():
    """So does a network on which a node does more among four than among two."""
    shrinking = {**GAINS, "ecmp_layer2": {1: 0.0, 2: 0.2, 4: 0.1, 8: 0.05}}
    altered = scaled(hpl_campaign(gains=shrinking), "hpl_rate", 1.5, nodes=4)
    found = studies(altered)
    for claim in ("bonding_gain_grows", "bonding_gain_much_greater", "bonding_efficiency_falls"):
        assert judged(claim, found).verdict == "contradicted"
    assert judged("bonding_gain_grows", found).estimate == pytest.approx(1.05 / 1.2, rel=0.03)


def test_growth_is_of_the_blogs_node_counts_or_of_the_campaigns():
    """Two to four nodes are the blog's; the general claim takes the most nodes that there are."""
    assert "4 over 2" in judged("bonding_gain_much_greater", as_planted()).of
    assert "8 over 2" in judged("bonding_gain_grows", as_planted()).of


def test_one_pair_of_nodes_has_one_link():
    """By peer no number of connections uses the second link; where they did, the claim would be supported."""
    for claim in ("bonding_one_connection", "bonding_many_connections"):
        assert judged(claim, as_planted()).verdict == "contradicted"
    both = studies(
        hpl_campaign(blocks=2), micro_campaign(links={**LINKS, "ecmp_layer2": LINKS["mptcp"]})
    )
    for claim in ("bonding_one_connection", "bonding_many_connections"):
        assert judged(claim, both).verdict == "supported"
    assert judged("bonding_many_connections", both).of.startswith("8 connections")


def test_another_way_of_using_two_links_is_not_the_blogs():
    """Without a hash by peer nothing can be said."""
    data = hpl_campaign(blocks=2, preset="quick")
    assert "ecmp_layer2" not in json.loads(data.attrs["design"])["factors"]["aggregation"]
    found = judged("bonding_gain_two_nodes", studies(data))
    assert found.verdict == "not testable" and "hash of the peers" in found.reason


@pytest.mark.parametrize(
    ("factor", "verdict"), [(2.0, "supported"), (5.0, "contradicted"), (1.1, "contradicted")]
)
def test_the_better_blas_doubles_or_not(factor, verdict):
    """A factor of five is no doubling either, but both gain more than the second link."""
    data = blas_campaign(factor=factor)
    found = studies_of({"hpl_blas": data})
    assert judged("bonding_blas_doubled", found).verdict == verdict
    assert judged("bonding_blas_doubled", found).estimate == pytest.approx(factor, rel=0.05)
    assert (judged("bonding_blas_matters_more", found).verdict == "supported") == (factor > 1.134)


@pytest.mark.parametrize(("factor", "verdict"), [(1.1, "supported"), (0.9, "contradicted")])
def test_simulated_growth_is_of_a_link_of_twice_the_rate(factor, verdict):
    """On larger clusters, from the first to the largest that both networks were simulated on."""
    data = scaled(
        smith_campaign("hpl_beyond"), "hpl_rate", factor, interconnect="gige_bonded", nodes=256
    )
    found = judged("bonding_gain_grows", studies_of({"hpl_beyond": data}), "simulated")
    assert found.verdict == verdict and "256 over 36 nodes" in found.of
    assert found.estimate == pytest.approx(factor)


def test_two_studies_of_one_kind_of_evidence_are_one_judgement():
    """A user who measures both the paper's cases and two links has the latter judged, which is the blog's."""
    hpl = as_evidence(hpl_campaign(blocks=3), "measured")
    cases = as_evidence(smith_campaign("hpl_paper"), "measured")
    found = judged("bonding_efficiency_falls", studies(hpl, hpl_paper=cases), "measured")
    assert found.campaign == "link_hpl" and found.verdict == "supported"
