"""Long paths: planted knees come back, repeats are judged by their variation, and what is unknown is said."""

import json
from functools import cache

import numpy as np
import pytest
import xarray as xr
from synthetic_paths import long_path_campaign, without

from analysis import style, wording
from analysis.facts import long_path as facts
from analysis.figures import long_path as figures
from analysis.publish import to_html
from analysis.studies import long_path, long_repeats
from runners.record import FalloffError


def repeated(blocks=30, **truth):
    """A campaign of repeats."""
    return long_path_campaign(blocks, campaign="long_repeats", **truth)

FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"


@cache
def noisy_study():
    """Four blocks with scatter, and repeats."""
    return long_path.analyse(long_path_campaign(blocks=4), repeated())


def section(study):
    """The section's Markdown, hard spaces as spaces."""
    template = wording.templates().get_template("long_path.md.j2")
    return template.render(long_path=facts.collect(study)).replace("\u00a0", " ")


def curve_of(study, path, direction="forward", congestion_control="cubic"):
    wanted = (path, congestion_control, direction)
    return next(it for it in study.curves if (it.path, it.congestion_control, it.direction) == wanted)


@pytest.mark.parametrize("window_share", [0.6, 1.0, 1.3])
def test_planted_knees_come_back(window_share):
    """Without noise, the knee is the theoretical product over the part of the buffer that is under way."""
    study = long_path.analyse(long_path_campaign(blocks=3, window_share=window_share, noise=0, block_effect=0))
    for curve in study.curves:
        assert curve.knee[0] == pytest.approx(curve.product / window_share, rel=1e-6)
        assert curve.fitted.estimates["limit"] == pytest.approx(curve.wire_limit, rel=1e-6)
    for known in facts.collect(study)["curves"]:
        assert known["window_share"] == pytest.approx(window_share, rel=1e-6)
        assert known["knee_to_product"] == pytest.approx(1 / window_share, rel=1e-6)


def test_a_round_trip_longer_than_described_is_seen():
    """Where the processors add to the delay, the measured round trip explains the knee beyond the product."""
    dataset = long_path_campaign(blocks=3, window_share=0.5, noise=0, block_effect=0)
    known = facts.collect(long_path.analyse(dataset.assign(rtt_mean=2 * dataset.rtt_mean)))["curves"][0]
    assert known["measured_round_trip"] == pytest.approx(2 * known["round_trip"])
    assert known["window_share"] == pytest.approx(1) and known["knee_to_product"] == pytest.approx(2)
    unknown = facts.collect(long_path.analyse(dataset.assign(rtt_mean=np.nan * dataset.rtt_mean)))["curves"][0]
    assert unknown["window_share"] is None and unknown["measured_round_trip"] is None


def test_intervals_hold_the_product():
    """Of 20 noisy knees, nearly all 95 % intervals hold the planted one."""
    held = [low <= curve.product <= high for curve in noisy_study().curves for _, low, high in [curve.knee]]
    assert np.mean(held) >= 0.8


def test_directions_have_their_own_limits():
    """On the asymmetric path each direction has its own rate, and both the same round trip."""
    forth, back = (curve_of(noisy_study(), "asymmetric", direction) for direction in ("forward", "reverse"))
    assert back.wire_limit / forth.wire_limit == pytest.approx(470 / 320)
    assert back.round_trip == forth.round_trip == pytest.approx(0.01)
    assert back.knee[0] > forth.knee[0]


def test_longer_paths_need_larger_buffers():
    """The knees are ordered as the delays."""
    knees = [curve_of(noisy_study(), path).knee[0] for path in ("long_05ms", "long_2ms", "long_5ms", "long_20ms")]
    assert knees == sorted(knees)


def test_too_few_buffers_give_a_bracket():
    """With all buffers beyond the knee there is no estimate: the reason and a range are there, and the section."""
    dataset = long_path_campaign(blocks=4)
    few = long_path.analyse(dataset.isel(trial=np.flatnonzero(dataset.window_bytes >= 262144)))
    curve = curve_of(few, "long_2ms")
    assert curve.fitted is None and "cannot carry a knee" in curve.refused
    assert curve.bracket[0] == 262144
    assert "cannot carry a knee" in section(few).replace("\\", "")


def test_buffers_that_no_trial_got_are_left_out():
    """A machine that grants 1 MiB at most still has knees, and its largest buffer is 1 MiB."""
    dataset = long_path_campaign(blocks=3)
    for window in (2097152, 4194304):
        dataset = without(dataset, window_bytes=window)
    study = long_path.analyse(dataset)
    assert study.largest_window == 1048576 and curve_of(study, "long_5ms").fitted
    assert "trials gave no reading" in section(study)


