"""Long paths: planted knees and variations come back, answers follow the data, and what is not
known is said.
"""

from functools import cache

import numpy as np
import pytest
import xarray as xr
from executed import executed, stated, words
from shown import failed
from synthetic_paths import long_path_campaign, without

from analysis.statements.statement import unless_across

PLANNED = "TCP fills path 5 ms from this buffer on: forward, cubic"


def run(dataset, repeats=None):
    """The notebook on a campaign, and on one of repeats if it is given."""
    given = {} if repeats is None else {"long_path_repeats": repeats}
    return executed("50", long_path=dataset, **given)


@cache
def campaign():
    """Four blocks with scatter."""
    return long_path_campaign(blocks=4)


def repeated(blocks=30, **truth):
    """The statements on a campaign of repeats."""
    repeats = long_path_campaign(blocks, campaign="long_path_repeats", **truth)
    return [
        one for one in run(campaign(), repeats).statements if one.campaign == "long_path_repeats"
    ]


def test_a_knee_that_the_blocks_do_not_tell_is_open():
    """A known knee whose interval over the blocks reaches beyond the buffers that were tried is not
    found.
    """
    interval = (3e3, 4e7)
    assert unless_across("found", interval, 1e4, 1e7) == "undecided"
    assert unless_across("found", (2e4, 4e6), 1e4, 1e7) == "found"
    assert (
        unless_across("found", (np.nan, np.nan), 1e4, 1e7) == "found"
    )  # one block has no interval


@pytest.mark.parametrize("window_share", [0.6, 1.3])
def test_planted_knees_come_back(window_share):
    """Without noise, the knee is the theoretical product over the part of the buffer that is under
    way.
    """
    made = run(long_path_campaign(3, window_share=window_share, noise=0, block_effect=0))
    table = made.names["filling"]
    assert len(table) == 20 and table.quoted.all()
    np.testing.assert_allclose(table.ratio, 1 / window_share, rtol=1e-6)
    planned = stated(made, PLANNED)
    product = table["product"].loc["long_5ms", "cubic", "forward"]
    assert planned.primary and planned.words == "yes" and planned.unit == "B"
    assert planned.estimate == pytest.approx(product / window_share, rel=1e-6)
    assert f"{1 / window_share:.2f} times payload rate × round trip" in words(made)


def test_directions_have_their_own_limits():
    """On the asymmetric path each direction has its own rate, and both the same round trip."""
    made = run(campaign())
    ways = made.names["paths"].sel(path="asymmetric")
    for name in ("wire_limit", "product"):
        ratio = ways[name].sel(direction="reverse") / ways[name].sel(direction="forward")
        assert float(ratio) == pytest.approx(470 / 320)
    there, back = (
        stated(made, f"TCP fills path asymmetric from this buffer on: {way}, cubic").estimate
        for way in ("forward", "reverse")
    )
    assert back > there
    np.testing.assert_allclose(ways.rate, [320e6, 470e6])
    np.testing.assert_allclose(ways.round_trip, 10e-3)


def test_a_model_that_misses_its_data_gives_no_answer():
    """A path that carries half with all buffers below the full ones has a step and no slope."""
    dataset = long_path_campaign(blocks=4, noise=0.001, block_effect=0)
    half = xr.where(dataset.window_bytes <= 65536, 60e6, dataset.goodput)
    planned = stated(run(dataset.assign(goodput=half.where(dataset.goodput.notnull()))), PLANNED)
    assert planned.answer == "undecided" and "misses its data" in planned.reason


@pytest.mark.more
def test_buffers_that_no_trial_got_are_left_out():
    """A machine that grants 1 MiB at most still has knees, and its largest buffer is 1 MiB."""
    dataset = long_path_campaign(blocks=3)
    for window in (2097152, 4194304):
        dataset = without(dataset, window_bytes=window)
    made = run(dataset)
    assert made.names["goodput"].window_bytes.max() == 1048576
    assert stated(made, PLANNED).estimate is not None
    assert "120 of 420 trials gave no reading: planted fault." in words(made)


@pytest.mark.parametrize(("slower", "answer"), [(1.0, "same"), (0.5, "no")])
def test_congestion_controls_are_compared(slower, answer):
    """The same goodput holds within the margin; a control at half of it is different."""
    dataset = long_path_campaign(blocks=5)
    factor = xr.where(dataset.congestion_control == "reno", slower, 1.0)
    made = run(dataset.assign(goodput=dataset.goodput * factor))
    compared = [one for one in made.statements if one.subject.startswith("TCP is as fast")]
    assert len(compared) == 10 and {one.answer for one in compared} == {answer}
    assert all(one.estimate == pytest.approx(slower, rel=0.05) for one in compared)


@pytest.mark.parametrize(
    ("truth", "answer"),
    [({}, "yes"), ({"slow": (0.3, 1 / 3)}, "no"), ({"blocks": 3}, "undecided")],
)
def test_repeats_are_judged_by_their_variation(truth, answer):
    """Steady transfers, a state of a third of the rate in which a transfer sometimes stays, and too
    few to tell.
    """
    again = repeated(**truth)
    assert len(again) == 4 and {one.answer for one in again} == {answer}
    assert [one.primary for one in again] == [
        one.estimate == max(each.estimate for each in again) for one in again
    ]


def test_a_transfer_without_a_reading_is_told_beside_the_answer():
    """With its reason; the series has one transfer less."""
    dataset = long_path_campaign(30, campaign="long_path_repeats")
    made = run(
        campaign(), without(dataset, block=2, congestion_control="reno", direction="reverse")
    )
    assert "1 of 120 transfers gave no reading: planted fault." in words(made)
    assert [one.n for one in made.statements if one.n_of == "transfer"] == [30, 30, 30, 29]


def test_the_figure_shows_every_run_of_its_series():
    """Forward with the design's congestion control, each over its path's limit."""
    made = run(campaign())
    (axes,) = made.figures["long_path"].figure.axes
    drawn = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
    shown = made.names["share"].sel(direction="forward", congestion_control="cubic").values.ravel()
    assert all(np.isclose(drawn, 100 * share).any() for share in shown[np.isfinite(shown)])


def test_lost_trials_leave_statements_without_numbers():
    """Nothing is judged, and nothing is made up."""
    repeats = long_path_campaign(3, campaign="long_path_repeats")
    made = run(failed(campaign(), "no library"), failed(repeats, "no library"))
    assert {one.estimate for one in made.statements} == {None} and "no library" in words(made)
    assert {one.answer for one in made.statements} == {"undecided"}
