"""Long paths: planted knees and variations come back, words follow the data, and what is not known is said."""

from dataclasses import replace
from functools import cache

import pytest
import xarray as xr
from shown import words
from synthetic_paths import long_path_campaign, without

from analysis.experiments import long_path


@cache
def noisy_study():
    """Four blocks with scatter, and thirty transfers of each series of repeats."""
    repeats = long_path_campaign(30, campaign="long_repeats")
    return long_path.analyse(long_path_campaign(blocks=4), repeats)


def repeated(blocks=30, **truth):
    """The study with another campaign of repeats."""
    repeats = long_path_campaign(blocks, campaign="long_repeats", **truth)
    return replace(noisy_study(), repeats=long_path.repeats_of(repeats))


def curve_of(study, path, direction="forward", congestion_control="cubic"):
    return study.curves[path, congestion_control, direction]


@pytest.mark.parametrize("window_share", [0.6, 1.0, 1.3])
def test_planted_knees_come_back(window_share):
    """Without noise, the knee is the theoretical product over the part of the buffer that is under way."""
    study = long_path.analyse(
        long_path_campaign(blocks=3, window_share=window_share, noise=0, block_effect=0)
    )
    for curve in study.curves.values():
        assert curve.knee[0] == pytest.approx(curve.product / window_share, rel=1e-6)
        assert curve.model.follows
    factor = f"{1 / window_share:.2f} times payload rate × round trip"
    assert factor in words(long_path, study)


def test_directions_have_their_own_limits():
    """On the asymmetric path each direction has its own rate, and both the same round trip."""
    forth, back = (
        curve_of(noisy_study(), "asymmetric", direction) for direction in ("forward", "reverse")
    )
    ratios = back.wire_limit / forth.wire_limit, back.product / forth.product
    assert ratios == pytest.approx((470 / 320, 470 / 320)) and back.knee[0] > forth.knee[0]


def test_a_model_that_misses_its_data_gives_no_estimate():
    """A path that carries half with all buffers below the full ones has a step and no slope."""
    dataset = long_path_campaign(blocks=4, noise=0.001, block_effect=0)
    small = dataset.window_bytes <= 65536
    step = dataset.assign(
        goodput=xr.where(small, 60e6, dataset.goodput).where(dataset.goodput.notnull())
    )
    study = long_path.analyse(step)
    assert not curve_of(study, "long_5ms").model.follows
    named = "path 5 ms from this buffer on: forward, cubic"
    reasons = [one.reason for one in long_path.findings(study) if named in one.statement]
    assert "misses its data" in reasons[0]


def test_buffers_that_no_trial_got_are_left_out():
    """A machine that grants 1 MiB at most still has knees, and its largest buffer is 1 MiB."""
    dataset = long_path_campaign(blocks=3)
    for window in (2097152, 4194304):
        dataset = without(dataset, window_bytes=window)
    study = long_path.analyse(dataset)
    assert study.largest_window == 1048576 and curve_of(study, "long_5ms").model.fitted
    assert "120 of 420 trials gave no reading: planted fault." in words(long_path, study)


@pytest.mark.parametrize(("slower", "kind", "same"), [(1.0, "holds", 10), (0.5, "violated", 0)])
def test_congestion_controls_are_compared(slower, kind, same):
    """The same goodput holds within the margin; a control at half of it is different, in words too."""
    dataset = long_path_campaign(blocks=5)
    factor = xr.where(dataset.congestion_control == "reno", slower, 1.0)
    study = long_path.analyse(dataset.assign(goodput=dataset.goodput * factor))
    assert {agreement.kind for agreement in study.contrasts.values()} == {kind}
    assert f"the same goodput as with cubic on {same} of 10 paths" in words(long_path, study)


@pytest.mark.parametrize(
    ("truth", "kind", "says"),
    [
        ({}, "reproducible", "varies by less than 10 %** for 4 of 4 combinations"),
        (
            {"slow": (0.3, 1 / 3)},  # transfers that sometimes stay at a third
            "not reproducible",
            "does not give the same goodput again** for 4 of 4",
        ),
        ({"blocks": 3}, "undecided", "is open** for 4 combinations"),
    ],
)
def test_repeats_are_judged_by_their_variation(truth, kind, says):
    """Steady transfers, a slow state, and too few to tell."""
    study = repeated(**truth)
    assert {judged.kind for judged in study.repeats.judged.values()} == {kind}
    assert says in words(long_path, study)


def test_a_transfer_without_a_reading_is_told_beside_the_verdict():
    """With its reason; the series has one transfer less."""
    dataset = long_path_campaign(30, campaign="long_repeats")
    lost = without(dataset, block=2, congestion_control="reno", direction="reverse")
    study = replace(noisy_study(), repeats=long_path.repeats_of(lost))
    assert "1 of 120 transfers gave no reading: planted fault." in words(long_path, study)
    assert [judged.n for judged in study.repeats.judged.values()] == [30, 30, 30, 29]


def test_the_table_has_what_was_set():
    """Both ways' rates where they differ, twice the delay, and their product for the buffer."""
    rows = {row[0]: row[1:3] for row in long_path.paths_table(noisy_study()).rows}
    assert rows["20 ms"] == ("200", "40") and rows["asymmetric"] == ("320 and 470", "10")
