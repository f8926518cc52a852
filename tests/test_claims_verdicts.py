"""Claims on planted, altered and stored campaigns: a verdict is one on the data, and other data
have another.
"""

import json
from dataclasses import replace
from functools import cache

import pytest
import xarray as xr
from synthetic import campaign
from synthetic_hpl_paper import smith_campaign
from synthetic_rails import GAINS, LINKS, hpl_campaign, micro_campaign
from synthetic_studies import blas_campaign, noise_campaign
from synthetic_token import token_campaign

from analysis import experiment
from analysis.dataset import published
from analysis.dataset.derive import points
from analysis.descriptions import ledger
from analysis.report.claims.evaluate import evaluate, stated_on

SHIPPED = ledger.load()
SMITH = {
    name: smith_campaign(name)
    for name in ("hpl_paper_simulated", "hpl_paper_sensitivity", "hpl_paper_rdma", "hpl_larger")
}
FOR, AGAINST, OPEN, NOT_TESTABLE = "supported", "contradicted", "undecided", "not testable"


STATED = {}  # by notebooks and datasets: several claims are judged by one run


def judged(claim_id, data, evidence="emulated"):
    """The verdict on one claim on one kind of evidence of these campaigns."""
    claims = tuple(claim for claim in SHIPPED.claims if claim.id == claim_id)
    asked = replace(SHIPPED, claims=claims)
    notebooks = {name.partition("/")[0] for claim in claims for name in claim.judged_by}
    key = (*sorted(notebooks), *((name, id(one)) for name, one in data.items()))
    if key not in STATED:  # the data are kept, so that no other has their id
        STATED[key] = stated_on(asked, data), data
    (entry,) = evaluate(asked, STATED[key][0])
    (found,) = (one for one in entry.verdicts if one.evidence == evidence)
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


TABLE = stored(
    "hpl_paper_emulated", "fortinet_model"
)  # beside which notebook 44 shows the paper's cases
KINDS = "local_wire local_router remote_switch remote_router bonded_switch bonded_shared".split()
# One pair and seven, the smallest token and the largest.
TOKENS = token_campaign(only=tuple(f"{kind}_10m" for kind in KINDS), preset="quick")
ESTIMATES = {
    "beowulf_local_gain": 3.5,
    "beowulf_bonded_worse": 2 / 1.75,
    "beowulf_switch_latency": 1.5,
}
JUMBO = {"path": "crossover", "mtu": 8982}
WIRE, BONDED = {"path": "local_wire_10m"}, {"path": "bonded_switch_10m"}
SWITCH = {"path": "remote_switch_10m", "pairs": 7}
ROUTER = {"path": "remote_router_10m", "pairs": 1}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("claim", "altered", "reading", "factor", "levels", "before", "after"),
    [
        ("nemo_jumbo_gain", "mtu", "goodput", 1.05, JUMBO, FOR, AGAINST),
        ("nemo_cpu_byte_local", "mtu_cpu", "goodput", 0.5, {"mtu": 9000}, FOR, AGAINST),
        (
            "grid5000_stays_saturated",
            "fan_out",
            "aggregate_goodput",
            0.7,
            {"receivers": 7},
            FOR,
            AGAINST,
        ),
        (
            "grid5000_buffers_need_tuning",
            "long_path",
            "goodput",
            6,
            {"window_bytes": 65536},
            FOR,
            AGAINST,
        ),
        # Of the repeats every second transfer is slowed down: emulated, without other traffic, they
        # are not testable.
        ("grid5000_scatter_from_rennes", "long_path_repeats", "goodput", 0.5, {}, AGAINST, FOR),
        ("grid5000_much_lower", "long_path_repeats", "goodput", 0.5, {}, AGAINST, FOR),
        ("beowulf_local_gain", "token_exchange", "token_throughput", 0.5, WIRE, FOR, AGAINST),
        ("beowulf_local_highest", "token_exchange", "token_throughput", 0.5, WIRE, FOR, AGAINST),
        ("beowulf_bonded_worse", "token_exchange", "token_throughput", 0.7, BONDED, AGAINST, FOR),
        (
            "beowulf_peak_token",
            "token_exchange",
            "token_throughput",
            1e-3,
            {**WIRE, "token_bytes": 8192},
            FOR,
            AGAINST,
        ),
        # Latency is of the smallest token and one pair.
        ("beowulf_switch_latency", "token_exchange", "token_round_trip", 0.1, SWITCH, FOR, FOR),
        ("beowulf_router_latency", "token_exchange", "token_round_trip", 0.3, ROUTER, FOR, AGAINST),
    ],
)
def test_other_readings_are_another_verdict(claim, altered, reading, factor, levels, before, after):
    """On stored campaigns, and on tokens as they are planted."""
    data = {"token_exchange": TOKENS}
    if altered not in data:
        data = {name: stored(name) for name in ("mtu", "long_path", altered)}
    evidence = "emulated"
    if altered == "long_path_repeats":
        assert judged(claim, data).answer == NOT_TESTABLE
        data, evidence = {name: as_measured(one) for name, one in data.items()}, "measured"
        block = data[altered].block
        levels = {"block": block.where(block % 2 == 0)}
    found = judged(claim, data, evidence)
    assert found.answer == before
    assert found.estimate == pytest.approx(ESTIMATES.get(claim, found.estimate), rel=0.05)
    other = scaled(data[altered], reading, factor, **levels)
    assert judged(claim, {**data, altered: other}, evidence).answer == after


