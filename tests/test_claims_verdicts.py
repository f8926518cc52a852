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
from analysis.claims.evaluate import VERDICTS, evaluate
from analysis.experiments import Studies, hpl_scaling
from analysis.experiments.hpl_size import Size
from analysis.experiments.token_exchange import TokenExchange
from analysis.derive import points as hpl_points
from analysis.token_points import passage, places, points
from analysis.top500.lists import read_folder

SHIPPED = ledger.load()
SUPPORTED, CONTRADICTED, NOT_TESTABLE = "supported", "contradicted", "not testable"


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


def as_evidence(dataset, kind):
    return dataset.assign_coords(evidence=xr.full_like(dataset.evidence, kind, dtype="<U9"))


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


@cache
def on_paths():
    names = (
        "tcp_mtu",
        "tcp_cost",
        "frame_limits",
        "packet_sizes",
        "long_path",
        "long_repeats",
        "fan_out",
    )
    return studies_of({name: stored(name) for name in names})


@pytest.mark.parametrize(
    ("claim", "altered", "factor", "levels", "before", "after"),
    [
        (
            "nemo_jumbo_gain",
            "tcp_mtu",
            1.05,
            {"path": "crossover", "mtu": 8982},
            SUPPORTED,
            CONTRADICTED,
        ),
        # Below what the wire carries, the emulating machine is what limits.
        (
            "nemo_both_ways_jumbo",
            "tcp_mtu",
            0.79,
            {"path": "crossover", "mtu": 8982, "direction": "both"},
            CONTRADICTED,
            NOT_TESTABLE,
        ),
        ("nemo_cpu_byte_local", "tcp_cost", 0.5, {"mtu": 9000}, SUPPORTED, CONTRADICTED),
        ("grid5000_stays_saturated", "fan_out", 0.7, {"receivers": 7}, SUPPORTED, CONTRADICTED),
        (
            "grid5000_buffers_need_tuning",
            "long_path",
            6,
            {"window_bytes": 65536},
            SUPPORTED,
            CONTRADICTED,
        ),
    ],
)
def test_stored_campaigns_with_other_readings_are_judged_otherwise(
    claim, altered, factor, levels, before, after
):
    assert judged(claim, on_paths()).verdict == before
    reading = "aggregate_goodput" if altered == "fan_out" else "goodput"
    names = {altered, "tcp_mtu"} if altered == "tcp_cost" else {altered}
    data = {name: stored(name) for name in names}
    other = studies_of({**data, altered: scaled(data[altered], reading, factor, **levels)})
    assert judged(claim, other).verdict == after


def test_scatter_is_judged_by_its_own_interval():
    """Every second transfer at half the rate: the results are no longer alike, and some are much lower."""
    repeats = stored("long_repeats")
    slow = scaled(repeats, "goodput", 0.5, block=repeats.block.where(repeats.block % 2 == 0))
    studies = studies_of({"long_path": stored("long_path"), "long_repeats": slow})
    for claim in ("grid5000_scatter_from_rennes", "grid5000_much_lower"):
        assert judged(claim, on_paths()).verdict == CONTRADICTED
        assert judged(claim, studies).verdict == SUPPORTED


def test_every_kind_of_evidence_has_an_answer():
    """A verdict with an estimate, or a reason. A user's data are measured: the machine is no excuse, a switch can be asked."""
    measured = {
        name: as_evidence(stored(name), "measured")
        for name in ("tcp_mtu", "frame_limits", "packet_sizes")
    }
    studies = studies_of(measured)
    for entry in evaluate(SHIPPED, studies):
        assert [one.evidence for one in entry.judgements] == ["published", "measured"]
        for one in entry.judgements:
            assert one.verdict in VERDICTS and (one.estimate == one.estimate or one.reason)
            assert one.evidence == "measured" or one.verdict not in (SUPPORTED, CONTRADICTED)
    assert judged("nemo_non_blocking", studies, "measured").verdict == SUPPORTED
    assert judged("nemo_8505t_jumbo", studies, "measured").verdict == CONTRADICTED
    assert judged("nemo_both_ways_1500", studies, "measured").verdict != NOT_TESTABLE


