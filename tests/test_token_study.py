"""Token exchanges: planted latencies, contention and ratios come back, and words and figures follow the data."""

import re
from functools import cache

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_token import token_campaign, truth

from analysis.experiments import token_exchange, token_models
from analysis.models import find
from analysis.token_points import Place

TWO = ("local_wire_10m", "bonded_shared_10m")
SOME = (*TWO, "shared_wire_10m", "remote_switch_10m", "remote_router_10m", "local_wire_100m")
SLOW = (*TWO, "local_router_10m", "remote_switch_10m", "bonded_switch_10m")
WIRE = Place("shared_wire_10m", "shared_wire", 1e7)
CROWDED = (1, "local_wire_10m", 7, 8192)
PAIRS = np.array([1, 2, 3, 5, 7])


@cache
def exact_study():
    """Some paths without scatter."""
    return token_exchange.analyse(token_campaign(only=SOME, noise=0, block_effect=0))


@cache
def noisy_study():
    """The slow paths and two fast ones, with scatter."""
    return token_exchange.analyse(
        token_campaign(only=(*SLOW, "local_wire_100m", "bonded_shared_100m"))
    )


@cache
def quick_study():
    """Two paths, one pair and seven, two blocks."""
    return token_exchange.analyse(token_campaign(blocks=2, preset="quick"))


def claim_of(study, about, rate=1e7):
    return next(
        claim
        for claim in study.claims
        if claim.about.startswith(about) and claim.rate in (rate, None)
    )


def words(study):
    return token_exchange.finding(study).replace("\u00a0", " ")


def tables(study):
    return [
        token_exchange.claims_table(study),
        token_exchange.readings_table(),
        token_exchange.samples_table(study),
        token_models.contention_table(study.models),
        token_models.round_trips_table(study.models),
    ]


def judged(log_ratios, at_least, at_most):
    """A claim on two paths whose throughputs have these log-ratios in their blocks."""
    places = tuple(Place(name, name, 1e7) for name in ("of", "against"))
    values = np.exp(np.array([log_ratios, np.zeros(len(log_ratios))]))
    throughput = xr.DataArray(values, {"path": ["of", "against"]}, ("path", "block"))
    at = xr.Dataset(
        {
            "throughput": throughput,
            "runs": throughput.expand_dims("run"),
            "limit": xr.ones_like(throughput.isel(block=0)),
            "busy": xr.zeros_like(throughput),
        }
    )
    asked = {"of": "of", "against": "against", "at_least": at_least, "at_most": at_most}
    (claim,) = token_exchange.claims({"about": asked}, places, at)
    return claim


def test_planted_latencies_come_back():
    """Without noise every path's times are a straight line, with the planted latency and bandwidth."""
    for found in exact_study().models.latencies:
        true = truth(found.place.topology, found.place.rate)
        assert found.is_line
        assert (found.parameter("alpha")[0], found.parameter("beta")[0]) == pytest.approx(
            true, rel=1e-6
        )


def test_intervals_hold_the_planted_latencies():
    """With noise nearly all 95 % intervals hold the truth."""
    held = []
    for found in noisy_study().models.latencies:
        for name, true in zip(("alpha", "beta"), truth(found.place.topology, found.place.rate)):
            _, low, high = found.parameter(name)
            held.append(low <= true <= high)
            assert high - low < 0.25 * true
    assert np.mean(held) >= 0.8


def test_no_line_is_told_where_time_is_none():
    """With twice the time of the largest tokens there is no straight line, and the table holds its tongue."""
    dataset = token_campaign(blocks=2, noise=0, only=TWO)
    longer = dataset.token_round_trip * xr.where(dataset.token_bytes == 8192, 2.0, 1.0)
    study = token_exchange.analyse(dataset.assign(token_round_trip=longer))
    assert not any(latency.is_line for latency in study.models.latencies)
    assert all(row[-2:] == ("—", "—") for row in token_models.round_trips_table(study.models).rows)