def test_a_slow_state_is_not_reproducible():
    """Transfers that sometimes stay at a third are not called reproducible; steady ones are."""
    slow = [series.judged for series in long_repeats.analyse(repeated(slow=(0.3, 1 / 3))).series]
    assert {judged.kind for judged in slow} == {"not reproducible"}
    assert {series.judged.kind for series in noisy_study().repeats.series} == {"reproducible"}


def test_few_repeats_are_undecided():
    """Three steady transfers prove nothing: no maximum and no small variation makes them reproducible."""
    study = long_path.analyse(long_path_campaign(blocks=1, preset="quick"), repeated(blocks=3))
    assert {series.judged.kind for series in study.repeats.series} == {"undecided"}
    assert "4 are undecided" in wording.finding("long_path", facts.collect(study)).replace("\u00a0", " ")
    assert facts.collect(long_path.analyse(study.dataset))["repeats"] is None


def test_congestion_controls_that_agree_are_the_same():
    """The same goodput holds within the margin; a control at half of it is different."""
    assert {contrast.agreement.kind for contrast in noisy_study().contrasts} == {"holds"}
    dataset = long_path_campaign(blocks=5)
    slower = dataset.assign(goodput=dataset.goodput * xr.where(dataset.congestion_control == "reno", 0.5, 1.0))
    contrasts = long_path.analyse(slower).contrasts
    assert {contrast.agreement.kind for contrast in contrasts} == {"violated"}
    assert np.median([contrast.agreement.ratio for contrast in contrasts]) == pytest.approx(0.5, rel=0.02)


def test_published_stands_beside():
    """The maxima are the source's, as published evidence, and its 64 M hold 10 Gbit/s up to 54 ms."""
    known = facts.collect(noisy_study())["published"]
    assert known["maximum"]["rennes_to_lyon"] == 3.2e9 and known["maximum"]["lyon_to_rennes"] == 4.7e9
    assert known["largest_round_trip"] == pytest.approx(0.0537, rel=1e-3)
    assert "published evidence" in section(noisy_study()) and "emulated evidence" in section(noisy_study())


@pytest.mark.parametrize("campaign", [{"blocks": 2}, {"blocks": 1, "preset": "quick"}], ids=str)
def test_the_section_makes_no_number_up(campaign, tmp_path):
    """However few the data, text, tables and figures are whole."""
    study = long_path.analyse(long_path_campaign(**campaign), repeated(blocks=2))
    markdown = section(study)
    assert not any(word in markdown for word in ("nan", "None", "inf "))
    style.save_all(figures.draw(study), tmp_path / "figures")
    assert to_html(FRONT + markdown, tmp_path).count("<img") == 2


def test_figures_show_every_run():
    """Each goodput is a mark in its panel, and each repeat with the largest buffer in the other figure."""
    drawn = figures.draw(noisy_study())
    lines = [np.asarray(line.get_ydata(), float) for axes in drawn["long_path"].axes for line in axes.lines]
    shown = np.concatenate(lines)
    assert all(np.isclose(shown, value / 1e6).any() for value in noisy_study().points.goodput.values.ravel()[::7])
    lines = drawn["long_path_repeats"].axes[0].lines
    repeats = np.concatenate([np.asarray(line.get_xdata(), float) for line in lines])
    for series in noisy_study().repeats.series:
        shares = 100 * np.array(series.judged.sample.values) / series.wire_limit
        assert all(np.isclose(repeats, share).any() for share in shares)


def test_no_iperf3_trial_is_refused():
    """Another campaign's dataset is not one over long paths."""
    dataset = long_path_campaign(blocks=1, preset="quick")
    with pytest.raises(FalloffError, match="no iperf3 trial"):
        long_path.analyse(dataset.assign_coords(runner=("trial", ["ping"] * dataset.sizes["trial"])))


def test_the_quick_preset_can_carry_a_knee():
    """Its few buffers lie two on either side of the path's knee, at any number of blocks."""
    study = long_path.analyse(long_path_campaign(blocks=3, preset="quick"))
    assert all(curve.fitted for curve in study.curves)


def test_the_design_names_a_control_that_is_run():
    """The campaign's control is one of its levels."""
    design = json.loads(noisy_study().dataset.attrs["design"])
    assert design["control"] in design["factors"]["congestion_control"] and 0 < design["margin"] < 0.14


def test_today_is_set_beside_the_reference():
    """The knee of a short run stands beside the reference's, and the section says when it was."""
    study = long_path.analyse(long_path_campaign(blocks=4), today=long_path_campaign(blocks=1, preset="quick"))
    (knee,) = facts.collect(study)["today"]["knees"]
    assert knee["now"] == pytest.approx(knee["then"], rel=0.2) and "Today's run" in section(study)
