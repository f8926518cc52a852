"""Long paths: planted knees come back, words follow the data, and what is not known is said."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import xarray as xr
from synthetic_paths import long_path_campaign, without

from analysis.experiments import long_path
from analysis.statistics import design as designs


@cache
def noisy_study():
    """Four blocks with scatter."""
    return long_path.analyse(long_path_campaign(blocks=4))


def words(study):
    """The finding, hard spaces as spaces."""
    return long_path.finding(study).replace("\u00a0", " ")


def all_text(study):
    """Finding, captions and tables."""
    tables = [long_path.buffers_table(study).markdown, long_path.controls_table(study).markdown]
    return "\n".join(
        [words(study), *tables, *(it.markdown for it in long_path.figures(study).values())]
    )


def curve_of(study, path, direction="forward", congestion_control="cubic"):
    wanted = (path, congestion_control, direction)
    return next(curve for curve in study.curves if curve.key == wanted)


@pytest.mark.parametrize("window_share", [0.6, 1.0, 1.3])
def test_planted_knees_come_back(window_share):
    """Without noise, the knee is the theoretical product over the part of the buffer that is under way."""
    study = long_path.analyse(
        long_path_campaign(blocks=3, window_share=window_share, noise=0, block_effect=0)
    )
    for curve in study.curves:
        assert curve.knee[0] == pytest.approx(curve.product / window_share, rel=1e-6)
        assert curve.fitted.estimates["limit"] == pytest.approx(curve.wire_limit, rel=1e-6)
        assert curve.follows
    assert f"from a socket buffer of {1 / window_share:.2f} times rate × round trip on" in words(
        study
    )


def test_intervals_hold_the_product():
    """Of 20 noisy knees, nearly all 95 % intervals hold the planted one."""
    held = [
        low <= curve.product <= high
        for curve in noisy_study().curves
        for _, low, high in [curve.knee]
    ]
    assert np.mean(held) >= 0.8


def test_directions_have_their_own_limits():
    """On the asymmetric path each direction has its own rate, and both the same round trip."""
    forth, back = (
        curve_of(noisy_study(), "asymmetric", direction) for direction in ("forward", "reverse")
    )
    assert back.wire_limit / forth.wire_limit == back.rate / forth.rate == pytest.approx(470 / 320)
    assert back.round_trip == forth.round_trip == pytest.approx(0.01)
    assert back.knee[0] > forth.knee[0]


def test_longer_paths_need_larger_buffers():
    """The knees are ordered as the delays, and a small buffer is told for the longest path."""
    knees = [
        curve_of(noisy_study(), path).knee[0]
        for path in ("long_05ms", "long_2ms", "long_5ms", "long_20ms")
    ]
    assert knees == sorted(knees)
    assert re.search(
        r'With a buffer of 64 KiB TCP reaches 7\.\d % .* of the path "20 ms"', words(noisy_study())
    )


def test_a_model_that_misses_its_data_gives_no_estimate():
    """A path that carries half with all buffers below the full ones has a step and no slope: only tried buffers are told."""
    dataset = long_path_campaign(blocks=4, noise=0.001, block_effect=0)
    small = dataset.window_bytes <= 65536
    step = dataset.assign(
        goodput=xr.where(small, 60e6, dataset.goodput).where(dataset.goodput.notnull())
    )
    study = long_path.analyse(step)
    curve = curve_of(study, "long_5ms")
    assert not curve.follows and curve.full_between == (65536, 262144)
    rows = {row[0]: row for row in long_path.buffers_table(study).rows}
    assert rows["5 ms, forward"][4:6] == ("between 64 and 256", "—")
    told = [it for it in long_path.findings(study) if "long_5ms forward with cubic" in it.statement]
    assert told[0].reason == long_path.MISSES


def test_too_few_buffers_give_no_estimate():
    """With all buffers beyond the knee the reason is there, and what was tried."""
    dataset = long_path_campaign(blocks=4)
    few = long_path.analyse(dataset.isel(trial=np.flatnonzero(dataset.window_bytes >= 262144)))
    curve = curve_of(few, "long_2ms")
    assert curve.fitted is None and "cannot carry a knee" in curve.refused
    assert np.isnan(curve.full_between[0]) and curve.full_between[1] == 262144
    assert "cannot be said" in words(few) and "cannot carry a knee" in words(few)
    assert "at most 256" in all_text(few)


def test_buffers_that_no_trial_got_are_left_out():
    """A machine that grants 1 MiB at most still has knees, and its largest buffer is 1 MiB."""
    dataset = long_path_campaign(blocks=3)
    for window in (2097152, 4194304):
        dataset = without(dataset, window_bytes=window)
    study = long_path.analyse(dataset)
    assert study.largest_window == 1048576 and curve_of(study, "long_5ms").fitted
    assert "120 of 420 trials gave no reading: planted fault." in words(study)


def test_congestion_controls_that_agree_are_the_same():
    """The same goodput holds within the margin; a control at half of it is different, in words too."""
    assert {contrast.agreement.kind for contrast in noisy_study().contrasts} == {"holds"}
    assert "the same goodput as with cubic on 10 of 10 paths" in words(noisy_study())
    dataset = long_path_campaign(blocks=5)
    slower = dataset.assign(
        goodput=dataset.goodput * xr.where(dataset.congestion_control == "reno", 0.5, 1.0)
    )
    study = long_path.analyse(slower)
    assert {contrast.agreement.kind for contrast in study.contrasts} == {"violated"}
    assert "on 0 of 10 paths" in words(study) and re.search(
        r"furthest from 1 is 0\.4\d\d", words(study)
    )


def test_published_stands_beside():
    """The maxima are the source's, as published evidence, and its 64 M hold 10 Gbit/s up to 54 ms."""
    text = long_path.source().replace("\u00a0", " ")
    assert "3.2 Gbit/s" in text and "4.7 Gbit/s" in text and "53.7 ms (computed)" in text
    assert "published evidence" in text


