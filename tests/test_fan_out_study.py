"""The fan-out study: the planted knee and limit are found, and what cannot be known is said."""

import json
from functools import cache

import numpy as np
import pytest
from synthetic_paths import fan_out_campaign, without

from analysis import style, wording
from analysis.bottleneck import CHANGES
from analysis.facts import fan_out as facts
from analysis.figures import fan_out as figures
from analysis.publish import to_html
from analysis.studies import fan_out
from runners.record import FalloffError

BASELINE_FLOW = 2.82e9 / 5  # bit/s of each of five flows behind the bridge
FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"


@cache
def planted_study():
    """The study of six blocks as they are planted."""
    return fan_out.analyse(fan_out_campaign(blocks=6))


def section(study):
    """The section's Markdown, hard spaces as spaces."""
    template = wording.templates().get_template("fan_out.md.j2")
    return template.render(fan_out=facts.collect(study)).replace("\u00a0", " ")


def test_the_bridge_is_named_in_both_directions():
    """The shipped paths' own limit: 3 Gbit/s between ports of 1; it is said in words too."""
    assert [fan.verdict.limit for fan in planted_study().fans] == ["shared bridge", "shared bridge"]
    said = wording.finding("fan_out", facts.collect(planted_study())).replace("\u00a0", " ")
    assert "The shared bridge limits 5 flows" in said


@pytest.mark.parametrize(("blocks", "noise"), [(12, 0.05), (3, 0.01)])
def test_the_bridge_is_named_in_nearly_every_campaign(blocks, noise):
    """In at least 19 of 20 campaigns, with the blocks that the design says for the noise."""
    campaigns = (fan_out_campaign(blocks, noise=noise, seed=seed, preset="quick") for seed in range(20))
    named = [fan_out.analyse(dataset).fans[0].verdict.limit for dataset in campaigns]
    assert named.count("shared bridge") >= 19


def test_the_knee_is_at_three_receivers():
    """Ports of 1 Gbit/s fill the bridge of 3 at the third; beyond, the aggregate does not grow."""
    for fan in planted_study().fans:
        assert fan.knee[0] == pytest.approx(3, rel=0.02)
        assert fan.knee[1] < fan.knee[0] < fan.knee[2]
        assert fan.fitted.estimates["s"] == pytest.approx(1, abs=0.03)
        assert fan.bracket[0] <= 3 <= fan.bracket[1]


def test_the_aggregate_stops_growing_only_where_it_is_shown():
    """Level behind the bridge in words too; one block shows nothing; what gains 40 % a doubling grows more slowly."""
    (forward, _) = facts.collect(planted_study())["fans"]
    assert forward["stops"] is True and {point["bound"] for point in forward["points"]} == {"link"}
    single = facts.collect(fan_out.analyse(fan_out_campaign(blocks=1)))["fans"][0]
    assert single["stops"] is None and single["knee_interval"] is None
    dataset = fan_out_campaign(blocks=4)
    more = np.maximum(dataset.receivers / 3, 1) ** 0.5
    growing = facts.collect(fan_out.analyse(dataset.assign(aggregate_goodput=dataset.aggregate_goodput * more)))
    assert {fan["stops"] for fan in growing["fans"]} == {False}
    assert growing["fans"][0]["growth"] == pytest.approx(2**0.5 - 1, abs=0.03)


def test_what_stays_below_the_links_is_the_hosts():
    """A processor that passes less than the links is named as what bounds the point."""
    study = fan_out.analyse(fan_out_campaign(blocks=3, capacities={"cpu": 2e9}))
    bound = [point["bound"] for point in facts.collect(study)["fans"][0]["points"]]
    assert bound[0] == "link" and set(bound[2:]) == {"host"}


def test_another_knee_is_found_elsewhere():
    """A sender that passes 1.9 Gbit/s saturates at 1.9 over a port's goodput."""
    dataset = fan_out_campaign(blocks=4, noise=0, capacities={"cpu": 1.9e9})
    for fan in fan_out.analyse(dataset).fans:
        assert fan.knee[0] == pytest.approx(1.9 / 0.9415, rel=0.02)