def test_a_busy_machine_or_another_rate_is_no_evidence_on_tokens():
    """Where processors are busy and wires are not full, the ratio is the machine's; latency of one
    pair is not.
    """
    slow = scaled(TOKENS, "token_throughput", 0.5, path="local_wire_10m")
    busy = {"token_exchange": scaled(slow, "host_cpu_time", 3.5)}
    found = judged("beowulf_local_gain", busy)
    assert found.answer == NOT_TESTABLE and "machine limits local wire" in found.reason
    assert judged("beowulf_switch_latency", busy).answer == FOR
    fast = token_campaign(only=("local_wire_100m", "bonded_shared_10m"), preset="quick")
    found = judged("beowulf_local_gain", {"token_exchange": fast})
    assert "not run at the study's rate" in found.reason


def daemons(most):
    return noise_campaign(amplification={2: 1.0, 4: 1.0, 8: 1.0, 16: most}, noise=0.005)


# Of two links that a hash of the peers chooses, over nodes.
OF_THE_BLOG = {**GAINS, "ecmp_layer2": {1: 0.0, 2: 0.058, 4: 0.134, 8: 0.2}}
FALLING = {**GAINS, "ecmp_layer2": {1: 0.0, 2: 0.2, 4: 0.1, 8: 0.05}}
BLOG = {"link_bonding_hpl": hpl_campaign(gains=OF_THE_BLOG, noise=0.005)}
SHRINKING = {"link_bonding_hpl": scaled(hpl_campaign(gains=FALLING), "hpl_rate", 1.5, nodes=4)}
PLANTED = {"link_bonding_hpl": hpl_campaign(), "link_bonding_tcp": micro_campaign()}
BOTH = {
    **PLANTED,
    "link_bonding_tcp": micro_campaign(links={**LINKS, "ecmp_layer2": LINKS["mptcp"]}),
}
NOISY, QUIET = {"hpl_noise": daemons(4.5)}, {"hpl_noise": daemons(1.0)}
BLAS = {factor: {"hpl_blas": blas_campaign(factor=factor)} for factor in (1.1, 2, 5)}


@pytest.mark.parametrize(
    ("claim", "data", "verdict"),
    [
        ("bonding_gain_two_nodes", PLANTED, AGAINST),
        ("bonding_gain_two_nodes", BLOG, FOR),
        ("bonding_gain_four_nodes", BLOG, FOR),
        ("bonding_gain_grows", PLANTED, FOR),
        ("bonding_gain_grows", SHRINKING, AGAINST),
        ("bonding_gain_much_greater", PLANTED, OPEN),
        ("bonding_gain_much_greater", BLOG, FOR),
        ("bonding_efficiency_falls", PLANTED, FOR),
        ("bonding_efficiency_falls", SHRINKING, AGAINST),
        ("bonding_one_connection", BOTH, FOR),
        ("bonding_many_connections", PLANTED, AGAINST),
        ("bonding_many_connections", BOTH, FOR),
        ("fortinet_monitoring", NOISY, FOR),
        ("fortinet_monitoring", QUIET, AGAINST),
        ("bonding_blas_doubled", BLAS[2], FOR),
        # A factor of five is no doubling either, but gains more than the second link.
        ("bonding_blas_doubled", BLAS[5], AGAINST),
        ("bonding_blas_matters_more", BLAS[5], FOR),
        ("bonding_blas_matters_more", BLAS[1.1], AGAINST),
    ],
)
def test_verdicts_on_planted_campaigns(claim, data, verdict):
    assert judged(claim, data).answer == verdict


def test_two_studies_of_one_kind_of_evidence_are_one_judgement():
    """A user who measures both the paper's cases and two links has the latter judged, which is the
    blog's.
    """
    data = {
        **PLANTED,
        "hpl_paper_simulated": smith_campaign("hpl_paper_simulated"),
        "hpl_paper_emulated": TABLE,
    }
    data = {name: as_measured(dataset) for name, dataset in data.items()}
    found = judged("bonding_efficiency_falls", data, "measured")
    assert found.of.startswith("one link, ") and found.answer == FOR


