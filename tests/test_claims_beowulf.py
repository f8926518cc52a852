"""The Beowulf study's claims: planted ratios have their verdicts, and a change of the data changes them."""

from functools import cache

import pytest
from claimed import as_evidence, judged, scaled, studies_of
from synthetic_token import token_campaign

from analysis import published
from analysis.experiments.token_exchange import TokenExchange
from analysis.token_points import passage, places, points

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
def planted():
    """One pair and seven, the smallest token and the largest."""
    return token_campaign(only=SLOW, preset="quick")


def studies(dataset):
    """The study's points and places, without its own claims."""
    passed = passage(dataset)
    study = TokenExchange(
        dataset, points(dataset, passed.astray), places(dataset), passed, claims=()
    )
    return studies_of({"token_exchange": dataset}, token_exchange=study)


@cache
def as_planted():
    """The studies of the campaign as it is planted."""
    return studies(planted())


@pytest.mark.parametrize(
    ("claim", "verdict", "estimate"),
    [
        ("beowulf_local_gain", "supported", 3.5),
        ("beowulf_switched_gain", "supported", 1.75),
        ("beowulf_routed_gain", "supported", 1.75),
        ("beowulf_switched_betters", "supported", 1.75),
        ("beowulf_routed_below_local", "supported", 2.0),
        ("beowulf_local_alike", "supported", 1.0),
        ("beowulf_bonded_not_better", "contradicted", 2 / 1.75),
        ("beowulf_bonded_worse", "contradicted", 2 / 1.75),
        ("beowulf_local_highest", "supported", 1.75),
        ("beowulf_switch_latency", "supported", 1.5),
    ],
)
def test_planted_ratios_have_their_verdicts(claim, verdict, estimate):
    """Each ratio comes back with an interval over the blocks, and is judged by the claim's range."""
    found = judged(claim, as_planted())
    assert found.verdict == verdict and found.n == 3 and found.campaign == "token_exchange"
    assert found.estimate == pytest.approx(estimate, rel=0.05)
    assert found.interval_95[0] < found.estimate < found.interval_95[1]


def test_another_throughput_is_another_verdict():
    """The verdict is one on the data: with other throughputs on some paths it is the other one."""
    slow_local = studies(scaled(planted(), "token_throughput", 0.5, path="local_wire_10m"))
    for about in ("gain", "alike", "highest"):
        claim = f"beowulf_local_{about}"
        assert judged(claim, as_planted()).verdict == "supported"
        assert judged(claim, slow_local).verdict == "contradicted"
    slow_others = scaled(planted(), "token_throughput", 0.5, path="remote_router_10m")
    slow_others = studies(scaled(slow_others, "token_throughput", 0.7, path="bonded_switch_10m"))
    assert judged("beowulf_routed_betters", slow_others).verdict == "contradicted"
    for claim in ("beowulf_bonded_not_better", "beowulf_bonded_worse"):
        assert judged(claim, slow_others).verdict == "supported"


def test_the_peak_is_told_from_the_largest_token():
    """Where the largest token gives less than the next smaller one, the claim is contradicted."""
    assert judged("beowulf_peak_token", as_planted()).verdict == "supported"
    lower = scaled(planted(), "token_throughput", 1e-3, path="local_wire_10m", token_bytes=8192)
    assert judged("beowulf_peak_token", studies(lower)).verdict == "contradicted"


def test_latency_is_of_the_smallest_token_and_one_pair():
    """Round trips of more pairs do not count; shorter ones of one pair contradict that a way through costs time."""
    many = scaled(planted(), "token_round_trip", 0.1, path="remote_switch_10m", pairs=7)
    altered = studies(
        scaled(many, "token_round_trip", 0.3, path="remote_router_10m", pairs=1, token_bytes=4)
    )
    assert judged("beowulf_switch_latency", altered).verdict == "supported"
    assert judged("beowulf_router_latency", altered).verdict == "contradicted"


def test_only_wires_at_the_studys_rate_are_compared():
    """Ten times as fast, the machine may limit: those paths are none of the study's."""
    fast = studies(token_campaign(only=("local_wire_100m", "bonded_shared_10m"), preset="quick"))
    found = judged("beowulf_local_gain", fast)
    assert found.verdict == "not testable" and "switched local wires" in found.reason


def test_a_busy_machine_is_no_evidence():
    """Where processors are busy and wires are not full, the ratio is the machine's; latency of one pair is not."""
    busy = scaled(
        scaled(planted(), "token_throughput", 0.5, path="local_wire_10m"), "host_cpu_time", 3.5
    )
    found = judged("beowulf_local_gain", studies(busy))
    assert found.verdict == "not testable" and "machine limits switched local wires" in found.reason
    assert judged("beowulf_switched_gain", studies(busy)).verdict == "supported"
    assert judged("beowulf_switch_latency", studies(busy)).verdict == "supported"


def test_a_users_data_are_judged_as_measured():
    """The evidence is the dataset's own."""
    measured = studies(as_evidence(planted(), "measured"))
    assert judged("beowulf_local_gain", measured, "measured").verdict == "supported"
    assert judged("beowulf_peak_rate", measured, "measured").verdict == "not testable"


def test_without_the_campaign_nothing_is_said():
    """Then only the printed numbers are there."""
    nothing = studies_of({"token_exchange": planted()}, token_exchange=None)
    assert judged("beowulf_local_gain", nothing).verdict == "not testable"
    assert judged("beowulf_local_gain", nothing, "published").verdict == "consistent"


def test_the_printed_rate_fits_one_way_of_counting(monkeypatch):
    """6.3 MB/s fit seven wires if both ends' writes count; twice as much fits no way of counting."""
    found = judged("beowulf_peak_rate", as_planted(), "published")
    assert found.verdict == "consistent" and "both ends" in found.reading and found.n == 2
    source = published.beowulf()
    source["wires"]["rate"]["value"] = 5e6
    monkeypatch.setattr(published, "beowulf", lambda: source)
    assert judged("beowulf_peak_rate", as_planted(), "published").verdict == "inconsistent"


def test_the_words_of_the_ratios_are_those_of_the_wires(monkeypatch):
    """Eight wires against two are 'four', half of them 'two'; with four of the original's they would not be."""
    source = published.beowulf()
    assert judged("beowulf_local_gain", as_planted(), "published").verdict == "consistent"
    source["wires"]["original"]["value"] = 4
    monkeypatch.setattr(published, "beowulf", lambda: source)
    for claim in ("beowulf_local_gain", "beowulf_switched_gain", "beowulf_routed_gain"):
        assert judged(claim, as_planted(), "published").verdict == "inconsistent"
