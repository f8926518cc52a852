"""Claims on planted, altered and stored campaigns: a verdict is one on the data, and other data have another."""

import json
from dataclasses import replace
from functools import cache

import pytest
import xarray as xr
from synthetic import campaign
from synthetic_rails import GAINS, LINKS, hpl_campaign, micro_campaign
from synthetic_smith import smith_campaign
from synthetic_studies import blas_campaign, noise_campaign, size_campaign
from synthetic_token import token_campaign
from top500_lists import ROWS, text

import experiment
from analysis import published
from analysis.claims import ledger
from analysis.claims.evaluate import evaluate
from analysis.experiments import Studies, hpl_scaling
from analysis.experiments.token_exchange import TokenExchange
from analysis.token_points import astray, places, points
from analysis.top500_lists import read_folder

SHIPPED = ledger.load()
SMITH = {name: smith_campaign(name) for name in ("hpl_paper", "hpl_sensitivity", "hpl_beyond")}
FOR, AGAINST, OPEN, NOT_TESTABLE = "supported", "contradicted", "undecided", "not testable"


def studies_of(datasets, **made):
    """The studies of these campaigns alone; those already `made` are taken as they are."""
    studies = Studies(datasets.get)
    for name, study in made.items():
        setattr(studies, name, study)
    return studies


NOTHING = studies_of({})


def judged(claim_id, studies, evidence="emulated"):
    """The judgement of one claim on one kind of evidence."""
    claims = tuple(claim for claim in SHIPPED.claims if claim.id == claim_id)
    (entry,) = evaluate(replace(SHIPPED, claims=claims), studies)
    (found,) = (one for one in entry.judgements if one.evidence == evidence)
    return found


def as_measured(dataset):
    return dataset.assign_coords(evidence=xr.full_like(dataset.evidence, "measured", dtype="<U9"))


def scaled(dataset, name, factor, **where):
    """The dataset with a reading times a factor in the trials of these levels."""
    chosen = xr.ones_like(dataset.trial, dtype=bool)
    for factor_name, level in where.items():
        chosen = chosen & (dataset[factor_name] == level)
    assert chosen.any()
    return dataset.assign({name: dataset[name] * xr.where(chosen, factor, 1.0)})


@cache
def stored(name, testbed="paths"):
    return experiment.stored(name, testbed)


JUMBO = {"path": "crossover", "mtu": 8982}


@pytest.mark.parametrize(
    ("claim", "altered", "factor", "levels", "before", "after"),
    [
        ("nemo_jumbo_gain", "tcp_mtu", 1.05, JUMBO, FOR, AGAINST),
        # Below what the wire carries, the emulating machine is what limits.
        ("nemo_both_ways_jumbo", "tcp_mtu", 0.79, {**JUMBO, "direction": "both"}, AGAINST, NOT_TESTABLE),
        ("nemo_cpu_byte_local", "tcp_cost", 0.5, {"mtu": 9000}, FOR, AGAINST),
        ("grid5000_stays_saturated", "fan_out", 0.7, {"receivers": 7}, FOR, AGAINST),
        ("grid5000_buffers_need_tuning", "long_path", 6, {"window_bytes": 65536}, FOR, AGAINST),
        ("grid5000_scatter_from_rennes", "long_repeats", 0.5, {}, AGAINST, FOR),
        ("grid5000_much_lower", "long_repeats", 0.5, {}, AGAINST, FOR),
    ],
)  # fmt: skip
def test_stored_campaigns_with_other_readings_are_judged_otherwise(
    claim, altered, factor, levels, before, after
):
    """Of the repeats every second transfer is slowed down."""
    data = {name: stored(name) for name in ("tcp_mtu", "long_path", altered)}
    assert judged(claim, studies_of(data)).verdict == before
    if altered == "long_repeats":
        block = data[altered].block
        levels = {"block": block.where(block % 2 == 0)}
    reading = "aggregate_goodput" if altered == "fan_out" else "goodput"
    other = scaled(data[altered], reading, factor, **levels)
    assert judged(claim, studies_of({**data, altered: other})).verdict == after