SLOW = tuple(
    f"{name}_10m"
    for name in (
        "local_wire",
        "local_router",
        "remote_switch",
        "remote_router",
        "bonded_switch",
        "bonded_shared",
    )
)


@cache
def token_data():
    """One pair and seven, the smallest token and the largest."""
    return token_campaign(only=SLOW, preset="quick")


def tokens(dataset):
    """The study's points and places, without its models, which take their time."""
    passed = passage(dataset)
    found, excesses = points(dataset, passed.astray)
    fits = dict.fromkeys(("models", "claims", "samples"), ())
    study = TokenExchange(dataset, found, places(dataset), excesses, passed, **fits)
    return studies_of({"token_exchange": dataset}, token_exchange=study)


@cache
def planted_tokens():
    return tokens(token_data())


@pytest.mark.parametrize(
    ("claim", "verdict", "estimate"),
    [
        ("beowulf_local_gain", SUPPORTED, 3.5),
        ("beowulf_switched_gain", SUPPORTED, 1.75),
        ("beowulf_routed_gain", SUPPORTED, 1.75),
        ("beowulf_switched_betters", SUPPORTED, 1.75),
        ("beowulf_routed_below_local", SUPPORTED, 2.0),
        ("beowulf_local_alike", SUPPORTED, 1.0),
        ("beowulf_bonded_not_better", CONTRADICTED, 2 / 1.75),
        ("beowulf_bonded_worse", CONTRADICTED, 2 / 1.75),
        ("beowulf_local_highest", SUPPORTED, 1.75),
        ("beowulf_switch_latency", SUPPORTED, 1.5),
    ],
)
def test_planted_ratios_of_tokens_have_their_verdicts(claim, verdict, estimate):
    found = judged(claim, planted_tokens())
    assert found.verdict == verdict and found.n == 3 and found.campaign == "token_exchange"
    assert found.estimate == pytest.approx(estimate, rel=0.05)
    assert found.interval_95[0] < found.estimate < found.interval_95[1]


@pytest.mark.parametrize(
    ("claim", "reading", "factor", "where", "verdict"),
    [
        ("beowulf_local_gain", "throughput", 0.5, {"path": "local_wire_10m"}, CONTRADICTED),
        ("beowulf_local_highest", "throughput", 0.5, {"path": "local_wire_10m"}, CONTRADICTED),
        ("beowulf_routed_betters", "throughput", 0.5, {"path": "remote_router_10m"}, CONTRADICTED),
        ("beowulf_bonded_worse", "throughput", 0.7, {"path": "bonded_switch_10m"}, SUPPORTED),
        (
            "beowulf_peak_token",
            "throughput",
            1e-3,
            {"path": "local_wire_10m", "token_bytes": 8192},
            CONTRADICTED,
        ),
        # Latency is of the smallest token and one pair.
        (
            "beowulf_switch_latency",
            "round_trip",
            0.1,
            {"path": "remote_switch_10m", "pairs": 7},
            SUPPORTED,
        ),
        (
            "beowulf_router_latency",
            "round_trip",
            0.3,
            {"path": "remote_router_10m", "pairs": 1, "token_bytes": 4},
            CONTRADICTED,
        ),
    ],
)
def test_other_tokens_are_another_verdict(claim, reading, factor, where, verdict):
    other = scaled(token_data(), f"token_{reading}", factor, **where)
    assert judged(claim, tokens(other)).verdict == verdict


def test_a_busy_machine_or_another_rate_is_no_evidence_on_tokens():
    """Where processors are busy and wires are not full, the ratio is the machine's; latency of one pair is not."""
    slow = scaled(token_data(), "token_throughput", 0.5, path="local_wire_10m")
    busy = tokens(scaled(slow, "host_cpu_time", 3.5))
    found = judged("beowulf_local_gain", busy)
    assert found.verdict == NOT_TESTABLE and "machine limits switched local wires" in found.reason
    assert judged("beowulf_switch_latency", busy).verdict == SUPPORTED
    fast = tokens(token_campaign(only=("local_wire_100m", "bonded_shared_10m"), preset="quick"))
    assert "not run at the study's rate" in judged("beowulf_local_gain", fast).reason


