"""Incast: the planted collapse is found, what is lost is not made up."""

import numpy as np
import pytest
import xarray as xr
from executed import answers, executed, stated, words
from shown import failed
from synthetic import of_plan

from analysis import planning
from analysis.dataset.wire import wire_limit
from analysis.subjects.incast import collapses_at, growth_with_buffer, mean_collapse

SENDERS = [1, 2, 4, 8, 16, 32]


def planted_incast(per_kib=1 / 8, power=1.0, noise=0.01, short=0.95):
    """Goodput falls from 0.95 of the link to 0.1 around a (buffer / KiB)^power senders with
    timeouts of 200 ms, and is `short` with those of 1 ms."""
    plan = planning.plan_campaign("incast", "", "full", 4)
    random = np.random.default_rng(5)

    def readings(point, block):
        at = per_kib * (point["buffer_bytes"] / 1024) ** power
        # A step in the logarithm that is at a half where the senders are `at`.
        share = 0.1 + 0.85 / (1 + (point["senders"] / at) ** 6 * (0.45 / 0.4))
        share = short if point["rto_min_s"] == 0.001 else share
        carried = wire_limit(100e6, 1500)
        return {
            "goodput": carried * share * np.exp(random.normal(0, noise)),
            "block_time": [0.1],
            "timeouts": np.zeros(33),
        }

    return of_plan(plan, readings)


def test_the_planted_collapse_and_its_growth_are_found():
    """An eighth of a sender for each KiB: 4, 8, 16 and, beyond what is tried, 64."""
    made = executed("56", incast=planted_incast())
    for buffer, senders in (("32", 4), ("64", 8), ("128", 16)):
        one = stated(made, f"Goodput over GigE collapses with {buffer} KiB")
        assert one.words == "yes" and one.estimate == pytest.approx(senders, rel=0.1)
        assert one.interval[0] < one.estimate < one.interval[1]
        assert one.primary is (buffer == "64")  # as the campaign's design says
    never = stated(made, "Goodput over GigE collapses with 512 KiB")
    assert never.words == "no" and never.estimate is None
    assert stated(made, "The number of senders").estimate == pytest.approx(1, abs=0.1)
    assert stated(made, "A least timeout of 1 ms").words == "yes"
    assert "over nan" not in words(made)


def test_an_onset_that_the_blocks_do_not_tell_is_open():
    """Two blocks that collapse at 2 and at 30 senders: their mean is known, and its interval
    reaches beyond all that was tried."""
    runs = planted_incast()
    first = runs.block.values == runs.block.values.min()
    goodput = np.where(first & (runs.senders.values > 2), 0.01, runs.goodput.values)
    sparse = runs.assign(goodput=("trial", goodput)).isel(trial=runs.block.values <= 2)
    one = stated(executed("56", incast=sparse), "Goodput over GigE collapses with 128 KiB")
    assert one.words == "undecided" and np.isfinite(one.estimate) and one.interval[1] > 32


@pytest.mark.parametrize(("short", "answer"), [(0.3, "no"), (0.5, "undecided")])
def test_a_short_timeout_that_does_not_help_is_told(short, answer):
    """The rule for a least timeout of 1 ms: half of the link."""
    made = executed("56", incast=planted_incast(short=short, noise=0.03))
    assert stated(made, "A least timeout of 1 ms").words == answer


@pytest.mark.parametrize(("later", "answer"), [(1.0, "the same"), (1.6, "no")])
def test_another_scale_of_time_is_compared(later, answer):
    """It collapses `later` where time is 20 instead of 10 times slower; with short timeouts it
    fills the link at both.
    """
    plan = planning.plan_campaign("incast_dilation", "", "full", 3)
    random = np.random.default_rng(6)

    def readings(point, block):
        slowed, short = point["dilation"], point["rto_min_s"] == 0.001
        at = 8 * (later if slowed == 20 else 1)
        share = 0.95 if short else 0.1 + 0.85 / (1 + (point["senders"] / at) ** 6 * (0.45 / 0.4))
        noise = np.exp(random.normal(0, 0.01))
        return {"goodput": wire_limit(1e9 / slowed, 1500) * share * noise, "block_time": [0.1]}

    made = executed("56", incast=planted_incast(), incast_dilation=of_plan(plan, readings))
    onset = stated(made, "Goodput collapses with long timeouts at as many senders at dilation 20")
    filled = stated(made, "As much goodput with short timeouts at dilation 20")
    assert onset.words == answer and onset.estimate == pytest.approx(later, rel=0.05)
    assert filled.words == "the same" and filled.estimate == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    ("shares", "senders"),
    [
        ([0.9, 0.9, 0.9, 0.9, 0.9, 0.9], np.inf),
        ([0.9, 0.9, 0.9, 0.6, 0.4, 0.2], 8 * 2**0.5),
        ([0.9, 0.2, 0.9, 0.9, 0.5, 0.5], np.inf),
        ([0.9, 0.2, 0.9, 0.1, 0.1, 0.1], 2 ** (2 + 0.4 / 0.8)),
        ([0.1, 0.1, 0.1, 0.1, 0.1, 0.1], 1),
        ([0.9, np.nan, 0.9, 0.1, 0.1, 0.1], 2 ** (2 + 0.4 / 0.8)),
        ([0.9, 0.9, 0.9, 0.1, np.nan, 0.1], np.nan),
    ],
)
def test_where_a_curve_stays_below(shares, senders):
    """An early dip is none; what a missing value would decide is unknown."""
    share = xr.DataArray(shares, dims="senders", coords={"senders": SENDERS})
    assert float(collapses_at(share)) == pytest.approx(senders, nan_ok=True)


def test_blocks_that_differ_in_whether_they_collapse_have_no_mean():
    """Infinite and finite cannot be averaged; missing blocks are left out."""
    for blocks, mean in (([8.0, np.inf], np.nan), ([np.nan, np.inf], np.inf), ([4, np.nan, 9], 6)):
        found = mean_collapse(xr.DataArray(blocks, dims="block"))
        assert found[0] == pytest.approx(mean, nan_ok=True)
    one_buffer = xr.DataArray(
        [[4.0], [8.0]], dims=("block", "buffer_bytes"), coords={"buffer_bytes": [1]}
    )
    assert np.isnan(growth_with_buffer(one_buffer)).all()


def test_lost_trials_leave_no_number():
    """Of a campaign that failed nothing is known, and its reason is told."""
    made = executed("56", incast=failed(planted_incast(), "no memory"))
    assert all(one.estimate is None for one in made.statements)
    assert set(answers(made)) == {"undecided"} and "no memory" in words(made)
