"""Points of a campaign: shares of what is known of the nodes, and traffic that must have crossed
the links.
"""

import json

import numpy as np
import pytest
import xarray as xr
from synthetic import DAEMONS, NODE_RATE, campaign, rate_without_noise
from synthetic_scale_model import dilated_campaign
from synthetic_studies import blas_campaign, noise_campaign, size_campaign
from synthetic_switch import frame_size_limit

from analysis.dataset.derive import at_only_level, broadcast_bytes, over_factors, points
from analysis.statistics.intervals import ratios
from runners.records.record import FalloffError


def with_testbed(dataset, **described):
    """The dataset on a testbed that is described so."""
    settings = json.dumps({"name": "x", "nodes": 8, **described})
    return dataset.assign_attrs(testbed_settings=settings)


def test_points_are_the_planted_ones():
    """Without noise, rate, known rate of n nodes and share."""
    found = points(campaign(noise=0, block_effect=0, falls={"gige": 0.13}))
    assert found.rate.dims == ("block", "interconnect", "nodes")
    for interconnect, n in (("gige", 8), ("10gige", 4), ("unshaped", 1)):
        rate = rate_without_noise(interconnect, n, {"gige": 0.13}, 8)
        point = found.sel(interconnect=interconnect, nodes=n)
        np.testing.assert_allclose(point.rate, rate)
        np.testing.assert_allclose(point.share, rate / (n * NODE_RATE))
    assert found.evidence.item() == "emulated" and "design" in found.attrs


def test_what_is_known_of_a_node_is_what_a_share_is_of():
    """The nearest to what the nodes do: paced, modelled, then the theoretical peak."""
    for described, of, rate in (
        ({"node": {"flop_s": 2e9, "dilation": 10}}, "the nodes' paced rate", 2.0),
        ({"rates": {"dgemm_flop_s": {"value": 3e9}}}, "the modelled nodes' DGEMM rate", 3.0),
        ({}, "Rpeak", 9.0),
    ):
        dataset = with_testbed(campaign(blocks=2), rpeak={"value": 9e9}, **described)
        found = points(dataset)
        assert found.share.attrs["of"] == found.known_rate.attrs["of"] == of
        np.testing.assert_allclose(found.known_rate / found.nodes, rate)


def test_a_rate_is_on_the_scale_of_time_that_its_testbed_describes():
    """What ran twice as slow counts twice, whether a factor varies the dilation or each point has
    its own.
    """
    varied = points(dilated_campaign(blocks=2))
    assert varied.known_rate.dims == ("block", "nodes")
    for dilation in (100, 400):
        np.testing.assert_allclose(
            varied.rate.sel(dilation=dilation), varied.rate.sel(dilation=400), rtol=0.01
        )
    plain = campaign(blocks=2)
    paced = with_testbed(plain, node={"flop_s": 85e6, "dilation": 10})
    slowed = paced.assign_coords(
        dilation=("trial", np.where(paced.interconnect == "gige", 40.0, np.nan))
    )
    slowed["hpl_rate"] = paced.hpl_rate / (slowed.dilation.fillna(10) / 10)
    xr.testing.assert_allclose(points(slowed).rate, points(paced).rate)


def test_of_unknown_nodes_the_share_is_the_parallel_efficiency():
    """Of n times the mean rate on one node in the same block, whatever the block's speed; without
    one node that of each network on the fewest."""
    found = points(with_testbed(campaign(noise=0, block_effect=0.2), rpeak={"value": "unknown"}))
    assert found.share.attrs["of"] == "n times the rate on one node"
    np.testing.assert_allclose(found.share.sel(nodes=1), 1.0)
    assert found.rate.sel(interconnect="gige", nodes=8).std() > 2
    assert found.share.sel(interconnect="gige", nodes=8).std() < 1e-9
    without = points(with_testbed(campaign(nodes=(2, 4, 8))))
    assert without.share.attrs["of"] == "n times the rate per node on the fewest nodes"
    np.testing.assert_allclose(ratios(np.log(without.share.sel(nodes=2))).ratio, 1.0, rtol=0.01)