def test_every_kind_of_evidence_has_an_answer():
    """A verdict with an estimate, or a reason; printed numbers have no verdict of runs."""
    studies = studies_of({"tcp_mtu": stored("tcp_mtu"), "hpl_paper": SMITH["hpl_paper"]})
    of_runs = (FOR, AGAINST, OPEN)
    for entry in evaluate(SHIPPED, studies):
        kinds = ["published", "emulated", "simulated"]
        assert [one.evidence for one in entry.judgements] == kinds
        assert entry.judgements[0].verdict not in of_runs
        for one in entry.judgements:
            assert one.estimate == one.estimate if one.verdict in of_runs else one.reason or one.n


@cache
def token_data():
    """One pair and seven, the smallest token and the largest."""
    kinds = ("local_wire", "local_router", "remote_switch", "remote_router")
    kinds += ("bonded_switch", "bonded_shared")
    return token_campaign(only=tuple(f"{kind}_10m" for kind in kinds), preset="quick")


def tokens(dataset):
    """The study's points and places, without its own claims."""
    strays = astray(dataset)
    study = TokenExchange(dataset, points(dataset, strays), places(dataset), strays)
    return studies_of({"token_exchange": dataset}, token_exchange=study)


@pytest.mark.parametrize(
    ("claim", "estimate", "verdict", "change", "levels", "after"),
    [
        ("beowulf_local_gain", 3.5, FOR, ("throughput", 0.5, "local_wire"), {}, AGAINST),
        ("beowulf_local_highest", 1.75, FOR, ("throughput", 0.5, "local_wire"), {}, AGAINST),
        ("beowulf_bonded_worse", 2 / 1.75, AGAINST, ("throughput", 0.7, "bonded_switch"), {}, FOR),
        ("beowulf_peak_token", None, FOR, ("throughput", 1e-3, "local_wire"), {"token_bytes": 8192}, AGAINST),
        # Latency is of the smallest token and one pair.
        ("beowulf_switch_latency", 1.5, FOR, ("round_trip", 0.1, "remote_switch"), {"pairs": 7}, FOR),
        ("beowulf_router_latency", None, FOR, ("round_trip", 0.3, "remote_router"), {"pairs": 1}, AGAINST),
    ],
)  # fmt: skip
def test_ratios_of_tokens_have_their_verdicts(claim, estimate, verdict, change, levels, after):
    found, (reading, factor, path) = judged(claim, tokens(token_data())), change
    assert found.verdict == verdict and found.n == 3
    assert estimate is None or found.estimate == pytest.approx(estimate, rel=0.05)
    other = scaled(token_data(), f"token_{reading}", factor, path=f"{path}_10m", **levels)
    assert judged(claim, tokens(other)).verdict == after


def test_a_busy_machine_or_another_rate_is_no_evidence_on_tokens():
    """Where processors are busy and wires are not full, the ratio is the machine's; latency of one pair is not."""
    slow = scaled(token_data(), "token_throughput", 0.5, path="local_wire_10m")
    busy = tokens(scaled(slow, "host_cpu_time", 3.5))
    found = judged("beowulf_local_gain", busy)
    assert found.verdict == NOT_TESTABLE and "machine limits switched local wires" in found.reason
    assert judged("beowulf_switch_latency", busy).verdict == FOR
    fast = tokens(token_campaign(only=("local_wire_100m", "bonded_shared_10m"), preset="quick"))
    assert "not run at the study's rate" in judged("beowulf_local_gain", fast).reason


@cache
def links(kind):
    """The campaigns over two links as planted, with the blog's gains, with shrinking ones, or with both links in use."""
    if kind == "blog":
        gains = {**GAINS, "ecmp_layer2": {1: 0.0, 2: 0.058, 4: 0.134, 8: 0.2}}
        return studies_of({"link_hpl": hpl_campaign(gains=gains, noise=0.005)})
    if kind == "shrinking":
        gains = {**GAINS, "ecmp_layer2": {1: 0.0, 2: 0.2, 4: 0.1, 8: 0.05}}
        hpl = scaled(hpl_campaign(gains=gains), "hpl_rate", 1.5, nodes=4)
        return studies_of({"link_hpl": hpl})
    both = micro_campaign(links={**LINKS, "ecmp_layer2": LINKS["mptcp"]})
    micro = both if kind == "both" else micro_campaign()
    return studies_of({"link_hpl": hpl_campaign(), "link_micro": micro})