def test_a_limit_that_was_not_tried_is_undecided():
    """When the shared node's processor is the limit no change helps, and none of them is blamed."""
    fan = fan_out.analyse(fan_out_campaign(capacities={"cpu": 2e9})).fans[0]
    assert fan.verdict.limit == "undecided" and CHANGES["cpu"] in fan.verdict.reason
    assert CHANGES["cpu"] in section(fan_out.analyse(fan_out_campaign(capacities={"cpu": 2e9})))


def test_a_single_stream_that_does_not_fill_the_path_is_no_resource():
    """A stream limited by itself: a second one helps, which names neither link nor bridge."""
    fan = fan_out.analyse(fan_out_campaign(capacities={"stream": BASELINE_FLOW / 3})).fans[0]
    assert fan.verdict.responses["stream"].says == "grows"
    assert fan.verdict.limit == "undecided"


def test_flows_share_evenly():
    """Jain's index is near 1 and the flows' shares near an equal one; a starved flow shows."""
    study = planted_study()
    for fan in study.fans:
        assert (fan.fairness.ratio > 0.99).all()
    assert study.flows.share.between(0.9, 1.1).all()
    baseline = study.points.sizes["block"] * sum(study.points.receivers.values) * len(study.fans)
    assert len(study.flows) == baseline


def test_the_quick_preset_names_the_bridge_without_a_knee():
    """Two numbers of receivers carry the verdict and no knee: refused with the reason."""
    study = fan_out.analyse(fan_out_campaign(blocks=3, preset="quick"))
    (fan,) = study.fans
    assert fan.verdict.limit == "shared bridge" and CHANGES["stream"] not in fan.verdict.reason
    assert fan.fitted is None and "the data have 2" in fan.refused
    assert CHANGES["stream"] in section(study)


def test_failed_trials_are_left_out_of_the_ratios():
    """A block without its baseline does not count, the others do."""
    dataset = without(fan_out_campaign(blocks=6), block=2, path="fanout_3g", receivers=5, streams=1)
    fan = fan_out.analyse(dataset).fans[0]
    assert {response.repeats for response in fan.verdict.responses.values()} == {5}
    assert fan.means.blocks.sel(receivers=5) == 5 and fan.fitted.blocks == 5
    assert "trials gave no reading" in section(fan_out.analyse(dataset))


@pytest.mark.parametrize("campaign", [{"blocks": 3}, {"blocks": 1, "preset": "quick"}], ids=str)
def test_the_section_makes_no_number_up(campaign, tmp_path):
    """However few the data, text, tables and figures are whole; one block names nothing."""
    study = fan_out.analyse(fan_out_campaign(**campaign))
    markdown = section(study)
    assert not any(word in markdown for word in ("nan", "None", "inf "))
    style.save_all(figures.draw(study), tmp_path / "figures")
    assert to_html(FRONT + markdown, tmp_path).count("<img") == 3
    assert campaign["blocks"] > 1 or study.fans[0].verdict.limit == "undecided"


def test_published_stands_beside():
    """The source's saturation and number of targets are quoted as published."""
    markdown = section(planted_study())
    assert "3.00 Gbit/s (published evidence" in markdown and "emulated evidence" in markdown


def test_figures_show_every_run_and_flow():
    """Each aggregate and each flow's share is a mark."""
    drawn = figures.draw(planted_study())
    for fan, axes in zip(planted_study().fans, drawn["fan_out"].axes):
        shown = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
        assert all(np.isclose(shown, value / 1e9).any() for value in fan.goodput.values.ravel())
    shares = sum(len(line.get_ydata()) for axes in drawn["fan_out_shares"].axes for line in axes.lines)
    assert shares >= len(planted_study().flows)


def test_the_design_changes_one_thing_at_a_time():
    """Each change is among the levels, differs from the baseline in one of them, and promises enough to count."""
    design = json.loads(planted_study().dataset.attrs["design"])
    for change, levels in design["changes"].items():
        ((name, level),) = levels.items()
        assert change in CHANGES and level in design["factors"][name] and level != design["baseline"][name]
    assert design["changes"]["receiver"]["receivers"] / design["baseline"]["receivers"] >= 1.2


def test_no_fanout_trial_is_refused():
    """Another campaign's dataset is not one of a fan-out."""
    dataset = fan_out_campaign(blocks=1, preset="quick")
    with pytest.raises(FalloffError, match="no fanout trial"):
        fan_out.analyse(dataset.assign_coords(runner=("trial", ["ping"] * dataset.sizes["trial"])))