AS_PRINTED = {**GAINS, "ecmp_layer2": {1: 0.0, 2: 0.058, 4: 0.134, 8: 0.2}}
SHRINKING = {**GAINS, "ecmp_layer2": {1: 0.0, 2: 0.2, 4: 0.1, 8: 0.05}}


@cache
def links(kind):
    """The campaigns over two links as planted, with the blog's gains, with shrinking ones, or with both links in use."""
    if kind == "blog":
        return studies_of({"link_hpl": hpl_campaign(gains=AS_PRINTED, noise=0.005)})
    if kind == "shrinking":
        return studies_of(
            {"link_hpl": scaled(hpl_campaign(gains=SHRINKING), "hpl_rate", 1.5, nodes=4)}
        )
    both = micro_campaign(links={**LINKS, "ecmp_layer2": LINKS["mptcp"]})
    micro = both if kind == "both" else micro_campaign()
    return studies_of({"link_hpl": hpl_campaign(), "link_micro": micro})


@pytest.mark.parametrize(
    ("claim", "kind", "verdict", "of"),
    [
        ("bonding_gain_two_nodes", "planted", CONTRADICTED, "on 2 nodes"),
        ("bonding_gain_two_nodes", "blog", SUPPORTED, "on 2 nodes"),
        ("bonding_gain_four_nodes", "blog", SUPPORTED, "on 4 nodes"),
        ("bonding_gain_grows", "planted", SUPPORTED, "8 over 2"),
        ("bonding_gain_grows", "shrinking", CONTRADICTED, "8 over 2"),
        ("bonding_gain_much_greater", "planted", "undecided", "4 over 2"),
        ("bonding_gain_much_greater", "blog", SUPPORTED, "4 over 2"),
        ("bonding_gain_much_greater", "shrinking", CONTRADICTED, "4 over 2"),
        ("bonding_efficiency_falls", "planted", SUPPORTED, "one link"),
        ("bonding_efficiency_falls", "shrinking", CONTRADICTED, "one link"),
        ("bonding_one_connection", "planted", CONTRADICTED, "1 connection,"),
        ("bonding_one_connection", "both", SUPPORTED, "1 connection,"),
        ("bonding_many_connections", "planted", CONTRADICTED, "8 connections"),
        ("bonding_many_connections", "both", SUPPORTED, "8 connections"),
    ],
)
def test_gains_of_two_links_have_their_verdicts(claim, kind, verdict, of):
    found = judged(claim, links(kind))
    assert found.verdict == verdict and of in found.of


def test_another_way_of_using_two_links_is_not_the_blogs():
    found = judged(
        "bonding_gain_two_nodes", studies_of({"link_hpl": hpl_campaign(blocks=2, preset="quick")})
    )
    assert found.verdict == NOT_TESTABLE and "hash of the peers" in found.reason


def test_two_studies_of_one_kind_of_evidence_are_one_judgement():
    """A user who measures both the paper's cases and two links has the latter judged, which is the blog's."""
    data = {"link_hpl": hpl_campaign(blocks=3), "hpl_paper": smith_campaign("hpl_paper")}
    studies = studies_of({name: as_evidence(dataset, "measured") for name, dataset in data.items()})
    found = judged("bonding_efficiency_falls", studies, "measured")
    assert found.campaign == "link_hpl" and found.verdict == SUPPORTED