def test_exchanges_that_something_held_up_change_no_round_trip():
    """A quarter of the exchanges ten times as long: medians are the same."""
    dataset = token_campaign(blocks=2, noise=0, only=TWO)
    held_up = dataset.token_round_trip * xr.where(dataset["quantile"] > 0.75, 10.0, 1.0)
    studies = [
        token_exchange.analyse(each) for each in (dataset, dataset.assign(token_round_trip=held_up))
    ]
    before, after = (study.models.latencies[0] for study in studies)
    assert before.round_trip.equals(after.round_trip) and after.slowest > 5 * before.slowest


def test_what_a_path_adds_is_against_the_local_wire_of_its_rate():
    """In the same blocks, and nothing is said of the local wires themselves."""
    more = {latency.place.path: latency.more for latency in exact_study().models.latencies}
    assert more["local_wire_10m"] is more["local_wire_100m"] is None
    (alpha, beta), (own_alpha, own_beta) = truth("remote_router", 1e7), truth("local_wire", 1e7)
    found = more["remote_router_10m"].sel(token_bytes=8192)
    assert found["mean"] == pytest.approx(
        2 * (alpha - own_alpha + 8192 * (beta - own_beta)), rel=1e-6
    )
    lost = token_exchange.analyse(token_campaign(only=TWO, failed={(2, "local_wire_10m", 1, 1024)}))
    assert lost.models.latencies[1].more.blocks.values.tolist() == [3, 2, 3]


def test_without_one_pair_there_is_no_latency():
    """Tokens of several pairs at once say nothing of one pair's: there is a reason, and no number."""
    dataset = token_campaign(blocks=2, only=TWO)
    study = token_exchange.analyse(dataset.isel(trial=np.flatnonzero(dataset.pairs > 1)))
    assert all("nothing to fit" in latency.refused for latency in study.models.latencies)
    assert token_models.round_trips_table(study.models).rows[0][1:] == ("—",) * 6


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
    """The model that made the data is the only one that is supported."""
    curve = find(name).function(PAIRS.astype(float), *truths)
    noise = np.exp(np.random.default_rng(2).normal(0, 0.005, (6, len(PAIRS))))
    values = xr.DataArray(curve * noise, {"pairs": PAIRS}, ("block", "pairs"))
    found = token_models.contention(WIRE, values)
    assert found.only.model.name == name


def test_a_model_that_misses_the_data_is_not_supported():
    """Throughputs that no model follows support none, however far the best is ahead."""
    curve = np.array([1.0, 5.0, 1.0, 9.0, 2.0])
    noise = np.exp(np.random.default_rng(2).normal(0, 0.005, (6, len(PAIRS))))
    values = xr.DataArray(curve * noise, {"pairs": PAIRS}, ("block", "pairs"))
    found = token_models.contention(WIRE, values)
    assert found.near_best and not found.supported and found.only is None


def test_few_pairs_support_no_model():
    """Two pair counts name no model."""
    assert not any(pairs.near_best for pairs in quick_study().models.contention)
    rows = token_models.contention_table(quick_study().models).rows
    assert {row[1] for row in rows} == {"too few points"}


def test_shared_wires_are_full_and_own_ones_are_not():
    """On the shared wire the throughput stays with more pairs, on a wire of their own it grows with them."""
    crowd = exact_study().points.throughput.sel(token_bytes=8192).mean("block")
    shared, own = (crowd.sel(path=path) for path in ("shared_wire_10m", "local_wire_10m"))
    assert float(shared.sel(pairs=7) / shared.sel(pairs=2)) == pytest.approx(1)
    assert float(own.sel(pairs=7) / own.sel(pairs=2)) == pytest.approx(3.5)


def test_more_than_the_wire_is_left_out():
    """A trial whose pairs write ten times too much is no reading anywhere, and the finding says so."""
    study = token_exchange.analyse(token_campaign(only=TWO, excess={CROWDED}))
    (excess,) = study.excesses
    assert (
        excess.block,
        excess.path,
        excess.pairs,
        excess.token_bytes,
    ) == CROWDED and excess.share > 3
    assert study.points.runs.sel(block=1, path=CROWDED[1], pairs=7, token_bytes=8192).isnull().all()
    sample = next(each for each in study.samples if each.place.path == CROWDED[1])
    assert sample.runs.missing == 2 and sample.runs.maximum < sample.limit
    assert {claim.blocks for claim in study.claims if claim.rate} == {2}
    assert "**1 trial left out**" in words(study) and "left out" not in words(noisy_study())


