"""Points of a campaign: shares of DGEMM, invalid blocks, and traffic that must have crossed the links."""

import numpy as np
import pytest
from synthetic import NODE_RATE, campaign, rate_without_noise
from synthetic_studies import blas_campaign, noise_campaign, size_campaign
from synthetic_switch import frame_limits

from analysis.derive import at_only_level, broadcast_bytes, over_factors, points
from runners.record import FalloffError


def with_values(dataset, name, chosen, value):
    """The dataset with one variable changed at the trials where `chosen` holds."""
    return dataset.assign({name: dataset[name].where(~chosen, value).assign_attrs(dataset[name].attrs)})


def test_the_share_is_the_rate_over_dgemm_of_the_same_nodes():
    """Without noise, rate, DGEMM of n nodes and share are the planted ones."""
    found = points(campaign(noise=0, block_effect=0, falls={"gige": 0.13}))
    assert found.rate.dims == ("block", "interconnect", "nodes")
    for interconnect, n in (("gige", 8), ("10gige", 4), ("unshaped", 1)):
        rate = rate_without_noise(interconnect, n, {"gige": 0.13}, 8)
        point = found.sel(interconnect=interconnect, nodes=n)
        np.testing.assert_allclose(point.rate, rate)
        np.testing.assert_allclose(point.dgemm, n * NODE_RATE, rtol=0.01)
        np.testing.assert_allclose(point.share, rate / (n * NODE_RATE), rtol=0.01)


def test_a_slow_hour_slows_dgemm_too():
    """The block's effect cancels in the share."""
    found = points(campaign(noise=0, block_effect=0.2))
    assert found.rate.sel(interconnect="gige", nodes=8).std() > 2
    assert found.share.sel(interconnect="gige", nodes=8).std() < 0.005


def test_every_variable_says_its_unit():
    """Numbers carry units and long names; evidence and the design travel along."""
    found = points(campaign(blocks=2))
    numbers = [name for name, array in found.data_vars.items() if array.dtype.kind == "f"]
    assert {"rate", "dgemm", "share", "drift"} <= set(numbers)
    assert all({"units", "long_name"} <= set(found[name].attrs) for name in numbers)
    assert found.evidence.item() == "emulated" and "design" in found.attrs


def test_drift_makes_the_whole_block_invalid():
    """DGEMM lost 5 % within block 2: its values are NaN, with the reason, and other blocks are untouched."""
    found = points(campaign(blocks=3, drifting=(2,)))
    assert found.drift.sel(block=2).item() == pytest.approx(-0.05, abs=0.01)
    assert found.block_valid.values.tolist() == [True, False, True]
    assert found.sel(block=2)[["rate", "share", "dgemm"]].isnull().all().to_array().all()
    assert found.sel(block=[1, 3]).rate.notnull().all()
    assert "drifted by -5" in found.block_reason.sel(block=2).item()
    assert (found.reason.sel(block=2) == found.block_reason.sel(block=2)).all()


@pytest.mark.parametrize("factor", [0.975, 1.025])
def test_drift_within_the_limit_is_kept(factor):
    """2.5 % up or down is below the design's 3 %."""
    dataset = campaign(blocks=2)
    after = (dataset.role == "after") & (dataset.block == 1)
    found = points(with_values(dataset, "dgemm_rate", after, factor * dataset.dgemm_rate))
    assert found.block_valid.all()


def test_a_missing_bracket_makes_the_block_invalid():
    """Without DGEMM after the block nobody knows whether it drifted."""
    found = points(campaign(blocks=3, unbracketed=(3,)))
    assert found.block_valid.values.tolist() == [True, True, False]
    assert "before and after" in found.block_reason.sel(block=3).item()


def test_a_node_count_without_its_dgemm_has_a_rate_but_no_share():
    """One failed DGEMM trial costs one share, not the block."""
    dataset = campaign(blocks=2)
    lost = (dataset.role == "after") & (dataset.block == 1) & (dataset.nodes == 4)
    found = points(with_values(dataset, "dgemm_rate", lost, np.nan)).sel(block=1)
    assert found.block_valid
    assert found.rate.notnull().all()
    assert found.share.isnull().sel(nodes=4).all() and found.share.notnull().sel(nodes=[1, 2, 8]).all()


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
    assert not last.block_valid and last.rate.isnull().all()
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
    """Every point knows its links' goodput and injection limit; without a survey they are unknown, not zero."""
    dataset = campaign()
    found = points(dataset)
    assert (found.goodput > 0).all() and (found.injection_limit > 0).all()
    assert found.limit.sel(interconnect="gige") == "link-bound"
    unsurveyed = points(dataset.isel(trial=(dataset.role != "survey").values))
    assert unsurveyed.goodput.isnull().all() and (unsurveyed.limit == "").all()


@pytest.mark.parametrize(
    ("dataset", "factors"),
    [
        (size_campaign(blocks=1), ("interconnect", "nodes", "N")),
        (noise_campaign(blocks=1), ("interconnect", "nodes", "noise")),
        (blas_campaign(blocks=1), ("interconnect", "nodes", "blas", "N")),
    ],
    ids=["size", "noise", "blas"],
)
def test_points_are_laid_out_over_the_designs_factors(dataset, factors):
    """Whatever the factors, every trial finds its place; DGEMM stays one of the nodes and the block."""
    found = points(dataset)
    assert found.rate.dims == found.share.dims == ("block", *factors) and found.dgemm.dims == ("block", "nodes")
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
        found.broadcast_bytes.sel(block=1, interconnect="gige", nodes=4), 12 * found.N**2
    )


def test_a_level_that_did_not_run_is_a_point_without_a_value():
    """A level of the design that no trial reached is NaN with its reason, in the design's order."""
    dataset = noise_campaign(blocks=2)
    found = points(dataset.isel(trial=(dataset.noise != 0.02).values))
    assert found.noise.values.tolist() == [0.0, 0.01, 0.02, 0.05]
    assert (found.reason.sel(noise=0.02) == "not run").all() and found.rate.sel(noise=0.05).notnull().all()


def test_over_factors_lays_out_what_the_points_do_not_hold():
    """Any value of the trials can be laid out beside the points; other roles and runners are left out."""
    dataset = noise_campaign(blocks=2)
    found = over_factors(dataset, wall_time=dataset.wall_time)
    assert found.wall_time.dims == ("block", "interconnect", "nodes", "noise")
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