@pytest.mark.parametrize(
    ("claim", "kind", "verdict", "of"),
    [
        ("bonding_gain_two_nodes", "planted", AGAINST, "on 2 nodes"),
        ("bonding_gain_two_nodes", "blog", FOR, "on 2 nodes"),
        ("bonding_gain_four_nodes", "blog", FOR, "on 4 nodes"),
        ("bonding_gain_grows", "planted", FOR, "8 over 2"),
        ("bonding_gain_grows", "shrinking", AGAINST, "8 over 2"),
        ("bonding_gain_much_greater", "planted", OPEN, "4 over 2"),
        ("bonding_gain_much_greater", "blog", FOR, "4 over 2"),
        ("bonding_efficiency_falls", "planted", FOR, "one link"),
        ("bonding_efficiency_falls", "shrinking", AGAINST, "one link"),
        ("bonding_one_connection", "both", FOR, "1 connection,"),
        ("bonding_many_connections", "planted", AGAINST, "8 connections"),
        ("bonding_many_connections", "both", FOR, "8 connections"),
    ],
)
def test_gains_of_two_links_have_their_verdicts(claim, kind, verdict, of):
    found = judged(claim, links(kind))
    assert found.verdict == verdict and of in found.of


def test_another_way_of_using_two_links_is_not_the_blogs():
    other = studies_of({"link_hpl": hpl_campaign(blocks=2, preset="quick")})
    assert "hash of the peers" in judged("bonding_gain_two_nodes", other).reason


def test_two_studies_of_one_kind_of_evidence_are_one_judgement():
    """A user who measures both the paper's cases and two links has the latter judged, which is the blog's."""
    data = {"link_hpl": hpl_campaign(blocks=3), "hpl_paper": smith_campaign("hpl_paper")}
    studies = studies_of({name: as_measured(dataset) for name, dataset in data.items()})
    found = judged("bonding_efficiency_falls", studies, "measured")
    assert found.of == "one link, 4 over 2 nodes" and found.verdict == FOR


def daemons(most):
    return noise_campaign(amplification={2: 1.0, 4: 1.0, 8: 1.0, 16: most}, noise=0.005)


@pytest.mark.parametrize(
    ("claim", "experiment_name", "data", "verdict"),
    [
        ("smith_monitoring", "hpl_noise", lambda: daemons(4.5), FOR),
        ("smith_monitoring", "hpl_noise", lambda: daemons(1.0), AGAINST),
        ("bonding_blas_doubled", "hpl_blas", lambda: blas_campaign(factor=2), FOR),
        # A factor of five is no doubling either, but gains more than the second link.
        ("bonding_blas_doubled", "hpl_blas", lambda: blas_campaign(factor=5), AGAINST),
        ("bonding_blas_matters_more", "hpl_blas", lambda: blas_campaign(factor=5), FOR),
        ("bonding_blas_matters_more", "hpl_blas", lambda: blas_campaign(factor=1.1), AGAINST),
        ("smith_order", "hpl_size", lambda: size_campaign(blocks=3, noise=0.002), AGAINST),
    ],
)
def test_verdicts_on_what_one_campaign_shows(claim, experiment_name, data, verdict):
    assert judged(claim, studies_of({experiment_name: data()})).verdict == verdict


BLOCKS = campaign(blocks=6, noise=0.005)


@cache
def scaling():
    return hpl_scaling.analyse(BLOCKS)


def smith(**other):
    """The studies of the paper's cases and of the emulated blocks, some of them others."""
    made = {} if "hpl_scaling" in other else {"hpl_scaling": scaling()}
    return studies_of({**SMITH, "hpl_scaling": BLOCKS, **other}, **made)


@pytest.fixture(scope="module")
def planted():
    return smith()


@pytest.fixture(scope="module")
def altered():
    """In all variants 10GE loses a fifth on 36 nodes and Gigabit Ethernet gains a quarter; 256 nodes lose a tenth."""
    other = {"hpl_scaling": campaign(blocks=6, noise=0.005, falls={})}
    for name in ("hpl_paper", "hpl_sensitivity"):
        slower = scaled(SMITH[name], "hpl_rate", 0.8, interconnect="10gige", nodes=36)
        other[name] = scaled(slower, "hpl_rate", 1.25, interconnect="gige", nodes=36)
    large = {"interconnect": "10gige", "nodes": 256}
    return smith(**other, hpl_beyond=scaled(SMITH["hpl_beyond"], "hpl_rate", 0.9, **large))


