"""The balance of communication and computation: the historical cluster's and a campaign's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import campaign

from analysis.balance import balance, bandwidth_share, latency_share
from analysis.derive import points
from analysis.links import networks
from analysis.published import smith, smith_table1
from runners.record import FalloffError

GIGE_BANDWIDTH = 110e6  # B/s, assumed for MPI on Gigabit Ethernet: the paper prints none
DGEMM_EFFICIENCY = 0.88  # assumed


def test_the_published_cases_keep_one_balance():
    """On Gigabit Ethernet all 15 cases of Table 1 lie between 0.0165 and 0.0187."""
    cases = smith_table1()
    node_rate = DGEMM_EFFICIENCY * smith()["cluster"]["rpeak_per_node"]["value"] * 1e9
    shares = bandwidth_share(cases.nodes, node_rate, GIGE_BANDWIDTH, cases.N, cases.P, cases.Q)
    assert len(shares) == 15
    assert shares.round(4).between(0.0165, 0.0187).all()


@given(st.integers(2, 64), st.floats(1, 100))
def test_faster_nodes_on_equally_faster_links_keep_the_balance(n, factor):
    """Only the ratio of node to link speed counts, and of node speed to latency."""
    here = bandwidth_share(n, 4e9, 1e8, 8192, 1, n)
    assert bandwidth_share(n, factor * 4e9, factor * 1e8, 8192, 1, n) == pytest.approx(here)
    assert latency_share(n, factor * 4e9, 5e-5 / factor, 8192) == pytest.approx(
        latency_share(n, 4e9, 5e-5, 8192)
    )


def test_the_balance_of_a_campaign():
    """F is a node's DGEMM, BW the link's goodput, alpha half the round trip; one node has no traffic."""
    dataset = campaign(noise=0, block_effect=0)
    found = balance(points(dataset), networks(dataset))
    assert found.nodes.values.tolist() == [2, 4, 8]
    assert found.interconnect.values.tolist() == ["gige", "10gige", "unshaped"]
    at_8 = found.sel(interconnect="gige", nodes=8)
    assert at_8.bandwidth_share == pytest.approx(8 * 4.35e9 / (0.94e9 / 8 * 8640) * (1 + 1 / 8), rel=0.01)
    assert at_8.latency_share == pytest.approx(30e-6 * 8 * 4.35e9 / 8640**2, rel=0.01)


def test_a_campaign_without_a_survey_has_no_balance():
    """It says what is missing."""
    dataset = campaign(blocks=1)
    bare = dataset.isel(trial=dataset.role != "survey")
    with pytest.raises(FalloffError, match="survey"):
        balance(points(dataset), networks(bare))