@pytest.mark.parametrize(
    ("factor", "verdict"), [(2.0, SUPPORTED), (5.0, CONTRADICTED), (1.1, CONTRADICTED)]
)
def test_the_better_blas_doubles_or_not(factor, verdict):
    """A factor of five is no doubling either, but both gain more than the second link."""
    studies = studies_of({"hpl_blas": blas_campaign(factor=factor)})
    assert judged("bonding_blas_doubled", studies).verdict == verdict
    assert judged("bonding_blas_doubled", studies).estimate == pytest.approx(factor, rel=0.05)
    assert (judged("bonding_blas_matters_more", studies).verdict == SUPPORTED) == (factor > 1.134)


PAPER, SENSITIVITY, BEYOND = (
    smith_campaign(f"hpl_{name}") for name in ("paper", "sensitivity", "beyond")
)
BLOCKS = campaign(blocks=6, noise=0.005)


@cache
def scaling():
    return hpl_scaling.analyse(BLOCKS)


def smith(cases=PAPER, sensitivity=SENSITIVITY, blocks=BLOCKS, larger=BEYOND):
    datasets = {"hpl_paper": cases, "hpl_sensitivity": sensitivity, "hpl_beyond": larger}
    made = {"hpl_scaling": scaling()} if blocks is BLOCKS else {}
    return studies_of({**datasets, "hpl_scaling": blocks}, **made)


@pytest.fixture(scope="module")
def planted():
    return smith()


@pytest.fixture(scope="module")
def altered():
    """In all variants 10GE loses a fifth on 36 nodes and Gigabit Ethernet gains a quarter; 256 nodes lose a tenth."""

    def change(data):
        data = scaled(data, "hpl_rate", 0.8, interconnect="10gige", nodes=36)
        return scaled(data, "hpl_rate", 1.25, interconnect="gige", nodes=36)

    larger = scaled(BEYOND, "hpl_rate", 0.9, interconnect="10gige", nodes=256)
    return smith(
        change(PAPER), change(SENSITIVITY), campaign(blocks=6, noise=0.005, falls={}), larger
    )


@pytest.mark.parametrize(
    ("claim", "evidence", "before", "after"),
    [
        ("smith_fast_straight", "simulated", SUPPORTED, CONTRADICTED),
        ("smith_fast_constant", "simulated", SUPPORTED, CONTRADICTED),
        ("smith_slow_drops", "simulated", SUPPORTED, CONTRADICTED),
        ("smith_slow_goes_on", "simulated", "undecided", CONTRADICTED),
        ("smith_drop_is_congestion", "simulated", CONTRADICTED, SUPPORTED),
        ("smith_fast_superior", "simulated", SUPPORTED, CONTRADICTED),
        ("smith_gap_grows", "simulated", SUPPORTED, CONTRADICTED),
        ("smith_larger_cluster", "simulated", SUPPORTED, "undecided"),
        ("smith_infiniband_on_par", "simulated", SUPPORTED, "undecided"),
        ("smith_gap_grows", "emulated", SUPPORTED, CONTRADICTED),
    ],
)
def test_verdicts_on_hpl_follow_the_rates(planted, altered, claim, evidence, before, after):
    """Where only one case of several simulated ones changes, nothing is decided."""
    assert judged(claim, planted, evidence).verdict == before
    assert judged(claim, altered, evidence).verdict == after


def test_every_variant_of_the_model_is_judged(planted):
    """Its numbers as they are and each of nine at both ends; one variant outside leaves the claim undecided."""
    assert judged("smith_slow_drops", planted, "simulated").n == 1 + 2 * 9
    outside = scaled(
        SENSITIVITY, "hpl_rate", 2.0, interconnect="gige", nodes=36, vary="latency=high"
    )
    found = judged("smith_slow_drops", smith(sensitivity=outside), "simulated")
    assert found.verdict == "undecided" and "18 of 19" in found.reason
    assert judged("smith_slow_drops", smith(sensitivity=None), "simulated").n == 1


