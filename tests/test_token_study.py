"""Token exchanges: planted latencies and contention come back, and what exceeds the wire is left out."""

from functools import cache

import numpy as np
import pytest
import xarray as xr
from synthetic_token import token_campaign, truth

from analysis.facts import token_exchange as facts
from analysis.models import find
from analysis.studies import token_exchange
from analysis.studies.token_pairs import contention
from analysis.studies.token_points import Place
from runners.record import FalloffError

TWO = ("local_wire_10m", "bonded_shared_10m")
SOME = (*TWO, "shared_wire_10m", "remote_switch_10m", "remote_router_10m", "local_wire_100m", "bonded_100m")
WIRE = Place("shared_wire_10m", "shared_wire", 1e7)
FULL = {"local_wire": 1.0, "bonded_shared": 1.0}
CROWDED = (1, "local_wire_10m", 7, 8192)
PAIRS = np.array([1, 2, 3, 5, 7])


@cache
def exact_study():
    """Some paths without scatter."""
    return token_exchange.analyse(token_campaign(only=SOME, noise=0, block_effect=0))


@cache
def noisy_study():
    """The same paths with scatter."""
    return token_exchange.analyse(token_campaign(only=SOME))


def test_planted_latencies_come_back():
    """Without noise alpha, beta and n1/2 of every path are the truth."""
    for found in exact_study().latencies:
        alpha, beta = truth(found.place.topology, found.place.rate)
        assert found.alpha[0] == pytest.approx(alpha, rel=1e-6) and found.beta[0] == pytest.approx(beta, rel=1e-6)
        assert found.half[0] == pytest.approx(alpha / beta, rel=1e-6)


def test_intervals_hold_the_planted_latencies():
    """With noise nearly all 95 % intervals hold the truth, and latencies are as well known as bandwidths."""
    held = []
    for found in noisy_study().latencies:
        for estimate, true in zip((found.alpha, found.beta), truth(found.place.topology, found.place.rate)):
            held.append(estimate[1] <= true <= estimate[2])
            assert estimate[2] - estimate[1] < 0.25 * true
    assert np.mean(held) >= 0.8


def test_the_misfit_says_where_time_is_no_straight_line():
    """There is none on the truth's own line; twice the time of the largest tokens is seen."""
    assert max(it.misfit for it in exact_study().latencies) < 1e-6
    dataset = token_campaign(blocks=2, noise=0, only=TWO)
    longer = dataset.token_round_trip * xr.where(dataset.token_bytes == 8192, 2.0, 1.0)
    study = token_exchange.analyse(dataset.assign(token_round_trip=longer))
    assert min(it.misfit for it in study.latencies) > 0.1


def test_exchanges_that_something_held_up_change_no_latency():
    """A quarter of the exchanges ten times as long: medians are the same."""
    dataset = token_campaign(blocks=2, noise=0, only=TWO)
    held_up = dataset.token_round_trip * xr.where(dataset["quantile"] > 0.75, 10.0, 1.0)
    studies = [token_exchange.analyse(each) for each in (dataset, dataset.assign(token_round_trip=held_up))]
    assert [it.alpha for it in studies[0].latencies] == [it.alpha for it in studies[1].latencies]


def test_what_a_way_adds_is_the_difference_to_the_local_wire():
    """Of each rate, block by block, and nothing is said of the local wire itself."""
    by_path = {it.path: it for it in exact_study().added}
    assert len(by_path) == 5 and "local_wire_10m" not in by_path
    more = np.subtract(truth("remote_router", 1e7), truth("local_wire", 1e7))
    found = by_path["remote_router_10m"]
    assert found.against == "local_wire_10m" and found.blocks == 3
    assert (found.alpha[0], found.beta[0]) == pytest.approx(tuple(more), rel=1e-6)
    assert by_path["bonded_100m"].against == "local_wire_100m"


def test_only_blocks_that_both_have_are_compared():
    """A block that lacks a run of the local wire says nothing of what the others add."""
    study = token_exchange.analyse(token_campaign(only=TWO, failed={(2, "local_wire_10m", 1, 1024)}))
    assert [it.blocks for it in study.added] == [2] and {it.blocks for it in noisy_study().added} == {3}


