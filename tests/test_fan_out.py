"""The fan-out: the planted knee and limit are found, words follow the data, and what cannot be known is said."""

import json
from functools import cache

import numpy as np
import pytest
from synthetic_paths import fan_out_campaign, without

from analysis.bottleneck import CHANGES
from analysis.experiments import fan_out

BASELINE_FLOW = 2.82e9 / 5  # bit/s of each of five flows behind the bridge


@cache
def planted_study():
    """The study of six blocks as they are planted."""
    return fan_out.analyse(fan_out_campaign(blocks=6))


def words(study):
    """The finding, hard spaces as spaces."""
    return fan_out.finding(study).replace("\u00a0", " ")


def all_text(study):
    """Finding, captions and tables."""
    tables = [fan_out.changes_table(study).markdown, fan_out.points_table(study).markdown]
    return "\n".join(
        [words(study), *tables, *(it.markdown for it in fan_out.figures(study).values())]
    )


def test_the_bridge_is_named_in_both_directions():
    """The shipped paths' own limit: 3 Gbit/s between ports of 1; it is said in words too, with what it does not say."""
    assert [fan.verdict.limit for fan in planted_study().fans] == ["shared bridge", "shared bridge"]
    assert "**The shared bridge limits 5 flows from one sender**" in words(planted_study())
    assert "Not tried: more CPU for the sender." in words(planted_study())
    assert "does not say what limited the source" in words(planted_study())


@pytest.mark.parametrize(("blocks", "noise"), [(12, 0.05), (3, 0.01)])
def test_the_bridge_is_named_in_nearly_every_campaign(blocks, noise):
    """In at least 19 of 20 campaigns, with the blocks that the design says for the noise."""
    campaigns = (
        fan_out_campaign(blocks, noise=noise, seed=seed, preset="quick") for seed in range(20)
    )
    named = [fan_out.analyse(dataset).fans[0].verdict.limit for dataset in campaigns]
    assert named.count("shared bridge") >= 19


def test_the_knee_is_at_three_receivers():
    """Ports of 1 Gbit/s fill the bridge of 3 at the third; beyond, the aggregate does not grow."""
    for fan in planted_study().fans:
        assert fan.knee[0] == pytest.approx(3, rel=0.02)
        assert fan.knee[1] < fan.knee[0] < fan.knee[2]
        assert fan.fitted.estimates["s"] == pytest.approx(1, abs=0.03)
        assert fan.follows
    assert "stops growing at 3.0" in words(planted_study())


def test_the_sum_stops_growing_only_where_it_is_shown():
    """One block shows nothing; what gains 40 % a doubling grows more slowly."""
    single = fan_out.analyse(fan_out_campaign(blocks=1))
    assert "stops growing" not in words(single) and np.isnan(single.fans[0].knee[1])
    dataset = fan_out_campaign(blocks=4)
    more = np.maximum(dataset.receivers / 3, 1) ** 0.5
    growing = fan_out.analyse(dataset.assign(aggregate_goodput=dataset.aggregate_goodput * more))
    assert growing.fans[0].growth[0] == pytest.approx(2**0.5 - 1, abs=0.03)
    assert "grows more slowly" in words(growing) and "stops growing" not in words(growing)


def test_a_model_that_misses_its_data_names_no_knee():
    """A sum that loses a quarter at the end is no segmented line: its knee is in the data and not in the words."""
    dataset = fan_out_campaign(blocks=4, noise=0.001)
    lost = np.where(dataset.receivers == 7, 0.75, 1.0)
    study = fan_out.analyse(dataset.assign(aggregate_goodput=dataset.aggregate_goodput * lost))
    assert not any(fan.follows for fan in study.fans)
    assert "sum of all flows" not in words(study)
    assert {it.reason for it in fan_out.findings(study) if it.estimate} <= {
        "the model misses its data"
    }


def test_what_stays_below_the_links_is_the_hosts():
    """A processor that passes less than the links is named as what bounds the point."""
    study = fan_out.analyse(fan_out_campaign(blocks=3, capacities={"cpu": 2e9}))
    bound = [row[4] for row in fan_out.points_table(study).rows]
    assert bound[0] == "link" and set(bound[2:6]) == {"host"}


def test_another_knee_is_found_elsewhere():
    """A sender that passes 1.9 Gbit/s saturates at 1.9 over a port's goodput."""
    dataset = fan_out_campaign(blocks=4, noise=0, capacities={"cpu": 1.9e9})
    for fan in fan_out.analyse(dataset).fans:
        assert fan.knee[0] == pytest.approx(1.9 / 0.9415, rel=0.02)