def test_tokens_that_went_astray_are_left_out():
    """The places' counters tell it for every trial of a path; the described way of all others is confirmed."""
    study = token_exchange.analyse(token_campaign(only=TWO[:1], astray=TWO[:1]))
    assert study.passage.astray.sum() == study.passage.trials > 0
    assert study.points.throughput.isnull().all() and "cannot be compared" in words(study)
    assert not exact_study().passage.astray.any()
    assert exact_study().passage.least.min() == pytest.approx(1.3, rel=0.1)
    assert "Byte counters confirm" in words(exact_study())
    some = token_exchange.analyse(token_campaign(only=SLOW, astray=SLOW[-1:]))
    assert "took another way" in words(some) and "Byte counters confirm" not in words(some)


def test_full_wires_are_no_excess():
    """Throughputs at what the wires carry, and an exchange of each pair that began before the window, are valid."""
    full = dict.fromkeys(("local_wire", "bonded_shared"), 1.0)
    study = token_exchange.analyse(token_campaign(only=TWO, noise=0, block_effect=0, use=full))
    assert not study.excesses and study.points.runs.notnull().all() and not noisy_study().excesses


def test_a_sum_over_fewer_pairs_is_no_reading():
    """A run in which one pair has no reading is not the throughput of all."""
    dataset = token_campaign(blocks=2, only=TWO)
    lost = dataset.token_throughput.where((dataset["pair"] != 2) | (dataset["run"] != 1))
    study = token_exchange.analyse(dataset.assign(token_throughput=lost))
    runs = study.points.runs
    assert runs.sel(pairs=7, run=1).isnull().all() and runs.sel(pairs=1).notnull().all()


def test_the_claims_have_their_verdicts():
    """Planted ratios inside and outside the ranges are told apart, at each rate."""
    local = claim_of(noisy_study(), "local wire")
    assert local.kind == "supported" and local.of_wires == pytest.approx(3.5)
    assert local.ratio == pytest.approx(3.5, rel=0.03) and len(local.ratios) == local.blocks == 3
    assert claim_of(noisy_study(), "switched remote").ratio == pytest.approx(1.75, rel=0.03)
    assert claim_of(noisy_study(), "switched and routed").kind == "supported"
    assert claim_of(noisy_study(), "bonded and switched").kind == "contradicted"
    assert [claim.about for claim in noisy_study().claims if claim.rate == 1e8] == [local.about]
    lossy = token_campaign(only=SLOW, use={"local_wire": 0.5, "bonded_switch": 0.6})
    study = token_exchange.analyse(lossy)
    assert (
        claim_of(study, "local wire").kind
        == claim_of(study, "switched and routed").kind
        == "contradicted"
    )
    assert claim_of(study, "bonded and switched").kind == "supported"


@pytest.mark.parametrize(
    ("use", "busy_s", "kind"),
    [(0.5, 5.8, "host-bound"), (0.5, 3.0, "contradicted"), (0.95, 5.8, "supported")],
)
def test_a_busy_machine_is_no_limit_of_wires(use, busy_s, kind):
    """Of two processors for three seconds nearly all taken, and half of what wires can: that says nothing of them."""
    dataset = token_campaign(only=TWO, use={"local_wire": use})
    dataset = dataset.assign(host_cpu_time=xr.full_like(dataset.host_cpu_time, busy_s))
    study = token_exchange.analyse(dataset)
    local = claim_of(study, "local wire")
    assert local.kind == kind and ("local_wire" in local.reason) == (kind == "host-bound")
    assert ("the machine's processors limit 1 ratio" in words(study)) == (kind == "host-bound")


def test_what_was_not_run_is_said():
    """The quick preset has the local wire and the original only: other claims name what is missing."""
    missing = claim_of(quick_study(), "switched and routed")
    assert missing.kind == "not run" and missing.reason == "local_router was not run"
    assert claim_of(quick_study(), "local wire").kind != "not run"


