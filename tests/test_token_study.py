"""Token exchanges: what wires carry together is known; planted ratios come back, and words and figures follow the data."""

from functools import cache

import pytest
import xarray as xr
from shown import words
from synthetic_token import CAMPAIGN, PATHS, token_campaign

from analysis.experiments import token_exchange
from analysis.statements import WORDS
from analysis.token_points import pairs_of, sum_limit

TWO = ("local_wire_10m", "bonded_shared_10m")
SLOW = (*TWO, "local_router_10m", "remote_switch_10m", "bonded_switch_10m")
CROWDED = (1, "local_wire_10m", 7, 8192)


@cache
def noisy_study():
    """The slow paths and two fast ones, with scatter."""
    return token_exchange.analyse(
        token_campaign(only=(*SLOW, "local_wire_100m", "bonded_shared_100m"))
    )


def claim_of(study, about, rate=1e7):
    return next(
        claim
        for claim in study.claims
        if claim.about.startswith(about) and claim.rate in (rate, None)
    )


@pytest.mark.parametrize(
    ("path", "pairs", "wires"),
    [
        ("shared_wire_10m", 7, 1),
        ("local_wire_10m", 3, 3),
        ("local_router_10m", 7, 7),
        ("remote_switch_10m", 3, 2),  # the second pair has a wire with each of the others
        ("remote_switch_10m", 7, 3.5),
        ("bonded_10m", 7, 14),
        ("bonded_switch_10m", 7, 4),
        ("bonded_shared_10m", 7, 2),
    ],
)
def test_what_wires_carry_together(path, pairs, wires):
    """Tokens and their returns share each wire, whoever sends: so many wires full is the most."""
    limit = sum_limit(PATHS[path], pairs_of(CAMPAIGN.settings, pairs))
    assert limit == pytest.approx(wires * 1e7 / 2)


def test_more_than_the_wire_is_left_out():
    """A trial whose pairs write ten times too much is no reading anywhere, and the finding says so."""
    study = token_exchange.analyse(token_campaign(only=TWO, excess={CROWDED}))
    excess = study.points.excess
    at = dict(zip(("block", "path", "pairs", "token_bytes"), CROWDED))
    assert excess.notnull().sum() == 1 and excess.sel(at) > 3
    assert study.points.runs.sel(at).isnull().all() and study.points.throughput.sel(at).isnull()
    assert {len(claim.ratios) for claim in study.claims if claim.rate} == {2}
    assert "**1 trial left out**" in words(token_exchange, study) and "left out" not in words(
        token_exchange, noisy_study()
    )


def test_tokens_that_went_astray_are_left_out():
    """The places' counters tell it for every trial of a path; the described way of all others is confirmed."""
    study = token_exchange.analyse(token_campaign(only=TWO[:1], astray=TWO[:1]))
    assert (study.astray == 1).all() and study.points.throughput.isnull().all()
    assert "cannot be compared" in words(token_exchange, study)
    assert not noisy_study().astray.any() and "counters confirm" in words(
        token_exchange, noisy_study()
    )
    some = words(
        token_exchange, token_exchange.analyse(token_campaign(only=SLOW, astray=SLOW[-1:]))
    )
    assert "took another path" in some and "counters confirm" not in some


def test_the_claims_have_their_verdicts():
    """Planted ratios inside and outside the ranges are told apart, at each rate."""
    study = noisy_study()
    local = claim_of(study, "local wire")
    assert local.kind == "supported"
    assert local.ratio == pytest.approx(3.5, rel=0.03) and len(local.ratios) == 3
    assert claim_of(study, "switched remote").ratio == pytest.approx(1.75, rel=0.03)
    assert claim_of(study, "switched and routed").kind == "supported"
    assert claim_of(study, "bonded and switched").kind == "contradicted"
    assert [claim.about for claim in study.claims if claim.rate == 1e8] == [local.about]
    words = [one.words for one in token_exchange.findings(study)]
    kinds = [claim.kind for claim in study.claims]
    assert words == [kind if kind in WORDS else "undecided" for kind in kinds]
    lossy = token_campaign(only=SLOW, use={"local_wire": 0.5, "bonded_switch": 0.6})
    study = token_exchange.analyse(lossy)
    assert claim_of(study, "local wire").kind == "contradicted"
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
    assert ("the machine was too slow for 1 ratio" in words(token_exchange, study)) == (
        kind == "host-bound"
    )


def test_what_was_not_run_is_said_and_one_block_decides_nothing():
    """The quick preset has two paths; from one block every claim that was run is undecided."""
    quick = token_exchange.analyse(token_campaign(blocks=2, preset="quick"))
    missing = claim_of(quick, "switched and routed")
    assert missing.kind == "not run" and missing.reason == "local_router was not run"
    single = token_exchange.analyse(token_campaign(blocks=1, only=SLOW))
    assert {claim.kind for claim in single.claims} == {"undecided", "not run"}
    assert "is open** (1 block" in words(token_exchange, single)


def test_the_finding_follows_the_data():
    """The first decided ratio leads; the best runs' ratio stands beside it."""
    text = words(token_exchange, noisy_study())
    assert text.startswith("**At 10 Mbit/s the throughput of local wires is 3.")
    for said in ("statements 3 are supported: *", "; 1 is contradicted: *", "; 1 is not run: *"):
        assert said in text
    runs = noisy_study().points.runs.sel(pairs=7, token_bytes=8192, path=list(TWO))
    best = runs.max(["run", "block"])
    ratio = float(best.sel(path=TWO[0]) / best.sel(path=TWO[1]))
    assert claim_of(noisy_study(), "local wire").of_bests == pytest.approx(ratio)
