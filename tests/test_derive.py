"""Points of a campaign: shares of what is known of the nodes, and traffic that must have crossed the links."""

import json

import numpy as np
import pytest
from synthetic import DAEMONS, NODE_RATE, campaign, rate_without_noise
from synthetic_scale_model import dilated_campaign
from synthetic_studies import blas_campaign, noise_campaign, size_campaign
from synthetic_switch import frame_limits

from analysis.derive import at_only_level, broadcast_bytes, over_factors, points
from runners.record import FalloffError


def with_values(dataset, name, chosen, value):
    """The dataset with one variable changed at the trials where `chosen` holds."""
    return dataset.assign({name: dataset[name].where(~chosen, value).assign_attrs(dataset[name].attrs)})


def with_testbed(dataset, **described):
    """The dataset on a testbed that is described so."""
    return dataset.assign_attrs(testbed_settings=json.dumps({"name": "x", "nodes": 8, **described}))


def test_the_share_is_of_the_paced_rate():
    """Without noise, rate, known rate of n nodes and share are the planted ones."""
    found = points(campaign(noise=0, block_effect=0, falls={"gige": 0.13}))
    assert found.rate.dims == ("block", "interconnect", "nodes")
    assert found.share.attrs["of"] == found.known_rate.attrs["of"] == "the nodes' paced rate"
    for interconnect, n in (("gige", 8), ("10gige", 4), ("unshaped", 1)):
        rate = rate_without_noise(interconnect, n, {"gige": 0.13}, 8)
        point = found.sel(interconnect=interconnect, nodes=n)
        np.testing.assert_allclose(point.rate, rate)
        np.testing.assert_allclose(point.known_rate, n * NODE_RATE)
        np.testing.assert_allclose(point.share, rate / (n * NODE_RATE))


@pytest.mark.parametrize(
    ("described", "of", "rate"),
    [
        ({"node": {"flop_s": 2e9}, "rpeak": {"value": 9e9}}, "the nodes' paced rate", 2.0),
        ({"rates": {"dgemm_flop_s": {"value": 3e9}}, "rpeak": {"value": 9e9}}, "the modelled nodes' DGEMM rate", 3.0),
        ({"rpeak": {"value": 9e9}}, "Rpeak", 9.0),
    ],
)
def test_what_is_known_of_a_node_is_what_a_share_is_of(described, of, rate):
    """The nearest to what the nodes do: paced, modelled, then the theoretical peak."""
    found = points(with_testbed(campaign(blocks=2), **described))
    assert found.share.attrs["of"] == of
    np.testing.assert_allclose(found.known_rate / found.nodes, rate)


def test_slower_nodes_are_known_to_be_slower():
    """At twice the described dilation a node's known rate is half, whether all points have it or a factor varies it."""
    settings = json.dumps({"dilation": 20})
    once = with_testbed(campaign(blocks=2), node={"flop_s": 2e9, "dilation": 10}).assign_attrs(settings=settings)
    np.testing.assert_allclose(points(once).known_rate / points(once).nodes, 1.0)
    varied = points(dilated_campaign(blocks=2))
    assert varied.known_rate.dims == ("block", "nodes", "dilation")
    of_a_node = varied.known_rate.sel(dilation=[5, 10, 20]).isel(block=0, nodes=1) / 8
    np.testing.assert_allclose(of_a_node, [0.17, 0.085, 0.0425])


def test_of_unknown_nodes_the_share_is_the_parallel_efficiency():
    """Of n times the mean rate on one node in the same block, whatever the block's speed; NaN without one node."""
    dataset = with_testbed(campaign(noise=0, block_effect=0.2), rpeak={"value": "unknown"})
    found = points(dataset)
    assert found.share.attrs["of"] == "n times the rate on one node"
    np.testing.assert_allclose(found.share.sel(nodes=1), 1.0)
    assert found.rate.sel(interconnect="gige", nodes=8).std() > 2
    assert found.share.sel(interconnect="gige", nodes=8).std() < 1e-9
    without = points(with_testbed(campaign(nodes=(2, 4, 8))))
    assert without.rate.notnull().all() and without.share.isnull().all()