@given(
    log_ratios=st.lists(st.floats(-2, 2), min_size=2, max_size=6),
    at_least=st.floats(0.2, 2),
    width=st.floats(0.01, 3),
)
@settings(max_examples=60, deadline=None)
def test_no_verdict_against_the_ratio(log_ratios, at_least, width):
    """A supported ratio lies in its range, a contradicted one outside; the wider interval holds the narrower."""
    claim = judged(log_ratios, at_least, at_least + width)
    inside = at_least <= claim.ratio <= at_least + width
    assert claim.kind != "supported" or inside
    assert claim.kind != "contradicted" or not inside
    low, high = claim.interval_95
    assert low <= claim.interval_90[0] <= claim.interval_90[1] <= high


def test_the_best_stands_beside_the_sample():
    """Best, median and number of all runs with the most pairs and the largest token; ratios of bests are theirs."""
    runs = noisy_study().points.runs.sel(pairs=7, token_bytes=8192)
    by_path = {sample.place.path: sample.runs for sample in noisy_study().samples}
    local, original = (by_path[path] for path in TWO)
    assert local.n == 6 and local.maximum == pytest.approx(float(runs.sel(path=TWO[0]).max()))
    assert local.median < local.maximum
    best = claim_of(noisy_study(), "local wire").of_bests
    assert best == pytest.approx(local.maximum / original.maximum)


def test_the_finding_follows_the_data():
    """The first decided ratio leads, with its interval, blocks and kind of evidence; the study's words stand beside."""
    said = words(noisy_study())
    assert re.match(
        r"\*\*At 10 Mbit/s the throughput of local wires is 3\.\d\d times that of the dual net\*\*",
        said,
    )
    assert (
        "3 blocks, emulated evidence" in said
        and "The study says: about 4 times the dual net" in said
    )
    assert "3 are supported, 1 is contradicted and 1 is not run" in said
    assert "The study says: not better than switched" in said and "what both ends wrote" in said


def test_one_block_decides_nothing():
    """Without an interval every claim that was run is undecided, and no ratio leads."""
    study = token_exchange.analyse(token_campaign(blocks=1, only=SLOW))
    assert {claim.kind for claim in study.claims} == {"undecided", "not run"}
    assert "is open** (1 block" in words(study) and "interval" not in words(study)


def test_today_stands_beside_the_reference():
    """A shorter run's ratio is told with its own blocks."""
    today = token_campaign(blocks=2, preset="quick", seed=2)
    study = token_exchange.analyse(token_campaign(only=TWO), today=today)
    assert "In today's shorter run the throughput of local wires" in words(study)
    assert "2 blocks" in words(study) and "today" not in words(noisy_study())


def test_findings_are_the_claims():
    """Each claim at each rate is one finding, with its ratio, interval and verdict."""
    found = list(token_exchange.findings(noisy_study()))
    assert [each.answer for each in found] == [claim.kind for claim in noisy_study().claims]
    assert found[0].statement.endswith("at 10 Mbit/s") and found[0].n == 3
    assert found[0].interval == claim_of(noisy_study(), "local wire").interval_95


def test_figures_show_every_block():
    """Each block's ratio, throughput at the lowest rate, and round trip is a mark."""
    study, figures = noisy_study(), token_exchange.figures(noisy_study())
    throughput = study.points.throughput.sel(token_bytes=8192, path=list(SLOW)) / 1e6
    round_trips = np.ravel([latency.round_trip for latency in study.models.latencies]) * 1e3
    ratios = np.concatenate([claim.ratios for claim in study.at_rate])
    drawn = {
        "token_claims": ratios,
        "token_pairs": throughput.values,
        "token_round_trips": round_trips,
    }
    for name, values in drawn.items():
        lines = [line for axes in figures[name].figure.axes for line in axes.lines]
        shown = np.concatenate([np.ravel(line.get_data()).astype(float) for line in lines])
        assert all(np.isclose(shown, value).any() for value in np.ravel(values))