@pytest.mark.parametrize(
    ("claim", "evidence", "before", "after"),
    [
        ("smith_fast_straight", "simulated", FOR, AGAINST),
        ("smith_fast_constant", "simulated", FOR, AGAINST),
        ("smith_slow_goes_on", "simulated", OPEN, AGAINST),
        ("smith_drop_is_congestion", "simulated", AGAINST, FOR),
        ("smith_fast_superior", "simulated", FOR, AGAINST),
        ("smith_gap_grows", "simulated", FOR, AGAINST),
        ("smith_gap_grows", "emulated", FOR, AGAINST),
        ("smith_larger_cluster", "simulated", FOR, OPEN),
        ("smith_infiniband_on_par", "simulated", FOR, OPEN),
    ],
)
def test_verdicts_on_hpl_follow_the_rates(planted, altered, claim, evidence, before, after):
    """Where only one case of several simulated ones changes, nothing is decided."""
    assert judged(claim, planted, evidence).verdict == before
    assert judged(claim, altered, evidence).verdict == after


def test_every_variant_of_the_model_is_judged(planted):
    """Its numbers as they are and each of nine at both ends; one variant outside leaves the claim undecided."""
    assert judged("smith_slow_drops", planted, "simulated").n == 1 + 2 * 9
    levels = {"interconnect": "gige", "nodes": 36, "vary": "latency=high"}
    other = scaled(SMITH["hpl_sensitivity"], "hpl_rate", 2.0, **levels)
    found = judged("smith_slow_drops", smith(hpl_sensitivity=other), "simulated")
    assert found.verdict == OPEN and "18 of 19" in found.reason
    assert judged("smith_slow_drops", smith(hpl_sensitivity=None), "simulated").n == 1


def test_what_hpls_campaigns_cannot_tell_is_said(planted):
    """Neither what comes after the last node count, nor what the model is calibrated to, nor what the nodes limit."""
    assert "beyond 8 nodes" in judged("smith_slow_goes_on", planted).reason
    assert "calibrated" in judged("smith_fast_level", planted, "simulated").reason
    assert judged("smith_fast_straight", planted).verdict == AGAINST  # all fall alike, as planted
    fast = (BLOCKS.role == "survey") & (BLOCKS.interconnect == "10gige")
    slow = BLOCKS.assign(goodput=BLOCKS.goodput.where(~fast, 2.1e9))
    assert "limit what they send" in judged("smith_fast_straight", smith(hpl_scaling=slow)).reason
    alone = smith_campaign("hpl_beyond", {"interconnect": ["gige", "10gige"]})
    found = judged("smith_infiniband_on_par", smith(hpl_beyond=alone), "simulated")
    assert found.verdict == NOT_TESTABLE


@pytest.mark.parametrize(("share", "verdict"), [(0.8, FOR), (0.5, AGAINST)])
def test_a_users_cluster_of_known_peak_has_an_efficiency(planted, share, verdict):
    """Without a peak there is none; with one its level is judged as measured."""
    assert "peak" in judged("smith_fast_level", planted).reason
    dataset, found = as_measured(BLOCKS), scaling().points
    rate = found.rate.sel(interconnect="10gige", nodes=8).mean().item()
    described = json.loads(found.attrs["testbed_settings"])
    described["rpeak"] = {"value": 1e9 * rate / 8 / share, "unit": "flop/s"}
    known = found.assign_attrs(testbed_settings=json.dumps(described))
    study = replace(scaling(), dataset=dataset, points=known.assign_coords(evidence="measured"))
    studies = studies_of({"hpl_scaling": dataset}, hpl_scaling=study)
    level = judged("smith_fast_level", studies, "measured")
    assert level.verdict == verdict and level.estimate == pytest.approx(share, rel=0.02)


@pytest.mark.parametrize("claim", ["smith_latency_moderate", "smith_bandwidth_first"])
def test_latency_and_bandwidth_are_told_apart(planted, claim):
    """A rate that latency changes by half is more than moderately sensitive to it, and more than to bandwidth."""
    other = scaled(SMITH["hpl_sensitivity"], "hpl_rate", 0.5, vary="latency=high")
    assert judged(claim, planted, "simulated").verdict == FOR
    assert judged(claim, smith(hpl_sensitivity=other), "simulated").verdict == AGAINST