def test_what_older_campaigns_measured_beside_hpl_is_not_read():
    """A trial of DGEMM before a block changes nothing."""
    dataset = campaign(blocks=2)
    role = np.where(np.arange(dataset.sizes["trial"]) == 0, "before", dataset.role.values)
    runner = np.where(np.arange(dataset.sizes["trial"]) == 0, "dgemm", dataset.runner.values)
    older = dataset.assign_coords(role=("trial", role), runner=("trial", runner))
    assert points(older).rate.identical(points(dataset).rate)


def test_every_variable_says_its_unit():
    """Numbers carry units and long names; evidence and the design travel along."""
    found = points(campaign(blocks=2))
    numbers = [name for name, array in found.data_vars.items() if array.dtype.kind == "f"]
    assert {"rate", "known_rate", "share"} <= set(numbers)
    assert all({"units", "long_name"} <= set(found[name].attrs) for name in numbers)
    assert found.evidence.item() == "emulated" and "design" in found.attrs


def test_a_failed_run_is_nan_with_its_reason():
    """The trial's own reason travels to its point."""
    found = points(campaign(blocks=2, failed={(1, "gige", 8)}))
    point = found.sel(block=1, interconnect="gige", nodes=8)
    assert np.isnan(point.rate) and np.isnan(point.share) and point.reason == "planted fault"
    assert found.rate.isnull().sum() == 1


def test_an_interrupted_block_says_what_did_not_run():
    """Trials that never happened are points without a value, not missing rows."""
    dataset = campaign(blocks=2)
    found = points(dataset.isel(trial=slice(0, dataset.sizes["trial"] - 8)))
    last = found.sel(block=2)
    assert last.rate.isnull().sum() == 8 and (last.reason == "not run").sum() == 8
    assert (
        points(dataset.isel(trial=dataset.interconnect != "gige")).reason.sel(interconnect="gige")[0, 0]
        == "not run"
    )


def test_traffic_that_did_not_cross_the_interfaces_is_refused():
    """Fewer bytes than the panels hold: the run used another path and is no measurement of this network."""
    dataset = campaign(blocks=2)
    hidden = (
        (dataset.role == "point")
        & (dataset.block == 1)
        & (dataset.interconnect == "gige")
        & (dataset.nodes > 1)
    )
    found = points(with_values(dataset, "bytes_sent", hidden, 1e6)).sel(interconnect="gige")
    assert found.rate.isnull().sel(block=1).values.tolist() == [False, True, True, True]
    assert "panels" in found.reason.sel(block=1, nodes=8).item()
    assert found.rate.notnull().sel(block=2).all()


def test_broadcast_bytes_are_below_the_exact_sum_of_the_panels():
    """The bound is within a few percent of every panel sent once to each other process column."""
    N, NB, Q = 4096, 64, 8
    panels = sum(8 * NB * (N - row) * (Q - 1) for row in range(0, N, NB))
    assert 0.95 * panels < broadcast_bytes(N, Q) <= panels
    assert broadcast_bytes(N, 1) == 0


@pytest.mark.parametrize(("each", "other_nodes"), [(1, 7), (2, 3), (3, 2), (8, 0), (16, 0)])
def test_processes_of_a_node_need_no_network_between_them(each, other_nodes):
    """A panel goes once to each other node of a process row, however many of its processes are there."""
    assert broadcast_bytes(4096, 8, each) == other_nodes * broadcast_bytes(4096, 2)


def test_evidence_is_never_mixed():
    """Two kinds of evidence in one dataset are refused."""
    dataset = campaign(blocks=2)
    kinds = np.where(dataset.block == 2, "measured", "emulated")
    with pytest.raises(FalloffError, match="emulated, measured"):
        points(dataset.assign_coords(evidence=("trial", kinds)))


def test_a_campaign_without_hpl_is_refused():
    """A survey alone has no points."""
    dataset = campaign(blocks=1)
    with pytest.raises(FalloffError, match="no HPL trial"):
        points(dataset.isel(trial=dataset.role == "survey"))