def test_the_figure_shows_every_run():
    """Each goodput is a mark at its share of the wire limit, in the panel of its control and direction."""
    exhibit = long_path.figures(noisy_study())["long_path"]
    panels = {axes.get_title(): axes for axes in exhibit.figure.axes}
    for curve in noisy_study().curves:
        axes = panels[f"{curve.congestion_control}, {curve.direction}"]
        shown = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
        shares = 100 * curve.goodput.values.ravel() / curve.wire_limit
        assert all(np.isclose(shown, share).any() for share in shares)
    assert exhibit.rests_on == ("long_path",)


def test_the_quick_preset_can_carry_a_knee():
    """Its few buffers lie two on either side of the path's knee, at any number of blocks."""
    study = long_path.analyse(long_path_campaign(blocks=3, preset="quick"))
    assert all(curve.fitted for curve in study.curves)


def test_the_design_names_a_control_that_is_run():
    """The campaign's control is one of its levels."""
    design = designs.read(noisy_study().dataset)
    assert (
        design.control in noisy_study().points.congestion_control.values
        and 0 < design.margin < 0.14
    )


def test_today_is_set_beside_the_stored_run():
    """The knee of a short run stands beside the stored one, with its blocks; no word says that they agree."""
    exact = long_path_campaign(blocks=1, preset="quick", noise=0)
    scattered = exact.assign(
        goodput=exact.goodput * xr.where(exact.window_bytes == 131072, 0.5, 1.0)
    )
    texts = [
        words(replace(noisy_study(), today=long_path.analyse(today)))
        for today in (exact, scattered)
    ]
    assert "Today's run (1 block) finds" in texts[0] and "where the stored one has" in texts[0]
    assert "Today's run (1 block) has no estimate" in texts[1]