def test_what_hpls_campaigns_cannot_tell_is_said(planted):
    """Neither what comes after the last node count, nor what the model is calibrated to, nor what the nodes limit."""
    assert "beyond 8 nodes" in judged("smith_slow_goes_on", planted).reason
    assert "calibrated" in judged("smith_fast_level", planted, "simulated").reason
    assert (
        judged("smith_fast_straight", planted).verdict == CONTRADICTED
    )  # all fall alike, as planted
    fast = (BLOCKS.role == "survey") & (BLOCKS.interconnect == "10gige")
    slow = BLOCKS.assign(goodput=BLOCKS.goodput.where(~fast, 2.1e9))
    assert "limit what they send" in judged("smith_fast_straight", smith(blocks=slow)).reason
    alone = smith(larger=smith_campaign("hpl_beyond", {"interconnect": ["gige", "10gige"]}))
    assert judged("smith_infiniband_on_par", alone, "simulated").verdict == NOT_TESTABLE


@pytest.mark.parametrize(("share", "verdict"), [(0.8, SUPPORTED), (0.5, CONTRADICTED)])
def test_a_users_cluster_of_known_peak_has_an_efficiency(planted, share, verdict):
    """Without a peak there is none; with one the level and the spread are judged as measured."""
    assert "peak" in judged("smith_fast_level", planted).reason
    dataset, found = as_evidence(BLOCKS, "measured"), scaling().points
    rate = found.rate.sel(interconnect="10gige", nodes=8).mean().item()
    described = json.loads(found.attrs["testbed_settings"])
    described["rpeak"] = {"value": 1e9 * rate / 8 / share, "unit": "flop/s"}
    known = found.assign_attrs(testbed_settings=json.dumps(described))
    study = replace(scaling(), dataset=dataset, points=known.assign_coords(evidence="measured"))
    level = judged(
        "smith_fast_level", studies_of({"hpl_scaling": dataset}, hpl_scaling=study), "measured"
    )
    assert level.verdict == verdict and level.estimate == pytest.approx(share, rel=0.02)


def test_latency_and_bandwidth_are_told_apart(planted):
    """A rate that latency changes by half is more than moderately sensitive to it, and more than to bandwidth."""
    slow = smith(sensitivity=scaled(SENSITIVITY, "hpl_rate", 0.5, vary="latency=high"))
    for claim in ("smith_latency_moderate", "smith_bandwidth_first"):
        assert judged(claim, planted, "simulated").verdict == SUPPORTED
        assert judged(claim, slow, "simulated").verdict == CONTRADICTED


@pytest.mark.parametrize(("most", "verdict"), [(4.5, SUPPORTED), (1.0, CONTRADICTED)])
def test_a_daemon_costs_more_on_many_nodes_or_not(most, verdict):
    data = noise_campaign(amplification={2: 1.0, 4: 1.0, 8: 1.0, 16: most}, noise=0.005)
    found = judged("smith_monitoring", studies_of({"hpl_noise": data}))
    assert found.verdict == verdict and "16 over 2 nodes" in found.of


@pytest.mark.parametrize(("largest", "verdict"), [(1.0, CONTRADICTED), (0.1, SUPPORTED)])
def test_efficiency_over_the_order_of_the_matrix(largest, verdict):
    """It grows as planted; a largest matrix that is ten times slower would support the paper."""
    data = scaled(size_campaign(blocks=4, N=(896, 7168)), "hpl_rate", largest, N=7168)
    rest = dict.fromkeys(("shares", "ratios", "curves", "agreement"))
    study = Size(data, hpl_points(data), nodes=4, network="gige", reference="10gige", **rest)
    found = judged("smith_order", studies_of({"hpl_size": data}, hpl_size=study))
    assert found.verdict == verdict and "N = 7168 over 896" in found.of


def test_messages_are_counted():
    """Most messages are small and most bytes are not. A count needs no blocks; with fewer small ones it is otherwise."""
    payload = stored("hpl_payload", "scale_model")
    studies = studies_of({"hpl_paper": stored("hpl_paper", "smith"), "hpl_payload": payload})
    assert judged("smith_few_small_messages", studies, "simulated").verdict == CONTRADICTED
    assert judged("smith_few_small_bytes", studies, "simulated").verdict == SUPPORTED
    emulated = judged("smith_few_small_messages", studies)
    assert (emulated.verdict, emulated.kind) == (CONTRADICTED, "count")
    few = payload.payload_messages * xr.where(payload["size"] < 4096, 0.001, 1)
    other = studies_of({"hpl_payload": payload.assign(payload_messages=few)})
    assert judged("smith_few_small_messages", other).verdict == SUPPORTED


