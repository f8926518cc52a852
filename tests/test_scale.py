"""The rules of a scale model: the dilation of its points, and the buffers of its sockets."""

import pytest

from analysis import planning
from analysis.descriptions import campaigns, testbeds
from analysis.descriptions.adaptation import for_testbed
from runners import scale
from runners.records.record import FalloffError
from runners.testbeds import link_probe

MODEL = testbeds.read("fortinet_model").plain()


def points(preset, campaign="hpl_scaling", testbed=""):
    return [trial.point for trial in planning.plan_campaign(campaign, testbed, preset).blocks[0]]


def share_of_a_message(point):
    """By how much more of a run a message takes than on the paper's cluster, from the two runs'
    lengths.
    """
    rule, node = MODEL["scale"], MODEL["node"]
    flop_s = node["flop_s"] * node["dilation"] / point["dilation"]
    paper_n = rule["smaller"] * point["N"]
    run, paper_run = point["N"] ** 3 / flop_s, paper_n**3 / rule["flop_s"]
    per_column = rule["machine_message_s"] / rule["message_s"][point["interconnect"]]
    return per_column * (point["N"] / run) / (paper_n / paper_run)


def test_no_message_takes_a_larger_share_than_on_the_cluster():
    """At every point with messages; on the least dilation that a network has, hardly less."""
    shares = [share_of_a_message(point) for point in points("full") if point["nodes"] > 1]
    assert len(shares) == 18 and max(shares) <= 1 and max(shares) > 0.98


def test_bytes_have_the_share_that_they_have_on_the_cluster():
    """A node's rate over its link's, times the scale: as 39.67 Gflop/s over 110 MB/s of payload."""
    for network, paper in (("gige", 110e6), ("10gige", 1210e6)):
        payload = MODEL["networks"][network]["rate_bit_s"] / 8 * 1448 / 1538
        assert MODEL["node"]["flop_s"] * 64 / payload == pytest.approx(39.67e9 / paper, rel=0.01)


def test_a_campaign_that_says_a_dilation_keeps_it():
    """As a setting, as a factor or for each network; and a testbed without the rule has none."""
    assert {point["dilation"] for point in points("quick")} == {100}
    assert {
        point["dilation"] for point in points("full", "scale_model_dilation", "fortinet_model")
    } == {
        100,
        400,
    }
    of_networks = {
        (one["interconnect"], one["dilation"]) for one in points("full", "switch_buffers_hpl")
    }
    assert of_networks == {("gige", 60), ("10gige", 100)}
    assert not any("dilation" in point for point in points("full", "hpl_scaling", "scale_model"))
    own = for_testbed(campaigns.read("switch_buffers_hpl"), testbeds.read("example_ssh"))
    assert set(own.levels) == {"setup", "nodes"}


def test_a_network_of_which_the_rule_says_nothing_is_refused():
    """With the place where it has to be said."""
    model = testbeds.read("fortinet_model")
    lacking = model.changed(scale=model.scale.changed(message_s={"gige": 40e-6}))
    with pytest.raises(FalloffError, match="message_s says nothing of 10gige"):
        for_testbed(campaigns.read("hpl_scaling"), lacking)


def test_a_delayed_message_has_the_share_that_it_has_on_the_cluster():
    """What it should take grows with the dilation: with that time its share is the cluster's."""
    for point in points("full"):
        network, rule = point["interconnect"], dict(MODEL["scale"])
        wanted = scale.message_s(MODEL, network, point["dilation"])
        flop_s = MODEL["node"]["flop_s"] * MODEL["node"]["dilation"] / point["dilation"]
        share = wanted * flop_s * rule["smaller"] ** 2
        assert share == pytest.approx(rule["message_s"][network] * rule["flop_s"])


def test_buffers_hold_what_the_link_carries_for_a_while():
    """In proportion to its rate, within bounds, and as much as there may be where it has none."""
    rule = {"hold_s": 6e-3, "least_bytes": 16384, "most_bytes": 4194304}
    most = {rate: scale.buffers(rule, rate) for rate in (1e6, 80e6, 1e12, None)}
    assert [found["wmem"][2] for found in most.values()] == [16384, 60000, 4194304, 4194304]
    for found in most.values():
        assert found["rmem"][2] == 2 * found["wmem"][2]
        assert all(sizes == sorted(sizes) for sizes in found.values())


@pytest.mark.parametrize(
    ("share", "answer"),
    [
        (1.03, "kept"),
        (0.7, "window-bound"),
        (9, "faster than set"),
        (1.2, "faster than set"),
        (float("inf"), "faster than set"),
    ],
)
def test_a_link_that_long_messages_do_not_get_is_told_of(share, answer):
    """A trial is judged by it before its program runs."""
    assert link_probe.verdict({"link_share": share}).startswith(answer)
    assert link_probe.verdict({"short_message_time": 1.0}) == "kept"