def test_a_limit_that_was_not_tried_is_undecided():
    """When the shared node's processor is the limit no change helps, and none of them is blamed."""
    study = fan_out.analyse(fan_out_campaign(capacities={"cpu": 2e9}))
    assert {fan.verdict.limit for fan in study.fans} == {"undecided"}
    assert CHANGES["cpu"] in study.fans[0].verdict.reason and "is undecided" in words(study)


def test_a_single_stream_that_does_not_fill_the_path_is_no_resource():
    """A stream limited by itself: a second one helps, which names neither link nor bridge."""
    fan = fan_out.analyse(fan_out_campaign(capacities={"stream": BASELINE_FLOW / 3})).fans[0]
    assert fan.verdict.responses["stream"].says == "grows"
    assert fan.verdict.limit == "undecided"


def test_flows_share_evenly():
    """Jain's index is near 1, the flows' shares near an equal one, and each flow has its row."""
    study = planted_study()
    assert all((fan.fairness.ratio > 0.99).all() for fan in study.fans)
    assert study.flows.share.between(0.9, 1.1).all()
    assert len(study.flows) == study.blocks * sum(study.points.receivers.values) * len(study.fans)


def test_the_quick_preset_names_the_bridge_without_a_knee():
    """Two numbers of receivers carry the verdict and no knee: refused with the reason."""
    study = fan_out.analyse(fan_out_campaign(blocks=3, preset="quick"))
    (fan,) = study.fans
    assert fan.verdict.limit == "shared bridge" and CHANGES["stream"] not in fan.verdict.reason
    assert fan.fitted is None and "the data have 2" in fan.refused
    assert f"Not tried: {CHANGES['stream']}" in words(study)


def test_failed_trials_are_left_out_of_the_ratios():
    """A block without its baseline does not count, the others do."""
    dataset = without(fan_out_campaign(blocks=6), block=2, path="fanout_3g", receivers=5, streams=1)
    fan = fan_out.analyse(dataset).fans[0]
    assert {response.repeats for response in fan.verdict.responses.values()} == {5}
    assert fan.means.blocks.sel(receivers=5) == 5 and fan.fitted.blocks == 5
    assert "2 of 432 trials gave no reading" in words(fan_out.analyse(dataset))


def test_one_block_names_nothing():
    """It has no scatter to judge by."""
    single = fan_out.analyse(fan_out_campaign(blocks=1, preset="quick"))
    assert {fan.verdict.limit for fan in single.fans} == {"undecided"}


def test_today_is_told_with_its_blocks():
    """A short run of today names its own limit."""
    today = fan_out_campaign(blocks=3, preset="quick")
    study = fan_out.analyse(fan_out_campaign(blocks=3), today)
    assert "Today's run (3 blocks) names the shared bridge for flows from one sender" in words(
        study
    )


def test_published_stands_beside():
    """The source's saturation and number of targets are quoted as published."""
    assert (
        "3 of them, at about 3 Gbit/s" in fan_out.source()
        and "published evidence" in fan_out.source()
    )


def test_figures_show_every_run_and_flow():
    """Each aggregate, each response and each flow's share is a mark, and the figures say what they rest on."""
    drawn = fan_out.figures(planted_study())
    axes = drawn["fan_out"].figure.axes
    for fan, panel in zip(planted_study().fans, axes):
        shown = np.concatenate([np.asarray(line.get_ydata(), float) for line in panel.lines])
        assert all(np.isclose(shown, value / 1e9).any() for value in fan.goodput.values.ravel())
    marks = sum(len(line.get_xdata()) for line in axes[-1].lines if line.get_marker() in "Dv")
    assert marks == sum(len(fan.verdict.responses) for fan in planted_study().fans)
    panels = drawn["fan_out_shares"].figure.axes
    shares = [line for panel in panels for line in panel.lines if line.get_marker() in "Dv"]
    assert sum(len(line.get_ydata()) for line in shares) == len(planted_study().flows)
    assert {exhibit.rests_on for exhibit in drawn.values()} == {("fan_out",)}


def test_the_design_changes_one_thing_at_a_time():
    """Each change is among the levels, differs from the baseline in one of them, and promises enough to count."""
    design = json.loads(planted_study().dataset.attrs["design"])
    for change, levels in design["changes"].items():
        ((name, level),) = levels.items()
        assert (
            change in CHANGES
            and level in design["factors"][name]
            and level != design["baseline"][name]
        )
    assert design["changes"]["receiver"]["receivers"] / design["baseline"]["receivers"] >= 1.2