BLOCKS = campaign(blocks=6, noise=0.005)


def smith(**other):
    """The campaigns of the paper's cases and the emulated blocks, some of them others; None is left
    out.
    """
    data = {**SMITH, "hpl_scaling": BLOCKS, "hpl_paper_emulated": TABLE, **other}
    return {name: one for name, one in data.items() if one is not None}


PLANTED_CASES = smith()


@pytest.fixture(scope="module")
def altered():
    """In all variants 10GE loses a fifth on 36 nodes and Gigabit Ethernet gains a quarter; 256
    nodes lose a tenth; a high latency costs a fifth more, and RDMA saves a fifth."""
    other = {"hpl_scaling": campaign(blocks=6, noise=0.005, falls={})}
    for name in ("hpl_paper_simulated", "hpl_paper_sensitivity"):
        slower = scaled(SMITH[name], "hpl_rate", 0.8, interconnect="10gige", nodes=36)
        other[name] = scaled(slower, "hpl_rate", 1.25, interconnect="gige", nodes=36)
    varied = scaled(other["hpl_paper_sensitivity"], "hpl_rate", 0.8, vary="latency=high")
    other["hpl_paper_sensitivity"] = varied
    other["hpl_paper_rdma"] = scaled(SMITH["hpl_paper_rdma"], "hpl_time", 0.8)
    large = {"interconnect": "10gige", "nodes": 256}
    return smith(**other, hpl_larger=scaled(SMITH["hpl_larger"], "hpl_rate", 0.9, **large))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("claim", "evidence", "before", "after"),
    [
        ("fortinet_fast_flat", "simulated", FOR, AGAINST),
        ("fortinet_slow_goes_on", "simulated", OPEN, AGAINST),
        ("fortinet_drop_is_congestion", "simulated", AGAINST, FOR),
        ("fortinet_fast_superior", "simulated", FOR, AGAINST),
        ("fortinet_gap_grows", "simulated", FOR, AGAINST),
        ("fortinet_gap_grows", "emulated", FOR, AGAINST),
        ("fortinet_larger_cluster", "simulated", FOR, OPEN),
        ("fortinet_infiniband_on_par", "simulated", FOR, OPEN),
        ("fortinet_latency_moderate", "simulated", FOR, AGAINST),
        ("fortinet_bandwidth_first", "simulated", FOR, AGAINST),
        ("fortinet_slow_with_rdma", "simulated", AGAINST, FOR),
    ],
)
def test_verdicts_on_hpl_follow_the_rates(altered, claim, evidence, before, after):
    """Where only one case of several simulated ones changes, nothing is decided."""
    assert judged(claim, PLANTED_CASES, evidence).answer == before
    assert judged(claim, altered, evidence).answer == after


@pytest.mark.more
def test_every_variant_of_the_model_is_judged():
    """Its numbers as they are and each of nine at both ends; one variant outside leaves the claim
    undecided.
    """
    assert judged("fortinet_slow_drops", PLANTED_CASES, "simulated").n == 1 + 2 * 9
    levels = {"interconnect": "gige", "nodes": 36, "vary": "latency=high"}
    other = scaled(SMITH["hpl_paper_sensitivity"], "hpl_rate", 2.0, **levels)
    found = judged("fortinet_slow_drops", smith(hpl_paper_sensitivity=other), "simulated")
    assert found.answer == OPEN and "18 of 19" in found.reason
    assert judged("fortinet_slow_drops", smith(hpl_paper_sensitivity=None), "simulated").n == 1


def test_what_hpls_campaigns_cannot_tell_is_said():
    """Neither what comes after the last node count, nor what the model is calibrated to, nor what
    the nodes limit.
    """
    assert "beyond 8 nodes" in judged("fortinet_slow_goes_on", PLANTED_CASES).reason
    assert "calibrated" in judged("fortinet_fast_level", PLANTED_CASES, "simulated").reason
    assert (
        judged("fortinet_fast_flat", PLANTED_CASES).answer == AGAINST
    )  # all fall alike, as planted
    fast = (BLOCKS.role == "survey") & (BLOCKS.interconnect == "10gige")
    slow = BLOCKS.assign(goodput=BLOCKS.goodput.where(~fast, 2.1e9))
    assert "limit what they send" in judged("fortinet_fast_flat", smith(hpl_scaling=slow)).reason
    alone = smith_campaign("hpl_larger", {"interconnect": ["gige", "10gige"]})
    found = judged("fortinet_infiniband_on_par", smith(hpl_larger=alone), "simulated")
    assert found.answer == NOT_TESTABLE