@pytest.mark.parametrize(
    ("claim", "verdict", "reading"),
    [
        ("nemo_total_1500", "consistent", "sum of both flows, 1 MB = 1000 KB"),
        (
            "nemo_non_blocking",
            "inconsistent",
            "goodput of test 1 over what the wire carries at MTU 8982",
        ),
        ("beowulf_peak_rate", "consistent", "on 7 wires, by the writes of both ends"),
        ("bonding_two_nodes", "inconsistent", "the rate over 8.8 Gflop/s a node"),
        ("bonding_four_nodes", "consistent", "the rate over 8.8 Gflop/s a node"),
        ("smith_infiniband_raw", "consistent", "the ratio of bandwidths"),
        ("smith_largest_order", "consistent", "Appendix B's order over 100"),
        ("smith_fast_bandwidth", "consistent", "10^6 B in frames of 9000 B"),
        ("smith_memory", "consistent", None),
        ("nemo_saving", "printed", ""),
    ],
)
def test_printed_numbers_are_checked_by_each_other(claim, verdict, reading):
    found = judged(claim, NOTHING, "published")
    assert found.verdict == verdict and reading in (found.reading, None)


def test_other_printed_numbers_are_another_verdict(monkeypatch):
    """An order that fills more than the memory, another deck, a bandwidth beyond the wire, other rates and wires."""
    source, deck, table = published.smith(), published.smith_deck(), published.smith_table1()
    source["micro_benchmarks"]["10gige"]["bandwidth"]["value"] = 1300
    deck["deck"]["N"] = [2000, 250000]
    table.loc[0, "N"] = 290000
    blog, wires = published.bonding_blog(), published.beowulf()
    blog.loc[0, "rate_gflop_s"] = 12.20
    wires["wires"]["original"]["value"] = 4
    replaced = {
        "smith": source,
        "smith_deck": deck,
        "smith_table1": table,
        "bonding_blog": blog,
        "beowulf": wires,
    }
    for name, value in replaced.items():
        monkeypatch.setattr(published, name, lambda value=value: value)
    for claim in (
        "smith_infiniband_raw",
        "smith_largest_order",
        "smith_fast_bandwidth",
        "smith_memory",
    ):
        assert judged(claim, NOTHING, "published").verdict == "inconsistent"
    assert judged("beowulf_local_gain", NOTHING, "published").verdict == "inconsistent"
    assert judged("bonding_two_nodes", NOTHING, "published").verdict == "consistent"


def test_claims_on_top500_follow_its_lists(tmp_path):
    """All are consistent with lists that have what is printed; another rate changes those that it touches."""
    claims = [claim.id for claim in SHIPPED.claims if claim.aggregate]

    def verdicts(rate):
        for month in ("2007-11", "2008-11"):
            rows = [
                (*row[:5], rate if (month, row[0]) == ("2008-11", 92) else row[5], *row[6:])
                for row in ROWS[month]
            ]
            file = tmp_path / f"TOP500_{month}.csv"
            file.write_text(text(month, systems=rows), encoding="utf-8")
        studies = studies_of({"lists": read_folder(tmp_path)})
        return {name: judged(name, studies, "published").verdict for name in claims}

    (printed,) = (row[5] for row in ROWS["2008-11"] if row[0] == 92)
    assert set(verdicts(printed).values()) == {"consistent"}
    other = {name for name, verdict in verdicts(30000).items() if verdict == "inconsistent"}
    assert other == {"blog_top500_gige_average", "blog_top500_gige_highest"}
    assert {judged(name, NOTHING, "published").verdict for name in claims} == {"printed"}