def test_points_carry_what_limits_their_links():
    """Every point knows its links' goodput; without a survey they are unknown, not zero."""
    dataset = campaign()
    found = points(dataset)
    assert (found.goodput > 0).all()
    assert found.limit.sel(interconnect="gige") == "link-bound"
    unsurveyed = points(dataset.isel(trial=(dataset.role != "survey").values))
    assert unsurveyed.goodput.isnull().all() and (unsurveyed.limit == "").all()


@pytest.mark.parametrize(
    ("dataset", "factors"),
    [
        (size_campaign(blocks=1), ("interconnect", "nodes", "N")),
        (noise_campaign(blocks=1), ("interconnect", "nodes", "daemon")),
        (blas_campaign(blocks=1), ("interconnect", "nodes", "blas", "N")),
    ],
    ids=["size", "noise", "blas"],
)
def test_points_are_laid_out_over_the_designs_factors(dataset, factors):
    """Whatever the factors, every trial finds its place; DGEMM stays one of the nodes and the block."""
    found = points(dataset)
    assert found.rate.dims == found.share.dims == ("block", *factors) and found.known_rate.dims == ("block", "nodes")
    assert found.rate.notnull().all() and (found.reason == "").all()
    trials = dataset.isel(trial=(dataset.runner == "hpl").values)
    for trial in range(trials.sizes["trial"]):
        one = trials.isel(trial=trial)
        at = {name: one[name].item() for name in ("block", *factors)}
        assert found.rate.sel(at).item() == one.hpl_rate.item()


def test_a_factor_is_a_coordinate_and_no_variable():
    """The order of the matrix is a setting in one campaign and a factor in another, with the same unit."""
    assert "N" in points(campaign(blocks=1)).data_vars
    found = points(size_campaign(blocks=1))
    assert "N" in found.coords and "N" not in found.data_vars
    assert found.N.dtype.kind == "i" and found.N.attrs["units"] == "1"
    np.testing.assert_array_equal(
        found.broadcast_bytes.sel(block=1, interconnect="gige", nodes=4), 4 * found.N**2
    )


def test_a_level_that_did_not_run_is_a_point_without_a_value():
    """A level of the design that no trial reached is NaN with its reason, in the design's order."""
    dataset = noise_campaign(blocks=2)
    left_out, kept = "2 % at 10 Hz", "5 % at 10 Hz"
    found = points(dataset.isel(trial=(dataset.daemon != left_out).values))
    assert found.daemon.values.tolist() == list(DAEMONS)
    assert (found.reason.sel(daemon=left_out) == "not run").all() and found.rate.sel(daemon=kept).notnull().all()


def test_over_factors_lays_out_what_the_points_do_not_hold():
    """Any value of the trials can be laid out beside the points; other roles and runners are left out."""
    dataset = noise_campaign(blocks=2)
    found = over_factors(dataset, wall_time=dataset.wall_time)
    assert found.wall_time.dims == ("block", "interconnect", "nodes", "daemon")
    assert found.wall_time.sum().item() == pytest.approx(
        dataset.wall_time.where(dataset.runner == "hpl").sum().item()
    )


def test_over_factors_lays_out_another_runners_trials():
    """The runner's own trials only; a factor that is no or yes is 0 or 1, as in the dataset."""
    dataset = frame_limits(blocks=2)
    found = over_factors(dataset, "frame_limit", payload=dataset.frame_payload)
    assert found.payload.dims == ("block", "path", "load") and found["load"].values.tolist() == [0, 1]
    assert found.payload.notnull().all()
    with pytest.raises(FalloffError, match="holds no HPL trial"):
        over_factors(dataset)


def test_the_only_level_is_taken_and_several_are_refused():
    """A study of one node count says so instead of taking the first."""
    found = points(size_campaign(blocks=1))
    assert at_only_level(found, "nodes").rate.dims == ("block", "interconnect", "N")
    with pytest.raises(FalloffError, match="single level of interconnect, not gige, 10gige"):
        at_only_level(found, "interconnect")