def test_messages_are_counted():
    """Most messages are small and most bytes are not. A count needs no blocks; with fewer small ones it is otherwise."""
    payload = stored("hpl_payload", "scale_model")
    studies = studies_of({"hpl_paper": stored("hpl_paper", "smith"), "hpl_payload": payload})
    assert judged("smith_few_small_messages", studies, "simulated").verdict == AGAINST
    assert judged("smith_few_small_bytes", studies, "simulated").verdict == FOR
    emulated = judged("smith_few_small_messages", studies)
    assert (emulated.verdict, emulated.kind) == (AGAINST, "count")
    few = payload.payload_messages * xr.where(payload["size"] < 4096, 0.001, 1)
    other = studies_of({"hpl_payload": payload.assign(payload_messages=few)})
    assert judged("smith_few_small_messages", other).verdict == FOR


def test_printed_numbers_agree_in_one_reading_but_for_two_claims():
    """One efficiency is a unit of its last digit off, and jumbo frames reach 80 % of what 'non-blocking' means."""
    found = {one.claim.id: one.judgements[0] for one in evaluate(SHIPPED, NOTHING)}
    wrong = {claim for claim, one in found.items() if one.verdict == "inconsistent"}
    assert wrong == {"nemo_non_blocking", "bonding_two_nodes"}
    for claim, reading in {
        "nemo_total_1500": "1 MB = 1000 KB",
        "nemo_frames_8505t": "payload of the ping and its headers or MTU and Ethernet's header",
        "beowulf_peak_rate": "on 7 wires, by the writes of both ends",
        "bonding_four_nodes": "8.8 Gflop/s",
        "smith_infiniband_raw": "the ratio of bandwidths",
        "smith_largest_order": "Appendix B's order over 100",
        "smith_fast_bandwidth": "10^6 B in frames of 9000 B",
        "smith_memory": "of 16 GB a node",
    }.items():
        assert found[claim].verdict == "consistent" and reading in found[claim].reading


def test_other_printed_numbers_are_another_verdict(monkeypatch):
    """Another deck, a bandwidth beyond the wire, other rates and wires."""
    source, deck = published.facts("smith"), published.facts("smith_appendix_b")
    blog, wires = published.table("bonding_blog"), published.facts("beowulf")
    source["micro_benchmarks"]["10gige"]["bandwidth"]["value"] = 1300
    deck["deck"]["N"] = [2000, 250000]
    blog.loc[0, "rate_gflop_s"] = 12.20
    wires["wires"]["original"]["value"] = 4
    changed = {"smith": source, "smith_appendix_b": deck, "beowulf": wires}
    facts, table = published.facts, published.table
    monkeypatch.setattr(published, "facts", lambda name: changed.get(name) or facts(name))
    monkeypatch.setattr(
        published, "table", lambda name: blog if name == "bonding_blog" else table(name)
    )
    claims = (
        "smith_infiniband_raw",
        "smith_largest_order",
        "smith_fast_bandwidth",
        "beowulf_local_gain",
    )
    assert {judged(claim, NOTHING, "published").verdict for claim in claims} == {"inconsistent"}
    assert judged("bonding_two_nodes", NOTHING, "published").verdict == "consistent"


def test_claims_on_top500_follow_its_lists(tmp_path):
    """All are consistent with lists that have what is printed; another rate changes those that it touches."""
    claims = [claim.id for claim in SHIPPED.claims if claim.aggregate]

    def verdicts(**rates):
        for month in ("2007-11", "2008-11"):
            rows = [
                (*row[:5], rates.get(f"{month} {row[0]}", row[5]), *row[6:]) for row in ROWS[month]
            ]
            (tmp_path / f"TOP500_{month}.csv").write_text(
                text(month, systems=rows), encoding="utf-8"
            )
        studies = studies_of({"lists": read_folder(tmp_path)})
        return {name: judged(name, studies, "published").verdict for name in claims}

    assert set(verdicts().values()) == {"consistent"}
    changed = verdicts(**{"2008-11 92": 30000})
    other = {name for name, verdict in changed.items() if verdict == "inconsistent"}
    assert other == {"blog_top500_gige_average", "blog_top500_gige_highest"}
    assert {judged(name, NOTHING, "published").verdict for name in claims} == {"printed"}