def test_messages_are_counted():
    """Most messages are small and most bytes are not. A count needs no blocks; with fewer small
    ones it is otherwise.
    """
    payload = stored("hpl_messages", "scale_model")
    studies = {
        "hpl_paper_simulated": stored("hpl_paper_simulated", "smith"),
        "hpl_messages": payload,
    }
    assert judged("fortinet_few_small_messages", studies, "simulated").answer == AGAINST
    assert judged("fortinet_few_small_bytes", studies, "simulated").answer == FOR
    emulated = judged("fortinet_few_small_messages", studies)
    assert (emulated.answer, emulated.kind) == (AGAINST, "count")
    few = payload.payload_messages * xr.where(payload["size"] < 4096, 0.001, 1)
    other = {"hpl_messages": payload.assign(payload_messages=few)}
    assert judged("fortinet_few_small_messages", other).answer == FOR


@pytest.mark.parametrize(("share", "verdict"), [(0.8, FOR), (0.5, AGAINST)])
def test_a_users_cluster_of_known_peak_has_an_efficiency(share, verdict):
    """Without a peak there is none; with one its level is judged as measured."""
    assert "peak" in judged("fortinet_fast_level", PLANTED_CASES).reason
    dataset, rate = as_measured(BLOCKS), points(BLOCKS).rate
    described = json.loads(dataset.attrs["testbed_settings"])
    peak = 1e9 * rate.sel(interconnect="10gige", nodes=8).mean().item() / 8 / share
    described["rpeak"] = {"value": peak, "unit": "flop/s"}
    known = dataset.assign_attrs(testbed_settings=json.dumps(described))
    level = judged("fortinet_fast_level", {"hpl_scaling": known}, "measured")
    assert level.answer == verdict and level.estimate == pytest.approx(share, rel=0.02)


def test_printed_numbers_agree_in_one_reading_but_for_two_claims():
    """One efficiency is a unit of its last digit off, and jumbo frames reach 80 % of what
    'non-blocking' means.
    """
    found = {one.claim.id: one.verdicts[0] for one in evaluate(SHIPPED, {})}
    wrong = {claim for claim, one in found.items() if one.answer == "inconsistent"}
    assert wrong == {"nemo_non_blocking", "bonding_two_nodes"}
    for claim, reading in {
        "nemo_total_1500": "1 MB = 1000 KB",
        "beowulf_peak_rate": "on 7 wires, by the writes of both ends",
        "bonding_four_nodes": "8.8 Gflop/s",
        "fortinet_infiniband_raw": "the ratio of bandwidths",
        "fortinet_largest_order": "Appendix B's order over 100",
        "fortinet_fast_bandwidth": "10^6 B in frames of 9000 B",
    }.items():
        assert found[claim].answer == "consistent" and reading in found[claim].reading


def test_other_printed_numbers_are_another_verdict(monkeypatch):
    """A bandwidth beyond the wire, another rate and other wires."""
    source, wires = published.facts("fortinet"), published.facts("beowulf")
    blog = published.table("bonding")
    source["micro_benchmarks"]["10gige"]["bandwidth"]["value"] = 1300
    blog.loc[0, "rate_gflop_s"] = 12.20
    wires["wires"]["original"]["value"] = 4
    facts, table = published.facts, published.table
    changed = {"fortinet": source, "beowulf": wires}
    monkeypatch.setattr(published, "facts", lambda name: changed.get(name) or facts(name))
    monkeypatch.setattr(published, "table", lambda name: blog if name == "bonding" else table(name))
    claims = ("fortinet_infiniband_raw", "fortinet_fast_bandwidth", "beowulf_local_gain")
    assert {judged(claim, {}, "published").answer for claim in claims} == {"inconsistent"}
    assert judged("bonding_two_nodes", {}, "published").answer == "consistent"


def test_claims_on_top500_follow_its_lists(monkeypatch):
    """Seven printed numbers are those of the lists; another list contradicts them. What no table
    has stays printed.
    """
    claims = [claim.id for claim in SHIPPED.claims if claim.aggregate]
    verdicts = {claim: judged(claim, {}, "published").answer for claim in claims}
    assert sorted(verdicts.values()) == 7 * ["consistent"] + ["printed"]
    table, other = published.table, published.table("top500_families")
    other["ratio_of_sums_percent"] += 0.02
    monkeypatch.setattr(published, "table", lambda name: other if "top500" in name else table(name))
    assert judged("bonding_top500_gige_average", {}, "published").answer == "inconsistent"