def test_traffic_that_did_not_cross_the_interfaces_is_refused():
    """Fewer bytes than the panels hold: the run used another path and is no measurement of this
    network.
    """
    dataset = campaign(blocks=2)
    hidden = (dataset.block == 1) & (dataset.interconnect == "gige") & (dataset.nodes > 1)
    few = dataset.bytes_sent.where(~(hidden & (dataset.role == "point")), 1e6)
    found = points(dataset.assign(bytes_sent=few)).sel(interconnect="gige")
    assert found.rate.isnull().sel(block=1).values.tolist() == [False, True, True, True]
    assert "panels" in found.reason.sel(block=1, nodes=8).item()
    assert found.rate.notnull().sel(block=2).all()


def test_broadcast_bytes_are_below_the_exact_sum_of_the_panels():
    """Within a few percent of every panel sent once to each other process column; processes of a
    node need no network.
    """
    N, NB, Q = 4096, 64, 8
    panels = sum(8 * NB * (N - row) * (Q - 1) for row in range(0, N, NB))
    assert 0.95 * panels < broadcast_bytes(N, Q) <= panels
    for each, other_nodes in ((1, 7), (2, 3), (3, 2), (8, 0), (16, 0)):
        assert broadcast_bytes(N, Q, each) == other_nodes * broadcast_bytes(N, 2)


def test_mixed_evidence_and_no_hpl_are_refused():
    dataset = campaign(blocks=2)
    kinds = np.where(dataset.block == 2, "measured", "emulated")
    with pytest.raises(FalloffError, match="emulated, measured"):
        points(dataset.assign_coords(evidence=("trial", kinds)))
    with pytest.raises(FalloffError, match="no HPL trial"):
        points(dataset.isel(trial=dataset.role == "survey"))


def test_points_are_laid_out_over_the_designs_factors():
    """Every trial finds its place, whatever the factors. What failed or did not run is a point
    without a value, in the design's order, with the reason."""
    dataset = blas_campaign(blocks=1)
    found = points(dataset)
    factors = "interconnect", "nodes", "blas", "N"
    assert found.rate.dims == found.share.dims == ("block", *factors)
    assert found.known_rate.dims == ("block", "nodes")
    assert found.rate.notnull().all() and (found.reason == "").all()
    assert all(name in found.coords and name not in found.data_vars for name in factors)
    trials = dataset.isel(trial=(dataset.runner == "hpl").values)
    for trial in range(trials.sizes["trial"]):
        one = trials.isel(trial=trial)
        at = {name: one[name].item() for name in ("block", *factors)}
        assert found.rate.sel(at).item() == one.hpl_rate.item()
    failed = points(campaign(blocks=2, failed={(1, "gige", 8)}))
    point = failed.sel(block=1, interconnect="gige", nodes=8)
    assert np.isnan(point.rate) and np.isnan(point.share) and point.reason == "planted fault"
    dataset, left_out = noise_campaign(blocks=2), "2 % at 10 Hz"
    found = points(dataset.isel(trial=(dataset.daemon != left_out).values))
    missing = found.rate.isnull().all(["block", "interconnect", "nodes"])
    assert found.daemon.values.tolist() == list(DAEMONS)
    assert found.daemon[missing].values.tolist() == [left_out]
    assert (found.reason.sel(daemon=left_out) == "not run").all()


def test_another_runners_trials_and_the_only_level_of_a_factor():
    """The runner's own trials only; a factor that is no or yes is 0 or 1; a study of one level does
    not take the first.
    """
    dataset = frame_size_limit(blocks=2)
    found = over_factors(dataset, "frame_limit", payload=dataset.frame_payload)
    assert found.payload.dims == ("block", "path", "load")
    assert found["load"].values.tolist() == [0, 1] and found.payload.notnull().all()
    with pytest.raises(FalloffError, match="holds no HPL trial"):
        over_factors(dataset)
    sizes = points(size_campaign(blocks=1))
    assert at_only_level(sizes, "nodes").rate.dims == ("block", "interconnect", "N")
    with pytest.raises(FalloffError, match="single level of interconnect, not gige, 10gige"):
        at_only_level(sizes, "interconnect")