def test_without_one_pair_there_is_no_latency():
    """Tokens of several pairs at once say nothing of one pair's latency: there is a reason, and no number."""
    dataset = token_campaign(blocks=2, only=TWO)
    study = token_exchange.analyse(dataset.isel(trial=np.flatnonzero(dataset.pairs > 1)))
    assert all(it.fitted is None and "nothing to fit" in it.refused for it in study.latencies)
    assert {it.blocks for it in study.added} == {0} and facts.collect(study)["latencies"][0]["median"] is None


@pytest.mark.parametrize(
    ("name", "truths"),
    [
        ("proportional", (1.0,)),
        ("shared_capacity", (1.0, 0.4)),
        ("amdahl", (1.0, 0.4)),
        ("universal_scalability", (1.0, 0.2, 0.2)),
    ],
)
def test_planted_contention_is_named(name, truths):
    """The model that made the data is the one that is supported."""
    curve = find(name).function(PAIRS.astype(float), *truths)
    noise = np.exp(np.random.default_rng(2).normal(0, 0.005, (6, len(PAIRS))))
    found = contention(WIRE, xr.DataArray(curve * noise, {"pairs": PAIRS}, ("block", "pairs")))
    assert found.best.model.name == name


def test_few_pairs_support_no_model():
    """Two pair counts name no model and give the reasons."""
    study = token_exchange.analyse(token_campaign(blocks=2, preset="quick"))
    assert all(it.best is None for it in study.contention)
    reasons = facts.collect(study)["unranked"]
    assert reasons and all("distinct x" in reason for reason in reasons)


def test_shared_wires_are_full_and_own_ones_are_not():
    """On the shared wire the throughput stays with more pairs, on a wire of their own it grows with them."""
    crowd = exact_study().points.throughput.sel(token_bytes=8192).mean("block")
    shared, own = (crowd.sel(path=path) for path in ("shared_wire_10m", "local_wire_10m"))
    assert float(shared.sel(pairs=7) / shared.sel(pairs=2)) == pytest.approx(1)
    assert float(own.sel(pairs=7) / own.sel(pairs=2)) == pytest.approx(3.5)


def test_more_than_the_wire_is_left_out():
    """A trial whose pairs write ten times too much is no reading anywhere."""
    study = token_exchange.analyse(token_campaign(only=TWO, excess={CROWDED}))
    (excess,) = study.excesses
    assert (excess.block, excess.path, excess.pairs, excess.token_bytes) == CROWDED and excess.share > 3
    assert study.points.runs.sel(block=1, path="local_wire_10m", pairs=7, token_bytes=8192).isnull().all()
    sample = next(it for it in study.samples if it.place.path == "local_wire_10m")
    assert sample.runs.missing == 2 and sample.runs.maximum < sample.limit
    assert {claim.blocks for claim in study.claims if claim.rate} == {2}


def test_tokens_that_went_astray_are_left_out():
    """The counters of the places tell it for every trial of a path; the described way of all others is proved."""
    study = token_exchange.analyse(token_campaign(only=TWO[:1], astray=TWO[:1]))
    assert study.passage.astray.sum() == study.passage.least.notnull().sum() > 0
    assert study.points.throughput.isnull().all()
    assert not exact_study().passage.astray.any() and exact_study().passage.least.min() == pytest.approx(1.3, rel=0.1)
    assert 0 < exact_study().passage.beside.max() < 0.1


def test_full_wires_are_no_excess():
    """Throughputs at what the wires carry, and an exchange of each pair that began before the window, are valid."""
    assert not noisy_study().excesses
    full = token_exchange.analyse(token_campaign(only=TWO, noise=0, block_effect=0, use=FULL))
    assert not full.excesses and full.points.runs.notnull().all()


def test_a_sum_over_fewer_pairs_is_no_reading():
    """A run in which one pair has no reading is not the throughput of all."""
    dataset = token_campaign(blocks=2, only=TWO)
    lost = dataset.token_throughput.where((dataset["pair"] != 2) | (dataset["run"] != 1))
    study = token_exchange.analyse(dataset.assign(token_throughput=lost))
    assert study.points.runs.sel(pairs=7, run=1).isnull().all() and study.points.runs.sel(pairs=1).notnull().all()


def test_no_token_trial_is_refused():
    """Another campaign's dataset is not one of tokens."""
    dataset = token_campaign(blocks=1, preset="quick")
    with pytest.raises(FalloffError, match="no token_exchange trial"):
        token_exchange.analyse(dataset.assign_coords(runner=("trial", ["ping"] * dataset.sizes["trial"])))
