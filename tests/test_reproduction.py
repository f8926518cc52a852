"""A run against a reference: reproduced, not reproduced, or too short to tell."""

import math

import numpy as np
import pytest

from analysis.statistics.reproduction import prediction_interval, reproduction

PATTERN = np.array([-1.2, -0.6, 0.0, 0.6, 1.2])
REFERENCE = math.log(0.87) + 0.01 * PATTERN
CAMPAIGNS = 400


def judged(fall, sd=0.01, blocks=3, **further):
    """Today's blocks about a fall, against a reference of 13 %."""
    return reproduction("x", REFERENCE, math.log1p(-fall) + sd * PATTERN[1 : 1 + blocks], 0.05, **further)


@pytest.mark.parametrize(
    ("today", "kind"),
    [
        ({"fall": 0.13}, "reproduced"),
        ({"fall": 0.15}, "reproduced"),
        ({"fall": 0.30}, "not reproduced"),
        ({"fall": 0.0}, "not reproduced"),
        ({"fall": 0.13, "sd": 0.2}, "too short to tell"),
        ({"fall": 0.17}, "too short to tell"),
        ({"fall": 0.13, "blocks": 1}, "reproduced"),
        ({"fall": 0.13, "answers": ("falls off", "refused")}, "too short to tell"),
        ({"fall": 0.15, "answers": ("falls off", "undecided")}, "reproduced"),
    ],
)
def test_each_kind(today, kind):
    """By the interval of the difference against the margin."""
    found = judged(**today)
    assert found.kind == kind and found.reference == pytest.approx(0.87) and found.reference_blocks == 5
    assert found.interval[0] < found.today / found.reference < found.interval[1]


def test_answers_that_exclude_each_other_reproduce_nothing():
    """A fall just beyond the margin and one just inside: their difference is small and real, the answers differ."""
    reference, today = math.log(0.93) + 0.002 * PATTERN, math.log(0.96) + 0.002 * PATTERN
    assert reproduction("x", reference, today, 0.05).kind == "reproduced"
    assert reproduction("x", reference, today, 0.05, ("falls off", "flat")).kind == "not reproduced"


def test_a_faster_machine_scatters_otherwise():
    """The interval is Welch's: a noisy day is not taken for as calm as the reference."""
    calm, noisy = (judged(0.13, sd).interval for sd in (0.01, 0.03))
    assert noisy[1] - noisy[0] > 2 * (calm[1] - calm[0])


def test_too_few_blocks_say_nothing():
    """Without a block today, or with a single one in the reference, there is no interval."""
    for reference, today in ((REFERENCE, []), (REFERENCE[:1], REFERENCE), (REFERENCE, [np.nan])):
        found = reproduction("x", reference, today, 0.05)
        assert found.kind == "too short to tell" and found.interval is None


def test_a_simulation_is_compared_as_it_is():
    """One block of each is enough, since neither scatters."""
    assert reproduction("x", [-0.1], [-0.1], 0.05, exact=True).kind == "reproduced"
    assert reproduction("x", [-0.1], [-0.2], 0.05, exact=True).kind == "not reproduced"


def test_prediction_intervals_hold_the_next_blocks():
    """In 95 % of draws the mean of eight new blocks falls into the interval from four."""
    random = np.random.default_rng(3)
    hits = 0
    for _ in range(CAMPAIGNS):
        low, high = prediction_interval(random.normal(0, 1, 4), 8)
        hits += low <= random.normal(0, 1, 8).mean() <= high
    assert abs(hits / CAMPAIGNS - 0.95) <= 3 * math.sqrt(0.05 * 0.95 / CAMPAIGNS)
